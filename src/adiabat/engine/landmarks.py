# SPDX-License-Identifier: BSD-3-Clause
"""Landmarks: rows whose f is followed exactly, so that f of rows beside them is known nearly.

For rows x and c, |change of f(x) - change of f(c)| <= |phi(x) - phi(c)| |change of w|. A large
model has many rows that are alike. The judge computes f of a few hundred landmarks in every look,
lets r of every row follow its landmark, and bounds the rest by the distance (`Looks`). A row
without one has phi = 0 for its landmark, whose f never changes: the distance is then sqrt k(x, x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from adiabat._core.looks import Looks
from adiabat._core.nearest import approach, places_of
from adiabat._core.room import Leaving, Room
from adiabat.engine.blends import Blends, blend
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


class Marks(NamedTuple):
    """Landmarks as the judge takes them (`Looks.look`)."""

    number: npt.NDArray[np.int16]
    apart: FloatArray
    stands: npt.NDArray[np.int16]
    names: npt.NDArray[np.int16]
    lines: IntArray
    most_root: float
    blended: IntArray
    parts: npt.NDArray[np.int16]
    shares: FloatArray


class Landmarks:
    """By row: the number of its landmark or 0, its distance, and its own number if it is one."""

    def __init__(self, root: FloatArray) -> None:
        self.number: npt.NDArray[np.int16] = np.zeros(len(root), dtype=np.int16)
        self.apart = root.copy()
        self.stands: npt.NDArray[np.int16] = np.zeros(len(root), dtype=np.int16)
        self.rows: IntArray = np.empty(0, dtype=np.int64)  # that are landmarks
        self.most_root = 0.0  # the largest sqrt k(x, x) of a landmark, at least
        self.n_followed = 0  # landmarks up to this number may be followed alone
        self.blends = Blends()  # rows that follow several, and have the number 0

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
        left = left[left > 0]
        if len(left):
            blends = self.blends
            gone = blends.of(left)
            rows, parts = blends.rows[gone], blends.parts[gone, 0]
            self._follow(looks, rows, parts, blends.single[gone])
            blends.drop(gone)
            left = left[left <= self.n_followed]
            if len(left):
                rows = np.flatnonzero(np.isin(self.number, left))
                self._follow(looks, rows, 0, root[rows])
        self.rows = np.delete(self.rows, places_of(self.rows, leaving.gone))
        leaving.renumber(self.rows)
        self.blends.remove(leaving)
        leaving.close(self, _BY_ROW)

    def _follow(self, looks: Looks | None, rows: IntArray, number: Any, apart: FloatArray) -> None:
        """Let rows follow other landmarks, of these numbers and as far from them."""
        if looks is not None:
            looks.follow_others(rows, self.apart[rows], apart)
        self.number[rows], self.apart[rows] = number, apart


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
    marks.apart, marks.rows = np.sqrt(square), np.flatnonzero(marks.stands > 0)
    marks.n_followed = int(marks.stands.max(initial=0))
    looks.follow_others(slice(None), machine.root, marks.apart)
    return marks


def blend_landmarks(machine: Machine, marks: Landmarks, looks: Looks, rows: IntArray) -> None:
    """Let rows follow blends of landmarks, support vectors among these."""
    number, weighty = marks.n_followed, machine.rows_with_weight()
    if number == 0:
        return
    new = weighty[marks.stands[weighty] == 0][:LANDMARKS]
    marks.stands[new] = number + 1 + np.arange(len(new))
    marks.rows = np.flatnonzero(marks.stands > 0)
    marks.most_root = float(machine.root[marks.rows].max())
    rows = rows[(marks.stands[rows] == 0) & (machine.u[rows] == 0.0)]
    given = marks.number, marks.rows, marks.stands[marks.rows]
    marks.blends, apart = blend(machine.samples, machine.at, rows, *given)
    nearer = apart < marks.apart[marks.blends.rows]
    marks.blends.drop(~nearer)
    rows = marks.blends.rows[nearer]
    looks.follow_others(rows, marks.apart[rows], apart[nearer])
    marks.number[rows], marks.apart[rows] = 0, apart[nearer]
