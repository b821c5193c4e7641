# SPDX-License-Identifier: BSD-3-Clause
"""What a least-squares machine remembers of its rows: their second moments, to twice the precision.

A row is z = (phi, 1, t): features, the constant, and its targets. The moments are M = sum s z z',
one symmetric matrix that holds phi phi', the sums of phi, phi t' and t t' at once. Its blocks are
all that w depends on (LKW19 (7)), and none of the rows can be read from it once there are many.

Taking rows off again loses no digits that matter: M has 106 bits, in two float64 matrices hi + lo
of which only the upper triangles are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from adiabat._core.twofold import add_matrix, add_outer, add_twofold
from adiabat.lssvm.exact_products import BLOCK_ROWS, SmallGram, gram_terms

FloatArray = npt.NDArray[np.float64]

# Up to so many rows, one outer product each is faster than the passes over M of a block.
_ONE_BY_ONE: Final = 40
# One cut errs by 2^-74 of the sum of squares; over rho, that may be 1e-13.
_ONE_CUT_SUFFICES: Final = 1e-13 * 2.0**74


class Moments:
    """M = sum s z z' over rows z = (phi, 1, t), for `width` features and `n_targets` targets."""

    def __init__(self, width: int, n_targets: int) -> None:
        self.width = width
        self.n_targets = n_targets
        side = width + 1 + n_targets
        self.hi = np.zeros((side, side))
        self.lo = np.zeros((side, side))
        self.n = 0
        self.n_heavy = 0  # of them, rows of positive weight
        self.n_rough = 0  # rows taken off that were known only roughly

    def copy(self) -> Moments:
        """An independent copy."""
        twin = object.__new__(Moments)
        twin.__dict__.update(self.__dict__)
        twin.hi, twin.lo = self.hi.copy(), self.lo.copy()
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
        for old, new in ((self.hi, twin.hi), (self.lo, twin.lo)):
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
                self._add_block(phi[taken:], t[taken:], s, sign, rho)
            self.n += int(sign) * len(phi)
            self.n_heavy += int(sign) * (len(phi) if s is None else int(np.count_nonzero(s)))
        if small is not None:
            add_matrix(self.hi, self.lo, small.total, sign)

    def _add_block(
        self, phi: FloatArray, t: FloatArray, s: FloatArray | None, sign: float, rho: float
    ) -> None:
        Z = self._rows(phi, t)
        if len(Z) <= _ONE_BY_ONE:
            for row, z in enumerate(Z):
                add_outer(self.hi, self.lo, z, sign * (1.0 if s is None else float(s[row])))
            return
        size = float(np.einsum("ij,ij->", Z, Z)) * (1.0 if s is None else float(s.max()))
        cuts = 2 if size > _ONE_CUT_SUFFICES * rho else 1
        for term in gram_terms(Z, s, cuts):
            add_matrix(self.hi, self.lo, term, sign)

    def _rows(self, phi: FloatArray, t: FloatArray) -> FloatArray:
        """The rows z = (phi, 1, t)."""
        Z = np.empty((len(phi), len(self.hi)))
        Z[:, : self.width] = phi
        Z[:, self.width] = 1.0
        Z[:, self.width + 1 :] = t
        return Z

    def join(self, other: Moments, sign: float) -> None:
        """Add (sign = 1) or take off (sign = -1) the moments of other rows."""
        add_twofold(self.hi, self.lo, other.hi, other.lo, sign)
        self.n += int(sign) * other.n
        self.n_heavy += int(sign) * other.n_heavy
        self.n_rough += other.n_rough

    def clear(self) -> None:
        """Nothing is left: not even the rounding of what was there."""
        self.hi[:], self.lo[:] = 0.0, 0.0

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
