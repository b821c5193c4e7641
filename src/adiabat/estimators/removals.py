# SPDX-License-Identifier: BSD-3-Clause
"""Each sample left out of each machine in turn, in parallel, the model only read.

A unit of work is a sample and a machine that holds it. Threads share the model; processes are sent
it once each. An interrupt stops all workers at their next removal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from adiabat.engine.machine import Machine
from adiabat.engine.threads import blas_held
from adiabat.engine.trial import INSIDE, Removal, Trial
from adiabat.estimators.model import Model

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]
Unit = tuple[int, int]  # a machine, by its place in the model, and a sample, by its own


def machine_values(model: Model) -> FloatArray:
    """F of every machine at every sample of the model, (n_samples, n_machines)."""
    values = np.empty((len(model), len(model.machines)))
    gram = model.solver.samples.gram
    f = np.empty(gram.n)
    for column, (_, machine) in enumerate(model.machines):
        gram.multiply(machine.coefficients(), f)
        values[:, column] = f[model.position] + machine.b
        # where the judge has looked, what he saw
        place = np.full(gram.n, -1)
        place[model.position] = np.arange(len(model))
        values[place[machine.at], column] = machine.r + machine.t
    return values


def weighty_units(model: Model) -> list[Unit]:
    """Who has to be removed from where: samples with weight.

    Where no row is strictly inside its box, b hangs on the others, and all have to be.
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
) -> list[Removal]:
    """What becomes of f at the sample of each unit, in order."""
    backend, active = get_active_backend(prefer="threads")
    wanted = active if n_jobs is None else n_jobs
    workers = max(1, min(backend.effective_n_jobs(wanted), len(units)))
    shared = bool(getattr(backend, "supports_sharedmem", False))
    counter = _Counter(len(units), progress)
    stop = threading.Event()
    found: list[Removal | None] = [None] * len(units)
    try:
        if workers == 1:
            return _remove_some(estimator, units, ask, counter.tick, stop)
        with blas_held():
            parallel = Parallel(n_jobs=workers, prefer="threads", return_as="generator_unordered")
            tasks = (
                delayed(_remove_share)(
                    estimator, units, k, workers, ask,
                    counter.tick if shared else None, stop if shared else None,
                )
                for k in range(workers)
            )  # fmt: skip
            for k, share in parallel(tasks):
                found[k::workers] = share
                if not shared:
                    counter.tick(len(share))
    finally:
        stop.set()
    return [removal for removal in found if removal is not None]


class _Counter:
    """Progress of several threads, told one at a time."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress
        self._lock = threading.Lock()

    def tick(self, by: int = 1) -> None:
        if self._progress is not None:
            with self._lock:
                self._done += by
                self._progress(self._done, self._total)


def _remove_share(
    estimator: Any,
    units: list[Unit],
    k: int,
    workers: int,
    ask: bool,
    tick: Callable[[], None] | None,
    stop: threading.Event | None,
) -> tuple[int, list[Removal]]:
    return k, _remove_some(estimator, units[k::workers], ask, tick, stop)


def _remove_some(
    estimator: Any,
    units: list[Unit],
    ask: bool,
    tick: Callable[[], None] | None,
    stop: threading.Event | None,
) -> list[Removal]:
    model: Model = estimator._model
    machines = model.machines
    trials: dict[int, Trial] = {}
    rows_at: dict[int, tuple[IntArray, IntArray]] = {}
    others = np.ones(len(model), dtype=bool)
    found = []
    with blas_held():
        for column, place in units:
            if stop is not None and stop.is_set():
                break
            key, machine = machines[column]
            if column not in trials:
                trials[column] = Trial(model.solver, key)
                order = np.argsort(machine.at, kind="stable")
                rows_at[column] = order, machine.at[order]
            order, at = rows_at[column]
            first, last = np.searchsorted(at, [model.position[place], model.position[place] + 1])
            rows = order[first:last]
            others[place] = False
            total = model.formulation.total(key, model.target[others], model.weight[others])
            others[place] = True
            found.append(trials[column].without(rows, total, ask))
            if tick is not None:
                tick()
    return found
