# SPDX-License-Identifier: BSD-3-Clause
"""Positive definite matrices of a wanted condition, of the kinds that margins have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist, squareform

FloatArray = npt.NDArray[np.float64]


def spectrum(n: int, condition: float, seed: int) -> FloatArray:
    """Random eigenvectors; a third of the eigenvalues spread evenly in the logarithm, others least.

    With so many least ones, every submatrix of more than a third of the rows has that eigenvalue
    too, and about the same condition. The mean diagonal is 1.
    """
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.full(n, 1.0 / condition)
    values[: n // 3] = np.logspace(0.0, -np.log10(condition), n // 3)
    values *= n / values.sum()
    K = (basis * values) @ basis.T
    return 0.5 * (K + K.T)


def rbf(n: int, condition: float, seed: int) -> FloatArray:
    """RBF kernel of normal points in 10 dimensions, as wide as the condition asks."""
    rng = np.random.default_rng(seed)
    squared = squareform(pdist(rng.standard_normal((n, 10)), "sqeuclidean"))
    low, high = np.log(1e-6), np.log(1e3)
    for _ in range(12):  # the condition falls as gamma grows
        middle = 0.5 * (low + high)
        values = np.linalg.eigvalsh(np.exp(-np.exp(middle) * squared))
        if values[0] <= 0.0 or values[-1] / values[0] > condition:
            low = middle
        else:
            high = middle
    return np.exp(-np.exp(high) * squared)


def twins(n: int, condition: float, seed: int) -> FloatArray:
    """RBF kernel of points of which every other one nearly repeats the one before.

    The matrix is well conditioned but for as many tiny eigenvalues as there are pairs, and every
    pair that is in the margin has a tiny pivot.
    """
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, 10))
    pair = n - n % 2
    # two points at a distance e give eigenvalues near 2 and gamma e^2
    distance = np.sqrt(8.0 / condition)
    step = rng.standard_normal((pair // 2, 10))
    step *= distance / np.linalg.norm(step, axis=1, keepdims=True)
    points[1:pair:2] = points[0:pair:2] + step
    order = rng.permutation(n)
    return np.exp(-0.5 * squareform(pdist(points[order], "sqeuclidean")))


FAMILIES: dict[str, Callable[..., FloatArray]] = {
    "spectrum": spectrum,
    "rbf": rbf,
    "twins": twins,
}
