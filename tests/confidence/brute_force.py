# SPDX-License-Identifier: BSD-3-Clause
"""Full conformal prediction by definition: every candidate is learned in a model of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import adiabat
from adiabat.estimators.kernel import votes
from adiabat.typing import FloatArray

from oracles import batch_qp
from oracles.problems import Problem, gram_of

# What two solutions of one problem may differ by; ties are far below, differences far above.
SAME = 1e-7


def rank(scores: FloatArray, among: Any = slice(None)) -> float:
    """P-value of the last score: small is strange, and ties count in full."""
    others = scores[:-1][among]
    return float(1 + np.sum(others <= scores[-1] + SAME)) / (len(others) + 1)


def doubtful(scores: FloatArray) -> bool:
    """Whether some score is neither a tie with the last nor clearly another."""
    distance = np.abs(scores[:-1] - scores[-1])
    return bool(np.any((distance > 1e-8) & (distance < 1e-6)))


def margins(model: Any, X: Any, y: Any) -> FloatArray:
    """Y f of rows with their labels, the least over the pairs of each."""
    values, classes = model._decide(X), model.classes_
    found = np.full(len(y), np.inf)
    for column, (first, second) in enumerate(votes.pairs_of(len(classes))):
        for k, sign in ((first, -1.0), (second, 1.0)):
            own = np.asarray(y) == classes[k]
            found[own] = np.minimum(found[own], sign * values[own, column])
    return found


def margins_by_refit(estimator: Any, X: Any, y: Any, weight: Any, x: Any, label: Any) -> FloatArray:
    """Those of all samples and of a newcomer, by a model fitted on them all."""
    rows, labels = np.vstack([X, x[None, :]]), np.append(y, label)
    model = type(estimator)(**estimator.get_params())
    model.fit(rows, labels, sample_weight=np.append(weight, 1.0))
    return margins(model, rows, labels)


def margins_by_piqp(problem: Problem, x: Any, label: int) -> FloatArray | None:
    """The same by a batch solver; None where b is not unique."""
    rows, labels = np.vstack([problem.X, x[None, :]]), np.append(problem.y, label)
    K, C = gram_of(problem.params, rows, rows), problem.params["C"]
    given = batch_qp.svc_rows(labels, C, np.append(problem.sample_weight, 1.0))
    found = batch_qp.solve(K, *given)
    if not batch_qp.unique_f(K, *given, found.u):
        return None
    return np.asarray(labels * (K @ found.u + found.b))


def residuals_at(model: Any, X: Any, y: Any, x: Any, z: float) -> FloatArray:
    """Absolute residuals of all samples and of a newcomer with target z, by a model of them all.

    `model` has the newcomer already, as its last sample.
    """
    model.revise(model.ids_[-1:], y=[z])
    rows = np.vstack([X, x[None, :]])
    return np.abs(np.append(y, z) - model.predict(rows))


def regression_with(params: dict[str, Any], X: Any, y: Any, weight: Any, x: Any) -> Any:
    """A model of the samples and a newcomer, whose target is still to be told."""
    model = adiabat.SVR(**params)
    model.fit(np.vstack([X, x[None, :]]), np.append(y, 0.0), np.append(weight, 1.0))
    return model


def inside(parts: FloatArray, z: float) -> bool:
    """Whether a target is in a region."""
    return bool(np.any((parts[:, 0] <= z) & (z <= parts[:, 1])))
