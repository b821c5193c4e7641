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

from adiabat.estimators.least_squares.rows import Rows, added_none
from adiabat.estimators.least_squares.solving import too_singular
from adiabat.estimators.what_if.results import LeaveOneOut, LeaveOneOutRegression
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.elimination import PivotedMatrix, factored
from adiabat.lssvm.exact_products import BLOCK_ROWS
from adiabat.lssvm.machine import LeastSquares
from adiabat.lssvm.moments import NotConverged
from adiabat.lssvm.spectrum import LEAST_REST, Spectrum, leave_one_out_outputs, leverages
from adiabat.typing import FloatArray

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


def own_rows(machine: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Checked rows, which must be those of the model as far as it can tell."""
    machine._require_fitted("analyse")
    machine._require_unchanged()
    rows: Rows = machine._rows(X, y, sample_weight)
    model = machine._model
    J = model.moments.width
    sums, sizes = np.zeros(J), np.zeros(J)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        phi = machine._features(rows.X[part])
        s = np.ones(len(phi)) if rows.weights is None else rows.weights[part]
        sums += s @ phi
        sizes += s @ np.abs(phi)
    differ = np.abs(sums - model.moments.hi[:J, J]) > _SAME_ROWS * sizes
    if len(rows) != len(model) or differ.any():
        raise ValueError(
            f"X has {len(rows)} rows that are not the {len(model)} rows this model was trained "
            "on; pass all of those, with their weights"
        )
    if machine._hashes is not None:
        machine._hashes.unlearned(machine._content(rows), "X")
    return rows


def cross_validate(
    machine: Any, rows: Rows, cv: Any, groups: Any, scoring: Any, started: float
) -> CrossValidation:
    """Unlearn one fold at a time; see `LeastSquaresMachine.cross_validate`."""
    splitter = check_cv(cv, rows.y, classifier=is_classifier(machine))
    scorer = None if scoring is None else check_scoring(machine, scoring)
    scores, folds, predictions = [], [], []
    for train, test in splitter.split(rows.X, rows.y, groups):
        twin = trained_on(machine, rows, np.asarray(train))
        guess = twin.predict(rows.X[test])
        if scorer is not None:
            scores.append(scorer(twin, rows.X[test], rows.y[test]))
        else:
            scores.append(_default_score(machine, rows.y[test], guess))
        folds.append(np.asarray(test))
        predictions.append(guess)
    return CrossValidation(np.array(scores), folds, predictions, time.perf_counter() - started)


def leave_one_out(
    machine: Any, rows: Rows, hold_scaling: bool = False
) -> LeaveOneOut | LeaveOneOutRegression:
    """Leave each row out in closed form; see `LeastSquaresMachine.leave_one_out`."""
    model = machine._model
    # factored anew: an inverse that was updated answers well enough to be corrected, no more
    matrix = model.matrix
    if not isinstance(matrix, PivotedMatrix):
        matrix = factored(model.moments, model.rho, model.intercept)
    outputs = np.empty((len(rows), model.solution.shape[1]))
    decisive = np.zeros(len(rows), dtype=bool)  # rows without which much would change
    s = np.ones(len(rows)) if rows.weights is None else rows.weights
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        phi = machine._features(rows.X[part])
        h = leverages(matrix.quadratics(phi), matrix.total, model.intercept, s[part])
        decisive[part] = h > 1.0 - LEAST_REST
        h[decisive[part]] = 0.0
        outputs[part] = leave_one_out_outputs(_aims(machine, rows.y[part]), model.decide(phi), h)
    if machine._following is not None and not hold_scaling:
        decisive[:] = True  # without any row the features of all others are different
    singular = np.flatnonzero(decisive | machine._last_of_its_kind(rows.y))
    for row in singular:
        outputs[row] = machine._leave_one_out_outputs(rows, int(row))
    decision, predictions = machine._concluded(outputs)
    ids, y = np.arange(len(rows)), np.array(rows.y)
    if is_classifier(machine):
        return LeaveOneOut(ids, y, decision, predictions, len(singular))
    return LeaveOneOutRegression(ids, y, predictions, len(singular))


def rho_path(machine: Any, rho: Any, rows: Rows | None) -> RhoPath:
    """Solve for several rho; see `LeastSquaresMachine.rho_path`."""
    values = np.atleast_1d(np.asarray(rho, dtype=np.float64))
    if values.ndim != 1 or not (np.isfinite(values) & (values > 0.0)).all():
        raise ValueError(f"rho={rho!r} must be finite numbers above 0")
    model = machine._model
    spectrum = Spectrum.of(model)
    try:
        machines = [spectrum.machine(model, float(value)) for value in values]
    except (IndefiniteMatrix, NotConverged) as error:
        raise too_singular(machine, str(error)) from error
    solutions = np.array([one.solution for one in machines])
    J = model.moments.width
    coef = np.transpose(solutions[:, :J], (0, 2, 1))
    intercept = solutions[:, J] if model.intercept else np.zeros(coef.shape[:2])
    errors = None if rows is None else _path_errors(machine, rows, spectrum, machines)
    return RhoPath(values, coef, intercept, errors)


def trained_on(machine: Any, rows: Rows, train: npt.NDArray[Any]) -> Any:
    """A model of some of the rows."""
    twin = copy.copy(machine)  # its model is never changed, only replaced
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


def _aims(machine: Any, y: Any) -> FloatArray:
    """What the outputs aim at for these targets."""
    plan = machine._plan(Rows(np.empty((0, 0)), y[:0], None), Rows(np.empty((0, 0)), y[:0], None))
    combine = machine._model.combine
    return np.asarray(combine[0] + machine._columns(y, plan) @ combine[1:])


def _path_errors(
    machine: Any, rows: Rows, spectrum: Spectrum, machines: list[LeastSquares]
) -> FloatArray:
    rhos = np.array([one.rho for one in machines])
    resolved = np.array([spectrum.resolves(rho) for rho in rhos])
    total = np.zeros(len(machines))
    weight = 0.0
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        phi = machine._features(rows.X[part])
        quadratic = np.empty((len(phi), len(machines)))
        if resolved.any():
            quadratic[:, resolved] = spectrum.quadratics(phi, rhos[resolved])
        for place in np.flatnonzero(~resolved).tolist():
            quadratic[:, place] = machines[place].matrix.quadratics(phi)
        s = np.ones(len(phi)) if rows.weights is None else rows.weights[part]
        aims = _aims(machine, rows.y[part])
        weight += float(s.sum())
        for place, one in enumerate(machines):
            h = leverages(quadratic[:, place], spectrum.total, one.intercept, s)
            off = (aims - one.decide(phi)) / np.maximum(1.0 - h, np.finfo(float).eps)[:, None]
            total[place] += float(s @ (off**2).mean(axis=1))
    return total / weight


def _default_score(estimator: Any, y: Any, guess: Any) -> float:
    return float(accuracy_score(y, guess) if is_classifier(estimator) else r2_score(y, guess))
