# SPDX-License-Identifier: BSD-3-Clause
"""How far a solution of the dual of least squares is off, as its judge measures it.

The judge shares no line with the machine: it knows NumPy, kernel values computed afresh and the
solution. With r = t - b - (K + D) a, 1'a = 0 and D = diag(rho / s),

    |D^-1/2 (f - f*)|  <=  |D^-1/2 r|,     |w - w*|  <=  |D^-1/2 r|,

whatever the correction of a and b was computed by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

_UNIT = 2.0**-53
_TWOFOLD = 2.0**-100  # a sum to twice the precision, relative to its terms
# An error of f, in units of the targets, that is never held against a solution.
_NEVER_TOO_MUCH = 1e-13
# Weights, or a bias, below this part of what the targets alone would give are measured against
# that: where f is constant, all weights are nothing but rounding.
_BESIDE_TARGETS = 1e-3


@dataclass(frozen=True)
class DualJudged:
    """Weights and bias, with a column for each output, and the equations they should solve.

    Kernel values are known to `rounding`, relative to the root of k(x_i, x_i) k(x_j, x_j). With
    `features` and `w` the kernel is linear, and f is w'x + b.
    """

    K: _Floats
    rounding: float
    features: _Floats | None
    d: _Floats
    aims: _Floats
    intercept: bool
    alpha: _Floats
    bias: _Floats
    w: _Floats | None

    def relative_error(self, step: _Floats, shift: _Floats) -> float:
        """The largest correction of an output's weights, and of its bias, relative to their size.

        A weight is measured in units of its row, so that a row of huge values does not excuse the
        others.
        """
        unit = np.sqrt(np.diagonal(self.K) + self.d)
        worst = 0.0
        for k, aim in enumerate(self.aims.T):
            with np.errstate(over="ignore"):  # of weights that are nowhere near the solution
                size = float(np.linalg.norm(unit * self.alpha[:, k]))
                moved = float(np.linalg.norm(unit * step[:, k]))
            weights = max(size, _BESIDE_TARGETS * float(np.linalg.norm(aim / unit)))
            bias = max(abs(float(self.bias[k])), _BESIDE_TARGETS * float(np.abs(aim).max()))
            for change, size in ((moved, weights), (abs(float(shift[k])), bias)):
                if not math.isfinite(change + size):
                    return math.inf
                worst = max(worst, change / size if size > 0.0 else 0.0)
        return worst

    def left_over(self, lacking: _Floats, step: _Floats, shift: _Floats) -> _Floats:
        """How far f may be off after a correction, for each output, at the row it is worst for."""
        with np.errstate(over="ignore", invalid="ignore"):  # of steps that are not finite
            rest = lacking - (self.K @ step + self.d[:, None] * step + shift)
            return np.asarray(self._off(np.abs(rest)).max(axis=0))

    def permitted(self, tol: float) -> _Floats:
        """How far f of each output may be off: `tol` in units of its targets."""
        share = 1.0 / (self.d / self.d.min())
        mean_square = (share @ self.aims**2) / share.sum()
        return np.asarray(max(tol, _NEVER_TOO_MUCH) * np.sqrt(mean_square))

    def rounds_away(self) -> _Floats:
        """What may lack at each row: what f loses to rounding, and what its residual does."""
        return self._summed() + self._unseen()

    def f_error(self, lacking: _Floats, balance: _Floats, answer: _Floats) -> float:
        """How far f may be off at the rows: by residuals, by the sum of weights, and by rounding.

        `answer` has the weights that sum to 1 and leave all residuals alike.
        """
        off = self._off(np.abs(lacking) + self._unseen())
        if self.intercept:
            rounding = _UNIT if self.features is None else _UNIT**2
            total = np.abs(balance) + 2.0 * rounding * np.abs(self.alpha).sum(axis=0)
            off = off + np.outer(self.d * np.abs(answer), total)
        return float((off + self._summed()).max(initial=0.0))

    def _off(self, r: _Floats) -> _Floats:
        """A bound on |f - f*| of each row, from one on the residuals."""
        deviation, root = np.sqrt(self.d), self._root()
        length = np.linalg.norm(r / deviation[:, None], axis=0)
        # |f - f*| is at most |w - w*| root, and |b - b*|, which any other row bounds
        bias = float((deviation + root).min()) if self.intercept else 0.0
        return np.outer(np.minimum(deviation, root + bias), length)

    def _summed(self) -> _Floats:
        """What f of each row loses when it is summed, and in the kernel values of the sum."""
        if self.features is None or self.w is None:
            root = self._root()
            lost = self.rounding + len(self.d) * _UNIT
            terms = lost * np.outer(root, root @ np.abs(self.alpha))
        else:
            lost = (self.features.shape[1] + 3) * _UNIT
            terms = lost * (np.abs(self.features) @ np.abs(self.w))
        return np.asarray(terms + 4.0 * _UNIT * self._ends())

    def _unseen(self) -> _Floats:
        """What a residual may have beyond the one computed.

        That is the rounding of kernel values, or of sums to twice the precision.
        """
        size = np.abs(self.alpha)
        if self.features is None:
            root = self._root()
            terms = self.rounding * np.outer(root, root @ size)
        else:
            X = np.abs(self.features)
            terms = _TWOFOLD * (X @ (X.T @ size))
        return np.asarray(terms + _TWOFOLD * self._ends())

    def _ends(self) -> _Floats:
        """The size of the terms of a residual besides those of the kernel."""
        own = self.d[:, None] * np.abs(self.alpha)
        return np.asarray(np.abs(self.aims) + np.abs(self.bias) + own)

    def _root(self) -> _Floats:
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.K), 0.0)))
