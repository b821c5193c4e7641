# SPDX-License-Identifier: BSD-3-Clause
"""Models trained apart, combined into the model of all their rows and taken out again.

Moments add: the model of two sets of rows is that of the sum of their moments, whatever the order
(LKW19's decentralised learning). Only moments travel between the parties, no row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.estimators.least_squares.rows import TargetPlan
from adiabat.feature_maps import same_map
from adiabat.lssvm.evidence import require_possible
from adiabat.lssvm.moments import Moments


def joined_moments(
    mine: Any, other: Any, plan: TargetPlan, theirs: list[int | None], sign: float
) -> Moments:
    """Moments of the rows of both models, or (sign -1) of one without those of the other."""
    before: Moments = mine._model.moments.arranged(plan.columns)
    moments = before.copy()
    moments.join(other._model.moments.arranged(theirs), sign)
    if sign < 0.0:
        require_possible(before, moments, float(mine.rho), plan.emptied)
    return moments


def require_like(mine: Any, other: Any) -> None:
    """Refuse a model that solves another problem, or has learned nothing."""
    if type(other) is not type(mine):
        raise TypeError(f"other is a {type(other).__name__}, not a {type(mine).__name__}")
    if not other.__sklearn_is_fitted__():
        raise ValueError("other is not fitted: it has nothing to give")
    for name in ("rho", "fit_intercept"):
        held, theirs = mine._held_parameters[name], other._held_parameters[name]
        if held != theirs:
            raise ValueError(
                f"{name}={theirs!r} of other is not {name}={held!r} of this model; models "
                "combine only if they solve the same problem"
            )
    held, theirs = mine._held_parameters["remember"], other._held_parameters["remember"]
    if held != theirs:
        raise ValueError(
            f"remember={theirs!r} of other is not remember={held!r} of this model; either both "
            "remember their rows or neither does"
        )
    if not same_map(mine._held_parameters["feature_map"], other._held_parameters["feature_map"]):
        raise ValueError(
            f"feature_map={other.feature_map!r} of other is not that of this model, "
            f"{mine.feature_map!r}"
        )
    if mine._following is not None:
        raise ValueError(
            f"feature_map={mine.feature_map!r} follows the rows of each model, and maps of two "
            "models do not combine; learn the rows of other with partial_fit, or use a map of "
            "adiabat.feature_maps"
        )
    if other.n_features_in_ != mine.n_features_in_:
        raise ValueError(
            f"other has {other.n_features_in_} features, this model {mine.n_features_in_}"
        )
    names, theirs = (getattr(one, "feature_names_in_", None) for one in (mine, other))
    if names is not None and theirs is not None and not np.array_equal(names, theirs):
        raise ValueError("other was fitted on columns of other names, or in another order")
