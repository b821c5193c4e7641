# SPDX-License-Identifier: BSD-3-Clause
"""What-if questions to a pipeline, which they do not change.

Where scaling, gamma and class weights are held, they are questions to the machine. In exact mode
every sample is in the scaling, also those without weight: each that is left out is unlearned by
scaler and machine on a branch of the pipeline, and all kernel values are new.
"""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from adiabat.engine.threads import blas_held
from adiabat.estimators.arguments.labels import joined
from adiabat.estimators.arguments.validation import n_rows
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.estimators.scaled_machine import ScaledMachine
from adiabat.estimators.what_if import groups as grouped
from adiabat.estimators.what_if.copies import own_targets, shared_copy
from adiabat.estimators.what_if.groups import said_of, shaped_as
from adiabat.estimators.what_if.influence import Loss, changes_of_loss, decision, prepared
from adiabat.estimators.what_if.preview import compare
from adiabat.estimators.what_if.removals import Progress
from adiabat.estimators.what_if.results import (
    Influence,
    LeaveOneOut,
    LeaveOneOutNovelty,
    LeaveOneOutRegression,
    LeaveOut,
    Preview,
)
from adiabat.estimators.what_if.workers import ask_each
from adiabat.typing import FloatArray, IntArray


def leave_one_out(
    pipeline: ScaledMachine,
    decisions: bool,
    n_jobs: int | None,
    progress: Progress | None,
    hold_scaling: bool,
) -> LeaveOneOut | LeaveOneOutRegression | LeaveOneOutNovelty:
    """What the pipeline would say of each sample, had it never learned that sample."""
    pipeline._require_ready("leave out")
    machine: Any = pipeline.estimator_
    if _holds(pipeline, hold_scaling) or len(pipeline._model) < 2:
        wanted = {"decisions": decisions} if is_classifier(machine) else {}
        found: Any = machine.leave_one_out(n_jobs=n_jobs, progress=progress, **wanted)
        return found  # type: ignore[no-any-return]
    values, predictions = _ask_each(pipeline, n_jobs, progress)
    n, ids, targets = len(pipeline._model), pipeline.estimator_.ids_, own_targets(machine)
    if targets is None:
        return LeaveOneOutNovelty(ids, values, n)
    if is_classifier(machine):
        return LeaveOneOut(ids, targets, values if decisions else None, predictions, n)
    return LeaveOneOutRegression(ids, targets, predictions, n)


def leave_out(
    pipeline: ScaledMachine, groups: Any, n_jobs: int | None, hold_scaling: bool
) -> LeaveOut:
    """What the pipeline would say of each group of samples, had it never learned that group."""
    pipeline._require_ready("leave out")
    if _holds(pipeline, hold_scaling):
        return grouped.leave_out(pipeline.estimator_, groups, n_jobs)
    return grouped.leave_out(pipeline.estimator_, groups, n_jobs, ask, pipeline)


def preview(
    pipeline: ScaledMachine, remove: Any, X: Any, y: Any, at: Any, sample_weight: Any
) -> Preview:
    """How decision values would change if samples were unlearned and others learned."""
    pipeline._require_ready("preview")
    machine: Any = pipeline.estimator_
    removed, n_new = pipeline._model.ledger.locate(remove), n_rows(X)
    stays = np.setdiff1d(np.arange(len(pipeline._model)), removed)
    points = pipeline._raw[stays] if at is None else pipeline._check_given(at)
    if _holds(pipeline) or n_new == 0 == len(pipeline._model) - len(removed):
        rows = pipeline.scaler_.transform(pipeline._check_given(X)) if n_new else X
        scaled = pipeline.scaler_.transform(points)
        found = machine.preview(remove, rows, y, at=scaled, sample_weight=sample_weight)
        return found  # type: ignore[no-any-return]
    if n_new:
        view: Any = deepcopy(pipeline)
        view.update(X, y, sample_weight=sample_weight, remove=remove)
    else:
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight go with X, and X is not given; pass X, too")
        view = copy_removing(pipeline, removed)
    both = [(each.estimator_, each.scaler_.transform(points)) for each in (pipeline, view)]
    if is_classifier(machine):
        classes = np.unique(joined(machine.classes_, view.estimator_.classes_))
        before, after = [shaped_as(classes, each, rows) for each, rows in both]
    else:
        before, after = [decision(each, each, rows) for each, rows in both]
    return compare(
        pipeline._model, view._model, removed, n_new, (before, after), view.certificate()
    )


def influence(
    pipeline: ScaledMachine,
    X_val: Any,
    y_val: Any,
    loss: str | Loss | None,
    n_jobs: int | None,
    hold_scaling: bool,
) -> Influence:
    """What each sample is worth: the change of a validation loss when it goes, exactly."""
    pipeline._require_ready("weigh")
    machine: Any = pipeline.estimator_
    points = pipeline._check_given(X_val)
    if _holds(pipeline, hold_scaling) or len(pipeline._model) < 2:
        found = machine.influence(pipeline.scaler_.transform(points), y_val, loss, n_jobs)
        return found  # type: ignore[no-any-return]
    y, score = prepared(machine, points, y_val, loss)
    everyone = list(range(len(pipeline._model)))
    return changes_of_loss(
        pipeline._model, everyone, _loss_after_removal, (pipeline, points, y, score), n_jobs
    )


def _holds(pipeline: ScaledMachine, hold_scaling: bool = False) -> bool:
    return pipeline._held_mode == "held" or hold_scaling


def copy_removing(pipeline: ScaledMachine, places: IntArray) -> Any:
    """A copy with samples removed that shares kernel columns; it can be asked, not taught."""
    view: Any = object.__new__(type(pipeline))
    view.__dict__.update(pipeline.__dict__)
    view.__dict__.pop("feature_names_in_", None)
    view.estimator_ = shared_copy(pipeline.estimator_)
    with Transaction(view, view.estimator_) as step:
        view._change(step, time.perf_counter(), removed=places)
    return view


def ask(pipeline: ScaledMachine, places: IntArray) -> tuple[FloatArray, npt.NDArray[Any]]:
    """What the pipeline without samples says of them."""
    view = copy_removing(pipeline, places)
    rows = view.scaler_.transform(pipeline._raw[places])
    return said_of(pipeline.estimator_, view.estimator_, rows, places)


def _ask_each(
    pipeline: ScaledMachine, n_jobs: int | None, progress: Progress | None
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """The same of every sample alone."""
    places = [np.array([place]) for place in range(len(pipeline._model))]
    done = 0

    def answered(more: int) -> None:
        nonlocal done
        for _ in range(more):
            done += 1
            if progress is not None:
                progress(done, len(places))

    with blas_held():
        found = ask_each(ask, pipeline, places, n_jobs, answered)
    values, predictions = zip(*found, strict=True)
    return np.concatenate(values), np.concatenate(predictions)


def _loss_after_removal(held: tuple[Any, Any, Any, Any], gone: list[int]) -> float:
    pipeline, points, y, score = held
    view = copy_removing(pipeline, np.array(gone, dtype=np.int64))
    rows = view.scaler_.transform(points)
    return float(score(y, decision(pipeline.estimator_, view.estimator_, rows)))
