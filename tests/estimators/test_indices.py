# SPDX-License-Identifier: BSD-3-Clause
"""Corrections follow the index of a data frame, never the order in which its rows happen to be."""

import warnings

import numpy as np
import pandas as pd
import pytest

from adiabat import SVC, IdError, IncrementalPipeline, KernelLSSVC, OneClassSVM

NAMES = [f"P{i}" for i in range(30)]
FRAME = pd.DataFrame(
    np.random.default_rng(0).standard_normal((30, 2)), columns=["a", "b"], index=NAMES
)
LABELS = pd.Series(np.where(FRAME.a + FRAME.b > 0, "yes", "no"), index=NAMES)
MODELS = {
    "svc": lambda: SVC(gamma=0.5),
    "kernel-lssvc": lambda: KernelLSSVC(gamma=0.5),
    "pipeline": lambda: IncrementalPipeline(SVC(gamma=0.5)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_correction_is_aligned_by_its_index(name):
    truth = LABELS.copy()
    truth["P3"], truth["P4"] = "no", "yes"
    rows = FRAME.copy()
    rows.loc["P5"], rows.loc["P6"] = (3.0, 1.0), (-3.0, -1.0)
    weights = pd.Series(1.0, index=NAMES)
    weights["P7"], weights["P8"] = 2.0, 0.5
    model = MODELS[name]().fit(FRAME, LABELS)
    model.revise(["P3", "P4"], y=truth[["P4", "P3"]])
    model.revise(["P5", "P6"], X=rows.loc[["P6", "P5"]])
    model.revise(["P7", "P8"], sample_weight=weights[["P8", "P7"]])
    expected = MODELS[name]().fit(rows, truth, sample_weight=weights)
    given, wanted = model.decision_function(FRAME), expected.decision_function(FRAME)
    np.testing.assert_allclose(given, wanted, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_an_index_that_names_others_is_refused(name):
    model = MODELS[name]().fit(FRAME, LABELS)
    before = model.decision_function(FRAME)
    with pytest.raises(IdError, match=r"y has an index that does not name the 2 ids.*to_numpy"):
        model.revise(["P3", "P4"], y=pd.Series(["yes", "no"], index=["P4", "P9"]))
    np.testing.assert_array_equal(model.decision_function(FRAME), before)
    model.revise(["P3", "P4"], y=pd.Series(["yes", "no"], index=["P4", "P9"]).to_numpy())


def test_the_default_index_counts_unless_it_is_the_ids_in_another_order():
    X, y = FRAME.to_numpy(), LABELS.to_numpy()
    model = SVC(gamma=0.5).fit(X, y)
    model.revise([7, 5], y=pd.Series(["yes", "no"]))
    expected = y.copy()
    expected[7], expected[5] = "yes", "no"
    wanted = SVC(gamma=0.5).fit(X, expected).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), wanted, atol=1e-7)
    model.revise([0, 1], y=pd.Series(["yes", "no"]))
    with pytest.raises(IdError, match=r"default index 0 \.\.\. 1.*another order"):
        model.revise([1, 0], y=pd.Series(["yes", "no"]))


@pytest.mark.parametrize(
    "make", [MODELS["svc"], MODELS["pipeline"], lambda: OneClassSVM(gamma=0.5, nu=0.3)]
)
def test_a_preview_of_a_frame_warns_of_no_names(make):
    model = make().fit(FRAME, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.preview(remove=["P1"], at=FRAME)
        model.preview(remove=["P1"])
        if not isinstance(model, OneClassSVM):
            model.preview(X=FRAME[:2].set_axis(["Q1", "Q2"]), y=LABELS[:2].to_numpy(), at=FRAME)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.preview(remove=["P1"], at=FRAME.to_numpy())


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_preview_is_by_default_of_the_samples_that_stay(kernel):
    X, y = FRAME.to_numpy(), LABELS.to_numpy()
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    old, new = (K[:25, :25], K[25:, :]) if kernel == "precomputed" else (X[:25], X[25:])
    model = SVC(kernel=kernel, gamma=0.5).fit(old, y[:25])
    found = model.preview(remove=[3, 8], X=new, y=y[25:])
    stays = np.setdiff1d(np.arange(25), [3, 8])
    assert found.ids.tolist() == stays.tolist()
    np.testing.assert_allclose(found.before, model.decision_function(old)[stays], atol=1e-9)
    model.update(new, y[25:], remove=[3, 8])
    held = np.r_[stays, 25:30]
    at = K[np.ix_(stays, held)] if kernel == "precomputed" else X[stays]
    np.testing.assert_allclose(found.after, model.decision_function(at), atol=1e-7)
