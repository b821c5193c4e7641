# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from adiabat._core.gram import Gram

NO_LINE: Final = -1

class LineGram(Gram):
    @property
    def line_of(self) -> npt.NDArray[np.int64]: ...
    @property
    def sample_of(self) -> npt.NDArray[np.int64]: ...
    @property
    def read_at(self) -> npt.NDArray[np.int64]: ...
    def lacking(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
    def draw(
        self,
        samples: npt.NDArray[np.int64],
        values: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    ) -> None: ...
    def drop(self, lines: npt.NDArray[np.int64]) -> None: ...
