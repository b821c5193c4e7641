# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares machine in the dual: one unknown for each row, for kernels without features.

    (K + D) a + 1 b = t,   1'a = 0 if there is a bias,        D = diag(rho / s)

P = (K + D)^-1 grows and shrinks by blocks. With new rows N, V = P K_N' and the Schur complement
S = K_NN + D_N - K_N V, which is at least D_N:

    P_new = [[P + V S^-1 V', -V S^-1], [-S^-1 V', S^-1]];    without rows R,  P - P_R P_RR^-1 P_R'.

As in the primal, every change ends with the residual to twice the precision, answered by P; when
that no longer shrinks, P is built anew from K. Leave-one-out comes from the diagonal:
t_i - a_i / Q_ii, Q being P with the bias eliminated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from adiabat._core.twofold import residual
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.machine import Effort, NotSettled

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Growing by k rows takes about 3 m^2 k operations, building anew (m + k)^3.
_UPDATE_SHARE: Final = 0.3
_CORRECTIONS: Final = 12
_SETTLED: Final = 1e-12


@dataclass(frozen=True)
class DualMachine:
    """K, D, the inverse of their sum, and the solution for some aims; never changed."""

    K: FloatArray
    d: FloatArray
    P: FloatArray
    aims: FloatArray
    intercept: bool
    tol: float
    alpha: FloatArray
    bias: FloatArray
    error: float
    gap: float
    effort: Effort

    def __len__(self) -> int:
        return len(self.d)

    @classmethod
    def built(
        cls, K: FloatArray, d: FloatArray, aims: FloatArray, intercept: bool, tol: float
    ) -> DualMachine:
        """From scratch."""
        machine = cls(
            K, d, _inverse(K, d), aims, intercept, tol,
            np.zeros_like(aims), np.zeros(aims.shape[1]), 0.0, 0.0, Effort("rebuild"),
        )  # fmt: skip
        return machine._settled()

    def changed(
        self, stays: IntArray, K_cross: FloatArray, K_new: FloatArray, d_new: FloatArray,
        aims: FloatArray,
    ) -> DualMachine:  # fmt: skip
        """Once only `stays` have stayed, in that order, and new rows have come after them.

        `K_cross` has the kernel values of the new rows with those that stay, `K_new` among
        themselves; `aims` those of all rows.
        """
        m, k = len(stays), len(d_new)
        K = np.empty((m + k, m + k))
        K[:m, :m] = self.K[np.ix_(stays, stays)]
        K[m:, :m], K[:m, m:], K[m:, m:] = K_cross, K_cross.T, K_new
        d = np.concatenate([self.d[stays], d_new])
        gone = np.setdiff1d(np.arange(len(self)), stays)
        if len(gone) + k > _UPDATE_SHARE * (m + k):
            return DualMachine.built(K, d, aims, self.intercept, self.tol)
        try:
            P = self._grown(self._shrunk(stays, gone), K_cross, K_new, d_new)
        except LinAlgError:
            return DualMachine.built(K, d, aims, self.intercept, self.tol)
        way = "update" if len(gone) + k else "none"
        moved = replace(
            self, K=K, d=d, P=P, aims=aims, effort=Effort(way),
            alpha=np.zeros_like(aims), bias=np.zeros(aims.shape[1]),
        )  # fmt: skip
        return moved._settled()

    def _shrunk(self, stays: IntArray, gone: IntArray) -> FloatArray:
        P = self.P[np.ix_(stays, stays)]
        if len(gone):
            F = cholesky(self.P[np.ix_(gone, gone)], lower=True, check_finite=False)
            W = solve_triangular(F, self.P[np.ix_(gone, stays)], lower=True, check_finite=False)
            P -= W.T @ W
        return P

    def _grown(
        self, P: FloatArray, K_cross: FloatArray, K_new: FloatArray, d_new: FloatArray
    ) -> FloatArray:
        m, k = len(P), len(d_new)
        if k == 0:
            return P
        V = P @ K_cross.T
        S = K_new - K_cross @ V
        S.flat[:: k + 1] += d_new
        F = cholesky(S, lower=True, check_finite=False)
        W = solve_triangular(F, V.T, lower=True, check_finite=False)
        corner = solve_triangular(F, np.eye(k), lower=True, check_finite=False)
        grown = np.empty((m + k, m + k))
        grown[:m, :m] = P
        grown[:m, :m] += W.T @ W
        grown[m:, :m] = -corner.T @ W
        grown[:m, m:] = grown[m:, :m].T
        grown[m:, m:] = corner.T @ corner
        return grown

    # -- exactness -------------------------------------------------------------------------------

    def _settled(self) -> DualMachine:
        alpha, bias = self.alpha, self.bias
        if len(self) == 0 or self.aims.shape[1] == 0:
            return self
        previous, rounds = np.inf, 0
        if not alpha.any():  # the residual of nothing is the aim itself
            alpha, bias = self.solve(self.aims, np.zeros_like(bias))
        for _ in range(_CORRECTIONS):
            lacking, balance = self.lacking(alpha, bias)
            step, shift = self.solve(lacking, balance)
            alpha, bias = alpha + step, bias + shift
            rounds += 1
            error = relative_error(step, shift, alpha, bias)
            shrinks = error <= 0.25 * previous
            if error <= _SETTLED or (error <= self.tol and not shrinks):
                gap = float(np.max(np.abs(np.einsum("ik,ik->k", lacking, step))))
                effort = replace(self.effort, rounds=self.effort.rounds + rounds)
                return replace(self, alpha=alpha, bias=bias, error=error, gap=gap, effort=effort)
            if not (shrinks and np.isfinite(error)):
                break
            previous = error
        if self.effort.way == "rebuild":
            raise NotSettled(f"{error:.1e} off after {rounds} corrections")
        fresh = DualMachine.built(self.K, self.d, self.aims, self.intercept, self.tol)
        return replace(fresh, effort=Effort("rebuild", rounds + fresh.effort.rounds, 1))

    def lacking(self, alpha: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What t - b - (K + D) a leaves, and what the sums of a lack to be zero."""
        rows = []
        for k in range(alpha.shape[1]):
            # t - b rounds; what it rounds away is passed on
            hi = self.aims[:, k] - bias[k]
            back = hi - self.aims[:, k]
            lo = (self.aims[:, k] - (hi - back)) + (-bias[k] - back)
            rows.append(residual(self.K, None, self.d, np.ascontiguousarray(alpha[:, k]), hi, lo))
        balance = -alpha.sum(axis=0) if self.intercept else np.zeros(alpha.shape[1])
        return np.column_stack(rows), balance

    def solve(self, r: FloatArray, balance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The (a, b) of (K + D) a + 1 b = r, 1'a = balance."""
        a = self.P @ r
        if not self.intercept:
            return a, np.zeros(r.shape[1])
        one = self.P.sum(axis=1)
        b = (a.sum(axis=0) - balance) / one.sum()
        return a - np.outer(one, b), b

    def outputs_without(self) -> FloatArray:
        """For each row, the outputs of the machine without it."""
        diagonal = np.diagonal(self.P).copy()
        if self.intercept:
            one = self.P.sum(axis=1)
            diagonal -= one**2 / one.sum()
        if len(self) == 1 and self.intercept:  # nothing is left to tell the bias
            return np.zeros_like(self.aims)
        return np.asarray(self.aims - self.alpha / diagonal[:, None])


def _inverse(K: FloatArray, d: FloatArray) -> FloatArray:
    if len(d) == 0:
        return np.zeros((0, 0))
    S = K.copy()
    S.flat[:: len(d) + 1] += d
    try:
        factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError as error:
        raise IndefiniteMatrix(str(error)) from error
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return np.ascontiguousarray(lower + np.tril(lower, -1).T)


def relative_error(
    step: FloatArray, shift: FloatArray, alpha: FloatArray, bias: FloatArray
) -> float:
    """The largest correction of an output's a and b, relative to their size."""
    if not (np.isfinite(step).all() and np.isfinite(shift).all()):
        return float("inf")
    size = np.sqrt((alpha**2).sum(axis=0) + bias**2)
    move = np.sqrt((step**2).sum(axis=0) + shift**2)
    return float(np.max(np.divide(move, size, out=np.zeros_like(move), where=size > 0.0)))
