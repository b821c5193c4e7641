# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of rows of features that a kernel takes over once and then holds.

Dense arrays and SciPy CSR matrices alike, in slices of bounded size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from adiabat.typing import FloatArray

_COPY_ENTRIES: Final = 1 << 20  # entries of a temporary copy of features (8 MiB)
_OFFSET_RATIO: Final = 1e4  # ||mean||^2 / total variance above which rows are far from zero
_ORIGIN_BITS: Final = 16  # to which the origin of rows without a spread is rounded
_SPLITTER: Final = 2.0**27 + 1.0  # splits a float64 into two halves of 26 bits (Dekker)


def dense_slices(A: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Consecutive rows of `A` as dense arrays of bounded size, each with its slice."""
    step = max(1, _COPY_ENTRIES // max(1, A.shape[1]))
    for start in range(0, A.shape[0], step):
        rows = slice(start, min(start + step, A.shape[0]))
        yield rows, A[rows].toarray() if sp.issparse(A) else A[rows]


def squared_norms(A: Any) -> FloatArray:
    """sum_j a_ij^2 for every row i; infinite where that overflows."""
    with np.errstate(over="ignore"):
        if sp.issparse(A):
            return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).reshape(-1)
        return np.asarray(np.einsum("ij,ij->i", A, A))


def entry_variance(X: Any, sample_weight: Any) -> float:
    """Weighted variance of all entries of `X`: two passes, each summing the rows exactly."""
    weight = np.ones(X.shape[0])
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != (X.shape[0],) or not (np.isfinite(weight) & (weight >= 0.0)).all():
            raise ValueError(f"sample_weight must be {X.shape[0]} finite numbers >= 0")
        if not weight.all():
            X, weight = X[weight > 0.0], weight[weight > 0.0]
    if weight.size == 0 or X.shape[1] == 0:
        raise ValueError("gamma='scale' needs a row of positive sample_weight; give a number")
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # SciPy would merge repeated entries in place, in the caller's matrix
        X.sum_duplicates()
    if X.min() == X.max():
        # The mean of equal numbers can be off by a rounding, and its square is not zero.
        return 0.0
    count = int(X.shape[1]) * math.fsum(weight.tolist())
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            mean = _exact_dot(weight, np.asarray(X.sum(axis=1)).reshape(-1)) / count
            return _exact_dot(weight, _squared_deviations(X, mean)) / count
        except (OverflowError, ValueError):  # what fsum makes of sums beyond all bounds
            return math.inf


def _squared_deviations(X: Any, center: float) -> FloatArray:
    """sum_j (x_ij - center)^2 for every row i."""
    if sp.issparse(X):
        deviations = X.copy()
        deviations.data = np.square(X.data - center)
        stored = np.asarray(deviations.sum(axis=1)).reshape(-1)
        return np.asarray(stored + (X.shape[1] - np.diff(X.indptr)) * center**2)
    return np.concatenate([squared_norms(part - center) for _, part in dense_slices(X)])


def _exact_dot(weight: FloatArray, values: FloatArray) -> float:
    """sum_i weight_i * values_i, rounded once where the weights are whole numbers below 2^26."""
    if weight.min() == weight.max() == 1.0:
        return math.fsum(values.tolist())
    high, low = halves(values)
    return math.fsum(np.concatenate([weight * high, weight * low]).tolist())


def halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Numbers as sums of an upper and a lower half of 26 bits (Dekker, Veltkamp)."""
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def offset_origin(X: Any) -> FloatArray | None:
    """The mean of dense rows that lie far from zero for their spread, else None."""
    if sp.issparse(X) or X.shape[0] == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0)
        offset = float(mean @ mean)
        # A quick look, which cannot tell a tiny variance but can tell that it is not tiny.
        if not float(squared_norms(X).mean()) < 1.01 * offset:
            return None
        variance = float(squared_norms(X - mean).mean())
    if not math.isfinite(offset) or offset <= _OFFSET_RATIO * variance:
        return None
    # On a grid of a power of two near the spread: subtracting the origin then loses nothing, and
    # the kernel remembers where the data are, not what their mean was. One row has no spread, and
    # its origin must not be that row, which may be forgotten.
    if variance > 0.0:
        grid = 2.0 ** math.floor(0.5 * math.log2(variance / X.shape[1]))
    else:
        grid = 2.0 ** (math.floor(0.5 * math.log2(offset)) - _ORIGIN_BITS)
    return np.asarray(np.round(mean / grid) * grid)
