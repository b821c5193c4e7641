# SPDX-License-Identifier: BSD-3-Clause
"""What an update would do to decision values, before it is done."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from adiabat.certificate import Certificate
from adiabat.estimators.arguments.labels import joined
from adiabat.estimators.arguments.validation import as_csr, n_rows
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.partition import sample_sets
from adiabat.estimators.what_if.copies import copy_removing, nameless, own_copy, own_rows
from adiabat.estimators.what_if.groups import shaped_as
from adiabat.estimators.what_if.results import Preview
from adiabat.typing import FloatArray, IntArray


def preview(estimator: Any, remove: Any, X: Any, y: Any, sample_weight: Any, at: Any) -> Preview:
    """Try an update; see `KernelMachine.preview`."""
    model = estimator._model
    removed = model.ledger.locate(remove)
    n_new = n_rows(X)
    if len(removed) == len(model) and n_new == 0:
        raise ValueError(
            f"remove has all {len(model)} samples of the model, and nothing would be left to "
            "decide; keep one, or add others with X"
        )
    if n_new:
        view = own_copy(estimator, estimator)  # a shared copy takes no samples in
        view.retain = None
        view._checked_parameters = (view.tol, view.solver, None)
        arguments = {"y": y} if estimator._supervised else {}
        view.update(X, sample_weight=sample_weight, remove=remove, **arguments)
    else:
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight go with X, and X is not given; pass X, too")
        view = copy_removing(estimator, removed)
    if at is None:
        at = _staying(estimator, removed, X if n_new else None)
    elif estimator.kernel != "precomputed":
        at = as_csr(estimator._check_rows(at))
    decisions = _decisions(nameless(estimator), nameless(view), at, removed, n_new)
    return compare(model, view._model, removed, n_new, decisions, view.certificate())


def compare(
    model: Model,
    other: Model,
    removed: IntArray,
    n_new: int,
    decisions: tuple[FloatArray, FloatArray],
    certificate: Certificate,
) -> Preview:
    """The difference between two models, of which the second lacks samples and has others."""
    stays = np.ones(len(model), dtype=bool)
    stays[removed] = False
    had, has = np.zeros(len(model), dtype=bool), np.zeros(len(other), dtype=bool)
    had[model.support()] = True
    has[other.support()] = True
    kept = int(stays.sum())
    return Preview(
        before=decisions[0],
        after=decisions[1],
        n_added=n_new,
        n_removed=len(removed),
        n_support=(int(had.sum()), int(has.sum())),
        n_joining=int(np.sum(has[:kept] & ~had[stays])),
        n_leaving=int(np.sum(had[stays] & ~has[:kept])),
        ids=model.ledger.ids[stays],
        sets=(sample_sets(model)[stays], sample_sets(other)[:kept]),
        certificate=certificate,
    )


def _staying(estimator: Any, removed: IntArray, X: Any) -> Any:
    """The samples that stay, as points to decide on; `X` are the rows that come, if any."""
    rows = own_rows(estimator)
    stays = np.setdiff1d(np.arange(rows.shape[0]), removed)
    if estimator.kernel != "precomputed" or X is None:
        return rows[stays]
    against_new = np.asarray(X, dtype=np.float64)[:, : rows.shape[0]]
    return np.hstack([rows[stays], against_new[:, stays].T])


def _decisions(
    estimator: Any, view: Any, at: Any, removed: IntArray, n_new: int
) -> tuple[FloatArray, FloatArray]:
    """Decision values of both models at the points."""
    if estimator.kernel != "precomputed":
        old = new = at
    else:
        given = np.asarray(at, dtype=np.float64)
        wanted = len(estimator._model) + n_new
        if given.ndim != 2 or given.shape[1] != wanted:
            raise ValueError(
                f"at has shape {given.shape}; with kernel='precomputed' it has {wanted} columns: "
                "kernel values against the samples of ids_, then against the rows of X"
            )
        old, new = given[:, : len(estimator._model)], np.delete(given, removed, axis=1)
    if is_classifier(estimator):
        classes = np.unique(joined(estimator.classes_, view.classes_))
        return shaped_as(classes, estimator, old), shaped_as(classes, view, new)
    if estimator._supervised:
        return estimator._decide(old)[:, 0], view._decide(new)[:, 0]
    return np.asarray(estimator.decision_function(old)), np.asarray(view.decision_function(new))
