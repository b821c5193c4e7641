# SPDX-License-Identifier: BSD-3-Clause
"""The verbs that every kernel machine shares: learn, unlearn, correct, certify, save.

A subclass says what its targets are (`_check_targets`, `_encode`), which formulation its parameters
stand for (`_formulation`), and what follows from a change (`_after_change`). A call either succeeds
or leaves the estimator as it was.
"""

from __future__ import annotations

import os
import time
from logging import INFO
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.engine.solver import Outcome
from adiabat.errors import ModelFileError
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.change import Change
from adiabat.estimators.evidence import certify
from adiabat.estimators.indices import by_ids
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.model import Model
from adiabat.estimators.persistence import load_state, pack, save_state, unpack
from adiabat.estimators.reading import report_from
from adiabat.estimators.retaining import carry_out
from adiabat.estimators.tuning import Tunable
from adiabat.estimators.validation import (
    as_csr,
    check_kernel_rows,
    check_weights,
    n_rows,
    require_force,
    require_square,
)
from adiabat.estimators.what_if import WhatIf
from adiabat.formulations import Formulation
from adiabat.logs import log_update, logger

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


_log = logger("estimators")


class KernelMachine(Tunable, WhatIf):
    """Base of the estimators that keep their samples and follow their optimum."""

    # -- what a subclass says --------------------------------------------------------------------

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _encode(
        self, targets: npt.NDArray[Any], weights: FloatArray
    ) -> tuple[Formulation, npt.NDArray[Any]]:
        """Targets as the formulation knows them, and the formulation that knows them."""
        return self._model.formulation, targets

    def _check_whole(self, weights: FloatArray) -> None:
        """Refuse a batch to `fit` that no optimum exists for."""

    def _after_change(self) -> None:
        """What else follows from a change of the model."""

    # -- learn and unlearn -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> Self:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` their kernel matrix (n_samples, n_samples).
        y : array of shape (n_samples,)
            Labels, or numbers for regression.
        sample_weight : array of shape (n_samples,), optional
            Factors >= 0 on C; 0 keeps a sample without force.
        ids : sequence of int or str, optional
            Names of the samples. By default the index of a data frame, or a running count.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        with all_or_nothing(self):
            self._start(X, y, sample_weight, ids, Ledger(), started, whole=True)
        return self

    def forget(self, ids: Any, missing: str = "raise") -> Any:
        """Unlearn samples: the model is then as if they had never been there.

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
        self._require_fitted("forget")
        self._require_unchanged()
        removed = self._model.ledger.locate(ids, missing=missing)
        with all_or_nothing(self):
            self._apply(Change(ids=[], removed=removed), started, n_removed=len(removed))
        return self

    def revise(
        self,
        ids: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        trace: bool = False,
    ) -> Any:
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
        self._require_fitted("revise")
        places = self._model.ledger.locate(ids)
        X, y = by_ids(ids, X, "X"), by_ids(ids, y, "y")
        sample_weight = by_ids(ids, sample_weight, "sample_weight")
        with all_or_nothing(self):
            change, formulation = self._revision(places, X, y, sample_weight)
            self._apply(change, started, formulation, trace, n_revised=len(places))
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
        if self._supervised and (X is None) != (y is None):
            raise ValueError("update needs X and y together: pass both, or neither")
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                if not isinstance(remove, (tuple, list)) or len(remove):
                    self._require_fitted("remove")
                ledger = self._model.ledger if hasattr(self, "_model") else Ledger()
                self._start(X, y, sample_weight, ids, ledger, started, trace)
                return self.last_update_
            removed = self._model.ledger.locate(remove)
            change, formulation = self._addition(X, y, sample_weight, ids, removed)
            self._apply(
                change, started, formulation, trace,
                n_added=len(change.ids), n_removed=len(removed),
            )  # fmt: skip
        return self.last_update_

    # -- evidence and files ----------------------------------------------------------------------

    def certificate(self) -> Certificate:
        """Is this the optimum? Everything recomputed from the data, kernel values included.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self)
        return self._certify(afresh=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: a zip of JSON and arrays, whole or not at all.

        :func:`adiabat.load` reads it back without running code.
        """
        check_is_fitted(self)
        save_state(path, type(self).__name__, self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "_model" in state:
            state["_model"] = pack(state["_model"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_model" in state:
            self._model = unpack(state["_model"])

    @classmethod
    def _from_file(cls, path: str | os.PathLike[str]) -> Any:
        estimator = cls()
        state = load_state(path, cls.__name__, set(estimator.get_params()))
        report = state.pop("last_update_")
        estimator.__setstate__(state)
        estimator._validate_params()
        estimator._after_change()
        # Kernel values, residuals and verdict were all made anew from the rows just now.
        certificate = estimator._certify(afresh=False)
        estimator.last_update_ = report_from(report, certificate)
        if not certificate.ok:
            raise ModelFileError(
                f"{os.fspath(path)!r} holds a model that is not the optimum on its rows; restore "
                "it from a copy, or fit it again"
            )
        return estimator

    # -- within ----------------------------------------------------------------------------------

    def _start(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        ids: Any,
        ledger: Ledger,
        started: float,
        trace: bool = False,
        whole: bool = False,
    ) -> None:
        """A new model from a first batch; `whole` if it is not the first of a stream."""
        self._validate_params()
        X_new, targets = self._check_batch(X, y, reset=True)
        if self.kernel == "precomputed":
            require_square(X_new)
        weights = check_weights(sample_weight, X_new.shape[0])
        require_force(weights)
        if whole:
            self._check_whole(weights)
        kernel = self._make_kernel(X_new, weights)
        names = ledger.validate_new(ids, X, len(targets))
        self._hold_parameters()
        self._model = Model(kernel, self.tol, self._formulation(None), ledger.copy())
        self.gamma_ = kernel.gamma
        formulation, target = self._encode(targets, weights)
        change = Change(ids=names, X=as_csr(X_new), target=target, weight=weights)
        self._apply(change, started, formulation, trace, n_added=len(targets))

    def _addition(
        self, X: Any, y: Any, sample_weight: Any, ids: Any, removed: IntArray
    ) -> tuple[Change, Formulation]:
        """A checked batch of new samples, with those that leave."""
        model = self._model
        self._require_unchanged()
        if n_rows(X) == 0:
            self._check_empty(X, y)
            return Change(ids=[], removed=removed), model.formulation
        if self.kernel == "precomputed":
            X_new = check_kernel_rows(X, model.position)
            targets = self._check_targets(y) if self._supervised else np.zeros(len(X_new))
            if len(targets) != X_new.shape[0]:
                raise ValueError(f"y has {len(targets)} targets, X has {X_new.shape[0]} rows")
        else:
            X_new, targets = self._check_batch(X, y)
        weights = check_weights(sample_weight, X_new.shape[0])
        names = model.ledger.validate_new(ids, X, len(targets), leaving=removed)
        formulation, target = self._encode(targets, weights)
        change = Change(ids=names, X=as_csr(X_new), target=target, weight=weights, removed=removed)
        return change, formulation

    def _revision(
        self, places: IntArray, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Change, Formulation]:
        """A checked correction of samples."""
        model = self._model
        self._require_unchanged()
        k = len(places)
        formulation, target = model.formulation, model.target[places]
        weights = model.weight[places]
        if sample_weight is not None:
            weights = check_weights(sample_weight, k)
        if y is not None and self._supervised:
            targets = self._check_targets(y if np.ndim(y) else [y])
            if len(targets) != k:
                raise ValueError(f"y has {len(targets)} targets, ids has {k}")
            formulation, target = self._encode(targets, weights)
        if X is None:
            changed = target != model.target[places]
            change = Change(
                ids=[],
                retargeted=places[changed],
                new_target=target[changed],
                reweighed=places,
                new_weight=weights,
            )
            return change, formulation
        self._refuse_new_rows()
        X_new = self._check_rows(X)
        if X_new.shape[0] != k:
            raise ValueError(f"X has {X_new.shape[0]} rows, ids has {k}")
        change = Change(ids=[], X=as_csr(X_new), target=target, weight=weights, replaced=places)
        return change, formulation

    def _check_batch(self, X: Any, y: Any, reset: bool = False) -> tuple[Any, npt.NDArray[Any]]:
        """Rows and their targets, checked; zeros where there are none to have."""
        if not self._supervised:
            X_new = self._check_rows(X, reset=reset)
            return X_new, np.zeros(X_new.shape[0])
        X_new, targets = self._check_rows(X, self._as_given(y), reset=reset)
        return X_new, self._check_targets(targets)

    def _apply(
        self,
        change: Change,
        started: float,
        formulation: Formulation | None = None,
        trace: bool = False,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        """Carry out a checked change and report it."""
        model = self._model
        model.tol = self.tol

        def announce(outcome: Outcome, let_go: int) -> None:
            self._announce(outcome, started, trace, n_added, n_removed + let_go, n_revised)

        if n_added or n_removed or n_revised or not model.is_judged:
            formulation = formulation or model.formulation
            carry_out(model, change, formulation, self.retain, self.solver, trace, announce)
        else:
            announce(Outcome(), 0)

    def _announce(
        self,
        outcome: Outcome,
        started: float,
        trace: bool = False,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        """What was learned, and the report of it, once the model has changed."""
        model = self._model
        self._after_change()
        if self.kernel == "precomputed":
            self.n_features_in_ = len(model)
        self.last_update_ = UpdateReport(
            n_added=n_added,
            n_removed=n_removed,
            n_revised=n_revised,
            solver=outcome.solver,
            rounds=outcome.rounds,
            breakpoints=outcome.breakpoints,
            fallbacks=outcome.fallbacks,
            seconds=time.perf_counter() - started,
            certificate=self._certify(afresh=False),
            trace=list(outcome.traces.values()) if trace else None,
        )
        if _log.isEnabledFor(INFO):
            log_update(_log, type(self).__name__, len(model), self.last_update_)

    def _certify(self, afresh: bool) -> Certificate:
        policy = "" if self.retain is None else repr(self.retain)
        return certify(self._model, self._held_fixed(), afresh, policy)

    def _decide(self, X: Any) -> FloatArray:
        """Decision values of every machine at new rows."""
        X = as_csr(self._check_at(X))
        return self._model.decide(X)

    def _own_values(self, X: Any) -> FloatArray:
        """k(x, x) of checked rows; of the user's own kernel, the largest of the samples held."""
        model = self._model
        if self.kernel == "precomputed" or callable(self.kernel):
            return np.full(X.shape[0], model.solver.samples.largest)
        return model.kernel.diagonal(X)
