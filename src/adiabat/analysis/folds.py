# SPDX-License-Identifier: BSD-3-Clause
"""The models without each fold, from the model with all of them, whatever kind it is.

A kernel machine branches, and a pipeline with it; a model that holds its samples in another way is
copied, and the copy forgets; one that keeps no rows takes them out of its sums.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp

from adiabat.estimators.incremental_pipeline import IncrementalPipeline
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.least_squares import analysis as least_squares
from adiabat.estimators.least_squares_machine import LeastSquaresMachine
from adiabat.estimators.pipeline import what_if as of_pipeline
from adiabat.estimators.what_if.copies import copy_removing, own_copy, own_rows, own_targets
from adiabat.inputs import require_csr
from adiabat.typing import IntArray


class Folds:
    """The samples of a model, and the models on parts of them."""

    def __init__(self, model: Any, X: Any, y: Any) -> None:
        self.model = model
        self.X, self.y = X, y
        self.n = int(X.shape[0])
        if y is not None and len(y) != self.n:
            raise ValueError(f"y has {len(y)} targets, the model has {self.n} samples")

    def trained_on(self, train: IntArray) -> Any:
        """The model of the samples at these places, in ascending order."""
        raise NotImplementedError

    def independent(self, view: Any) -> Any:
        """What `trained_on` gave, fit to be kept and taught further."""
        return view

    def rows(self, places: IntArray, train: IntArray) -> Any:
        """Samples as a model trained on `train` wants to be asked about them."""
        if getattr(self.model, "kernel", None) == "precomputed":
            return self.X[np.ix_(places, train)]
        return self.X[places]

    def others(self, train: IntArray) -> IntArray:
        """Places that are not in the training set."""
        outside = np.ones(self.n, dtype=bool)
        outside[train] = False
        return np.flatnonzero(outside)


class _BranchFolds(Folds):
    """Of a kernel machine: the fold leaves a branch of it."""

    def trained_on(self, train: IntArray) -> Any:
        return copy_removing(self.model, self.others(train))

    def independent(self, view: Any) -> Any:
        return own_copy(view, self.model)


class _CopyFolds(Folds):
    """Of a model with ids of another kind: a copy forgets the fold."""

    def trained_on(self, train: IntArray) -> Any:
        twin = deepcopy(self.model)
        twin.__dict__.pop("feature_names_in_", None)  # what it is asked about comes as arrays
        gone = self.others(train)
        return twin.forget(self.model.ids_[gone]) if len(gone) else twin

    def independent(self, view: Any) -> Any:
        if hasattr(self.model, "feature_names_in_"):
            view.feature_names_in_ = self.model.feature_names_in_.copy()
        return view


class _PipelineFolds(_CopyFolds):
    """Of scaler and machine: both unlearn the fold, on a branch."""

    def trained_on(self, train: IntArray) -> Any:
        return of_pipeline.copy_removing(self.model, self.others(train))

    def independent(self, view: Any) -> Any:
        return super().independent(deepcopy(view))


class _SumFolds(Folds):
    """Of a least-squares model that keeps no rows: what the rows added to its sums is taken out."""

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any) -> None:
        if X is None or y is None:
            raise ValueError(
                f"X and y are missing: {type(model).__name__} keeps no rows; pass those that it "
                "was trained on"
            )
        self._rows = least_squares.own_rows(model, X, y, sample_weight)
        super().__init__(model, self._rows.X, self._rows.y)

    def trained_on(self, train: IntArray) -> Any:
        return least_squares.trained_on(self.model, self._rows, train)


def folds_of(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Folds:
    """The folds of a fitted model; X, y and the weights, if given, must be its own."""
    if isinstance(model, LeastSquaresMachine):
        return _SumFolds(model, X, y, sample_weight)
    if sample_weight is not None:
        raise ValueError(
            f"{type(model).__name__} holds the weights of its samples; leave sample_weight out"
        )
    if isinstance(model, KernelMachine):
        model._require_askable()
        held = own_rows(model)
        _require_same(model._check_rows(X) if X is not None else None, held, "X")
        if not model._supervised:
            return _BranchFolds(model, held, None if y is None else np.asarray(y))
        targets = own_targets(model)
        _require_same(None if y is None else np.asarray(y), targets, "y")
        return _BranchFolds(model, held, targets)
    if not hasattr(model, "ids_"):
        raise TypeError(
            f"model={model!r} is not an estimator of this package; use scikit-learn's functions of "
            "the same names"
        )
    samples = _samples_of_another(model, X, y)
    if isinstance(model, IncrementalPipeline):
        model._require_ready("validate")
        return _PipelineFolds(model, *samples)
    return _CopyFolds(model, *samples)


def _samples_of_another(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Samples of a pipeline or a kernel least-squares machine."""
    machine = getattr(model, "estimator_", None)
    if machine is None:
        held, targets = model._model.X, model._model.y
    else:
        held, targets = model._raw, own_targets(machine)
    if X is not None:
        _require_same(require_csr(X) if sp.issparse(X) else np.asarray(X), held, "X")
    if targets is None:
        return held, None if y is None else np.asarray(y)
    _require_same(None if y is None else np.asarray(y), targets, "y")
    return held, targets


def _require_same(given: Any, held: Any, name: str) -> None:
    if given is not None and not _same(given, held):
        raise ValueError(
            f"{name} has shape {given.shape} and is not what the model was taught, whose "
            f"{name} has shape {held.shape}; leave {name} out, or pass it in the order of ids_"
        )


def _same(given: Any, held: Any) -> bool:
    """Whether two arrays, dense or sparse, are the same."""
    if given.shape != held.shape:
        return False
    if sp.issparse(given) or sp.issparse(held):
        difference: Any = sp.csr_array(given) - sp.csr_array(held)
        return bool(np.all(difference.data == 0.0))
    return bool(np.all(given == held))
