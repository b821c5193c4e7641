# SPDX-License-Identifier: BSD-3-Clause
"""The dual of a linear kernel: products of rows and weights, to twice the precision."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from adiabat._core.twofold import weighted_sums
from adiabat.lssvm.normal_equations import TINY
from adiabat.statistics import halves
from adiabat.typing import FloatArray


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sum a + b, and what it rounds away (Knuth)."""
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The product a * b, and what it rounds away (Dekker)."""
    p = a * b
    (a_upper, a_lower), (b_upper, b_lower) = halves(a), halves(b)
    return p, ((a_upper * b_upper - p) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower


def sum_rows(X: FloatArray, alpha: FloatArray, rest: FloatArray) -> FloatArray:
    """X'(alpha + rest), each sum rounded once."""
    turned = np.ascontiguousarray(X.T)
    columns = [
        np.add(*_products(turned, np.ascontiguousarray(alpha[:, k]), rest[:, k]))
        for k in range(alpha.shape[1])
    ]
    return np.column_stack(columns)


def from_features(
    X: FloatArray,
    d: FloatArray,
    aims: FloatArray,
    alpha: FloatArray,
    rest: FloatArray,
    bias: FloatArray,
) -> FloatArray:
    """What t - b - (XX' + D)(alpha + rest) leaves, to twice the precision; a column each."""
    turned = np.ascontiguousarray(X.T)
    columns = []
    for k in range(alpha.shape[1]):
        a, a_rest = np.ascontiguousarray(alpha[:, k]), rest[:, k]
        w, w_rest = _products(turned, a, a_rest)
        f, f_rest = _products(X, w, w_rest)
        ridge, ridge_rest = two_product(d, a)
        left, lost = two_sum(aims[:, k], np.full(len(d), -bias[k]))
        for term in (-ridge, -f):
            left, more = two_sum(left, term)
            lost = lost + more
        columns.append(left + (lost - ridge_rest - f_rest - d * a_rest))
    return np.column_stack(columns)


def from_leverages(X: FloatArray, d: FloatArray, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """The diagonal of the inverse with the bias eliminated, and how far it may be off, relatively.

    It is (1 - h) / d, h being the leverage of each row in the primal, which has fewer unknowns.
    """
    s = 1.0 / d
    mean = (s @ X) / s.sum() if intercept else np.zeros(X.shape[1])
    centred = X - mean
    S = centred.T @ (s[:, None] * centred)
    S.flat[:: len(S) + 1] += 1.0
    try:
        factor = cholesky(S, lower=True, check_finite=False)
    except LinAlgError:  # features that rounding cannot tell apart
        return np.ones(len(d)), np.full(len(d), np.inf)
    half = solve_triangular(factor, centred.T, lower=True, check_finite=False)
    inverse = solve_triangular(factor, np.eye(len(S)), lower=True, check_finite=False)
    spread = float(np.max(np.diagonal(S) * np.einsum("ij,ij->j", inverse, inverse)))
    h = s * (np.einsum("ij,ij->j", half, half) + (1.0 / s.sum() if intercept else 0.0))
    rest = np.maximum(1.0 - h, TINY)
    roundings = 4.0 * np.finfo(np.float64).eps * (len(S) + len(d) ** 0.5)
    return rest / d, roundings * spread / rest


def _products(A: FloatArray, x: FloatArray, x_rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A (x + x_rest) in two parts."""
    hi = weighted_sums(A, x, np.zeros(len(A)))
    return two_sum(hi, weighted_sums(A, x, -hi) + A @ x_rest)
