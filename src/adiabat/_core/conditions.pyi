# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

def residuals_at(
    f: npt.NDArray[np.float64],
    column: int,
    lines: npt.NDArray[np.int64],
    b: float,
    t: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
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
    d: float,
    slack: float,
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
def aims_by_bound(
    u: npt.NDArray[np.float64],
    t: npt.NDArray[np.float64],
    root: npt.NDArray[np.float64],
    b: float,
    typical: float,
    usual: float,
    enough: float,
    part: float,
    most: float,
    few: float,
) -> npt.NDArray[np.float64] | None: ...
def imbalance(u: npt.NDArray[np.float64], d: float, slack: float) -> float: ...
def strength_of(
    root: npt.NDArray[np.float64],
    u: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64] | None = None,
) -> float: ...
def has_room(
    u: float,
    t: float,
    lo: float,
    hi: float,
    root: float,
    b: float,
    strength: float,
    roundings: float,
) -> bool: ...
def watch_nearest(
    r: npt.NDArray[np.float64],
    passed: npt.NDArray[np.uint8],
    step: int,
    size: int,
    watched: npt.NDArray[np.uint8],
) -> None: ...
