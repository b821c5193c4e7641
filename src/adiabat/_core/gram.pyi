# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

NO_SLOT: Final = -1
PANEL_WIDTH: Final = 128

class Gram:
    def __init__(self) -> None: ...
    @property
    def n(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def panels(self) -> list[npt.NDArray[np.float64]]: ...
    @property
    def slot_of(self) -> npt.NDArray[np.int64]: ...
    @property
    def owner(self) -> npt.NDArray[np.int64]: ...
    @property
    def stamp(self) -> npt.NDArray[np.int64]: ...
    @property
    def n_slots(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def append(
        self, k: int, slots: npt.NDArray[np.int64], block: npt.NDArray[np.float64]
    ) -> None: ...
    def write(
        self,
        rows: npt.NDArray[np.int64],
        slots: npt.NDArray[np.int64],
        block: npt.NDArray[np.float64],
    ) -> None: ...
    def claim(
        self,
        samples: npt.NDArray[np.int64],
        columns: Callable[[slice], npt.NDArray[np.float64]],
        groups: npt.NDArray[np.int64] | None = None,
    ) -> None: ...
    def claim_by(
        self,
        samples: npt.NDArray[np.int64],
        write: Callable[[npt.NDArray[np.uintp], int], None],
        groups: npt.NDArray[np.int64] | None = None,
    ) -> None: ...
    def gather_front(self, keep: npt.NDArray[np.bool_], tolerated: int, most: int) -> None: ...
    def release(self, keep: npt.NDArray[np.bool_], spare: int) -> None: ...
    def remove(
        self, samples: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def multiply(
        self,
        coef: npt.NDArray[np.float64],
        out: npt.NDArray[np.float64],
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None: ...
    def collect(
        self, values: npt.NDArray[np.float64], samples: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64] | None: ...
    def fork(self) -> Gram: ...
    def gather(
        self,
        rows: npt.NDArray[np.int64],
        slots: npt.NDArray[np.int64],
        out: npt.NDArray[np.float64],
    ) -> None: ...
