# SPDX-License-Identifier: BSD-3-Clause
"""Least squares and lost workers: are the bits those of one partition?

A worker is killed at a random moment of a fit. The kill hit if the scheduler says that the worker
took tasks or results with it, which had to be computed again.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import Any

import distributed
import numpy as np

from adiabat.dask import LSSVC, LSSVR, SVC
from benchmarks.clusters.local import cluster, removals, spread
from benchmarks.speed.problems import noisy

N_PARTS = 16
_NOTICE_SECONDS = 60.0


def partitions_and_workers(n: int) -> None:
    """1, 2 and 16 partitions on 1 and 2 workers."""
    X, targets = rows(n)
    wanted: dict[Any, bytes] = {}
    for n_workers in (1, 2):
        with cluster(n_workers):
            for n_parts in (1, 2, N_PARTS):
                for kind, y in targets.items():
                    found = bits(kind().fit(spread(X, n_parts), spread(y, n_parts)))
                    same = found == wanted.setdefault(kind, found)
                    print(
                        f"{kind.__name__}, {n_parts} partitions, {n_workers} workers: "
                        f"{'the same bits' if same else 'OTHER BITS'}",
                        flush=True,
                    )


def kills(times: int, n: int) -> None:
    """SIGKILL of a worker in the middle of fit, until so many have hit."""
    X, targets = rows(n)
    X_few, y_few = noisy(3000)
    cases = [(kind(), X, y) for kind, y in targets.items()]
    cases.append((SVC(C=10.0, gamma=1.0 / 40.0), X_few, y_few))
    for model, X, y in cases:
        _killed(model, X, y, times)


def _killed(model: Any, X: Any, y: Any, times: int) -> None:
    draw = random.Random(0)
    at, target = spread(X, N_PARTS), spread(y, N_PARTS)
    with cluster() as client:
        _warm(client)
        started = time.perf_counter()
        wanted = bits(model.fit(at, target))
        seconds = time.perf_counter() - started
    hit = same = tried = tasks = results = 0
    while hit < times:
        # a cluster of its own for each: what a nanny does about its worker is not the question
        with cluster() as client:
            pid = draw.choice(_warm(client))
            delay = seconds * draw.uniform(0.1, 0.8)
            timer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
            timer.start()
            found = bits(model.fit(at, target))
            timer.join()
            lost = _loss(client)
        tried += 1
        if lost["processing-tasks"] or lost["lost-computed-tasks"]:
            hit += 1
            same += found == wanted
            tasks += len(lost["processing-tasks"])
            results += len(lost["lost-computed-tasks"])
        print(f"killed {tried}, hit {hit}, the same bits {same}", flush=True)
    print(
        f"{type(model).__name__}, {len(X)} rows, fit {seconds:.1f} s: {tried} workers killed, "
        f"{hit} of them in the middle ({tasks} tasks and {results} results went with them); "
        f"the same bits {same} times of {hit}",
        flush=True,
    )


def _warm(client: distributed.Client) -> list[int]:
    """The processes of the workers, each of which has imported what a fit needs."""
    return sorted(client.run(_imported).values())


def _imported() -> int:
    import adiabat.dask

    return os.getpid() if adiabat.dask else 0


def _loss(client: distributed.Client) -> dict[str, Any]:
    """What the scheduler says of the worker that was killed."""
    deadline = time.monotonic() + _NOTICE_SECONDS
    while not (found := removals(client)):
        if time.monotonic() > deadline:
            raise TimeoutError("the scheduler has not noticed that a worker was killed")
        time.sleep(0.05)
    return found[0]


def rows(n: int) -> tuple[np.ndarray, dict[Any, np.ndarray]]:
    """Rows whose columns have sizes of seven powers of ten, with labels and values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30)) * 10.0 ** rng.integers(-3, 4, size=30)
    value = X[:, 0] / np.abs(X[:, 0]).max() + 0.2 * rng.normal(size=n)
    return X, {LSSVC: (value > 0.0).astype(int), LSSVR: value}


def bits(model: Any) -> bytes:
    """Weights and bias of a model."""
    local = model.to_local()
    if isinstance(model, SVC):
        return bytes(local.dual_coef_.tobytes() + np.asarray(local.intercept_).tobytes())
    return bytes(local.coef_.tobytes() + np.asarray(local.intercept_).tobytes())
