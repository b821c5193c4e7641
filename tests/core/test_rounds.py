# SPDX-License-Identifier: BSD-3-Clause
"""The steps of a round, each against the same in plain NumPy."""

from __future__ import annotations

from fractions import Fraction

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
        self.rounds = Rounds(self.gram, N, 1e-14)
        self.rounds.bind(
            self.factor, self.u, self.lo, self.hi, self.r, self.at, self.in_margin, np.ones(N),
            np.ones(N),
        )  # fmt: skip

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return np.ascontiguousarray(self.K[np.ix_(rows, columns)])


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
    root, scale = np.ones(N), np.full(N, 1e15)
    root[1] = scale[1] = 1e16  # far, and next to it a heavy one
    rig.u[:], rig.lo[:], rig.hi[:] = 0.0, 0.0, 1e7
    rig.rounds.bind(
        rig.factor, rig.u, rig.lo, rig.hi, rig.r, rig.at, rig.in_margin, root, scale
    )  # fmt: skip
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


def test_boxes_are_entered_and_who_leaves_is_named() -> None:
    rig = Rig()
    rig.u[[0, 1, 3]] = [2.0, -3.0, 1.0]
    rig.lo[4] = rig.hi[4] = rig.u[4]
    outside, moves, leavers = rig.rounds.enter_boxes()
    assert outside.tolist() == [0, 1] and moves.tolist() == [-1.0, 2.0]
    assert leavers.tolist() == [0, 4]
    assert rig.u[[0, 1, 3]].tolist() == [1.0, -1.0, 1.0]
    assert rig.rounds.delta[[0, 1]].tolist() == [-1.0, 2.0]


def test_a_face_without_bounds_solves_the_margin_system() -> None:
    rig = Rig()
    rig.lo[:], rig.hi[:] = -1e9, 1e9
    residual = rig.r[rig.margin].copy()
    rig.rounds.residual[rig.margin] = residual
    before = rig.u.copy()
    assert not rig.rounds.measure(0.5)
    gone, _ = rig.rounds.solve_face(False, False)
    du, db = rig.u - before, rig.rounds.b
    assert len(gone) == 0 and not du[~rig.in_margin].any()
    np.testing.assert_array_equal(rig.rounds.delta, du)
    np.testing.assert_allclose(rig.K[rig.margin] @ du + db, -residual, atol=1e-9)
    assert rig.u.sum() == pytest.approx(0.5, abs=EXACT)
    assert not rig.rounds.residual.any()


@pytest.mark.parametrize("cut", [False, True])
def test_a_face_stops_at_the_bounds(cut: bool) -> None:
    """All rows by themselves, or all where the first one stops."""
    rig = Rig()
    rig.rounds.residual[rig.margin] = rig.r[rig.margin]
    before = rig.u.copy()
    rig.rounds.measure(float(rig.u.sum()))
    du, db = rig.factor.solve(-rig.r[rig.margin], 0.0)
    wanted = before[rig.margin] + du
    gone, short = rig.rounds.solve_face(cut, False)
    moved_b = rig.rounds.b
    after = rig.u[rig.margin]
    assert np.all((after >= -1.0) & (after <= 1.0)) and len(gone) >= 1
    assert np.all(np.abs(after[gone]) == 1.0)
    if cut:
        part = moved_b / db
        assert 0.0 <= part < 1.0
        np.testing.assert_allclose(after, before[rig.margin] + part * du, atol=EXACT)
        np.testing.assert_allclose(
            rig.rounds.residual[rig.margin], (1.0 - part) * rig.r[rig.margin], atol=EXACT
        )
        return
    np.testing.assert_allclose(after, np.clip(wanted, -1.0, 1.0), atol=EXACT)
    np.testing.assert_allclose(short, (after - wanted)[gone], atol=EXACT)
    rig.rounds.answer(rig.margin[gone], short)
    expected = rig.block(rig.margin, rig.margin[gone]) @ short
    np.testing.assert_allclose(rig.rounds.residual[rig.margin], expected, atol=EXACT)


def test_a_whole_face_ends_where_no_row_of_the_margin_is_outside() -> None:
    """Rows leave at their bounds until r is 0 on those that stay, and the sum is right."""
    rig = Rig()
    rig.rounds.residual[rig.margin] = rig.r[rig.margin]
    before, d = rig.u.copy(), float(rig.u.sum())

    def refactor(rows: IntArray) -> IntArray:
        assert rig.factor.rebuild(rig.block(rows, rows), rows).all()
        return rows[:0]

    assert rig.rounds.face(d, False, refactor)
    left = rig.factor.rows
    assert 0 < len(left) < len(rig.margin) and set(left) < set(rig.margin)
    assert rig.in_margin.nonzero()[0].tolist() == sorted(left)
    gone = np.setdiff1d(rig.margin, left)
    assert np.all(np.abs(rig.u[gone]) == 1.0) and np.all(np.abs(rig.u[left]) < 1.0)
    change = rig.K @ (rig.u - before) + rig.rounds.b
    np.testing.assert_allclose((rig.r + change)[left], 0.0, atol=1e-9)
    assert rig.u.sum() == pytest.approx(d, abs=EXACT)


def test_the_factor_is_made_anew_where_few_rows_stay() -> None:
    rig = Rig()
    stay = rig.margin[:2].copy()
    asked = []
    rig.rounds.residual[stay] = 0.5

    def refactor(rows: IntArray) -> IntArray:
        asked.append(rows.tolist())
        return rows[1:]

    rig.rounds.leave_margin(np.arange(2, len(rig.margin)), refactor)
    assert asked == [stay.tolist()]
    assert rig.in_margin.nonzero()[0].tolist() == sorted(stay)
    assert rig.rounds.residual[stay].tolist() == [0.5, 0.0]  # the second depends on the first


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
    rows = rig.rounds.watch(watched, near, np.inf)
    assert watched[59] and near[59] and not watched[58]
    assert rows.tolist() == [i for i in range(N) if watched[i] and not rig.in_margin[i]]
    old = rig.r[rows].copy()
    rig.rounds.shift_b(0.2)
    gain = rig.rounds.look(rows, lambda samples: pytest.fail("all have columns"))
    assert not rig.rounds.delta.any()
    assert rig.rounds.rms_change == pytest.approx(np.sqrt(np.mean((rig.r[rows] - old) ** 2)))
    np.testing.assert_allclose(rig.r[watched], fresh[watched], atol=EXACT)
    assert not np.allclose(rig.r[~watched], fresh[~watched])
    # by the trapezoid rule on r, of which b + db / 2 belongs to the constraint
    assert gain == pytest.approx(objective() - before + (b + 0.1) * steps.sum())
    assert rig.rounds.look(rows, lambda samples: pytest.fail("nobody moved")) == 0.0


def test_rows_far_from_zero_are_not_looked_at_again() -> None:
    rig = Rig()
    rig.r[:] = np.linspace(-1.0, 1.0, N)
    rig.rounds.delta[0] = 0.5
    watched = np.arange(N) < 50
    near = watched.copy()
    rows = rig.rounds.watch(watched, near, 0.4)
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
    assert who.tolist() == [1, 2, 5] and much.tolist() == [0.5, 0.5, 0.25]


def test_rows_are_placed_at_bounds_between_them_and_in_the_margin() -> None:
    rig = Rig()
    rows = np.array([41, 43, 45])
    rig.rounds.residual[rig.margin] = rig.r[rig.margin]
    before, r = rig.u[rows].copy(), rig.r[rows].copy()
    own = rig.block(rows, rows)
    new, between = rig.rounds.propose(rows, 100.0 * np.eye(3), np.full(3, 1e-12))
    np.testing.assert_allclose(new, before - r / 100.0, atol=EXACT)
    assert between.tolist() == [0, 1, 2]
    new[0] = 1.0
    joined = np.array([2])
    cross = rig.block(rows, rig.margin)
    rig.rounds.place(rows, new, joined, rig.margin, cross, own)
    shift = np.where([True, True, False], new - before, 0.0)
    assert rig.u[rows].tolist() == [new[0], new[1], before[2]]
    np.testing.assert_allclose(rig.rounds.delta[rows], shift, atol=EXACT)
    np.testing.assert_allclose(
        rig.rounds.residual[rig.margin], rig.r[rig.margin] + shift @ cross, atol=EXACT
    )
    assert rig.rounds.residual[45] == pytest.approx(r[2] + own[2] @ shift)
