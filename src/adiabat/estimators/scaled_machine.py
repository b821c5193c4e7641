# SPDX-License-Identifier: BSD-3-Clause
"""Rows as they were given, the scaler and the machine on scaled rows, changed together.

When rows come or go, the scaler changes; with it the features of every row, and gamma="scale" and
balanced class weights. So the rows are kept as they were given, and a change of the model replaces
all scaled features and kernel values in one step that starts from the weights that are there.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from adiabat._core.rows import ascending
from adiabat.engine.row_change import NO_ROWS
from adiabat.estimators.arguments.validation import (
    as_csr,
    check_rows,
    check_weights,
    n_rows,
    require_force,
    same_parameter,
)
from adiabat.estimators.files.pickles import Pickled
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.plan import targets_after, weights_after
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.pipeline.mixed_rows import check_mixed_rows
from adiabat.preprocessing.composition import (
    at_positions,
    can_forget,
    fit_to,
    followed,
    is_fitted,
    learned,
    require_unlearnable,
    same,
)
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.typing import FloatArray, IntArray


class ScaledMachine(Pickled, BaseEstimator):
    """What a pipeline holds, and how it changes: all of it, or an exception and nothing."""

    estimator: Any
    scaler: Any
    mode: str
    n_features_in_: int
    estimator_: KernelMachine
    scaler_: Any
    _raw: Any
    _held_mode: str
    _held_scaler: dict[str, Any]

    @property
    def _model(self) -> Model:
        """The machine's own; its version tells whether a change was carried out."""
        return self.estimator_._model

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__ and self.estimator_.__sklearn_is_fitted__()

    def _fresh_scaler(self) -> Any:
        return StandardScaler() if self.scaler is None else clone(self.scaler)

    def _held_fixed(self) -> dict[str, Any]:
        if self._held_mode == "exact":
            return {}
        scaling: dict[str, Any] = {}
        if is_fitted(self.scaler_):
            found = learned(self.scaler_)
            if isinstance(self.scaler_, StandardScaler):
                mean = found["mean_"] if self.scaler_.with_mean else None
                found = {"mean": mean, "scale": found["scale_"]}
            scaling = _listed(found)
        return {**self.estimator_._held_fixed(), "scaling": scaling}

    def _require_ready(self, verb: str) -> None:
        """Refuse an estimator that is not fitted, or whose parameters have changed since."""
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
        for ours, before, remedy in (
            (
                self.estimator.get_params(deep=False),
                self.estimator_.get_params(deep=False),
                "set it back and call retune, or call fit",
            ),
            (settings_of(self._fresh_scaler()), self._held_scaler, "set it back, or call fit"),
        ):
            for name, value in ours.items():
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
        if hasattr(self.estimator, "feature_map"):
            kind = type(self.estimator).__name__
            raise ValueError(
                f"estimator={kind}(...) keeps no rows for a pipeline to scale anew; give it the "
                f"scaler itself, as {kind}(feature_map=StandardScaler())"
            )
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
        fresh = self._fresh_scaler()
        require_unlearnable(fresh)
        rows, targets = self._check_batch(machine, X, y, reset=True)
        weights = check_weights(sample_weight, rows.shape[0])
        require_force(weights)
        names = ledger.validate_new(ids, X, rows.shape[0])
        scaler = fit_to(at_positions(fresh, X), rows, unless_ones(weights))
        scaled = scaler.transform(rows)
        model, change = machine._first(scaled, targets, weights, names, ledger, whole)
        step.require(model, machine, started)
        step.solve(model, change, machine.solver, trace)
        with step.committing() as info:
            machine._adopt(model, info, started, trace, n_added=len(names))
            self.__dict__.update(
                estimator_=machine, scaler_=scaler, _raw=rows, _held_mode=self.mode,
                _held_scaler=settings_of(fresh),
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
        left = np.concatenate([np.delete(model.weight, removed), weights])
        scaler = self._scaler_after(removed, rows, weights, raw, left)
        scaled = self._widened(scaler, rows) if len(names) else None
        change = machine._addition(scaled, targets, weights, names, removed)
        self._apply(step, change, scaler, raw, started, trace, len(names), len(removed))

    def _check_batch(self, machine: Any, X: Any, y: Any, reset: bool = False) -> tuple[Any, Any]:
        if not machine._supervised:
            return self._check_given(X, reset=reset), None
        rows, targets = self._check_given(X, machine._as_given(y), reset)
        return rows, machine._check_targets(targets)

    def _check_given(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """Rows as they are kept, and targets, if given."""
        plain = self.scaler is None or isinstance(self.scaler, StandardScaler)
        checked = (check_rows if plain else check_mixed_rows)(self, X, y, reset=reset)
        return (as_csr(checked[0]), checked[1]) if isinstance(checked, tuple) else as_csr(checked)

    def _widened(self, scaler: Any, rows: Any) -> Any:
        """Rows as the machine takes them; there may be other categories than before."""
        scaled = scaler.transform(rows)
        self.estimator_.n_features_in_ = scaled.shape[1]
        return scaled

    def _scaler_after(
        self, gone: IntArray, rows: Any, weights: FloatArray, raw: Any, left: FloatArray
    ) -> Any:
        """The scaler in force once samples have come and gone; `left` weighs those in `raw`."""
        if self._held_mode == "held" or not (len(gone) or rows.shape[0]):
            return self.scaler_
        if raw.shape[0] and not can_forget(self.scaler_):
            return fit_to(clone(self.scaler_), raw, unless_ones(left))
        went = self._model.weight[gone]
        scaler = followed(
            self.scaler_, rows, unless_ones(weights), self._raw[gone], unless_ones(went)
        )
        if raw.shape[0] and not is_fitted(scaler):
            raise ValueError(
                "sample_weight would be zero for all samples that remain, so that nothing could "
                "be scaled; forget them, too, or give one a positive weight"
            )
        return scaler

    def _apply(
        self, step: Transaction, change: SampleChange, scaler: Any, raw: Any,
        started: float, trace: bool = False, n_added: int = 0, n_removed: int = 0,
        n_revised: int = 0, anew: bool = False,
    ) -> None:  # fmt: skip
        """Change machine, scaler and rows together; in exact mode or `anew`, all features."""
        machine, model = self.estimator_, self._model
        step.require(model, machine, started)
        if raw.shape[0] and (anew or self._held_mode == "exact"):
            removed = ascending(change.removed)
            target = targets_after(model, change, removed)
            weight = weights_after(model, change, removed)
            known = change.formulation or model.formulation
            change = change._replace(formulation=machine._rederived(known, target, weight))
            scaled = self._widened(scaler, raw)
            kernel = machine._make_kernel(scaled, weight)
            if not (kernel.equals(model.kernel) and same(learned(scaler), learned(self.scaler_))):
                change = change._replace(kernel=kernel, rows=as_csr(scaled))
        if anew or n_added or n_removed or n_revised or not model.is_judged:
            step.solve(model, change, machine.solver, trace)
        with step.committing() as info:
            machine._adopt(model, info, started, trace, n_added, n_removed, n_revised)
            self.__dict__.update(scaler_=scaler, _raw=raw)


def unless_ones(weights: FloatArray) -> FloatArray | None:
    """Weights for a scaler, which counts rows where it is given none."""
    return None if (weights == 1.0).all() else weights


def settings_of(scaler: Any) -> dict[str, Any]:
    """Parameters of a scaler; those that are made of others in words."""
    plain = (bool, int, float, str, type(None))
    return {
        name: value if isinstance(value, plain) else re.sub(" at 0x[0-9a-f]+", "", repr(value))
        for name, value in scaler.get_params(deep=False).items()
    }


def _listed(found: Any) -> Any:
    """What was learned, arrays as lists."""
    if isinstance(found, dict):
        return {name: _listed(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_listed(value) for value in found]
    return found.tolist() if isinstance(found, np.ndarray) else found


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
