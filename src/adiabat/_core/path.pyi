# SPDX-License-Identifier: BSD-3-Clause
from typing import Final

import numpy as np
import numpy.typing as npt

BOUND: Final = 0
MARGIN: Final = 1
RISING: Final = 2
FALLING: Final = 3
LEAVING: Final = 4
RESTING: Final = 5

def next_breakpoint(
    u: npt.NDArray[np.float64],
    du: npt.NDArray[np.float64],
    r: npt.NDArray[np.float64],
    dr: npt.NDArray[np.float64],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    role: npt.NDArray[np.uint8],
    still: float,
    limit: float,
) -> tuple[float, int]: ...
def advance(
    u: npt.NDArray[np.float64],
    du: npt.NDArray[np.float64],
    r: npt.NDArray[np.float64],
    dr: npt.NDArray[np.float64],
    eta: float,
) -> None: ...
def largest_rate(dr: npt.NDArray[np.float64]) -> float: ...
