# SPDX-License-Identifier: BSD-3-Clause
"""Least-squares regression that learns and unlearns without keeping a row."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_array

from adiabat.estimators.arguments.validation import MAX_TOL
from adiabat.estimators.confidence.least_squares import RowsSmoothed, require_held_map
from adiabat.estimators.confidence.regressor import check_question, intervals, regions
from adiabat.estimators.confidence.results import Prediction
from adiabat.estimators.least_squares.analysis import own_rows, trained_on
from adiabat.estimators.least_squares.rows import Rows, TargetPlan
from adiabat.estimators.least_squares_machine import LeastSquaresMachine
from adiabat.lssvm.machine import LeastSquares
from adiabat.typing import FloatArray


class LSSVR(MultiOutputMixin, RegressorMixin, LeastSquaresMachine):
    """Least-squares support vector regression in closed form, learned and unlearned exactly.

    Minimises ``rho ||w||^2 + sum_i s_i (w'phi(x_i) + b - y_i)^2`` (LKW19). It keeps w, the
    second moments of the rows and a matrix that follows from them: no training row. Several values
    for each row are as many right-hand sides of one matrix.

    Parameters
    ----------
    rho : float, default=1.0
        Price of the norm of w; above 0. The bias is free of it.
    feature_map : transformer or None, default=None
        The map phi; None for the features as they are. See :mod:`adiabat.feature_maps`. Scalers,
        imputers and encoders of adiabat follow the rows: after any changes they, and the model, are
        those fitted to the rows that are there.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-10
        How far w and b may be off, relative to their size.
    remember : {"hashes"} or None, default=None
        Whether to keep a salted hash of each row (16 bytes), so that rows which were never learned,
        or unlearned already, are refused. Rows must then be passed to the last bit as they were
        learned.

    Attributes
    ----------
    coef_ : ndarray of shape (width,) or (n_outputs, width)
        w.
    intercept_ : float or ndarray of shape (n_outputs,)
        b.
    C_ : ndarray
        The auxiliary matrix of LKW19 (4); with a bias, Phi is taken about its mean.
    n_samples_ : int
        Rows in the model.
    last_update_ : UpdateReport
        What the last call that changed the model did.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import LSSVR
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> y = np.array([1.0, 3.0, 5.0, 0.0])
    >>> model = LSSVR(rho=1e-9).fit(X, y).forget(X[3:], y[3:])
    >>> model.predict([[3.0]]).round(6)
    array([7.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rho": [Interval(Real, 0.0, None, closed="neither")],
        "feature_map": [HasMethods(["fit", "transform"]), None],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0.0, MAX_TOL, closed="right")],
        "remember": [StrOptions({"hashes"}), None],
    }

    def __init__(
        self,
        rho: float = 1.0,
        feature_map: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        remember: str | None = None,
    ) -> None:
        self.rho = rho
        self.feature_map = feature_map
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.remember = remember

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVR:
        """Learn further rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        self.update(X, y, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Values at some rows."""
        return self._concluded(self._decide(X))[1]

    def predict_interval(
        self,
        X: Any,
        X_train: Any,
        y_train: Any,
        confidence_level: Any = 0.9,
        method: str = "full",
        cv: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Prediction:
        """Predictions, and intervals that hold new targets at a chosen confidence.

        Parameters
        ----------
        X : array of shape (n_points, n_features)
            Rows.
        X_train, y_train, sample_weight
            The rows that the model was trained on, all of them: it keeps none.
        confidence_level, method, cv
            As in :meth:`SVR.predict_interval`.

        Returns
        -------
        prediction : ndarray of shape (n_points,)
        intervals : ndarray of shape (n_points, 2, n_levels)
            Their ends. The tuple of both has a `guarantee`.
        """
        levels = check_question(confidence_level, method, cv)
        require_held_map(self)
        rows = own_rows(self, X_train, y_train, sample_weight)
        return intervals(self, RowsSmoothed(self, X, rows), levels, method, cv)

    def predict_region(
        self,
        X: Any,
        X_train: Any,
        y_train: Any,
        confidence_level: Any = 0.9,
        *,
        sample_weight: Any = None,
    ) -> Prediction:
        """Predictions, and the exact full conformal set of each row: one interval or several.

        Parameters
        ----------
        X, X_train, y_train, confidence_level, sample_weight
            As in `predict_interval`.

        Returns
        -------
        prediction : ndarray of shape (n_points,)
        regions : list of list of ndarray of shape (n_parts, 2)
            For each row and each level the ends of the intervals, in order.
        """
        levels = check_question(confidence_level, "full", None)
        require_held_map(self)
        rows = own_rows(self, X_train, y_train, sample_weight)
        return regions(self, RowsSmoothed(self, X, rows), levels)

    # -- leaving rows out ------------------------------------------------------------------------

    def _concluded(self, outputs: FloatArray) -> tuple[FloatArray, npt.NDArray[Any]]:
        values = outputs[:, 0] if self._flat else outputs
        return values, values

    def _last_of_its_kind(self, y: Any) -> npt.NDArray[np.bool_]:
        return np.zeros(len(y), dtype=bool)

    def _leave_one_out_outputs(self, rows: Rows, row: int) -> FloatArray:
        if len(rows) == 1:
            return np.zeros(self._model.solution.shape[1])
        twin = trained_on(self, rows, np.delete(np.arange(len(rows)), row))
        outputs: FloatArray = twin._decide(rows.X[[row]])[0]
        return outputs

    # -- targets ---------------------------------------------------------------------------------

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        checked: FloatArray = check_array(
            y, dtype=np.float64, ensure_2d=False, allow_nd=False, input_name="y", copy=True
        )
        return checked

    def _plan(self, added: Rows, removed: Rows) -> TargetPlan:
        shapes = {rows.y.shape[1:] for rows in (added, removed) if len(rows)}
        if not self.__sklearn_is_fitted__():
            self._flat = added.y.ndim == 1
            width = 1 if self._flat else added.y.shape[1]
        else:
            width = self._model.moments.n_targets
        expected: tuple[int, ...] = () if self._flat else (width,)
        if shapes - {expected}:
            raise ValueError(
                f"y has the shape (n_rows, {', '.join(map(str, max(shapes)))}), and the model "
                f"learned {width} values for each row; pass as many"
            )
        combine = np.vstack([np.zeros(width), np.eye(width)])
        return TargetPlan(columns=list(range(width)), combine=combine, emptied=[])

    def _joint_plan(self, other: Any, sign: float) -> tuple[TargetPlan, list[int | None]]:
        mine, theirs = self._model.moments.n_targets, other._model.moments.n_targets
        if mine != theirs:
            raise ValueError(f"other has {theirs} values for each row, this model {mine}")
        places: list[int | None] = list(range(mine))
        return TargetPlan(places, self._model.combine, emptied=[]), places

    def _columns(self, y: Any, plan: TargetPlan) -> FloatArray:
        return np.asarray(y).reshape(len(y), -1)

    def _adopt(self, model: LeastSquares, plan: TargetPlan) -> LeastSquares:
        return model
