# SPDX-License-Identifier: BSD-3-Clause
"""The verbs that every kernel machine shares: learn, unlearn, correct, certify, save.

A subclass says what its targets are (`_check_targets`, `_encode`), and what follows from a change
(`_after_change`). A call either succeeds or leaves the estimator as it was.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.engine.solver import Outcome
from adiabat.errors import ModelFileError
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.model import Change, Model
from adiabat.estimators.persistence import load_state, pack, save_state, unpack
from adiabat.estimators.validation import (
    as_csr,
    check_kernel_rows,
    check_weights,
    n_rows,
    require_force,
    require_square,
    same_parameter,
)
from adiabat.formulations.c_svc import CSVC
from adiabat.kernels import make_kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Parameters that shape the optimum: what a fitted model was solved with.
_HELD = ("C", "kernel", "degree", "gamma", "coef0", "class_weight")
_WITH_GAMMA = ("rbf", "poly", "laplacian", "chi2")


class KernelMachine(BaseEstimator):
    """Base of the estimators that keep their samples and follow their optimum."""

    _model: Model
    _held_parameters: dict[str, Any]
    _checked_parameters: tuple[Any, ...]
    last_update_: UpdateReport
    gamma_: float
    n_features_in_: int

    # -- what a subclass says --------------------------------------------------------------------

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _encode(self, labels: npt.NDArray[Any], weights: FloatArray) -> tuple[CSVC, IntArray]:
        raise NotImplementedError

    def _first_formulation(self) -> CSVC:
        raise NotImplementedError

    def _after_change(self) -> None:
        raise NotImplementedError

    # -- learn and unlearn -----------------------------------------------------------------------

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
        self._require_started("forget")
        self._require_unchanged()
        removed = self._model.ledger.locate(ids, missing=missing)
        with all_or_nothing(self):
            self._apply(Change(ids=[], removed=removed), started, n_removed=len(removed))
        return self

    def revise(self, ids: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Correct features, labels or weights of samples, in one step.

        Parameters
        ----------
        ids : id or sequence of ids
            The samples to correct.
        X, y, sample_weight : optional
            Their new features, labels and weights, one row each; what is left out stays.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._require_started("revise")
        places = self._model.ledger.locate(ids)
        with all_or_nothing(self):
            change, formulation = self._revision(places, X, y, sample_weight)
            self._apply(change, started, formulation, n_revised=len(places))
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
        if (X is None) != (y is None):
            raise ValueError("update needs X and y together: pass both, or neither")
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                if not isinstance(remove, (tuple, list)) or len(remove):
                    self._require_started("remove")
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
        return self._model.certificate(self._held_fixed(), afresh=True)

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
        estimator.__setstate__(state)
        if not estimator._model.certificate({}, afresh=False).ok:
            raise ModelFileError(
                f"{os.fspath(path)!r} holds a model that is not the optimum on its rows; restore "
                "it from a copy, or fit it again"
            )
        return estimator

    # -- learned attributes ----------------------------------------------------------------------

    @property
    def ids_(self) -> npt.NDArray[Any]:
        """Ids of the samples held, in the order in which they were learned."""
        return self._fitted("ids_").ledger.ids

    # -- within ----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return len(getattr(self, "_model", ())) > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags

    def _fitted(self, name: str) -> Model:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{name} exists once the model has learned a sample; call fit")
        return self._model

    def _require_started(self, verb: str) -> None:
        check_is_fitted(
            self,
            msg=f"This %(name)s instance is not fitted yet: there is nothing to {verb}. "
            "Call 'fit' or 'partial_fit' first.",
        )

    def _start(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        ids: Any,
        ledger: Ledger,
        started: float,
        trace: bool = False,
    ) -> None:
        """A new model from a first batch."""
        self._validate_params()
        X_new, labels = self._check_rows(X, y, reset=True)
        if self.kernel == "precomputed":
            require_square(X_new)
        labels = self._check_targets(labels)
        weights = check_weights(sample_weight, X_new)
        require_force(weights)
        kernel = make_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            X=X_new,
            sample_weight=weights,
            shift_free=self._first_formulation().d == 0.0,
        )
        names = ledger.validate_new(ids, X, len(labels))
        self._held_parameters = {name: getattr(self, name) for name in _HELD}
        self._checked_parameters = (self.tol, self.solver)
        self._model = Model(kernel, self.tol, self._first_formulation(), ledger.copy())
        self.gamma_ = kernel.gamma
        formulation, target = self._encode(labels, weights)
        change = Change(ids=names, X=as_csr(X_new), target=target, weight=weights)
        self._apply(change, started, formulation, trace, n_added=len(labels))

    def _addition(
        self, X: Any, y: Any, sample_weight: Any, ids: Any, removed: IntArray
    ) -> tuple[Change, CSVC]:
        """A checked batch of new samples, with those that leave."""
        model = self._model
        self._require_unchanged()
        if n_rows(X) == 0:
            self._check_empty(X, y)
            return Change(ids=[], removed=removed), model.formulation
        if self.kernel == "precomputed":
            X_new = check_kernel_rows(X, model.position)
            labels = self._check_targets(y)
            if len(labels) != X_new.shape[0]:
                raise ValueError(f"y has {len(labels)} labels, X has {X_new.shape[0]} rows")
        else:
            X_new, labels = self._check_rows(X, y)
            labels = self._check_targets(labels)
        weights = check_weights(sample_weight, X_new)
        names = model.ledger.validate_new(ids, X, len(labels), leaving=removed)
        formulation, target = self._encode(labels, weights)
        change = Change(ids=names, X=as_csr(X_new), target=target, weight=weights, removed=removed)
        return change, formulation

    def _revision(
        self, places: IntArray, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Change, CSVC]:
        """A checked correction of samples."""
        model = self._model
        self._require_unchanged()
        k = len(places)
        formulation, target = model.formulation, model.target[places]
        weights = model.weight[places]
        if sample_weight is not None:
            weights = check_weights(sample_weight, np.empty((k, 1)))
        if y is not None:
            labels = self._check_targets(y if np.ndim(y) else [y])
            if len(labels) != k:
                raise ValueError(f"y has {len(labels)} labels, ids has {k}")
            formulation, target = self._encode(labels, weights)
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
        if self.kernel == "precomputed":
            raise ValueError(
                "X cannot be revised with kernel='precomputed'; forget the samples and learn "
                "them again"
            )
        X_new = self._check_rows(X)
        if X_new.shape[0] != k:
            raise ValueError(f"X has {X_new.shape[0]} rows, ids has {k}")
        change = Change(ids=[], X=as_csr(X_new), target=target, weight=weights, replaced=places)
        return change, formulation

    def _check_rows(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """Rows (and targets, if given) as scikit-learn checks them, the argument named."""
        try:
            return validate_data(
                self, X, y, accept_sparse=False if self.kernel == "precomputed" else "csr",
                accept_large_sparse=True, dtype=np.float64, order="C", reset=reset,
            )  # fmt: skip
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"X has a value that is not a number ({error}); encode text columns as numbers"
            ) from error

    def _check_empty(self, X: Any, y: Any) -> None:
        if n_rows(y):
            raise ValueError(f"y has {n_rows(y)} labels, X has 0 rows")
        width: tuple[int, ...] = getattr(X, "shape", (0,))
        if len(width) == 2 and self.kernel != "precomputed" and width[1] != self.n_features_in_:
            raise ValueError(
                f"X has {width[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _require_unchanged(self) -> None:
        """What shaped the optimum so far must shape it further; the rest must be valid."""
        others = (self.tol, self.solver)
        if others != self._checked_parameters:
            self._validate_params()
            self._checked_parameters = others
        for name, before in self._held_parameters.items():
            now = getattr(self, name)
            if not same_parameter(before, now):
                raise ValueError(
                    f"{name}={now!r} was {before!r} when the model was fitted; an update cannot "
                    f"change it. Set it back, or call fit."
                )

    def _apply(
        self,
        change: Change,
        started: float,
        formulation: CSVC | None = None,
        trace: bool = False,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        """Carry out a checked change and report it."""
        model = self._model
        model.solver.tol = self.tol

        def announce(outcome: Outcome) -> None:
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
                certificate=model.certificate(self._held_fixed(), afresh=False),
                trace=list(outcome.traces.values()) if trace else None,
            )

        if n_added or n_removed or n_revised:
            formulation = formulation or model.formulation
            model.change(change, formulation, self.solver, trace, announce)
        else:
            announce(Outcome())

    def _held_fixed(self) -> dict[str, Any]:
        """What retraining has to hold fixed to give this model."""
        model = self._model
        held: dict[str, Any] = {}
        if model.kernel.name in _WITH_GAMMA:
            held["gamma"] = model.kernel.gamma
        if self.class_weight is not None:
            held["class_weight"] = {
                model.formulation.label[code]: factor
                for code, factor in model.formulation.class_weight.items()
            }
        return held

    def _decide(self, X: Any) -> FloatArray:
        """Decision values of every machine at new rows."""
        check_is_fitted(self)
        model = self._model
        if self.kernel != "precomputed":
            return model.decide(as_csr(self._check_rows(X)))
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != len(model):
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{len(model)} features as input: with kernel='precomputed', the kernel values "
                "against the samples of ids_, in that order"
            )
        return model.decide(X)
