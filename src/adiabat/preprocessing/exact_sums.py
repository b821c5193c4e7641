# SPDX-License-Identifier: BSD-3-Clause
"""Sums of floats and of their products without any rounding, one for each column.

Floats are whole numbers times a power of two, and so are their sums and products. A sum is kept as
a Python integer in units of a power of two; nothing that was ever added can blur what is left after
it has been subtracted again, which holds for no float accumulator however many words it has.

A batch is reduced by NumPy first: products are split into floats that add up to them exactly
(Dekker's two-product, on mantissas, so that nothing overflows or vanishes), these into halves of 27
bits, and the halves are counted up by column and power of two, which float64 does without rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adiabat.statistics import halves
from adiabat.typing import FloatArray, IntArray

_LOW_BITS: Final = 26
# Powers of two are taken together in groups of 2^3: a half is below 2^27 and moves up by at most
# 2^7 within its group, so that 2^18 of them add up to less than 2^53.
_GROUP_BITS: Final = 3
MOST_ENTRIES: Final = 1 << 18
_POWERS: Final = 2.0 ** np.arange(1 << _GROUP_BITS)
# Three factors of 2^-1126 at least, and 2^1024 at most.
_LEAST_UNIT, _MOST_BYTES = -3400, 1024


class ExactSums:
    """One sum for each of `n` columns, `totals` in units of 2^unit."""

    def __init__(self, n: int) -> None:
        self.unit = 0
        self.totals = [0] * n

    def copy(self) -> ExactSums:
        """An independent copy."""
        twin = ExactSums(0)
        twin.unit, twin.totals = self.unit, self.totals.copy()
        return twin

    def add(self, columns: IntArray, factors: Sequence[FloatArray], sign: int) -> None:
        """Add (sign = 1) or take away (-1) the products of `factors`, each to its column."""
        for start in range(0, len(columns), MOST_ENTRIES):
            part = slice(start, start + MOST_ENTRIES)
            for term, exponent in _exact_terms([factor[part] for factor in factors]):
                self._count(columns[part], term, exponent, sign)

    def add_everywhere(self, amount: ExactSums, sign: int) -> None:
        """Add the only sum of `amount` to every column, or take it away."""
        self._lower_unit(amount.unit)
        value = sign * (amount.totals[0] << (amount.unit - self.unit))
        self.totals = [total + value for total in self.totals]

    def join(self, other: ExactSums, sign: int = 1) -> None:
        """Add (sign = 1) or take away (-1) the sums of other entries, column by column."""
        self._lower_unit(other.unit)
        left = other.unit - self.unit
        self.totals = [
            a + sign * (b << left) for a, b in zip(self.totals, other.totals, strict=True)
        ]

    def _count(self, columns: IntArray, term: FloatArray, exponent: IntArray, sign: int) -> None:
        """Add term * 2^exponent to the columns."""
        mantissa, shift = np.frexp(term)
        power = exponent + shift - 53
        group = power >> _GROUP_BITS
        lowest = int(group.min())
        up = power - (group << _GROUP_BITS)
        whole = mantissa * 2.0**53
        high = np.floor(whole * 2.0**-_LOW_BITS)
        low = whole - high * 2.0**_LOW_BITS
        n = len(self.totals)
        cell = (group - lowest) * n + columns
        base = lowest << _GROUP_BITS
        self._lower_unit(base)
        for half, bits in ((high, _LOW_BITS), (low, 0)):
            table = np.bincount(cell, half * _POWERS[up])
            filled = np.flatnonzero(table)
            shifts = (filled // n << _GROUP_BITS) + (base + bits - self.unit)
            for column, value, left in zip(
                (filled % n).tolist(), table[filled].tolist(), shifts.tolist(), strict=True
            ):
                self.totals[column] += (sign * int(value)) << left

    def _lower_unit(self, unit: int) -> None:
        if unit < self.unit:
            left = self.unit - unit
            self.totals = [total << left for total in self.totals]
            self.unit = unit

    # -- files -----------------------------------------------------------------------------------

    def to_arrays(self, name: str) -> dict[str, npt.NDArray[Any]]:
        """The sums as arrays; equal sums give equal arrays, whatever came and went before."""
        spare = min((_trailing_zeros(total) for total in self.totals if total), default=0)
        encoded = []
        for total in self.totals:
            value = total >> spare
            encoded.append(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        return {
            f"{name}_unit": np.array(self.unit + spare if any(self.totals) else 0, np.int64),
            f"{name}_sums": np.frombuffer(b"".join(encoded), np.uint8),
            f"{name}_ends": np.cumsum([len(item) for item in encoded], dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> ExactSums:
        """The sums back from what `to_arrays` gave; ValueError if that is not sound."""
        unit, data, ends = (arrays[f"{name}_{part}"] for part in ("unit", "sums", "ends"))
        lengths = np.diff(ends, prepend=0)
        if unit.shape != () or unit.dtype != np.int64 or data.dtype != np.uint8:
            raise ValueError(f"the {name} of the scaler are of the wrong type")
        if data.ndim != 1 or ends.ndim != 1 or ends.dtype != np.int64:
            raise ValueError(f"the {name} of the scaler have the wrong shape")
        if not (lengths > 0).all() or (lengths > _MOST_BYTES).any() or lengths.sum() != len(data):
            raise ValueError(f"the {name} of the scaler do not fit together")
        if not _LEAST_UNIT <= int(unit) <= -_LEAST_UNIT:
            raise ValueError(f"the {name} of the scaler are out of range")
        sums = cls(0)
        sums.unit = int(unit)
        starts = (ends - lengths).tolist()
        sums.totals = [
            int.from_bytes(data[start:end].tobytes(), "little", signed=True)
            for start, end in zip(starts, ends.tolist(), strict=True)
        ]
        return sums


def _exact_terms(factors: Sequence[FloatArray]) -> list[tuple[FloatArray, IntArray]]:
    """Terms and exponents whose term * 2^exponent add up to the products, exactly."""
    term, exponent = np.frexp(factors[0])
    terms, total = [term], exponent.astype(np.int64)
    for factor in factors[1:]:
        mantissa, exponent = np.frexp(factor)
        total = total + exponent
        terms = [part for term in terms for part in _two_product(term, mantissa)]
    return [(term, total) for term in terms if term.any()]


def _two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Product and its rounding error: a b = p + e exactly (Dekker), for |a|, |b| <= 1."""
    p = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    e = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)
    return p, e


def _trailing_zeros(value: int) -> int:
    return (value & -value).bit_length() - 1
