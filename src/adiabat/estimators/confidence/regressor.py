# SPDX-License-Identifier: BSD-3-Clause
"""Intervals and regions of regression, as methods of the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.estimators.confidence.folds import folds_of
from adiabat.estimators.confidence.guarantee import guarantee
from adiabat.estimators.confidence.intervals import Evidence, intervals_from
from adiabat.estimators.confidence.levels import check_levels, rank_at
from adiabat.estimators.confidence.results import Prediction
from adiabat.typing import FloatArray

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
        return intervals(self, self._evidence(X, diagonal), levels, method, cv)

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
        return regions(self, self._evidence(X, diagonal), levels)

    def _evidence(self, X: Any, diagonal: Any) -> Evidence:
        """What intervals at some rows are made of."""
        raise NotImplementedError

    def _checked(self, confidence_level: Any, method: Any, cv: Any) -> FloatArray:
        self._require_askable()  # type: ignore[attr-defined]
        return check_question(confidence_level, method, cv)


def check_question(confidence_level: Any, method: Any, cv: Any) -> FloatArray:
    """The levels asked for; ValueError if the question makes no sense."""
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}")
    if cv is not None and method != "cv+":
        raise ValueError(f"cv={cv!r} is for method='cv+', and method={method!r}")
    return check_levels(confidence_level)


def intervals(
    estimator: Any, evidence: Evidence, levels: FloatArray, method: str, cv: Any
) -> Prediction:
    """Predictions with their intervals, by any method."""
    n, folds = len(evidence), None
    ranks = [rank_at(float(level), n) for level in levels]
    if method == "full":
        ends = [
            [(parts[0, 0], parts[-1, 1]) for parts in by_level]
            for by_level in evidence.regions(ranks)
        ]
        found = np.array(ends).reshape(-1, len(levels), 2).transpose(0, 2, 1).copy()
    elif n < 2:
        raise ValueError(f"method={method!r} needs two samples, and the model has one")
    elif method == "cv+":
        folds = folds_of(n, cv)
        found = intervals_from(evidence.leave_folds_out(folds), levels, minmax=False)
    else:
        found = intervals_from(evidence.leave_one_out(), levels, minmax=method == "minmax")
    promised = guarantee(estimator, method, levels, n, folds)
    return Prediction.of(evidence.prediction, found, promised)


def regions(estimator: Any, evidence: Evidence, levels: FloatArray) -> Prediction:
    """Predictions with their full conformal regions."""
    n = len(evidence)
    found = evidence.regions([rank_at(float(level), n) for level in levels])
    return Prediction.of(evidence.prediction, found, guarantee(estimator, "full", levels, n))
