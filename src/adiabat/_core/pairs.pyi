# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from adiabat._core.panels import PanelMemory

_Floats = npt.NDArray[np.float64]

class Pairs:
    n: int
    def __init__(
        self,
        r: _Floats,
        u: _Floats,
        lo: _Floats,
        hi: _Floats,
        diagonal: _Floats,
        flat: float,
        bytes: int,
        ahead: int = 0,
        few: int = 0,
        jump: _Floats | None = None,
        memory: PanelMemory = ...,
        beside: list[_Floats] | tuple[()] = (),
    ) -> None: ...
    @property
    def u(self) -> _Floats: ...
    @property
    def middle(self) -> float: ...
    def given(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]: ...
    def write(
        self,
        places: npt.NDArray[np.int64],
        order: npt.NDArray[np.int64],
        tops: npt.NDArray[np.uintp],
        step: int,
    ) -> None: ...
    def descend(
        self,
        tolerance: float,
        steps: int,
        write: Callable[[npt.NDArray[np.int64], _Floats], None],
    ) -> bool: ...

def pairwise_descent(
    H: _Floats,
    g: _Floats,
    lo: _Floats,
    hi: _Floats,
    steps: int,
    flat: float,
    tolerance: float,
) -> _Floats: ...
