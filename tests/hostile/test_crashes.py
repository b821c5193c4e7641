# SPDX-License-Identifier: BSD-3-Clause
"""Files and stores with hostile sparse rows are refused; none takes the process down."""

import struct

import numpy as np
import pytest

import adiabat

from hostile.tampering import N, resealed, rewrite_rows, saved, sparse_store

SPARSE = ["svc", "svr", "one class", "svdd", "kernel lssvc", "kernel lssvr", "pipeline"]
BOUNDS = {
    "beyond, and 0 at the end": lambda indptr: np.array([0] + [10**9] * (N - 1) + [0]),
    "fall": lambda indptr: np.append(indptr[::-1][1:], indptr[-1]),
    "start below 0": lambda indptr: np.append(-7, indptr[1:]),
    "leap": lambda indptr: np.concatenate([indptr[:5], [2**40], indptr[6:]]),
    "too few": lambda indptr: indptr[:3],
    "of text": lambda indptr: indptr.astype(str),
    "in a table": lambda indptr: indptr[:, None],
}
COLUMNS = {
    "negative": lambda indices: indices - 3,
    "far above": lambda indices: indices + 2 * 10**9,
    "one too large": lambda indices: np.append(indices[:-1], 5),
    "of floats": lambda indices: indices.astype(float),
    "too few": lambda indices: indices[:-1],
}


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", SPARSE)
def test_a_model_file_with_hostile_bounds_of_rows(tmp_path, name, bounds):
    def edit(manifest, arrays):
        arrays["X_indptr"] = BOUNDS[bounds](arrays["X_indptr"].astype(np.int64))

    with pytest.raises(adiabat.ModelFileError, match="sound"):
        adiabat.load(resealed(saved(tmp_path, name, sparse=True), edit))


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("name", SPARSE)
def test_a_model_file_without_values_and_bounds_far_beyond(tmp_path, name, empty):
    def edit(manifest, arrays):
        arrays["X_indptr"] = np.array([0] + [10**9] * (N - 1) + [0])
        if empty:
            arrays["X_data"], arrays["X_indices"] = np.empty(0), np.empty(0, np.int32)

    with pytest.raises(adiabat.ModelFileError, match="sound"):
        adiabat.load(resealed(saved(tmp_path, name, sparse=True), edit))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", SPARSE)
def test_a_model_file_with_hostile_columns(tmp_path, name, columns):
    def edit(manifest, arrays):
        arrays["X_indices"] = COLUMNS[columns](arrays["X_indices"].astype(np.int64))

    with pytest.raises(adiabat.ModelFileError, match="sound"):
        adiabat.load(resealed(saved(tmp_path, name, sparse=True), edit))


def shifted(by):
    """Column numbers of a stored sparse row, moved."""

    def edit(features):
        (count,) = struct.unpack_from("<q", features, 1)
        indices = np.frombuffer(features, "<i4", count, 9) + np.int32(by)
        return features[:9] + indices.astype("<i4").tobytes() + features[9 + 4 * count :]

    return edit


@pytest.mark.parametrize("by", [-3, 1, 10**8, 2**31 - 7, -(2**31)])
@pytest.mark.parametrize("task", ["lssvc", "svc", "kernel-lssvc"])
def test_a_store_with_hostile_rows_is_refused_by_every_use(tmp_path, task, by):
    folder = sparse_store(tmp_path / "m", task)
    rewrite_rows(folder, shifted(by))
    store = adiabat.open_store(folder)
    found = store.verify(retrain=True)
    assert not found.ok and any("row" in problem for problem in found.problems)
    for use in (
        lambda: store.forget(["3"], dry_run=True),
        lambda: store.forget(["3"]),
        lambda: store.leave_one_out(),
        lambda: store.cross_validate(folds=2),
        lambda: store.rows(),
        lambda: store.repair(),
    ):
        with pytest.raises(adiabat.StoreDamagedError, match="damaged"):
            use()
