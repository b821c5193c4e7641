# SPDX-License-Identifier: BSD-3-Clause
"""Rows kept by their nonzero entries, against the same rows in a plain matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from adiabat._core.kernel_values import LINEAR, squared_norms
from adiabat._core.sparse_rows import SparseRows

FloatArray = npt.NDArray[np.float64]
FEATURES = 23
NOBODY = np.empty(0, dtype=np.int64)


def some_rows(k: int, seed: int, density: float = 0.3) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, FEATURES)) * (rng.random((k, FEATURES)) < density)


def dense(rows: SparseRows) -> FloatArray:
    entries = rows.entries(np.arange(rows.n))
    return sp.csr_array(entries, shape=(rows.n, rows.n_features)).toarray()


def held(plain: FloatArray) -> SparseRows:
    rows = SparseRows(plain.shape[1])
    rows.append(plain)
    return rows


def products(rows: SparseRows, k: int) -> FloatArray:
    """With the first k of themselves."""
    return LINEAR.block(rows.view(), rows.view(slice(0, k)))


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["dense", "csr", "go", "cut"]), st.integers(0, 40)),
        max_size=15,
    )
)
@settings(max_examples=60)
def test_rows_are_as_their_mirror(steps: list[tuple[str, int]]) -> None:
    rows, plain = SparseRows(FEATURES), np.empty((0, FEATURES))
    for seed, (step, number) in enumerate(steps):
        new, n = some_rows(number, seed), len(plain)
        if step == "dense":
            rows.append(new)
            plain = np.concatenate([plain, new])
        elif step == "csr":
            matrix = sp.csr_array(new)
            rows.append_entries(matrix.data, matrix.indices, matrix.indptr)
            plain = np.concatenate([plain, new])
        elif step == "cut":
            left = max(0, n - number)
            rows.move(NOBODY, NOBODY, left)
            plain = plain[:left]
        else:
            gone = np.sort(np.random.default_rng(seed).permutation(n)[:number])
            left = n - len(gone)
            hole = gone[gone < left]
            tail = np.setdiff1d(np.arange(left, n), gone)
            rows.move(tail, hole, left)
            plain[hole] = plain[tail]
            plain = plain[:left]
        assert (rows.n, rows.nnz) == (len(plain), np.count_nonzero(plain))
        np.testing.assert_array_equal(dense(rows), plain)
        assert np.count_nonzero(rows._value) == rows.nnz, "what is gone is overwritten"
        np.testing.assert_allclose(products(rows, 3), plain @ plain[:3].T, rtol=0.0, atol=1e-9)


def test_rows_that_come_and_go_stay_in_the_pool() -> None:
    """When its end is reached those left close up: no new memory, and nothing of those gone."""
    plain = some_rows(400, 0)
    rows = held(plain)
    pool, rng = rows._value, np.random.default_rng(1)
    for step in range(60):
        gone = np.sort(rng.permutation(400)[:25])
        hole, tail = gone[gone < 375], np.setdiff1d(np.arange(375, 400), gone)
        rows.move(tail, hole, 375)
        plain[hole] = plain[tail]
        plain[375:] = some_rows(25, step)
        rows.append(plain[375:])
        np.testing.assert_array_equal(dense(rows), plain)
        assert np.count_nonzero(rows._value) == rows.nnz
    assert rows._value is pool


@pytest.mark.parametrize("k", [1, 3, 20, 40, 70])
def test_products_of_whole_numbers_are_exact(k: int) -> None:
    """No sum of them rounds, in whatever order."""
    plain = np.full((k, 5000), 255.0)
    plain[::2] = np.random.default_rng(0).integers(-255, 256, plain[::2].shape)
    rows = held(plain)
    exact = plain.astype(np.int64) @ plain.astype(np.int64).T
    np.testing.assert_array_equal(products(rows, k), exact)
    np.testing.assert_array_equal(squared_norms(rows.view()), exact.diagonal())


def test_no_memory_for_a_larger_pool_leaves_the_rows_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = some_rows(40, 0)
    rows, zeros = held(plain), np.zeros

    def no_room(shape: object, dtype: object = np.float64) -> object:
        if dtype is np.int32:
            raise MemoryError
        return zeros(shape, dtype)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(np, "zeros", no_room)
        with pytest.raises(MemoryError):
            rows.append(some_rows(400, 1))
    rows.move(NOBODY, NOBODY, min(40, rows.n))
    assert len(rows._feature) == len(rows._value)
    np.testing.assert_array_equal(dense(rows), plain)
    rows.append(some_rows(400, 1))
    np.testing.assert_allclose(products(rows, 4)[:40, 3], plain @ plain[3], atol=1e-13)


def test_products_are_as_accurate_as_those_of_blas() -> None:
    """Both judged by sums to twice the precision, on rows as long as those of images."""
    rng = np.random.default_rng(0)
    plain = rng.random((200, 800)) * (rng.random((200, 800)) < 0.2)
    exact = np.asarray(plain, np.longdouble) @ np.asarray(plain, np.longdouble).T
    out = products(held(plain), 200)
    ours, blas = np.abs(out - exact).max(), np.abs(plain @ plain.T - exact).max()
    assert ours <= max(2.0 * blas, 4e-16 * exact.max())


def test_a_slice_of_a_csr_matrix() -> None:
    matrix = sp.csr_array(some_rows(30, 3))
    bounds = matrix.indptr[10:21]
    rows = SparseRows(FEATURES)
    rows.append_entries(matrix.data, matrix.indices, bounds)
    np.testing.assert_array_equal(dense(rows), matrix.toarray()[10:20])


def test_rows_without_features_and_no_rows() -> None:
    rows = SparseRows(0)
    rows.append(np.empty((3, 0)))
    assert products(rows, 2).tolist() == [[0.0, 0.0]] * 3
    rows = SparseRows(FEATURES)
    assert products(rows, 0).shape == (0, 0)
    assert rows.entries(NOBODY)[2].tolist() == [0]


def test_a_view_is_of_the_rows_asked_for() -> None:
    plain = some_rows(30, 0)
    rows = held(plain)
    view = rows.view(np.array([7, 3, 7]))
    assert (view.n, view.nnz) == (3, np.count_nonzero(plain[[7, 3, 7]]))
    np.testing.assert_array_equal(LINEAR.block(rows.view(), view), products(rows, 30)[:, [7, 3, 7]])
