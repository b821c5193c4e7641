# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from adiabat.typing import FloatArray, IntArray

class Looks:
    r: FloatArray
    u: FloatArray
    b: float
    seen: FloatArray
    slack: FloatArray
    drift: float
    before: float
    computed: IntArray | None
    n_bounded: int
    furthest: float
    def __init__(self, r: FloatArray, u: FloatArray, b: float) -> None: ...
    def copy(self) -> Looks: ...
    def changed(self, u: FloatArray) -> tuple[IntArray, FloatArray]: ...
    def look(
        self,
        panels: Sequence[FloatArray],
        moved: FloatArray,
        lines: IntArray,
        rows: IntArray,
        u: FloatArray,
        t: FloatArray,
        lo: FloatArray,
        hi: FloatArray,
        root: FloatArray,
        b: float,
        marks: tuple[npt.NDArray[np.int16], FloatArray, npt.NDArray[np.int16], IntArray]
        | None = None,
    ) -> IntArray: ...
    def adopt(self, f: FloatArray, t: FloatArray, rows: IntArray) -> FloatArray: ...
    def write_down(self, apart: FloatArray, rows: IntArray) -> None: ...
    def stale(self, rows: IntArray) -> IntArray: ...

def unbounded(
    r: FloatArray,
    u: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    root: FloatArray,
    apart: FloatArray,
    seen: FloatArray,
    slack: FloatArray,
    drift: float,
    size: float,
    b: float,
    scale: float,
    steps: FloatArray,
    number: npt.NDArray[np.int16] | None = None,
) -> tuple[IntArray, float]: ...
