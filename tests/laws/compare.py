# SPDX-License-Identifier: BSD-3-Clause
"""How far a model is from the optimum that an independent solver finds on the same rows.

Models are compared by decision values, objective and certificate, never by alpha: with equal rows
alpha is not unique. K u is, for any u that is optimal; so the decision values less b are compared
always, and those with b where b is unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from oracles import batch_qp, problems
from oracles.batch_qp import EPS, Solution
from oracles.operations import Roster

TOL_OBJECTIVE = 1e-9
TOL_F = 1e-7
TOL_SAME = 1e-8  # two models of this package


@dataclass(frozen=True)
class Difference:
    """Of one machine from the truth: the objective relatively, f relative to its own size."""

    pair: tuple[Any, Any]
    objective: float
    f: float
    unique: bool

    @property
    def ok(self) -> bool:
        return self.objective <= TOL_OBJECTIVE and self.f <= TOL_F


def parameters(model: Any) -> dict[str, Any]:
    """What the oracle needs to know of a model: C and the kernel, gamma settled."""
    values = {name: getattr(model, name) for name in ("C", "kernel", "degree", "coef0")}
    return values if model.kernel == "linear" else {**values, "gamma": model.gamma_}


def pair_values(model: Any, X: Any) -> dict[tuple[Any, Any], Any]:
    """Decision values of every pair of classes, above 0 for the second."""
    classes = model.classes_.tolist()
    shape = model.decision_function_shape
    model.decision_function_shape = "ovo"
    try:
        f = model.decision_function(X)
    finally:
        model.decision_function_shape = shape
    if len(classes) == 2:
        return {(classes[0], classes[1]): f}
    return {pair: -f[:, k] for k, pair in enumerate(combinations(classes, 2))}


def pair_weights(model: Any) -> dict[tuple[Any, Any], tuple[Any, float]]:
    """(u in the order of ids_, b) of every pair, from the public attributes."""
    classes = model.classes_.tolist()
    n, support, dual = len(model.ids_), model.support_, model.dual_coef_
    sign = 1.0 if len(classes) == 2 else -1.0
    rank = np.repeat(np.arange(len(classes)), model.n_support_)
    weights = {}
    for k, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        u = np.zeros(n)
        for own, other in ((i, j), (j, i)):
            row = 0 if len(classes) == 2 else other - (other > own)
            mine = rank == own
            u[support[mine]] = sign * dual[row, mine]
        weights[classes[i], classes[j]] = u, float(sign * model.intercept_[k])
    return weights


def truth(
    params: dict[str, Any], roster: Roster, pair: tuple[Any, Any]
) -> tuple[Solution, Any, Any]:
    """(optimum, mask of its rows in the roster, their kernel matrix) for two of the classes."""
    chosen = np.isin(roster.y, pair)
    X = roster.X[chosen]
    K = problems.gram_of(params, X, X)
    sign = np.where(roster.y[chosen] == pair[1], 1.0, -1.0)
    return batch_qp.solve_svc(K, sign, params["C"], roster.sample_weight[chosen]), chosen, K


def differences(model: Any, roster: Roster, X_other: Any) -> list[Difference]:
    """Of every machine, on the rows it was trained on and on others."""
    assert model.ids_.tolist() == roster.ids.tolist(), "ids_ are not the rows learned, in order"
    assert model.classes_.tolist() == np.unique(roster.y).tolist()
    if len(model.classes_) < 2:
        return []
    params = parameters(model)
    X = np.vstack([roster.X, X_other])
    found, held = pair_values(model, X), pair_weights(model)
    result = []
    for pair, values in found.items():
        best, chosen, K = truth(params, roster, pair)
        t = np.where(roster.y[chosen] == pair[1], 1.0, -1.0)
        u, b = held[pair]
        assert not u[~chosen].any(), "a row of another class has weight in this machine"
        objective = batch_qp.objective(K, t, u[chosen])
        K_all = problems.gram_of(params, X, roster.X[chosen])
        size = float(np.max(np.abs(K_all) @ np.abs(best.u), initial=0.0))
        expected = best.decide(K_all)
        b_expected = best.b
        if not best.unique_f:
            values, expected, b_expected = values - b, expected - best.b, 0.0
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)), abs(b_expected))
        off = float(np.abs(values - expected).max(initial=0.0))
        rounding = 0.0 * EPS * (size + abs(b_expected))
        result.append(
            Difference(
                pair,
                abs(objective - best.objective) / max(abs(best.objective), 1e-300)
                if objective != best.objective
                else 0.0,
                max(0.0, off - rounding) / scale,
                best.unique_f,
            )
        )
    return result
