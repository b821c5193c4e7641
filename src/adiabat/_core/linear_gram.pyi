# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import numpy.typing as npt

from adiabat._core.gram import Gram

class LinearGram(Gram):
    def hold(self, X: npt.NDArray[np.float64]) -> None: ...
