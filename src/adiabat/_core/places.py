# SPDX-License-Identifier: BSD-3-Clause
"""Places by number that grow and close up: how much room, and who fills the holes."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

# Room for one more in so many, and half as much again when it is used up.
SPARE = 8
LEAST = 64


def room_for(n: int, before: int) -> int:
    """Room for n, and for some more at once: the first after a fit should not have to wait."""
    return max(n + n // SPARE, before + before // 2, LEAST)


def enlarged(values: IntArray, used: int, n: int, nothing: int) -> IntArray:
    """The array with room for n entries; those beyond the used ones are `nothing`."""
    if n <= len(values):
        return values
    out = np.full(room_for(n, len(values)), nothing, dtype=np.int64)
    out[:used] = values[:used]
    return out


def fillers(gone: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """(tail, hole): which of n survivors from the end fill the places `gone` (ascending)."""
    left = n - len(gone)
    stays = np.ones(len(gone), dtype=bool)
    stays[gone[gone >= left] - left] = False
    return left + stays.nonzero()[0], gone[gone < left]
