# SPDX-License-Identifier: BSD-3-Clause
"""Kernel least squares to eighty digits, kernel values included: what no rounding has touched."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

DIGITS = 80


class ExactMachine:
    """(K + rho / s) a + 1 b = t, 1'a = 0 with a bias, and what it says of rows it never had."""

    def __init__(
        self, X: Any, t: Any, rho: float, intercept: bool, weights: Any = None, **kernel: Any
    ) -> None:
        self.X, self.t = np.asarray(X, dtype=np.float64), np.asarray(t, dtype=np.float64)
        n = len(self.X)
        s = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        self.intercept = intercept
        with mpmath.workdps(DIGITS):
            rows = [[mpmath.mpf(float(v)) for v in row] for row in self.X]
            self.K = [[_kernel(x, z, **kernel) for z in rows] for x in rows]
            self.d = [mpmath.mpf(float(rho)) / mpmath.mpf(float(v)) for v in s]

    def decisions(self) -> np.ndarray:
        """F at the rows of the machine."""
        return self._outputs(list(range(len(self.X))), range(len(self.X)))

    def left_out(self) -> np.ndarray:
        """F at each row of the machine without it."""
        n = len(self.X)
        found = [self._outputs([j for j in range(n) if j != i], [i])[0] for i in range(n)]
        return np.array(found)

    def _outputs(self, held: list[int], at: Any) -> np.ndarray:
        with mpmath.workdps(DIGITS):
            n = len(held)
            m = n + self.intercept
            A, right = mpmath.zeros(m, m), mpmath.zeros(m, 1)
            for i, row in enumerate(held):
                for j, column in enumerate(held):
                    A[i, j] = self.K[row][column]
                A[i, i] += self.d[row]
                right[i] = mpmath.mpf(float(self.t[row]))
                if self.intercept:
                    A[i, n] = A[n, i] = mpmath.mpf(1)
            x = mpmath.lu_solve(A, right)
            b = x[n] if self.intercept else mpmath.mpf(0)
            sums = [mpmath.fsum(x[j] * self.K[i][row] for j, row in enumerate(held)) for i in at]
            return np.array([float(value + b) for value in sums])


def _kernel(
    x: list[Any], z: list[Any], kernel: str, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> Any:
    if kernel == "linear":
        return mpmath.fdot(x, z)
    if kernel == "poly":
        return (mpmath.mpf(gamma) * mpmath.fdot(x, z) + mpmath.mpf(coef0)) ** degree
    if kernel == "rbf":
        square = mpmath.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True))
        return mpmath.exp(-mpmath.mpf(gamma) * square)
    raise ValueError(f"kernel={kernel!r} is not one of linear, poly, rbf")
