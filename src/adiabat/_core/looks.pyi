# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from adiabat._core.room import Leaving
from adiabat.typing import FloatArray, IntArray

class Marks(Protocol):
    @property
    def number(self) -> npt.NDArray[np.int16]: ...
    @property
    def apart(self) -> FloatArray: ...
    @property
    def stands(self) -> npt.NDArray[np.int16]: ...
    @property
    def names(self) -> npt.NDArray[np.int16]: ...
    @property
    def lines(self) -> IntArray: ...
    @property
    def most_root(self) -> float: ...
    @property
    def blended(self) -> IntArray: ...
    @property
    def parts(self) -> npt.NDArray[np.int16]: ...
    @property
    def shares(self) -> FloatArray: ...

class Looks:
    r: FloatArray
    off: FloatArray
    rows: IntArray
    weights: FloatArray
    b: float
    drift: float
    step: float
    computed: IntArray | None
    n_bounded: int
    furthest: float
    common: float
    def __init__(self, r: FloatArray, u: FloatArray, b: float) -> None: ...
    def copy(self) -> Looks: ...
    def renumber(self, leaving: Leaving) -> None: ...
    def changed(self, u: FloatArray) -> tuple[IntArray, FloatArray]: ...
    def look(
        self,
        panels: Sequence[FloatArray],
        moved: FloatArray,
        lines: IntArray,
        rows: IntArray,
        change: FloatArray,
        f: FloatArray,
        u: FloatArray,
        t: FloatArray,
        lo: FloatArray,
        hi: FloatArray,
        root: FloatArray,
        b: float,
        marks: Marks | None = None,
    ) -> IntArray: ...
    def adopt(
        self, f: FloatArray, t: FloatArray, rows: IntArray, apart: FloatArray
    ) -> FloatArray: ...
    def conclude(self, computed: IntArray) -> None: ...
    def follow_others(
        self, rows: IntArray | slice, before: FloatArray, now: FloatArray
    ) -> None: ...
    def stale(self, rows: IntArray, apart: FloatArray) -> IntArray: ...

def nonzeros(u: FloatArray) -> IntArray: ...
def unbounded(
    r: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    root: FloatArray,
    apart: FloatArray,
    off: FloatArray,
    drift: float,
    size: float,
    b: float,
    scale: float,
    steps: FloatArray,
    number: npt.NDArray[np.int16] | None = None,
) -> tuple[IntArray, float, float]: ...
