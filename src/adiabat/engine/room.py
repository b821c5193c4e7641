# SPDX-License-Identifier: BSD-3-Clause
"""Arrays with an entry for each row or sample that grow and shrink where they are.

An array has room behind its last entry, so that one row more or less does not copy all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.places import fillers
from adiabat._core.rows import extended, remove_entries, rename
from adiabat.typing import IntArray

# Room for one more in so many.
SPARE = 8


class Room:
    """The buffers behind the arrays of one owner, by name.

    An array that was replaced by another is no longer its buffer's, and is copied when it grows.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, npt.NDArray[Any]] = {}

    def extended(
        self, name: str, array: npt.NDArray[Any], values: npt.NDArray[Any], copied: bool = False
    ) -> npt.NDArray[Any]:
        """The array with values at its end, in the same buffer unless it is full.

        With `copied` it is in a new one, and `array` stays as it is.
        """
        buffer = None if copied else self._buffers.get(name)
        own = buffer if buffer is not None and array.base is buffer else None
        self._buffers[name], out = extended(array, values, SPARE, own)
        return out

    def extend_all(
        self, owner: Any, names: Sequence[str], values: Sequence[npt.NDArray[Any]], copied: bool
    ) -> None:
        """Put values at the end of the arrays with these names that an owner has."""
        for name, more in zip(names, values, strict=True):
            key = f"{type(owner).__name__}.{name}"
            setattr(owner, name, self.extended(key, getattr(owner, name), more, copied))


class Leaving:
    """Rows (ascending) that go, of n, and how others close up: all behind them move up, or, if
    they are to be `filled`, some from the end take the places.
    """

    def __init__(self, gone: IntArray, n: int, filled: bool) -> None:
        self.gone, self.filled = gone, filled
        self._left = n - len(gone)
        self.tail, self.hole = fillers(gone, n) if filled else (gone[:0], gone[:0])

    def close(self, owner: Any, names: Sequence[str]) -> None:
        """Take the rows out of the arrays with these names that an owner has."""
        for name in names:
            array = getattr(owner, name)
            if self.filled:
                array = moved(array, self.tail, self.hole, self._left)
            else:
                array = removed(array, self.gone)
            setattr(owner, name, array)

    def renumber(self, rows: IntArray) -> None:
        """Give rows, none of which goes, the numbers that they have afterwards."""
        if self.filled:
            rename(rows, self.tail, self.hole)
        else:
            rows -= np.searchsorted(self.gone, rows)


def removed(array: npt.NDArray[Any], gone: IntArray) -> npt.NDArray[Any]:
    """The array without the entries at `gone` (ascending), which are overwritten."""
    return array[: remove_entries(array, gone)]


def moved(array: npt.NDArray[Any], tail: IntArray, hole: IntArray, left: int) -> npt.NDArray[Any]:
    """The first `left` entries, once those at `tail` have taken the places `hole`."""
    array[hole] = array[tail]
    array[left:] = 0
    return array[:left]
