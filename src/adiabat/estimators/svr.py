# SPDX-License-Identifier: BSD-3-Clause
"""Epsilon-insensitive regression that learns and unlearns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.arguments.validation import KERNEL_CONSTRAINTS
from adiabat.estimators.confidence.intervals import Evidence
from adiabat.estimators.confidence.regions import MachineEvidence
from adiabat.estimators.confidence.regressor import ConfidentRegressor
from adiabat.estimators.kernel.libsvm_parameters import LIBSVM_CONSTRAINTS, LibsvmParameters
from adiabat.estimators.kernel.regularization import AlongC, Shape
from adiabat.estimators.kernel.scikit_learn import plain_svr
from adiabat.estimators.single_machine import SingleMachine
from adiabat.estimators.what_if.leave_one_out import leave_one_out_values
from adiabat.estimators.what_if.results import LeaveOneOutRegression
from adiabat.formulations.epsilon_svr import EpsilonSVR
from adiabat.retention import Policy
from adiabat.typing import FloatArray


class SVR(LibsvmParameters, ConfidentRegressor, RegressorMixin, AlongC, SingleMachine):
    """Epsilon-support vector regression that learns and unlearns exactly.

    After every `partial_fit`, `forget`, `revise`, `update` and `retune` the model is the one that
    a full retraining on the samples it then holds would give, and `certificate` says so.

    Parameters
    ----------
    C : float, default=1.0
        Price of a deviation beyond `epsilon`; above 0. With ``inf`` none is allowed, and data that
        no function fits so closely are refused.
    epsilon : float, default=0.1
        Half the width of the tube within which deviations cost nothing; at least 0.
    kernel, degree, gamma, coef0, tol, solver, retain, verbose, memory_limit
        As in :class:`adiabat.SVC`.
    shrinking, cache_size, max_iter
        Taken for scikit-learn's sake; they change nothing. `max_iter` below 1,000 is refused: a fit
        ends at the optimum.

    Attributes
    ----------
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_
        As in :class:`sklearn.svm.SVR`; `coef_` for the linear kernel only.
    gamma_ : float
        The gamma in force.
    n_iter_, fit_status_, shape_fit_, class_weight_
        As in scikit-learn; `n_iter_` counts rounds and breakpoints of the last update.
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from adiabat import SVR
    >>> model = SVR(kernel="linear", C=10.0, epsilon=0.0)
    >>> _ = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 8.0])
    >>> _ = model.revise([2], y=[2.0])
    >>> model.predict([[3.0]]).round(6)
    array([3.])
    >>> model.certificate().ok
    True
    """

    _shaping: ClassVar[tuple[str, ...]] = ("C", "epsilon")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        **KERNEL_CONSTRAINTS,
        **LIBSVM_CONSTRAINTS,
    }

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        solver: str = "auto",
        retain: Policy | None = None,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        memory_limit: float | None = None,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.solver = solver
        self.retain = retain
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.memory_limit = memory_limit

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> SVR:
        """Learn further samples.

        Parameters
        ----------
        X, y, sample_weight, ids
            As in `fit`. With ``kernel="precomputed"`` X has the new rows' kernel values against
            the samples of `ids_` in order, then against the new rows themselves.

        Returns
        -------
        self
        """
        self.update(X, y, ids=ids, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted targets."""
        return self._decide(X)[:, 0]

    def leave_one_out(
        self, n_jobs: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> LeaveOneOutRegression:
        """What the model would predict for each sample, had it never learned that sample.

        Exact for every sample, without a refit; the model is not changed.

        Parameters
        ----------
        n_jobs : int or None, default=None
            Samples removed at a time, as in joblib (-1: as many as there are cores). Threads,
            unless :func:`joblib.parallel_config` says otherwise.
        progress : callable, optional
            Called with (removals done, removals in all).

        Returns
        -------
        LeaveOneOutRegression
        """
        self._require_askable()
        values, removals = leave_one_out_values(self, n_jobs, progress)
        model = self._model
        return LeaveOneOutRegression(model.ledger.ids, model.target.copy(), values, removals)

    def _shape(self) -> Shape:
        return _first

    def to_sklearn(self) -> Any:
        """A plain fitted :class:`sklearn.svm.SVR` with the same predictions."""
        check_is_fitted(self)
        return plain_svr(self)

    # -- within ----------------------------------------------------------------------------------

    def _evidence(self, X: Any, diagonal: Any) -> Evidence:
        return MachineEvidence(self, X, diagonal)

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        targets = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="y"
        )
        checked: FloatArray = column_or_1d(targets, warn=True)
        return checked

    def _formulation(self, held: Any, rederive: bool = False) -> EpsilonSVR:
        known = EpsilonSVR(float(self.C), float(self.epsilon))
        return known if held is None else replace(held, C=known.C, epsilon=known.epsilon)


def _first(values: FloatArray) -> FloatArray:
    return values[..., 0]
