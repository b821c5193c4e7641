# SPDX-License-Identifier: BSD-3-Clause
"""Right-hand sides of the normal equations, and sizes of their solutions."""

from __future__ import annotations

from typing import Final

import numpy as np

from adiabat._core import expansions
from adiabat.lssvm.moments import Moments
from adiabat.typing import FloatArray

# Corrections of a solution, at most.
CORRECTIONS: Final = 12
# A correction that is smaller than this needs no second look: what is left of it after it was made
# is smaller again by the factor by which corrections shrink.
CONVERGED: Final = 1e-12
TINY: Final = float(np.finfo(np.float64).tiny)
_NOTHING_BESIDE: Final = 1e-6


def right_sides(
    moments: Moments, intercept: bool, combine: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Right-hand sides of the normal equations, as hi and lo; entries of `combine` are -1, 0, 1, 2.

    Those factors are exact, so that only the sum has to mind what it rounds away.
    """
    rows = moments.width + intercept
    constant, constant_rest = moments.feature_sums(rows)
    sums, sums_rest = moments.sums(rows)
    if intercept:
        # the constant's row of M is above the diagonal only from the constant on
        sums = np.vstack([sums[:-1], moments.hi[moments.width, moments.width + 1 :]])
        sums_rest = np.vstack([sums_rest[:-1], moments.lo[moments.width, moments.width + 1 :]])
    a, b = sums @ combine[1:], np.outer(constant, combine[0])
    hi = a + b
    back = hi - a
    lost = (a - (hi - back)) + (b - back)
    return hi, lost + sums_rest @ combine[1:] + np.outer(constant_rest, combine[0])


def right_parts(moments: Moments, intercept: bool, combine: FloatArray, parts: int) -> FloatArray:
    """The right-hand side of one output, in expansions."""
    m = moments.width + intercept
    total = np.zeros((m, parts))
    for place in np.flatnonzero(combine):
        column = expansions.column(
            moments.hi, moments.lo, moments.rest, m, moments.width + int(place), parts
        )
        expansions.add_scaled(total, column, combine[place : place + 1], 1.0)
    return total


def target_squares(moments: Moments, combine: FloatArray) -> FloatArray:
    """Sum of s t^2 of what each output aims at."""
    block = moments.hi[moments.width :, moments.width :]
    block = np.triu(block) + np.triu(block, 1).T
    return np.asarray(np.einsum("ik,ij,jk->k", combine, block, combine))


def relative_size(
    correction: FloatArray, solution: FloatArray, scale: FloatArray, width: int
) -> float:
    """The largest correction of an output's w, and of its b, relative to what is corrected.

    Coefficients are measured in units of their features (`scale`). A w that is nothing beside b is
    measured against b, since there is then nothing else to measure it against.
    """
    if correction.size == 0:
        return 0.0
    if not np.isfinite(correction).all():
        return float("inf")
    with np.errstate(over="ignore"):  # of a solution that is nowhere near
        steps, sizes = scale[:, None] * correction, scale[:, None] * solution
        whole, step = np.linalg.norm(sizes, axis=0), np.linalg.norm(steps, axis=0)
    if not (np.isfinite(whole).all() and np.isfinite(step).all()):
        return float("inf")
    step = np.linalg.norm(steps[:width], axis=0)
    size = np.maximum(np.linalg.norm(sizes[:width], axis=0), _NOTHING_BESIDE * whole)
    off = np.divide(step, size, out=np.zeros_like(step), where=size > 0.0)
    step = np.linalg.norm(steps, axis=0)
    off_whole = np.divide(step, whole, out=np.zeros_like(step), where=whole > 0.0)
    return float(max(off.max(), off_whole.max()))
