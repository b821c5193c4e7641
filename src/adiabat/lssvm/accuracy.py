# SPDX-License-Identifier: BSD-3-Clause
"""How far f may be from the optimum's at the rows of a least-squares machine.

**Primal.** With M x* = h for the exact moments and g = h - M x of the x at hand, the distance
d = x* - x = M^-1 g satisfies

    sum_i s_i (f_i - f_i*)^2 + rho |w - w*|^2  =  d'M d  =  g'M^-1 g,

which is what the last correction gains, and that what it leaves over, r, is bounded by |r|^2 / rho
but for the bias. What the moments themselves have lost is such a g, too.

**Dual.** With (K + D) a + 1 b = t - r, 1'a = 0 and D = diag(rho / s) one has f* - f = (I - D Q) r,
where Q, the inverse with the bias eliminated, lies between 0 and D^-1. Hence

    |D^-1/2 (f* - f)|  <=  |D^-1/2 r|,     |w - w*|  <=  |D^-1/2 r|,

whatever the condition of K. r is known exactly for the kernel values at hand; what these have lost
to rounding adds `rounding` s_i sum_j s_j |a_j| with s_i = sqrt(k(x_i, x_i)). If 1'a = c, f* - f has
c D P1 / 1'P1 more, P being the inverse of K + D.

To both comes what is rounded when f is summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from adiabat.lssvm.moments import Moments
from adiabat.typing import FloatArray

#: Unit roundoff of float64.
UNIT: Final = 2.0**-53


def lost_residual(moments: Moments, combine: FloatArray, solution: FloatArray) -> FloatArray:
    """What the residual of each output may lack because the moments have lost it."""
    J, m = moments.width, len(solution)
    e = np.sqrt(moments.lost)
    return np.outer(e[:m], e[:m] @ np.abs(solution) + e[J:] @ np.abs(combine))


def rounding_of_f(
    moments: Moments, intercept: bool, combine: FloatArray, solution: FloatArray, in_parts: bool
) -> FloatArray:
    """What each output loses when it is summed at rows of weight 1 or more.

    `in_parts` says that f is summed in expansions, and rounded once.
    """
    J, x = moments.width, np.abs(solution)
    root = np.sqrt(np.maximum(moments.diagonal(), 0.0))
    if in_parts:  # the optimum is no farther from the targets than 0 is
        return np.asarray(4.0 * UNIT * (root[J:] @ np.abs(combine)))
    # |phi_ij| is at most the root of the sum of squares
    summed = root[:J] @ x[:J] + (x[J] if intercept else 0.0)
    return np.asarray((J + 3) * UNIT * summed)


@dataclass(frozen=True)
class DualScale:
    """Sizes of the rows of a dual machine.

    `root` has the roots of k(x_i, x_i), `rounding` is that of the kernel values relative to them.
    With `features`, the rows of a linear kernel, f is w'x + b and has no part in either.
    """

    root: FloatArray
    d: FloatArray
    rounding: float
    features: FloatArray | None


def rounding_carried(
    scale: DualScale, aims: FloatArray, alpha: FloatArray, bias: FloatArray, w: FloatArray | None
) -> FloatArray:
    """What f of each row loses when it is summed, and in the kernel values of the sum."""
    n = len(scale.d)
    if scale.features is not None and w is not None:
        summed = (scale.features.shape[1] + 3) * UNIT * (np.abs(scale.features) @ np.abs(w))
    else:
        weight = scale.root @ np.abs(alpha)
        summed = (scale.rounding + n * UNIT) * np.outer(scale.root, weight)
    ends = np.abs(aims) + np.abs(bias) + scale.d[:, None] * np.abs(alpha)
    return np.asarray(summed + 4.0 * UNIT * ends)


def unseen(scale: DualScale, aims: FloatArray, alpha: FloatArray, bias: FloatArray) -> FloatArray:
    """What the residual of each row may have beyond the one computed.

    That is the rounding of kernel values, or, where the residual comes from features, that of sums
    to twice the precision.
    """
    weights = np.abs(alpha)
    if scale.features is None:
        part = scale.rounding * np.outer(scale.root, scale.root @ weights)
    else:
        X = np.abs(scale.features)
        part = 2.0**-100 * (X @ (X.T @ weights))
    ends = np.abs(aims) + np.abs(bias) + scale.d[:, None] * weights
    return np.asarray(part + 2.0**-100 * ends)


def dual_error(scale: DualScale, r: FloatArray, intercept: bool) -> FloatArray:
    """A bound on |f - f*| at each row from one on its residual, f summed without rounding."""
    deviation = np.sqrt(scale.d)
    distance = np.linalg.norm(r / deviation[:, None], axis=0)
    # |f - f*| is at most |w - w*| root, and |b - b*|, which any other row bounds
    off = scale.root + (np.min(deviation + scale.root) if intercept else 0.0)
    return np.outer(np.minimum(deviation, off), distance)
