# SPDX-License-Identifier: BSD-3-Clause
"""The least-squares machine in the dual: one unknown for each row, for kernels without features.

    (K + D) a + 1 b = t,   1'a = 0 if there is a bias,        D = diag(rho / s)

P = (K + D)^-1 grows and shrinks by blocks. With new rows N, V = P K_N' and the Schur complement
S = K_NN + D_N - K_N V, which is at least D_N:

    P_new = [[P + V S^-1 V', -V S^-1], [-S^-1 V', S^-1]];    without rows R,  P - P_R P_RR^-1 P_R'.

As in the primal, every change ends with the residual to twice the precision, answered by P; when
that no longer shrinks, P is built anew from K. Leave-one-out comes from the diagonal:
t_i - a_i / Q_ii, Q being P with the bias eliminated.

Where rho is small, a = s (t - f) / rho is large, and f = K a + b is what little is left of large
sums: a rounding of K or a moves f by 1e-16 |K| |a|. `f_error` bounds that (see `accuracy`). Under a
linear kernel nothing need be lost: K = XX', so that the residual comes from the rows X themselves,
a has two parts, and f is w'x + b with w = X'a summed to twice the precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from adiabat._core.twofold import residual
from adiabat.lssvm.accuracy import UNIT, DualScale, dual_error, rounding_carried, unseen
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.linear import from_features, from_leverages, sum_rows, two_sum
from adiabat.lssvm.machine import Effort
from adiabat.lssvm.moments import NotConverged
from adiabat.lssvm.normal_equations import CONVERGED, CORRECTIONS
from adiabat.typing import FloatArray, IntArray

# Growing by k rows takes about 3 m^2 k operations, building anew (m + k)^3.
_UPDATE_SHARE: Final = 0.3
# A weight or bias that is less than this part of what the targets alone would give is measured
# against that: where f is constant, all weights are nothing but rounding.
_NOTHING_BESIDE: Final = 1e-3
# Random vectors on which an inverse is tried, and by how much they may underrate its error.
_PROBES: Final = 4
_CAUTION: Final = 8.0
_EPSILON: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Values:
    """Kernel values among the rows, and how well they are known.

    `rounding` bounds |K_ij - k(x_i, x_j)|, relative to the root of k(x_i, x_i) k(x_j, x_j). Under a
    linear kernel `features` has the rows of which K has the products.
    """

    K: FloatArray
    rounding: float = 0.0
    features: FloatArray | None = None

    def among(self, stays: IntArray, cross: FloatArray, new: Values) -> Values:
        """Those of rows that stay and of new ones after them; `cross` has those between them."""
        m, k = len(stays), len(new.K)
        K = np.empty((m + k, m + k))
        K[:m, :m] = self.K[np.ix_(stays, stays)]
        K[m:, :m], K[:m, m:], K[m:, m:] = cross, cross.T, new.K
        features = None
        if self.features is not None and new.features is not None:
            features = np.vstack([self.features[stays], new.features])
        return Values(K, max(self.rounding, new.rounding), features)


@dataclass(frozen=True)
class LeftOut:
    """What machines without each row say of it, and how far that may be off."""

    outputs: FloatArray
    f_error: FloatArray


@dataclass(frozen=True)
class DualMachine:
    """Kernel values, D, the inverse of their sum, and the solution for some aims; never changed."""

    values: Values
    d: FloatArray
    P: FloatArray
    aims: FloatArray
    intercept: bool
    tol: float
    alpha: FloatArray
    rest: FloatArray  # what alpha rounds away; 0 but under a linear kernel
    bias: FloatArray
    w: FloatArray | None
    error: float
    gap: float
    f_error: float
    effort: Effort

    def __len__(self) -> int:
        return len(self.d)

    @classmethod
    def built(
        cls, values: Values, d: FloatArray, aims: FloatArray, intercept: bool, tol: float
    ) -> DualMachine:
        """From scratch."""
        machine = cls(
            values, d, _inverse(values.K, d), aims, intercept, tol,
            np.zeros_like(aims), np.zeros_like(aims), np.zeros(aims.shape[1]), None,
            0.0, 0.0, 0.0, Effort("rebuild"),
        )  # fmt: skip
        return machine._refined()

    def changed(
        self, stays: IntArray, cross: FloatArray, new: Values, d_new: FloatArray, aims: FloatArray
    ) -> DualMachine:
        """The machine with only the rows `stays`, in that order, and new rows after them.

        `cross` has the kernel values of the new rows with those that stay; `aims` those of all
        rows.
        """
        values = self.values.among(stays, cross, new)
        d = np.concatenate([self.d[stays], d_new])
        gone = np.setdiff1d(np.arange(len(self)), stays)
        if len(gone) + len(d_new) > _UPDATE_SHARE * len(d):
            return DualMachine.built(values, d, aims, self.intercept, self.tol)
        try:
            P = self._grown(self._shrunk(stays, gone), cross, new.K, d_new)
        except LinAlgError:
            return DualMachine.built(values, d, aims, self.intercept, self.tol)
        way = "update" if len(gone) + len(d_new) else "none"
        moved = replace(
            self, values=values, d=d, P=P, aims=aims, effort=Effort(way), w=None,
            alpha=np.zeros_like(aims), rest=np.zeros_like(aims), bias=np.zeros(aims.shape[1]),
        )  # fmt: skip
        return moved._refined()

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

    def _refined(self) -> DualMachine:
        if len(self) == 0 or self.aims.shape[1] == 0:
            return self
        alpha, bias = self.solve(self.aims, np.zeros(self.aims.shape[1]))
        rest, scale = np.zeros_like(alpha), self.scale()
        previous, rounds = np.inf, 0
        while rounds < CORRECTIONS:
            lacking, balance = self.lacking(self.aims, alpha, rest, bias)
            step, shift = self.solve(lacking, balance)
            if self.values.features is None:
                alpha = alpha + step
            else:
                alpha, lost = two_sum(alpha, step)
                alpha, rest = two_sum(alpha, rest + lost)
            bias = bias + shift
            rounds += 1
            error = self.relative_error(step, shift, alpha, bias)
            shrinks = error <= 0.25 * previous
            solved = self.with_solution(alpha, rest, bias)
            fine = bool((np.abs(lacking) <= solved.allowed(scale)).all())
            last = not shrinks or rounds == CORRECTIONS
            if fine and error <= self.tol and (error <= CONVERGED or last):
                return replace(
                    solved, error=error, f_error=solved.distance(lacking, balance),
                    gap=float(np.max(np.abs(np.einsum("ik,ik->k", lacking, step)))),
                    effort=replace(self.effort, rounds=self.effort.rounds + rounds),
                )  # fmt: skip
            if not (shrinks and np.isfinite(error)):
                break
            previous = error
        if self.effort.way == "rebuild":
            raise NotConverged(f"{error:.1e} off after {rounds} corrections")
        fresh = DualMachine.built(self.values, self.d, self.aims, self.intercept, self.tol)
        return replace(fresh, effort=Effort("rebuild", rounds + fresh.effort.rounds, 1))

    def with_solution(self, alpha: FloatArray, rest: FloatArray, bias: FloatArray) -> DualMachine:
        """With other weights and biases."""
        X = self.values.features
        w = None if X is None else sum_rows(X, alpha, rest)
        return replace(self, alpha=alpha, rest=rest, bias=bias, w=w)

    def lacking(
        self, aims: FloatArray, alpha: FloatArray, rest: FloatArray, bias: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What t - b - (K + D) a leaves, and what the sums of a lack to be zero."""
        balance = np.zeros(alpha.shape[1])
        if self.intercept:
            pairs = zip(alpha.T, rest.T, strict=True)
            balance = np.array([-math.fsum([*a.tolist(), *b.tolist()]) for a, b in pairs])
        X = self.values.features
        if X is not None:
            return from_features(X, self.d, aims, alpha, rest, bias), balance
        rows = []
        for k in range(alpha.shape[1]):
            # t - b rounds; what it rounds away is passed on
            hi, lo = two_sum(aims[:, k], -bias[k])
            a = np.ascontiguousarray(alpha[:, k])
            rows.append(residual(self.values.K, None, self.d, a, hi, lo))
        return np.column_stack(rows), balance

    def solve(self, r: FloatArray, balance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The (a, b) of (K + D) a + 1 b = r, 1'a = balance."""
        a = self.P @ r
        if not self.intercept:
            return a, np.zeros(r.shape[1])
        one = self.P.sum(axis=1)
        b = (a.sum(axis=0) - balance) / one.sum()
        return a - np.outer(one, b), b

    def relative_error(
        self, step: FloatArray, shift: FloatArray, alpha: FloatArray, bias: FloatArray
    ) -> float:
        """The largest correction of an output's a, and of its b, relative to their size.

        Weights are measured in units of their rows, so that a row of huge values is no excuse for
        the others.
        """
        if not (np.isfinite(step).all() and np.isfinite(shift).all()):
            return float("inf")
        unit = np.sqrt(np.diagonal(self.values.K) + self.d)[:, None]
        with np.errstate(over="ignore"):  # of weights that are nowhere near the solution
            size = np.linalg.norm(unit * alpha, axis=0)
            move = np.linalg.norm(unit * step, axis=0)
        if not (np.isfinite(size).all() and np.isfinite(move).all()):
            return float("inf")
        size = np.maximum(size, _NOTHING_BESIDE * np.linalg.norm(self.aims / unit, axis=0))
        least = _NOTHING_BESIDE * np.abs(self.aims).max(axis=0, initial=0.0)
        off = np.divide(move, size, out=np.zeros_like(move), where=size > 0.0)
        whole = np.maximum(np.abs(bias), least)
        off_bias = np.divide(np.abs(shift), whole, out=np.zeros_like(whole), where=whole > 0.0)
        return float(max(off.max(), off_bias.max()))

    def scale(self) -> DualScale:
        """What rounding and distances are measured with."""
        return DualScale(
            np.sqrt(np.maximum(np.diagonal(self.values.K), 0.0)), self.d, self.values.rounding,
            self.values.features,
        )  # fmt: skip

    def carried(self, scale: DualScale) -> FloatArray:
        """What f of each row loses to rounding, whatever the solution."""
        return rounding_carried(scale, self.aims, self.alpha, self.bias, self.w)

    def allowed(self, scale: DualScale) -> FloatArray:
        """What may lack at each row: no more than f loses to rounding, or the residual itself."""
        return self.carried(scale) + unseen(scale, self.aims, self.alpha, self.bias)

    def distance(self, lacking: FloatArray, balance: FloatArray) -> float:
        """How far f may be from the optimum's at the rows, from what is lacking."""
        scale = self.scale()
        bound = dual_error(scale, self.residual_bound(lacking, scale), self.intercept)
        if self.intercept:
            # weights that sum to c and not to 0 move f by c D P1 / 1'P1
            one = self.P.sum(axis=1)
            rounding = UNIT if self.values.features is None else UNIT**2
            total = np.abs(balance) + 2.0 * rounding * np.abs(self.alpha).sum(axis=0)
            bound = bound + np.outer(self.d * np.abs(one / one.sum()), total)
        return float((bound + self.carried(scale)).max(initial=0.0))

    def residual_bound(self, lacking: FloatArray, scale: DualScale) -> FloatArray:
        """What is lacking at most, for the kernel values that these have been rounded from."""
        return np.abs(lacking) + unseen(scale, self.aims, self.alpha, self.bias)

    # -- leaving rows out ------------------------------------------------------------------------

    def leave_one_out(self) -> LeftOut:
        """For each row, the outputs of the machine without it."""
        if len(self) == 1 and self.intercept:  # nothing is left to tell the bias
            return LeftOut(np.zeros_like(self.aims), np.zeros_like(self.aims))
        Q, known = self._eliminated(self.P)
        if known.max() > CONVERGED and self.effort.way != "rebuild":
            Q, known = self._eliminated(_inverse(self.values.K, self.d))
        own = np.diagonal(Q).copy()
        if self.values.rounding == 0.0:  # else roundings of kernel values count for more
            X = self.values.features
            if X is not None and X.shape[1] < len(X) and known.max() > CONVERGED:
                other, other_known = from_leverages(X, self.d, self.intercept)
                better = other_known < known
                own[better], known[better] = other[better], other_known[better]
            rows = np.flatnonzero(known > CONVERGED)
            if len(rows):
                own[rows], known[rows] = self._refined_diagonal(Q, rows)
        own = own[:, None]
        lost = self.alpha / own
        # without row i the weights are a - Q_i lost_i, and an error r of row j moves f_i by
        # |Q_ij / Q_ii| r_j
        scale = self.scale()
        reach = np.abs(Q) / own
        errors = np.empty_like(lost)
        for k in range(lost.shape[1]):
            sums = np.abs(self.alpha[:, k] - Q * lost[:, k : k + 1]) @ scale.root
            errors[:, k] = self.values.rounding * sums * (reach @ scale.root)
        lacking, _ = self.lacking(self.aims, self.alpha, self.rest, self.bias)
        errors += (known[:, None] + _EPSILON) * np.abs(lost) + _EPSILON * np.abs(self.aims)
        errors += reach @ self.residual_bound(lacking, scale)
        return LeftOut(np.asarray(self.aims - lost), errors)

    def _eliminated(self, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P with the bias eliminated, and how far its diagonal may be off, relatively.

        P may have drifted, or be badly conditioned: E = I - P (K + D) is tried on random vectors,
        which tell the sizes of its rows, and P_ii is off by E_i (K + D)^-1_i.
        """
        unit = np.sqrt(np.diagonal(self.values.K) + self.d)[:, None]
        probes = np.random.default_rng(0).choice([-1.0, 1.0], (len(P), _PROBES)) / unit
        off = probes - P @ (self.values.K @ probes + self.d[:, None] * probes)
        sizes = np.sqrt(np.mean(off**2, axis=1)) * np.linalg.norm(unit * P, axis=0)
        if self.intercept:
            one = P.sum(axis=1)
            P = P - np.outer(one, one) / one.sum()
        return P, _CAUTION * sizes / np.abs(np.diagonal(P))

    def _refined_diagonal(self, Q: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The diagonal of Q at some rows, its columns corrected by their exact residual."""
        place = np.arange(len(rows))
        aims = np.zeros((len(Q), len(rows)))
        aims[rows, place] = 1.0
        columns, bias = Q[:, rows], np.zeros(len(rows))
        known = np.full(len(rows), np.inf)
        for _ in range(CORRECTIONS):
            lacking = self.lacking(aims, columns, np.zeros_like(columns), bias)
            step, shift = self.solve(*lacking)
            columns, bias = columns + step, bias + shift
            now = np.abs(step[rows, place]) / columns[rows, place]
            shrinks = now.max() <= 0.25 * known.max()
            known = now
            if not shrinks or known.max() <= CONVERGED:
                break
        return columns[rows, place], known + 4.0 * _EPSILON


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
