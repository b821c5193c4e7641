# SPDX-License-Identifier: BSD-3-Clause
"""Is this the solution? NumPy and exact sums, and no line shared with the machine.

The residual of the normal equations (hi + lo + diag(ridge)) x = b is computed without rounding:
matrix and vector are cut into pieces of so few bits that products of pieces are exact in float64,
and `math.fsum` adds the products exactly.

Under a linear kernel K is XX', and the products are taken one after the other.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_PIECES = 8


def normal_residual(
    hi: FloatArray,
    lo: FloatArray,
    ridge: FloatArray,
    x: FloatArray,
    b: FloatArray,
    b_rest: FloatArray,
) -> FloatArray:
    """Return b + b_rest - (hi + lo + diag(ridge)) x; the matrix is given by its upper triangle."""
    m = len(x)
    upper = np.asarray(hi)[:m, :m]
    whole = np.triu(upper) + np.triu(upper, 1).T
    rest = np.asarray(lo)[:m, :m]
    rest = np.triu(rest) + np.triu(rest, 1).T
    bits = (53 - max(1, math.ceil(math.log2(max(2, m))))) // 2
    x_pieces = _pieces(x[None, :], bits)
    terms = [b, b_rest, -(rest @ x)]
    terms += [-(A @ piece[0]) for A in _pieces(whole, bits) for piece in x_pieces]
    r_pieces = _pieces(ridge[None, :], 26)
    terms += [-(r[0] * piece[0]) for r in r_pieces for piece in _pieces(x[None, :], 26)]
    return np.array([math.fsum(column) for column in zip(*terms, strict=True)])


def linear_residual(
    X: FloatArray,
    d: FloatArray,
    t: FloatArray,
    a: FloatArray,
    a_rest: FloatArray,
    b: float,
) -> tuple[FloatArray, FloatArray]:
    """What t - b - (XX' + diag(d)) (a + a_rest) leaves, and X'(a + a_rest), rounded once."""
    turned = np.ascontiguousarray(X.T)
    w, w_lo = _product(turned, a, [turned @ a_rest], 1.0)
    ridge = [-p[0] * q[0] for p in _pieces(a[None, :], 26) for q in _pieces(d[None, :], 26)]
    more = [t, np.full(len(t), -b), *ridge, -d * a_rest, -(X @ w_lo)]
    return _product(X, w, more, -1.0)[0], w


def _product(
    A: FloatArray, x: FloatArray, more: list[FloatArray], sign: float
) -> tuple[FloatArray, FloatArray]:
    """Sign A x and further terms, in two parts, the first rounded once."""
    bits = (53 - max(1, math.ceil(math.log2(max(2, len(x)))))) // 2
    x_pieces = _pieces(x[None, :], bits)
    terms = [*more, *(sign * (B @ piece[0]) for B in _pieces(A, bits) for piece in x_pieces)]
    hi = _sum(terms)
    return hi, _sum([*terms, -hi])


def _sum(terms: list[FloatArray]) -> FloatArray:
    return np.array([math.fsum(column) for column in zip(*terms, strict=True)])


def _pieces(A: FloatArray, bits: int) -> list[FloatArray]:
    """Matrices that add up to A, each of whole multiples (below 2^bits) of a unit for each row."""
    pieces: list[FloatArray] = []
    rest = np.array(A, dtype=np.float64)
    while rest.any() and len(pieces) < _PIECES:
        _, exponent = np.frexp(np.abs(rest).max(axis=1, keepdims=True))
        shift = np.ldexp(1.5, 52 - bits + exponent)
        piece = (rest + shift) - shift
        pieces.append(piece)
        rest = rest - piece
    return pieces
