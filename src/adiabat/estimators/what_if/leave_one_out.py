# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out: for each sample the model that never had it, and what it says of it.

Samples without weight need no work: the optimum does not depend on them. Every other one is driven
out of each machine that holds it (CP01 Algorithm 2), by pivots (`engine.tableau`) or on a copy
(`engine.trial`). Where only right or wrong is asked, two rules of CP01 save some of it: g of the
sample that goes can only fall, so one that is wrong stays wrong, and the path may stop where f
changes its sign.

Of the estimators with one machine (regression, one class, the sphere) all rows of a sample leave at
once, and the sum of weights moves with it where it depends on the samples (one class).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.estimators.kernel import votes
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.copies import copy_removing, rows_for
from adiabat.estimators.what_if.removals import (
    Progress,
    Unit,
    machine_values,
    remove_each,
    weighty_units,
)
from adiabat.estimators.what_if.results import LeaveOneOut
from adiabat.formulations.labels import label_array
from adiabat.typing import FloatArray, IntArray


def leave_one_out(
    estimator: Any, decisions: bool, n_jobs: int | None, progress: Progress | None
) -> LeaveOneOut:
    """Leave every sample of a classifier out in turn; see `SVC.leave_one_out`."""
    model: Model = estimator._model
    formulation: Any = model.formulation
    codes = formulation.codes(model.target)
    rank = np.searchsorted(np.sort(codes), model.target)
    rank = np.argsort(codes)[rank]  # codes are in the order of their labels
    members = np.bincount(rank, minlength=len(codes))
    values = machine_values(model)
    pairs = votes.pairs_of(len(codes))
    verdicts_only = not decisions and len(codes) == 2
    units = [
        (column, place)
        for column, place in weighty_units(model)
        if members[rank[place]] > 1
        and not (verdicts_only and (values[place, 0] > 0.0) != (rank[place] == 1))
    ]
    removals = remove_each(estimator, units, n_jobs, progress, ask=verdicts_only)
    for (column, place), removal in zip(units, removals, strict=True):
        values[place, column] = -values[place, column] if removal.decided else removal.f
    scores, chosen = _decide(values, len(codes))
    if len(codes) > 2 and estimator.decision_function_shape == "ovo":
        scores = -values
    for place in np.flatnonzero(members[rank] == 1).tolist():
        left = [k for k, pair in enumerate(pairs) if rank[place] not in pair]
        others = np.delete(np.arange(len(codes)), rank[place])
        own = votes.scores(values[place : place + 1, left], len(others))[0]
        chosen[place] = others[np.argmax(own)] if len(others) else 0
        if len(codes) <= 2:
            scores[place] = 0.0
        elif estimator.decision_function_shape == "ovr":
            scores[place, rank[place]] = -np.inf
            scores[place, others] = own
        else:
            scores[place, [k for k, pair in enumerate(pairs) if rank[place] in pair]] = -np.inf
    labels = label_array([formulation.label[code] for code in codes])
    return LeaveOneOut(
        ids=model.ledger.ids,
        target=labels[rank],
        decision=scores if decisions else None,
        prediction=labels[chosen],
        n_removals=len(units),
    )


def _decide(values: FloatArray, n_classes: int) -> tuple[FloatArray, IntArray]:
    """Decision values and chosen classes from those of the pairs, as `SVC` has them."""
    if n_classes == 2:
        return values[:, 0].copy(), (values[:, 0] > 0.0).astype(np.int64)
    scores = votes.scores(values, n_classes)
    return scores, np.argmax(scores, axis=1) if n_classes else np.zeros(len(values), dtype=np.int64)


def leave_one_out_values(
    estimator: Any, n_jobs: int | None, progress: Progress | None
) -> tuple[FloatArray, int]:
    """F at each sample by the machine without it, and how many had to be removed for it."""
    model: Model = estimator._model
    values = machine_values(model)[:, 0]
    units: list[Unit] = []
    apart: list[Unit] = []
    for unit in _all_units(model):
        (apart if _reformulates(model, unit[1]) else units).append(unit)
    for (_, place), removal in zip(
        units, remove_each(estimator, units, n_jobs, progress), strict=True
    ):
        values[place] = removal.f
    for _, place in apart:
        values[place] = _value_after_forgetting(estimator, place)
    return values, len(units) + len(apart)


def _all_units(model: Model) -> list[Unit]:
    """Samples whose removal changes the machine: those with weight, or all if the sum moves."""
    ((key, machine),) = model.machines
    others = np.ones(len(model), dtype=bool)
    others[0] = False
    total = model.formulation.total(key, model.target[others], model.weight[others])
    if total != machine.d:
        return [(0, place) for place in range(len(model))]
    return weighty_units(model)


def _reformulates(model: Model, place: int) -> bool:
    """Whether the formulation is another one without a sample, or there is none left."""
    others = np.arange(len(model)) != place
    if not np.any(model.weight[others]):
        return True
    remaining = model.formulation.resolve(model.target[others], model.weight[others])
    return remaining.reshapes(model.formulation)


def _value_after_forgetting(estimator: Any, place: int) -> float:
    """F at a sample by a copy that has forgotten it; of an empty model, 0."""
    places = np.array([place])
    view = copy_removing(estimator, places)
    if len(view._model) == 0:
        return 0.0
    return float(view._model.decide(rows_for(view, estimator, places))[0, 0])
