# SPDX-License-Identifier: BSD-3-Clause
"""What a machine was before a change: all of it, and the rows whose problem moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from adiabat._core.looks import Looks
from adiabat.certificate import Verdict
from adiabat.engine.landmarks import Landmarks
from adiabat.engine.row_change import NO_ROWS, NO_VALUES
from adiabat.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adiabat.engine.machine import Machine


class Before(NamedTuple):
    """What rows that stay had before a change of the problem: the path starts from there."""

    rows: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray


# Rows only came and went.
UNMOVED = Before(NO_ROWS, NO_VALUES, NO_VALUES, NO_VALUES)


class Snapshot(NamedTuple):
    """All of a machine's state, in plain arrays; the factor by the rows it holds.

    The arrays are the machine's own: `begin` replaces what changes. But it writes to the boxes of
    rows to remove, which are therefore kept here.
    """

    at: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray
    u: FloatArray
    r: FloatArray
    margin: IntArray
    b: float
    d: float
    verdict: Verdict
    looks: Looks | None = None
    is_bounded: bool = False
    small_shift: bool = False
    landmarks: Landmarks | None = None
    removed: IntArray = NO_ROWS  # rows to remove, and their boxes
    removed_lo: FloatArray = NO_VALUES
    removed_hi: FloatArray = NO_VALUES

    @classmethod
    def of(cls, m: Machine, remove: IntArray) -> Snapshot:
        """That of a machine from which these rows are to be removed."""
        return cls(
            m.at, m.t, m.lo, m.hi, m.u, m.held_r, m.margin.copy(), m.b, m.d, m.verdict, m.looks,
            m.is_bounded, m.small_shift, m.landmarks, remove, m.lo[remove], m.hi[remove],
        )  # fmt: skip

    def boxes(self) -> tuple[FloatArray, FloatArray]:
        """Copies of lo and hi."""
        lo, hi = self.lo.copy(), self.hi.copy()
        lo[self.removed], hi[self.removed] = self.removed_lo, self.removed_hi
        return lo, hi
