# SPDX-License-Identifier: BSD-3-Clause
"""How far a least-squares solution is off, as its judge measures it.

The judge shares no line with the machine: it knows NumPy, the moments and the solution. With g the
residual of the normal equations M x = h, c a correction and r = g - M c what it leaves over,

    g'M^-1 g <= (sqrt(c'M c) + sqrt(r'M^-1 r))^2,   r'M^-1 r <= |r|^2 / rho but for the bias,

bounds the squares of the errors of f, whatever the correction was computed by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

_UNIT = 2.0**-53
# An error of f, in units of the targets, that is never held against a solution.
_NEVER_TOO_MUCH = 1e-13
# A w that is less than this part of (w, b) is measured against both.
_BESIDE = 1e-6


@dataclass(frozen=True)
class Judged:
    """A solution, with a column for each output, and the moments it should solve.

    `hi` is the leading part of the moments, of which the upper triangle is read; entry j, k may
    lack sqrt(lost_j lost_k). `bias_variance` bounds the entry of the bias in the inverse.
    """

    hi: _Floats
    lost: _Floats
    rho: float
    intercept: bool
    combine: _Floats
    solution: _Floats
    bias_variance: float
    in_parts: bool

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.hi) - len(self.combine)

    def ridge(self) -> _Floats:
        """What the normal equations add to the diagonal."""
        return np.where(np.arange(len(self.solution)) < self.width, self.rho, 0.0)

    def units(self) -> _Floats:
        """The root of the diagonal of the normal equations."""
        squares = np.diagonal(self.hi)[: len(self.solution)]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) + self.ridge()))

    def relative_error(self, correction: _Floats) -> float:
        """The largest correction of w, and of w and b together, relative to what is corrected."""
        if correction.size == 0:
            return 0.0
        worst, units = 0.0, self.units()
        for c, x in zip(correction.T * units, self.solution.T * units, strict=True):
            whole = float(np.linalg.norm(x))
            size = max(float(np.linalg.norm(x[: self.width])), _BESIDE * whole)
            for step, against in ((c[: self.width], size), (c, whole)):
                length = float(np.linalg.norm(step))
                if not math.isfinite(length + against):
                    return math.inf
                worst = max(worst, length / against if against > 0.0 else 0.0)
        return worst

    def gap(self, lacking: _Floats, correction: _Floats, right: _Floats) -> float:
        """What a correction gains, relative to max(1, objective)."""
        gains = np.maximum(0.0, np.sum(lacking * correction, axis=0))
        objectives = self._target_squares() - np.sum(self.solution * right, axis=0)
        return float(np.max(gains / np.maximum(1.0, np.abs(objectives)), initial=0.0))

    def left_over(self, lacking: _Floats, correction: _Floats) -> tuple[_Floats, _Floats]:
        """How far f moves by a correction, and how far it may be off after it, for each output."""
        m = len(correction)
        M = self._whole()[:m, :m] + np.diag(self.ridge())
        product = M @ correction
        units, size = self.units(), np.abs(correction)
        rounding = (m + 4.0) * _UNIT * np.outer(units, units @ size)
        moved = np.sum(correction * product, axis=0) + np.sum(size * rounding, axis=0)
        rest = np.abs(lacking - product) + rounding + 2.0 * _UNIT * np.abs(lacking)
        return np.sqrt(np.maximum(moved, 0.0)), self.off_by(rest)

    def off_by(self, rest: _Floats) -> _Floats:
        """How far f is off at most, of residuals no larger than these."""
        off = np.linalg.norm(rest[: self.width], axis=0) / math.sqrt(self.rho)
        if self.intercept:
            off = off + math.sqrt(self.bias_variance) * rest[self.width]
        return np.asarray(off)

    def target_size(self) -> _Floats:
        """The root of the mean square of what each output aims at."""
        total = max(float(self.hi[self.width, self.width]), float(np.finfo(np.float64).tiny))
        return np.asarray(np.sqrt(np.maximum(self._target_squares(), 0.0) / total))

    def permitted(self, tol: float) -> _Floats:
        """How far f of each output may be off."""
        return np.asarray(max(tol, _NEVER_TOO_MUCH) * self.target_size())

    def f_error(self, off: _Floats) -> float:
        """How far f may be off: by the residuals, by lost digits of moments, and by its own sum."""
        x, e = np.abs(self.solution), np.sqrt(self.lost)
        J, m = self.width, len(x)
        lost = self.off_by(np.outer(e[:m], e[:m] @ x + e[J:] @ np.abs(self.combine)))
        root = np.sqrt(np.maximum(np.diagonal(self.hi), 0.0))
        if self.in_parts:
            rounded = 4.0 * _UNIT * (root[J:] @ np.abs(self.combine))
        else:
            rounded = (J + 3) * _UNIT * (root[:J] @ x[:J] + x[J:].sum(axis=0))
        return float(np.max(off + lost + rounded, initial=0.0))

    def _target_squares(self) -> _Floats:
        """Sum of s t^2 of what each output aims at."""
        block = self._whole()[self.width :, self.width :]
        return np.asarray(np.sum(self.combine * (block @ self.combine), axis=0))

    def _whole(self) -> _Floats:
        return np.asarray(np.triu(self.hi) + np.triu(self.hi, 1).T)
