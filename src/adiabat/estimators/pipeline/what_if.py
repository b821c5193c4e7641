# SPDX-License-Identifier: BSD-3-Clause
"""Questions to a pipeline about pipelines that it is not; none of them changes it.

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
from adiabat.estimators.pipeline.scaled_machine import ScaledMachine
from adiabat.estimators.what_if.copies import own_targets, shared_copy
from adiabat.estimators.what_if.groups import leave_out, said_of, shaped_as
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


class ScaledWhatIf(ScaledMachine):
    """What would be, had some samples not been learned, or others, too."""

    def leave_one_out(
        self,
        decisions: bool = True,
        n_jobs: int | None = None,
        progress: Progress | None = None,
        hold_scaling: bool = False,
    ) -> LeaveOneOut | LeaveOneOutRegression | LeaveOneOutNovelty:
        """What the pipeline would say of each sample, had it never learned that sample.

        The pipeline is not changed.

        Parameters
        ----------
        decisions : bool, default=True
            Whether decision values are wanted (classifiers).
        n_jobs : int or None, default=None
            Samples left out at a time, as in joblib; threads, unless
            :func:`joblib.parallel_config` says otherwise.
        progress : callable, optional
            Called with (removals done, removals in all).
        hold_scaling : bool, default=False
            With ``mode="exact"`` each sample is also taken out of scaling, gamma and class
            weights, and every removal solves all others anew. True holds these as they are with
            all samples, as ``mode="held"`` does: fast, and a little optimistic.

        Returns
        -------
        LeaveOneOut, LeaveOneOutRegression or LeaveOneOutNovelty
            As the machine's own `leave_one_out`.
        """
        self._require_ready("leave out")
        machine: Any = self.estimator_
        if self._holds(hold_scaling) or len(self._model) < 2:
            wanted = {"decisions": decisions} if is_classifier(machine) else {}
            found: Any = machine.leave_one_out(n_jobs=n_jobs, progress=progress, **wanted)
            return found  # type: ignore[no-any-return]
        values, predictions = self._ask_each(n_jobs, progress)
        n, ids, targets = len(self._model), self.estimator_.ids_, own_targets(machine)
        if targets is None:
            return LeaveOneOutNovelty(ids, values, n)
        if is_classifier(machine):
            return LeaveOneOut(ids, targets, values if decisions else None, predictions, n)
        return LeaveOneOutRegression(ids, targets, predictions, n)

    def leave_out(
        self, groups: Any, n_jobs: int | None = None, hold_scaling: bool = False
    ) -> LeaveOut:
        """What the pipeline would say of each group of samples, had it never learned that group.

        Parameters
        ----------
        groups : array of shape (n_samples,), or list of lists of ids
            A label for each sample in the order of `ids_`, or the ids of each group; samples that
            are in no list stay in every model.
        n_jobs : int or None, default=None
            Groups left out at a time.
        hold_scaling : bool, default=False
            As in `leave_one_out`.

        Returns
        -------
        LeaveOut
        """
        self._require_ready("leave out")
        if self._holds(hold_scaling):
            return leave_out(self.estimator_, groups, n_jobs)
        return leave_out(self.estimator_, groups, n_jobs, type(self)._ask, self)

    def preview(
        self,
        remove: Any = (),
        X: Any = None,
        y: Any = None,
        *,
        at: Any = None,
        sample_weight: Any = None,
    ) -> Preview:
        """How decision values would change if samples were unlearned and others learned.

        Parameters
        ----------
        remove : id or sequence of ids, default=()
            Samples to unlearn.
        X, y, sample_weight : optional
            Samples to learn, as in `partial_fit`.
        at : {array, data frame, sparse} of shape (n_points, n_features), optional
            Where to decide; by default at the samples that stay.

        Returns
        -------
        Preview
        """
        self._require_ready("preview")
        machine: Any = self.estimator_
        removed, n_new = self._model.ledger.locate(remove), n_rows(X)
        stays = np.setdiff1d(np.arange(len(self._model)), removed)
        points = self._raw[stays] if at is None else self._check_given(at)
        if self._holds() or n_new == 0 == len(self._model) - len(removed):
            rows = self.scaler_.transform(self._check_given(X)) if n_new else X
            scaled = self.scaler_.transform(points)
            found = machine.preview(remove, rows, y, at=scaled, sample_weight=sample_weight)
            return found  # type: ignore[no-any-return]
        if n_new:
            view: Any = deepcopy(self)
            view.update(X, y, sample_weight=sample_weight, remove=remove)
        else:
            if y is not None or sample_weight is not None:
                raise ValueError("y and sample_weight go with X, and X is not given; pass X, too")
            view = self._copy_removing(removed)
        both = [(each.estimator_, each.scaler_.transform(points)) for each in (self, view)]
        if is_classifier(machine):
            classes = np.unique(joined(machine.classes_, view.estimator_.classes_))
            before, after = [shaped_as(classes, each, rows) for each, rows in both]
        else:
            before, after = [decision(each, each, rows) for each, rows in both]
        return compare(
            self._model, view._model, removed, n_new, (before, after), view.certificate()
        )

    def influence(
        self,
        X_val: Any,
        y_val: Any,
        loss: str | Loss | None = None,
        n_jobs: int | None = None,
        hold_scaling: bool = False,
    ) -> Influence:
        """What each sample is worth: the change of a validation loss when it goes, exactly.

        Parameters
        ----------
        X_val, y_val, loss
            As in the machine's own `influence`.
        n_jobs : int or None, default=None
            Samples removed at a time, as in joblib; threads, unless
            :func:`joblib.parallel_config` says otherwise.
        hold_scaling : bool, default=False
            As in `leave_one_out`.

        Returns
        -------
        Influence
        """
        self._require_ready("weigh")
        machine: Any = self.estimator_
        points = self._check_given(X_val)
        if self._holds(hold_scaling) or len(self._model) < 2:
            found = machine.influence(self.scaler_.transform(points), y_val, loss, n_jobs)
            return found  # type: ignore[no-any-return]
        y, score = prepared(machine, points, y_val, loss)
        everyone = list(range(len(self._model)))
        return changes_of_loss(
            self._model, everyone, _loss_after_removal, (self, points, y, score), n_jobs
        )

    # -- within ----------------------------------------------------------------------------------

    def _holds(self, hold_scaling: bool = False) -> bool:
        return self._held_mode == "held" or hold_scaling

    def _copy_removing(self, places: IntArray) -> Any:
        """A copy with samples removed that shares kernel columns; it can be asked, not taught."""
        view: Any = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view.__dict__.pop("feature_names_in_", None)
        view.estimator_ = shared_copy(self.estimator_)
        with Transaction(view, view.estimator_) as step:
            view._change(step, time.perf_counter(), removed=places)
        return view

    def _ask(self, places: IntArray) -> tuple[FloatArray, npt.NDArray[Any]]:
        """What the pipeline without samples says of them."""
        view = self._copy_removing(places)
        rows = view.scaler_.transform(self._raw[places])
        return said_of(self.estimator_, view.estimator_, rows, places)

    def _ask_each(
        self, n_jobs: int | None, progress: Progress | None
    ) -> tuple[FloatArray, npt.NDArray[Any]]:
        """The same of every sample alone."""
        places = [np.array([place]) for place in range(len(self._model))]
        done = 0

        def answered(more: int) -> None:
            nonlocal done
            for _ in range(more):
                done += 1
                if progress is not None:
                    progress(done, len(places))

        with blas_held():
            found = ask_each(type(self)._ask, self, places, n_jobs, answered)
        values, predictions = zip(*found, strict=True)
        return np.concatenate(values), np.concatenate(predictions)


def _loss_after_removal(held: tuple[Any, Any, Any, Any], gone: list[int]) -> float:
    pipeline, points, y, score = held
    view = pipeline._copy_removing(np.array(gone, dtype=np.int64))
    rows = view.scaler_.transform(points)
    return float(score(y, decision(pipeline.estimator_, view.estimator_, rows)))
