# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

from adiabat._core.kernel_values import Formula, Rows

_Floats = npt.NDArray[np.float64]

class Among:
    n: int
    def __init__(self, formula: Formula, rows: Rows) -> None: ...
    def values(self, places: npt.NDArray[np.int64]) -> _Floats: ...

class AmongKnown(Among):
    def __init__(self, matrix: _Floats, places: npt.NDArray[np.int64]) -> None: ...
    def write(
        self, columns: npt.NDArray[np.int64], tops: npt.NDArray[np.uintp], step: int
    ) -> None: ...

def whole_matrix(formula: Formula, rows: Rows) -> _Floats: ...
