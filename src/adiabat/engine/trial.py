# SPDX-License-Identifier: BSD-3-Clause
"""A machine's optimum without some of its rows, again and again, the machine left as it is.

A trial works on its own copy of the rows and of the factor; kernel columns are shared with the
machine, further ones are its own. Each removal starts from the same optimum: u, r and the factor
are copied back (s^2 numbers), and the rows are driven out along the path (CP01 Algorithm 2), or by
exchange where the margin is large.

What comes of it is checked: r of the watched rows is computed afresh from u and the kernel columns,
and those that are not watched are cleared by the bound of `_core.moving`. What does not pass is
left to the solver and its judge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adiabat._core.conditions import violations
from adiabat._core.path import Motion
from adiabat._core.ratio import LEAVING, PINNED, RESTING
from adiabat.engine.machine import Machine
from adiabat.engine.noise import EPSILON
from adiabat.engine.path import BALANCE, PATIENCE, WATCH_LEAST, WATCH_PART, Path
from adiabat.engine.report import SolveInfo
from adiabat.engine.row_change import RowChange
from adiabat.engine.solver import Key, Solver
from adiabat.typing import FloatArray, IntArray

# With a larger margin a few rounds of exchange cost less than the breakpoints of the path.
LARGE_MARGIN = 128
# Breakpoints for each row before a removal is left to the solver.
MOST_BREAKPOINTS = 5
# A weight is inside its box if it is this part of it away from both ends.
INSIDE = 1e-12


@dataclass(frozen=True)
class Removal:
    """f at the sample of the rows removed, by the machine that never had them.

    `decided` if it is only certain that f has changed its sign, and f is not that of the end.
    `elsewhere` is how f has changed at the points that were given.
    """

    f: float
    breakpoints: int
    decided: bool = False
    elsewhere: FloatArray | None = None


class Trial:
    """One machine and its removals."""

    def __init__(self, solver: Solver, key: Key) -> None:
        self._base = solver.machines[key]
        self._solver = solver.fork(key)
        self._key = key
        self._machine = self._solver.machines[key]
        self._accuracy = self._base.aims(solver.tol)
        start = Path(self._machine, solver.tol, keep_trace=False)
        self._role = start.roles()
        self._nothing = np.zeros(self._base.n)
        self._saved = {key: self._base.snapshot()}
        self._factor_is_base = True

    def removal(self, rows: IntArray, d: float, ask: bool = False) -> Removal:
        """Remove the rows of one sample; with `ask`, only as far as the sign of f is certain."""
        if len(self._base.margin) > LARGE_MARGIN:
            return self._by_the_solver(rows, d, "exchange")
        found = self._along_the_path(rows, d, ask)
        return found if found is not None else self._by_the_solver(rows, d, "auto")

    def elsewhere(self, points: FloatArray) -> FloatArray:
        """How the last removal changed f at points, given their kernel values by position."""
        machine, base = self._machine, self._base
        change = machine.u - base.u
        rows = np.flatnonzero(change)
        return points[:, base.at[rows]] @ change[rows] + (machine.b - base.b)

    # -- the straight way ------------------------------------------------------------------------

    def _along_the_path(self, rows: IntArray, d: float, ask: bool) -> Removal | None:
        machine, base = self._machine, self._base
        self._copy_back()
        machine.lo[rows] = machine.hi[rows] = 0.0
        machine.d = d
        role = self._role.copy()
        role[rows] = np.where(base.u[rows] != 0.0, LEAVING, PINNED)
        for row in rows[machine.in_margin[rows]]:
            machine.factor.drop(int(np.flatnonzero(machine.margin == row)[0]))
            machine.in_margin[row] = False
            self._factor_is_base = False
        du = np.zeros(machine.n)
        du[rows] = -base.u[rows]
        dd = d - float(base.u.sum())
        if abs(dd) <= BALANCE * (float(np.abs(base.u).sum()) + abs(d)):
            dd = 0.0
        samples, still = machine.samples, self._nothing
        motion = Motion(
            samples.gram, machine.factor, samples.slots, machine.at, samples.diagonal,
            (machine.u, machine.r, machine.t, machine.lo, machine.hi), (du, still, still, still),
            role, machine.in_margin, machine.b, dd, max(WATCH_LEAST, machine.n // WATCH_PART),
        )  # fmt: skip
        if len(machine.margin) == 0 and np.any(role == RESTING):
            return None
        if ask:
            motion.ask(int(rows[0]))
        motion.run(MOST_BREAKPOINTS * (machine.n + 10), PATIENCE)
        if motion.breakpoints:
            self._factor_is_base = False
        if motion.event == "decided":
            return Removal(float("nan"), motion.breakpoints, decided=True)
        if not motion.done:
            return None
        machine.u[rows] = 0.0
        machine.b = motion.b
        if not self._is_optimal(np.union1d(motion.watched, rows)):
            return None
        return Removal(float(machine.r[rows[0]] + machine.t[rows[0]]), motion.breakpoints)

    def _copy_back(self) -> None:
        machine, base = self._machine, self._base
        for name in ("u", "r", "t", "lo", "hi", "in_margin"):
            setattr(machine, name, getattr(base, name).copy())
        machine.at, machine.b, machine.d = base.at, base.b, base.d
        if not self._factor_is_base:
            machine.factor.copy_from(base.factor)
            self._factor_is_base = True

    def _is_optimal(self, watched: IntArray) -> bool:
        """Whether no row violates, by r of these afresh, and b is determined."""
        machine, base = self._machine, self._base
        margin = machine.margin
        room = INSIDE * (machine.hi[margin] - machine.lo[margin])
        u = machine.u[margin]
        if not np.any((u > machine.lo[margin] + room) & (u < machine.hi[margin] - room)):
            return False
        change = np.empty(len(watched))
        coefficients = machine.coefficients(machine.u - base.u)
        machine.samples.gram.multiply(coefficients, change, machine.at[watched])
        machine.r[watched] = base.r[watched] + change + (machine.b - base.b)
        lo, hi = machine.lo[watched], machine.hi[watched]
        violation = violations(machine.r[watched], machine.u[watched], lo, hi)
        off = abs(float(machine.u.sum()) - self._machine.d)
        rounding = 64.0 * EPSILON * float(np.abs(machine.u).sum())
        return bool(np.all(violation <= self._accuracy[watched])) and off <= rounding

    # -- the long way ----------------------------------------------------------------------------

    def _by_the_solver(self, rows: IntArray, d: float, method: str) -> Removal:
        """The same with everything that the solver has, judged as any update."""
        self._copy_back()
        self._factor_is_base = False
        info = SolveInfo()
        change = {self._key: RowChange(remove=rows, d=d)}
        self._solver.attempt(change, method, False, info, self._saved)
        machine: Machine = self._machine
        return Removal(float(machine.r[rows[0]] + machine.t[rows[0]]), info.breakpoints)
