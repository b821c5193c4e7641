# SPDX-License-Identifier: BSD-3-Clause
"""Rows as they were given, the scaler and the machine on scaled rows, changed together.

When rows come or go, the scaler changes; with it the features of every row, and gamma="scale" and
balanced class weights. So the rows are kept as they were given, and a change of the model replaces
all scaled features and kernel values in one step that starts from the weights that are there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from adiabat.engine.machine import NO_ROWS
from adiabat.estimators.arguments.validation import (
    as_csr,
    check_rows,
    check_weights,
    n_rows,
    require_force,
    same_parameter,
)
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.plan import after
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.ledger import Ledger
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.typing import FloatArray, IntArray


class ScaledMachine(BaseEstimator):
    """What a pipeline holds, and how it changes: all of it, or an exception and nothing."""

    estimator: Any
    scaler: StandardScaler | None
    mode: str
    n_features_in_: int
    estimator_: KernelMachine
    scaler_: StandardScaler
    _raw: Any
    _held_mode: str

    @property
    def _model(self) -> Model:
        """The machine's own; its version tells whether a change was carried out."""
        return self.estimator_._model

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__ and self.estimator_.__sklearn_is_fitted__()

    def _fresh_scaler(self) -> StandardScaler:
        fresh: StandardScaler = StandardScaler() if self.scaler is None else clone(self.scaler)
        return fresh

    def _held_fixed(self) -> dict[str, Any]:
        if self._held_mode == "exact":
            return {}
        scaling = {
            name: None if values is None else values.tolist()
            for name, values in (
                ("mean", self.scaler_.mean_ if self.scaler_.with_mean else None),
                ("scale", self.scaler_.scale_),
            )
        } if self.scaler_.__sklearn_is_fitted__() else {}  # fmt: skip
        return {**self.estimator_._held_fixed(), "scaling": scaling}

    def _require_ready(self, verb: str) -> None:
        """Fitted, and what shaped the model so far shapes it further."""
        check_is_fitted(
            self,
            msg=f"This %(name)s instance is not fitted yet: there is nothing to {verb}. "
            "Call 'fit' or 'partial_fit' first.",
        )
        if self.mode != self._held_mode:
            raise ValueError(
                f"mode={self.mode!r} was {self._held_mode!r} when the model was fitted; set it "
                "back, or call fit"
            )
        for ours, fitted, remedy in (
            (self.estimator, self.estimator_, "set it back and call retune, or call fit"),
            (self._fresh_scaler(), self.scaler_, "set it back, or call fit"),
        ):
            before = fitted.get_params(deep=False)
            for name, value in ours.get_params(deep=False).items():
                if not same_parameter(before.get(name), value):
                    raise ValueError(
                        f"{name}={value!r} was {before.get(name)!r} when the model was fitted, "
                        f"and changes of the data hold it; {remedy}"
                    )

    def _begin(
        self, step: Transaction, X: Any, y: Any, sample_weight: Any, ids: Any, ledger: Ledger,
        started: float, trace: bool = False, whole: bool = False,
    ) -> None:  # fmt: skip
        """A new model from a first batch; `whole` if it is not the first of a stream."""
        self._validate_params()
        machine = clone(self.estimator)
        if machine.kernel == "precomputed":
            raise ValueError(
                "estimator has kernel='precomputed', whose values cannot be scaled; use it "
                "without a pipeline"
            )
        if machine.retain is not None:
            raise ValueError(
                f"estimator has retain={machine.retain!r}, which would let go of rows that the "
                "scaler still counts; use it without a pipeline"
            )
        rows, targets = self._check_batch(machine, X, y, reset=True)
        weights = check_weights(sample_weight, rows.shape[0])
        require_force(weights)
        names = ledger.validate_new(ids, X, rows.shape[0])
        scaler = self._fresh_scaler().fit(rows, sample_weight=unless_ones(weights))
        scaled = scaler.transform(rows)
        model, change = machine._first(scaled, targets, weights, names, ledger, whole)
        step.solve(model, change, machine.solver, trace)
        with step.committing() as info:
            machine._adopt(model, info, started, trace, n_added=len(names))
            self.__dict__.update(
                estimator_=machine, scaler_=scaler, _raw=rows, _held_mode=self.mode
            )  # fmt: skip

    def _change(
        self, step: Transaction, started: float, X: Any = None, y: Any = None,
        sample_weight: Any = None, ids: Any = None, removed: IntArray = NO_ROWS,
        trace: bool = False,
    ) -> None:  # fmt: skip
        """Samples in and out."""
        machine, model = self.estimator_, self._model
        if n_rows(X) == 0:
            machine._check_empty(X, y)
            rows, targets, names, weights = self._raw[:0], None, [], np.empty(0)
        else:
            rows, targets = self._check_batch(machine, X, y)
            names = model.ledger.validate_new(ids, X, rows.shape[0], leaving=removed)
            weights = check_weights(sample_weight, rows.shape[0])
        raw = _joined(self._raw, removed, rows)
        scaler = self._scaler_after(removed, rows, weights, raw)
        scaled = scaler.transform(rows) if len(names) else None
        change = machine._addition(scaled, targets, weights, names, removed)
        self._apply(step, change, scaler, raw, started, trace, len(names), len(removed))

    def _check_batch(self, machine: Any, X: Any, y: Any, reset: bool = False) -> tuple[Any, Any]:
        if not machine._supervised:
            return as_csr(check_rows(self, X, reset=reset)), None
        rows, targets = check_rows(self, X, machine._as_given(y), reset=reset)
        return as_csr(rows), machine._check_targets(targets)

    def _scaler_after(
        self, gone: IntArray, rows: Any, weights: FloatArray, raw: Any
    ) -> StandardScaler:
        """The scaler in force once samples have come and gone."""
        if self._held_mode == "held" or not (len(gone) or rows.shape[0]):
            return self.scaler_
        left = self._model.weight[gone]
        scaler = self.scaler_._copy()
        if rows.shape[0]:
            scaler.partial_fit(rows, sample_weight=unless_ones(weights))
        if len(gone):
            scaler.forget(self._raw[gone], sample_weight=unless_ones(left))
        if raw.shape[0] and not scaler.__sklearn_is_fitted__():
            raise ValueError(
                "sample_weight would be zero for all samples that remain, so that nothing could "
                "be scaled; forget them, too, or give one a positive weight"
            )
        return scaler

    def _apply(
        self, step: Transaction, change: SampleChange, scaler: StandardScaler, raw: Any,
        started: float, trace: bool = False, n_added: int = 0, n_removed: int = 0,
        n_revised: int = 0, anew: bool = False,
    ) -> None:  # fmt: skip
        """Change machine, scaler and rows together; in exact mode or `anew`, all features."""
        machine, model = self.estimator_, self._model
        step.require(model, machine.tol)
        if raw.shape[0] and (anew or self._held_mode == "exact"):
            target, weight = after(model, change)
            known = change.formulation or model.formulation
            change = replace(change, formulation=machine._rederived(known, target, weight))
            scaled = scaler.transform(raw)
            kernel = machine._make_kernel(scaled, weight)
            if not (kernel.equals(model.kernel) and _same_scaling(scaler, self.scaler_)):
                change = replace(change, kernel=kernel, rows=as_csr(scaled))
        if anew or n_added or n_removed or n_revised or not model.is_judged:
            step.solve(model, change, machine.solver, trace)
        with step.committing() as info:
            machine._adopt(model, info, started, trace, n_added, n_removed, n_revised)
            self.__dict__.update(scaler_=scaler, _raw=raw)


def unless_ones(weights: FloatArray) -> FloatArray | None:
    """Weights for a scaler, which counts rows where it is given none."""
    return None if (weights == 1.0).all() else weights


def _same_scaling(a: StandardScaler, b: StandardScaler) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("mean_", "scale_"))


def _joined(raw: Any, removed: IntArray, rows: Any) -> Any:
    """Rows without some and with others at the end, sparse or dense as before."""
    stays = np.ones(raw.shape[0], dtype=bool)
    stays[removed] = False
    if sp.issparse(raw):
        return sp.csr_array(sp.vstack([raw[stays], sp.csr_array(rows)], format="csr"))
    return np.concatenate([raw[stays], rows.toarray() if sp.issparse(rows) else rows])


def with_rows(raw: Any, places: IntArray, rows: Any) -> Any:
    """Rows with others at some places."""
    order = np.arange(raw.shape[0])
    order[places] = raw.shape[0] + np.arange(len(places))
    return _joined(raw, NO_ROWS, rows)[order]
