# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares machine in closed form, to sixty digits: no BLAS, no float after the input."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np

DIGITS = 60


def closed_form(
    phi: Any, targets: Any, rho: float, intercept: bool, weights: Any = None
) -> np.ndarray:
    """(w, b) of rho |w|^2 + sum s (w'phi + b - t)^2, a column for each column of targets."""
    phi = np.asarray(phi, dtype=np.float64)
    targets = np.asarray(targets, dtype=np.float64).reshape(len(phi), -1)
    weights = np.ones(len(phi)) if weights is None else np.asarray(weights, dtype=np.float64)
    psi = np.column_stack([phi, np.ones(len(phi))]) if intercept else phi
    with localcontext() as context:
        context.prec = DIGITS
        rows = [[Decimal(float(v)) for v in row] for row in psi]
        aims = [[Decimal(float(v)) for v in row] for row in targets]
        s = [Decimal(float(v)) for v in weights]
        m, k = psi.shape[1], targets.shape[1]
        table = [[Decimal(0)] * (m + k) for _ in range(m)]
        for row, aim, weight in zip(rows, aims, s, strict=True):
            for i in range(m):
                scaled = weight * row[i]
                for j in range(m):
                    table[i][j] += scaled * row[j]
                for j in range(k):
                    table[i][m + j] += scaled * aim[j]
        for i in range(phi.shape[1]):
            table[i][i] += Decimal(float(rho))
        return _eliminated(table, m, k)


def _eliminated(table: list[list[Decimal]], m: int, k: int) -> np.ndarray:
    for i in range(m):
        pivot = max(range(i, m), key=lambda row: abs(table[row][i]))
        table[i], table[pivot] = table[pivot], table[i]
        for row in range(m):
            if row != i:
                factor = table[row][i] / table[i][i]
                table[row] = [a - factor * b for a, b in zip(table[row], table[i], strict=True)]
    return np.array([[float(table[i][m + j] / table[i][i]) for j in range(k)] for i in range(m)])


def indicators(y: Any, classes: Any) -> np.ndarray:
    """Targets +1 and -1, one column for each output: two classes have one."""
    signs = np.where(np.asarray(y)[:, None] == np.asarray(classes)[None, :], 1.0, -1.0)
    return signs[:, 1:] if len(classes) == 2 else signs


def relative(found: Any, expected: Any) -> float:
    """Distance of two arrays, relative to the second."""
    found, expected = np.asarray(found), np.asarray(expected)
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300))
