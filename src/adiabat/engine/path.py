# SPDX-License-Identifier: BSD-3-Clause
"""Path: to the new optimum along the line on which every row moves, breakpoint by breakpoint.

Rows ENTERING are driven towards their far bound and rows LEAVING into their new box, all in one
motion, while the margin answers through its bordered system (KT09 (3)-(6); one driven row is CP01
(3)-(9)):

    p_i = target_i - u_i  on driven rows,     K_MM du + db 1 = -K_MA p,     1'du = -1'p
    dr  = K (p + du) + db

up to the first breakpoint (`_core.path`), where one row changes sets. Then the direction is taken
anew. Two rules complete the papers' list:

- without a margin row, b moves alone until a row reaches r = 0 and becomes one (LGKM06 4.1,
  KT09 3.3);
- a row that reaches r = 0 but depends on the margin takes weight from it along the direction that
  leaves f as it is, until one of them meets a bound: it then joins in that row's place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adiabat._core.path import (
    BOUND,
    FALLING,
    LEAVING,
    MARGIN,
    RESTING,
    RISING,
    advance,
    largest_rate,
    next_breakpoint,
)
from adiabat.engine.exchange import longest_step
from adiabat.engine.machine import AT_BOUND, Machine

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Rates below this part of the largest, or of the sums they come from, are rounding.
STILL = 1e-11
# Breakpoints without advance after which ties are parted, and by how much (in units of r).
PATIENCE = 4
SPREAD = 1e-9
# Bounds on work: breakpoints for each row, and breakpoints without advance for each row.
MOST_BREAKPOINTS = 50
MOST_IDLE = 3


@dataclass(frozen=True)
class Breakpoint:
    """The state of one machine where a row changed sets.

    `u` are the signed weights y * alpha, `r` the residuals f - t (CP01's g is y * r).
    """

    event: str
    row: int
    eta: float
    u: FloatArray
    r: FloatArray
    b: float
    n_margin: int
    n_error: int
    n_reserve: int


class Path:
    """The way of one machine from its last optimum to the next."""

    def __init__(self, machine: Machine, tolerance: float, keep_trace: bool) -> None:
        self.machine = machine
        self.tolerance = tolerance
        self.breakpoints = 0
        self.completed = False
        self.trace: list[Breakpoint] = []
        self._keep_trace = keep_trace
        self._spreads = 0
        self._largest = float(machine.samples.diagonal.max(initial=0.0))
        self._role = np.full(machine.n, BOUND, dtype=np.uint8)
        self._target = machine.u.copy()

    def follow(self) -> None:
        """Go all the way; `completed` says whether the end was reached within the bound on work."""
        machine = self.machine
        self._assign(machine.accuracy(self.tolerance))
        self._record("start", -1, 0.0)
        idle = 0
        for _ in range(MOST_BREAKPOINTS * (machine.n + 1)):
            driven = np.flatnonzero(
                (self._role == RISING) | (self._role == FALLING) | (self._role == LEAVING)
            )
            if len(driven) == 0:
                self.completed = True
                return
            direction = self._direction(driven)
            if direction is None:
                return
            du, dr, db, limit = direction
            still = STILL * (largest_rate(dr) + self._largest * float(np.abs(du).sum()))
            eta, row = next_breakpoint(
                machine.u, du, machine.r, dr, machine.lo, machine.hi, self._role, still, limit
            )
            if row < 0 and not np.isfinite(eta):
                return  # b has nowhere to go: not enough weight to answer with
            advance(machine.u, du, machine.r, dr, eta)
            machine.b += eta * db
            idle = idle + 1 if eta <= 0.0 else 0
            if idle and idle % PATIENCE == 0:
                self._spread()
            if idle > MOST_IDLE * (machine.n + 1):
                return
            if row >= 0:
                self._meet(row, eta)
                continue
            self._arrive(driven)
            self._record("arrival", -1, eta)
            # rows driven together into smaller boxes may arrive on the wrong side: they enter now
            self._assign(self.tolerance)

    # -- start and direction ---------------------------------------------------------------------

    def _assign(self, accuracy: float) -> None:
        """Roles at the start: who is outside its box leaves it, who violates enters."""
        machine = self.machine
        self._role[:] = BOUND
        outside = (machine.u < machine.lo) | (machine.u > machine.hi)
        pinned = machine.in_margin & (machine.lo == machine.hi)
        for row in np.flatnonzero(machine.in_margin & (outside | pinned)):
            self._drop(int(row))
        self._role[machine.in_margin] = MARGIN
        free = ~machine.in_margin & ~outside
        low, high = machine.u > machine.lo, machine.u < machine.hi
        self._role[free & low & high & (np.abs(machine.r) <= accuracy)] = RESTING
        rising = free & high & (machine.r < -accuracy)
        falling = free & low & (machine.r > accuracy)
        self._role[rising] = RISING
        self._role[falling] = FALLING
        self._role[outside] = LEAVING
        self._target[outside] = np.clip(machine.u, machine.lo, machine.hi)[outside]
        self._target[rising] = machine.hi[rising]
        self._target[falling] = machine.lo[falling]
        if len(machine.margin) == 0:
            self._anchor()

    def _anchor(self) -> None:
        """Let a resting row hold b, if there is one and the margin is empty."""
        resting = np.flatnonzero(self._role == RESTING)
        if len(resting):
            self._join(int(resting[0]))

    def _direction(self, driven: IntArray) -> tuple[FloatArray, FloatArray, float, float] | None:
        """(du, dr, db, largest eta) from here."""
        machine = self.machine
        du = np.zeros(machine.n)
        du[driven] = self._target[driven] - machine.u[driven]
        margin = machine.margin
        total = float(du[driven].sum())
        if len(margin) == 0 and total != 0.0:
            # b alone: upwards if the driven rows add weight, to free a row that can give some
            du[:] = 0.0
            sign = 1.0 if total > 0.0 else -1.0
            return du, np.full(machine.n, sign), sign, np.inf
        db = 0.0
        if len(margin):
            answer = machine.kernel(margin, driven) @ du[driven]
            du[margin], db = machine.factor.solve(-answer, -total)
        dr = np.empty(machine.n)
        machine.samples.gram.multiply(machine.coefficients(du), dr, machine.at)
        dr += db
        dr[margin] = 0.0
        return du, dr, db, 1.0

    def _spread(self) -> None:
        """Part rows that are tied at r = 0, each a little way to its own side.

        Equal rows reach r = 0 together, and taking them one by one can go round in circles. The
        amounts differ from row to row, are the same in every run, and are gone when the residuals
        are next computed afresh.
        """
        machine = self.machine
        self._spreads += 1
        amount = SPREAD * self._spreads * (1.0 + np.random.default_rng(machine.n).random(machine.n))
        resting = self._role == BOUND
        low = resting & (machine.u <= machine.lo) & (machine.r < amount)
        high = resting & (machine.u >= machine.hi) & (machine.r > -amount)
        machine.r[low] = amount[low]
        machine.r[high] = -amount[high]

    # -- breakpoints -----------------------------------------------------------------------------

    def _meet(self, row: int, eta: float) -> None:
        """A row meets its condition: it changes sets."""
        machine = self.machine
        self.breakpoints += 1
        role = self._role[row]
        if role == MARGIN:
            u, lo, hi = machine.u[row], machine.lo[row], machine.hi[row]
            machine.u[row] = lo if u - lo <= hi - u else hi
            self._drop(row)
            self._role[row] = BOUND
            event = "to bound"
        else:
            machine.r[row] = 0.0
            event = "to margin" if role == BOUND else "entered"
            if not self._join(row):
                if role == BOUND:
                    self._trade(row)
                    event = "traded"
                else:
                    inside = machine.lo[row] < machine.u[row] < machine.hi[row]
                    self._role[row] = RESTING if inside else BOUND
        if len(machine.margin) == 0:
            self._anchor()
        self._record(event, row, eta)

    def _join(self, row: int) -> bool:
        """Let a row with r = 0 join MARGIN; False if it depends on it."""
        machine = self.machine
        at = machine.at[[row]]
        cross = machine.samples.between(at, machine.at[machine.margin])
        own = machine.samples.diagonal[at].reshape(1, 1).copy()
        machine.factor.prepare(cross, own)
        joined = bool(machine.factor.admit(np.zeros(1, dtype=np.int64), np.array([row]))[0])
        if joined:
            machine.samples.slots(at)
            machine.in_margin[row] = True
            self._role[row] = MARGIN
        return joined

    def _drop(self, row: int) -> None:
        machine = self.machine
        machine.factor.drop(int(np.flatnonzero(machine.margin == row)[0]))
        machine.in_margin[row] = False

    def _trade(self, row: int) -> None:
        """A dependent row takes weight from the margin, f unchanged, until a bound is met."""
        machine = self.machine
        margin = machine.margin.copy()
        u, lo, hi = machine.u[row], machine.lo[row], machine.hi[row]
        sign = 1.0 if u <= lo else -1.0
        cross = machine.samples.between(machine.at[[row]], machine.at[margin])[0]
        machine.samples.slots(machine.at[[row]])
        du, _ = machine.factor.solve(-sign * cross, -sign)
        span = hi - lo
        low, high = machine.lo[margin], machine.hi[margin]
        part = longest_step(machine.u[margin], span * du, low, high)
        machine.u[row] = u + sign * span * part
        moved = machine.u[margin] + span * part * du
        room = AT_BOUND * (high - low)
        moved = np.where(moved <= low + room, low, np.where(moved >= high - room, high, moved))
        machine.u[margin] = moved
        for met in margin[(moved == low) | (moved == high)]:
            self._drop(int(met))
            self._role[met] = BOUND
        if part >= 1.0:
            machine.u[row] = hi if sign > 0 else lo
        elif not self._join(row):
            self._role[row] = RESTING

    def _arrive(self, driven: IntArray) -> None:
        machine = self.machine
        machine.u[driven] = self._target[driven]
        self._role[driven] = BOUND

    def _record(self, event: str, row: int, eta: float) -> None:
        if not self._keep_trace:
            return
        machine = self.machine
        margin = len(machine.margin)
        reserve = int(np.sum(machine.u == 0.0))
        self.trace.append(
            Breakpoint(
                event, row, eta, machine.u.copy(), machine.r.copy(), machine.b, margin,
                machine.n - reserve - margin, reserve,
            )
        )  # fmt: skip
