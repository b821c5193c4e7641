# SPDX-License-Identifier: BSD-3-Clause
"""What a least-squares model would say without some of its rows, or with another rho.

The model holds no rows, so that these take them: X, y (and weights) are the rows it was trained on.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.least_squares.rows import Rows, added_none
from adiabat.estimators.least_squares_machine import LeastSquaresMachine
from adiabat.estimators.what_if.leave_one_out import LeaveOneOut
from adiabat.estimators.what_if.without_each import LeaveOneOutRegression
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.elimination import PivotedMatrix, factored
from adiabat.lssvm.exact_products import BLOCK_ROWS
from adiabat.lssvm.machine import LeastSquares
from adiabat.lssvm.moments import NotSettled
from adiabat.lssvm.spectrum import LEAST_REST, Spectrum, leverages, without_itself

FloatArray = npt.NDArray[np.float64]

# Sums of the features may differ by so much from the model's, relative to those of their sizes,
# before the rows are taken for others.
_SAME_ROWS = 1e-9


@dataclass(frozen=True)
class CrossValidation:
    """Scores of a model on folds that it never saw.

    Attributes
    ----------
    test_score : ndarray of shape (n_folds,)
        Score of each fold.
    folds : list of ndarray
        Rows of each fold.
    predictions : list of ndarray
        What was predicted for them.
    seconds : float
        Time of everything.
    """

    test_score: FloatArray
    folds: list[npt.NDArray[np.int64]]
    predictions: list[npt.NDArray[Any]]
    seconds: float


@dataclass(frozen=True)
class RhoPath:
    """Solutions for several rho.

    Attributes
    ----------
    rho : ndarray of shape (n,)
        As given.
    coef : ndarray of shape (n, n_outputs, width)
        w.
    intercept : ndarray of shape (n, n_outputs)
        b.
    leave_one_out_error : ndarray of shape (n,) or None
        Mean squared error of each row's output without it, if rows were given. Of classifiers,
        outputs are compared with +1 and -1.
    """

    rho: FloatArray
    coef: FloatArray
    intercept: FloatArray
    leave_one_out_error: FloatArray | None


class Analysis(LeastSquaresMachine):
    """Cross-validation, leave-one-out and the path over rho."""

    def cross_validate(
        self,
        X: Any,
        y: Any,
        cv: Any = None,
        *,
        groups: Any = None,
        scoring: Any = None,
        sample_weight: Any = None,
    ) -> CrossValidation:
        """Exact cross-validation: one fold at a time is unlearned from the full model.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the model was trained on, all of them.
        cv : int, splitter or iterable of (train, test), default=None
            As in scikit-learn. Rows that are not in the training set of a split are unlearned for
            it, with their weights; if those are more than half, the training set is learned anew.
            Scores count every row alike, as in scikit-learn.
        groups : array, optional
            For splitters that need them.
        scoring : str or callable, optional
            A scorer; by default accuracy or R^2.

        Returns
        -------
        CrossValidation
        """
        started = time.perf_counter()
        rows = self._own_rows(X, y, sample_weight)
        splitter = check_cv(cv, rows.y, classifier=is_classifier(self))
        scorer = None if scoring is None else check_scoring(self, scoring)
        scores, folds, predictions = [], [], []
        for train, test in splitter.split(rows.X, rows.y, groups):
            twin = self._trained_on(rows, np.asarray(train))
            guess = twin.predict(rows.X[test])
            if scorer is not None:
                scores.append(scorer(twin, rows.X[test], rows.y[test]))
            else:
                scores.append(_default_score(self, rows.y[test], guess))
            folds.append(np.asarray(test))
            predictions.append(guess)
        return CrossValidation(np.array(scores), folds, predictions, time.perf_counter() - started)

    def leave_one_out(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> LeaveOneOut | LeaveOneOutRegression:
        """What each row would get from the model without it, in closed form.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the model was trained on, all of them.

        Returns
        -------
        LeaveOneOut or LeaveOneOutRegression
            As of :class:`SVC` and :class:`SVR`; its ids are the places in X. Removals are counted
            for rows that decide so much alone that the closed form would lose digits.
        """
        rows = self._own_rows(X, y, sample_weight)
        model = self._model
        # factored anew: an inverse that was updated answers well enough to be corrected, no more
        matrix = model.matrix
        if not isinstance(matrix, PivotedMatrix):
            matrix = factored(model.moments, model.rho, model.intercept)
        outputs = np.empty((len(rows), model.solution.shape[1]))
        decisive = np.zeros(len(rows), dtype=bool)  # rows without which much would change
        s = np.ones(len(rows)) if rows.weights is None else rows.weights
        for start in range(0, len(rows), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            phi = self._features(rows.X[part])
            h = leverages(matrix.quadratics(phi), matrix.total, model.intercept, s[part])
            decisive[part] = h > 1.0 - LEAST_REST
            h[decisive[part]] = 0.0
            outputs[part] = without_itself(self._aims(rows.y[part]), model.decide(phi), h)
        singular = np.flatnonzero(decisive | self._last_of_its_kind(rows.y))
        for row in singular:
            outputs[row] = self._outputs_without(rows, int(row))
        decision, predictions = self._concluded(outputs)
        ids, y = np.arange(len(rows)), np.array(rows.y)
        if is_classifier(self):
            return LeaveOneOut(ids, y, decision, predictions, len(singular))
        return LeaveOneOutRegression(ids, y, predictions, len(singular))

    def rho_path(
        self, rho: Any, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> RhoPath:
        """Solutions for several rho, from one eigendecomposition.

        Parameters
        ----------
        rho : array of shape (n,)
            Values above 0.
        X, y, sample_weight : optional
            The rows that the model was trained on, for the leave-one-out error of each rho.

        Returns
        -------
        RhoPath
        """
        check_is_fitted(self)
        values = np.atleast_1d(np.asarray(rho, dtype=np.float64))
        if values.ndim != 1 or not (np.isfinite(values) & (values > 0.0)).all():
            raise ValueError(f"rho={rho!r} must be finite numbers above 0")
        model = self._model
        spectrum = Spectrum.of(model)
        try:
            machines = [spectrum.machine(model, float(value)) for value in values]
        except (IndefiniteMatrix, NotSettled) as error:
            raise self._too_singular(str(error)) from error
        solutions = np.array([machine.solution for machine in machines])
        J = model.moments.width
        coef = np.transpose(solutions[:, :J], (0, 2, 1))
        intercept = solutions[:, J] if model.intercept else np.zeros(coef.shape[:2])
        errors = None
        if X is not None:
            rows = self._own_rows(X, y, sample_weight)
            errors = self._path_errors(rows, spectrum, machines)
        return RhoPath(values, coef, intercept, errors)

    # -- what a subclass says --------------------------------------------------------------------

    def _last_of_its_kind(self, y: Any) -> npt.NDArray[np.bool_]:
        """Rows without which a target would be gone."""
        raise NotImplementedError

    def _concluded(self, outputs: FloatArray) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Outputs in the form of `decision_function`, and what they predict."""
        raise NotImplementedError

    def _outputs_without(self, rows: Rows, row: int) -> FloatArray:
        """The outputs at a row of the model that unlearned it."""
        raise NotImplementedError

    # -- within ----------------------------------------------------------------------------------

    def _own_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Checked rows, which must be those of the model as far as it can tell."""
        self._require_fitted("analyse")
        self._require_unchanged()
        rows = self._rows(X, y, sample_weight)
        model = self._model
        J = model.moments.width
        sums, sizes = np.zeros(J), np.zeros(J)
        for start in range(0, len(rows), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            phi = self._features(rows.X[part])
            s = np.ones(len(phi)) if rows.weights is None else rows.weights[part]
            sums += s @ phi
            sizes += s @ np.abs(phi)
        differ = np.abs(sums - model.moments.hi[:J, J]) > _SAME_ROWS * sizes
        if len(rows) != len(model) or differ.any():
            raise ValueError(
                f"X has {len(rows)} rows that are not the {len(model)} rows this model was trained "
                "on; pass all of those, with their weights"
            )
        if self._hashes is not None:
            self._hashes.unlearned(self._content(rows), "X")
        return rows

    def _trained_on(self, rows: Rows, train: npt.NDArray[Any]) -> Any:
        """A model of some of the rows."""
        twin = copy.copy(self)  # the machine is never changed, only replaced
        twin.__dict__.pop("feature_names_in_", None)  # rows come as arrays
        twin._hashes = None  # the rows are known to be the model's
        inside = np.zeros(len(rows), dtype=bool)
        inside[train] = True
        if inside.sum() == len(rows):
            return twin
        chosen = ~inside if 2 * inside.sum() >= len(rows) else inside
        weights = None if rows.weights is None else rows.weights[chosen]
        part = Rows(rows.X[chosen], rows.y[chosen], weights)
        nothing = added_none(part)
        if chosen is inside:
            del twin._model
            twin._apply(part, nothing, time.perf_counter(), n_added=len(part))
        else:
            twin._apply(nothing, part, time.perf_counter(), n_removed=len(part))
        return twin

    def _aims(self, y: Any) -> FloatArray:
        """What the outputs aim at for these targets."""
        plan = self._plan(Rows(np.empty((0, 0)), y[:0], None), Rows(np.empty((0, 0)), y[:0], None))
        combine = self._model.combine
        return np.asarray(combine[0] + self._columns(y, plan) @ combine[1:])

    def _path_errors(
        self, rows: Rows, spectrum: Spectrum, machines: list[LeastSquares]
    ) -> FloatArray:
        rhos = np.array([machine.rho for machine in machines])
        resolved = np.array([spectrum.resolves(rho) for rho in rhos])
        total = np.zeros(len(machines))
        weight = 0.0
        for start in range(0, len(rows), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            phi = self._features(rows.X[part])
            quadratic = np.empty((len(phi), len(machines)))
            if resolved.any():
                quadratic[:, resolved] = spectrum.quadratics(phi, rhos[resolved])
            for place in np.flatnonzero(~resolved).tolist():
                quadratic[:, place] = machines[place].matrix.quadratics(phi)
            s = np.ones(len(phi)) if rows.weights is None else rows.weights[part]
            aims = self._aims(rows.y[part])
            weight += float(s.sum())
            for place, machine in enumerate(machines):
                h = leverages(quadratic[:, place], spectrum.total, machine.intercept, s)
                off = (aims - machine.decide(phi)) / np.maximum(1.0 - h, np.finfo(float).eps)[
                    :, None
                ]
                total[place] += float(s @ (off**2).mean(axis=1))
        return total / weight


def _default_score(estimator: Any, y: Any, guess: Any) -> float:
    return float(accuracy_score(y, guess) if is_classifier(estimator) else r2_score(y, guess))
