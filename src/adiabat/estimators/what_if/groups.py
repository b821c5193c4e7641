# SPDX-License-Identifier: BSD-3-Clause
"""Groups of samples left out, each at once: what the model that never had them says of them.

Each group leaves the full model in one step (KT09), on a shared copy. Groups without weight need no
work, unless b depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from adiabat.estimators.arguments.labels import label_places
from adiabat.estimators.kernel import votes
from adiabat.estimators.what_if.copies import copy_removing, own_targets, rows_for
from adiabat.estimators.what_if.results import LeaveOut
from adiabat.estimators.what_if.workers import ask_each
from adiabat.typing import FloatArray, IntArray

Answer = tuple[FloatArray, npt.NDArray[Any]]
Ask = Callable[[Any, IntArray], Answer]


def leave_out(
    estimator: Any,
    groups: Any,
    n_jobs: int | None,
    ask: Ask | None = None,
    whole: Any = None,
) -> LeaveOut:
    """Leave every group out in turn; see `KernelMachine.leave_out`.

    `ask` gives decision values and predictions of `whole`, by default the estimator, for samples,
    by place, without them.
    """
    model = estimator._model
    names, members = places_of_groups(groups, model.ledger)
    for name, places in zip(names, members, strict=True):
        if len(places) == len(model):
            raise ValueError(
                f"groups has one group, {name!r}, with all {len(model)} samples, and nothing "
                "would be left without it; use two groups or more"
            )
    parts = ask_each(ask or _asked, estimator if whole is None else whole, members, n_jobs)
    at = np.concatenate(members)
    order = np.argsort(at, kind="stable")
    target = own_targets(estimator)
    group = np.repeat(np.arange(len(names)), [len(places) for places in members])[order]
    return LeaveOut(
        ids=model.ledger.ids[at[order]],
        group=np.asarray(names)[group],
        target=None if target is None else target[at[order]],
        decision=np.concatenate([decision for decision, _ in parts])[order],
        prediction=np.concatenate([prediction for _, prediction in parts])[order],
        n_groups=len(names),
        _numbers=estimator._supervised and not is_classifier(estimator),
    )


def places_of_groups(groups: Any, ledger: Any) -> tuple[list[Any], list[IntArray]]:
    """Names of the groups and the places of their samples; ValueError if they make no sense."""
    if groups is None or isinstance(groups, (str, bytes)) or np.ndim(_first(groups)) > 0:
        members = [] if groups is None or isinstance(groups, (str, bytes)) else list(groups)
        if not members:
            raise ValueError(
                f"groups={groups!r} must be an array with a label for each sample of ids_, or a "
                "list of lists of ids"
            )
        places = [ledger.locate(ids) for ids in members]
        taken = np.bincount(np.concatenate(places), minlength=len(ledger))
        if taken.max(initial=0) > 1:
            twice = ledger.ids.tolist()[int(np.argmax(taken))]
            raise ValueError(f"groups has the id {twice!r} in two groups; each may be in one")
        for k, some in enumerate(places):
            if len(some) == 0:
                raise ValueError(f"groups[{k}] is empty; leave it out of groups")
        return list(range(len(places))), [np.sort(some) for some in places]
    labels = np.asarray(groups)
    if labels.ndim != 1 or len(labels) != len(ledger):
        raise ValueError(
            f"groups has {len(labels)} labels, the model has {len(ledger)} samples; give one label "
            "for each of ids_, in that order, or a list of lists of ids"
        )
    names, inverse = np.unique(labels, return_inverse=True)
    return names.tolist(), [np.flatnonzero(inverse == k) for k in range(len(names))]


def _first(groups: Any) -> Any:
    """Its first element, without asking what the rest is; a scalar if there is none."""
    if isinstance(groups, np.ndarray):
        return 0 if groups.ndim < 2 and groups.dtype != object else groups[0]
    return next(iter(groups), 0) if hasattr(groups, "__iter__") else 0


def _asked(estimator: Any, places: IntArray) -> Answer:
    view = copy_removing(estimator, places)
    X = rows_for(view, estimator, places)
    return said_of(estimator, view, X, places)


def said_of(
    estimator: Any, view: Any, X: Any, places: IntArray
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Decision values and predictions of another model for samples of the estimator."""
    if is_classifier(estimator):
        return shaped_as(estimator.classes_, view, X), view.predict(X)
    if estimator._supervised:
        values = view.predict(X)
        return values, values
    decision = novelty_of(view, X, estimator, places)
    return decision, np.where(decision >= 0.0, 1, -1)


def novelty_of(view: Any, X: Any, estimator: Any, places: IntArray) -> FloatArray:
    """Decision values of samples of one class; a sphere on a given kernel asks for k(x, x)."""
    if hasattr(estimator, "centre_distance") and estimator.kernel == "precomputed":
        model = estimator._model
        own = model.solver.samples.diagonal[model.position[places]]
        return np.asarray(view.decision_function(X, own))
    return np.asarray(view.decision_function(X))


def shaped_as(classes: npt.NDArray[Any], view: Any, X: Any) -> FloatArray:
    """Decision values of a classifier, in the shape that one with all these classes has."""
    left = view.classes_
    if len(left) == len(classes):
        return np.asarray(view.decision_function(X))
    n = X.shape[0]
    if len(classes) == 2:
        return np.zeros(n)
    pairs = view._decide(X)
    column = label_places(left, classes)
    if view.decision_function_shape == "ovr":
        out = np.full((n, len(classes)), -np.inf)
        out[:, column] = votes.scores(pairs, len(left))
        return out
    whole = {pair: k for k, pair in enumerate(votes.pairs_of(len(classes)))}
    out = np.full((n, len(whole)), -np.inf)
    for k, (first, second) in enumerate(votes.pairs_of(len(left))):
        out[:, whole[int(column[first]), int(column[second])]] = -pairs[:, k]
    return out
