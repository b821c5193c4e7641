# SPDX-License-Identifier: BSD-3-Clause
"""Weight, mean and variance of every column of rows that come and go, rounded only when read.

Kept are the exact sums of w, w x and w x^2. With those, forgetting is subtraction, and

    mean = S1 / S0          variance = (S0 S2 - S1^2) / S0^2

are quotients of integers, each rounded once: whatever came and went, they are to the last bit
those of the rows that are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from adiabat.preprocessing.exact_sums import MOST_ENTRIES, ExactSums
from adiabat.typing import FloatArray

_NAMES = ("weights", "values", "squares")


class Moments:
    """Exact sums of weights, weighted values and weighted squares by column."""

    def __init__(self, n_columns: int) -> None:
        self.weights, self.values, self.squares = (ExactSums(n_columns) for _ in _NAMES)

    def copy(self) -> Moments:
        """An independent copy."""
        twin = Moments(0)
        for name in _NAMES:
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def change(self, X: Any, weight: FloatArray | None, sign: int) -> None:
        """Add rows (sign = 1) or take them away (-1). NaN counts as no value at all."""
        n, d = X.shape
        whole = ExactSums(1)
        nothing = np.zeros(n, np.int64)
        whole.add(nothing, [np.ones(n) if weight is None else weight], sign=1)
        self.weights.add_everywhere(whole, sign)
        step = max(1, MOST_ENTRIES // max(1, d))
        for start in range(0, n, step):
            part = X[start : start + step]
            if sp.issparse(part):
                part = part.tocoo()
                rows, columns, x = part.row, part.col.astype(np.int64), part.data
            else:
                rows, columns = np.divmod(np.arange(part.size), d)
                x = part.reshape(-1)
            x = x.astype(np.float64)
            w = None if weight is None else weight[start : start + step][rows]
            empty = np.isnan(x)
            if empty.any():
                gone = np.ones(int(empty.sum())) if w is None else w[empty]
                self.weights.add(columns[empty], [gone], -sign)
                columns, x = columns[~empty], x[~empty]
                w = None if w is None else w[~empty]
            before = [] if w is None else [w]
            self.values.add(columns, [*before, x], sign)
            self.squares.add(columns, [*before, x, x], sign)

    def joined(self, other: Moments, sign: int = 1) -> Moments:
        """The sums over the rows of both, or (sign -1) over those without the rows of the other."""
        twin = self.copy()
        for name in _NAMES:
            getattr(twin, name).join(getattr(other, name), sign)
        return twin

    def fault(self) -> int | None:
        """The first column whose sums no rows can have, else None."""
        zipped = zip(
            self.weights.totals, self.values.totals, self.squares.totals, self._spreads(),
            strict=True,
        )  # fmt: skip
        for column, (weight, value, square, spread) in enumerate(zipped):
            if weight < 0 or square < 0 or spread < 0 or (weight == 0 and (value or square)):
                return column
        return None

    def seen(self) -> FloatArray:
        """Weight of the rows by column."""
        return np.array([_scaled(total, 1, self.weights.unit) for total in self.weights.totals])

    def mean(self) -> FloatArray:
        """Mean by column; NaN where there is no weight."""
        power = self.values.unit - self.weights.unit
        pairs = zip(self.values.totals, self.weights.totals, strict=True)
        return np.array([_scaled(value, weight, power) for value, weight in pairs])

    def variance(self) -> FloatArray:
        """Variance by column; NaN where there is no weight, infinite beyond float64."""
        power = self._spread_unit - 2 * self.weights.unit
        pairs = zip(self._spreads(), self.weights.totals, strict=True)
        return np.array([_scaled(spread, weight * weight, power) for spread, weight in pairs])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The sums as arrays."""
        return {
            key: array
            for name in _NAMES
            for key, array in getattr(self, name).to_arrays(f"scaler_{name}").items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], n_columns: int) -> Moments:
        """The sums back from what `to_arrays` gave; ValueError if no rows can have them."""
        moments = cls(0)
        for name in _NAMES:
            setattr(moments, name, ExactSums.from_arrays(f"scaler_{name}", arrays))
            if len(getattr(moments, name).totals) != n_columns:
                raise ValueError("the scaler has not as many features as the rows")
        if moments.fault() is not None:
            raise ValueError("the sums of the scaler are not those of any rows")
        return moments

    @property
    def _spread_unit(self) -> int:
        return min(self.weights.unit + self.squares.unit, 2 * self.values.unit)

    def _spreads(self) -> list[int]:
        """S0 S2 - S1^2 by column, in units of 2^_spread_unit; never negative (Cauchy-Schwarz)."""
        product = self.weights.unit + self.squares.unit - self._spread_unit
        square = 2 * self.values.unit - self._spread_unit
        sums = zip(self.weights.totals, self.values.totals, self.squares.totals, strict=True)
        return [((s0 * s2) << product) - ((s1 * s1) << square) for s0, s1, s2 in sums]


def _scaled(numerator: int, denominator: int, power: int) -> float:
    """Numerator / denominator * 2^power, rounded once."""
    if denominator == 0:
        return math.nan
    if power >= 0:
        numerator <<= power
    else:
        denominator <<= -power
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf
