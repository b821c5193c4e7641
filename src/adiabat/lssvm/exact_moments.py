# SPDX-License-Identifier: BSD-3-Clause
"""M = sum s z z' over rows z = (phi, 1, t) without any rounding: the same bits in any order.

A column of a block of rows is cut into whole numbers of 21 bits, z = sum_i H_i 2^(e - 21 i), until
nothing is left. BLAS adds up products of such numbers without rounding (`exact_products`), and
those of pieces i and j have the unit 2^(e_a + e_b - 21 (i + j)). They are put into digits of 32
bits, which are integers: sums of them are exact, and so is what is left when rows are taken off.
Digits between -2^31 and 2^31 are unique, so that equal sums are equal arrays.

Where one machine can see all rows, `moments` with its 104 bits is enough, and faster. Here rows are
in many places, and which of them meet first is chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from adiabat._core.twofold import add_matrix
from adiabat.lssvm.exact_products import BLOCK_ROWS, two_product
from adiabat.lssvm.moments import Moments, parts_needed
from adiabat.typing import FloatArray, IntArray

_PIECE_BITS: Final = 21
_DIGIT_BITS: Final = 32
_HALF: Final = 1 << (_DIGIT_BITS - 1)
_MASK: Final = (1 << _DIGIT_BITS) - 1
# A sum of a block is below 2^53, and a level has few of them: three parts of 31 bits hold it.
_PART_BITS: Final = 31
_PART_MASK: Final = (1 << _PART_BITS) - 1
# Weights and products of two float64 are between these powers of two, sums of 2^64 of them, too.
_LEAST_POWER, _MOST_POWER = -3 * 1100, 3 * 1024 + 64


class ExactMoments:
    """M, for `width` features and `n_targets` targets; digits[k] counts 2^(32 (lowest + k))."""

    def __init__(self, width: int, n_targets: int) -> None:
        side = width + 1 + n_targets
        self.width, self.n_targets = width, n_targets
        self.lowest = 0
        self.digits = np.zeros((0, side, side), np.int64)
        self.n = 0
        self.n_heavy = 0  # of them, rows of positive weight

    def copy(self) -> ExactMoments:
        """An independent copy."""
        return self.arranged(list(range(self.n_targets)))

    def add(self, phi: FloatArray, t: FloatArray, s: FloatArray | None) -> None:
        """Take rows in; s = None stands for weights of one."""
        for start in range(0, len(phi), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            Z = np.hstack([phi[part], np.ones((len(phi[part]), 1)), t[part]])
            if s is None:
                self._add_product(Z, Z)
            else:
                for term in two_product(s[part, None], Z):
                    self._add_product(Z, term)
        self.n += len(phi)
        self.n_heavy += len(phi) if s is None else int(np.count_nonzero(s))
        self._carry()

    def join(self, other: ExactMoments, sign: int) -> None:
        """Add (sign = 1) or take off (sign = -1) the moments of other rows."""
        if len(other.digits):
            first = other.lowest
            self._reach(first, first + len(other.digits))
            start = first - self.lowest
            self.digits[start : start + len(other.digits)] += sign * other.digits
        self.n += sign * other.n
        self.n_heavy += sign * other.n_heavy
        self._carry()

    def arranged(self, columns: Sequence[int | None]) -> ExactMoments:
        """A copy with the targets in another order; None stands for a target never seen."""
        return self.chosen(range(self.width), columns)

    def chosen(self, features: Sequence[int | None], targets: Sequence[int | None]) -> ExactMoments:
        """A copy with features and targets from these places; None for one never seen."""
        twin = ExactMoments(len(features), len(targets))
        twin.lowest, twin.n, twin.n_heavy = self.lowest, self.n, self.n_heavy
        first = self.width + 1
        wanted = [*features, self.width, *(None if c is None else first + c for c in targets)]
        target = [place for place, column in enumerate(wanted) if column is not None]
        source = [column for column in wanted if column is not None]
        twin.digits = np.zeros((len(self.digits), len(wanted), len(wanted)), np.int64)
        twin.digits[np.ix_(range(len(self.digits)), target, target)] = self.digits[
            np.ix_(range(len(self.digits)), source, source)
        ]
        return twin

    def whole(self) -> tuple[npt.NDArray[np.object_], int]:
        """M as Python's whole numbers, and the power of two that is their unit."""
        entries = np.zeros(self.digits.shape[1:], object)
        for digit in self.digits[::-1]:
            entries = (entries << _DIGIT_BITS) + digit.astype(object)
        return entries, _DIGIT_BITS * self.lowest

    def rounded(self, rho: float) -> Moments:
        """The moments to as many bits as `rho` asks for, a function of M alone."""
        moments = Moments(self.width, self.n_targets)
        moments.n, moments.n_heavy = self.n, self.n_heavy
        with np.errstate(over="ignore", invalid="ignore"):  # `parts_needed` refuses what overflows
            terms = [
                np.triu(np.ldexp(digit.astype(np.float64), _DIGIT_BITS * (self.lowest + k)))
                for k, digit in enumerate(self.digits)
            ]
            size = float(np.trace(sum(reversed(terms), np.zeros_like(moments.hi))))
        moments.widen(parts_needed(size, rho))
        before = moments.diagonal()
        for term in reversed(terms):
            add_matrix(moments.hi, moments.lo, term, 1.0, moments.rest)
        moments.count_rounding(len(terms), before)
        return moments

    def same_as(self, other: ExactMoments) -> bool:
        """Whether both are the moments of the same sums, to the last bit."""
        return (
            self.lowest == other.lowest
            and self.n == other.n
            and np.array_equal(self.digits, other.digits)
        )

    def is_sound(self) -> bool:
        """Whether these are digits that sums of float64 can have."""
        least, most = _DIGIT_BITS * self.lowest, _DIGIT_BITS * (self.lowest + len(self.digits))
        within = _LEAST_POWER <= least <= most <= _MOST_POWER
        return within and bool((np.abs(self.digits) <= _HALF).all())

    # -- within ----------------------------------------------------------------------------------

    def _add_product(self, A: FloatArray, B: FloatArray) -> None:
        """Add A'B, the same for its mirror image."""
        ours, e_a = _pieces(A)
        theirs, e_b = (ours, e_a) if B is A else _pieces(B)
        levels: dict[int, IntArray] = {}
        for i, H in ours:
            for j, G in theirs:
                if B is not A:
                    product = H.T @ G
                elif j > i:
                    continue
                else:
                    product = H.T @ G
                    product = product if i == j else product + product.T
                # a sum of a few numbers below 2^53 is an integer below 2^63
                whole = product.astype(np.int64)
                levels[i + j] = levels[i + j] + whole if i + j in levels else whole
        exponent = e_a[:, None] + e_b[None, :]
        for level, whole in levels.items():
            self._put(whole, exponent - _PIECE_BITS * level)

    def _put(self, whole: IntArray, exponent: IntArray) -> None:
        """Add whole * 2^exponent."""
        side = np.arange(len(whole))
        rows, columns = side[:, None], side[None, :]
        for part in range(3):
            value = whole >> (_PART_BITS * part)
            if part < 2:
                value &= _PART_MASK
            if not value.any():
                continue
            place, shift = np.divmod(exponent + _PART_BITS * part, _DIGIT_BITS)
            value <<= shift
            self._reach(int(place.min()), int(place.max()) + 2)
            place -= self.lowest
            self.digits[place, rows, columns] += value & _MASK
            self.digits[place + 1, rows, columns] += value >> _DIGIT_BITS

    def _reach(self, first: int, last: int) -> None:
        """Have digits from first to last."""
        if not len(self.digits):
            self.lowest = first
        below, above = max(0, self.lowest - first), max(0, last - self.lowest - len(self.digits))
        if below or above:
            self.digits = np.pad(self.digits, ((below, above), (0, 0), (0, 0)))
            self.lowest -= below

    def _carry(self) -> None:
        """Digits between -2^31 and 2^31, none of them zero everywhere at either end."""
        self.digits = np.pad(self.digits, ((0, 2), (0, 0), (0, 0)))
        for k in range(len(self.digits) - 1):
            over = (self.digits[k] + _HALF) >> _DIGIT_BITS
            self.digits[k] -= over << _DIGIT_BITS
            self.digits[k + 1] += over
        used = np.flatnonzero(self.digits.any(axis=(1, 2)))
        if len(used):
            self.digits = self.digits[used[0] : used[-1] + 1].copy()
            self.lowest += int(used[0])
        else:
            self.digits, self.lowest = self.digits[:0].copy(), 0


def _pieces(Z: FloatArray) -> tuple[list[tuple[int, FloatArray]], IntArray]:
    """Numbered pieces H_i of whole numbers, and e of each column: Z = sum H_i 2^(e - 21 i)."""
    largest = np.abs(Z).max(axis=0, initial=0.0)
    _, exponent = np.frexp(largest)
    e = exponent.astype(np.int64) - _PIECE_BITS
    pieces, rest, number = [], Z, 0
    while rest.any():
        # rint leaves at most half a unit, which the next piece has in 20 bits and a sign
        piece = np.rint(np.ldexp(rest, (_PIECE_BITS * number - e).astype(np.int32)))
        if piece.any():
            rest = rest - np.ldexp(piece, (e - _PIECE_BITS * number).astype(np.int32))
            pieces.append((number, piece))
        number += 1
    return pieces, e
