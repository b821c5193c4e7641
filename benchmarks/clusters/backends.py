# SPDX-License-Identifier: BSD-3-Clause
"""Every backend of joblib and every question: the same answers, each worker reads the model once.

The model writes a file whenever it is unpickled. `tuning` is scikit-learn's grid search, which
sends an unfitted estimator with each fit: its reads are not counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import distributed
import joblib
import numpy as np
from sklearn.model_selection import GridSearchCV

import adiabat
from benchmarks.tables import Table, console

BACKENDS = ("threading", "loky", "multiprocessing", "dask", "ray")
N, N_WORKERS = 300, 2
C, GAMMA = 2.0, 0.5


class CountedSVC(adiabat.SVC):
    """An SVC that writes a file when a process reads it."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "folder"):
            with open(f"{self.folder}/{os.getpid()}-{time.monotonic_ns()}", "w"):
                pass


def rows(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    return X, np.argmax(X[:, :n_classes] + 0.7 * rng.normal(size=(N, n_classes)), axis=1)


def mean_size(y: np.ndarray, decision: np.ndarray) -> float:
    """A loss of our own, for which influence cannot take a short cut."""
    return float(np.mean(np.abs(decision)))


def mean_decision(model: Any, X: Any, y: Any) -> float:
    """A score that every digit of f is part of."""
    return float(np.mean(model.decision_function(X)))


def _search(model: Any, X: Any, y: Any) -> Any:
    found = GridSearchCV(
        adiabat.SVC(gamma=GAMMA), {"C": [0.1, 1.0, 10.0]}, cv=4, scoring=mean_decision
    )
    found.fit(X, y)
    return found.cv_results_["mean_test_score"]


def _folds(model: Any, X: Any, y: Any) -> Any:
    return adiabat.cross_validate(model, cv=10, scoring=mean_decision)["test_score"]


def _curve(model: Any, X: Any, y: Any) -> Any:
    return np.stack(adiabat.validation_curve(model, "C", [1.0, 4.0], cv=8, scoring=mean_decision))


QUESTIONS: dict[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "leave_one_out": (2, lambda m, X, y: m.leave_one_out().decision),
    "one-against-one": (3, lambda m, X, y: m.leave_one_out().decision),
    "leave_out": (2, lambda m, X, y: m.leave_out(np.arange(N) % 30).decision),
    "cross_validate": (2, _folds),
    "validation_curve": (2, _curve),
    "influence": (2, lambda m, X, y: m.influence(X[:50], y[:50], mean_size).change),
    "tuning": (2, _search),
}


def compare(only: list[str] | None) -> None:
    """Ask every question on every backend, and print how far the answers are from one process."""
    table = Table("Backends of joblib", ("question", *(chosen := only or BACKENDS)))
    cells: dict[str, list[str]] = {name: [] for name in QUESTIONS}
    alone = {name: _asked(name)[0] for name in QUESTIONS}
    for backend in chosen:
        with _running(backend), joblib.parallel_config(backend=backend, n_jobs=N_WORKERS):
            for name, known in alone.items():
                found, reads = _asked(name)
                off = float(np.abs(np.asarray(found) - known).max())
                counted = "" if name == "tuning" else f", {_in_words(reads)}"
                cells[name].append(f"{off:.0e}{counted}")
                print(f"{backend}, {name}: differs by {off:.1e}{counted}", flush=True)
    for name, row in cells.items():
        table.add(name, *row)
    table.show(console())


def _asked(name: str) -> tuple[Any, Counter[str]]:
    n_classes, ask = QUESTIONS[name]
    X, y = rows(n_classes)
    model = CountedSVC(C=C, gamma=GAMMA).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        model.folder = folder
        found = np.asarray(ask(model, X, y))
        return found, Counter(each.split("-")[0] for each in os.listdir(folder))


def _in_words(reads: Counter[str]) -> str:
    """How many processes read the model, and how often the busiest did."""
    return f"{len(reads)} x {max(reads.values())}" if reads else "none"


@contextmanager
def _running(backend: str) -> Iterator[None]:
    """What a backend needs to be there."""
    if backend == "dask":
        with (
            distributed.LocalCluster(
                n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0"
            ) as made,
            distributed.Client(made),
        ):
            yield
    elif backend == "ray":
        import ray
        from ray.util.joblib import register_ray

        started = time.perf_counter()
        ray.init(num_cpus=N_WORKERS, include_dashboard=False, object_store_memory=100_000_000)
        print(f"Ray was there after {time.perf_counter() - started:.1f} s", flush=True)
        register_ray()
        try:
            yield
        finally:
            ray.shutdown()
    else:
        yield
