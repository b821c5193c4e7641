# SPDX-License-Identifier: BSD-3-Clause
"""Path: to the new optimum along the line on which the whole problem moves.

From the last optimum everything that changed moves at once, in one straight motion:

- rows ENTERING (violators) are driven towards their far bound, rows LEAVING (outside their box,
  as those are that go) into it: CP01 Algorithms 1 and 2, KT09 (3), (4);
- boxes and targets of rows that stay move from what they were to what they are to be: weights,
  C, epsilon, a new target;
- sum u moves to d: nu, or samples that come and go where d depends on them.

`_core.path.Motion` follows it from breakpoint to breakpoint. Three rules complete the papers' list:

- without a margin row, b moves alone until a row reaches r = 0 and becomes one (LGKM06 4.1,
  KT09 3.3);
- a row that reaches r = 0 but depends on the margin takes weight from it along the direction that
  leaves f as it is, until one of them meets a bound: it then joins in that row's place;
- rows tied at r = 0 are parted a little when the path does not advance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adiabat._core.path import Motion
from adiabat._core.ratio import HIGH, LOW, RESTING, arrive, assign_roles, rates
from adiabat.engine.machine import Machine
from adiabat.engine.noise import AIM, EPSILON
from adiabat.engine.progress import RunProgress
from adiabat.typing import FloatArray

# Breakpoints without advance after which ties are parted, and by how much (in units of targets).
PATIENCE = 4
SPREAD = 1e-9
# Bounds on work: breakpoints for each row, and breakpoints without advance for each row.
MOST_BREAKPOINTS = 50
MOST_IDLE = 3
# Rows at a bound that are watched from the start.
WATCH_LEAST, WATCH_PART = 1_000, 4
# Breakpoints between two chances of an interrupt.
AT_A_TIME = 64
# What sum u may differ from d by rounding, relative to the weights.
BALANCE = 64.0 * EPSILON


@dataclass(frozen=True)
class Breakpoint:
    """The state of one machine where a row changed sets.

    `u` are the signed weights y * alpha, `r` the residuals f - t (CP01's g is y * r), `role` what
    each row does there: where boxes move, weights alone do not tell whether it is at a bound.
    """

    event: str
    row: int
    eta: float
    u: FloatArray
    r: FloatArray
    role: npt.NDArray[np.uint8]
    b: float
    n_margin: int
    n_error: int
    n_reserve: int


class Path:
    """The way of one machine from its last optimum to the next."""

    def __init__(
        self,
        machine: Machine,
        tol: float,
        keep_trace: bool,
        observe: Callable[[Motion, npt.NDArray[np.uint8]], None] | None = None,
        spread: float = SPREAD,
    ) -> None:
        self.machine = machine
        self.tol = tol
        self.breakpoints = 0
        self.completed = False
        self.trace: list[Breakpoint] = []
        self._keep_trace = keep_trace
        self.progress: RunProgress | None = None
        self._observe = observe  # called with the motion and the roles of rows, after a stretch
        self._spread_by, self._spreads = spread, 0
        self._role = np.full(machine.n, LOW, dtype=np.uint8)
        self._target = machine.u.copy()

    def follow(self) -> None:
        """Go all the way; `completed` says whether the end was reached within the bound on work."""
        machine = self.machine
        machine.weighty = None
        goal = machine.t, machine.lo, machine.hi
        self._go_back()
        try:
            accuracy = machine.aims(self.tol)
            left = MOST_BREAKPOINTS * (machine.n + 1)
            motion: Motion | None = None
            while left > 0:
                motion = self._motion(goal, accuracy, motion)
                if self.breakpoints == 0 and not self.trace:
                    self._record("start", -1, 0.0)
                if motion is None:
                    self.completed = True
                    self._polish()
                    return
                left = self._run(motion, left)
                if not motion.done:
                    motion.catch_up()
                    return
                self._arrive(goal)
                if motion.row < 0:
                    self._record("arrival", -1, motion.eta)
                # rows driven together into smaller boxes may arrive on the wrong side: they enter
                accuracy = machine.aims(self.tol / AIM)
        finally:
            machine.r -= goal[0] - machine.t
            machine.t, machine.lo, machine.hi = goal

    def roles(self) -> npt.NDArray[np.uint8]:
        """The roles of rows where nothing is to move."""
        machine = self.machine
        self._assign((machine.t, machine.lo, machine.hi), machine.aims(self.tol))
        return self._role

    # -- start and end ---------------------------------------------------------------------------

    def _go_back(self) -> None:
        """The problem as it was where rows stay: from there it moves."""
        machine = self.machine
        machine.t, machine.lo, machine.hi = machine.t.copy(), machine.lo.copy(), machine.hi.copy()
        before = machine.before
        if before is not None and len(before.rows):
            rows = before.rows
            machine.r[rows] += machine.t[rows] - before.t
            machine.t[rows], machine.lo[rows], machine.hi[rows] = before.t, before.lo, before.hi

    def _motion(
        self,
        goal: tuple[FloatArray, FloatArray, FloatArray],
        accuracy: FloatArray,
        before: Motion | None,
    ) -> Motion | None:
        """The motion from here to the goal, or None if nothing is left to move."""
        machine = self.machine
        self._assign(goal, accuracy)
        moving, dd, moves = rates(
            machine.u, machine.t, machine.lo, machine.hi, goal, self._role, self._target,
            machine.d, BALANCE,
        )  # fmt: skip
        if not moves:
            return None
        if before is not None:
            before.catch_up()
        samples = machine.samples
        motion = Motion(
            samples.gram, machine.factor, samples.slots, machine.at, samples.diagonal,
            (machine.u, machine.r, machine.t, machine.lo, machine.hi), moving,
            self._role, machine.in_margin, machine.b, dd,
            machine.n if self._keep_trace else max(WATCH_LEAST, machine.n // WATCH_PART),
        )  # fmt: skip
        if len(machine.margin) == 0:
            resting = np.flatnonzero(self._role == RESTING)
            if len(resting):
                motion.join(int(resting[0]))
        return motion

    def _assign(
        self, goal: tuple[FloatArray, FloatArray, FloatArray], accuracy: FloatArray
    ) -> None:
        """Roles at the start: who is outside its box leaves it, who violates enters."""
        machine = self.machine
        gone = assign_roles(
            machine.u, machine.r, machine.lo, machine.hi, goal[1], goal[2], accuracy,
            machine.in_margin.view(np.uint8), self._role, self._target,
        )  # fmt: skip
        for row in gone:
            machine.factor.drop(int(np.flatnonzero(machine.margin == row)[0]))
            machine.in_margin[row] = False

    def _arrive(self, goal: tuple[FloatArray, FloatArray, FloatArray]) -> None:
        """The problem, and rows at moving bounds, are at their goal."""
        machine = self.machine
        arrive(
            machine.u, machine.t, machine.lo, machine.hi, goal, self._role,
            machine.in_margin.view(np.uint8), self._target,
        )  # fmt: skip

    def _polish(self) -> None:
        """Remove rounding that has added up: r of MARGIN and the sum afresh, and one solve."""
        machine = self.machine
        margin = machine.margin
        if self.breakpoints == 0 or len(margin) == 0:
            return
        du, db = self.correction()
        u = machine.u[margin] + du
        if np.all((u >= machine.lo[margin]) & (u <= machine.hi[margin])):
            machine.u[margin] = u
            machine.b += db

    def correction(self) -> tuple[FloatArray, float]:
        """What u of MARGIN and b lack for r = 0 on MARGIN and sum u = d, computed afresh."""
        machine = self.machine
        margin = machine.margin
        r = np.empty(len(margin))
        machine.samples.gram.multiply(machine.coefficients(), r, machine.at[margin])
        r += machine.b - machine.t[margin]
        du, db = machine.factor.solve(-r, machine.d - float(machine.u.sum()))
        return du, float(db)

    @property
    def parted(self) -> bool:
        """Whether tied rows were parted on the way, so that r of MARGIN is not quite 0."""
        return self._spreads > 0

    # -- on the way ------------------------------------------------------------------------------

    def _run(self, motion: Motion, left: int) -> int:
        """Follow a motion; returns how many breakpoints are left."""
        machine = self.machine
        before = self.breakpoints
        while left > 0:
            there = motion.breakpoints
            singly = self._keep_trace or self._observe is not None
            on = motion.run(1 if singly else min(left, AT_A_TIME), PATIENCE)
            machine.b = motion.b
            if self._observe is not None:
                self._observe(motion, self._role)
            left -= max(1, motion.breakpoints - there)
            self.breakpoints = before + motion.breakpoints
            if self.progress is not None:
                self.progress.tell_path(self.breakpoints)
            if not on or motion.row < 0:
                break
            self._record(motion.event, motion.row, motion.eta)
            if motion.done:
                break
            if motion.idle and motion.idle % PATIENCE == 0:
                self._spread()
            if motion.idle > MOST_IDLE * (machine.n + 1):
                break
        return left

    def _spread(self) -> None:
        """Part rows that are tied at r = 0, each a little way to its own side.

        Equal rows reach r = 0 together, and taking them one by one can go round in circles. The
        amounts differ from row to row, are the same in every run, and are gone when the residuals
        are next computed afresh.
        """
        machine = self.machine
        self._spreads += 1
        unequal = 1.0 + np.random.default_rng(machine.n).random(machine.n)
        amount = self._spread_by * self._spreads * unequal * machine.units()
        low = (self._role == LOW) & (machine.r < amount)
        high = (self._role == HIGH) & (machine.r > -amount)
        machine.r[low] = amount[low]
        machine.r[high] = -amount[high]

    def _record(self, event: str, row: int, eta: float) -> None:
        if not self._keep_trace:
            return
        machine = self.machine
        margin = len(machine.margin)
        reserve = int(np.sum(machine.u == 0.0))
        self.trace.append(
            Breakpoint(
                event, row, eta, machine.u.copy(), machine.r.copy(), self._role.copy(), machine.b,
                margin, machine.n - reserve - margin, reserve,
            )
        )  # fmt: skip
