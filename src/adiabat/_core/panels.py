# SPDX-License-Identifier: BSD-3-Clause
"""Memory for panels of kernel columns; beyond a limit, that of a file (`engine/mapped`)."""

import numpy as np
import numpy.typing as npt

from adiabat._core.aligned import aligned_zeros
from adiabat._core.pages import take_large_pages


class PanelMemory:
    """The process's own memory."""

    #: Bytes that the user allowed in all; None if nothing was said.
    limit: float | None = None

    def register(self, gram: object) -> None:
        """Note a Gram that takes memory from here."""

    def zeros(
        self, shape: tuple[int, int], *beside: list[npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        """Zeros, beside lists of other arrays."""
        array = np.asarray(aligned_zeros(shape), np.float64)
        take_large_pages(array)
        return array

    def empty(
        self, shape: tuple[int, int], *beside: list[npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        """Numbers to be written, beside lists of other arrays."""
        array = np.empty(shape)
        take_large_pages(array)
        return array


#: What there is without a limit.
UNLIMITED = PanelMemory()
