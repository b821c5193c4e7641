# SPDX-License-Identifier: BSD-3-Clause
from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

class Rows:
    n: int
    n_features: int
    nnz: int
    norms: _Floats | None
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def sparse(self) -> bool: ...
    @staticmethod
    def dense(X: _Floats, positions: Any = None) -> Rows: ...
    @staticmethod
    def by_entries(
        value: _Floats,
        feature: npt.NDArray[np.int32],
        start: npt.NDArray[np.integer[Any]],
        length: npt.NDArray[np.integer[Any]],
        n_features: int,
    ) -> Rows: ...

class Formula:
    def __init__(
        self, name: str, gamma: float = 0.0, degree: float = 3, coef0: float = 0.0
    ) -> None: ...
    def block(self, A: Rows, B: Rows) -> _Floats: ...
    def diagonal(self, rows: Rows) -> _Floats: ...
    def write(self, rows: Rows, columns: Rows, tops: npt.NDArray[np.uintp], step: int) -> None: ...

def squared_norms(rows: Rows) -> _Floats: ...
def multiply(A: npt.ArrayLike, W: npt.ArrayLike) -> _Floats: ...

LINEAR: Formula
