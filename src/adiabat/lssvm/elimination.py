# SPDX-License-Identifier: BSD-3-Clause
"""The auxiliary matrix where float64 cannot factor S: its largest pivots in expansions.

A row that is huge in several features makes S = rho I + Phi Phi' as good as singular, however the
features are scaled: beside the row's own direction, everything else is below the last bit. Once
that direction is eliminated, the rest is of an ordinary size. So the constant and then the largest
pivots are eliminated in as many parts as the moments need (`_core.expansions`):

    A = M + diag(ridge),    A_jk - sum_q l_jq u_kq,    u_q the column of pivot q, l_q = u_q / u_pq

of the rest, LAPACK factors the rounded remainder. As a rule there are as many pivots as huge rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from adiabat._core import expansions
from adiabat._core.expansions import MOST_PARTS
from adiabat.lssvm.auxiliary import AuxiliaryMatrix, IndefiniteMatrix
from adiabat.lssvm.moments import Moments, parts_needed
from adiabat.typing import FloatArray

# What is left is factored in float64 if no diagonal entry is more than this in units of rho, or if
# its condition, the features scaled, is not more than this.
_ORDINARY: Final = 1e4
_WELL_CONDITIONED: Final = 1e8
# Products of parts below this, in units of rho, are left out of what is rounded to float64.
_NEGLIGIBLE: Final = 2.0**-80


class PivotedMatrix(AuxiliaryMatrix):
    """S^-1 about the mean, its largest pivots eliminated in expansions."""

    def __init__(self, moments: Moments, rho: float, intercept: bool) -> None:
        J = moments.width
        self._m = J + intercept
        self._rho = rho
        self._given = moments.hi, moments.lo, moments.rest
        ridge = np.full(self._m, rho)
        if intercept:
            ridge[J] = 0.0
        self._ridge = ridge
        diagonal = moments.diagonal()[: self._m]
        largest = float(diagonal.max(initial=0.0))
        self.parts = max(moments.parts, min(MOST_PARTS, parts_needed(largest, rho)))
        self._of_mean: float | None = None
        self._pivots: list[int] = []
        self._L: list[FloatArray] = []
        self._U: list[FloatArray] = []
        self._left = np.zeros((self._m, self.parts))  # the diagonal of what is left
        for j in range(self._m):
            self._left[j] = self._entry(j)
        if intercept:
            self._eliminate(J)
        self._eliminate_largest()
        mean = self._L[0][:J, 0].copy() if intercept else np.zeros(J)
        super().__init__(mean, moments.total_weight, intercept, None, None)

    # -- factor ----------------------------------------------------------------------------------

    def _entry(self, j: int) -> FloatArray:
        """A_jj."""
        hi, lo, rest = self._given
        own = np.zeros((1, self.parts))
        own[0, :2] = hi[j, j], lo[j, j]
        if rest is not None:
            own[0, 2 : 2 + len(rest)] = rest[:, j, j]
        expansions.add_scaled(own, np.ones((1, 1)), self._ridge[j : j + 1], 1.0)
        return np.asarray(own[0])

    def _eliminate(self, p: int) -> None:
        """Take pivot p."""
        column = expansions.column(*self._given, self._m, p, self.parts)
        column[p] = self._entry(p)
        for multiples, u in zip(self._L, self._U, strict=True):
            expansions.add_scaled(column, u, multiples[p], -1.0)
        column[self._pivots] = 0.0
        if not column[p, 0] > 0.0:
            raise IndefiniteMatrix(f"pivot {p} is {column[p, 0]:.2g}")
        multiples = expansions.divide(column, column[p])
        expansions.add_products(self._left, multiples, column, -1.0)
        self._pivots.append(p)
        self._left[p] = 0.0
        self._L.append(multiples)
        self._U.append(column)

    def _eliminate_largest(self) -> None:
        """Take the largest pivots until float64 can factor the rest."""
        trial = len(self._pivots) + 1
        while True:
            others = np.setdiff1d(np.arange(self._m), self._pivots)
            largest = float(self._left[others, 0].max(initial=0.0))
            ordinary = largest <= _ORDINARY * self._rho
            if ordinary or len(self._pivots) >= trial:
                if self._factor_rest(others, must=ordinary):
                    return
                trial = 2 * len(self._pivots)
            self._eliminate(int(others[np.argmax(self._left[others, 0])]))

    def _factor_rest(self, others: npt.NDArray[np.intp], must: bool) -> bool:
        """Factor what is left, if float64 can; raises if it must and cannot."""
        self._others = others
        self._lower = np.zeros((0, 0))
        if len(others) == 0:
            return True
        shape = (len(self._L), self._m, self.parts)
        L, U = np.array(self._L).reshape(shape), np.array(self._U).reshape(shape)
        S = expansions.remainder(
            *self._given, self._ridge, L, U, others, _NEGLIGIBLE * self._rho / (1 + len(L))
        )
        own = np.diagonal(S).copy()
        try:
            factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            if must:
                raise IndefiniteMatrix(str(error)) from error
            return False
        if not must:
            inverse, _ = dpotri(factor, lower=1)
            if not (own * np.diagonal(inverse)).max() <= _WELL_CONDITIONED:
                return False
        self._lower = factor
        return True

    # -- solve -----------------------------------------------------------------------------------

    def solve_parts(self, r: FloatArray) -> FloatArray:
        """The answer to one right-hand side, both in expansions."""
        r = r.copy()
        self._forward(r)
        x = np.zeros((self._m, self.parts))
        if len(self._others):
            rounded = r[self._others].sum(axis=1)
            x[self._others, 0] = cho_solve((self._lower, True), rounded, check_finite=False)
        for p, multiples, u in zip(self._pivots[::-1], self._L[::-1], self._U[::-1], strict=True):
            own = expansions.divide(r[p : p + 1], u[p])[0]
            x[p] = expansions.dot(-multiples, x, own, self.parts)
        return x

    def _forward(self, r: FloatArray) -> None:
        for p, multiples in zip(self._pivots, self._L, strict=True):
            own = r[p].copy()
            expansions.add_scaled(r, multiples, own, -1.0)
            r[p] = own

    def solve(self, r: FloatArray) -> FloatArray:
        """The answers (w, b) to columns of right-hand sides."""
        columns = []
        for k in range(r.shape[1]):
            padded = np.zeros((self._m, self.parts))
            padded[:, 0] = r[:, k]
            columns.append(self.solve_parts(padded)[:, 0])
        return np.column_stack(columns) if columns else np.zeros_like(r)

    def quadratics(self, phi: FloatArray) -> FloatArray:
        """(phi - mu)' S^-1 (phi - mu) of each row."""
        answer = np.zeros(len(phi))
        for row, own in enumerate(phi):
            r = np.zeros((self._m, self.parts))
            r[: len(own), 0] = own
            if self.intercept:
                r[-1, 0] = 1.0
            self._forward(r)
            for p, u in zip(self._pivots[self.intercept :], self._U[self.intercept :], strict=True):
                answer[row] += r[p, 0] / u[p, 0] * r[p, 0]
            half = solve_triangular(self._lower, r[self._others, 0], lower=True, check_finite=False)
            answer[row] += half @ half
        return answer

    def bias_variance(self, rho: float) -> float:
        """The entry of the bias in the inverse with the bias, and some."""
        if self._of_mean is None:
            self._of_mean = float(self.quadratics(np.zeros((1, len(self.mean))))[0])
        return 1.0 / self.total + 2.0 * self._of_mean

    @property
    def inverse(self) -> FloatArray:
        """P, of which only the upper triangle holds."""
        if self._inverse is None:
            J = len(self.mean)
            self._inverse = np.asfortranarray(self.solve(np.eye(self._m, J))[:J])
        return self._inverse

    def changed(self, phi: FloatArray, s: FloatArray) -> AuxiliaryMatrix:
        """Refused: it is built anew from the moments."""
        raise IndefiniteMatrix("an update would have to be in expansions")


def factored(moments: Moments, rho: float, intercept: bool) -> AuxiliaryMatrix:
    """The auxiliary matrix from the moments: in float64, or in expansions where that fails."""
    try:
        return AuxiliaryMatrix.rebuilt(moments, rho, intercept)
    except IndefiniteMatrix:
        # may be rounding: more digits decide
        return PivotedMatrix(moments, rho, intercept)
