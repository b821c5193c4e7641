# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]

ARRIVED: int
DECIDED: int
MISSING: int

class Pivots:
    remaining: float
    breakpoints: int
    missing: int
    n_pivots: int
    z: _Floats
    x: _Floats
    role: npt.NDArray[np.uint8]
    def __init__(
        self,
        columns: _Floats,
        slot: _Ints,
        u: _Floats,
        r: _Floats,
        lo: _Floats,
        hi: _Floats,
        role: npt.NDArray[np.uint8],
        least: _Floats,
        most: int,
    ) -> None: ...
    def use(self, columns: _Floats, slot: _Ints) -> None: ...
    def remove(
        self,
        rows: _Ints,
        first: _Ints,
        width: int,
        own: _Floats,
        dd: _Floats,
        ask: bool,
        t: _Floats,
        u: _Floats,
    ) -> tuple[_Ints, _Floats, _Floats, _Ints, _Ints]: ...
    def set_out(self, x: _Floats, length: float) -> None: ...
    def stretch(self) -> int: ...
    def meet(self, row: int) -> bool: ...
    def admit(self, column: _Floats, row: _Floats, least: float) -> None: ...
    def enter(self, r: float, lo: float, hi: float, way: float, dd: float, stops: bool) -> None: ...
    def arrive(self, u: float, dd: float) -> bool: ...
    newcomer: tuple[int, float]
    def weigh(self, u: _Floats) -> None: ...
