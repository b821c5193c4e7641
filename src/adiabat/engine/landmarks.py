# SPDX-License-Identifier: BSD-3-Clause
"""Landmarks: rows whose f is followed exactly, so that f of rows beside them is known nearly.

For rows x and c, |change of f(x) - change of f(c)| <= |phi(x) - phi(c)| |change of w|. A large
model has many rows that are alike. The judge computes f of a few hundred landmarks in every look,
lets r of every row follow its landmark, and bounds the rest by the distance (`Looks`). A row
without one has phi = 0 for its landmark, whose f never changes: the distance is then sqrt k(x, x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from adiabat._core.looks import Looks
from adiabat._core.nearest import approach
from adiabat._core.room import Leaving, Room
from adiabat.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adiabat.engine.machine import Machine

# Landmarks at most, rows for each of them, and how many are chosen at a time: rows that are far
# from those there are, for their r.
LANDMARKS, ROWS_EACH, AT_ONCE = 2048, 256, 128
# After so many, rows whose r is beyond so many times the distance seek no nearer one: no update
# moves them as far.
FOR_ALL, FAR = 256, 32.0
# Kernel values computed for them at a time: 8 MB, in the cache.
BLOCK_ENTRIES = 1 << 20
# Roundings of k(x, x) + k(c, c) - 2 k(x, c).
ROUNDINGS = 64.0

TINY = float(np.finfo(np.float64).tiny)

_BY_ROW = ("number", "apart", "stands")


class Landmarks:
    """By row: the number of its landmark or 0, its distance, and its own number if it is one."""

    def __init__(self, root: FloatArray) -> None:
        self.number: npt.NDArray[np.int16] = np.zeros(len(root), dtype=np.int16)
        self.apart = root.copy()
        self.stands: npt.NDArray[np.int16] = np.zeros(len(root), dtype=np.int16)

    def rows(self) -> IntArray:
        """The rows that are landmarks."""
        return np.flatnonzero(self.stands > 0)

    def extended(self, room: Room, root: FloatArray) -> Landmarks:
        """The same with more rows at the end, without a landmark."""
        other = Landmarks(root[:0])
        other.__dict__.update(self.__dict__)
        nothing = np.zeros(len(root), dtype=np.int16)
        room.extend_all(other, _BY_ROW, (nothing, root, nothing))
        return other

    def remove(self, leaving: Leaving, looks: Looks | None, root: FloatArray) -> None:
        """Take rows out; those beside a landmark that goes have none from now on."""
        left = self.stands[leaving.gone]
        if left.any():
            rows = np.flatnonzero(np.isin(self.number, left[left > 0]))
            if looks is not None:
                looks.write_down(self.apart, rows)
            self.number[rows], self.apart[rows] = 0, root[rows]
        leaving.close(self, _BY_ROW)


def place_landmarks(machine: Machine, looks: Looks) -> Landmarks:
    """Choose landmarks among the rows of a machine, and find the nearest of every row."""
    samples, at = machine.samples, machine.at
    marks, own = Landmarks(machine.root), samples.diagonal
    square, r_square = machine.root**2, looks.r**2
    rng = np.random.default_rng(0)  # the same data give the same model
    step = max(1, BLOCK_ENTRIES // AT_ONCE)
    for first in range(0, min(LANDMARKS, machine.n // ROWS_EACH), AT_ONCE):
        likely = np.sqrt(square / np.maximum(square + r_square, TINY))
        likely[marks.stands > 0] = 0.0  # a landmark keeps its number
        total = float(likely.sum())
        if not total > 0.0:
            break
        chosen = np.unique(rng.choice(machine.n, AT_ONCE, p=likely / total))
        marks.stands[chosen] = first + 1 + np.arange(len(chosen))
        near = r_square <= FAR * FAR * square
        seeking = np.flatnonzero(near) if first >= FOR_ALL else np.arange(machine.n)
        for start in range(0, len(seeking), step):
            rows = seeking[start : start + step]
            approach(
                samples.block(at[rows], at[chosen]), own[at[rows]], own[at[chosen]], ROUNDINGS,
                rows, marks.stands[chosen], square, marks.number,
            )  # fmt: skip
    marks.apart = np.sqrt(square)
    looks.write_down(machine.root, np.arange(machine.n))
    return marks
