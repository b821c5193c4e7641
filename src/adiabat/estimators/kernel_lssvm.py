# SPDX-License-Identifier: BSD-3-Clause
"""Least-squares classification and regression with a kernel, which keep their rows."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from adiabat.estimators.kernel_least_squares import KernelLeastSquares
from adiabat.estimators.least_squares_analysis import LeaveOneOut
from adiabat.kernels import KERNEL_NAMES

FloatArray = npt.NDArray[np.float64]

_CONSTRAINTS: dict[str, list[Any]] = {
    "rho": [Interval(Real, 0.0, None, closed="neither")],
    "kernel": [StrOptions({*KERNEL_NAMES, "sigmoid"} - {"precomputed"}), callable],
    "degree": [Interval(Real, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "fit_intercept": ["boolean"],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
}


class KernelLSSVC(ClassifierMixin, KernelLeastSquares):
    """Least-squares support vector classification with a kernel, learned and unlearned exactly.

    The dual of :class:`LSSVC`: it keeps its rows, the kernel matrix K and (K + rho I)^-1, which
    grows and shrinks by blocks. Memory is 16 bytes times the square of the number of samples.

    Parameters
    ----------
    rho : float, default=1.0
        Price of the norm of w; above 0.
    kernel : {"linear", "poly", "rbf", "laplacian", "chi2"} or callable, default="rbf"
        As in :class:`SVC`.
    degree, gamma, coef0
        As in :class:`SVC`; ``gamma="scale"`` is settled at `fit` and then held (`gamma_`).
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
            As in `fit`.
        classes : array, optional
            If given, labels outside it are an error. Classes never seen before are welcome
            without it, at any call.

        Returns
        -------
        self
        """
        if classes is not None:
            unknown = np.setdiff1d(np.unique(np.asarray(y)), np.asarray(classes))
            if len(unknown):
                raise ValueError(
                    f"y has labels {unknown[:10].tolist()} that are not in classes="
                    f"{np.asarray(classes).tolist()}; leave classes out to admit new ones"
                )
        self.update(X, y, sample_weight=sample_weight, ids=ids)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Outputs: (n,) for two classes, above 0 for ``classes_[1]``; else (n, n_classes)."""
        return self._concluded(self._decide(X))[0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: the class of the largest output."""
        return self._concluded(self._decide(X))[1]

    def leave_one_out(self) -> LeaveOneOut:
        """What each sample would get from the model without it, in closed form.

        Returns
        -------
        LeaveOneOut
            In the order of `ids_`.
        """
        outputs = self._fitted("leave_one_out").left_out()
        y = self._model.y
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(classes) > 1:
            # without its last member a class is gone, and the model can only choose others
            for row in np.flatnonzero(counts[codes] == 1):
                if len(classes) == 2:
                    outputs[row] = np.inf if codes[row] == 0 else -np.inf
                else:
                    outputs[row, codes[row]] = -np.inf
        decision, predictions = self._concluded(outputs)
        return LeaveOneOut(decision, predictions, float(accuracy_score(y, predictions)))

    def _concluded(self, outputs: FloatArray) -> tuple[FloatArray, npt.NDArray[Any]]:
        if len(self.classes_) == 2:
            decision = outputs[:, 0]
            return decision, self.classes_[(decision > 0.0).astype(np.int64)]
        decision = outputs if len(self.classes_) > 2 else np.zeros((len(outputs), 1))
        return decision, self.classes_[decision.argmax(axis=1)]

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        labels = np.asarray(y)
        if labels.ndim != 1:
            labels = column_or_1d(labels, warn=True)
        if labels.dtype == object and len({isinstance(label, str) for label in labels}) == 1:
            labels = np.array(labels.tolist())
        if labels.dtype.kind not in "iubU":  # numbers that may be continuous, or objects
            check_classification_targets(labels)
        return labels

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


class KernelLSSVR(RegressorMixin, KernelLeastSquares):
    """Least-squares support vector regression with a kernel, learned and unlearned exactly.

    The dual of :class:`LSSVR`: it keeps its rows, the kernel matrix K and (K + rho I)^-1, which
    grows and shrinks by blocks. Memory is 16 bytes times the square of the number of samples.

    Parameters
    ----------
    rho : float, default=1.0
        Price of the norm of w; above 0.
    kernel : {"linear", "poly", "rbf", "laplacian", "chi2"} or callable, default="rbf"
        As in :class:`SVC`.
    degree, gamma, coef0
        As in :class:`SVC`; ``gamma="scale"`` is settled at `fit` and then held (`gamma_`).
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-10
        How far the weights of the samples may be off, relative to their size.

    Attributes
    ----------
    ids_ : ndarray
        Ids of the samples held, in the order in which they were learned.
    dual_coef_ : ndarray of shape (1, n_samples)
        Weights of the samples.
    intercept_ : ndarray of shape (1,)
        b.
    gamma_ : float
        The gamma in force.
    last_update_ : UpdateReport
        What the last call that changed the model did.
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
            As in `fit`.

        Returns
        -------
        self
        """
        self.update(X, y, sample_weight=sample_weight, ids=ids)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Values at some rows."""
        return self._decide(X)[:, 0]

    def leave_one_out(self) -> LeaveOneOut:
        """What each sample would get from the model without it, in closed form.

        Returns
        -------
        LeaveOneOut
            In the order of `ids_`.
        """
        values = self._fitted("leave_one_out").left_out()[:, 0]
        return LeaveOneOut(values, values, float(r2_score(self._model.y, values)))

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        values = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", copy=True)
        if values.ndim != 1:
            values = column_or_1d(values, warn=True)
        return np.asarray(values, dtype=np.float64)

    def _require_compatible(self, y: npt.NDArray[Any]) -> None:
        return None

    def _aims(self, y: npt.NDArray[Any]) -> FloatArray:
        return np.asarray(y, dtype=np.float64)[:, None]

    def _after_change(self) -> None:
        return None
