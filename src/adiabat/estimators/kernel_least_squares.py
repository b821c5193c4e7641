# SPDX-License-Identifier: BSD-3-Clause
"""The verbs of the kernel least-squares machines, which keep their rows and know them by id.

A subclass says what its targets are (`_check_targets`, `_aims`). Each change makes new arrays, and
is adopted once its solution is settled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.errors import NotOptimalError
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.kernel_least_squares_files import load_state, save_state
from adiabat.estimators.kernel_least_squares_model import KernelModel, Problem
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.validation import (
    as_csr,
    check_rows,
    check_weights,
    n_rows,
    require_force,
    same_parameter,
)
from adiabat.kernels import make_kernel
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.dual import relative_error
from adiabat.lssvm.judge import normal_residual
from adiabat.lssvm.machine import Effort, NotSettled

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_HELD: Final = ("rho", "kernel", "degree", "gamma", "coef0", "fit_intercept")
_WITH_GAMMA: Final = ("rbf", "poly", "laplacian", "chi2")


class KernelLeastSquares(BaseEstimator):
    """Base of `KernelLSSVC` and `KernelLSSVR`."""

    _model: KernelModel
    _held_parameters: dict[str, Any]
    last_update_: UpdateReport
    n_features_in_: int
    gamma_: float

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    # -- what a subclass says --------------------------------------------------------------------

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _require_compatible(self, y: npt.NDArray[Any]) -> None:
        """Refuse targets that do not go with those learned so far."""
        raise NotImplementedError

    def _aims(self, y: npt.NDArray[Any]) -> FloatArray:
        """What the outputs aim at for all targets, one column each."""
        raise NotImplementedError

    def _after_change(self) -> None:
        raise NotImplementedError

    # -- learn and unlearn -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> Any:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            Labels, or values.
        sample_weight : array of shape (n_samples,), optional
            Factors >= 0 on the squared errors.
        ids : sequence of int or str, optional
            Names of the samples. By default the index of a data frame, or a running count.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        with all_or_nothing(self):
            self._start(X, y, sample_weight, ids, Ledger(), started)
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
        self._require_started("forget")
        self._require_unchanged()
        removed = self._model.ledger.locate(ids, missing=missing)
        with all_or_nothing(self):
            model = self._model
            self._adopt(self._without(model, removed), started, n_removed=len(removed))
        return self

    def revise(self, ids: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Correct features, targets or weights of samples, in one step.

        Parameters
        ----------
        ids : id or sequence of ids
            The samples to correct.
        X, y, sample_weight : optional
            Their new features, targets and weights, one row each; what is left out stays.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._require_started("revise")
        self._require_unchanged()
        model = self._model
        places = model.ledger.locate(ids)
        with all_or_nothing(self):
            targets, weight = model.y, model.weight.copy()
            if y is not None:
                new = self._check_targets(y if np.ndim(y) else [y])
                if len(new) != len(places):
                    raise ValueError(f"y has {len(new)} targets, ids has {len(places)}")
                self._require_compatible(new)
                targets = targets.astype(np.result_type(targets, new))
                targets[places] = new
            if sample_weight is not None:
                weight[places] = check_weights(sample_weight, len(places))
            X_new = None
            if X is not None:
                X_new = as_csr(self._check_rows(X))
                if X_new.shape[0] != len(places):
                    raise ValueError(f"X has {X_new.shape[0]} rows, ids has {len(places)}")
            corrected = self._careful(
                lambda: model.corrected(places, X_new, targets, weight, self._problem())
            )
            self._adopt(corrected, started, n_revised=len(places))
        return self

    def update(
        self,
        X: Any = None,
        y: Any = None,
        *,
        ids: Any = None,
        sample_weight: Any = None,
        remove: Any = (),
    ) -> UpdateReport:
        """Learn some samples and unlearn others in one step.

        Parameters
        ----------
        X, y, sample_weight, ids
            Samples to learn, as in `fit`; none by default.
        remove : id or sequence of ids, default=()
            Samples to unlearn.

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
                self._start(X, y, sample_weight, ids, ledger, started)
                return self.last_update_
            self._require_unchanged()
            model = self._model
            removed = model.ledger.locate(remove)
            if n_rows(X) == 0:
                self._check_empty(X, y)
                self._adopt(self._without(model, removed), started, n_removed=len(removed))
                return self.last_update_
            stays = np.setdiff1d(np.arange(len(model)), removed)
            ledger = model.ledger.copy()
            X_new, new = self._check_rows(X, y)
            new = self._check_targets(new)
            if len(stays):
                self._require_compatible(new)
            weights = check_weights(sample_weight, X_new.shape[0])
            names = ledger.validate_new(ids, X, len(new), leaving=removed)
            ledger.delete(removed)
            ledger.append(names)
            targets = np.concatenate([model.y[stays], new])
            weights = np.concatenate([model.weight[stays], weights])
            moved = self._careful(
                lambda: model.moved(stays, ledger, targets, weights, as_csr(X_new), self._problem())
            )
            self._adopt(moved, started, n_added=len(new), n_removed=len(removed))
        return self.last_update_

    # -- evidence and attributes -----------------------------------------------------------------

    def certificate(self) -> Certificate:
        """Is this the solution? Kernel values and residual recomputed from the rows.

        Returns
        -------
        Certificate
            Its residual is how far the weights of the samples are off, relative to their size.
        """
        check_is_fitted(self)
        model = self._model
        machine = model.machine
        if len(machine) == 0 or machine.aims.shape[1] == 0:
            return self._certified(0.0, 0.0)
        rows = model.X[model.heavy]
        K = model.kernel.block(rows, rows)
        lacking = np.column_stack([
            normal_residual(K, np.zeros_like(K), machine.d, machine.alpha[:, k],
                            machine.aims[:, k], np.full(len(K), -machine.bias[k]))
            for k in range(machine.aims.shape[1])
        ])  # fmt: skip
        balance = -machine.alpha.sum(axis=0) if machine.intercept else np.zeros(lacking.shape[1])
        step, shift = machine.solve(lacking, balance)
        error = relative_error(step, shift, machine.alpha, machine.bias)
        return self._certified(error, float(np.max(np.abs(np.sum(lacking * step, axis=0)))))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: a zip of JSON and arrays, whole or not at all.

        :func:`adiabat.load` reads it back without running code.
        """
        check_is_fitted(self)
        save_state(path, self)

    @classmethod
    def _from_file(cls, path: str | os.PathLike[str]) -> Any:
        return load_state(path, cls)

    @property
    def ids_(self) -> npt.NDArray[Any]:
        """Ids of the samples held, in the order in which they were learned."""
        return self._fitted("ids_").ledger.ids

    @property
    def dual_coef_(self) -> FloatArray:
        """Weights of the samples of `ids_`, a row for each output."""
        model = self._fitted("dual_coef_")
        spread = np.zeros((model.machine.alpha.shape[1], len(model)))
        spread[:, model.heavy] = model.machine.alpha.T
        return spread

    @property
    def intercept_(self) -> FloatArray:
        """The bias b of each output; 0 without `fit_intercept`."""
        return self._fitted("intercept_").machine.bias.copy()

    # -- within ----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return len(getattr(self, "_model", ())) > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags

    def _fitted(self, name: str) -> KernelModel:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{name} exists once the model has learned a sample; call fit")
        return self._model

    def _require_started(self, verb: str) -> None:
        check_is_fitted(
            self,
            msg=f"This %(name)s instance is not fitted yet: there is nothing to {verb}. "
            "Call 'fit' or 'partial_fit' first.",
        )

    def _require_unchanged(self) -> None:
        for name, before in self._held_parameters.items():
            now = getattr(self, name)
            if not same_parameter(before, now):
                raise ValueError(
                    f"{name}={now!r} was {before!r} when the model was fitted; an update cannot "
                    "change it. Set it back, or call fit."
                )

    def _check_rows(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        return check_rows(self, X, y, reset=reset, multi_output=True)

    def _check_empty(self, X: Any, y: Any) -> None:
        if n_rows(y):
            raise ValueError(f"y has {n_rows(y)} targets, X has 0 rows")
        shape: tuple[int, ...] = getattr(X, "shape", (0,))
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _start(
        self, X: Any, y: Any, sample_weight: Any, ids: Any, ledger: Ledger, started: float
    ) -> None:
        """A new model from a first batch."""
        self._validate_params()
        rows, targets = self._check_rows(X, y, reset=True)
        targets = self._check_targets(targets)
        weights = check_weights(sample_weight, rows.shape[0])
        require_force(weights)
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=rows,
            sample_weight=weights, shift_free=bool(self.fit_intercept),
        )  # fmt: skip
        names = ledger.validate_new(ids, X, len(targets))
        ledger = ledger.copy()
        ledger.append(names)
        self._held_parameters = {name: getattr(self, name) for name in _HELD}
        self.gamma_ = kernel.gamma
        own = as_csr(rows).copy()  # the caller may write to what was passed in
        model = self._careful(
            lambda: KernelModel.built(own, targets.copy(), weights, ledger, kernel, self._problem())
        )
        self._adopt(model, started, n_added=len(targets))

    def _problem(self) -> Problem:
        """What is asked of the machine."""
        return Problem(float(self.rho), bool(self.fit_intercept), float(self.tol), self._aims)

    def _without(self, model: KernelModel, removed: IntArray) -> KernelModel:
        stays = np.setdiff1d(np.arange(len(model)), removed)
        ledger = model.ledger.copy()
        ledger.delete(removed)
        y, weight = model.y[stays], model.weight[stays]
        return self._careful(lambda: model.moved(stays, ledger, y, weight, None, self._problem()))

    def _careful(self, work: Callable[[], KernelModel]) -> KernelModel:
        """Do the work; errors in the words of the user."""
        try:
            return work()
        except (IndefiniteMatrix, NotSettled) as error:
            raise NotOptimalError(
                f"the weights could not be computed to tol={self.tol:g} ({error}): "
                f"rho={self.rho:g} is too small for this kernel. Scale the features, or raise rho"
            ) from error

    def _adopt(
        self,
        model: KernelModel,
        started: float,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        self._model = model
        self._after_change()
        effort = model.machine.effort if n_added or n_removed or n_revised else Effort()
        self.last_update_ = UpdateReport(
            n_added=n_added,
            n_removed=n_removed,
            n_revised=n_revised,
            solver=effort.way,
            rounds=effort.rounds,
            breakpoints=0,
            fallbacks=effort.refreshes,
            seconds=time.perf_counter() - started,
            certificate=self._certified(model.machine.error, model.machine.gap),
        )

    def _certified(self, error: float, gap: float) -> Certificate:
        model = self._model
        held = {"gamma": model.kernel.gamma} if model.kernel.name in _WITH_GAMMA else {}
        return Certificate(
            residual=error, gap=gap, n_samples=len(model), n_support=len(model.heavy),
            tol=self.tol, ok=error <= self.tol, held_fixed=held,
        )  # fmt: skip

    def _decide(self, X: Any) -> FloatArray:
        """Outputs at new rows, a block at a time."""
        check_is_fitted(self)
        X = as_csr(self._check_rows(X))
        return self._model.decide(X)
