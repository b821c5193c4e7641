# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence

from adiabat.typing import FloatArray, IntArray

def weigh(panels: Sequence[FloatArray], weights: FloatArray, out: FloatArray) -> None: ...
def weigh_rows(
    panels: Sequence[FloatArray], weights: FloatArray, rows: IntArray, out: FloatArray
) -> None: ...
def adds_nothing(
    r: FloatArray, u: FloatArray, t: FloatArray, lo: FloatArray, hi: FloatArray, size: float
) -> bool: ...
def typical_target(t: FloatArray, b: float) -> float: ...
def verdict(
    r: FloatArray,
    u: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    d: float,
    b: float,
    tol: float,
    roundings: float,
    sizes: FloatArray | None = None,
    rows: IntArray | None = None,
    common: float = -1.0,
) -> tuple[float, float, float, int, float, float, float, bool]: ...
