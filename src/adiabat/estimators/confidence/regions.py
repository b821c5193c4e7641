# SPDX-License-Identifier: BSD-3-Clause
"""Full conformal regions of a support vector regression: for every target at once.

A newcomer with target z is inside the tube with weight u = 0 (then f does not know it), at an edge
of it, z = f(x) + epsilon or f(x) - epsilon, with u between 0 and C or -C and 0, or beyond it, with
u = C or -C (then f no longer depends on z). So one path over u in [-C, C] has the model of every
real z, and all residuals are piecewise linear in z. A target belongs to the region if its p-value,
the rank of |z - f(x)| among all absolute residuals, is above alpha.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from adiabat.engine.newcomers import Newcomers, Stations
from adiabat.engine.tableau import Tableau
from adiabat.engine.threads import blas_held
from adiabat.estimators.confidence.intervals import Elsewhere, leave_folds_out, leave_one_out
from adiabat.estimators.confidence.piecewise import Segments
from adiabat.estimators.confidence.scores import AT_ONCE
from adiabat.estimators.confidence.visits import Points, Visits
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.point_kernel import PointKernel
from adiabat.estimators.what_if.removals import machine_values
from adiabat.typing import FloatArray, IntArray

Residuals = Callable[[float], FloatArray]

# Where the path has to be found by trying: residuals are linear between two targets if they are at
# two others between them, to this part of their size; kinks are narrowed down to this part of the
# span of targets; and so often the span is doubled.
LINEAR = 1e-9
NARROW = 1e-10
MOST_DOUBLINGS = 64
# Points between two targets at which they are tried; no kink is at both by symmetry.
TRIED = (0.5, 0.2763932022500210)
# How far from both ends slopes are taken, to foretell a kink.
NEAR_ENDS = 0.05


class MachineEvidence:
    """What intervals of a support vector regression are made of."""

    def __init__(self, estimator: Any, X: Any, diagonal: Any) -> None:
        self._estimator = estimator
        self._points = Points(estimator, X, diagonal)
        self.prediction = estimator._model.decide(self._points.X)[:, 0]

    def __len__(self) -> int:
        return len(self._estimator._model)

    def leave_one_out(self) -> Elsewhere:
        """What the models without each sample say."""
        return leave_one_out(self._estimator, self._points.X)

    def leave_folds_out(self, folds: list[IntArray]) -> Elsewhere:
        """What the models without each fold say."""
        return leave_folds_out(self._estimator, self._points.X, folds)

    def regions(self, ranks: list[int]) -> list[list[FloatArray]]:
        """The full region of each point, for each rank."""
        return full_regions(self._estimator, self._points, ranks)


def full_regions(estimator: Any, points: Points, ranks: list[int]) -> list[list[FloatArray]]:
    """For each newcomer and each rank the intervals that make up its region, (parts, 2) each."""
    model: Model = estimator._model
    ((_, machine),) = model.machines
    visits = Visits(estimator, points)
    C, epsilon = float(estimator.C), float(estimator.epsilon)
    low = model.in_order(machine)[0][::2]  # of each sample the row of the lower edge
    tol, out = model.solver.tol, []
    with blas_held():
        tableau = Tableau.of(machine, tol)
        decided = model.decide(points.X)[:, 0]
        tie = machine.aims(tol)[low][None, :] + machine.noise(tol, points.own, decided)[:, None]
        for batch in gen_batches(len(points), max(1, AT_ONCE // machine.n)):
            newcomers = None
            if tableau is not None:
                kernel = PointKernel(model, points.X[batch]).by_position(model)
                newcomers = Newcomers(tableau, kernel, points.own[batch], decided[batch])
            for number in range(batch.start, batch.stop):
                found = None
                if newcomers is not None:
                    found = newcomers.range_over(number - batch.start, -C, C)
                if found is not None:
                    segments = _along(found, -found.r[:, low] + epsilon, epsilon)
                else:
                    segments = _by_visits(visits, number, float(decided[number]))
                out.append([segments.region(k, tie[number]) for k in ranks])
    return out


def _along(stations: Stations, residual: FloatArray, epsilon: float) -> Segments:
    """The path over the weight of the newcomer as one over its target."""
    below, above = stations.u <= 0.0, stations.u >= 0.0
    z = np.concatenate([stations.f[below] - epsilon, stations.f[above] + epsilon])
    own = np.concatenate([np.full(below.sum(), -epsilon), np.full(above.sum(), epsilon)])
    return Segments.between(
        np.maximum.accumulate(z), np.vstack([residual[below], residual[above]]), own
    )


# -- by trying -----------------------------------------------------------------------------------


def _by_visits(visits: Visits, number: int, start: float) -> Segments:
    """The same from solutions for single targets, where pivots do not lead through."""
    with visits.of(number, start) as view:
        model: Model = view._model
        visitor = model.ledger.ids[-1:]

        def residuals(z: float) -> FloatArray:
            view.revise(visitor, y=[z])
            found: FloatArray = model.target - machine_values(model)[:, 0]
            return found

        def at_the_end(z: float) -> bool:
            residuals(z)
            bound = view.C * (1.0 - 1e-12)
            return bool(np.abs(model.weights(np.array([len(model) - 1]))).sum() >= bound)

        span = float(np.ptp(model.target)) + view.epsilon + 1.0
        ends = [_far_enough(start, way * span, at_the_end) for way in (-1.0, 1.0)]
        z = _knots(residuals, ends[0], ends[1])
        found = np.array([residuals(value) for value in z])
    return Segments.between(np.array(z), found[:, :-1], found[:, -1])


def _far_enough(start: float, step: float, at_the_end: Callable[[float], bool]) -> float:
    for _ in range(MOST_DOUBLINGS):
        if at_the_end(start + step):
            break
        step *= 2.0
    return start + step


def _knots(residuals: Residuals, low: float, high: float) -> list[float]:
    """Targets between which all residuals are linear."""
    narrow = NARROW * (high - low)
    knots, todo = [low], [(low, residuals(low), high, residuals(high))]
    while todo:
        a, at_a, b, at_b = todo.pop()
        if b - a <= narrow or _is_linear(residuals, a, at_a, b, at_b):
            knots.append(b)
        else:
            middle = _kink(residuals, a, at_a, b, at_b)
            at_middle = residuals(middle)
            todo += [(middle, at_middle, b, at_b), (a, at_a, middle, at_middle)]
    return knots


def _is_linear(
    residuals: Residuals, a: float, at_a: FloatArray, b: float, at_b: FloatArray
) -> bool:
    size = LINEAR * (1.0 + np.abs(at_a) + np.abs(at_b))
    for part in TRIED:
        line = (1.0 - part) * at_a + part * at_b
        if np.any(np.abs(residuals(a + part * (b - a)) - line) > size):
            return False
    return True


def _kink(residuals: Residuals, a: float, at_a: FloatArray, b: float, at_b: FloatArray) -> float:
    """Where a kink is, if it is the only one: where the lines at both ends meet; else the middle.

    Whichever it is, both sides are tried again.
    """
    step = NEAR_ENDS * (b - a)
    up, down = (residuals(a + step) - at_a) / step, (at_b - residuals(b - step)) / step
    most = int(np.argmax(np.abs(up - down)))
    if up[most] != down[most]:
        meet = (at_b[most] - at_a[most] + up[most] * a - down[most] * b) / (up[most] - down[most])
        if a + step < meet < b - step:
            return float(meet)
    return 0.5 * (a + b)
