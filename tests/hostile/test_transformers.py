# SPDX-License-Identifier: BSD-3-Clause
"""Transformers in model files of strangers: what they would cost, start or print."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import adiabat

from fuzz.models import MODELS
from hostile.tampering import RNG, D, N, X, Y, resealed

LIMIT = 1 << 20


def saved(folder, scaler, rows=X, labels=Y):
    path = folder / "model.adiabat"
    adiabat.IncrementalPipeline(adiabat.SVC(), scaler=scaler).fit(rows, labels).save(path)
    return path


def monomials(degree):
    def edit(manifest, arrays):
        for name in ("transformers", "at_positions"):
            manifest[name]["steps"][-1][1]["parameters"]["degree"] = degree

    return edit


@pytest.mark.parametrize("degree", [30, 1000, {"tuple": [29, 30]}])
def test_monomials_are_counted_before_they_are_made(tmp_path, degree):
    path = saved(tmp_path, make_pipeline(adiabat.StandardScaler(), PolynomialFeatures(2)))
    assert adiabat.load(path, max_bytes=LIMIT).n_features_in_ == D
    with pytest.raises(adiabat.ModelFileError, match=r"rows of \d+ features would take"):
        adiabat.load(resealed(path, monomials(degree)), max_bytes=LIMIT)


@pytest.mark.parametrize("degree", [10**9, {"tuple": [0, 10**9]}])
def test_a_degree_without_end_is_refused(tmp_path, degree):
    path = saved(tmp_path, make_pipeline(adiabat.StandardScaler(), PolynomialFeatures(2)))
    with pytest.raises(adiabat.ModelFileError, match="monomials of degree 1000000000"):
        adiabat.load(resealed(path, monomials(degree)))


@pytest.mark.parametrize("within", [False, True])
def test_columns_of_categories_are_counted_before_they_are_made(tmp_path, within):
    encoder = adiabat.OneHotEncoder(handle_unknown="ignore", sparse_output=within)
    if within:  # sparse columns, made dense beside others
        encoder = adiabat.ColumnTransformer(
            [("categories", encoder, [0, 1, 2, 3, 4])], sparse_threshold=0.0
        )
    rows = RNG.normal(size=(8 * N, D))
    path = saved(tmp_path, encoder, rows, np.arange(8 * N) % 2)
    assert adiabat.load(path).n_features_in_ == D
    with pytest.raises(adiabat.ModelFileError, match="rows of 1600 features would take"):
        adiabat.load(path, max_bytes=LIMIT)


def test_sparse_columns_of_categories_cost_what_is_in_them(tmp_path):
    encoder = adiabat.OneHotEncoder(handle_unknown="ignore")
    rows = RNG.normal(size=(8 * N, D))
    path = saved(tmp_path, encoder, rows, np.arange(8 * N) % 2)
    assert adiabat.load(path, max_bytes=4 * LIMIT).n_features_in_ == D


def test_no_file_starts_processes_or_prints(tmp_path, capfd):
    path = tmp_path / "model.adiabat"
    MODELS["table"](X).save(path)

    def edit(manifest, arrays):
        for name in ("transformers", "at_positions"):
            manifest[name]["parameters"].update(n_jobs=2, verbose=True)

    model = adiabat.load(resealed(path, edit))
    assert (model.scaler.n_jobs, model.scaler_.n_jobs) == (None, None)
    assert (model.scaler.verbose, model.scaler_.verbose) == (False, False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("counts", [[10**15], [2**62, 2**62, 2**62, 2**62]])
def test_counts_that_stand_for_more_rows_than_memory_holds_are_refused(tmp_path, counts):
    path = tmp_path / "model.adiabat"
    MODELS["table held"](X).save(path)

    def edit(manifest, arrays):
        name = next(name for name in arrays if name.endswith("counts0"))
        arrays[name][: len(counts)] = counts

    with pytest.raises(adiabat.ModelFileError, match=r"statistics of \d+ rows would take"):
        adiabat.load(resealed(path, edit))
