# SPDX-License-Identifier: BSD-3-Clause
"""Each sample left out of each machine in turn, in parallel, the model only read.

A unit of work is a sample and a machine that holds it. Threads share the model and the tableau of
the machine at hand; processes are sent the model once each. What the tableau cannot do is done by a
trial. An interrupt stops all workers after a few removals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import gen_batches

from adiabat.engine.machine import Machine
from adiabat.engine.removals import Remover, removal_tableau
from adiabat.engine.tableau import Tableau
from adiabat.engine.threads import blas_held
from adiabat.engine.trial import INSIDE, Removal, Trial
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.workers import ask_pieces, effective_workers
from adiabat.typing import FloatArray, IntArray

Progress = Callable[[int, int], None]
Tick = Callable[[int], None]
Unit = tuple[int, int]  # a machine, by its place in the model, and a sample, by its own


def machine_values(model: Model) -> FloatArray:
    """F of every machine at every sample of the model, (n_samples, n_machines)."""
    values = np.empty((len(model), len(model.machines)))
    model.solver.samples.complete()
    gram = model.solver.samples.gram
    f = np.empty(gram.n)
    for column, (_, machine) in enumerate(model.machines):
        gram.multiply(machine.coefficients(), f)
        values[:, column] = f[model.position] + machine.b
        # of the rows of the machine: the residuals from the last full check
        place = np.full(gram.n, -1)
        place[model.position] = np.arange(len(model))
        values[place[machine.at], column] = machine.r + machine.t
    return values


def weighty_units(model: Model) -> list[Unit]:
    """Who has to be removed from where: samples with weight.

    Where no row is strictly inside its box, b depends on the others, and all have to be.
    """
    place = np.full(model.solver.samples.n, -1)
    place[model.position] = np.arange(len(model))
    units = []
    for column, (_, machine) in enumerate(model.machines):
        chosen = machine.u != 0.0 if _holds_b(machine) else np.ones(machine.n, dtype=bool)
        places = np.unique(place[machine.at[chosen]])
        units += [(column, int(sample)) for sample in places]
    return units


def _holds_b(machine: Machine) -> bool:
    room = INSIDE * (machine.hi - machine.lo)
    return bool(np.any((machine.u > machine.lo + room) & (machine.u < machine.hi - room)))


def remove_each(
    estimator: Any,
    units: list[Unit],
    n_jobs: int | None,
    progress: Progress | None,
    ask: bool = False,
    points: FloatArray | None = None,
) -> list[Removal]:
    """What becomes of f at the sample of each unit, in order; units of a machine come together.

    `points`: kernel values by position of points where its change is wanted as well.
    """
    workers, shared = effective_workers(n_jobs, len(units))
    counter = _Counter(len(units), progress)
    with blas_held():
        if workers == 1:
            return _remove_some(estimator, units, {}, ask, points, counter.tick, None)
        if shared:
            return _remove_in_threads(estimator, units, workers, ask, points, counter.tick)
        held: tuple[Any, ...] = (estimator, {}, ask, points)
        parts = ask_pieces(_remove_piece, held, units, n_jobs, counter.tick)
    return [removal for part in parts for removal in part]


def _remove_in_threads(
    estimator: Any,
    units: list[Unit],
    workers: int,
    ask: bool,
    points: FloatArray | None,
    tick: Tick,
) -> list[Removal]:
    """Threads take turns at the units of a machine, whose tableau they share."""
    stop = threading.Event()
    found: list[Removal] = []
    parallel = Parallel(n_jobs=workers, prefer="threads", return_as="generator_unordered")
    with parallel:
        try:
            for part in _by_machine(units):
                tableaux = {part[0][0]: _tableau(estimator, part[0][0])}
                shares: list[list[Removal]] = [[]] * workers
                for k, share in parallel(
                    delayed(_remove_share)(
                        estimator, part, k, workers, tableaux, ask, points, tick, stop
                    )
                    for k in range(workers)
                ):
                    shares[k] = share
                found += [shares[i % workers][i // workers] for i in range(len(part))]
        finally:
            stop.set()
    return found


class _Counter:
    """Progress of several threads, told one at a time."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress
        self._lock = threading.Lock()

    def tick(self, by: int) -> None:
        if self._progress is not None:
            with self._lock:
                for _ in range(by):
                    self._done += 1
                    self._progress(self._done, self._total)


def _by_machine(units: list[Unit]) -> list[list[Unit]]:
    return [list(group) for _, group in groupby(units, key=lambda unit: unit[0])]


def _tableau(estimator: Any, column: int) -> Tableau | None:
    model: Model = estimator._model
    _, machine = model.machines[column]
    return removal_tableau(machine, model.solver.tol)


def _remove_share(
    estimator: Any, units: list[Unit], k: int, workers: int, *rest: Any
) -> tuple[int, list[Removal]]:
    return k, _remove_some(estimator, units[k::workers], *rest)


def _remove_piece(held: Any, units: list[Unit]) -> list[Removal]:
    """The same in a process, which keeps the tableaux that it made beside the model."""
    estimator, tableaux, ask, points = held
    for column, _ in units:
        if column not in tableaux:
            tableaux[column] = _tableau(estimator, column)
    return _remove_some(estimator, units, tableaux, ask, points, None, None)


def _remove_some(
    estimator: Any,
    units: list[Unit],
    tableaux: dict[int, Tableau | None],
    ask: bool,
    points: FloatArray | None,
    tick: Tick | None,
    stop: threading.Event | None,
) -> list[Removal]:
    found: list[Removal] = []
    with blas_held():
        for part in _by_machine(units):
            column = part[0][0]
            tableau = tableaux[column] if column in tableaux else _tableau(estimator, column)
            leaver = _Leaver(estimator._model, column, tableau, points)
            for batch in gen_batches(len(part), leaver.at_once):
                if stop is not None and stop.is_set():
                    return found
                removals = leaver.removals([place for _, place in part[batch]], ask)
                found += removals
                if tick is not None:
                    tick(len(removals))
    return found


class _Leaver:
    """Removes samples from one machine of a model in turn, in one thread."""

    def __init__(
        self, model: Model, column: int, tableau: Tableau | None, points: FloatArray | None
    ) -> None:
        self._model, self._points = model, points
        self._key, machine = model.machines[column]
        self._by_sample = np.argsort(machine.at, kind="stable")
        self._at = machine.at[self._by_sample]
        self._remover = None if tableau is None else Remover(tableau, points)
        self._trial: Trial | None = None  # made for the first removal that needs it

    @property
    def at_once(self) -> int:
        """How many to remove in one call."""
        return 1 if self._remover is None else self._remover.at_once

    def removals(self, places: list[int], ask: bool) -> list[Removal]:
        """What becomes of f at each sample; `ask`: as far as its sign is certain."""
        rows = self._rows(places)
        totals = [self._total(place) for place in places]
        found: list[Removal | None] = [None] * len(places)
        if self._remover is not None:
            found = self._remover.removals(rows, totals, ask)
        return [
            removal if removal is not None else self._by_trial(own, total, ask)
            for removal, own, total in zip(found, rows, totals, strict=True)
        ]

    def _by_trial(self, rows: IntArray, total: float, ask: bool) -> Removal:
        if self._trial is None:
            self._trial = Trial(self._model.solver, self._key)
        removal = self._trial.removal(rows, total, ask)
        if self._points is None:
            return removal
        return replace(removal, elsewhere=self._trial.elsewhere(self._points))

    def _rows(self, places: list[int]) -> list[IntArray]:
        """The rows of each sample."""
        positions = self._model.position[places]
        first, last = np.searchsorted(self._at, positions), np.searchsorted(self._at, positions + 1)
        return [self._by_sample[i:j] for i, j in zip(first.tolist(), last.tolist(), strict=True)]

    def _total(self, place: int) -> float:
        """The sum of weights that the machine has on the other samples."""
        model = self._model
        if model.formulation.shift_free:
            return 0.0
        others = np.arange(len(model)) != place
        return model.formulation.total(self._key, model.target[others], model.weight[others])
