# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

class Room:
    def extended(
        self,
        name: Hashable,
        array: npt.NDArray[Any],
        values: npt.NDArray[Any],
        copied: bool = False,
    ) -> npt.NDArray[Any]: ...
    def extend_all(
        self,
        owner: Any,
        names: tuple[str, ...],
        values: tuple[npt.NDArray[Any], ...],
        copied: tuple[str, ...] = (),
    ) -> None: ...

class Leaving:
    gone: npt.NDArray[np.int64]
    tail: npt.NDArray[np.int64]
    hole: npt.NDArray[np.int64]
    filled: bool
    def __init__(self, gone: npt.NDArray[np.int64], n: int, filled: bool) -> None: ...
    def close(self, owner: Any, names: Sequence[str]) -> None: ...
    def renumber(self, rows: npt.NDArray[np.int64]) -> None: ...
    def place_of(self, row: int) -> int: ...

def removed(array: npt.NDArray[Any], gone: npt.NDArray[np.int64]) -> npt.NDArray[Any]: ...
def moved(
    array: npt.NDArray[Any], tail: npt.NDArray[np.int64], hole: npt.NDArray[np.int64], left: int
) -> npt.NDArray[Any]: ...
def extended(
    array: npt.NDArray[Any], values: Any, spare: int, buffer: npt.NDArray[Any] | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]: ...
def remove_entries(array: npt.NDArray[Any], gone: npt.NDArray[np.int64]) -> int: ...
