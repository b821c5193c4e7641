# SPDX-License-Identifier: BSD-3-Clause
"""Intervals from the models without each sample, or without each fold.

R_i is the absolute residual of sample i by the model without it, f_i(x) what that model says of x.
With k = floor(alpha (n + 1)), the interval ends at the k-th smallest f_i(x) - R_i and the k-th
largest f_i(x) + R_i (jackknife+; cv+ with folds), or goes from min f_i(x) - q to max f_i(x) + q,
q being the k-th largest R_i (minmax). Barber, Candes, Ramdas and Tibshirani 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adiabat.estimators.confidence.folds import fold_models
from adiabat.estimators.confidence.levels import rank_at
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.copies import copy_removing, rows_for
from adiabat.estimators.what_if.influence import is_simple
from adiabat.estimators.what_if.point_kernel import PointKernel
from adiabat.estimators.what_if.removals import machine_values, remove_each, weighty_units
from adiabat.typing import FloatArray, IntArray

# Values of left-out models at points, at a time (64 MB).
MOST_ENTRIES = 1 << 23


@dataclass(frozen=True)
class Elsewhere:
    """Absolute residuals of samples by the models without them, (n,), and what these models say
    of some points, (n, n_points).
    """

    residual: FloatArray
    values: FloatArray


def intervals_from(found: Elsewhere, levels: FloatArray, minmax: bool) -> FloatArray:
    """Ends of the intervals, (n_points, 2, n_levels)."""
    n, q = found.values.shape
    out = np.empty((q, 2, len(levels)))
    low, high = found.values - found.residual[:, None], found.values + found.residual[:, None]
    low.sort(axis=0)
    high.sort(axis=0)
    residual = np.sort(found.residual)
    for j, level in enumerate(levels):
        k = rank_at(float(level), n)
        if minmax:
            out[:, 0, j] = found.values.min(axis=0) - residual[n - k]
            out[:, 1, j] = found.values.max(axis=0) + residual[n - k]
        else:
            out[:, 0, j], out[:, 1, j] = low[k - 1], high[n - k]
    return out


def leave_one_out(estimator: Any, X: Any, n_jobs: int | None = None) -> Elsewhere:
    """Each sample left out of a machine of regression, by pivots of one tableau."""
    model: Model = estimator._model
    values, predicted = machine_values(model)[:, 0], model.decide(X)[:, 0]
    elsewhere = np.tile(predicted, (len(model), 1))
    units = weighty_units(model)
    simple = [unit for unit in units if is_simple(model, unit[1])]
    step = max(1, MOST_ENTRIES // len(model))
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        kernel = PointKernel(model, X[part]).by_position(model)
        removals = remove_each(estimator, simple, n_jobs, None, points=kernel)
        for (_, place), removal in zip(simple, removals, strict=True):
            assert removal.elsewhere is not None
            values[place] = removal.f
            elsewhere[place, part] += removal.elsewhere
    for _, place in set(units).difference(simple):
        gone = np.array([place])
        view = copy_removing(estimator, gone)
        values[place] = view._decide(rows_for(view, estimator, gone))[0, 0]
        elsewhere[place] = view._decide(points_for(estimator, X, gone))[:, 0]
    return Elsewhere(np.abs(model.target - values), elsewhere)


def leave_folds_out(estimator: Any, X: Any, folds: list[IntArray]) -> Elsewhere:
    """Each fold left out of a machine of regression, in one step."""
    parts = []
    for places, view in fold_models(estimator, folds):
        own = view._decide(rows_for(view, estimator, places))[:, 0]
        parts.append((places, own, view._decide(points_for(estimator, X, places))[:, 0]))
    return left_out(estimator._model.target, parts)


def left_out(
    targets: FloatArray, parts: list[tuple[IntArray, FloatArray, FloatArray]]
) -> Elsewhere:
    """Folds put together: places, what is said of their samples, and what of the points."""
    residual, values = np.empty(len(targets)), np.empty((len(targets), len(parts[0][2])))
    for places, said, elsewhere in parts:
        residual[places] = np.abs(targets[places] - said)
        values[places] = elsewhere
    return Elsewhere(residual, values)


def points_for(estimator: Any, X: Any, gone: IntArray) -> Any:
    """Checked rows as a model without some samples wants to be asked about them."""
    if estimator.kernel != "precomputed":
        return X
    return np.delete(X, gone, axis=1)


class Evidence(Protocol):
    """What intervals of a regression are made of, for some points."""

    prediction: FloatArray

    def __len__(self) -> int:
        """How many samples there are."""

    def leave_one_out(self) -> Elsewhere:
        """What the models without each sample say."""

    def leave_folds_out(self, folds: list[IntArray]) -> Elsewhere:
        """What the models without each fold say."""

    def regions(self, ranks: list[int]) -> list[list[FloatArray]]:
        """The full region of each point, for each rank."""
