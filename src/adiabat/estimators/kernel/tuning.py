# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of a fitted model: held while data change, and followed when they are to change.

A parameter that shapes the optimum is held from `fit` on. `retune` changes some of them and moves
the model to the new optimum: C, epsilon, nu and class weights only move boxes, targets and sums of
problem (P); kernel parameters need new kernel values, and the solution starts from the old one.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from adiabat.engine.report import UpdateReport
from adiabat.engine.solver import SolveInfo
from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.estimators.learner import OF_THE_KERNEL, SampleKeeper
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel, make_kernel
from adiabat.retention import Policy

FloatArray = npt.NDArray[np.float64]


class Tunable(SampleKeeper[Model]):
    """An estimator whose parameters can be changed after `fit`, the optimum following."""

    _checked_parameters: tuple[Any, ...]
    #: Which samples stay when others are learned; an estimator may make it a parameter.
    retain: Policy | None = None
    #: Parameters of the formulation.
    _shaping: ClassVar[tuple[str, ...]] = ()

    def _formulation(self, held: Formulation | None, rederive: bool = False) -> Formulation:
        """What the parameters stand for, on the samples of the model if there is one.

        What the formulation so far took from data is held, unless it is to be taken again.
        """
        raise NotImplementedError

    def _rederived(self, known: Any, target: npt.NDArray[Any], weight: FloatArray) -> Formulation:
        """The formulation, with what it takes from data taken from these samples."""
        formulation: Formulation = known
        return formulation

    def _adopt(self, model: Model, info: SolveInfo, started: float, trace: bool = False) -> None:
        raise NotImplementedError

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

    # -- within ----------------------------------------------------------------------------------

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
        step.require(model, self.tol)
        self._hold_parameters()
        change = SampleChange(formulation=formulation)
        if kernel is not None and not kernel.equals(model.kernel):
            change = replace(change, kernel=kernel, rows=self._held_rows())
        resolved = formulation.settle(model.target, model.weight)
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
        )

    def _hold_parameters(self) -> None:
        held = (*self._shaping, *OF_THE_KERNEL)
        self._held_parameters = {name: getattr(self, name) for name in held}
        self._checked_parameters = (self.tol, self.solver, self.retain)

    def _require_unchanged(self) -> None:
        """What shaped the optimum so far must shape it further; the rest must be valid."""
        others = (self.tol, self.solver, self.retain)
        if others != self._checked_parameters:
            self._validate_params()
            self._checked_parameters = others
        super()._require_unchanged()

    def _held_fixed(self) -> dict[str, Any]:
        """What retraining has to hold fixed to give this model."""
        return self._kernel_held()
