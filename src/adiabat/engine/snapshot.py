# SPDX-License-Identifier: BSD-3-Clause
"""What a machine was before a change: all of it, and the rows whose problem moved."""

from __future__ import annotations

from typing import NamedTuple

from adiabat._core.looks import Looks
from adiabat.certificate import Verdict
from adiabat.engine.landmarks import Landmarks
from adiabat.engine.row_change import NO_ROWS, NO_VALUES
from adiabat.typing import FloatArray, IntArray


class Before(NamedTuple):
    """What rows that stay had before a change of the problem: the path starts from there."""

    rows: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray


# Rows only came and went.
UNMOVED = Before(NO_ROWS, NO_VALUES, NO_VALUES, NO_VALUES)


class Snapshot(NamedTuple):
    """All of a machine's state, in plain arrays; the factor by the rows it holds."""

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
