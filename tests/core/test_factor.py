# SPDX-License-Identifier: BSD-3-Clause
"""A grown factor equals a rebuilt one, and both solve the margin system."""

from __future__ import annotations

import gc

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adiabat._core import thread_pool
from adiabat._core.factor import Factor

from oracles.problems import gram

Matrix = npt.NDArray[np.float64]

DEPENDENT = 1e-9
TOL = 1e-9


def kernel_of(kind: str) -> Matrix:
    """Kernels of forty rows: regular, of low rank with repeated rows, and with a zero row."""
    rng = np.random.default_rng(3)
    if kind == "regular":
        X = rng.standard_normal((40, 5))
        return gram("rbf", X, X, gamma=0.3)
    X = rng.integers(-2, 3, (40, 4)).astype(np.float64)
    X[20:30] = X[:10]
    X[7] = 0.0
    return gram("linear", X, X)


KERNELS = {kind: kernel_of(kind) for kind in ("regular", "low rank")}


def shift_of(K: Matrix) -> float:
    return float(K.diagonal().mean())


def grow(factor: Factor, K: Matrix, rows: list[int]) -> list[int]:
    """Offer rows in one block; returns those that joined, in the factor's order."""
    size = factor.size
    at = np.array(rows, dtype=np.int64)
    cross = np.ascontiguousarray(K[np.ix_(at, factor.rows)])
    factor.prepare(cross, np.ascontiguousarray(K[np.ix_(at, at)]))
    joined = factor.admit(np.arange(len(at)), at)
    assert joined.dtype == np.bool_ and joined.sum() == factor.size - size
    assert set(factor.rows[size:].tolist()) == set(at[joined].tolist())
    return [int(row) for row in factor.rows[size:]]


def rebuilt(K: Matrix, rows: npt.NDArray[np.int64], shift: float) -> Factor:
    factor = Factor(shift, DEPENDENT)
    part = np.ascontiguousarray(K[np.ix_(rows, rows)])
    assert factor.rebuild(part, rows).all()
    return factor


def assert_is_factor_of(factor: Factor, K: Matrix, rows: list[int]) -> None:
    """Rows, L, z and the solutions are those of K over these rows in this order."""
    np.testing.assert_array_equal(factor.rows, rows)
    assert factor.size == len(rows)
    M = K[np.ix_(rows, rows)]
    L = factor.lower()
    scale = float(np.abs(M).max(initial=0.0)) + factor.shift
    np.testing.assert_array_equal(L, np.tril(L))
    assert np.all(L.diagonal() > 0.0)
    np.testing.assert_allclose(L @ L.T, M + factor.shift, atol=1e-13 * scale * (1 + len(rows)))
    if rows:
        z = np.linalg.solve(L, np.ones(len(rows)))
        assert factor.border() == pytest.approx(z @ z, rel=TOL)
        weakest = L.diagonal().min() ** 2 / factor.shift
        assert factor.weakest() == pytest.approx(weakest, rel=TOL)
        assert_solves(factor, M)


def assert_solves(factor: Factor, M: Matrix) -> None:
    q = np.sin(np.arange(1.0, len(M) + 1.0))
    before = q.copy()
    for s in (0.0, 1.7):
        du, db = factor.solve(q, s)
        size = float(np.abs(M).max(initial=0.0)) * float(np.abs(du).sum()) + abs(db) + 1.0
        np.testing.assert_allclose(M @ du + db, q, atol=1e-11 * size, rtol=0)
        assert du.sum() == pytest.approx(s, abs=1e-11 * (1.0 + float(np.abs(du).sum())))
    np.testing.assert_array_equal(q, before)


# ---------------------------------------------------------------------------------------------
# Grown equals rebuilt

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.lists(st.integers(0, 39), min_size=1, max_size=8)),
        st.tuples(st.just("drop"), st.lists(st.integers(0, 39), min_size=1, max_size=4)),
        st.tuples(st.just("rebuild"), st.just([])),
    ),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("kind", KERNELS)
@given(operations=OPERATIONS)
@settings(max_examples=60)
def test_a_grown_factor_equals_a_rebuilt_one(
    kind: str, operations: list[tuple[str, list[int]]]
) -> None:
    K = KERNELS[kind]
    factor, rows = Factor(shift_of(K), DEPENDENT), list[int]()
    changes = 0
    for verb, numbers in operations:
        if verb == "grow":
            fresh = [row for row in dict.fromkeys(numbers) if row not in rows]
            came = grow(factor, K, fresh) if fresh else []
            rows += came
            changes += len(came)
        elif verb == "drop":
            for number in numbers:
                if rows:
                    position = number % len(rows)
                    factor.drop(position)
                    del rows[position]
                    changes += 1
        else:
            at = np.array(rows, dtype=np.int64)
            assert factor.rebuild(np.ascontiguousarray(K[np.ix_(at, at)]), at).all()
            changes = 0
        assert factor.changes == changes
        assert_is_factor_of(factor, K, rows)
    fresh_factor = rebuilt(K, np.array(rows, dtype=np.int64), factor.shift)
    np.testing.assert_allclose(factor.lower(), fresh_factor.lower(), atol=TOL)


@pytest.mark.parametrize("block", [1, 7, 40])
def test_blocks_of_any_size_give_the_same_factor_but_for_the_order(block: int) -> None:
    K = KERNELS["regular"]
    factor = Factor(shift_of(K), DEPENDENT)
    for start in range(0, 40, block):
        grow(factor, K, list(range(start, min(40, start + block))))
    assert_is_factor_of(factor, K, factor.rows.tolist())
    assert sorted(factor.rows.tolist()) == list(range(40))


def test_rows_are_dropped_down_to_none_and_come_again() -> None:
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(40), shift_of(K))
    rng, rows = np.random.default_rng(0), list(range(40))
    while rows:
        position = int(rng.integers(len(rows)))
        factor.drop(position)
        del rows[position]
        assert_is_factor_of(factor, K, rows)
    assert grow(factor, K, [5, 3]) in ([5, 3], [3, 5])


@pytest.mark.parametrize("left", ["first", "last", "every other", "random", "all"])
def test_rows_that_leave_together_leave_as_one_by_one(left: str) -> None:
    """In blocks of 32 columns; some whole blocks stay as they are, some lose every row."""
    rng = np.random.default_rng(3)
    points = rng.random((150, 6))
    K = np.exp(-4.0 * np.sum((points[:, None] - points) ** 2, axis=2))
    rows = rng.permutation(150)
    gone = {
        "first": np.arange(40),
        "last": np.arange(115, 150),
        "every other": np.arange(0, 150, 2),
        "random": np.sort(rng.choice(150, 33, replace=False)),
        "all": np.arange(150),
    }[left]
    together, one_by_one = rebuilt(K, rows, 1.0), rebuilt(K, rows, 1.0)
    together.drop_many(gone)
    for position in gone[::-1]:
        one_by_one.drop(position)
    assert together.changes == one_by_one.changes == len(gone)
    assert_is_factor_of(together, K, np.delete(rows, gone).tolist())
    np.testing.assert_allclose(together.lower(), one_by_one.lower(), atol=TOL)


# ---------------------------------------------------------------------------------------------
# What `prepare` says about rows that might join


@pytest.mark.rotates(2)
@pytest.mark.parametrize("size", [170, 430])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_large_blocks_come_and_go(seed: int, threads: int, size: int) -> None:
    """Sizes about those of blocks and lines; places stay vacant, and are closed up at times.

    More threads than cores: some are late, or away while others wait for their block.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size + 150, 8))
    K = gram("rbf", X, X, gamma=0.1)
    thread_pool.resize(threads)
    try:
        factor = rebuilt(K, np.arange(size + seed), shift_of(K))
        rows = list(range(size + seed))
        for _ in range(12):
            leaving = np.sort(
                rng.choice(len(rows), int(rng.choice([1, 2, 3, 5, 8, 9, 31, 40])), False)
            )
            factor.drop_many(leaving)
            rows = [row for place, row in enumerate(rows) if place not in leaving]
            others = np.setdiff1d(np.arange(len(X)), rows)
            coming = rng.choice(others, int(rng.choice([1, 2, 4, 7, 8, 17, 33])), replace=False)
            rows += grow(factor, K, coming.tolist())
            assert_is_factor_of(factor, K, rows)
            twin = Factor(1.0, 0.5)
            twin.copy_from(factor)
            assert_is_factor_of(twin, K, rows)
    finally:
        thread_pool.resize(1)


def test_what_has_left_leaves_nothing() -> None:
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(38), shift_of(K))
    factor.drop_many(np.array([2, 20, 37]))
    lower = np.linalg.cholesky(K[:38, :38] + factor.shift)
    kept = np.delete(np.arange(38), [2, 20, 37])
    gone = set(np.abs(lower[[2, 20, 37]]).ravel().tolist()) - {0.0}
    held = set(np.abs(factor.lower()).ravel().tolist())
    assert not held & gone
    assert_is_factor_of(factor, K, kept.tolist())


def test_schur_complement_is_the_curvature_of_the_papers() -> None:
    """CP01 (12): kappa = K_cc - [1 K_cM] [[0, 1'], [1, K_MM]]^-1 [1; K_Mc]."""
    K = KERNELS["regular"]
    margin, others = np.arange(12), np.arange(12, 20)
    factor = rebuilt(K, margin, shift_of(K))
    S, p = factor.prepare(
        np.ascontiguousarray(K[np.ix_(others, margin)]),
        np.ascontiguousarray(K[np.ix_(others, others)]),
    )
    bordered = np.ones((13, 13))
    bordered[0, 0], bordered[1:, 1:] = 0.0, K[:12, :12]
    edge = np.vstack([np.ones(8), K[np.ix_(margin, others)]])
    kappa = K[np.ix_(others, others)] - edge.T @ np.linalg.solve(bordered, edge)
    np.testing.assert_allclose(S + np.outer(p, p) / factor.border(), kappa, atol=1e-12)


def test_only_the_chosen_of_the_prepared_join() -> None:
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(6), shift_of(K))
    at = np.arange(10, 18)
    factor.prepare(
        np.ascontiguousarray(K[np.ix_(at, factor.rows)]), np.ascontiguousarray(K[np.ix_(at, at)])
    )
    chosen = np.array([6, 1, 3])
    assert factor.admit(chosen, at[chosen]).all()
    assert set(factor.rows.tolist()) == {*range(6), 16, 11, 13}
    assert_is_factor_of(factor, K, factor.rows.tolist())


def test_none_chosen_changes_nothing() -> None:
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(6), shift_of(K))
    before = factor.lower()
    factor.prepare(np.ascontiguousarray(K[6:8, :6]), np.ascontiguousarray(K[6:8, 6:8]))
    assert len(factor.admit(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))) == 0
    np.testing.assert_array_equal(factor.lower(), before)


# ---------------------------------------------------------------------------------------------
# What depends on the margin stays out


def test_a_repeated_row_is_refused() -> None:
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(5), shift_of(K))
    assert grow(factor, K, [2]) == []
    twice = np.array([10, 10])
    factor.prepare(
        np.ascontiguousarray(K[np.ix_(twice, factor.rows)]),
        np.ascontiguousarray(K[np.ix_(twice, twice)]),
    )
    assert factor.admit(np.arange(2), twice).tolist() == [True, False]
    assert_is_factor_of(factor, K, [*range(5), 10])


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("way", ["single", "block", "rebuild"])
def test_a_linear_kernel_of_d_features_admits_d_plus_one_rows(d: int, way: str) -> None:
    X = np.random.default_rng(d).standard_normal((25, d))
    K = gram("linear", X, X)
    factor = Factor(shift_of(K), DEPENDENT)
    if way == "single":
        for row in range(25):
            grow(factor, K, [row])
    elif way == "block":
        grow(factor, K, list(range(25)))
    else:
        joined = factor.rebuild(np.ascontiguousarray(K), np.arange(25))
        assert joined.sum() == factor.size
        assert set(np.flatnonzero(joined).tolist()) == set(factor.rows.tolist())
    assert factor.size == d + 1
    assert_is_factor_of(factor, K, factor.rows.tolist())


def test_the_scale_of_the_kernel_decides_nothing() -> None:
    X = np.random.default_rng(1).standard_normal((25, 3))
    for size in (1e-8, 1e8):
        K = size * gram("linear", X, X)
        factor = Factor(shift_of(K), DEPENDENT)
        grow(factor, K, list(range(25)))
        assert factor.size == 4


def test_a_row_with_zero_kernel() -> None:
    """With K = 0 the system is db = q, sum du = s; one such row joins, a second does not."""
    K = np.zeros((3, 3))
    factor = Factor(1.0, DEPENDENT)
    assert grow(factor, K, [1]) == [1]
    du, db = factor.solve(np.array([2.5]), -1.0)
    assert du.tolist() == [-1.0] and db == 2.5
    assert grow(factor, K, [0, 2]) == []


def test_a_zero_row_joins_others() -> None:
    K = KERNELS["low rank"]
    factor = Factor(shift_of(K), DEPENDENT)
    grow(factor, K, [0, 1, 2])
    assert grow(factor, K, [7]) == [7]
    assert_is_factor_of(factor, K, factor.rows.tolist())


def test_a_negative_pivot_is_told_from_a_dependent_row() -> None:
    K = KERNELS["regular"].copy()
    factor = rebuilt(K, np.arange(5), shift_of(K))
    grow(factor, K, [2, 8])
    assert -1e-12 < factor.least_pivot <= 0.0
    K[10, 0] = K[0, 10] = 4.0  # above the square root of k(x, x) k(z, z)
    assert grow(factor, K, [10, 11]) == [11]
    assert factor.least_pivot < -1.0
    grow(factor, K, [12])
    assert factor.least_pivot == 0.0


# ---------------------------------------------------------------------------------------------
# Housekeeping


def test_tidying_keeps_what_is_there() -> None:
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(20), shift_of(K))
    for position in (19, 7, 0):
        factor.drop(position)
    rows = factor.rows.tolist()
    factor.wipe_removed()
    assert_is_factor_of(factor, K, rows)
    rows += grow(factor, K, [30, 31])
    assert_is_factor_of(factor, K, rows)
    empty = Factor(1.0, DEPENDENT)
    empty.wipe_removed()
    assert empty.size == 0


def held_by(factor: Factor) -> list[np.ndarray]:
    """The arrays that a factor keeps: L, and room to work in."""
    return [held for held in gc.get_referents(factor) if isinstance(held, np.ndarray)]


def test_tidying_overwrites_what_is_left_of_rows() -> None:
    """Numbers of removed rows are those of data: none may stay behind."""
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(20), shift_of(K))
    (lower,) = (held for held in held_by(factor) if held.ndim == 2)
    room = max((held for held in held_by(factor) if held.ndim == 1), key=len)
    factor.drop_many(np.arange(3, 8))
    assert room.any()
    factor.rebuild(np.ascontiguousarray(K[:5, :5]), np.arange(5))
    assert lower[:, 5:].any()
    factor.wipe_removed()
    assert not lower[:, 5:].any() and not lower[5:].any() and not room.any()
    assert_is_factor_of(factor, K, [0, 1, 2, 3, 4])


def test_an_empty_factor() -> None:
    factor = Factor(1.0, DEPENDENT)
    assert factor.size == 0 and factor.lower().shape == (0, 0) and len(factor.rows) == 0
    assert len(factor.rebuild(np.empty((0, 0)), np.empty(0, dtype=np.int64))) == 0
    K = KERNELS["regular"]
    factor = rebuilt(K, np.arange(10), shift_of(K))
    factor.rebuild(np.empty((0, 0)), np.empty(0, dtype=np.int64))
    assert factor.size == 0 and factor.changes == 0
    grow(factor, K, [3, 1, 2])
    assert_is_factor_of(factor, K, factor.rows.tolist())


def test_room_grows_without_disturbing_what_is_there() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 8))
    K = gram("rbf", X, X, gamma=0.2)
    factor = Factor(1.0, DEPENDENT)
    for start in range(0, 150, 10):
        grow(factor, K, list(range(start, start + 10)))
        assert_is_factor_of(factor, K, factor.rows.tolist())
    assert factor.size == 150


def test_the_number_of_threads_changes_no_bit() -> None:
    """Nor does who comes first: every sum is added in one order."""
    n, more = 700, 60
    X = np.random.default_rng(0).standard_normal((n + more, 6))
    K = gram("rbf", X, X, gamma=0.3)
    right = np.random.default_rng(1).standard_normal(n)
    gone = np.sort(np.random.default_rng(2).permutation(n + more)[:70])
    seen = set()
    try:
        for threads in (1, 2, 3, 4, 4, 4, 4, 4):
            thread_pool.resize(threads)
            thread_pool.wake()
            factor = rebuilt(K, np.arange(n), 1.0)
            solved = factor.solve(right, 0.5)
            grow(factor, K, list(range(n, n + more)))
            factor.drop_many(gone)
            weights, b = factor.solve(np.ones(factor.size), 0.0)
            seen.add((solved[0].tobytes(), solved[1], weights.tobytes(), b))
    finally:
        thread_pool.resize(1)
    assert len(seen) == 1
