# SPDX-License-Identifier: BSD-3-Clause
"""What every kernel machine can do: learn, unlearn, correct, retune, ask, certify, save.

A subclass says what its targets are (`_check_targets`, `_encode`), which formulation its parameters
stand for (`_formulation`), and what follows from a change (`_after_change`). A call either succeeds
or leaves the estimator as it was.

A parameter that shapes the optimum is held from `fit` on. `retune` changes some of them and moves
the model to the new optimum: C, epsilon, nu and class weights only move boxes, targets and sums of
problem (P); kernel parameters need new kernel values, and the solution starts from the old one.
"""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from adiabat.certificate import Certificate
from adiabat.engine.report import SolveInfo, UpdateReport
from adiabat.estimators.arguments.indices import by_ids
from adiabat.estimators.arguments.validation import (
    as_csr,
    check_kernel_rows,
    check_weights,
    n_rows,
    require_force,
    require_square,
)
from adiabat.estimators.files.content import Arrays, Manifest, save
from adiabat.estimators.files.reading import report_from
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.evidence import certify
from adiabat.estimators.kernel.hard_margin import has_errors, require_finite
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.persistence import content, pack, state_from, unpack
from adiabat.estimators.kernel.retaining import retain, with_leaving
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.estimators.learner import OF_THE_KERNEL, SampleKeeper
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.what_if.groups import leave_out
from adiabat.estimators.what_if.influence import Loss, influence
from adiabat.estimators.what_if.preview import preview
from adiabat.estimators.what_if.results import Influence, LeaveOut, Preview
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel, make_kernel
from adiabat.logs import listen, log_update
from adiabat.retention import Policy
from adiabat.typing import FloatArray, IntArray


class KernelMachine(SampleKeeper[Model]):
    """Base of the estimators that keep their samples and follow their optimum."""

    _checked_parameters: tuple[Any, ...]
    #: Which samples stay when others are learned; an estimator may make it a parameter.
    retain: Policy | None = None
    memory_limit: float | None = None
    #: Parameters of the formulation.
    _shaping: ClassVar[tuple[str, ...]] = ()

    # -- what a subclass says --------------------------------------------------------------------

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _formulation(self, held: Formulation | None, rederive: bool = False) -> Formulation:
        """What the parameters stand for, on the samples of the model if there is one.

        What the formulation so far took from data is held, unless it is to be taken again.
        """
        raise NotImplementedError

    def _rederived(self, known: Any, target: npt.NDArray[Any], weight: FloatArray) -> Formulation:
        """The formulation, with what it takes from data taken from these samples."""
        formulation: Formulation = known
        return formulation

    def _encode(
        self, targets: npt.NDArray[Any], weights: FloatArray, model: Model | None
    ) -> tuple[Formulation, npt.NDArray[Any]]:
        """Targets as the formulation knows them, and the formulation that knows them.

        They are new to a model, or the first of all.
        """
        return self._formulation(None) if model is None else model.formulation, targets

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
        with Transaction(self) as step:
            model, change = self._first(X, y, sample_weight, ids, Ledger(), whole=True)
            self._apply(step, model, change, started, n_added=len(change.ids))
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
        with Transaction(self) as step:
            change = SampleChange(removed=removed)
            self._apply(step, self._model, change, started, n_removed=len(removed))
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
        with Transaction(self) as step:
            change = self._revision(places, X, y, sample_weight)
            self._apply(step, self._model, change, started, trace, n_revised=len(places))
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
        with Transaction(self) as step:
            if self.__sklearn_is_fitted__():
                model, removed = self._model, self._model.ledger.locate(remove)
                change = self._addition(X, y, sample_weight, ids, removed)
            else:
                if not isinstance(remove, (tuple, list)) or len(remove):
                    self._require_fitted("remove")
                ledger = self._model.ledger if hasattr(self, "_model") else Ledger()
                model, change = self._first(X, y, sample_weight, ids, ledger)
            n_added, n_removed = len(change.ids), len(change.removed)
            self._apply(step, model, change, started, trace, n_added=n_added, n_removed=n_removed)
        return self.last_update_

    def retune(self, *, trace: bool = False, **params: Any) -> UpdateReport:
        """Change parameters of the fitted model; it follows the optimum there.

        Parameters
        ----------
        trace : bool, default=False
            Follow the path and record every breakpoint in the report's `trace`. There is none from
            kernel to kernel: it is then the path on which all samples are learned anew.
        **params
            Parameters of the constructor with their new values. ``gamma="scale"`` and
            ``class_weight="balanced"`` are taken from the samples now in the model.

        Returns
        -------
        UpdateReport

        Examples
        --------
        >>> from adiabat import SVC
        >>> model = SVC(C=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
        >>> model.retune(C=10.0).certificate.ok
        True
        >>> model.C
        10.0
        """
        started = time.perf_counter()
        self._require_fitted("retune")
        with Transaction(self) as step:
            self._retune(step, params, started, trace)
        return self.last_update_

    def refresh(self) -> UpdateReport:
        """Take again from the samples now in the model what was taken from data and then held.

        That is ``gamma="scale"`` and ``class_weight="balanced"``. The model is then the one that
        `fit` would give on these samples, and nothing of those forgotten is left in it.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        self._require_fitted("refresh")
        self._require_unchanged()
        with Transaction(self) as step:
            kernel = None if self.kernel == "precomputed" else self._kernel_of_samples()
            formulation = self._formulation(self._model.formulation, rederive=True)
            self._move(step, kernel, formulation, started)
        return self.last_update_

    # -- what would be: models that the fitted one is not ----------------------------------------

    def leave_out(self, groups: Any, n_jobs: int | None = None) -> LeaveOut:
        """What the model would say of each group of samples, had it never learned that group.

        Each group leaves the full model in one step, exactly and without a refit; gamma and class
        weights stay as they are. The model is not changed.

        Parameters
        ----------
        groups : array of shape (n_samples,), or list of lists of ids
            A label for each sample in the order of `ids_`, or the ids of each group; samples that
            are in no list stay in every model.
        n_jobs : int or None, default=None
            Groups left out at a time, as in joblib; threads, unless
            :func:`joblib.parallel_config` says otherwise.

        Returns
        -------
        LeaveOut

        Examples
        --------
        >>> from adiabat import SVC
        >>> model = SVC(kernel="linear", C=10.0)
        >>> _ = model.fit([[0.0], [1.0], [1.2], [2.0], [3.0]], [0, 0, 1, 1, 1])
        >>> model.leave_out([[1, 2], [4]]).correct
        array([ True,  True,  True])
        """
        self._require_askable()
        return leave_out(self, groups, n_jobs)

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

        The model is not changed; `update` with the same arguments makes it so. Policies of
        `retain` are not applied.

        Parameters
        ----------
        remove : id or sequence of ids, default=()
            Samples to unlearn.
        X, y, sample_weight : optional
            Samples to learn, as in `partial_fit`.
        at : {array, data frame, sparse} of shape (n_points, n_features), optional
            Where to decide; by default at the samples that stay. With ``kernel="precomputed"``,
            kernel values against the samples of `ids_`, then against the rows of X.

        Returns
        -------
        Preview

        Examples
        --------
        >>> from adiabat import SVC
        >>> model = SVC(kernel="linear", C=10.0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])
        >>> model.preview(remove=[1], at=[[1.0]]).change.round(6)
        array([1.])
        """
        self._require_askable()
        return preview(self, remove, X, y, sample_weight, at)

    def influence(
        self, X_val: Any, y_val: Any, loss: str | Loss | None = None, n_jobs: int | None = None
    ) -> Influence:
        """What each sample is worth: the change of a validation loss when it goes, exactly.

        Samples without weight have none, unless the sum of weights or b depends on them. The model
        is not changed.

        Parameters
        ----------
        X_val, y_val
            Validation points and their targets; +1 inside and -1 outside for models of one class.
        loss : str or callable, optional
            The mean of ``"hinge"`` (default) or ``"zero_one"`` for labels and one class, of
            ``"squared"`` (default) or ``"absolute"`` for numbers; or a function of (y_val,
            decision values) that gives a number. Of more than two classes, the hinge is that of
            the row's own decision value less the largest other.
        n_jobs : int or None, default=None
            Samples removed at a time, as in joblib; threads unless a backend is set.

        Returns
        -------
        Influence

        Examples
        --------
        >>> from adiabat import SVR
        >>> model = SVR(kernel="linear", C=10.0, epsilon=0.0)
        >>> _ = model.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 9.0])
        >>> found = model.influence([[4.0]], [4.0], loss="absolute")
        >>> int(found.ids[found.change.argmin()])
        3
        """
        self._require_askable()
        return influence(self, X_val, y_val, loss, n_jobs)

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
        save(self, path)

    def _packed(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "_model" in state:
            state["_model"] = pack(state["_model"])
        return state

    def _unpack(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_model" in state:
            self._model = unpack(state["_model"], state.get("memory_limit"))

    def _to_file(self) -> tuple[Manifest, Arrays]:
        """Manifest and arrays for a model file."""
        return content(self._packed())

    @classmethod
    def _from_file(cls, manifest: Manifest, arrays: Arrays) -> Any:
        """The estimator of a model file; ValueError if the file makes no sense."""
        estimator = cls()
        estimator._unpack(state_from(manifest, arrays, set(estimator.get_params())))
        estimator._validate_params()
        estimator._after_change()
        # Kernel values, residuals and verdict were all made anew from the rows just now.
        certificate = estimator._certify(afresh=False)
        estimator.last_update_ = report_from(manifest["report"], certificate)
        hard = estimator._model.formulation.raised() is not None
        if not certificate.ok or (hard and has_errors(estimator._model.solver)):
            raise ValueError("its model is not the optimum on its rows")
        return estimator

    # -- within ----------------------------------------------------------------------------------

    def _first(
        self, X: Any, y: Any, sample_weight: Any, ids: Any, ledger: Ledger, whole: bool = False
    ) -> tuple[Model, SampleChange]:
        """An empty model and its first batch; `whole` if it is not the first of a stream."""
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
        formulation, target = self._encode(targets, weights, None)
        model = Model(kernel, self.tol, formulation, ledger.copy())
        return model, SampleChange(ids=names, X=as_csr(X_new), target=target, weight=weights)

    def _addition(
        self, X: Any, y: Any, sample_weight: Any, ids: Any, removed: IntArray
    ) -> SampleChange:
        """A checked batch of new samples, with those that leave."""
        model = self._model
        self._require_unchanged()
        if n_rows(X) == 0:
            self._check_empty(X, y)
            return SampleChange(removed=removed)
        if self.kernel == "precomputed":
            X_new = check_kernel_rows(X, model.position)
            targets = self._check_targets(y) if self._supervised else np.zeros(len(X_new))
            if len(targets) != X_new.shape[0]:
                raise ValueError(f"y has {len(targets)} targets, X has {X_new.shape[0]} rows")
        else:
            X_new, targets = self._check_batch(X, y)
        weights = check_weights(sample_weight, X_new.shape[0])
        names = model.ledger.validate_new(ids, X, len(targets), leaving=removed)
        formulation, target = self._encode(targets, weights, model)
        return SampleChange(
            ids=names, X=as_csr(X_new), target=target, weight=weights, removed=removed,
            formulation=formulation,
        )  # fmt: skip

    def _revision(self, places: IntArray, X: Any, y: Any, sample_weight: Any) -> SampleChange:
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
            formulation, target = self._encode(targets, weights, model)
        if X is None:
            changed = target != model.target[places]
            return SampleChange(
                retargeted=places[changed],
                new_target=target[changed],
                reweighed=places,
                new_weight=weights,
                formulation=formulation,
            )
        self._refuse_new_rows()
        X_new = self._check_rows(X)
        if X_new.shape[0] != k:
            raise ValueError(f"X has {X_new.shape[0]} rows, ids has {k}")
        return SampleChange(
            X=as_csr(X_new), target=target, weight=weights, replaced=places, formulation=formulation
        )

    def _check_batch(self, X: Any, y: Any, reset: bool = False) -> tuple[Any, npt.NDArray[Any]]:
        """Rows and their targets, checked; zeros where there are none to have."""
        if not self._supervised:
            X_new = self._check_rows(X, reset=reset)
            return X_new, np.zeros(X_new.shape[0])
        X_new, targets = self._check_rows(X, self._as_given(y), reset=reset)
        return X_new, self._check_targets(targets)

    def _apply(
        self,
        step: Transaction,
        model: Model,
        change: SampleChange,
        started: float,
        trace: bool = False,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        """Go to the optimum after a checked change, with the policy, and adopt it."""
        step.require(model, self, started)
        policy = self.retain if n_added else None
        if policy is not None and policy.timing == "together":
            change, n_left = with_leaving(model, change, policy)
            n_removed += n_left
        if policy is not None and policy.timing != "together":
            n_removed += retain(step, model, change, policy, self.solver, trace)
        elif n_added or n_removed or n_revised or not model.is_judged:
            step.solve(model, change, self.solver, trace)
        with step.committing() as info:
            self._adopt(model, info, started, trace, n_added, n_removed, n_revised)

    def _adopt(
        self, model: Model, info: SolveInfo, started: float, trace: bool = False,
        n_added: int = 0, n_removed: int = 0, n_revised: int = 0,
    ) -> None:  # fmt: skip
        """Set the fitted attributes, and the report, of a model that has changed."""
        self._model = model
        self.gamma_ = model.kernel.gamma
        self._after_change()
        if self.kernel == "precomputed":
            self.n_features_in_ = len(model)
        self.last_update_ = UpdateReport(
            n_added=n_added,
            n_removed=n_removed,
            n_revised=n_revised,
            solver=info.solver,
            rounds=info.rounds,
            breakpoints=info.breakpoints,
            fallbacks=info.fallbacks,
            seconds=time.perf_counter() - started,
            certificate=self._certify(afresh=False),
            trace=list(info.traces.values()) if trace else None,
        )
        log_update(type(self).__name__, len(model), self.last_update_, info.progress)

    def _certify(self, afresh: bool) -> Certificate:
        policy = "" if self.retain is None else repr(self.retain)
        verbose = getattr(self, "verbose", False)
        progress = listen(type(self).__name__, time.perf_counter(), verbose) if afresh else None
        return certify(self._model, self._held_fixed(), afresh, policy, progress)

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

    def _require_askable(self) -> None:
        super()._require_askable()
        require_finite(self._model.formulation)

    def _retune(
        self, step: Transaction, params: dict[str, Any], started: float, trace: bool
    ) -> None:
        """Set parameters and go to the optimum under them."""
        self._require_unchanged()
        self._check_retuning(params)
        self.set_params(**params)
        self._validate_params()
        kernel = None
        if self.kernel != "precomputed" and any(name in params for name in OF_THE_KERNEL):
            kernel = self._kernel_of_samples()
        formulation = self._formulation(self._model.formulation, "class_weight" in params)
        self._move(step, kernel, formulation, started, trace)

    def _move(
        self,
        step: Transaction,
        kernel: Kernel | None,
        formulation: Formulation,
        started: float,
        trace: bool = False,
    ) -> None:
        """Go to the optimum under other parameters, and hold them."""
        model = self._model
        step.require(model, self, started)
        self._hold_parameters()
        change = SampleChange(formulation=formulation)
        if kernel is not None and not kernel.equals(model.kernel):
            change = change._replace(kernel=kernel, rows=self._held_rows())
        resolved = formulation.resolve(model.target, model.weight)
        if change.kernel or not model.is_judged or resolved.reshapes(model.formulation):
            step.solve(model, change, self.solver, trace)
        with step.committing() as info:
            self._adopt(model, info, started, trace)

    def _held_rows(self) -> Any:
        return as_csr(self._model.features(np.arange(len(self._model))))

    def _kernel_of_samples(self) -> Kernel:
        """The kernel that the parameters stand for on the samples held."""
        return self._make_kernel(self._held_rows(), self._model.weight)

    def _make_kernel(self, X: Any, weights: FloatArray) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            X=X,
            sample_weight=weights,
            shift_free=self._formulation(None).shift_free,
            inspected=True,
        )

    def _hold_parameters(self) -> None:
        held = (*self._shaping, *OF_THE_KERNEL)
        self._held_parameters = {name: getattr(self, name) for name in held}
        self._checked_parameters = (self.tol, self.solver, self.retain, self.memory_limit)

    def _require_unchanged(self) -> None:
        """Refuse a changed parameter that shapes the optimum, and any that is not valid."""
        others = (self.tol, self.solver, self.retain, self.memory_limit)
        if others != self._checked_parameters:
            self._validate_params()
            self._checked_parameters = others
        super()._require_unchanged()

    def _held_fixed(self) -> dict[str, Any]:
        """What retraining has to hold fixed to give this model."""
        return self._kernel_held()
