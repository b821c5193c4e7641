# SPDX-License-Identifier: BSD-3-Clause
"""P-values of full conformal prediction: the rank of a newcomer's score among all.

If the newcomer and the samples are exchangeable, its p-value is at most alpha with probability at
most alpha; with smoothing, with probability alpha. For each label the newcomer is learned with it,
all scores are taken from that model, and it is unlearned again (Vovk, Gammerman and Shafer 2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from adiabat.estimators.confidence.scores import Scores
from adiabat.estimators.confidence.visits import Points
from adiabat.typing import FloatArray

SCORES = ("margin", "loo")


def p_values_of_labels(
    estimator: Any,
    X: Any,
    diagonal: Any,
    *,
    score: str = "margin",
    per_class: bool = False,
    smoothing: bool = False,
    random_state: Any = None,
) -> FloatArray:
    """P-values of every class at some rows, (n, n_classes)."""
    model = estimator._model
    points = Points(estimator, X, diagonal)
    codes = model.formulation.codes(model.target)
    if len(codes) < 2:
        raise ValueError(
            f"p-values compare classes, and the model has one, {estimator.classes_[0]!r}; learn "
            "samples of another"
        )
    labels = [model.formulation.label[code] for code in codes]
    draw = _Smoother(smoothing, random_state, (len(points), len(codes)))
    among = [model.target == code if per_class else slice(None) for code in codes]
    out = np.empty((len(points), len(codes)))
    require_score(score)
    for number, k, beside in Scores(estimator, points, score).beside(codes, labels):
        n = len(beside.scores[among[k]])
        out[number, k] = draw.p_value(*beside.counts(among[k]), n, (number, k))
    return out


def p_values_of_novelty(
    estimator: Any,
    X: Any,
    diagonal: Any,
    *,
    score: str = "margin",
    smoothing: bool = False,
    random_state: Any = None,
) -> FloatArray:
    """P-values of being like the samples, (n,)."""
    points = Points(estimator, X, diagonal)
    draw = _Smoother(smoothing, random_state, (len(points),))
    out = np.empty(len(points))
    require_score(score)
    for number, _, beside in Scores(estimator, points, score).beside([0.0], [None]):
        out[number] = draw.p_value(*beside.counts(), len(beside.scores), (number,))
    return out


def require_score(score: Any) -> None:
    """ValueError unless there is such a score."""
    if score not in SCORES:
        raise ValueError(f"score={score!r} must be 'margin' or 'loo'")


class _Smoother:
    """The rank of a newcomer as a p-value; ties count in full, or in part by chance."""

    def __init__(self, smoothing: bool, random_state: Any, shape: tuple[int, ...]) -> None:
        self._part: Any = None
        if smoothing:
            self._part = check_random_state(random_state).uniform(size=shape)

    def p_value(self, stranger: int, ties: int, n: int, which: tuple[int, ...]) -> float:
        part = 1.0 if self._part is None else float(self._part[which])
        return (stranger + part * (ties + 1)) / (n + 1)
