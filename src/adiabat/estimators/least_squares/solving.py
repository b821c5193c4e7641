# SPDX-License-Identifier: BSD-3-Clause
"""From an estimator of least squares and a checked change to its next machine.

Errors of the machine come out in the words of the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from adiabat.errors import NotLearnedError, NotOptimalError
from adiabat.estimators.least_squares.following import Following
from adiabat.estimators.least_squares.rows import Rows, TargetPlan, require_moments
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.evidence import require_possible
from adiabat.lssvm.machine import Batch, LeastSquares, gather
from adiabat.lssvm.moments import Moments, NotConverged
from adiabat.typing import FloatArray

_NOT_REMOVED = (
    "remove_X has rows that were never learned: without them rho*I + Phi'Phi would not be positive "
    "definite. Pass the rows as they were learned, with the same sample_weight"
)
_NOT_SUBTRACTED = (
    "other has rows that this model never learned: without them rho*I + Phi'Phi would not be "
    "positive definite"
)


def solved(
    estimator: Any,
    before: LeastSquares | None,
    plan: TargetPlan,
    batches: list[Batch],
    approximate: bool,
) -> LeastSquares:
    """The machine after rows have come and gone."""
    rho = float(estimator.rho)
    removing = any(batch.sign < 0.0 for batch in batches)
    certain = removing and not _beyond_moments(estimator, before)
    with _in_words(estimator, _NOT_REMOVED if certain else None):
        if before is None or not len(before):
            width = estimator._features(batches[0].X[:1]).shape[1]
            require_moments(width)
            moments = Moments(width, len(plan.columns))
            gather(moments, batches, rho)
            return _machine(estimator, moments, plan.combine)
        base = replace(before, tol=estimator.tol)
        if plan.columns != list(range(base.moments.n_targets)):
            base = base.retargeted(plan.columns, plan.combine)
        sums = base.summed(batches)
        if removing and not approximate:
            require_possible(base.moments, sums.moments, rho, plan.emptied)
        elif removing:
            sums.moments.n_rough += sum(len(batch) for batch in batches if batch.sign < 0.0)
        return base.changed(sums)


def followed(
    estimator: Any,
    before: LeastSquares | None,
    plan: TargetPlan,
    added: Rows,
    removed: Rows,
    approximate: bool,
) -> tuple[LeastSquares, Following]:
    """The machine after rows have come and gone, and its map, which follows them."""
    if approximate and len(removed):
        raise ValueError(
            "approximate=True unlearns rows that are known only roughly, and the feature_map of "
            "this model follows rows exactly; pass the rows as they were learned, or use a map of "
            "adiabat.feature_maps"
        )
    rho, n_targets = float(estimator.rho), len(plan.columns)

    def targets(rows: Rows) -> FloatArray:
        return estimator._columns(rows.y, plan) if len(rows) else np.empty((0, n_targets))

    came, gone = (added, targets(added)), (removed, targets(removed))
    with _in_words(estimator, _NOT_REMOVED if len(removed) else None):
        if before is None or not len(before):
            following = Following.of(estimator._map, *came)
        else:
            known: Following = estimator._following
            following = known.changed(came, gone, plan.columns, rho, plan.emptied)
        moments = following.moments(rho)
        require_moments(moments.width)
        machine = _machine(estimator, moments, plan.combine)
    stay = [target for target in range(n_targets) if target not in plan.emptied]
    return machine, following.with_targets(stay)


def resolved(estimator: Any, moments: Moments, combine: FloatArray) -> LeastSquares:
    """The machine of other moments, such as those of two models."""
    with _in_words(estimator, _NOT_SUBTRACTED):
        return _machine(estimator, moments, combine)


def too_singular(estimator: Any, what: str) -> NotOptimalError:
    """The error of a machine that float64 cannot solve."""
    return NotOptimalError(
        f"w could not be computed to tol={estimator.tol:g} ({what}): rho={estimator.rho:g} is too "
        "small for features of this scale. Scale the features, or raise rho"
    )


def _machine(estimator: Any, moments: Moments, combine: FloatArray) -> LeastSquares:
    intercept = bool(estimator.fit_intercept)
    return LeastSquares.solved(moments, float(estimator.rho), intercept, estimator.tol, combine)


def _beyond_moments(estimator: Any, before: LeastSquares | None) -> bool:
    """Whether what the moments have lost, not a row, may make the matrix indefinite."""
    return before is not None and bool(estimator.rho < before.moments.lost.sum())


@contextmanager
def _in_words(estimator: Any, indefinite: str | None) -> Iterator[None]:
    """Errors of the machine in the words of the user; what an indefinite matrix shows, if so."""
    try:
        yield
    except IndefiniteMatrix as error:
        if indefinite is None:
            raise too_singular(estimator, str(error)) from error
        raise NotLearnedError(indefinite) from error
    except NotConverged as error:
        raise too_singular(estimator, str(error)) from error
