# SPDX-License-Identifier: BSD-3-Clause
"""What the moments say: whether w is their solution, and whether any rows can have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from adiabat.certificate import Certificate
from adiabat.errors import NotLearnedError
from adiabat.lssvm.exact_residual import (
    expanded_residual,
    normal_residual,
    right_hand_side,
)
from adiabat.lssvm.machine import LeastSquares
from adiabat.lssvm.measures import Judged
from adiabat.lssvm.moments import Moments
from adiabat.typing import FloatArray

# A sum of squares may fall this far below zero, in units of rho, before it proves anything: so
# little changes w by no more than this share.
_DOUBT: Final = 1e-6
# What is left of moments that should vanish, relative to what they were: 106 bits, many rows.
_VANISHED: Final = 1e-12
# Part of the targets from which f is not known well.
_VAGUE: Final = 2e-6
# What a certificate rests on where there are no rows to recompute anything from.
_MOMENTS: Final = "this model keeps no rows: optimal for the moments it was given"
_HASHES: Final = (
    "this model keeps no rows but their hashes: optimal for the moments it was given, and every "
    "row unlearned had been learned"
)
_REMEDY: Final = (
    "Pass the rows as they were learned, with the same targets and sample_weight, or "
    "approximate=True if they are known only roughly"
)


def certify(
    model: LeastSquares, held: Mapping[str, Any], afresh: bool, remembers: bool = False
) -> Certificate:
    """The certificate of a machine; `afresh`: from a residual that shares no code with it.

    `remembers` says that rows were unlearned only if a hash showed that they had been learned.
    """
    error, gap, f_error = model.error, model.gap, model.f_error
    if afresh:
        error, gap, f_error = _measured(model)
    moments = model.moments
    if moments.n_rough:
        held = {**held, "rows_unlearned_roughly": moments.n_rough}
    return Certificate(
        residual=error,
        gap=gap,
        n_samples=moments.n,
        n_support=moments.n_heavy,
        tol=model.tol,
        ok=error <= model.tol,
        held_fixed=held,
        basis=_HASHES if remembers else _MOMENTS,
        f_error=f_error,
    )


def _measured(model: LeastSquares) -> tuple[float, float, float]:
    """The relative error of the solution, the relative gap, and how far f may be off."""
    moments = model.moments
    if model.solution.size == 0:
        return 0.0, 0.0, 0.0
    has_bias = model.intercept and moments.n_heavy > 0
    variance = model.matrix.bias_variance(model.rho) if has_bias else 0.0
    judged = Judged(
        moments.hi, moments.lost, model.rho, model.intercept, model.combine, model.solution,
        variance, in_parts=model.expansion is not None,
    )  # fmt: skip
    ridge = judged.ridge()
    lacking, right = np.zeros_like(model.solution), np.zeros_like(model.solution)
    for k in range(lacking.shape[1]):
        aim = right_hand_side(moments.hi, moments.lo, len(right), model.combine[:, k])
        right[:, k] = aim[0]
        if model.expansion is None and moments.rest is None:
            x = model.solution[:, k]
            lacking[:, k] = normal_residual(moments.hi, moments.lo, ridge, x, *aim)
        else:
            parts = [moments.hi, moments.lo, *([] if moments.rest is None else moments.rest)]
            whole = model.solution[:, k : k + 1] if model.expansion is None else model.expansion[k]
            lacking[:, k] = expanded_residual(parts, ridge, whole, model.combine[:, k])
    correction = model.matrix.solve(lacking)
    error = judged.relative_error(correction)
    if model.expansion is None:
        moved, left = judged.left_over(lacking, correction)
    else:
        moved, left = np.zeros(lacking.shape[1]), judged.off_by(np.abs(lacking))
    # a matrix that has lost a direction gives small corrections: f must not be off, either
    vague = _VAGUE * float(judged.target_size().max())
    excess = _excess(left, judged.permitted(model.tol), moved + left, vague)
    if excess > 1.0:
        error = max(error, excess * model.tol)
    return error, judged.gap(lacking, correction, right), judged.f_error(moved + left)


def _excess(left: FloatArray, permitted: FloatArray, off: FloatArray, most: float) -> float:
    """How many times what is permitted f may be off."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.concatenate([left / permitted, off / most])
    return float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0))


def require_possible(
    before: Moments, after: Moments, rho: float, emptied: Sequence[int] = ()
) -> None:
    """Refuse moments that no rows can have; `emptied` are targets that have no rows any more."""
    if after.n_heavy < 0 or after.n < 0:
        raise NotLearnedError(
            f"remove_X has more rows than were learned: {before.n}, of which {before.n_heavy} "
            f"have weight. {_REMEDY}"
        )
    if after.n_heavy == 0:
        require_vanished(after.hi, before.hi, "all")
    for target in emptied:
        column = after.width + 1 + target
        require_vanished(after.hi[:, column], before.hi[:, column], "their class")
    moments = after
    diagonal = moments.diagonal()
    least = float(diagonal[: moments.width].min(initial=0.0))
    if least < -_DOUBT * rho:
        column = int(np.argmin(diagonal[: moments.width]))
        raise NotLearnedError(
            f"remove_X has rows that were never learned: without them feature {column} would have "
            f"the sum of squares {least:.3g}. {_REMEDY}"
        )
    of_targets = diagonal[moments.width :]
    if (of_targets < -_DOUBT * max(1.0, float(of_targets.max(initial=0.0)))).any():
        raise NotLearnedError(
            "remove_y or remove_sample_weight differs from what was learned: a sum of squares of "
            f"targets, or a sum of weights, would be {of_targets.min():.3g}. {_REMEDY}"
        )


def require_vanished(left: FloatArray, before: FloatArray, what: str) -> None:
    """Refuse a removal of the last rows that leaves something behind."""
    scale = float(np.abs(before).max(initial=0.0))
    rest = float(np.abs(left).max(initial=0.0))
    if rest > _VANISHED * scale:
        raise NotLearnedError(
            f"remove_X differs from the rows that were learned: they are the last of {what}, but "
            f"{rest:.1e} of their moments is left. {_REMEDY}"
        )
