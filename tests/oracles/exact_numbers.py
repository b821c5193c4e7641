# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of any length in NumPy arrays: doubles taken exactly, kernels by definition.

An array of type object holds ``gmpy2.mpfr`` numbers; every function here works to the digits of the
``digits`` block it is called in. A double is converted without rounding, so that the kernel of
given features is known to as many digits as are asked for, whatever cancels on the way. Such a
matrix is positive semidefinite as the kernel is; one of doubles need not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

Exact = npt.NDArray[np.object_]

BITS_PER_DIGIT = 3.3219280948873626


@contextmanager
def digits(count: int) -> Iterator[None]:
    """Work to so many decimal digits."""
    with gmpy2.context(gmpy2.get_context(), precision=int(count * BITS_PER_DIGIT) + 8):
        yield


def exact(values: Any) -> Exact:
    """Numbers as they are, to the last bit: an array of ``mpfr`` of the same shape."""
    values = np.asarray(values)
    out = np.empty(values.shape, dtype=object)
    flat, source = out.reshape(-1), values.reshape(-1)
    for place in range(len(flat)):
        value = source[place]
        flat[place] = gmpy2.mpfr(float(value) if isinstance(value, np.floating | int) else value)
    return out


def zeros(*shape: int) -> Exact:
    """An array of zeros."""
    return np.full(shape, gmpy2.mpfr(0), dtype=object)


def product(A: Exact, B: Exact) -> Exact:
    """A @ B, also where a side is empty."""
    if A.shape[-1] == 0:
        return zeros(*A.shape[:-1], *B.shape[1:])
    return np.asarray(A @ B, dtype=object)


def floats(values: Any) -> npt.NDArray[np.float64]:
    """The nearest doubles."""
    return np.asarray(values, dtype=object).astype(np.float64)


def gram(params: dict[str, Any], X: Any, Z: Any) -> Exact:
    """k(X, Z) by definition, for the parameters of an estimator; gamma is a number."""
    X, Z = exact(X), exact(Z)
    kernel = params["kernel"]
    gamma = gmpy2.mpfr(float(params.get("gamma", 1.0)))
    if kernel in ("linear", "poly"):
        values = product(X, Z.T.copy())
        if kernel == "linear":
            return values
        coef0, degree = gmpy2.mpfr(float(params["coef0"])), int(params["degree"])
        return np.asarray((gamma * values + coef0) ** degree, dtype=object)
    distance = {"rbf": _squared, "laplacian": _city_block, "chi2": _chi2}[kernel]
    out = zeros(len(X), len(Z))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            out[i, j] = gmpy2.exp(-gamma * distance(x, z))
    return out


def _squared(x: Exact, z: Exact) -> Any:
    return sum((x - z) ** 2, gmpy2.mpfr(0))


def _city_block(x: Exact, z: Exact) -> Any:
    return sum(abs(x - z), gmpy2.mpfr(0))


def _chi2(x: Exact, z: Exact) -> Any:
    terms = ((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b != 0)
    return sum(terms, gmpy2.mpfr(0))


def solve_linear(A: Exact, B: Exact) -> Exact:
    """The X of A X = B, by elimination with pivoting; A is regular."""
    table = np.concatenate([A, B], axis=1)
    n = len(A)
    for k in range(n):
        pivot = k + max(range(n - k), key=lambda row: abs(table[k + row, k]))
        if table[pivot, k] == 0:
            raise ArithmeticError("the matrix is singular")
        if pivot != k:
            table[[k, pivot]] = table[[pivot, k]]
        table[k, k:] = table[k, k:] / table[k, k]
        for row in range(n):
            if row != k and table[row, k] != 0:
                table[row, k:] = table[row, k:] - table[row, k] * table[k, k:]
    return table[:, n:]


def is_semidefinite(K: Exact, negligible: Any) -> bool:
    """Whether a symmetric matrix has no direction in which it is negative.

    Cholesky with pivoting, on the matrix scaled to a unit diagonal; pivots within `negligible` of
    zero are zero.
    """
    own = np.diagonal(K)
    if any(value < 0 for value in own):
        return False
    place = [i for i, value in enumerate(own) if value > 0]
    nothing = [i for i in range(len(own)) if i not in place]
    if any(value != 0 for i in nothing for value in K[i]):
        return False
    root = np.array([gmpy2.sqrt(own[i]) for i in place], dtype=object)
    rest = K[np.ix_(place, place)] / root[:, None] / root[None, :]
    left = list(range(len(place)))
    while left:
        k = max(left, key=lambda row: rest[row, row])
        pivot = rest[k, k]
        left.remove(k)
        if pivot <= negligible:
            block = rest[np.ix_([k, *left], [k, *left])]
            return all(abs(value) <= negligible for value in block.reshape(-1))
        column = rest[left, k]
        rest[np.ix_(left, left)] = rest[np.ix_(left, left)] - np.outer(column, column) / pivot
    return True
