# SPDX-License-Identifier: BSD-3-Clause
"""Is this the solution? NumPy and exact sums, and no line shared with the machine.

The residual of the normal equations (hi + lo + diag(ridge)) x = b is computed without rounding:
matrix and vector are cut into pieces of so few bits that products of pieces are exact in float64,
and `math.fsum` adds the products exactly. Of numbers in more than two parts it is computed in whole
numbers.

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


def whole_residual(
    parts: list[FloatArray], ridge: FloatArray, x_parts: FloatArray, combine: FloatArray
) -> FloatArray:
    """What b - (M + diag(ridge)) x leaves, rounded once, in whole numbers of Python's.

    M is the leading block of the sum of some matrices, of which the columns beside it, combined,
    are b: the first of them (which x may include) is that of the constant. x is a sum of columns.
    """
    m, first = len(x_parts), len(parts[0]) - len(combine)
    x, x_unit = _whole(list(x_parts.T))
    M, unit = _whole([np.triu(part) + np.triu(part, 1).T for part in parts])
    added, added_unit = _whole([ridge])
    chosen, chosen_unit = _whole([combine])
    b = M[:m, first:] @ chosen
    product, product_unit = M[:m, :m] @ x, unit + x_unit
    extra, extra_unit = added * x, added_unit + x_unit
    last = min(unit + chosen_unit, product_unit, extra_unit)
    total = b * 2 ** (unit + chosen_unit - last) - product * 2 ** (product_unit - last)
    total = total - extra * 2 ** (extra_unit - last)
    divisor = 1 << max(0, -last)
    return np.array([(int(n) << max(0, last)) / divisor for n in total])


def _whole(parts: list[FloatArray]) -> tuple[npt.NDArray[np.object_], int]:
    """The sum of arrays as whole numbers, and the power of two that is their unit."""
    pairs = [np.frexp(part) for part in parts]
    least = [int(e[n != 0.0].min()) for n, e in pairs if n.any()]
    unit = min(least, default=0) - 53
    total = np.zeros(parts[0].shape, dtype=object)
    for fraction, exponent in pairs:
        held = np.nonzero(fraction)
        number = np.ldexp(fraction[held], 53).astype(np.int64).astype(object)
        power = (exponent[held] - 53 - unit).astype(object)
        total[held] += number * np.array([1 << int(p) for p in power], dtype=object)
    return total, unit


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
