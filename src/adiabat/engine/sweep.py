# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of a machine while C grows, by pivots of the tableau it started with.

In v = u / C the boxes stand still, and r / C = K v + b / C - t / C: it is the targets that move,
with 1 / C, and the margin answers to them. So x, the rates of v, b / C and r / C, is a combination
of the columns of the tableau, and follows from pivot to pivot (`_core.tableau`). Between two of
them u is linear in C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from adiabat._core.ratio import HIGH, LOW, MARGIN, PINNED, RESTING
from adiabat._core.tableau import Pivots
from adiabat.engine.tableau import Tableau
from adiabat.typing import FloatArray, IntArray

Roles = npt.NDArray[np.uint8]

# Pivots after which a new tableau is cheaper, and rounding needs one.
MOST_PIVOTS = 256
# Breakpoints in a row that may pass without advance.
MOST_IDLE = 4

_SIDES: Final = np.zeros(1 + max(HIGH, LOW, MARGIN, PINNED, RESTING), dtype=np.int8)
_SIDES[[LOW, PINNED]], _SIDES[HIGH] = -1, 1


@dataclass(frozen=True)
class Node:
    """The optimum at one C and, up to the next node, its slopes."""

    C: float
    b: float
    db: float
    side: npt.NDArray[np.int8]  # -1 at lo, 1 at hi, 0 for the rows that follow
    rows: IntArray
    u: FloatArray
    du: FloatArray


def sides(role: Roles) -> npt.NDArray[np.int8]:
    """Where rows are that have these roles: -1 at lo, 1 at hi, 0 between."""
    return _SIDES[role]


class Sweep:
    """One machine from C on, as far as the pivots go; it stays as it is until `write_back`."""

    def __init__(self, tableau: Tableau, C: float, unit_lo: FloatArray, unit_hi: FloatArray):
        rows = tableau.rows
        self._tableau, self._machine = tableau, tableau.machine
        self._unit_lo, self._unit_hi = unit_lo, unit_hi
        self._b = self._machine.b / C
        self.C = C
        self._pivots = Pivots(
            tableau.columns, tableau.slot, tableau.u / C, tableau.r / C, unit_lo[rows],
            unit_hi[rows], tableau.role, tableau.least, MOST_PIVOTS,
        )  # fmt: skip

    def to(self, end: float) -> list[Node]:
        """Go on to the end, or to where no pivot is possible; the optimum at each breakpoint."""
        pivots, tableau = self._pivots, self._tableau
        pivots.set_out(-tableau.answer(self._machine.t), 1.0 / self.C - 1.0 / end)
        nodes, idle = [self._node()], 0
        while idle <= MOST_IDLE:
            row = pivots.stretch()
            before, self.C = self.C, max(self.C, 1.0 / (1.0 / end + pivots.remaining))
            if row < 0:
                self.C = end
                break
            idle = idle + 1 if before >= self.C else 0
            while not pivots.meet(row):
                if pivots.missing < 0 or not tableau.fill(np.array([pivots.missing])):
                    return nodes
            nodes.append(self._node())
        return nodes

    def write_back(self) -> None:
        """Give the machine what was found; its boxes are those at C already."""
        machine, side = self._machine, self._sides()
        inside = np.flatnonzero(side == 0)
        u = self.C * np.where(side < 0, self._unit_lo, self._unit_hi)
        u[inside] = self.C * self._pivots.z[1 + self._tableau.place[inside]]
        machine.u = np.clip(u, machine.lo, machine.hi)  # by rounding they may be outside
        machine.b, machine.weighty = self.C * (self._b + float(self._pivots.z[0])), None
        machine.refactor(inside)

    def _sides(self) -> npt.NDArray[np.int8]:
        return sides(self._pivots.role[self._tableau.place])

    def _node(self) -> Node:
        side = self._sides()
        rows = np.flatnonzero(side == 0)
        at = 1 + self._tableau.place[rows]
        z, x, C = self._pivots.z, self._pivots.x, self.C
        v, b = z[at], self._b + float(z[0])
        # u = C (v + (1 / C_0 - 1 / C) x)
        return Node(C, C * b, b + float(x[0]) / C, side, rows, C * v, v + x[at] / C)
