# SPDX-License-Identifier: BSD-3-Clause
"""Every rho from one eigendecomposition, and what each row would get from a model without it.

With S_0 = V diag(lambda) V' (the moments about the mean, without rho), (S_0 + rho I)^-1 is
V diag(1 / (lambda + rho)) V' for every rho. Solutions are corrected by the exact residual as
everywhere else. The leverage of a row is h_i = s_i ((phi_i - mu)' S^-1 (phi_i - mu) + 1/c), and
without the row its output would be t_i - (t_i - f_i) / (1 - h_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from adiabat._core.twofold import centred
from adiabat.lssvm.auxiliary import AuxiliaryMatrix
from adiabat.lssvm.machine import LeastSquares, right_sides

FloatArray = npt.NDArray[np.float64]

#: Where 1 - h is smaller, it has lost digits: the row is better taken off for good.
LEAST_REST: Final = 1e-6
_CORRECTIONS: Final = 4


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

    def solution(self, model: LeastSquares, rho: float) -> FloatArray:
        """What the machine's solution would be with another rho."""
        other = model.with_rho(rho, self.matrix(rho, model.intercept))
        right = right_sides(other.moments, other.intercept, other.combine)
        answer = other.matrix.solve(right[0])
        for _ in range(_CORRECTIONS):
            correction = other.matrix.solve(other.lacking(answer, right))
            answer = answer + correction
            if np.abs(correction).max(initial=0.0) <= 1e-15 * np.abs(answer).max(initial=0.0):
                break
        return answer

    def matrix(self, rho: float, intercept: bool) -> AuxiliaryMatrix:
        """The auxiliary matrix of a rho."""
        inverse = (self.vectors / (self.values + rho)) @ self.vectors.T
        return AuxiliaryMatrix(self.mean, self.total, intercept, None, np.asfortranarray(inverse))

    def projections(self, phi: FloatArray) -> FloatArray:
        """Squares of the rows' coordinates along the eigenvectors, about the mean."""
        return np.asarray(((phi - self.mean) @ self.vectors) ** 2)


def leverages(
    squares: FloatArray, spectrum: Spectrum, rho: float, intercept: bool, s: FloatArray
) -> FloatArray:
    """Leverage h of each row, from `Spectrum.projections`."""
    quadratic = squares @ (1.0 / (spectrum.values + rho))
    return np.asarray(s * (quadratic + (1.0 / spectrum.total if intercept else 0.0)))


def without_itself(aims: FloatArray, outputs: FloatArray, h: FloatArray) -> FloatArray:
    """Outputs for each row of the model that never saw it."""
    return np.asarray(aims - (aims - outputs) / (1.0 - h)[:, None])
