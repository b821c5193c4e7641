# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that begin at a cache line."""

import numpy as np
import numpy.typing as npt

LINE = 64  # bytes


def aligned_zeros(
    shape: tuple[int, ...] | int, dtype: npt.DTypeLike = np.float64
) -> npt.NDArray[np.generic]:
    """An array of zeros whose first entry is at the beginning of a cache line."""
    kind = np.dtype(dtype)
    size = 1
    for extent in (shape,) if isinstance(shape, int) else shape:
        size *= extent
    room = np.zeros(size + LINE // kind.itemsize, dtype=kind)
    first = -room.__array_interface__["data"][0] % LINE // kind.itemsize
    return room[first : first + size].reshape(shape)
