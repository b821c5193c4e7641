# SPDX-License-Identifier: BSD-3-Clause
from typing import Final

import numpy as np
import numpy.typing as npt

from adiabat.typing import FloatArray

LOW: Final = 0
HIGH: Final = 1
MARGIN: Final = 2
RISING: Final = 3
FALLING: Final = 4
LEAVING: Final = 5
RESTING: Final = 6
PINNED: Final = 7

def assign_roles(
    u: FloatArray,
    r: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    goal_lo: FloatArray,
    goal_hi: FloatArray,
    accuracy: FloatArray,
    in_margin: npt.NDArray[np.uint8],
    role: npt.NDArray[np.uint8],
    target: FloatArray,
) -> list[int]: ...
def rates(
    u: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    goal: tuple[FloatArray, FloatArray, FloatArray],
    role: npt.NDArray[np.uint8],
    target: FloatArray,
    d: float,
    balance: float,
) -> tuple[tuple[FloatArray, FloatArray, FloatArray, FloatArray], float, bool]: ...
def arrive(
    u: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    goal: tuple[FloatArray, FloatArray, FloatArray],
    role: npt.NDArray[np.uint8],
    in_margin: npt.NDArray[np.uint8],
    target: FloatArray,
) -> None: ...
def next_breakpoint(
    rows: npt.NDArray[np.int64],
    dr: FloatArray,
    u: FloatArray,
    du: FloatArray,
    r: FloatArray,
    lo: FloatArray,
    dlo: FloatArray,
    hi: FloatArray,
    dhi: FloatArray,
    role: npt.NDArray[np.uint8],
    scale: FloatArray,
    calm: float,
    still: float,
    limit: float,
) -> tuple[float, int]: ...
