# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from adiabat._core.factor import Factor
from adiabat._core.gram import Gram

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

class Motion:
    def __init__(
        self,
        gram: Gram,
        factor: Factor,
        columns: Callable[[IntArray], IntArray],
        at: IntArray,
        diagonal: FloatArray,
        state: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
        rates: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        role: npt.NDArray[np.uint8],
        in_margin: npt.NDArray[np.bool_],
        b: float,
        dd: float,
        watch: int,
        kept: int = ...,
    ) -> None: ...
    @property
    def b(self) -> float: ...
    @property
    def db(self) -> float: ...
    @property
    def du(self) -> FloatArray: ...
    @property
    def remaining(self) -> float: ...
    @property
    def eta(self) -> float: ...
    @property
    def row(self) -> int: ...
    @property
    def event(self) -> str: ...
    @property
    def breakpoints(self) -> int: ...
    @property
    def idle(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def watched(self) -> IntArray: ...
    def ask(self, row: int) -> None: ...
    def catch_up(self) -> None: ...
    def run(self, stretches: int, patience: int) -> bool: ...
    def join(self, row: int) -> bool: ...
