# SPDX-License-Identifier: BSD-3-Clause
"""The policies in plain words: a list of rows, a refit after each step, public attributes only."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from adiabat import SVC, SVDD, SVR
from adiabat.retention import Budget, Reserve, Support, Window


def weights(model: Any) -> Any:
    """|u| of every sample held, the largest over the pairs of classes."""
    carried = np.zeros(len(model.ids_))
    dual = np.abs(model.dual_coef_).max(axis=0)
    carried[model.support_] = dual
    return carried


def slacks(model: Any, X: Any, y: Any) -> Any:
    """g of every sample held (CP01 (2)), the least over the pairs it is in."""
    if isinstance(model, SVR):
        return model.epsilon - np.abs(y - model.predict(X))
    if isinstance(model, SVDD):
        return 0.5 * model.decision_function(X)
    if not isinstance(model, SVC):
        return model.decision_function(X)
    f = model.set_params(decision_function_shape="ovo").decision_function(X)
    f = -f[:, None] if f.ndim == 1 else f  # above 0 for the first of a pair
    g, column = np.full(len(X), np.inf), 0
    for i, first in enumerate(model.classes_):
        for second in model.classes_[i + 1 :]:
            side = (y == first).astype(float) - (y == second)
            mine = side != 0.0
            g[mine] = np.minimum(g[mine], side[mine] * f[mine, column] - 1.0)
            column += 1
    return g


class Restated:
    """A model that keeps rows by a policy, refitted at every step."""

    def __init__(self, model: Any) -> None:
        self.model = clone(model).set_params(retain=None)
        self.policy = model.retain
        self.rows: list[int] = []

    def learn(self, X: Any, y: Any, batch: Any) -> Any:
        self.rows += list(batch)
        if isinstance(self.policy, Window):
            self.rows = self.rows[-self.policy.size :]
        if isinstance(self.policy, (Support, Reserve)):
            model = self.fitted(X, y)
            goes = weights(model) == 0.0
            if isinstance(self.policy, Reserve):
                goes &= slacks(model, X[self.rows], y[self.rows]) >= self.policy.eps
            self.rows = [row for row, go in zip(self.rows, goes, strict=True) if not go]
        if isinstance(self.policy, Budget):
            while len(self.rows) > self.policy.size:
                carried = weights(self.fitted(X, y))
                idle = np.flatnonzero(carried == 0.0)[: len(self.rows) - self.policy.size]
                tied = np.flatnonzero(np.isclose(carried, carried.min(), rtol=1e-9))
                goes = set(idle.tolist()) or {int(tied[0])}
                self.rows = [row for place, row in enumerate(self.rows) if place not in goes]
        return self.fitted(X, y)

    def fitted(self, X: Any, y: Any) -> Any:
        # partial_fit, which takes a batch that is too small for C, too
        return clone(self.model).partial_fit(X[self.rows], y[self.rows])
