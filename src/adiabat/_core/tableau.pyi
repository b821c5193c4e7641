# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]

GIVEN_UP: int
ARRIVED: int
DECIDED: int
MISSING: int

class Removals:
    breakpoints: int
    missing: int
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
    def without(
        self, rows: _Ints, dd: float, u: _Floats, ask: bool, t: float
    ) -> tuple[int, float, float]: ...
