# SPDX-License-Identifier: BSD-3-Clause
"""Two rows of one sample: as one row, for the coarse step, and without what cancels out."""

from __future__ import annotations

import numpy as np

from adiabat.engine.machine import Machine
from adiabat.engine.row_change import NO_ROWS
from adiabat.typing import BoolArray, FloatArray, IntArray


class Merged:
    """Rows of which two stand for one sample, one below u = 0 and one above, as one row.

    That is what the rows of a regression sample are. r jumps where u passes 0, from the target of
    the row below to that of the row above.
    """

    def __init__(self, machine: Machine, rows: IntArray) -> None:
        self._machine = machine
        self.jump: FloatArray | None = None
        self._alone: BoolArray | slice = slice(None)
        self._below = self._above = self._place = NO_ROWS
        if not machine.has_pairs:
            self.rows, self.r, self.u = rows, machine.r[rows], machine.u[rows]
            self.lo, self.hi = machine.lo[rows], machine.hi[rows]
            return
        order = rows[np.lexsort((machine.lo[rows], machine.at[rows]))]
        at, lo, hi = machine.at[order], machine.lo[order], machine.hi[order]
        t, r, u = machine.t[order], machine.r[order], machine.u[order]
        first = np.flatnonzero((at[:-1] == at[1:]) & (hi[:-1] == 0.0) & (lo[1:] == 0.0))
        first = first[t[first] >= t[first + 1]]
        first = first[np.diff(first, prepend=-2) > 1]
        single = np.ones(len(order), dtype=bool)
        single[first + 1] = False
        self._below, self._above = order[first], order[first + 1]
        if len(first):
            jump = np.zeros(len(order))
            jump[first] = t[first] - t[first + 1]
            self.jump, hi[first] = jump[single], hi[first + 1]
            u[first] += u[first + 1]
        self._place = np.flatnonzero(~single) - np.arange(1, len(first) + 1)
        alone = np.ones(int(single.sum()), dtype=bool)
        alone[self._place] = False
        self._alone = alone
        self.rows = order[single]
        self.r, self.u, self.lo, self.hi = r[single], u[single], lo[single], hi[single]

    def split(self, u: FloatArray) -> None:
        """Give the machine's rows their weights."""
        self._machine.u[self.rows[self._alone]] = u[self._alone]
        self._machine.u[self._below] = np.minimum(u[self._place], 0.0)
        self._machine.u[self._above] = np.maximum(u[self._place], 0.0)


def cancel_pairs(machine: Machine) -> None:
    """Take out what rows of one sample have against each other.

    f does not change, and the objective does not rise where the row that pulls f up has the
    lower target, as it is with the two rows of a regression sample.
    """
    if not machine.has_pairs:
        return
    n_samples = machine.samples.n
    up = np.bincount(machine.at, np.maximum(machine.u, 0.0), n_samples)
    down = np.bincount(machine.at, np.maximum(-machine.u, 0.0), n_samples)
    common = np.minimum(up, down)
    if not common.any():
        return
    lower, upper = np.full(n_samples, -np.inf), np.full(n_samples, np.inf)
    np.maximum.at(lower, machine.at, np.where(machine.u > 0.0, machine.t, -np.inf))
    np.minimum.at(upper, machine.at, np.where(machine.u < 0.0, machine.t, np.inf))
    common[lower > upper] = 0.0
    for row in np.flatnonzero((common[machine.at] > 0.0) & (machine.u != 0.0)):
        pulls = up if machine.u[row] > 0.0 else down
        sample = machine.at[row]
        machine.u[row] *= (pulls[sample] - common[sample]) / pulls[sample]
    at_bound = (machine.u <= machine.lo) | (machine.u >= machine.hi)
    members = machine.margin
    if np.any(at_bound[members]):
        machine.refactor(members[~at_bound[members]])
