# SPDX-License-Identifier: BSD-3-Clause
"""Every rho from one eigendecomposition, and what each row would get from a model without it.

With S_0 = V diag(lambda) V' (the moments about the mean, without rho), (S_0 + rho I)^-1 is
V diag(1 / (lambda + rho)) V' for every rho. Solutions are corrected by the exact residual as
everywhere else. Eigenvalues are off by roundings of the largest one: where rho is not well above
that, because one feature is huge, S is factored for it, which no scaling of the features spoils.

The leverage of a row is h_i = s_i ((phi_i - mu)' S^-1 (phi_i - mu) + 1/c), and without the row its
output would be t_i - (t_i - f_i) / (1 - h_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from adiabat._core.twofold import centred
from adiabat.lssvm.auxiliary import AuxiliaryMatrix
from adiabat.lssvm.machine import LeastSquares
from adiabat.typing import FloatArray

#: Where 1 - h is smaller, it has lost digits: the row is better taken off for good.
LEAST_REST: Final = 1e-6
# Eigenvalues may be off by this part of rho.
_RESOLVED: Final = 1e-8


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues and eigenvectors of a machine's moments about the mean."""

    values: FloatArray
    vectors: FloatArray
    mean: FloatArray
    total: float

    @classmethod
    def of(cls, model: LeastSquares) -> Spectrum:
        """That of a machine."""
        J = model.moments.width
        if model.intercept:
            S = centred(model.moments.hi, model.moments.lo, J)
            mean = model.moments.hi[:J, J] / model.moments.total_weight
        else:
            S = np.triu(model.moments.hi[:J, :J])
            mean = np.zeros(J)
        S += np.triu(S, 1).T
        values, vectors = np.linalg.eigh(S)
        return cls(np.maximum(values, 0.0), vectors, mean, model.moments.total_weight)

    def resolves(self, rho: float) -> bool:
        """Whether the eigenvalues are exact enough for a rho."""
        off = len(self.values) * np.finfo(np.float64).eps * float(self.values.max(initial=0.0))
        return bool(off <= _RESOLVED * rho)

    def machine(self, model: LeastSquares, rho: float) -> LeastSquares:
        """The machine with another rho, its solution as exact as any."""
        if not self.resolves(rho):
            return LeastSquares.solved(
                model.moments, rho, model.intercept, model.tol, model.combine
            )
        inverse = (self.vectors / (self.values + rho)) @ self.vectors.T
        matrix = AuxiliaryMatrix(
            self.mean, self.total, model.intercept, None, np.asfortranarray(inverse)
        )
        return model.with_rho(rho, matrix)

    def quadratics(self, phi: FloatArray, rhos: FloatArray) -> FloatArray:
        """(phi - mu)' S^-1 (phi - mu) of each row, for each rho a column."""
        squares = ((phi - self.mean) @ self.vectors) ** 2
        return np.asarray(squares @ (1.0 / (self.values[:, None] + rhos)))


def leverages(quadratic: FloatArray, total: float, intercept: bool, s: FloatArray) -> FloatArray:
    """Leverage h of each row."""
    return np.asarray(s * (quadratic + (1.0 / total if intercept else 0.0)))


def leave_one_out_outputs(aims: FloatArray, outputs: FloatArray, h: FloatArray) -> FloatArray:
    """Outputs for each row of the model that never saw it."""
    return np.asarray(aims - (aims - outputs) / (1.0 - h)[:, None])
