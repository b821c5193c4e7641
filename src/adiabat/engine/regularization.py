# SPDX-License-Identifier: BSD-3-Clause
"""The whole path of a machine's optimum as its boxes grow with C (Hastie et al. 2004).

All boxes are proportional to C, so between two breakpoints the weights are linear in C: a row at a
bound is at C times its unit box, and a MARGIN row has its own slope. What is kept of a breakpoint
are the MARGIN rows with their weights and slopes, and one byte for every row.

The path is followed in stages, C growing at most fourfold in each. Between them all rows are
checked; what still violates is solved by exchange before the path goes on.

A stage goes by pivots of one tableau (`sweep`). Where they have no way on, because a row depends on
the margin or none is in it, it is one straight motion of the boxes, as that of any change (`path`).

Where every row is at a bound, b has an interval, and the path meets one end of it. There `centred`
takes its middle, as `centre_bias` does in a fit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from adiabat._core.conditions import violations
from adiabat._core.path import Motion
from adiabat.engine.bias import balanced_corner, no_weight
from adiabat.engine.path import Path
from adiabat.engine.report import SolveInfo
from adiabat.engine.row_change import RowChange
from adiabat.engine.solver import Key, Solver
from adiabat.engine.sweep import Node, Sweep, sides
from adiabat.engine.tableau import Tableau
from adiabat.typing import FloatArray

Roles = npt.NDArray[np.uint8]

# C grows by at most this factor from one look of the judge to the next.
STAGE = 4.0
# Where a path does not come through, it is taken up again this part of the stage further on.
SKIPPED = 1e-3
# By how much tied rows are parted, in units of targets. Breakpoints are off by as much, and the
# path has to agree with a fit at every C: a hundredth of what is enough where only the end counts.
SPREAD = 1e-11


class Track:
    """One machine along C."""

    def __init__(self, solver: Solver, key: Key, C: float, C_min: float, C_max: float) -> None:
        self._solver = solver.fork(key)
        self._key = key
        self._machine = self._solver.machines[key]
        self.unit_lo, self.unit_hi = self._machine.lo / C, self._machine.hi / C
        self.at = self._machine.at.copy()
        self._t, self._d = self._machine.t.copy(), self._machine.d
        self._root = self._machine.root.copy()
        self.nodes: list[Node] = []
        self.breakpoints = 0
        self.residual = 0.0  # the largest violation found between stages
        self._stage = C_min, C_min
        self._motion: Motion | None = None
        self._path: Path | None = None
        self._to(C_min)
        while self._stage[1] < C_max:
            self._next_stage(C_max)
        self.C = np.array([node.C for node in self.nodes])

    def weights(self, C: float) -> tuple[FloatArray, float]:
        """(u, b) at any C between the ends."""
        k = max(0, int(np.searchsorted(self.C, C, side="right")) - 1)
        node = self.nodes[k]
        u = C * np.where(node.side < 0, self.unit_lo, np.where(node.side > 0, self.unit_hi, 0.0))
        u[node.rows] = node.u + (C - node.C) * node.du
        return u, node.b + (C - node.C) * node.db

    def corner(self, C: float, u: FloatArray, b: float) -> FloatArray | None:
        """The weights at C with every row on its bound; None if a row is strictly inside its box.

        What counts as rounding is what counts in `centre_bias`.
        """
        lo, hi = C * self.unit_lo, C * self.unit_hi
        strength = float(self._root @ np.abs(u))
        room = np.minimum(no_weight(strength, b, self._t, self._root), 0.5 * (hi - lo))
        low = u <= lo + room
        if not np.all(low | (u >= hi - room)):
            return None
        corner = np.where(low, lo, hi)
        return corner if balanced_corner(corner, self._d) else None

    def centred(self, C: float, corner: FloatArray, products: FloatArray) -> float:
        """The middle of the interval of b, with every row on its bound; `products` are Ku."""
        own = self._t - products
        least = float(np.max(own[corner < C * self.unit_hi], initial=-np.inf))
        most = float(np.min(own[corner > C * self.unit_lo], initial=np.inf))
        if np.isfinite(least) and np.isfinite(most):
            return 0.5 * (least + most)
        ends = [end for end in (least, most) if np.isfinite(end)]
        return ends[0] if ends else 0.0  # if no row can carry weight, b is 0

    # -- stages ----------------------------------------------------------------------------------

    def _boxes(self, C: float) -> RowChange:
        every = np.arange(self._machine.n)
        return RowChange(
            rebound=every, rebound_t=self._machine.t,
            rebound_lo=C * self.unit_lo, rebound_hi=C * self.unit_hi,
        )  # fmt: skip

    def _to(self, C: float) -> None:
        """Solve at C by exchange, check, and set a node there."""
        self._solver.attempt({self._key: self._boxes(C)}, "exchange", False, SolveInfo())
        self.residual = max(self.residual, float(self._look().max(initial=0.0)))
        self._set_node(C)

    def _next_stage(self, C_max: float) -> None:
        C = self._stage[1]
        end = min(C_max, STAGE * C)
        if not self._by_pivots(C, end):
            self._by_path(C, end, C_max)

    def _by_path(self, C: float, end: float, C_max: float) -> None:
        machine = self._machine
        self._stage = C, end
        machine.begin(self._boxes(self._stage[1]))
        self._motion = None
        path = self._path = Path(machine, self._solver.tol, False, self._observe, SPREAD)
        path.follow()
        self.breakpoints += path.breakpoints
        if not path.completed:
            C = self.nodes[-1].C + SKIPPED * (self._stage[1] - C)
            self._stage = C, min(C, C_max)
            self._to(self._stage[1])
            return
        self._judged(end, self._look())

    def _by_pivots(self, C: float, end: float) -> bool:
        """Follow the path from C by pivots, as far as they go; False if that is nowhere."""
        machine = self._machine
        tableau = Tableau.of(machine, self._solver.tol)
        if tableau is None:
            return False
        sweep = Sweep(tableau, C, self.unit_lo, self.unit_hi)
        nodes = sweep.to(end)
        if sweep.C <= C:
            return False
        saved = machine.snapshot()
        machine.begin(self._boxes(sweep.C))
        sweep.write_back()
        found = self._look()
        if np.any(found > tableau.enough):  # what went wrong on the way is still in the sums
            machine.restore(saved)
            return False
        self._stage = C, sweep.C
        self.nodes[-1:] = nodes
        self.breakpoints += len(nodes) - 1
        self._judged(sweep.C, found)
        return True

    def _judged(self, C: float, found: FloatArray) -> None:
        """A node at C if violations are small enough, else solve there first."""
        if np.any(found > self._machine.aims(self._solver.tol)):
            self._to(C)
        else:
            self.residual = max(self.residual, float(found.max(initial=0.0)))
            self._set_node(C)

    def _look(self) -> FloatArray:
        """Violations of all rows, from residuals computed afresh; infinite if u is infeasible."""
        machine = self._machine
        self._solver.refresh([machine])
        found = violations(machine.r, machine.u, machine.lo, machine.hi)
        return found if machine.infeasibility() == 0.0 else np.full(machine.n, np.inf)

    # -- nodes -----------------------------------------------------------------------------------

    def _observe(self, motion: Motion, role: Roles) -> None:
        """After a stretch: the slopes of the last node are known, and the next one is there."""
        first, last = self._stage
        reach = last - first
        node = self.nodes[-1]
        if self._motion is None:
            self._motion = motion
        # a further motion solves what is left at the end of the stage, where C no longer moves
        C = last - motion.remaining * reach if motion is self._motion else last
        C = max(C, node.C)  # not before it, by rounding
        if C > node.C:
            self.nodes[-1] = Node(
                node.C, node.b, motion.db / reach, node.side, node.rows, node.u,
                motion.du[node.rows] / reach,
            )  # fmt: skip
        if motion.row >= 0:
            self._set_node(C, role)

    def _set_node(self, C: float, role: Roles | None = None) -> None:
        machine = self._machine
        u, b = machine.u, machine.b
        if role is None:
            role = Path(machine, self._solver.tol, False).roles()
        elif self._path is not None and self._path.parted and len(machine.margin):
            # what parted tied rows must not stay in u and b
            du, db = self._path.correction()
            u, b = u.copy(), b + db
            u[machine.margin] += du
        side = sides(role)
        rows = np.flatnonzero(side == 0)
        self.nodes.append(Node(C, b, 0.0, side, rows, u[rows], np.zeros(len(rows))))
