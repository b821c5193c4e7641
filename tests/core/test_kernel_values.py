# SPDX-License-Identifier: BSD-3-Clause
"""The evaluator of kernel values: the same bits in any company, and what it refuses.

How accurate values are is asked in tests/test_kernel_accuracy.py.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from adiabat._core import thread_pool
from adiabat._core.among import Among, AmongKnown, whole_matrix
from adiabat._core.kernel_values import LINEAR, Formula, Rows, multiply, squared_norms

FloatArray = npt.NDArray[np.float64]
NAMES = ("chi2", "laplacian", "linear", "poly", "rbf")
# On both sides of where sums begin another chain, and of what one vector or panel holds.
FEATURES = (0, 1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 64, 65, 127, 128, 129, 257, 300)
COUNTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 24, 25, 31, 32, 33, 48, 49, 65, 100)


def some_rows(n: int, p: int, density: float, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.random((n, p)) * (rng.random((n, p)) < density)


def by_entries(X: FloatArray) -> Rows:
    rows = sp.csr_array(X)
    length = np.diff(rows.indptr)
    features = rows.indices.astype(np.int32)
    return Rows.by_entries(rows.data, features, rows.indptr[:-1], length, X.shape[1])


def formula(name: str, p: int, width: float = 1.0) -> Formula:
    return Formula(name, width / max(1, p), 3, 0.5)


@given(
    name=st.sampled_from(NAMES),
    p=st.sampled_from(FEATURES),
    m=st.sampled_from(COUNTS),
    n=st.sampled_from(COUNTS),
    density=st.sampled_from([1.0, 0.3, 0.02]),
    far=st.sampled_from([0.0, 1.0, 30.0]),
    seed=st.integers(0, 5),
)
@settings(max_examples=250, deadline=None)
def test_an_entry_is_a_function_of_its_two_rows(name, p, m, n, density, far, seed):
    """Alone or in a block, as k(a, b) or k(b, a), dense or by entries."""
    A, B = some_rows(m, p, density, seed), some_rows(n, p, density, seed + 100)
    A[: m // 2] += far  # of some rows the squared norms cancel
    B[n // 2 :] += far
    B[: min(m, n)][::3] = A[: min(m, n)][::3]
    k = formula(name, p, 1.0 + far)
    block = k.block(Rows.dense(A), Rows.dense(B))
    assert block.shape == (m, n)
    for rows in (Rows.dense(A), by_entries(A)):
        for others in (Rows.dense(B), by_entries(B)):
            np.testing.assert_array_equal(k.block(rows, others), block)
            np.testing.assert_array_equal(k.block(others, rows), block.T)
    for i in range(0, m, 7):
        single = k.block(Rows.dense(A[i : i + 1]), Rows.dense(B))
        np.testing.assert_array_equal(single, block[i : i + 1])
    if m and n:
        some = np.array([m - 1, 0, m // 2])
        part = k.block(Rows.dense(A, some), Rows.dense(B, slice(n // 2, n)))
        np.testing.assert_array_equal(part, block[some][:, n // 2 :])
        one = k.block(Rows.dense(A[-1:]), by_entries(B[-1:]))
        assert one[0, 0] == block[-1, -1]
    if name not in ("linear", "poly"):
        assert np.all(block[np.arange(0, min(m, n), 3), np.arange(0, min(m, n), 3)] == 1.0)


@pytest.mark.parametrize("p", [33, 64, 129, 300])
@pytest.mark.parametrize("part", [0.01, 0.2, 0.6])
def test_rows_whose_norms_cancel_may_stand_anywhere(p: int, part: float) -> None:
    """Here and there a row is far and has its like: few entries of a block are summed again."""
    rng = np.random.default_rng(p)
    A, B = rng.random((70, p)), rng.random((50, p))
    for X in (A, B):
        X[rng.random(len(X)) < part] += 3.0
    A[5], B[40] = A[5] + 3.0, A[5] + 3.0 + 1e-6 * rng.random(p)
    k = formula("rbf", p, 2.0)
    block = k.block(Rows.dense(A), Rows.dense(B))
    alone = [[k.block(Rows.dense(A[[i]]), Rows.dense(B[[j]]))[0, 0] for j in range(50)]
             for i in range(70)]  # fmt: skip
    np.testing.assert_array_equal(block, alone)
    exact = np.exp(-2.0 / p * ((A[:, None] - B) ** 2).sum(axis=2))
    np.testing.assert_allclose(block, exact, rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [2000, 40_000])
def test_many_features_and_few_entries(name: str, p: int) -> None:
    """Then columns are kept in lists, in groups; dense rows have the same values."""
    A, B = some_rows(60, p, 0.004, 0), some_rows(300, p, 0.004, 1)
    A[3, :] = 0.0
    B[: len(A)][::5] = A[::5]
    A[7, 5], B[11, 5] = 1e6, 1e6 + 1.0
    k = formula(name, 1 if name == "rbf" else p)
    expected = k.block(Rows.dense(A), Rows.dense(B))
    np.testing.assert_array_equal(k.block(by_entries(A), by_entries(B)), expected)
    np.testing.assert_array_equal(k.block(by_entries(B), by_entries(A)), expected.T)
    np.testing.assert_array_equal(k.block(by_entries(A[7:8]), by_entries(B)), expected[7:8])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [3, 90, 500])
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_threads_change_nothing(name: str, p: int, density: float) -> None:
    A, B = some_rows(700, p, density, 0), some_rows(130, p, density, 1)
    make = Rows.dense if density == 1.0 else by_entries
    k = formula(name, p)
    expected = k.block(make(A), make(B))
    norms = squared_norms(make(A))
    for threads in (2, 3):
        thread_pool.resize(threads)
        try:
            thread_pool.wake()
            for _ in range(3):
                np.testing.assert_array_equal(k.block(make(A), make(B)), expected)
                np.testing.assert_array_equal(squared_norms(make(A)), norms)
        finally:
            thread_pool.resize(1)


@pytest.mark.parametrize("p", FEATURES)
@pytest.mark.parametrize("name", ["linear", "poly"])
def test_norms_and_diagonal_have_the_bits_of_the_block(p: int, name: str) -> None:
    X = some_rows(41, p, 0.5, p) - 0.3 * (name == "poly")
    for rows in (Rows.dense(X), by_entries(X)):
        norms = LINEAR.block(rows, rows).diagonal()
        np.testing.assert_array_equal(squared_norms(rows), norms)
        k = formula(name, p)
        np.testing.assert_array_equal(k.diagonal(rows), k.block(rows, rows).diagonal())
        rows.norms = norms
        np.testing.assert_array_equal(k.diagonal(rows), k.block(rows, rows).diagonal())


@pytest.mark.parametrize("k", [1, 2, 5, 12, 13, 50])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_written_where_they_are_asked_for(k: int, sparse: bool) -> None:
    """Each at an address of its own, its entries some numbers apart; nothing else is touched."""
    A, B = some_rows(70, 40, 0.2, 0), some_rows(k, 40, 0.2, 1)
    make = by_entries if sparse else Rows.dense
    rbf = formula("rbf", 40)
    out = np.full((70, 128), np.nan)
    places = np.random.default_rng(k).permutation(128)[:k]
    rbf.write(make(A), make(B), (out.ctypes.data + 8 * places).astype(np.uintp), 128)
    np.testing.assert_array_equal(out[:, places], rbf.block(Rows.dense(A), Rows.dense(B)))
    assert np.isnan(np.delete(out, places, axis=1)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [3, 40])
def test_rows_of_the_matrix_among_some(name: str, p: int) -> None:
    """From dense rows, rows at places and entries, with norms and without."""
    X = some_rows(90, p, 0.3, 0)
    own, among = formula(name, p), np.random.default_rng(0).permutation(90)[:70]
    K = own.block(Rows.dense(X[among]), Rows.dense(X[among]))
    given = Rows.dense(X, among)
    given.norms = squared_norms(Rows.dense(X))[among]
    for rows in (Rows.dense(X[among]), given, by_entries(X[among])):
        values = Among(own, rows)
        for places in ([4], [69, 0, 4], [7, 7], [], list(range(70))):
            found = values.values(np.array(places, dtype=np.int64))
            np.testing.assert_array_equal(found, K[places])
        for places in ([70], [-1, 3]):
            with pytest.raises(IndexError, match="of 70"):
                values.values(np.array(places))
    assert Among(own, Rows.dense(X[:0])).values(np.empty(0, dtype=np.int64)).shape == (0, 0)


@given(
    m=st.sampled_from(COUNTS),
    n=st.integers(0, 300),
    k=st.sampled_from((1, 2, 3, 4, 5, 11, 45)),
    seed=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_a_weighted_sum_does_not_depend_on_its_company(m, n, k, seed):
    rng = np.random.default_rng(seed)
    A, W = rng.standard_normal((m, n)), rng.standard_normal((n, k))
    product = multiply(A, W)
    np.testing.assert_allclose(product, A @ W, atol=1e-13)
    for i in range(0, m, 5):
        np.testing.assert_array_equal(multiply(A[i : i + 1], W), product[i : i + 1])
    np.testing.assert_array_equal(multiply(A, W[:, 0]), product[:, 0])
    np.testing.assert_array_equal(multiply(np.asfortranarray(A), W[:, ::-1]), product[:, ::-1])


# what is refused


def test_rows_that_do_not_fit_together_are_refused() -> None:
    rows = Rows.dense(np.ones((3, 4)))
    with pytest.raises(ValueError, match="features and columns of"):
        LINEAR.block(rows, Rows.dense(np.ones((3, 5))))
    with pytest.raises(ValueError, match="2 addresses for 3 columns"):
        LINEAR.write(rows, rows, np.zeros(2, dtype=np.uintp), 1)
    rows.norms = np.ones(2)
    with pytest.raises(ValueError, match="2 norms for 3 rows"):
        Formula("poly", 1.0).block(rows, rows)


@pytest.mark.parametrize("name", ["linear", "poly"])
@pytest.mark.parametrize("make", [Rows.dense, by_entries])
def test_values_that_are_not_finite_are_refused(name: str, make: object) -> None:
    X = np.ones((40, 50))
    X[37, 11] = 1e200 if name == "linear" else 1e90
    k = Formula(name, 1.0)
    assert np.isfinite(k.block(make(X[:37]), make(X))).all()
    for use in (lambda: k.block(make(X), make(X)), lambda: k.diagonal(make(X))):
        with pytest.raises(ValueError, match=f"kernel={name} .*scale the features"):
            use()


def test_rows_that_are_not_there_are_refused() -> None:
    X = some_rows(5, 3, 1.0, 0)
    for positions in (np.array([0, 5]), np.array([-1]), [7]):
        with pytest.raises(IndexError):
            Rows.dense(X, positions)
    assert Rows.dense(X, slice(1, 3)).n == 2 and Rows.dense(X, np.array([4, 4, 0])).n == 3


@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "linear"])
@pytest.mark.parametrize("n", [1, 2, 63, 192, 500])
@pytest.mark.parametrize("n_features", [2, 50])
def test_a_whole_matrix_has_the_same_bits(name: str, n: int, n_features: int) -> None:
    X = np.random.default_rng(n).standard_normal((n, n_features))
    own, rows = Formula(name, 0.3, 3, 1.0), Rows.dense(X)
    expected = own.block(rows, rows)
    np.testing.assert_array_equal(whole_matrix(own, rows), expected)
    np.testing.assert_array_equal(Among(own, rows).values(np.arange(n)), expected)


def test_a_whole_matrix_of_rows_by_entries() -> None:
    X = np.random.default_rng(0).integers(0, 3, (300, 40)) * 1.0
    A = sp.csr_array(X)
    rows = Rows.by_entries(
        A.data, A.indices.astype(np.int32), A.indptr[:-1], np.diff(A.indptr), A.shape[1]
    )
    own = Formula("rbf", 0.3)
    np.testing.assert_array_equal(whole_matrix(own, rows), own.block(rows, rows))


def test_some_of_a_matrix_that_is_known() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((40, 40))
    some, one = np.array([3, 4, 5, 20, 21, 7]), np.array([39])
    for places in (some, np.arange(40), one, rng.permutation(40)):
        values = AmongKnown(matrix, places)
        wanted = np.array([len(places) - 1, 0])
        np.testing.assert_array_equal(values.values(wanted), matrix[np.ix_(places[wanted], places)])
    nowhere = np.empty(0, dtype=np.int64)
    assert AmongKnown(matrix, nowhere).values(nowhere).size == 0
    for outside in (-1, 40):
        with pytest.raises(IndexError):
            AmongKnown(matrix, np.array([outside]))
