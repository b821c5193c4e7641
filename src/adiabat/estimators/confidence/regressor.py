# SPDX-License-Identifier: BSD-3-Clause
"""Intervals and regions of regression, as methods of the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.confidence.folds import folds_of
from adiabat.estimators.confidence.guarantee import guarantee
from adiabat.estimators.confidence.intervals import Elsewhere, intervals_from, without_folds
from adiabat.estimators.confidence.levels import check_levels, rank_at
from adiabat.estimators.confidence.results import Prediction

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

METHODS = ("full", "jackknife+", "cv+", "minmax")


class ConfidentRegressor:
    """A regression that says how far a new target may be from its prediction."""

    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = 0.9,
        method: str = "full",
        cv: Any = None,
        *,
        diagonal: Any = None,
    ) -> Prediction:
        """Predictions, and intervals that hold new targets at a chosen confidence.

        Nothing is refitted, and the model is not changed.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_points, n_features)
            Rows; for ``kernel="precomputed"`` their kernel values against `ids_`.
        confidence_level : float or list of float, default=0.9
            How many of the new targets should be inside; between 0 and 1.
        method : {"full", "jackknife+", "cv+", "minmax"}, default="full"
            ``"full"`` tries every target that the row could have (the interval is the hull of
            `predict_region`); ``"jackknife+"`` and ``"minmax"`` take the models without each
            sample, ``"cv+"`` those without each fold.
        cv : int, splitter or iterable of splits, optional
            Folds of ``"cv+"``, each sample in one of them; 5, drawn by a fixed seed, by default.
        diagonal : array of shape (n_points,), optional
            With ``kernel="precomputed"`` and ``"full"``, the values k(x, x) of the rows.

        Returns
        -------
        prediction : ndarray of shape (n_points,)
        intervals : ndarray of shape (n_points, 2, n_levels)
            Their ends. The tuple of both has a `guarantee`.
        """
        levels = self._checked(confidence_level, method, cv)
        if method == "full":
            prediction, regions = self._regions(X, levels, diagonal)
            ends = [[(part[0, 0], part[-1, 1]) for part in parts] for parts in regions]
            intervals = np.array(ends).reshape(-1, len(levels), 2).transpose(0, 2, 1)
            promised = guarantee(self, method, levels, self._n())
            return Prediction.of(prediction, np.ascontiguousarray(intervals), promised)
        for level in levels:
            rank_at(float(level), self._n())
        if self._n() < 2:
            raise ValueError(f"method={method!r} needs two samples, and the model has one")
        rows, sizes = self._points(X), None
        if method == "cv+":
            folds = folds_of(self._n(), cv)
            sizes = np.array([len(places) for places in folds])
            found = without_folds(self, rows, self._own_targets(), folds)
        else:
            found = self._without_each(rows)
        promised = guarantee(self, method, levels, self._n(), sizes)
        intervals = intervals_from(found, levels, method == "minmax")
        return Prediction.of(self._predicted(rows), intervals, promised)

    def predict_region(
        self, X: Any, confidence_level: Any = 0.9, *, diagonal: Any = None
    ) -> Prediction:
        """Predictions, and the exact full conformal set of each row: one interval or several.

        Parameters
        ----------
        X, confidence_level, diagonal
            As in `predict_interval`.

        Returns
        -------
        prediction : ndarray of shape (n_points,)
        regions : list of list of ndarray of shape (n_parts, 2)
            For each row and each level the ends of the intervals, in order. The tuple of both has
            a `guarantee`.
        """
        levels = self._checked(confidence_level, "full", None)
        prediction, regions = self._regions(X, levels, diagonal)
        return Prediction.of(prediction, regions, guarantee(self, "full", levels, self._n()))

    # -- what an estimator says ------------------------------------------------------------------

    def _points(self, X: Any) -> Any:
        """Checked rows."""
        raise NotImplementedError

    def _predicted(self, rows: Any) -> FloatArray:
        """Predictions at checked rows."""
        raise NotImplementedError

    def _own_targets(self) -> FloatArray:
        """Targets of the samples held."""
        raise NotImplementedError

    def _without_each(self, rows: Any) -> Elsewhere:
        """What the models without each sample say."""
        raise NotImplementedError

    def _rows_to_ask(self, view: Any, places: IntArray) -> Any:
        """Samples held as a model without them wants to be asked about them."""
        raise NotImplementedError

    def _full_regions(
        self, X: Any, diagonal: Any, ranks: list[int]
    ) -> tuple[FloatArray, list[list[FloatArray]]]:
        """Predictions, and the region of each row for each rank."""
        raise NotImplementedError

    # -- within ----------------------------------------------------------------------------------

    def _n(self) -> int:
        model: Any = self._model  # type: ignore[attr-defined]
        return len(model)

    def _checked(self, confidence_level: Any, method: Any, cv: Any) -> FloatArray:
        check_is_fitted(self)
        self._require_unchanged()  # type: ignore[attr-defined]
        if method not in METHODS:
            raise ValueError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}")
        if cv is not None and method != "cv+":
            raise ValueError(f"cv={cv!r} is for method='cv+', and method={method!r}")
        return check_levels(confidence_level)

    def _regions(
        self, X: Any, levels: FloatArray, diagonal: Any
    ) -> tuple[FloatArray, list[list[FloatArray]]]:
        ranks = [rank_at(float(level), self._n()) for level in levels]
        return self._full_regions(X, diagonal, ranks)
