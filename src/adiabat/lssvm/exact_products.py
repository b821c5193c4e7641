# SPDX-License-Identifier: BSD-3-Clause
"""Z' diag(s) Z of a block of rows as a short sum of matrices, by BLAS, to 74, 95, 116, ... bits.

Each column of Z is cut into its leading 21 bits and the rest, Z = H + L. Products of leading parts
are integers below 2^42 in units of the columns, and 2^10 of them add up below 2^53: BLAS computes
H'H without rounding in whatever order it pleases. What the rest contributes is 2^-21 times smaller,
so that its rounding is, too; cut once more, 2^-42 times. Where the rest vanishes (pixels, counts,
one-hot columns) it costs nothing. (The idea is that of Ozaki, Ogita, Oishi and Rump 2012.)

Whole numbers up to 255 are taken in single precision, which is twice as fast; see `_core.whole`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from adiabat._core.whole import add_whole
from adiabat.statistics import halves
from adiabat.typing import FloatArray

#: Rows of a block: 2^10 products of 2 * 21 bits fit in the 53 bits of a float64.
BLOCK_ROWS: Final = 1024
_BITS: Final = 21
_SMALL_ROWS: Final = 512


def gram_terms(Z: FloatArray, s: FloatArray | None, cuts: int = 1) -> Iterator[FloatArray]:
    """Matrices whose upper triangles add up to that of Z' diag(s) Z; s = None stands for ones.

    One cut leaves 74 bits, two leave 95, and so on, in units of the largest entries of the columns.
    """
    if len(Z) > BLOCK_ROWS:
        raise ValueError(f"a block has at most {BLOCK_ROWS} rows, not {len(Z)}")
    pieces, rest = _pieces(Z, cuts)
    if s is None:
        for place, piece in enumerate(pieces):
            yield _square(piece)
            for other in pieces[:place]:
                product = piece.T @ other
                yield product
                yield np.ascontiguousarray(product.T)
        if rest is not None:
            # Z'Z without its exact pieces X is X'R + R'X + R'R = M + M' with M = R'(X + R/2);
            # often only a few columns have a rest, such as targets beside whole features
            columns = np.flatnonzero(rest.any(axis=0))
            M = np.zeros((Z.shape[1], Z.shape[1]))
            M[columns] = rest[:, columns].T @ (Z - 0.5 * rest)
            yield M + M.T
        return
    Q, lost = _scaled(Z, s)
    scaled_pieces, scaled_rest = _pieces(Q, cuts)
    for piece in pieces:
        for other in scaled_pieces:
            yield piece.T @ other
    inexact = np.zeros((Z.shape[1], Z.shape[1]))
    if scaled_rest is not None:
        inexact += (Z if rest is None else Z - rest).T @ scaled_rest
    if rest is not None:
        inexact += rest.T @ Q
    if lost is not None:  # 53 bits below Q, and cut where more bits are asked for
        lost_pieces, lost_rest = _pieces(lost, cuts - 2)
        for piece in pieces:
            for other in lost_pieces:
                yield piece.T @ other
        if lost_rest is not None:
            inexact += (Z if rest is None else Z - rest).T @ lost_rest
        if rest is not None:
            inexact += rest.T @ lost
    yield inexact


def cut_error(cuts: int) -> float:
    """What so many cuts round away, relative to the largest entries of the columns."""
    return float(2.0 ** -(53 + _BITS * cuts))


class SmallGram:
    """Z'Z of rows Z = (phi, 1, t) of whole numbers up to 255, exactly, added up over blocks.

    `total` is float64, which holds the sums of 10^11 such products; only its upper triangle holds.
    """

    def __init__(self, width: int) -> None:
        # one piece of memory, which the system hands out in fewer and larger pages than three
        room = np.zeros((2 * width + width + _SMALL_ROWS, width), np.float32)
        self.total = room[: 2 * width].reshape(-1).view(np.float64).reshape(width, width)
        self._part = room[2 * width : 3 * width]
        self._rows = room[3 * width :]
        self._squares = np.zeros(width, np.int32)

    def add(self, phi: FloatArray, t: FloatArray) -> int:
        """Take rows in until one is not whole, or not small; returns how many were."""
        return add_whole(phi, t, self._rows, self._part, self._squares, self.total)


def _square(Z: FloatArray) -> FloatArray:
    """Z'Z, which NumPy leaves to BLAS's symmetric product, other threads running meanwhile."""
    return np.asarray(Z.T @ Z)


def _pieces(Z: FloatArray, cuts: int) -> tuple[list[FloatArray], FloatArray | None]:
    """Leading bits, the bits after them, and so on; and what is left, if anything is."""
    pieces, rest = [], Z
    for _ in range(cuts):
        piece, left = _cut(rest)
        pieces.append(piece)
        if left is None:
            return pieces, None
        rest = left
    return pieces, rest


def _cut(Z: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """The leading bits of each column, as multiples of a unit of its own, and the rest."""
    largest = np.maximum(Z.max(axis=0, initial=0.0), -Z.min(axis=0, initial=0.0))
    _, exponent = np.frexp(largest)
    # Adding and taking off 1.5 * 2^52 units rounds to whole units. A column of zeros has no unit.
    shift = np.where(largest > 0.0, np.ldexp(1.5, 52 - _BITS + exponent), 0.0)
    H = Z + shift
    H -= shift
    L = Z - H
    return H, L if L.any() else None


def _scaled(Z: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """The product s Z, and what rounding took from it (Dekker's product)."""
    Q = s[:, None] * Z
    s_upper, Z_upper = halves(s)[0][:, None], halves(Z)[0]
    s_lower, Z_lower = s[:, None] - s_upper, Z - Z_upper
    E = ((s_upper * Z_upper - Q) + s_upper * Z_lower + s_lower * Z_upper) + s_lower * Z_lower
    return Q, E if E.any() else None
