# SPDX-License-Identifier: BSD-3-Clause
"""The auxiliary matrix: the inverse that answers for the rows, rebuilt or updated.

LKW19 keeps C = I - rho S^-1 with S = rho I + Phi Phi' (4). Here it is P = S^-1, which differs by a
shift and a factor and loses no digits in the difference. With a bias S is taken about the mean mu
of the features, so that a large mean does not spoil its condition; then

    S_new = S + sum_i s_i (phi_i - mu)(phi_i - mu)' - m m' / c_new,   m = sum_i s_i (phi_i - mu),

where s_i > 0 comes and s_i < 0 goes. That is S + U D U', and (6) reads
P_new = P - P U K^-1 U' P with K = D^-1 + U' P U. S_new is positive definite exactly if K has the
signs of D, which the factor of K shows: K = F diag(+1, -1) F'.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsymm, dsymv, dsyr, dsyrk
from scipy.linalg.lapack import dpotri

from adiabat._core.twofold import centred
from adiabat.lssvm.moments import Moments
from adiabat.typing import FloatArray

# Where a row that leaves keeps less than this of its own weight, P would lose the digits of the
# quotient; the factor is then built anew.
_LEAST_PIVOT: Final = 1e-6


_ALL_THE_WEIGHT: Final = "a row that leaves has all the weight in its direction"


class IndefiniteMatrix(ArithmeticError):
    """S is not positive definite, or so nearly that its inverse has no digits."""


class AuxiliaryMatrix:
    """S^-1 about the mean, as an inverse or as a Cholesky factor; never changed, only replaced."""

    def __init__(
        self,
        mean: FloatArray,
        total: float,
        intercept: bool,
        factor: FloatArray | None,
        inverse: FloatArray | None,
    ) -> None:
        self.mean = mean
        self.total = total
        self.intercept = intercept
        self._factor = factor  # lower, in Fortran order: S = factor factor'
        self._inverse = inverse  # upper triangle in Fortran order

    @classmethod
    def rebuilt(cls, moments: Moments, rho: float, intercept: bool) -> AuxiliaryMatrix:
        """From the moments."""
        J = moments.width
        total = moments.total_weight
        if intercept and moments.n_heavy == 0:
            # without weight nothing tells b: it is 0
            S, mean, total = np.zeros((J, J)), np.zeros(J), np.inf
        elif intercept:
            S = centred(moments.hi, moments.lo, J)
            mean = moments.hi[:J, J] / total
        else:
            S = np.triu(moments.hi[:J, :J])
            mean = np.zeros(J)
        S.flat[:: J + 1] += rho
        try:
            # its transpose is in Fortran order, as LAPACK wants it: nothing is copied
            factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise IndefiniteMatrix(str(error)) from error
        return cls(mean, total, intercept, factor, None)

    def changed(self, phi: FloatArray, s: FloatArray) -> AuxiliaryMatrix:
        """With rows taken in (s > 0) and off (s < 0), by (6)."""
        came, gone = s > 0.0, s < 0.0
        mean, total = self.mean, self.total
        U = np.asfortranarray((phi - mean).T)
        d = s
        if self.intercept:
            total = self.total + float(s.sum())
            if total <= 0.0:
                raise IndefiniteMatrix("no weight would be left")
            m = U @ s
            mean = self.mean + m / total
            if len(s) == 1:  # the two terms are multiples of one another
                d = s * (self.total / total)
            else:
                U = np.asfortranarray(np.column_stack([U, m]))
                d = np.append(s, -1.0 / total)
                came, gone = d > 0.0, d < 0.0
        P = np.array(self.inverse, order="F")
        for sign, rows in ((1.0, came), (-1.0, gone)):
            if not rows.any():
                continue
            part = np.asfortranarray(U[:, rows])
            PU = _times(P, part)
            own = 1.0 / np.abs(d[rows])
            if len(own) == 1:
                P = _one_changed(P, part[:, 0], PU[:, 0], sign, float(own[0]))
                continue
            K = sign * (part.T @ PU)
            K.flat[:: len(own) + 1] += own
            try:
                F = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError as error:
                raise IndefiniteMatrix(str(error)) from error
            if sign < 0.0 and (np.diagonal(F) ** 2 < _LEAST_PIVOT * own).any():
                raise IndefiniteMatrix(_ALL_THE_WEIGHT)
            W = solve_triangular(F, PU.T, lower=True, check_finite=False, overwrite_b=True)
            P = dsyrk(-sign, np.asfortranarray(W), beta=1.0, c=P, trans=1, overwrite_c=1)
        return AuxiliaryMatrix(mean, total, self.intercept, None, P)

    @property
    def inverse(self) -> FloatArray:
        """P, of which only the upper triangle holds."""
        if self._inverse is None:
            assert self._factor is not None
            inverse, _ = dpotri(self._factor, lower=1)
            self._inverse = np.asfortranarray(inverse.T)
        return self._inverse

    def solve(self, r: FloatArray) -> FloatArray:
        """The answers (w, b) to columns of right-hand sides."""
        if not self.intercept:
            return self._apply(r)
        J = len(self.mean)
        w = self._apply(r[:J] - np.outer(self.mean, r[J]))
        b = r[J] / self.total - self.mean @ w
        return np.concatenate([w, b[None, :]])

    def _apply(self, r: FloatArray) -> FloatArray:
        if r.size == 0:
            return np.zeros_like(r)
        if self._inverse is None:
            answer: FloatArray = cho_solve((self._factor, True), r, check_finite=False)
        else:
            answer = _times(self._inverse, r)
        return answer

    def bias_variance(self, rho: float) -> float:
        """At most the entry of the bias in the inverse with the bias, 1/c + mu' S^-1 mu.

        It needs no inverse but S >= rho: an updated one may have lost a direction.
        """
        return 1.0 / self.total + float(self.mean @ self.mean) / rho

    def quadratics(self, phi: FloatArray) -> FloatArray:
        """(phi - mu)' S^-1 (phi - mu) of each row."""
        centred = (phi - self.mean).T
        if self._factor is None:
            return np.asarray(np.einsum("ij,ij->j", centred, _times(self.inverse, centred)))
        half = solve_triangular(self._factor, centred, lower=True, check_finite=False)
        return np.asarray(np.einsum("ij,ij->j", half, half))

    @property
    def has_inverse(self) -> bool:
        """Whether the inverse is there already, and need not be made of the factor."""
        return self._inverse is not None


def _one_changed(
    P: FloatArray, u: FloatArray, Pu: FloatArray, sign: float, own: float
) -> FloatArray:
    """P once a single row has come or gone: what (6) is then, without its matrices of one entry."""
    k = own + sign * float(u @ Pu)
    if not k > (_LEAST_PIVOT if sign < 0.0 else 0.0) * own:
        raise IndefiniteMatrix(_ALL_THE_WEIGHT)
    return np.asarray(dsyr(-sign / k, Pu, a=P, overwrite_a=1))


def _times(P: FloatArray, columns: FloatArray) -> FloatArray:
    """P @ columns, P symmetric and given by its upper triangle."""
    if columns.shape[1] == 1:
        return np.asarray(dsymv(1.0, P, columns[:, 0])[:, None])
    return np.asarray(dsymm(1.0, P, np.asfortranarray(columns)))
