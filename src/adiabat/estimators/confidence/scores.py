# SPDX-License-Identifier: BSD-3-Clause
"""How strange samples are beside a newcomer, by the model that has learned it, too.

The score of a sample is its residual on the side of its class, y f - 1: the least over the pairs
that its class is in, if there are more than two classes. For models of one class it is f - t. Small
is strange. Free support vectors tie exactly, so that scores are compared to what rounding allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import gen_batches

from adiabat.engine.machine import Machine
from adiabat.engine.newcomers import Arrival, Entry, Newcomers
from adiabat.engine.tableau import Tableau
from adiabat.engine.threads import blas_held
from adiabat.estimators.confidence.pair_values import pair_values
from adiabat.estimators.confidence.visits import Points, Visits
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.leave_one_out import leave_one_out_values
from adiabat.estimators.what_if.point_kernel import PointKernel
from adiabat.estimators.what_if.removals import machine_values
from adiabat.typing import FloatArray

# Kernel values of newcomers at a time (8 MB).
AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Beside:
    """Scores of all samples of the model with a newcomer, its own, and what a tie is, by sample."""

    scores: FloatArray
    own: float
    tie: FloatArray

    def counts(self, among: npt.NDArray[np.bool_] | slice = slice(None)) -> tuple[int, int]:
        """How many samples are stranger than the newcomer, and how many tie with it."""
        scores, tie = self.scores[among], self.tie[among]
        stranger = int(np.count_nonzero(scores < self.own - tie))
        return stranger, int(np.count_nonzero(scores <= self.own + tie)) - stranger


class _Side:
    """The rows of one machine as samples see them: whose they are, and which way is theirs."""

    def __init__(self, model: Model, key: Any, machine: Machine) -> None:
        place = np.full(model.solver.samples.n, -1)
        place[model.position] = np.arange(len(model))
        self.place = place[machine.at]
        self.sign = np.where(machine.hi > 0.0, 1.0, np.where(machine.lo < 0.0, -1.0, 0.0))
        flat = np.flatnonzero(self.sign == 0.0)  # rows without force still have a side
        self.sign[flat] = np.where(machine.t[flat] >= 0.0, 1.0, -1.0)
        self.key, self.machine = key, machine
        self.tie = machine.aims(model.solver.tol)


class Scores:
    """Scores beside newcomers to a model of classes, or of one class."""

    def __init__(self, estimator: Any, points: Points, score: str) -> None:
        self._estimator, self._points = estimator, points
        self._model: Model = estimator._model
        self._by_loo = score == "loo"
        self._visits = Visits(estimator, points)
        self._sides = [_Side(self._model, key, machine) for key, machine in self._model.machines]
        n, m = len(self._model), len(self._sides)
        self._base, self._tie = np.full((n, m), np.inf), np.zeros(n)
        for column, side in enumerate(self._sides):
            self._base[side.place, column] = side.sign * side.machine.r
            self._tie[side.place] = np.maximum(self._tie[side.place], side.tie)

    def beside(self, targets: list[Any], labels: list[Any]) -> Iterator[tuple[int, int, Beside]]:
        """(newcomer, place of its target in `targets`, scores) for all of them.

        `targets` are those of the formulation, `labels` what a caller says for them.
        """
        step = max(1, AT_ONCE // max(1, len(self._model)))
        if self._by_loo:
            for number in range(len(self._points)):
                for k, label in enumerate(labels):
                    yield number, k, self._by_visit(number, label)
            return
        with blas_held():
            tableaux = [self._tableau(side, targets) for side in self._sides]
            known = _Known(self._estimator, self._points)
            for batch in gen_batches(len(self._points), step):
                yield from self._batch(batch, targets, labels, tableaux, known)

    def _tableau(self, side: _Side, targets: list[Any]) -> Tableau | None:
        """None, too, where a newcomer would give other samples other rows."""
        model = self._model
        for target in targets:
            after = np.append(model.target, np.array([target], dtype=model.target.dtype))
            weight = np.append(model.weight, 1.0)
            if model.formulation.resolve(after, weight).reshapes(model.formulation):
                return None
        return Tableau.of(side.machine, model.solver.tol)

    def _batch(
        self,
        batch: slice,
        targets: list[Any],
        labels: list[Any],
        tableaux: list[Tableau | None],
        known: _Known,
    ) -> Iterator[tuple[int, int, Beside]]:
        numbers = range(batch.start, batch.stop)
        own, f, kernel = self._points.own[batch], known.decided[batch], known.kernel(batch)
        arrivals: dict[tuple[int, int], dict[int, Arrival | None]] = {}
        noises: dict[tuple[int, int], float] = {}
        for column, (side, tableau) in enumerate(zip(self._sides, tableaux, strict=True)):
            concerned = [
                k for k, target in enumerate(targets)
                if self._model.formulation.concerns(side.key, {target})
            ]  # fmt: skip
            if tableau is None or not concerned:
                continue
            newcomers = Newcomers(tableau, kernel, own, f[:, column])
            for k in concerned:
                entries = self._entries(side, targets[k], own)
                t = np.array([entry.t for entry in entries])
                noise = side.machine.noise(self._model.solver.tol, own, t)
                for j, arrival in enumerate(newcomers.join(entries, noise)):
                    arrivals.setdefault((j, k), {})[column] = arrival
                    noises[j, k] = max(noises.get((j, k), 0.0), float(noise[j]))
        for j, number in enumerate(numbers):
            for k, label in enumerate(labels):
                found = arrivals.get((j, k), {})
                concerned = [
                    column for column, side in enumerate(self._sides)
                    if self._model.formulation.concerns(side.key, {targets[k]})
                ]  # fmt: skip
                if any(found.get(column) is None for column in concerned):
                    yield number, k, self._by_visit(number, label)
                else:
                    yield number, k, self._joined(found, targets[k], noises[j, k])

    def _entries(self, side: _Side, target: Any, own: FloatArray) -> list[Entry]:
        model, n = self._model, len(own)
        targets = np.full(n, target, dtype=model.target.dtype)
        rows = model.formulation.rows(side.key, targets, np.ones(n), own)
        total = 0.0
        if not model.formulation.shift_free:
            after = np.append(model.target, targets[:1])
            total = model.formulation.total(side.key, after, np.append(model.weight, 1.0))
            total -= side.machine.d
        return [
            Entry(k, float(rows.t[k]), float(rows.lo[k]), float(rows.hi[k]), total)
            for k in range(n)
        ]

    def _joined(self, found: dict[int, Arrival | None], target: Any, noise: float) -> Beside:
        scores, own = None, np.inf
        for column, arrival in found.items():
            assert arrival is not None
            side = self._sides[column]
            own = min(own, arrival.own * self._direction(side, target))
            if arrival.u != 0.0 or arrival.r is not side.machine.r:
                scores = self._base.copy() if scores is None else scores
                scores[side.place, column] = side.sign * arrival.r
        least = (self._base if scores is None else scores).min(axis=1)
        return Beside(least, own, self._tie + noise)

    def _direction(self, side: _Side, target: Any) -> float:
        """+1 where f above t is safe for a newcomer, -1 where below is."""
        return -1.0 if len(side.key) == 2 and side.key[0] == target else 1.0

    def _by_visit(self, number: int, label: Any) -> Beside:
        """The same by a copy of the model that learns the newcomer."""
        with self._visits.of(number, label) as view:
            model: Model = view._model
            values = self._values(view)
            scores, tie = np.full(values.shape, np.inf), np.zeros(len(model))
            for column, (key, machine) in enumerate(model.machines):
                side = _Side(model, key, machine)
                mine = values[side.place, column] - machine.t
                scores[side.place, column] = side.sign * mine
                tie[side.place] = np.maximum(tie[side.place], side.tie)
            least = scores.min(axis=1)
        return Beside(least[:-1], float(least[-1]), tie[:-1] + tie[-1])

    def _values(self, view: Any) -> FloatArray:
        """F of every machine at every sample, or by leave-one-out."""
        if not self._by_loo:
            return machine_values(view._model)
        if view._supervised:
            return pair_values(view)
        return leave_one_out_values(view, None, None)[0][:, None]


class _Known:
    """What the model says of the newcomers before they join, and their kernel values."""

    def __init__(self, estimator: Any, points: Points) -> None:
        self._model: Model = estimator._model
        self._points = points
        self.decided = self._model.decide(points.X)

    def kernel(self, batch: slice) -> FloatArray:
        return PointKernel(self._model, self._points.X[batch]).by_position(self._model)
