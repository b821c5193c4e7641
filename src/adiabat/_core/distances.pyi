# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

def scaled_distances(
    products: npt.NDArray[np.float64],
    half_a: npt.NDArray[np.float64],
    half_b: npt.NDArray[np.float64],
    factor: float,
) -> None: ...
