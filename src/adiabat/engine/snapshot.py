# SPDX-License-Identifier: BSD-3-Clause
"""What a machine was before a change: all of it, and the rows whose problem moved."""

from __future__ import annotations

from typing import NamedTuple

from adiabat._core.looks import Looks
from adiabat.certificate import Verdict
from adiabat.engine.landmarks import Landmarks
from adiabat.typing import FloatArray, IntArray


class Before(NamedTuple):
    """What rows that stay had before a change of the problem: the path starts from there."""

    rows: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray


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
