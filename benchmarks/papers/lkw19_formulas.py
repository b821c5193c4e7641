# SPDX-License-Identifier: BSD-3-Clause
"""LKW19 as printed, in NumPy, and the plain normal equations to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg


def normal_equations(X: np.ndarray, y: np.ndarray, rho: float) -> tuple[np.ndarray, float]:
    """w and b of the problem that LSSVC solves, with as little work as possible."""
    mean, offset = X.mean(axis=0), float(y.mean())
    S = X.T @ X
    S -= len(X) * np.outer(mean, mean)
    S.flat[:: len(S) + 1] += rho
    w = scipy.linalg.solve(S, X.T @ y - len(X) * offset * mean, assume_a="pos", overwrite_a=True)
    return w, offset - float(mean @ w)


@dataclass
class PaperModel:
    """w and C of (3) and (4), without a bias as in the paper."""

    w: np.ndarray
    C: np.ndarray
    rho: float

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, rho: float) -> PaperModel:
        """By the second form of (2): (rho I_J + Phi Phi')^-1."""
        J = X.shape[1]
        P = np.linalg.inv(X.T @ X + rho * np.eye(J))
        return cls(P @ (X.T @ y), np.eye(J) - rho * P, rho)

    def copy(self) -> PaperModel:
        """An independent copy."""
        return PaperModel(self.w.copy(), self.C.copy(), self.rho)

    def change(self, X: np.ndarray, y: np.ndarray, sign: np.ndarray) -> None:
        """(5) and (6); sign is +1 for rows that come, -1 for rows that go."""
        E = self.C - np.eye(len(self.C))
        left = E @ X.T
        signed = sign[:, None] * X
        K = self.rho * np.eye(len(X)) - signed @ left
        right = np.column_stack([signed @ self.w - sign * y, signed @ E])
        answer = left @ np.linalg.solve(K, right)
        self.w += answer[:, 0]
        self.C += answer[:, 1:]

    def remove(self, X: np.ndarray, y: np.ndarray) -> None:
        """Corollary 4."""
        self.change(X, y, -np.ones(len(X)))

    def add(self, X: np.ndarray, y: np.ndarray) -> None:
        """Corollary 3."""
        self.change(X, y, np.ones(len(X)))
