# SPDX-License-Identifier: BSD-3-Clause
"""Least-squares classification and regression with a kernel, which keep their rows."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array

from adiabat.estimators.arguments.labels import OneAgainstRest, require_among
from adiabat.estimators.arguments.validation import KERNEL_CONSTRAINTS
from adiabat.estimators.confidence.intervals import Evidence
from adiabat.estimators.confidence.least_squares import KernelSmoothed
from adiabat.estimators.confidence.regressor import ConfidentRegressor
from adiabat.estimators.kernel_least_squares_machine import KernelLeastSquares
from adiabat.estimators.what_if.results import LeaveOneOut, LeaveOneOutRegression
from adiabat.typing import FloatArray

_CONSTRAINTS: dict[str, list[Any]] = {
    "rho": [Interval(Real, 0.0, None, closed="neither")],
    **{name: KERNEL_CONSTRAINTS[name] for name in ("kernel", "degree", "gamma", "coef0", "tol")},
    "fit_intercept": ["boolean"],
}


class KernelLSSVC(OneAgainstRest, ClassifierMixin, KernelLeastSquares):
    """Least-squares support vector classification with a kernel, learned and unlearned exactly.

    The dual of :class:`LSSVC`: it keeps its rows, the kernel matrix K and (K + rho I)^-1, which
    grows and shrinks by blocks. Memory is 16 bytes times the square of the number of samples
    (24 with a given kernel).

    Parameters
    ----------
    rho : float, default=1.0
        Price of the norm of w; above 0.
    kernel : {"linear", "poly", "rbf", "laplacian", "chi2", "precomputed"} or callable, \
default="rbf"
        As in :class:`SVC`.
    degree, gamma, coef0
        As in :class:`SVC`; ``gamma="scale"`` is resolved at `fit` and then kept (`gamma_`).
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-10
        How far the weights of the samples may be off, relative to their size.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes present, sorted.
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    dual_coef_ : ndarray of shape (1 or n_classes, n_samples)
        Weights of the samples.
    intercept_ : ndarray
        b of each output.
    gamma_ : float
        The gamma in force.
    last_update_ : UpdateReport
        What the last call that changed the model did.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import KernelLSSVC
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = KernelLSSVC(rho=0.1, gamma=1.0).fit(X, ["in", "out", "out", "in"])
    >>> model.forget([0]).predict([[0.1], [2.9]])
    array(['out', 'in'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _CONSTRAINTS

    def __init__(
        self,
        rho: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-10,
    ) -> None:
        self.rho = rho
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, ids: Any = None
    ) -> KernelLSSVC:
        """Learn further samples.

        Parameters
        ----------
        X, y, sample_weight, ids
            As in `fit`. With ``kernel="precomputed"`` X has the new rows' kernel values against
            the samples of `ids_` in order, then against the new rows themselves.
        classes : array, optional
            If given, labels outside it are an error. Classes never seen before are welcome
            without it, at any call.

        Returns
        -------
        self
        """
        require_among(y, classes)
        self.update(X, y, sample_weight=sample_weight, ids=ids)
        return self

    def leave_one_out(self) -> LeaveOneOut:
        """What each sample would get from the model without it, in closed form.

        Returns
        -------
        LeaveOneOut
            In the order of `ids_`.
        """
        self._require_fitted("leave out")
        self._require_unchanged()
        model = self._model
        found, y = model.left_out(), model.y
        outputs, f_error = found.outputs, found.f_error
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(classes) > 1:
            # without its last member a class is gone, and the model can only choose others
            for row in np.flatnonzero(counts[codes] == 1):
                if len(classes) == 2:
                    outputs[row] = np.inf if codes[row] == 0 else -np.inf
                else:
                    outputs[row, codes[row]] = -np.inf
        decision, predictions = self._concluded(outputs)
        f_error = f_error[:, 0] if len(classes) == 2 else f_error
        return LeaveOneOut(model.ledger.ids, y.copy(), decision, predictions, 0, f_error)

    def _require_compatible(self, y: npt.NDArray[Any]) -> None:
        if len(y) and (y.dtype.kind == "U") != (self.classes_.dtype.kind == "U"):
            raise ValueError(
                f"y has the label {y[0].item()!r}, but the labels so far are like "
                f"{self.classes_[0].item()!r}; use one type of label"
            )

    def _aims(self, y: npt.NDArray[Any]) -> FloatArray:
        classes = np.unique(y)
        if len(classes) < 2:
            return np.zeros((len(y), 0))
        signs = np.where(y[:, None] == classes[None, :], 1.0, -1.0)
        return signs[:, 1:] if len(classes) == 2 else signs

    def _after_change(self) -> None:
        self.classes_ = np.unique(self._model.y)


class KernelLSSVR(ConfidentRegressor, MultiOutputMixin, RegressorMixin, KernelLeastSquares):
    """Least-squares support vector regression with a kernel, learned and unlearned exactly.

    The dual of :class:`LSSVR`, for one value or several for each sample: it keeps its rows, the
    kernel matrix K and (K + rho I)^-1, which grows and shrinks by blocks. Memory is 16 bytes
    times the square of the number of samples (24 with a given kernel).

    Parameters
    ----------
    rho : float, default=1.0
        Price of the norm of w; above 0.
    kernel : {"linear", "poly", "rbf", "laplacian", "chi2", "precomputed"} or callable, \
default="rbf"
        As in :class:`SVC`.
    degree, gamma, coef0
        As in :class:`SVC`; ``gamma="scale"`` is resolved at `fit` and then kept (`gamma_`).
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-10
        How far the weights of the samples may be off, relative to their size.

    Attributes
    ----------
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    dual_coef_ : ndarray of shape (n_outputs, n_samples)
        Weights of the samples.
    intercept_ : ndarray of shape (n_outputs,)
        b.
    gamma_ : float
        The gamma in force.
    last_update_ : UpdateReport
        What the last call that changed the model did.

    Examples
    --------
    >>> from adiabat import KernelLSSVR
    >>> model = KernelLSSVR(kernel="linear", rho=1e-6).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
    >>> model.forget([2]).predict([[3.0]]).round(3).tolist()
    [3.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _CONSTRAINTS

    def __init__(
        self,
        rho: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-10,
    ) -> None:
        self.rho = rho
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None
    ) -> KernelLSSVR:
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
        self.update(X, y, sample_weight=sample_weight, ids=ids)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Values at some rows, shaped like the y learned."""
        return self._shaped(self._decide(X))

    def leave_one_out(self) -> LeaveOneOutRegression:
        """What each sample would get from the model without it, in closed form.

        Returns
        -------
        LeaveOneOutRegression
            In the order of `ids_`.
        """
        self._require_fitted("leave out")
        self._require_unchanged()
        model = self._model
        found = model.left_out()
        values, f_error = self._shaped(found.outputs), self._shaped(found.f_error)
        return LeaveOneOutRegression(model.ledger.ids, model.y.copy(), values, 0, f_error)

    def _evidence(self, X: Any, diagonal: Any) -> Evidence:
        return KernelSmoothed(self, X, diagonal)

    def _shaped(self, outputs: FloatArray) -> FloatArray:
        return outputs[:, 0] if self._model.y.ndim == 1 else outputs

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        values: FloatArray = check_array(
            y, dtype=np.float64, ensure_2d=False, input_name="y", copy=True
        )
        return values

    def _require_compatible(self, y: npt.NDArray[Any]) -> None:
        learned = self._model.y.shape
        if y.shape[1:] != learned[1:]:
            raise ValueError(
                f"y has shape {y.shape}, and the model learned y of shape {learned}; pass as many "
                "values for each sample"
            )

    def _aims(self, y: npt.NDArray[Any]) -> FloatArray:
        return y[:, None] if y.ndim == 1 else y

    def _after_change(self) -> None:
        return None
