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
def pairwise_descent(
    H: npt.NDArray[np.float64],
    g: npt.NDArray[np.float64],
    lo: npt.NDArray[np.float64],
    hi: npt.NDArray[np.float64],
    steps: int,
    flat: float,
    tolerance: float,
) -> npt.NDArray[np.float64]: ...

DONE: int
LIMIT: int

class Pairs:
    u: npt.NDArray[np.float64]
    rise: npt.NDArray[np.float64]
    fall: npt.NDArray[np.float64]
    n: int
    def __init__(
        self,
        r: npt.NDArray[np.float64],
        u: npt.NDArray[np.float64],
        lo: npt.NDArray[np.float64],
        hi: npt.NDArray[np.float64],
        diagonal: npt.NDArray[np.float64],
        flat: float,
    ) -> None: ...
    @property
    def padded(self) -> int: ...
    @property
    def span(self) -> float: ...
    def give(self, rows: npt.NDArray[np.integer], values: npt.NDArray[np.float64]) -> None: ...
    def candidates(self, wanted: int, most: int) -> npt.NDArray[np.int64]: ...
    def descend(self, tolerance: float, steps: int) -> tuple[int, int]: ...
