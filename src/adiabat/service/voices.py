# SPDX-License-Identifier: BSD-3-Clause
"""Why a model says what it says of a row: the support vectors that speak for and against it.

f(x) = sum u k(x, z) + b: each support vector z adds its u k(x, z). With several classes the machine
of the class that was chosen and the next best one is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adiabat.estimators.kernel import votes
from adiabat.service.served import ServedModel
from adiabat.store.predictor import Predictor


@dataclass(frozen=True)
class Voices:
    """The rows with the largest terms: dictionaries of `Store.find` with a ``share`` each.

    `rival` is the class that was the next best, if there are classes.
    """

    voices_for: list[dict[str, Any]]
    voices_against: list[dict[str, Any]]
    rival: Any = None


def voices(model: ServedModel, predictor: Predictor, X: Any, most: int = 5) -> Voices | None:
    """What spoke for and against the answer to one encoded row; None without support vectors."""
    found = predictor.contributions(X)
    if found is None or not len(predictor.support):
        return None
    column, sign, rival = _machine(predictor, X)
    parts = sign * found[1][:, column]
    order = np.argsort(-np.abs(parts), kind="stable")
    chosen_for = [at for at in order if parts[at] > 0.0][:most]
    chosen_against = [at for at in order if parts[at] < 0.0][:most]
    numbers = [int(predictor.support[at]) for at in (*chosen_for, *chosen_against)]
    rows = model.store.find_numbers(numbers)

    def told(places: list[Any]) -> list[dict[str, Any]]:
        # A row that was erased since the predictor was made is not shown.
        return [
            {**rows[int(predictor.support[at])], "share": float(parts[at])}
            for at in places
            if int(predictor.support[at]) in rows
        ]

    return Voices(told(chosen_for), told(chosen_against), rival)


def nearest(
    model: ServedModel, predictor: Predictor, X: Any, besides: int, each: int = 1
) -> list[dict[str, Any]]:
    """For every class the support vectors most alike to a row, but for the row itself."""
    found = predictor.contributions(X)
    if found is None:
        return []
    order = np.argsort(-found[0], kind="stable")[:500]
    rows = model.store.find_numbers(int(predictor.support[at]) for at in order)
    counts: dict[Any, int] = {}
    chosen = []
    for at in order:
        row = rows.get(int(predictor.support[at]))
        if row is None or row["number"] == besides or counts.get(row["label"], 0) >= each:
            continue
        counts[row["label"]] = counts.get(row["label"], 0) + 1
        chosen.append({**row, "likeness": float(found[0][at])})
    return chosen


def _machine(predictor: Predictor, X: Any) -> tuple[int, float, Any]:
    """Which machine decided, the sign of its answer, and the class that lost."""
    decider = predictor.decider
    classes = getattr(decider, "classes_", None)
    if classes is None:  # a number, or inside and outside
        inside = hasattr(decider, "decision_function")
        value = float(decider.decision_function(X)[0]) if inside else 1.0
        return 0, 1.0 if value >= 0.0 else -1.0, None
    if len(classes) < 2:
        return 0, 1.0, None
    label = decider.predict(X)[0]
    chosen = int(np.flatnonzero(classes == label)[0])
    if len(classes) == 2:
        return 0, 1.0 if chosen == 1 else -1.0, classes[1 - chosen]
    values = np.array(decider.decision_function(X)[0], dtype=np.float64)
    pairs = votes.pairs_of(len(classes))
    if len(values) == len(classes):
        values[chosen] = -np.inf
        rival = int(np.argmax(values))
    else:  # decision values of pairs
        rival = next(code for code in range(len(classes)) if code != chosen)
    column = pairs.index((min(chosen, rival), max(chosen, rival)))
    return column, 1.0 if chosen > rival else -1.0, classes[rival]
