# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

def delete_entries(
    array: npt.NDArray[Any], gone: npt.NDArray[np.int64], more: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]: ...
def remove_entries(array: npt.NDArray[Any], gone: npt.NDArray[np.int64]) -> int: ...
def rename(
    positions: npt.NDArray[np.int64],
    old: npt.NDArray[np.int64],
    new: npt.NDArray[np.int64],
    once: bool = ...,
) -> None: ...
def rows_at(at: npt.NDArray[np.int64], marked: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]: ...
def first_at(at: npt.NDArray[np.int64], position: int) -> int: ...
def has_codes(
    target: npt.NDArray[np.int64], codes: Collection[int], gone: Iterable[int] = ...
) -> bool: ...
def codes_in(target: npt.NDArray[np.int64]) -> list[int]: ...
def common_size(t: npt.NDArray[np.float64]) -> float: ...
def typical_size(t: npt.NDArray[np.float64]) -> float: ...
def roundings(
    u: npt.NDArray[np.float64],
    t: npt.NDArray[np.float64],
    root: npt.NDArray[np.float64],
    b: float,
    typical: float,
    usual: float,
    enough: float,
    out: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.float64] | None = None,
) -> bool: ...
def aims(
    rounding: npt.NDArray[np.float64],
    t: npt.NDArray[np.float64],
    typical: float,
    part: float,
    most: float,
    few: float,
) -> npt.NDArray[np.float64]: ...
def are_fine(
    r: npt.NDArray[np.float64],
    u: npt.NDArray[np.float64],
    t: npt.NDArray[np.float64],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    root: npt.NDArray[np.float64],
    b: float,
    typical: float,
    usual: float,
    enough: float,
    part: float,
    most: float,
    few: float,
    fine: float,
) -> bool: ...
def within(
    r: npt.NDArray[np.float64],
    t: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    typical: float,
    fine: float,
) -> bool: ...
def largest_ratio(found: npt.NDArray[np.float64], allowed: npt.NDArray[np.float64]) -> float: ...
def outside(
    u: npt.NDArray[np.float64], lo: npt.NDArray[np.float64], hi: npt.NDArray[np.float64]
) -> float: ...
def violations(
    r: npt.NDArray[np.float64],
    u: npt.NDArray[np.float64],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
def nonzero(values: npt.NDArray[np.float64]) -> int: ...
def mark(
    marked: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], u: npt.NDArray[np.float64]
) -> None: ...
def optima(
    U: npt.NDArray[np.float64],
    r: npt.NDArray[np.float64],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    room: npt.NDArray[np.float64],
    enough: npt.NDArray[np.float64],
    owner: npt.NDArray[np.int64],
    removed: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]: ...
def last_outside(
    r: npt.NDArray[np.float64], floor: npt.NDArray[np.float64], ceiling: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]: ...
