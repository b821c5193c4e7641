# SPDX-License-Identifier: BSD-3-Clause
"""The verbs of the kernel least-squares machines, which keep their rows and know them by id.

A subclass says what its targets are (`_check_targets`, `_aims`). Each change makes new arrays, and
is adopted once its solution is exact.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.errors import IndefiniteKernelError, NotOptimalError
from adiabat.estimators.arguments.indices import by_ids
from adiabat.estimators.arguments.labels import joined
from adiabat.estimators.arguments.validation import (
    as_csr,
    check_kernel_rows,
    check_weights,
    n_rows,
    read_only,
    require_force,
    require_square,
)
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.files.content import Arrays, Manifest, save
from adiabat.estimators.kernel_least_squares.files import content, estimator_from
from adiabat.estimators.kernel_least_squares.model import KernelModel, Problem
from adiabat.estimators.learner import OF_THE_KERNEL, SampleKeeper
from adiabat.estimators.ledger import Ledger
from adiabat.kernels import Kernel, make_kernel
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.dual_evidence import Finding, judged
from adiabat.lssvm.machine import Effort
from adiabat.lssvm.moments import NotConverged
from adiabat.typing import FloatArray, IntArray

#: Parameters that shape the model.
HELD: Final = ("rho", *OF_THE_KERNEL, "fit_intercept")


class KernelLeastSquares(SampleKeeper[KernelModel]):
    """Base of `KernelLSSVC` and `KernelLSSVR`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    # a linear kernel may measure from an origin only where there is a bias
    _fixed_at_fit = ("fit_intercept",)

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
            Samples; for ``kernel="precomputed"`` their kernel matrix (n_samples, n_samples).
        y : array of shape (n_samples,), or (n_samples, n_outputs) for values
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
        self._require_fitted("forget")
        self._require_unchanged()
        removed = self._model.ledger.locate(ids, missing=missing)
        with all_or_nothing(self):
            model = self._model
            self._adopt(self._downdated(model, removed), started, n_removed=len(removed))
        return self

    def revise(self, ids: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Correct features, targets or weights of samples, in one step.

        Parameters
        ----------
        ids : id or sequence of ids
            The samples to correct.
        X, y, sample_weight : optional
            Their new features, targets and weights, one row each; what is left out stays. Rows
            with a pandas index are matched to `ids` by it, others by position.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._require_fitted("revise")
        self._require_unchanged()
        model = self._model
        places = model.ledger.locate(ids)
        X, y = by_ids(ids, X, "X"), by_ids(ids, y, "y")
        sample_weight = by_ids(ids, sample_weight, "sample_weight")
        with all_or_nothing(self):
            targets, weight = model.y, model.weight.copy()
            if y is not None:
                new = self._check_targets(y if np.ndim(y) else [y])
                if len(new) != len(places):
                    raise ValueError(f"y has {len(new)} targets, ids has {len(places)}")
                self._require_compatible(new)
                both = joined(targets, new)
                targets = both[: len(targets)].copy()
                targets[places] = both[len(targets) :]
            if sample_weight is not None:
                weight[places] = check_weights(sample_weight, len(places))
            X_new = None
            if X is not None:
                self._refuse_new_rows()
                X_new = as_csr(self._check_rows(X))
                if X_new.shape[0] != len(places):
                    raise ValueError(f"X has {X_new.shape[0]} rows, ids has {len(places)}")
            corrected = model
            if len(places):
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
                    self._require_fitted("remove")
                ledger = self._model.ledger if hasattr(self, "_model") else Ledger()
                self._start(X, y, sample_weight, ids, ledger, started)
                return self.last_update_
            self._require_unchanged()
            model = self._model
            removed = model.ledger.locate(remove)
            if n_rows(X) == 0:
                self._check_empty(X, y)
                self._adopt(self._downdated(model, removed), started, n_removed=len(removed))
                return self.last_update_
            stays = np.setdiff1d(np.arange(len(model)), removed)
            ledger = model.ledger.copy()
            X_new, new = self._check_new(X, y)
            if len(stays):
                self._require_compatible(new)
            weights = check_weights(sample_weight, X_new.shape[0])
            names = ledger.validate_new(ids, X, len(new), leaving=removed)
            ledger.delete(removed)
            ledger.append(names)
            targets = joined(model.y[stays], new) if len(stays) else new
            weights = np.concatenate([model.weight[stays], weights])
            moved = self._careful(
                lambda: model.moved(stays, ledger, targets, weights, as_csr(X_new), self._problem())
            )
            self._adopt(moved, started, n_added=len(new), n_removed=len(removed))
        return self.last_update_

    def retune(self, **params: Any) -> UpdateReport:
        """Change parameters of the fitted model; kernel values are computed anew only if they must.

        Parameters
        ----------
        **params
            Parameters of the constructor with their new values, all but `fit_intercept`.
            ``gamma="scale"`` is taken from the samples now in the model.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        self._require_fitted("retune")
        self._require_unchanged()
        self._check_retuning(params)
        with all_or_nothing(self):
            self.set_params(**params)
            self._validate_params()
            model = self._model
            kernel = model.kernel
            if self.kernel != "precomputed" and any(name in params for name in OF_THE_KERNEL):
                kernel = self._make_kernel(model.X, model.weight)
            self._hold_parameters()
            self._adopt(self._careful(lambda: model.under(kernel, self._problem())), started)
        return self.last_update_

    def refresh(self) -> UpdateReport:
        """Take ``gamma="scale"`` again from the samples now in the model.

        The model is then the one that `fit` would give on these samples, and nothing of those
        forgotten is left in it.

        Returns
        -------
        UpdateReport
        """
        return self.retune(gamma=self.gamma)

    # -- evidence and attributes -----------------------------------------------------------------

    def certificate(self) -> Certificate:
        """Is this the solution? Kernel values and residual recomputed from the rows.

        Returns
        -------
        Certificate
            Its residual is how far the weights of the samples are off, relative to their size. It
            is `ok` if that is at most `tol`, or if kernel values that differ by no more than
            their rounding explain it; `f_error` then says how well f is known.
        """
        check_is_fitted(self)
        return self._stated(judged(self._model.machine, self._model.known()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: a zip of JSON and arrays, whole or not at all.

        :func:`adiabat.load` reads it back without running code.
        """
        save(self, path)

    def _to_file(self) -> tuple[Manifest, Arrays]:
        """Manifest and arrays for a model file."""
        return content(self)

    @classmethod
    def _from_file(cls, manifest: Manifest, arrays: Arrays) -> Any:
        """The estimator of a model file; ValueError if the file makes no sense."""
        return estimator_from(manifest, arrays, cls)

    @property
    def dual_coef_(self) -> FloatArray:
        """Weights of the samples of `ids_`, a row for each output."""
        model = self._fitted("dual_coef_")
        spread = np.zeros((model.machine.alpha.shape[1], len(model)))
        spread[:, model.heavy] = model.machine.alpha.T
        return read_only(spread)

    @property
    def intercept_(self) -> FloatArray:
        """The bias b of each output; 0 without `fit_intercept`."""
        return read_only(self._fitted("intercept_").machine.bias.copy())

    # -- within ----------------------------------------------------------------------------------

    def _start(
        self, X: Any, y: Any, sample_weight: Any, ids: Any, ledger: Ledger, started: float
    ) -> None:
        """A new model from a first batch."""
        self._validate_params()
        rows, targets = self._check_rows(X, self._as_given(y), reset=True, multi_output=True)
        if self.kernel == "precomputed":
            require_square(rows)
        targets = self._check_targets(targets)
        weights = check_weights(sample_weight, rows.shape[0])
        require_force(weights)
        kernel = self._make_kernel(rows, weights)
        names = ledger.validate_new(ids, X, len(targets))
        ledger = ledger.copy()
        ledger.append(names)
        self._hold_parameters()
        own = as_csr(rows).copy()  # the caller may write to what was passed in
        model = self._careful(
            lambda: KernelModel.built(own, targets.copy(), weights, ledger, kernel, self._problem())
        )
        self._adopt(model, started, n_added=len(targets))

    def _check_new(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
        """Further samples and their targets, checked."""
        if self.kernel != "precomputed":
            rows, targets = self._check_rows(X, self._as_given(y), multi_output=True)
            return rows, self._check_targets(targets)
        rows = check_kernel_rows(X, np.arange(len(self._model)))
        targets = self._check_targets(y)
        if len(targets) != len(rows):
            raise ValueError(f"y has {len(targets)} targets, X has {len(rows)} rows")
        return rows, targets

    def _make_kernel(self, X: Any, weights: FloatArray) -> Kernel:
        return make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=X,
            sample_weight=weights, shift_free=bool(self.fit_intercept),
        )  # fmt: skip

    def _hold_parameters(self) -> None:
        self._held_parameters = {name: getattr(self, name) for name in HELD}

    def _problem(self) -> Problem:
        """What is asked of the machine."""
        return Problem(float(self.rho), bool(self.fit_intercept), float(self.tol), self._aims)

    def _downdated(self, model: KernelModel, removed: IntArray) -> KernelModel:
        if len(removed) == 0:
            return model
        stays = np.setdiff1d(np.arange(len(model)), removed)
        ledger = model.ledger.copy()
        ledger.delete(removed)
        y, weight = model.y[stays], model.weight[stays]
        return self._careful(lambda: model.moved(stays, ledger, y, weight, None, self._problem()))

    def _careful(self, work: Callable[[], KernelModel]) -> KernelModel:
        """Do the work; errors in the words of the user."""
        try:
            return work()
        except (IndefiniteMatrix, NotConverged) as error:
            if isinstance(error, IndefiniteMatrix) and (
                callable(self.kernel) or self.kernel == "precomputed"
            ):
                raise IndefiniteKernelError(
                    f"kernel={self.kernel!r} is not positive semidefinite: K + rho*I with "
                    f"rho={self.rho:g} is not. Pass similarities, not distances, or use a "
                    "positive semidefinite kernel."
                ) from error
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
        effort = Effort() if model is getattr(self, "_model", None) else model.machine.effort
        self._model = model
        self._after_change()
        self.gamma_ = model.kernel.gamma
        if self.kernel == "precomputed":
            self.n_features_in_ = len(model)
        self.last_update_ = UpdateReport(
            n_added=n_added,
            n_removed=n_removed,
            n_revised=n_revised,
            solver=effort.way,
            rounds=effort.rounds,
            breakpoints=0,
            fallbacks=effort.refreshes,
            seconds=time.perf_counter() - started,
            certificate=self._stated(Finding.of(model.machine)),
        )

    def _stated(self, found: Finding) -> Certificate:
        """A finding on the machine as the certificate of the model."""
        model = self._model
        return Certificate(
            residual=found.error, gap=found.gap, n_samples=len(model), n_support=len(model.heavy),
            tol=self.tol, ok=found.error <= self.tol or found.rounding, f_error=found.f_error,
            held_fixed=self._kernel_held(),
        )  # fmt: skip

    def _decide(self, X: Any) -> FloatArray:
        """Outputs at new rows, a block at a time."""
        X = as_csr(self._check_at(X))
        return self._model.decide(X)
