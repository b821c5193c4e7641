# SPDX-License-Identifier: BSD-3-Clause
"""Scaler and machine as one model that learns and unlearns: the verbs of a machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.estimators.arguments.indices import by_ids
from adiabat.estimators.arguments.labels import require_among
from adiabat.estimators.arguments.validation import (
    check_weights,
)
from adiabat.estimators.files.content import Arrays, Manifest, save
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.pipeline import what_if
from adiabat.estimators.pipeline.file import content
from adiabat.estimators.scaled_machine import (
    ScaledMachine,
    settings_of,
    unless_ones,
    with_rows,
)
from adiabat.estimators.what_if.influence import Loss
from adiabat.estimators.what_if.removals import Progress
from adiabat.estimators.what_if.results import (
    Influence,
    LeaveOneOut,
    LeaveOneOutNovelty,
    LeaveOneOutRegression,
    LeaveOut,
    Preview,
)
from adiabat.preprocessing.composition import fit_to
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.typing import FloatArray


def _machine_has(name: str) -> Callable[[Any], bool]:
    return lambda pipeline: hasattr(pipeline.estimator, name)


class IncrementalPipeline(ScaledMachine):
    """Transformers in front of a kernel machine, learning and unlearning as one.

    Parameters
    ----------
    estimator : SVC, SVR, OneClassSVM or SVDD
        The machine; it is cloned. Any kernel but ``"precomputed"``.
    scaler : transformer or None, default=None
        What is done to the rows first, cloned; None is ``StandardScaler()``. One of adiabat's
        (`StandardScaler`, `MinMaxScaler`, `RobustScaler`, `SimpleImputer`, `OneHotEncoder`,
        `ColumnTransformer`), one of scikit-learn's that takes nothing from the rows, or a
        :class:`sklearn.pipeline.Pipeline` of them. Rows may then have text and gaps.
    mode : {"exact", "held"}, default="exact"
        ``"exact"``: after every change the pipeline is the one refitted to the rows it then holds,
        scaling, ``gamma="scale"`` and balanced class weights included. Every change solves all
        rows anew, from a start that is near.
        ``"held"``: scaling, gamma and class weights stay as they were at `fit` until `refresh`;
        changes are as fast as the machine's own, and ``certificate().held_fixed`` says what was
        held.

    Attributes
    ----------
    estimator_ : estimator
        The fitted machine, on scaled rows.
    scaler_ : transformer
        The scaling in force; columns stand in it by their numbers.
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    classes_ : ndarray
        Labels of the classes present (classifiers).
    offset_ : float
        What separates inside from outside (OneClassSVM and SVDD).
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    `sample_weight` weighs rows in a `StandardScaler` as it does in the machine; the other
    transformers count every row once, as scikit-learn's do.

    Examples
    --------
    >>> from adiabat import SVC, IncrementalPipeline
    >>> model = IncrementalPipeline(SVC(C=10.0))
    >>> _ = model.fit([[0.0], [1.0], [2.0], [3.0], [1e6]], [0, 0, 1, 1, 0])
    >>> model.forget([4]).scaler_.mean_
    array([1.5])
    >>> model.predict([[0.5], [2.5]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [KernelMachine],
        "scaler": [HasMethods(["fit", "transform"]), None],
        "mode": [StrOptions({"exact", "held"})],
    }

    def __init__(self, estimator: Any, scaler: Any = None, mode: str = "exact") -> None:
        self.estimator = estimator
        self.scaler = scaler
        self.mode = mode

    # -- learn and unlearn -----------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, ids: Any = None
    ) -> IncrementalPipeline:
        """Learn from scratch; arguments as in the machine's own `fit`.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        with Transaction(self) as step:
            self._begin(step, X, y, sample_weight, ids, Ledger(), started, whole=True)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        ids: Any = None,
    ) -> IncrementalPipeline:
        """Learn further samples; arguments as in the machine's own `partial_fit`.

        Returns
        -------
        self
        """
        if classes is not None:
            if not is_classifier(self.estimator):
                raise ValueError(
                    f"classes={classes!r} is for classifiers, and the estimator is "
                    f"{type(self.estimator).__name__}; leave it out"
                )
            require_among(y, classes)
        self.update(X, y, ids=ids, sample_weight=sample_weight)
        return self

    def forget(self, ids: Any, missing: str = "raise") -> IncrementalPipeline:
        """Unlearn samples: scaler and machine are then as if they had never been there.

        Parameters
        ----------
        ids : id or sequence of ids
            The samples to unlearn.
        missing : {"raise", "ignore"}, default="raise"
            What to do about ids that are not in the model.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._require_ready("forget")
        removed = self._model.ledger.locate(ids, missing=missing)
        with Transaction(self, self.estimator_) as step:
            self._change(step, started, removed=removed)
        return self

    def revise(
        self,
        ids: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        trace: bool = False,
    ) -> IncrementalPipeline:
        """Correct features, targets or weights of samples, in one step.

        Parameters
        ----------
        ids : id or sequence of ids
            The samples to correct.
        X, y, sample_weight : optional
            Their new features, targets and weights, one row each; what is left out stays. Rows
            with a pandas index are matched to `ids` by it, others by position.
        trace : bool, default=False
            Follow the path and record every breakpoint in ``last_update_.trace``.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._require_ready("revise")
        model, machine = self._model, self.estimator_
        places = model.ledger.locate(ids)
        X, y = by_ids(ids, X, "X"), by_ids(ids, y, "y")
        sample_weight = by_ids(ids, sample_weight, "sample_weight")
        with Transaction(self, machine) as step:
            weights = model.weight[places]
            if sample_weight is not None:
                weights = check_weights(sample_weight, len(places))
            rows = self._raw[places] if X is None else self._check_given(X)
            if rows.shape[0] != len(places):
                raise ValueError(f"X has {rows.shape[0]} rows, ids has {len(places)}")
            if not len(places):
                self._change(step, started, trace=trace)
                return self
            raw = with_rows(self._raw, places, rows)
            reweighed = bool((weights != model.weight[places]).any())
            scaler = self.scaler_
            if X is not None or reweighed:
                left = model.weight.copy()
                left[places] = weights
                scaler = self._scaler_after(places, rows, weights, raw, left)
            scaled = None if X is None else self._widened(scaler, rows)
            change = machine._revision(places, scaled, y, sample_weight)
            self._apply(step, change, scaler, raw, started, trace, n_revised=len(places))
        return self

    def update(
        self,
        X: Any = None,
        y: Any = None,
        *,
        ids: Any = None,
        sample_weight: Any = None,
        remove: Any = (),
        trace: bool = False,
    ) -> UpdateReport:
        """Learn some samples and unlearn others in one step.

        Parameters
        ----------
        X, y, sample_weight, ids
            Samples to learn, as in `partial_fit`; none by default.
        remove : id or sequence of ids, default=()
            Samples to unlearn.
        trace : bool, default=False
            Follow the path and record every breakpoint in the report's `trace`.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        if getattr(self.estimator, "_supervised", False) and (X is None) != (y is None):
            raise ValueError("update needs X and y together: pass both, or neither")
        machines = [self.estimator_] if hasattr(self, "estimator_") else []
        with Transaction(self, *machines) as step:
            if self.__sklearn_is_fitted__():
                self._require_ready("update")
                removed = self._model.ledger.locate(remove)
                self._change(step, started, X, y, sample_weight, ids, removed, trace)
            else:
                if not isinstance(remove, (tuple, list)) or len(remove):
                    self._require_ready("remove")
                ledger = self._model.ledger if hasattr(self, "_model") else Ledger()
                self._begin(step, X, y, sample_weight, ids, ledger, started, trace)
        return self.last_update_

    def retune(self, *, trace: bool = False, **params: Any) -> UpdateReport:
        """Change parameters of the fitted machine, such as ``C=10.0``; it follows the optimum.

        Parameters are the machine's, by their names or as ``estimator__C``; `trace` as in `update`.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        self._require_ready("retune")
        with Transaction(self, self.estimator_) as step:
            params = {name.removeprefix("estimator__"): value for name, value in params.items()}
            known = self.estimator.get_params(deep=False)
            named = {name: value for name, value in params.items() if name in known}
            if named.get("kernel") != "precomputed":
                self.estimator = clone(self.estimator).set_params(**named)
            self.estimator_._retune(step, params, started, trace)
        return self.last_update_

    def refresh(self) -> UpdateReport:
        """Take scaling, gamma and class weights again from the samples now in the model.

        The pipeline is then the one that `fit` would give on these samples. With
        ``mode="exact"`` it always is.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        self._require_ready("refresh")
        model = self._model
        with Transaction(self, self.estimator_) as step:
            scaler = fit_to(clone(self.scaler_), self._raw, unless_ones(model.weight))
            self._apply(step, SampleChange(), scaler, self._raw, started, anew=True)
        return self.last_update_

    # -- use -------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """What the machine predicts for rows, scaled as its own were."""
        predicted: npt.NDArray[Any] = self._ready().predict(self._scaled(X))
        return predicted

    @available_if(_machine_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Decision values of the machine."""
        values: FloatArray = self._ready().decision_function(self._scaled(X))
        return values

    @available_if(_machine_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the machine, if it has a `calibration`.

        They are fitted on leave-one-out decision values in the scaling of all rows.
        """
        values: FloatArray = self._ready().predict_proba(self._scaled(X))
        return values

    @available_if(_machine_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> FloatArray:
        """Scores of the machine, where it has them."""
        values: FloatArray = self._ready().score_samples(self._scaled(X))
        return values

    @available_if(_machine_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R^2 of a regression."""
        return float(self._ready().score(self._scaled(X), y, sample_weight))

    def certificate(self) -> Certificate:
        """Is this the optimum? Everything recomputed from the data, kernel values included.

        With ``mode="exact"`` nothing is held fixed; else `held_fixed` has the scaling, too.
        """
        check_is_fitted(self)
        return replace(self.estimator_.certificate(), held_fixed=self._held_fixed())

    # -- what if -----------------------------------------------------------------------------------

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
        return what_if.leave_one_out(self, decisions, n_jobs, progress, hold_scaling)

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
        return what_if.leave_out(self, groups, n_jobs, hold_scaling)

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
        return what_if.preview(self, remove, X, y, at, sample_weight)

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
        return what_if.influence(self, X_val, y_val, loss, n_jobs, hold_scaling)

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pipeline to a file: a zip of JSON and arrays, whole or not at all.

        :func:`adiabat.load` reads it back without running code.
        """
        save(self, path)

    def _to_file(self) -> tuple[Manifest, Arrays]:
        """Manifest and arrays for a model file."""
        return content(self)

    @classmethod
    def _from_parts(
        cls, manifest: Manifest, machine: Any, scaler: Any, given: Any, raw: Any
    ) -> IncrementalPipeline:
        """The pipeline of a model file; the scaler as it was fitted, and as it was given."""
        pipeline = cls(
            estimator=type(machine)(**machine.get_params(deep=False)),
            scaler=given,
            mode=manifest["mode"],
        )
        pipeline._validate_params()
        pipeline.__dict__.update(
            estimator_=machine, scaler_=scaler, _raw=raw, _held_mode=pipeline.mode,
            _held_scaler=settings_of(pipeline._fresh_scaler()), n_features_in_=int(raw.shape[1]),
        )  # fmt: skip
        return pipeline

    # -- learned attributes ----------------------------------------------------------------------

    @property
    def ids_(self) -> npt.NDArray[Any]:
        """Ids of the samples held, in the order in which they were learned."""
        return self.estimator_.ids_

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Labels of the classes present, sorted."""
        classes: npt.NDArray[Any] = self.estimator_.classes_
        return classes

    @property
    def offset_(self) -> float:
        """What separates inside from outside, on the scale of `score_samples` (novelty)."""
        return float(self.estimator_.offset_)

    @property
    def last_update_(self) -> UpdateReport:
        """What the last call that changed the model did."""
        report = self.estimator_.last_update_
        certificate = replace(report.certificate, held_fixed=self._held_fixed())
        return replace(report, certificate=certificate)

    # -- within ----------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(own, name))
        given = get_tags(self._fresh_scaler()).input_tags
        tags.input_tags.sparse = own.input_tags.sparse and given.sparse
        if self.scaler is not None and not isinstance(self.scaler, StandardScaler):
            tags.input_tags.allow_nan = given.allow_nan
            tags.input_tags.string = given.string
            tags.input_tags.categorical = given.categorical
        return tags

    def _ready(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def _scaled(self, X: Any) -> Any:
        return self.scaler_.transform(self._check_given(X))
