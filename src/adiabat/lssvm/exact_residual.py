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
_ALL_PIECES = 80  # of numbers that are 2^-1700 of the largest


def right_hand_side(
    hi: FloatArray, lo: FloatArray, m: int, combine: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The right-hand side b of one output, rounded once, and what that left.

    The last columns of the moments hi + lo, combined; factors of -1, 0, 1 and 2 round nothing.
    """
    first = len(hi) - len(combine)
    terms = [c * part[:m, first + k] for k, c in enumerate(combine) for part in (hi, lo)]
    b = _sum(terms)
    return b, _sum([*terms, -b])


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


def expanded_residual(
    parts: list[FloatArray], ridge: FloatArray, x_parts: FloatArray, combine: FloatArray
) -> FloatArray:
    """What b - (M + diag(ridge)) x leaves, rounded once; M and x are sums of some parts.

    M is the leading block of a symmetric matrix given by its upper triangle, of which the last
    columns, combined, are b. Powers of two bring all features to one scale, which rounds nothing.
    """
    m, first = len(x_parts), len(parts[0]) - len(combine)
    _, exponent = np.frexp(np.sqrt(np.maximum(np.diagonal(parts[0])[:m], 0.0) + ridge))
    bits = (53 - max(1, math.ceil(math.log2(max(2, m))))) // 2
    scaled = [np.ldexp(x, exponent) for x in x_parts.T]
    x_pieces = [piece[0] for x in scaled for piece in _pieces(x[None, :], bits, _ALL_PIECES)]
    terms = []
    for part in parts:
        whole = np.triu(part) + np.triu(part, 1).T
        block = np.ldexp(whole[:m, :m], -exponent[:, None] - exponent)
        for A in _pieces(block, bits, _ALL_PIECES):
            terms += [-(A @ x) for x in x_pieces]
        terms += [np.ldexp(c * column, -exponent)
                  for c, column in zip(combine, whole[:m, first:].T, strict=True)]  # fmt: skip
    for r in _pieces(np.ldexp(ridge, -2 * exponent)[:, None], 26):
        terms += [-(r * x)[:, 0] for y in scaled for x in _pieces(y[:, None], 26)]
    return np.ldexp(_sum(terms), exponent)


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


def _pieces(A: FloatArray, bits: int, most: int = _PIECES) -> list[FloatArray]:
    """Matrices that add up to A, each of whole multiples (below 2^bits) of a unit for each row."""
    pieces: list[FloatArray] = []
    rest = np.array(A, dtype=np.float64)
    while rest.any() and len(pieces) < most:
        _, exponent = np.frexp(np.abs(rest).max(axis=1, keepdims=True))
        shift = np.ldexp(1.5, 52 - bits + exponent)
        piece = (rest + shift) - shift
        pieces.append(piece)
        rest = rest - piece
    return pieces
