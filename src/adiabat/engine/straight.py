# SPDX-License-Identifier: BSD-3-Clause
"""Whether row i of a machine stands for sample i: then a row is found, and goes, without a pass.

So it is where each sample has one row, as in a C-SVC of two classes, until a label is corrected.
When samples go, the last take their positions (`Samples.remove`), and rows do the same.
"""

from __future__ import annotations

import numpy as np

from adiabat._core.room import Leaving
from adiabat._core.rows import ascending, rename, rows_at
from adiabat.typing import IntArray

# Rows from which on the last fill the places of those that go; with fewer, all behind move up.
FILLED = 4_096


class Straight:
    """Follows the rows of one machine."""

    def __init__(self) -> None:
        self.holds = True
        self._filled: Leaving | None = None  # rows that went, of samples that are still there

    def come(self, n: int, at: IntArray) -> None:
        """Rows of samples at these positions have come, as the n-th and following ones."""
        self.holds = self.holds and _are_same(at, np.arange(n, n + len(at)))

    def leave(self, gone: IntArray, n: int) -> Leaving:
        """How the others of n rows close up once some (ascending) are gone."""
        filled, left = self.holds and n >= FILLED, n - len(gone)
        leaving = Leaving(gone, n, filled)
        self.holds = self.holds and bool(gone[0] >= left)
        self._filled = leaving if filled and not self.holds else None
        return leaving

    def follow(self, at: IntArray, tail: IntArray, hole: IntArray) -> None:
        """Samples at `tail` have moved to `hole`; where rows have done the same, none is sought."""
        filled, self._filled = self._filled, None
        if filled is not None and _are_same(filled.tail, tail) and _are_same(filled.hole, hole):
            at[hole] = hole
            self.holds = True
        elif len(tail):
            rename(at, tail, hole)
            self.holds = False

    def rows_of(self, at: IntArray, positions: IntArray, n_samples: int) -> IntArray:
        """All rows, ascending, that stand for samples at positions."""
        if self.holds:
            rows: IntArray = ascending(positions)
            return rows[: rows.searchsorted(len(at))]
        marked = np.zeros(n_samples, dtype=np.uint8)
        marked[positions] = 1
        found: IntArray = rows_at(at, marked)
        return found

    def rows_of_some(self, at: IntArray, positions: IntArray, n_samples: int) -> IntArray:
        """The same in any order, of samples all of which have rows."""
        return positions if self.holds else self.rows_of(at, positions, n_samples)


def rows_in_turn(at: IntArray, positions: IntArray) -> IntArray:
    """Rows that stand for samples at positions; k times the same, its first k rows."""
    order = np.argsort(at, kind="stable")
    place = np.arange(len(positions))
    starts = np.ones(len(positions), dtype=bool)
    starts[1:] = positions[1:] != positions[:-1]
    repeat = place - np.maximum.accumulate(np.where(starts, place, 0))
    rows: IntArray = order[np.searchsorted(at[order], positions) + repeat]
    return rows


def _are_same(rows: IntArray, others: IntArray) -> bool:
    return len(rows) == len(others) and bool((rows == others).all())
