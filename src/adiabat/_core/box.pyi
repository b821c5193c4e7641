# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

def coordinate_descent(
    H: npt.NDArray[np.float64],
    g: npt.NDArray[np.float64],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    sweeps: int,
    flat: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
