# SPDX-License-Identifier: BSD-3-Clause
"""Exchange: to the new optimum by rounds in which many rows change sets at once.

A round (a primal-dual active set step, in blocks):

1. *face*: solve the margin system, so that r = 0 on MARGIN and sum u = d. Rows that leave their box
   stop at its edge and leave MARGIN; solve again until none does.
2. *look*: residuals of the watched rows; who violates?
3. *violators' own problem*: their Schur complement on the margin, H = S + p'p/z'z, and the box
   problem min 1/2 d'Hd + r'd over them. Who ends at a bound goes there, who ends between joins
   MARGIN, unless it depends on MARGIN: then it rests where it is, and r = 0 holds it there.

Without a margin the rows' own problem keeps sum u = d by itself (pairs, as in SMO).

Only *watched* rows are looked at; the judge looks at all of them afterwards and its findings are
watched next. That is how `fit` grows a subset, and why an update reads a small part of the kernel.

Rounds in blocks have no guarantee: on data of low rank they may cycle. After a few rises of the
objective, or too many rounds, the rest is done in *single file*: one violator at a time, each step
cut where the first row meets its bound. The objective then falls at every step, so that no set of
MARGIN rows comes back, whatever depends on whatever (the primal active set method).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from adiabat._core.box import coordinate_descent, pairwise_descent
from adiabat.engine.machine import AT_BOUND, Machine
from adiabat.engine.threads import in_slices
from adiabat.errors import IndefiniteKernelError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Curvature below this part of the diagonal counts as none; below minus NEGATIVE it is a fault.
FLAT = 1e-12
NEGATIVE = 1e-7
# Violators taken into one round, at least and at most; in between, half the margin.
FEWEST, MOST = 128, 1024
SWEEPS = 60
# Pair moves for each row of a group, and rounds in trouble before single file.
PAIRS = 20
REGROUPS = 30
# Steps in single file for each row, at most.
MOST_STEPS = 50
# Relative cost of a rebuilt factor (size^3) against one row rotated out of it (rows behind it^2).
REBUILD_COST = 0.0125
# Rises of the objective, and rounds in blocks, before the rest is done in single file.
PATIENCE = 3
BLOCK_ROUNDS = 40


class Stuck(Exception):
    """The bound on work was met; the state is to be restored."""


class Exchange:
    """Rounds on one machine."""

    def __init__(self, machine: Machine, tolerance: float) -> None:
        self.machine = machine
        self.tolerance = tolerance
        self.rounds = 0
        self.single_file = False
        self.fell_back = False
        self._delta = np.zeros(machine.n)  # change of u since the residuals were last brought up
        self._delta_b = 0.0
        self._residual = np.zeros(machine.n)  # r of MARGIN rows, kept up within a round
        self._pending = np.zeros(machine.n)  # what entering the boxes did to MARGIN rows
        self.accuracy = machine.accuracy(tolerance)
        self._rises = 0
        self._width = MOST
        self._enter_boxes()

    # -- the loop --------------------------------------------------------------------------------

    def settle(self, watched: npt.NDArray[np.bool_]) -> None:
        """Rounds until no watched row violates; raises `Stuck`. Rows that move are watched too."""
        machine = self.machine
        margin = machine.margin
        self._residual[margin] = machine.r[margin] + self._pending[margin]
        self._pending[:] = 0.0
        feasible = False
        trouble = 0
        self.single_file = False
        self._noise = self.accuracy = machine.accuracy(self.tolerance)
        for turn in range(BLOCK_ROUNDS + MOST_STEPS * (machine.n + 10)):
            self.rounds += 1
            troubled = turn >= BLOCK_ROUNDS or self._rises > PATIENCE
            trouble += troubled
            if trouble > REGROUPS:
                self.single_file = self.fell_back = True
            anchored, gain = True, 0.0
            if turn or not self._at_rest():
                anchored = self._face()
                watched |= self._delta != 0.0
                rows = np.flatnonzero(watched & ~machine.in_margin)
                gain = self._look(rows)
                # r carries the rounding of the largest weights since it was last computed afresh
                self._noise = max(self._noise, machine.accuracy(self.tolerance))
                self.accuracy = self._noise
            else:
                rows = np.flatnonzero(watched & ~machine.in_margin)
            if feasible and gain > 0.0:
                self._rises += 1
                self._width = max(1, self._width // 2)
            if anchored:
                feasible = True
                if troubled and not self.single_file:
                    step = self._regroup
                else:
                    step = self._exchange
                if not step(rows):
                    return
            elif not self._seed(rows):
                return
        raise Stuck

    def _at_rest(self) -> bool:
        """Whether the margin has nothing to answer for yet: new rows only came in with u = 0."""
        machine = self.machine
        margin = machine.margin
        return (
            len(margin) > 0
            and not self._delta.any()
            and float(np.abs(self._residual[margin]).max()) <= self.accuracy
            and abs(machine.d - float(machine.u.sum())) <= self._slack()
        )

    def _enter_boxes(self) -> None:
        """Bring every u into its box; rows moved by it leave MARGIN."""
        machine = self.machine
        outside = np.flatnonzero((machine.u < machine.lo) | (machine.u > machine.hi))
        pinned = np.flatnonzero(machine.in_margin & (machine.lo == machine.hi))
        leavers = np.union1d(outside, pinned)
        if len(leavers) == 0:
            return
        self._leave(leavers[machine.in_margin[leavers]])
        move = np.clip(machine.u[outside], machine.lo[outside], machine.hi[outside])
        move -= machine.u[outside]
        machine.u[outside] += move
        machine.u[outside] = np.clip(machine.u[outside], machine.lo[outside], machine.hi[outside])
        self._delta[outside] += move
        margin = machine.margin
        if len(margin):
            self._pending[margin] = machine.kernel(margin, outside) @ move

    # -- 1. the face -----------------------------------------------------------------------------

    def _face(self) -> bool:
        """Optimum on the face of the present margin; False if no margin is left."""
        machine = self.machine
        while len(machine.margin):
            rows = machine.margin.copy()
            missing = machine.d - float(machine.u.sum())
            feasible = abs(missing) <= self._slack()
            du, db = machine.factor.solve(-self._residual[rows], missing)
            lo, hi = machine.lo[rows], machine.hi[rows]
            part = 1.0
            if self.single_file and feasible:
                part = longest_step(machine.u[rows], du, lo, hi)
                du, db = part * du, part * db
            room = self._room(rows)
            u = machine.u[rows] + du
            low, high = u <= lo + room, u >= hi - room
            u = np.where(low, lo, np.where(high, hi, u))
            moved = u - machine.u[rows]
            machine.u[rows] = u
            machine.b += db
            self._delta[rows] += moved
            self._delta_b += db
            self._residual[rows] *= 1.0 - part
            out = low | high
            if not out.any():
                return True
            short = (moved - du)[out]
            leavers = rows[out]
            self._leave(leavers)
            stay = machine.margin
            if len(stay):
                self._residual[stay] += machine.kernel(stay, leavers) @ short
        return False

    def _room(self, rows: IntArray) -> FloatArray:
        """How near to a bound is at the bound: relative to the weights at hand, not to a huge C."""
        machine = self.machine
        largest = float(np.abs(machine.u).max(initial=0.0))
        return AT_BOUND * np.minimum(machine.hi[rows] - machine.lo[rows], largest)

    def _slack(self) -> float:
        """What sum u may differ from d by rounding."""
        machine = self.machine
        return 1e-13 * (abs(machine.d) + float(np.abs(machine.u).sum())) + 1e-300

    def _leave(self, rows: IntArray) -> None:
        """Take rows out of MARGIN: one by one by rotations, or by a new factor if they are many."""
        machine = self.machine
        if len(rows) == 0:
            return
        machine.in_margin[rows] = False
        members = machine.margin
        gone = np.flatnonzero(~machine.in_margin[members])
        size = len(members)
        behind = (size - gone).astype(np.float64)
        stay = members[machine.in_margin[members]].copy()
        if float(behind @ behind) > REBUILD_COST * float(len(stay)) ** 3 + 1e3:
            dependent = machine.refactor(stay)
            self._residual[dependent] = 0.0
            return
        for position in gone[::-1]:
            machine.factor.drop(position)

    # -- 2. the look -----------------------------------------------------------------------------

    def _look(self, rows: IntArray) -> float:
        """Bring the residuals of rows up to date; returns the change of the objective."""
        machine = self.machine
        moved = np.flatnonzero(self._delta)
        before = machine.r[moved]
        margin = machine.margin
        if len(moved) or self._delta_b != 0.0:
            change = np.empty(len(rows))
            coefficients, at = machine.coefficients(self._delta), machine.at[rows]
            gram = machine.samples.gram
            in_slices(
                lambda part: gram.multiply(coefficients, change[part], at[part]),
                len(rows),
                len(rows) * int(np.count_nonzero(coefficients)),
            )
            machine.r[rows] += change + self._delta_b
        machine.r[margin] = self._residual[margin]
        gain = 0.5 * float((before + machine.r[moved]) @ self._delta[moved])
        self._delta[moved] = 0.0
        self._delta_b = 0.0
        return gain

    # -- 3. the violators ------------------------------------------------------------------------

    def _exchange(self, rows: IntArray) -> bool:
        """Move violators among rows to a bound or into MARGIN; False if there are none."""
        machine = self.machine
        rows, violation = self._violators(rows)
        if len(rows) == 0:
            return False
        margin = machine.margin.copy()
        width = 1 if self.single_file else min(self._width, max(FEWEST, len(margin) // 2))
        rows = most_of(rows, violation, width)
        at = machine.at[rows]
        cross = machine.samples.between(at, machine.at[margin])
        own = machine.samples.among(at)
        S, p = machine.factor.prepare(cross, own)
        scale = own.diagonal() + machine.factor.shift
        self._refuse_negative(S.diagonal() / scale)
        H = S + np.outer(p, p / machine.factor.border())
        if self.single_file:
            self._step_aside(rows[0], margin, cross[0], float(S[0, 0] / scale[0]), float(H[0, 0]))
            return True
        lo, hi, u = machine.lo[rows], machine.hi[rows], machine.u[rows]
        d = coordinate_descent(
            H, machine.r[rows].copy(), lo - u, hi - u, SWEEPS, FLAT * float(scale.max())
        )
        new = u + d
        new = np.where(d <= lo - u, lo, np.where(d >= hi - u, hi, new))
        between = np.flatnonzero((new > lo) & (new < hi))
        joined = self._join(between, rows)
        shift = new - u
        shift[between[joined]] = 0.0  # the margin system places these
        machine.u[rows] += shift
        machine.u[rows] = np.where(
            (shift != 0.0) & ((new == lo) | (new == hi)), new, machine.u[rows]
        )
        self._delta[rows] += shift
        self._residual[margin] += cross.T @ shift
        inside = between[joined]
        self._residual[rows[inside]] = machine.r[rows[inside]] + own[inside] @ shift
        return True

    def _violators(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Those among rows that violate, and by how much."""
        machine = self.machine
        r, u = machine.r[rows], machine.u[rows]
        violation = np.maximum(
            np.where(u > machine.lo[rows], r, 0.0), np.where(u < machine.hi[rows], -r, 0.0)
        )
        found = np.flatnonzero(violation > self.accuracy)
        return rows[found], violation[found]

    def _step_aside(
        self, row: int, margin: IntArray, cross: FloatArray, pivot: float, curvature: float
    ) -> None:
        """One violator: into MARGIN, or, depending on it, along with it to the first bound.

        In the second case f hardly changes on the way (CP01's kappa is about 0): the row and the
        margin rows trade weight until one of them has none left to give.
        """
        machine = self.machine
        if pivot > machine.factor.dependent:
            self._join(np.zeros(1, dtype=np.int64), np.array([row]))
            self._residual[row] = machine.r[row]
            return
        r, u, lo, hi = machine.r[row], machine.u[row], machine.lo[row], machine.hi[row]
        sign = -1.0 if r > 0.0 else 1.0
        du, db = machine.factor.solve(-sign * cross, -sign)
        step = hi - u if sign > 0 else u - lo
        scale = machine.samples.diagonal[machine.at[row]] + machine.factor.shift
        if curvature > FLAT * scale:
            step = min(step, abs(r) / curvature)
        step *= longest_step(machine.u[margin], step * du, machine.lo[margin], machine.hi[margin])
        new = u + sign * step
        own_room = float(self._room(np.array([row]))[0])
        new = lo if new <= lo + own_room else hi if new >= hi - own_room else new
        machine.u[row] = new
        self._delta[row] += new - u
        u = machine.u[margin]
        low, high = machine.lo[margin], machine.hi[margin]
        room = self._room(margin)
        moved = u + step * du
        moved = np.where(moved <= low + room, low, np.where(moved >= high - room, high, moved))
        machine.u[margin] = moved
        self._delta[margin] += moved - u
        machine.b += step * db
        self._delta_b += step * db
        self._leave(margin[(moved == low) | (moved == high)])

    def _join(self, chosen: IntArray, rows: IntArray) -> npt.NDArray[np.bool_]:
        machine = self.machine
        joined: npt.NDArray[np.bool_] = machine.factor.admit(chosen, rows[chosen])
        self._refuse_negative(np.array([machine.factor.least_pivot]))
        machine.in_margin[rows[chosen[joined]]] = True
        machine.samples.slots(machine.at[rows[chosen[joined]]])
        return joined

    def _refuse_negative(self, curvature: FloatArray) -> None:
        if len(curvature) and curvature.min() < -NEGATIVE:
            raise IndefiniteKernelError(
                f"kernel={self.machine.samples.kernel.name!r} is not positive semidefinite on "
                f"this data: a direction of curvature {curvature.min():.3g} (relative to "
                "k(x, x)) was met, so the problem has no unique optimum. Use a positive "
                "semidefinite kernel."
            )

    # -- no margin yet ---------------------------------------------------------------------------

    def _seed(self, rows: IntArray) -> bool:
        """Find a margin: balance sum u, then move pairs of rows; False if none violates."""
        machine = self.machine
        missing = machine.d - float(machine.u.sum())
        if abs(missing) > self._slack():
            self._balance(missing)
            return True
        r = machine.r[rows]
        can_rise, can_fall = machine.u[rows] < machine.hi[rows], machine.u[rows] > machine.lo[rows]
        lowest = float(np.min(r[can_rise], initial=np.inf))
        highest = float(np.max(r[can_fall], initial=-np.inf))
        if not lowest < highest - 2.0 * self.accuracy:
            return False
        middle = 0.5 * (lowest + highest)
        risers = rows[can_rise & (r < middle)]
        fallers = rows[can_fall & (r >= middle)]
        half = MOST // 2
        rows = np.concatenate(
            [
                most_of(risers, -machine.r[risers], half),
                most_of(fallers, machine.r[fallers], half),
            ]
        )
        self._pair_up(rows, machine.r[rows].copy(), highest - lowest)
        return True

    def _regroup(self, rows: IntArray) -> bool:
        """Violators and the whole margin in pairs; False if none violates.

        For data of low rank, where the margin is small and most rows end at a bound.
        """
        machine = self.machine
        rows, violation = self._violators(rows)
        if len(rows) == 0:
            return False
        margin = machine.margin.copy()
        rows = most_of(rows, violation, MOST)
        gradient = np.concatenate([self._residual[margin], machine.r[rows]])
        machine.refactor(margin[:0])
        self._pair_up(np.concatenate([margin, rows]), gradient, float(violation.max()))
        return True

    def _pair_up(self, rows: IntArray, gradient: FloatArray, span: float) -> None:
        """The rows' own problem with sum u kept, by pairs; who ends between forms the margin."""
        machine = self.machine
        own = machine.samples.among(machine.at[rows])
        lo, hi, u = machine.lo[rows], machine.hi[rows], machine.u[rows]
        diagonal = float(own.diagonal().max(initial=0.0))
        pairs = own.diagonal()[:, None] + own.diagonal() - 2.0 * own
        self._refuse_negative(pairs.min(initial=0.0) / np.array([diagonal + machine.factor.shift]))
        d = pairwise_descent(
            own, gradient, lo - u, hi - u, PAIRS * len(rows) + 100,
            FLAT * max(diagonal, 1e-300), 1e-3 * span,
        )  # fmt: skip
        new = np.where(d <= lo - u, lo, np.where(d >= hi - u, hi, u + d))
        machine.u[rows] = new
        self._delta[rows] += new - u
        between = np.flatnonzero((new > lo) & (new < hi))
        machine.factor.prepare(np.empty((len(rows), 0)), own)
        joined = self._join(between, rows)
        inside = between[joined]
        self._residual[rows[inside]] = gradient[inside]

    def _balance(self, missing: float) -> None:
        """Bring sum u to d by the rows that mind it least."""
        machine = self.machine
        room = machine.hi - machine.u if missing > 0 else machine.u - machine.lo
        order = np.argsort(machine.r if missing > 0 else -machine.r, kind="stable")
        order = order[room[order] > 0.0]
        reach = np.cumsum(room[order])
        if len(order) == 0 or reach[-1] < abs(missing) * (1.0 - 1e-12):
            raise Stuck
        last = int(np.searchsorted(reach, abs(missing)))
        last = min(last, len(order) - 1)
        move = room[order[: last + 1]].copy()
        move[-1] = min(move[-1], abs(missing) - (reach[last - 1] if last else 0.0))
        rows = order[: last + 1]
        signed = move if missing > 0 else -move
        machine.u[rows] = np.where(
            move >= room[rows], (machine.hi if missing > 0 else machine.lo)[rows],
            machine.u[rows] + signed,
        )  # fmt: skip
        self._delta[rows] += signed


def longest_step(u: FloatArray, du: FloatArray, lo: FloatArray, hi: FloatArray) -> float:
    """Largest part of du, at most 1, that keeps u within its box."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(du > 0.0, (hi - u) / du, np.where(du < 0.0, (lo - u) / du, np.inf))
    return float(max(0.0, min(1.0, np.min(part, initial=1.0))))


def most_of(rows: IntArray, amount: FloatArray, most: int) -> IntArray:
    """The rows with the largest amounts, at most so many."""
    if len(rows) <= most:
        return rows
    return rows[np.argpartition(-amount, most - 1)[:most]]
