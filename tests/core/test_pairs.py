# SPDX-License-Identifier: BSD-3-Clause
"""Descent by pairs: sum d = 0 besides the box, and kernel values asked for one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from adiabat._core.among import Among
from adiabat._core.kernel_values import Formula, Rows
from adiabat._core.pairs import Pairs, pairwise_descent
from core.test_box import FLAT, SHAPES, Box, Vector, box, value

from oracles import batch_qp


def widest_pair(problem: Box, d: Vector) -> float:
    """max over rows that can fall of g, less min over rows that can rise: 0 at the optimum."""
    g = problem.g + problem.H @ d
    falls = np.max(g[d > problem.lo], initial=-np.inf)
    rises = np.min(g[d < problem.hi], initial=np.inf)
    return max(0.0, float(falls - rises))


@pytest.mark.parametrize("n, rank", SHAPES)
def test_pairwise_descent_ends_at_the_optimum(n: int, rank: int) -> None:
    for seed in range(5):
        problem = box(n, rank, seed)
        d = pairwise_descent(*problem, 200_000, FLAT, 1e-7)
        assert np.all(d >= problem.lo) and np.all(d <= problem.hi)
        assert abs(d.sum()) <= 1e-12
        assert widest_pair(problem, d) <= 1.01e-7
        exact = batch_qp.solve(problem.H, -problem.g, problem.lo, problem.hi, 0.0)
        assert value(problem, d) == pytest.approx(exact.objective, abs=1e-5)


def test_every_pair_lowers_the_objective() -> None:
    problem, last = box(30, 12), 0.0
    for steps in range(1, 40):
        d = pairwise_descent(problem.H, problem.g, *problem[2:], steps, FLAT, 1e-9)
        assert abs(d.sum()) <= 1e-13 * steps
        assert value(problem, d) <= last + 1e-12
        last = value(problem, d)


def test_a_pair_of_equal_rows_goes_to_the_nearer_bound() -> None:
    """Two equal rows have no curvature between them: one of them stops the other."""
    H, g = np.ones((2, 2)), np.array([1.0, -1.0])
    lo, hi = np.array([-0.25, 0.0]), np.array([0.0, 1.0])
    d = pairwise_descent(H, g, lo, hi, 10, FLAT, 1e-9)
    assert d.tolist() == [-0.25, 0.25]
    lo, hi = np.array([-1.0, 0.0]), np.array([0.0, 0.3])
    d = pairwise_descent(H, g, lo, hi, 10, FLAT, 1e-9)
    assert d.tolist() == [-0.3, 0.3]


def test_a_pair_lands_on_its_bound_exactly() -> None:
    """The way to the bound, added to where a row was, would round beside it."""
    u, bound = -0.54, 1.86
    assert u + (bound - u) > bound

    def write(places: npt.NDArray[np.int64], out: Vector) -> None:
        out[:, :2] = 1.0

    for up, ends in ((0, [bound, -9.0]), (1, [9.0, -bound])):
        starts = np.array([u, 5.0] if up == 0 else [-5.0, -u])
        lo, hi = np.array([-9.0, -9.0]), np.array([9.0, 9.0])
        (hi if up == 0 else lo)[up] = ends[up]
        pairs = Pairs(np.array([-1.0, 1.0]), starts, lo, hi, np.ones(2), FLAT, 1 << 20)
        pairs.descend(1e-9, 1, write)
        assert pairs.u[up] == ends[up]


def test_differences_within_the_tolerance_move_nobody() -> None:
    H, g = np.eye(3), np.array([0.0, 0.5, 1.0])
    lo, hi = -np.ones(3), np.ones(3)
    assert not pairwise_descent(H, g, lo, hi, 50, FLAT, 1.0).any()
    assert pairwise_descent(H, g, lo, hi, 50, FLAT, 0.9).any()


def test_one_row_cannot_move_alone() -> None:
    d = pairwise_descent(np.eye(1), np.array([-4.0]), -np.ones(1), np.ones(1), 9, FLAT, 1e-9)
    assert d.tolist() == [0.0]


def test_rows_at_their_bounds_take_no_part() -> None:
    H, g = np.eye(3), np.array([-9.0, 9.0, 1.0])
    lo, hi = np.array([-1.0, 0.0, -1.0]), np.array([0.0, 1.0, 1.0])
    assert not pairwise_descent(H, g, lo, hi, 50, FLAT, 1e-9).any()


def test_nothing_to_move() -> None:
    none = np.empty(0)
    assert len(pairwise_descent(np.empty((0, 0)), none, none, none, 5, FLAT, 1e-9)) == 0


class Counted:
    """Kernel values of a problem, and which rows were asked for."""

    def __init__(self, H: npt.NDArray[np.float64]) -> None:
        self.H = H
        self.asked: list[int] = []
        self.calls = 0

    def __call__(self, places: npt.NDArray[np.int64], out: npt.NDArray[np.float64]) -> None:
        self.asked += places.tolist()
        self.calls += 1
        out[:, : len(self.H)] = self.H[places]


def many(n: int = 1_800) -> Box:
    """More rows than are asked for at once, most of which never move."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, 20))
    g = np.where(rng.random(n) < 0.1, rng.standard_normal(n), 0.0)
    return Box(np.ascontiguousarray(A @ A.T), g, -np.full(n, 0.05), np.full(n, 0.05))


def solved(problem: Box, room: int, ahead: int) -> tuple[Vector, Counted]:
    values = Counted(problem.H)
    zero, own = np.zeros(len(problem.g)), problem.H.diagonal()
    pairs = Pairs(problem.g, zero, problem.lo, problem.hi, own, FLAT, room, ahead)
    pairs.descend(1e-4, 10_000_000, values)
    assert pairs.middle == pytest.approx(np.median(problem.g + problem.H @ pairs.u), abs=1.0)
    return pairs.u.copy(), values


def test_values_are_asked_for_when_they_are_wanted() -> None:
    problem = many()
    u, values = solved(problem, problem.H.nbytes, 0)
    assert widest_pair(problem, u) <= 1.01e-4
    assert len(set(values.asked)) == len(values.asked) == values.calls < len(problem.g)
    assert set(np.flatnonzero(u)) <= set(values.asked)


@pytest.mark.parametrize("ahead", [0, 3, 40])
@pytest.mark.parametrize("few", [0, 700])
def test_values_of_a_formula_are_as_good_as_those_written(ahead: int, few: int) -> None:
    rng = np.random.default_rng(0)
    X, g = rng.standard_normal((650, 3)), rng.standard_normal(650)
    rbf, rows = Formula("rbf", 0.5), Rows.dense(X)
    H, zero, most = rbf.block(rows, rows), np.zeros(650), np.full(650, 0.3)
    found = []
    for values in (Among(rbf, rows), Counted(H)):
        pairs = Pairs(g, zero, -most, most, np.ones(650), FLAT, H.nbytes, ahead, few)
        pairs.descend(1e-6, 1_000_000, values)
        found.append(pairs.u.copy())
    np.testing.assert_array_equal(*found)
    assert widest_pair(Box(H, g, -most, most), found[0]) <= 1.01e-6


def test_rows_ahead_are_asked_for_together_and_change_nothing() -> None:
    problem = many()
    u, one_by_one = solved(problem, problem.H.nbytes, 0)
    v, together = solved(problem, problem.H.nbytes, 8)
    np.testing.assert_array_equal(u, v)
    assert together.calls < one_by_one.calls
    assert len(set(together.asked)) == len(together.asked)


def test_little_room_changes_nothing_but_how_often_they_are_asked() -> None:
    problem = many()
    u, plenty = solved(problem, problem.H.nbytes, 0)
    v, little = solved(problem, 40 * 8 * len(problem.g), 0)
    np.testing.assert_array_equal(u, v)
    assert little.calls > plenty.calls
    w, least = solved(problem, 0, 0)
    np.testing.assert_array_equal(u, w)
    assert least.calls > little.calls


def test_rows_that_are_left_out_for_a_while_end_where_they_belong() -> None:
    """Most rows are far from the others, some of them come near on the way."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((900, 6))
    g = np.where(rng.random(900) < 0.8, 40.0, 1.0) * rng.standard_normal(900)
    problem = Box(np.ascontiguousarray(A @ A.T), g, -np.full(900, 0.02), np.full(900, 0.02))
    for room in (problem.H.nbytes, 0):
        u, _ = solved(problem, room, 0)
        assert abs(u.sum()) <= 1e-12
        assert widest_pair(problem, u) <= 1.01e-4
    exact = batch_qp.solve(problem.H, -problem.g, problem.lo, problem.hi, 0.0)
    assert value(problem, u) == pytest.approx(exact.objective, rel=1e-6)


def test_values_that_are_there_are_written_where_columns_stand() -> None:
    problem = many(300)
    zero, own = np.zeros(300), problem.H.diagonal()
    pairs = Pairs(problem.g, zero, problem.lo, problem.hi, own, FLAT, problem.H.nbytes, 0)
    pairs.descend(1e-4, 1_000_000, Counted(problem.H))
    given, order = np.arange(300)[pairs.given(np.arange(300))], np.arange(299, 99, -1)
    panel = np.zeros((200, len(given) + 2))  # a column beside them on either side
    tops = panel.ctypes.data + 8 * np.arange(1, len(given) + 1, dtype=np.uintp)
    pairs.write(given, order, tops, panel.shape[1])
    np.testing.assert_array_equal(panel[:, 1:-1], problem.H[np.ix_(order, given)])
    assert not panel[:, [0, -1]].any()
    pairs.write(given, order[:0], tops, panel.shape[1])
    with pytest.raises(IndexError, match="there is no row 300 of 300"):
        pairs.write(given, np.array([300]), tops, panel.shape[1])
    with pytest.raises(ValueError, match="addresses for"):
        pairs.write(given, order, tops[1:], panel.shape[1])
    lacking = np.flatnonzero(~pairs.given(np.arange(300)))[:1]
    with pytest.raises(ValueError, match="has no kernel values"):
        pairs.write(lacking, order, tops[:1], panel.shape[1])


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("n", [30, 700])
def test_a_row_with_a_jump_is_two_rows(n: int, epsilon: float) -> None:
    """Regression: the rows of a sample, one on either side of 0, as one row whose r jumps."""
    one = many(n)
    twice = np.concatenate([np.arange(n), np.arange(n)])
    zero = np.zeros(n)
    problem = Box(
        np.ascontiguousarray(one.H[np.ix_(twice, twice)]),
        np.append(one.g - epsilon, one.g + epsilon),
        np.append(one.lo, zero), np.append(zero, one.hi),
    )  # fmt: skip
    own, jump = one.H.diagonal().copy(), np.full(n, 2.0 * epsilon)
    start = np.linspace(-0.05, 0.05, n)
    g = one.g + one.H @ start - epsilon
    pairs = Pairs(g, start, one.lo, one.hi, own, FLAT, one.H.nbytes, 0, 0, jump)
    pairs.descend(1e-6, 10_000_000, Counted(one.H))
    u = np.append(np.minimum(pairs.u, 0.0), np.maximum(pairs.u, 0.0))
    assert abs(u.sum() - start.sum()) <= 1e-12
    assert widest_pair(problem, u) <= 1.01e-6


def test_few_rows_are_asked_for_at_once() -> None:
    problem = box(60, 8)
    values = Counted(problem.H)
    pairs = Pairs(*_parts(problem), FLAT, 1 << 20, 0, 60)
    pairs.descend(1e-6, 100_000, values)
    assert values.calls == 1 and values.asked == list(range(60))


def test_a_failed_answer_is_handed_on() -> None:
    problem = box(60, 8)
    pairs = Pairs(*_parts(problem), FLAT, 1 << 20)

    def fail(places: npt.NDArray[np.int64], out: npt.NDArray[np.float64]) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        pairs.descend(1e-6, 100_000, fail)
    values = Counted(problem.H)
    pairs.descend(1e-6, 100_000, values)
    assert widest_pair(problem, pairs.u) <= 1.01e-6


def _parts(problem: Box) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    zero = np.zeros(len(problem.g))
    return problem.g, zero, problem.lo, problem.hi, problem.H.diagonal().copy()


def nearly_dependent(n: int = 120, most: float = 1e4) -> Box:
    """Rows on a line under a wide kernel, some labels wrong: pairs alone take 100,000 steps."""
    x, wrong = np.linspace(-1.0, 1.0, n), np.random.default_rng(0).random(n) < 0.1
    H = np.exp(-8.0 * (x[:, None] - x) ** 2)
    g = np.where((np.sin(9.0 * x) > 0.0) ^ wrong, -1.0, 1.0)
    return Box(H, g, np.where(g < 0.0, 0.0, -most), np.where(g < 0.0, most, 0.0))


@pytest.mark.parametrize("most", [1.0, 100.0, 1e4])
def test_rows_that_nearly_depend_move_together(most: float) -> None:
    problem = nearly_dependent(most=most)
    d = pairwise_descent(*problem, 5_000, FLAT, 1e-5)
    assert np.all(d >= problem.lo) and np.all(d <= problem.hi)
    assert abs(d.sum()) <= 1e-12 * np.abs(d).sum()
    assert widest_pair(problem, d) <= 1.01e-5
    exact = batch_qp.solve(problem.H, -problem.g, problem.lo, problem.hi, 0.0)
    assert value(problem, d) == pytest.approx(exact.objective, rel=1e-9)


def test_a_step_on_the_face_lowers_the_objective_and_lands_on_ends_exactly() -> None:
    problem, last = nearly_dependent(), 0.0
    for steps in range(16, 1_600, 16):
        d = pairwise_descent(*problem, steps, FLAT, 1e-9)
        size = np.abs(d).sum()
        assert abs(d.sum()) <= 1e-13 * size * steps
        assert value(problem, d) <= last + 1e-12 * size
        last = value(problem, d)
        inside = (d > problem.lo) & (d < problem.hi)
        assert np.all(np.minimum(d - problem.lo, problem.hi - d)[inside] > 1e-14 * 1e4)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1])
def test_a_step_on_the_face_ends_at_a_jump(epsilon: float) -> None:
    """Regression on a line: rows that pass 0 on the way stop there, where r jumps."""
    n = 90
    x = np.linspace(-3.0, 3.0, n)
    H, t = np.exp(-((x[:, None] - x) ** 2)), np.sinc(x)
    most, zero, jump = np.full(n, 50.0), np.zeros(n), np.full(n, 2.0 * epsilon)
    pairs = Pairs(-t - epsilon, zero, -most, most, np.ones(n), FLAT, H.nbytes, 0, n, jump)
    pairs.descend(1e-6, 30_000, Counted(H))
    rows = np.concatenate([np.arange(n), np.arange(n)])
    problem = Box(
        np.ascontiguousarray(H[np.ix_(rows, rows)]), np.append(-t - epsilon, -t + epsilon),
        np.append(-most, zero), np.append(zero, most),
    )  # fmt: skip
    d = np.append(np.minimum(pairs.u, 0.0), np.maximum(pairs.u, 0.0))
    assert widest_pair(problem, d) <= 1.01e-6


def test_rows_on_the_face_without_values_are_asked_for() -> None:
    """Where there is little room, and where there is none, the answer is as good."""
    problem = nearly_dependent(400)
    for room in (problem.H.nbytes, 60 * 8 * 400, 0):
        u, values = solved(problem, room, 0)
        assert widest_pair(problem, u) <= 1.01e-4
        assert len(values.asked) >= len(set(values.asked))
