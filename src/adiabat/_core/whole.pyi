# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

def add_whole(
    phi: npt.NDArray[np.float64],
    t: npt.NDArray[np.float64],
    rows: npt.NDArray[np.float32],
    part: npt.NDArray[np.float32],
    squares: npt.NDArray[np.int32],
    total: npt.NDArray[np.float64],
) -> int: ...
