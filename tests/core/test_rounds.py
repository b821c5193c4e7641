# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a round, each against the same in plain NumPy."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from adiabat._core.factor import Factor
from adiabat._core.gram import Gram
from adiabat._core.rounds import Rounds

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

N, SIZE = 60, 20
EXACT = 1e-12
# What r of a row moves by, with k(x, x) = 1 and a shift of 1, when w and b do.
SCALE = float(np.sqrt(2.0))


class Rig:
    """Sixty rows on thirty samples, two rows each; MARGIN are rows 0, 2, ... of twenty samples."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((N // 2, 4))
        self.kernel = np.exp(-0.3 * np.sum((points[:, None] - points) ** 2, axis=2))
        self.at = np.repeat(np.arange(N // 2), 2)
        self.K = self.kernel[np.ix_(self.at, self.at)]
        self.gram = Gram()
        self.gram.append(N // 2, np.empty(0, dtype=np.int64), np.empty((N // 2, 0)))
        self.gram.claim(np.arange(N // 2), lambda rows: self.kernel[rows, : N // 2])
        self.margin = np.arange(0, 2 * SIZE, 2)
        self.factor = Factor(1.0, 1e-9)
        assert self.factor.rebuild(self.block(self.margin, self.margin), self.margin).all()
        self.u, self.r = rng.uniform(-0.5, 0.5, N), rng.standard_normal(N)
        self.lo, self.hi = -np.ones(N), np.ones(N)
        self.in_margin = np.zeros(N, dtype=bool)
        self.in_margin[self.margin] = True
        self.refactored = list[list[int]]()
        self.rounds = Rounds(self.samples(), N, 1e-14, self.refactor)
        self.bind(np.ones(N))

    def bind(self, root: FloatArray) -> None:
        given = self.u, self.lo, self.hi, self.r, self.at, self.in_margin
        self.rounds.bind(self.factor, *given, root)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return np.ascontiguousarray(self.K[np.ix_(rows, columns)])

    def samples(self) -> Any:
        """All samples have their columns."""

        def slots(positions: IntArray) -> IntArray:
            return pytest.fail("all have columns")

        return SimpleNamespace(gram=self.gram, in_lines=False, slots=slots)

    def refactor(self, rows: IntArray) -> IntArray:
        self.refactored.append(rows.tolist())
        assert self.factor.rebuild(self.block(rows, rows), rows).all()
        return rows[1:2]


def test_sums_are_those_of_exact_arithmetic() -> None:
    """One huge weight among small ones, where a plain sum loses all digits of these."""
    rig = Rig()
    rig.u[:] = 0.1
    rig.u[7], rig.u[8] = 5e16, -5e16
    exact = float(sum(map(Fraction, rig.u.tolist()), Fraction(0)))
    assert not rig.rounds.measure(1e4)
    assert rig.rounds.missing == 1e4 - exact
    assert rig.rounds.weight == pytest.approx(1e17)
    assert rig.rounds.measure(0.0)  # against 1e17, rounding


def test_a_weight_is_at_its_bound_where_nobody_sees_the_difference() -> None:
    """One heavy weight makes another look small; its own f or the sum may show it all the same."""
    rig = Rig()
    root, rig.factor = np.ones(N), Factor(1e30, 1e-9)
    root[1] = 1e16  # far, and next to it a heavy one
    rig.u[:], rig.lo[:], rig.hi[:] = 0.0, 0.0, 1e7
    rig.bind(root)
    rig.u[0] = 5e6
    rig.rounds.measure(5e6)
    rows = np.array([1])
    assert rig.rounds.snap_to_bounds(rows, np.array([1e-26]))[0] == 0.0
    rig.rounds.set_unseen(np.full(N, 1e-7))
    assert rig.rounds.snap_to_bounds(rows, np.array([1e-26]))[0] == 1e-26  # f moves by 1e6
    assert rig.rounds.snap_to_bounds(rows, np.array([1e-40]))[0] == 0.0
    rig.u[0], rig.u[1] = 0.0, 1e-30  # now the others are tiny, and the sum is of them
    rig.rounds.measure(0.0)
    assert rig.rounds.snap_to_bounds(np.array([2]), np.array([3e-30]))[0] == 3e-30


def test_rounds_come_back_to_where_they_began() -> None:
    rig = Rig()
    rig.u[0] = 2.0
    rig.rounds.enter_boxes()
    rig.rounds.delta_b = 0.25
    before = rig.u.copy(), rig.r.copy(), rig.rounds.delta.copy()
    assert before[2].any()
    rig.rounds.keep(0.5)
    rig.rounds.start()
    rig.rounds.measure(0.0)
    rig.rounds.survey(np.ones(N, dtype=bool), np.ones(N, dtype=bool), 0.0, False, False, True)
    assert not np.array_equal(rig.u, before[0]) and not np.array_equal(rig.r, before[1])
    assert rig.rounds.come_back() == 0.5 and rig.rounds.delta_b == 0.25
    for now, then in zip((rig.u, rig.r, rig.rounds.delta), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_boxes_are_entered_and_who_leaves_is_named() -> None:
    rig = Rig()
    rig.u[[0, 1, 3]] = [2.0, -3.0, 1.0]
    rig.lo[4] = rig.hi[4] = rig.u[4]
    r = rig.r.copy()
    rig.rounds.enter_boxes()
    assert rig.u[[0, 1, 3]].tolist() == [1.0, -1.0, 1.0]
    assert np.flatnonzero(rig.rounds.delta).tolist() == [0, 1]
    assert rig.rounds.delta[[0, 1]].tolist() == [-1.0, 2.0]
    stay = np.setdiff1d(rig.margin, [0, 4])
    assert rig.factor.rows.tolist() == stay.tolist() == np.flatnonzero(rig.in_margin).tolist()
    rig.rounds.start()
    moved = rig.block(stay, np.array([0, 1])) @ [-1.0, 2.0]
    np.testing.assert_allclose(rig.rounds.residual[stay], r[stay] + moved, atol=EXACT)


def test_a_face_without_bounds_solves_the_margin_system() -> None:
    rig = Rig()
    rig.lo[:], rig.hi[:] = -1e9, 1e9
    residual = rig.r[rig.margin].copy()
    rig.rounds.residual[rig.margin] = residual
    before = rig.u.copy()
    assert rig.rounds.face(0.5, False)
    du, db = rig.u - before, rig.rounds.b
    assert rig.factor.size == SIZE and not du[~rig.in_margin].any()
    np.testing.assert_array_equal(rig.rounds.delta, du)
    np.testing.assert_allclose(rig.K[rig.margin] @ du + db, -residual, atol=1e-9)
    assert rig.u.sum() == pytest.approx(0.5, abs=EXACT)
    assert not rig.rounds.residual.any()


@pytest.mark.parametrize("stops", [False, True])
def test_a_whole_face_ends_where_no_row_of_the_margin_is_outside(stops: bool) -> None:
    """Rows leave at their bounds until r is 0 on those that stay, and the sum is right.

    All rows by themselves, or all where the first one stops: then fewer of them leave at once.
    """
    rig = Rig()
    rig.rounds.residual[rig.margin] = rig.r[rig.margin]
    before, d = rig.u.copy(), float(rig.u.sum())
    assert rig.rounds.face(d, stops)
    left = rig.factor.rows
    assert 0 < len(left) < len(rig.margin) and set(left) < set(rig.margin)
    assert rig.in_margin.nonzero()[0].tolist() == sorted(left)
    gone = np.setdiff1d(rig.margin, left)
    assert np.all(np.abs(rig.u[gone]) == 1.0) and np.all(np.abs(rig.u[left]) < 1.0)
    np.testing.assert_allclose(rig.rounds.delta, rig.u - before, atol=EXACT)
    change = rig.K @ (rig.u - before) + rig.rounds.b
    np.testing.assert_allclose((rig.r + change)[left], 0.0, atol=1e-9)
    assert rig.u.sum() == pytest.approx(d, abs=EXACT)


def test_rows_that_stop_together_move_by_the_same_part() -> None:
    """With two rows left, the first to meet its bound stops the other where it is by then."""
    rig = Rig()
    margin = rig.margin
    rig.rounds.residual[margin] = rig.r[margin]
    before = rig.u.copy()
    du, _ = rig.factor.solve(-rig.r[margin], 0.0)
    with np.errstate(divide="ignore"):
        room = np.where(du > 0.0, 1.0 - before[margin], before[margin] + 1.0) / np.abs(du)
    first = int(np.argmin(room))
    assert room[first] < 1.0
    # all others have room enough
    others = np.delete(margin, first)
    rig.lo[others], rig.hi[others] = -1e9, 1e9
    assert rig.rounds.face(float(before.sum()), True)
    assert rig.u[margin[first]] == np.sign(du[first])
    assert rig.factor.rows.tolist() == others.tolist()


def test_the_factor_is_made_anew_where_few_rows_stay() -> None:
    rig = Rig()
    stay = rig.margin[:2].copy()
    rig.rounds.residual[stay] = 0.5
    rig.rounds.leave_margin(np.arange(2, len(rig.margin)))
    assert rig.refactored == [stay.tolist()]
    assert rig.in_margin.nonzero()[0].tolist() == sorted(stay)
    assert rig.rounds.residual[stay].tolist() == [0.5, 0.0]  # the second is said to depend


def test_a_look_brings_residuals_up_and_says_what_was_gained() -> None:
    rig = Rig()
    rng = np.random.default_rng(1)
    b, t = 0.3, rng.standard_normal(N)
    rig.r[:] = rig.K @ rig.u + b - t

    def objective() -> float:
        return float(0.5 * rig.u @ rig.K @ rig.u - t @ rig.u)

    before = objective()
    moved = np.array([0, 5, 41, 59])
    steps = rng.standard_normal(4)
    rig.u[moved] += steps
    rig.rounds.delta[moved] = steps
    fresh = rig.K @ rig.u + b + 0.2 - t
    rig.rounds.residual[rig.margin] = fresh[rig.margin]
    watched = np.arange(N) < 50
    near = watched.copy()
    rig.rounds.watch(watched, near, np.inf)
    rows = rig.rounds.rows
    assert watched[59] and near[59] and not watched[58]
    assert rows.tolist() == [i for i in range(N) if watched[i] and not rig.in_margin[i]]
    old = rig.r[rows].copy()
    rig.rounds.delta_b = 0.2
    gain = rig.rounds.look(rows)
    assert not rig.rounds.delta.any()
    change = (rig.r[rows] - old) / SCALE
    assert rig.rounds.rms_change == pytest.approx(np.sqrt(np.mean(change**2)))
    np.testing.assert_allclose(rig.r[watched], fresh[watched], atol=EXACT)
    assert not np.allclose(rig.r[~watched], fresh[~watched])
    # by the trapezoid rule on r, of which b + db / 2 belongs to the constraint
    assert gain == pytest.approx(objective() - before + (b + 0.1) * steps.sum())
    assert rig.rounds.look(rows) == 0.0


def test_rows_far_from_zero_are_not_looked_at_again() -> None:
    rig = Rig()
    rig.r[:] = np.linspace(-1.0, 1.0, N)
    rig.rounds.delta[0] = 0.5
    watched = np.arange(N) < 50
    near = watched.copy()
    rig.rounds.watch(watched, near, 0.4 / SCALE)
    rows = rig.rounds.rows
    expected = watched & (np.abs(rig.r) <= 0.4)
    expected[0] = True  # which moved
    np.testing.assert_array_equal(near, expected)
    assert rows.tolist() == np.flatnonzero(expected & ~rig.in_margin).tolist()
    assert watched.sum() == 50


def test_violators() -> None:
    rig = Rig()
    rig.u[:6] = [-1.0, -1.0, 1.0, 1.0, 0.0, 0.0]
    rig.r[:6] = [0.5, -0.5, 0.5, -0.5, 1e-12, -0.25]
    who, much = rig.rounds.violators(np.arange(6), np.full(N, 1e-9))
    assert who.tolist() == [1, 2, 5]
    np.testing.assert_allclose(much, np.array([0.5, 0.5, 0.25]) / SCALE, rtol=EXACT)


def curvature(rig: Rig, rows: IntArray) -> FloatArray:
    """H: the curvature when rows move and MARGIN answers."""
    bordered = np.zeros((SIZE + 1, SIZE + 1))
    bordered[0, 1:] = bordered[1:, 0] = 1.0
    bordered[1:, 1:] = rig.block(rig.margin, rig.margin)
    cross = np.vstack([np.ones(len(rows)), rig.block(rig.margin, rows)])
    H: FloatArray = rig.block(rows, rows) - cross.T @ np.linalg.solve(bordered, cross)
    return H


def test_violators_go_to_their_bounds_or_into_the_margin() -> None:
    """One wants more than its box has, one less; one is content."""
    rig = Rig()
    rows = np.array([41, 45, 49])
    H = curvature(rig, rows)
    rig.r[:] = 0.0
    rig.u[rows] = 0.0
    wanted = np.array([5.0, 0.5, 0.0])
    rig.lo[rig.margin], rig.hi[rig.margin] = -1e9, 1e9
    rig.lo[rows], rig.hi[rows] = -2.0, 2.0
    settled = np.array([2.0, 0.5])  # and what the second answers to the first at its bound
    rig.r[rows[:2]] = -(H @ wanted)[:2]
    settled[1] = -(rig.r[rows[1]] + H[1, 0] * 2.0) / H[1, 1]
    assert abs(settled[1]) < 2.0 and settled[1] != 0.0
    r, before = rig.r.copy(), rig.u.copy()
    rig.rounds.watch(np.isin(np.arange(N), rows), np.isin(np.arange(N), rows), np.inf)
    assert rig.rounds.exchange(np.full(N, 1e-9), 128, 1e-12)
    assert rig.rounds.least == 0.0  # nothing is indefinite
    assert rig.u[rows].tolist() == [2.0, 0.0, 0.0]  # the margin system places the second
    assert rig.factor.rows.tolist() == [*rig.margin, 45] and rig.in_margin[45]
    delta = np.zeros(N)
    delta[41] = 2.0
    np.testing.assert_array_equal(rig.rounds.delta, delta)
    joined = rig.factor.rows
    np.testing.assert_allclose(rig.rounds.residual[joined], (r + rig.K @ delta)[joined], atol=EXACT)
    # and with its answer r is 0 there
    assert rig.rounds.face(float(before.sum()), False)
    assert rig.u[45] == pytest.approx(settled[1], abs=1e-6)
    assert not rig.rounds.exchange(np.full(N, np.inf), 128, 1e-12)


def test_only_so_many_violators_move() -> None:
    rig = Rig()
    rig.r[:] = 0.0
    rig.r[[41, 43, 45]] = [-1.0, -3.0, -2.0]
    rows = np.arange(N) > 40
    rig.rounds.watch(rows, rows.copy(), np.inf)
    assert rig.rounds.exchange(np.full(N, 1e-9), 1, 1e-12)
    moved = set(np.flatnonzero(rig.rounds.delta)) | (set(rig.factor.rows) - set(rig.margin))
    assert moved == {43}


def test_a_row_that_depends_on_the_margin_trades_weight_with_it() -> None:
    """The second row of a sample in MARGIN: both move, f stays, and the first bound ends it."""
    rig = Rig()
    row, twin = 5, 4
    rig.r[:] = 0.0
    rig.r[row] = -1.0
    rig.u[row], rig.hi[row] = 0.0, 1.0
    rig.u[twin], rig.lo[twin] = 0.25, 0.0
    assert rig.at[row] == rig.at[twin]
    before = rig.u.copy()
    rig.rounds.watch(np.arange(N) == row, np.arange(N) == row, np.inf)
    assert rig.rounds.step_aside(np.full(N, 1e-9), 1e-6)
    assert rig.rounds.least <= 1e-9
    assert rig.u[row] == pytest.approx(0.25) and rig.u[twin] == 0.0
    assert twin not in rig.factor.rows and not rig.in_margin[twin]
    np.testing.assert_allclose(rig.K @ (rig.u - before), 0.0, atol=1e-8)
    np.testing.assert_allclose(rig.rounds.delta, rig.u - before, atol=EXACT)


def test_a_row_that_does_not_joins() -> None:
    rig = Rig()
    rig.r[:] = 0.0
    rig.r[45] = -1.0
    rig.rounds.watch(np.arange(N) == 45, np.arange(N) == 45, np.inf)
    before = rig.u.copy()
    assert rig.rounds.step_aside(np.full(N, 1e-9), 1e-12)
    assert rig.factor.rows.tolist() == [*rig.margin, 45] and rig.in_margin[45]
    assert rig.rounds.residual[45] == -1.0 and rig.u.tolist() == before.tolist()
    assert not rig.rounds.step_aside(np.full(N, np.inf), 1e-12)


def both_ways(accuracy: float, most: int = 40, widest: int = 8) -> tuple[Rig, Rig, bool]:
    """Rounds at once, and the same one by one; whether the former say that no row violates."""
    once, singly = Rig(), Rig()
    everyone, allowed = np.ones(N, dtype=bool), np.full(N, accuracy)
    for rig in (once, singly):
        rig.lo[:], rig.hi[:] = -1.5, 1.5
        rig.rounds.start()
        rig.rounds.measure(0.0)
    given = everyone.copy(), everyone.copy(), allowed, 0.0, False
    done = once.rounds.settle(*given, most, 4, widest, 1e-12)
    watched, near = everyone.copy(), everyone.copy()
    for turn in range(once.rounds.made):
        assert singly.rounds.survey(watched, near, 0.0, False, False, False)
        if turn < once.rounds.made - 1 or not once.rounds.is_open:
            width = min(widest, max(4, singly.factor.size // 2))
            moved = singly.rounds.exchange(allowed, width, 1e-12)
            assert moved or (done and turn == once.rounds.made - 1)
    return once, singly, done


@pytest.mark.parametrize("most", [1, 2, 40])
def test_rounds_settle_as_they_do_one_by_one(most: int) -> None:
    once, singly, done = both_ways(1e-9, most)
    np.testing.assert_array_equal(once.u, singly.u)
    np.testing.assert_array_equal(once.r, singly.r)
    np.testing.assert_array_equal(once.in_margin, singly.in_margin)
    assert once.rounds.b == singly.rounds.b
    assert done or once.rounds.is_open or once.rounds.made == most
    assert not done or len(once.rounds.violators(np.arange(N), np.full(N, 1e-9))[0]) == 0


def test_rounds_end_before_a_decision() -> None:
    """Nobody holds b: the violators of that round have not moved."""
    rig = Rig()
    rig.rounds.leave_margin(np.arange(SIZE))
    before = rig.u.copy()
    everyone = np.ones(N, dtype=bool)
    given = everyone.copy(), everyone.copy(), np.full(N, 1e-9), float(rig.u.sum()), False
    assert not rig.rounds.settle(*given, 40, 4, 8, 1e-12)
    assert rig.rounds.made == 1 and rig.rounds.is_open and not rig.rounds.anchored
    np.testing.assert_array_equal(rig.u, before)
    assert not rig.rounds.settle(*given, 0, 4, 8, 1e-12)
    assert rig.rounds.made == 0 and not rig.rounds.is_open
