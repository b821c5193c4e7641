# SPDX-License-Identifier: BSD-3-Clause
"""How often each value stands in each column, of rows that come and go.

Minimum, quantiles, mode and categories of a column depend on its values and not on their order. So
the counts are all that has to be kept: forgetting is subtraction, and a transformer fitted to the
values in sorted order is, to the last bit, the same whatever came and went before.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.errors import NotLearnedError

IntArray = npt.NDArray[np.int64]

_NO_COUNTS: IntArray = np.empty(0, np.int64)


class Tally:
    """Values of one column and how often each is there; it is replaced, never written to.

    `values` are sorted, without repetition: float64, or Python objects of which None and NaN come
    last.
    """

    def __init__(self, values: npt.NDArray[Any] | None = None, counts: IntArray = _NO_COUNTS):
        self.values: npt.NDArray[Any] = np.empty(0) if values is None else values
        self.counts = counts

    def changed(self, column: npt.NDArray[Any], sign: int) -> Tally:
        """The tally with the values of a column (sign = 1), or without them (-1)."""
        if column.dtype != object and self.values.dtype != object:
            values = np.concatenate([self.values, column.astype(np.float64)])
            amount = np.concatenate([self.counts, np.full(len(column), sign, np.int64)])
            merged, place = np.unique(values, return_inverse=True)
            total = np.bincount(place, amount, len(merged)).astype(np.int64)
            return Tally(*_without_zeros(merged, total))
        held = zip(self.values.tolist(), self.counts.tolist(), strict=True)
        found = {key_of(value): n for value, n in held}
        for value in column.tolist():
            key = key_of(value)
            found[key] = found.get(key, 0) + sign
        ordered = sorted(found)
        objects = np.empty(len(ordered), dtype=object)
        objects[:] = [key[2] for key in ordered]
        return Tally(*_without_zeros(objects, np.array([found[key] for key in ordered], np.int64)))

    @property
    def total(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def column(self) -> npt.NDArray[Any]:
        """All values in sorted order."""
        repeated: npt.NDArray[Any] = np.repeat(self.values, self.counts)
        return repeated


def count(tallies: Sequence[Tally], X: npt.NDArray[Any], sign: int) -> list[Tally]:
    """The tallies of all columns after rows have come (sign = 1) or gone (-1)."""
    changed = [tally.changed(X[:, j], sign) for j, tally in enumerate(tallies)]
    for j, tally in enumerate(changed):
        if len(tally.counts) and tally.counts.min() < 0:
            raise NotLearnedError(
                f"X has rows that were not learned: column {j} has a value more often than it was "
                "learned; forget rows as they were given"
            )
    return changed


def table(tallies: Sequence[Tally]) -> npt.NDArray[Any]:
    """Rows that have the values of the tallies in their columns, each column sorted."""
    columns = [tally.column() for tally in tallies]
    X = np.empty(
        (len(columns[0]), len(columns)),
        dtype=object if any(column.dtype == object for column in columns) else np.float64,
    )
    for j, column in enumerate(columns):
        X[:, j] = column
    return X


def _without_zeros(values: npt.NDArray[Any], counts: IntArray) -> tuple[npt.NDArray[Any], IntArray]:
    there = counts != 0
    return values[there], counts[there]


def key_of(value: Any) -> tuple[int, str, Any]:
    """What values are sorted and compared by: numbers, other types by name, None, NaN."""
    if value is None:
        return 2, "", None
    if isinstance(value, (bool, int, float)):
        return (0, "", value) if value == value else (3, "", np.nan)  # all NaN are one value
    if not isinstance(value, Hashable):
        raise TypeError(
            f"X has a {type(value).__name__} in it; an argument must be uniformly strings or "
            "numbers"
        )
    return 1, type(value).__name__, value
