# SPDX-License-Identifier: BSD-3-Clause
"""What a least-squares machine remembers of its rows: their second moments, to 104 bits or more.

A row is z = (phi, 1, t): features, the constant, and its targets. The moments are M = sum s z z',
one symmetric matrix that holds phi phi', the sums of phi, phi t' and t t' at once. Its blocks are
all that w depends on (LKW19 (7)), and none of the rows can be read from it once there are many.

Taking rows off again loses no digits that matter: M has 104 bits, in two float64 matrices hi + lo
of which only the upper triangles are used. A row so large that 104 bits would lose digits of the
others brings further matrices, `rest`, of 52 bits each: as many as it takes for the row to leave no
trace when it is taken off again, up to 14 parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from adiabat._core.expansions import MOST_PARTS
from adiabat._core.twofold import add_matrix, add_outer, add_twofold
from adiabat.lssvm.exact_products import BLOCK_ROWS, SmallGram, cut_error, gram_terms
from adiabat.typing import FloatArray

# Up to so many rows, one outer product each is faster than the passes over M of a block.
_ONE_BY_ONE: Final = 40
# c cuts err by 2^-(53 + 21 c) of the sum of squares; over rho, that may be this much.
_ENOUGH: Final = 1e-13
_CUTS: Final = range(1, 7)
# Bits of a part, and bits of M below rho: 2^-50 is 1e-15.
_PART_BITS: Final = 52
_BITS_BELOW_RHO: Final = 50


class NotConverged(ArithmeticError):
    """What was asked for cannot be computed as exactly as it was asked for."""


def parts_needed(size: float, rho: float) -> int:
    """Parts of a number of this size that reach far enough below rho."""
    if not math.isfinite(size):
        raise NotConverged("sums of squares overflow")
    bits = _BITS_BELOW_RHO + max(0.0, math.log2(max(size, rho)) - math.log2(rho))
    return max(2, math.ceil(bits / _PART_BITS))


class Moments:
    """M = sum s z z' over rows z = (phi, 1, t), for `width` features and `n_targets` targets."""

    def __init__(self, width: int, n_targets: int) -> None:
        self.width = width
        self.n_targets = n_targets
        side = width + 1 + n_targets
        self.hi = np.zeros((side, side))
        self.lo = np.zeros((side, side))
        self.rest: FloatArray | None = None  # matrices of further parts
        self.lost = np.zeros(side)  # M is off by at most sqrt(lost_j lost_k) in entry j, k
        self.n = 0
        self.n_heavy = 0  # of them, rows of positive weight
        self.n_rough = 0  # rows taken off that were known only roughly

    def copy(self) -> Moments:
        """An independent copy."""
        twin = object.__new__(Moments)
        twin.__dict__.update(self.__dict__)
        twin.hi, twin.lo = self.hi.copy(), self.lo.copy()
        twin.rest = None if self.rest is None else self.rest.copy()
        twin.lost = self.lost.copy()
        return twin

    def arranged(self, columns: Sequence[int | None]) -> Moments:
        """A copy with the targets in another order; None stands for a target never seen."""
        twin = Moments(self.width, len(columns))
        twin.n, twin.n_heavy, twin.n_rough = self.n, self.n_heavy, self.n_rough
        fixed = self.width + 1
        kept = [place for place, column in enumerate(columns) if column is not None]
        source = np.array(
            [*range(fixed), *(fixed + column for column in columns if column is not None)]
        )
        target = np.array([*range(fixed), *(fixed + place for place in kept)])
        twin.lost[target] = self.lost[source]
        parts = [(self.hi, twin.hi), (self.lo, twin.lo)]
        if self.rest is not None:
            twin.rest = np.zeros((len(self.rest), *twin.hi.shape))
            parts.extend(zip(self.rest, twin.rest, strict=True))
        for old, new in parts:
            # targets may change sides of the diagonal: mirror before picking
            whole = np.triu(old) + np.triu(old, 1).T
            new[np.ix_(target, target)] = whole[np.ix_(source, source)]
            new[:] = np.triu(new)
        return twin

    def add(
        self, phi: FloatArray, t: FloatArray, s: FloatArray | None, sign: float, rho: float
    ) -> None:
        """Take rows in (sign = 1) or off (sign = -1); s = None stands for weights of one.

        An error of M moves w by at most its size over `rho`, which tells how many bits are needed.
        """
        parts = [slice(start, start + BLOCK_ROWS) for start in range(0, len(phi), BLOCK_ROWS)]
        blocks = ((phi[part], t[part], None if s is None else s[part]) for part in parts)
        self.add_blocks(blocks, sign, rho)

    def add_blocks(
        self,
        blocks: Iterable[tuple[FloatArray, FloatArray, FloatArray | None]],
        sign: float,
        rho: float,
    ) -> None:
        """Take blocks of at most `BLOCK_ROWS` rows (features, targets, weights) in or off."""
        small: SmallGram | None = None
        for phi, t, s in blocks:
            taken = 0
            if s is None and len(phi) > _ONE_BY_ONE:
                small = small or SmallGram(len(self.hi))
                taken = small.add(phi, t)
            if taken < len(phi):
                before = self.diagonal()
                self.count_rounding(self._add_block(phi[taken:], t[taken:], s, sign, rho), before)
            self.n += int(sign) * len(phi)
            self.n_heavy += int(sign) * (len(phi) if s is None else int(np.count_nonzero(s)))
        if small is not None:
            before = self.diagonal()
            add_matrix(self.hi, self.lo, small.total, sign, self.rest)
            self.count_rounding(1, before)

    def _add_block(
        self, phi: FloatArray, t: FloatArray, s: FloatArray | None, sign: float, rho: float
    ) -> int:
        """Take a block in or off; returns how many additions to each entry it took."""
        Z = self._rows(phi, t)
        squares = np.einsum("ij,ij->j", Z, Z) * (1.0 if s is None else float(s.max()))
        size = float(squares.sum())
        self.widen(parts_needed(size, rho))
        if len(Z) <= _ONE_BY_ONE:
            return self._add_each(Z, s, sign)
        cuts = _cuts_needed(size, rho)
        if cuts is not None:
            return self._add_gram(Z, s, sign, cuts, squares)
        # rows for which there are not cuts enough are added one by one
        sizes = np.einsum("ij,ij->i", Z, Z) * (1.0 if s is None else s)
        alone = sizes > _ENOUGH * rho / (len(Z) * cut_error(_CUTS[-1]))
        self._add_each(Z[alone], None if s is None else s[alone], sign)
        Z, s = Z[~alone], None if s is None else s[~alone]
        squares = np.einsum("ij,ij->j", Z, Z) * (1.0 if s is None else s.max(initial=0.0))
        return int(alone.sum()) + self._add_gram(Z, s, sign, _CUTS[-1], squares)

    def _add_each(self, Z: FloatArray, s: FloatArray | None, sign: float) -> int:
        for row, z in enumerate(Z):
            weight = sign * (1.0 if s is None else float(s[row]))
            add_outer(self.hi, self.lo, z, weight, self.rest)
        return len(Z)

    def _add_gram(
        self, Z: FloatArray, s: FloatArray | None, sign: float, cuts: int, squares: FloatArray
    ) -> int:
        additions = 0
        for term in gram_terms(Z, s, cuts):
            add_matrix(self.hi, self.lo, term, sign, self.rest)
            additions += 1
        self.lost += len(Z) * cut_error(cuts) * squares
        return additions

    @property
    def parts(self) -> int:
        """How many parts an entry of M has."""
        return 2 if self.rest is None else 2 + len(self.rest)

    def widen(self, parts: int) -> None:
        """Give entries of M so many parts at least."""
        if parts > MOST_PARTS:
            raise NotConverged(f"moments would need {parts} parts of 52 bits, of {MOST_PARTS}")
        if parts > self.parts:
            rest = np.zeros((parts - 2, *self.hi.shape))
            if self.rest is not None:
                rest[: len(self.rest)] = self.rest
            self.rest = rest

    def count_rounding(self, additions: int, before: FloatArray) -> None:
        """Count what so many additions may have rounded away."""
        largest = np.maximum(np.maximum(before, self.diagonal()), 0.0)
        self.lost += additions * 2.0 ** -(_PART_BITS * self.parts) * largest

    def _rows(self, phi: FloatArray, t: FloatArray) -> FloatArray:
        """The rows z = (phi, 1, t)."""
        Z = np.empty((len(phi), len(self.hi)))
        Z[:, : self.width] = phi
        Z[:, self.width] = 1.0
        Z[:, self.width + 1 :] = t
        return Z

    def join(self, other: Moments, sign: float) -> None:
        """Add (sign = 1) or take off (sign = -1) the moments of other rows."""
        before = self.diagonal()
        self.widen(other.parts)
        add_twofold(self.hi, self.lo, other.hi, other.lo, sign, self.rest, other.rest)
        self.count_rounding(1, np.maximum(before, other.diagonal()))
        # by Cauchy's inequality the roots of the sums bound the sum of the two errors
        self.lost += other.lost
        self.n += int(sign) * other.n
        self.n_heavy += int(sign) * other.n_heavy
        self.n_rough += other.n_rough

    def clear(self) -> None:
        """Nothing is left: not even the rounding of what was there."""
        self.hi[:], self.lo[:], self.lost[:] = 0.0, 0.0, 0.0
        self.rest = None

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        return float(self.hi[self.width, self.width])

    def sums(self, n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Sums of s phi t' (and of s t', with the constant's row), as hi and lo."""
        first = self.width + 1
        return self.hi[:n_rows, first:], self.lo[:n_rows, first:]

    def feature_sums(self, n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Sums of s phi (and of s, with the constant's row), as hi and lo."""
        return self.hi[:n_rows, self.width], self.lo[:n_rows, self.width]

    def diagonal(self) -> FloatArray:
        """The diagonal of M: sums of squares, none of which can be negative."""
        return np.diagonal(self.hi).copy()


def _cuts_needed(size: float, rho: float) -> int | None:
    """How often rows of this sum of squares are cut; None if that is never often enough."""
    return next((c for c in _CUTS if size * cut_error(c) <= _ENOUGH * rho), None)
