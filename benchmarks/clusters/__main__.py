# SPDX-License-Identifier: BSD-3-Clause
"""Models on a local Dask cluster of two processes: bits, losses, memory, rounds.

python -m benchmarks.clusters kills --times 20    SIGKILL of a worker in the middle of fit
python -m benchmarks.clusters memory              rows larger than the workers' memory_limit
python -m benchmarks.clusters noisy               SVC on 10,000 noisy rows, against one process
python -m benchmarks.clusters kdd --rows 60000    SVC on KDD Cup 1999 (ADIABAT_DATA)
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from typing import Any

import dask.array as da
import distributed
import numpy as np

import adiabat
from adiabat.dask import LSSVC, SVC
from benchmarks.speed.large import kdd_rows


def cluster(n_workers: int = 2, memory: str = "auto") -> Any:
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=memory
    )


def spread(array: np.ndarray, n_parts: int) -> Any:
    return da.from_array(array, chunks=(-(-len(array) // n_parts), *array.shape[1:]))


def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)
    return X, (X[:, 0] / np.abs(X[:, 0]).max() + 0.2 * rng.normal(size=n) > 0.0).astype(int)


def bits(model: Any) -> bytes:
    return bytes(model.coef_.tobytes() + np.asarray(model.intercept_).tobytes())


def kills(times: int, n: int) -> None:
    X, y = rows(n, 30)
    wanted = None
    for n_workers, n_parts in ((1, 1), (1, 16), (2, 2), (2, 16)):
        with cluster(n_workers) as made, distributed.Client(made):
            found = bits(LSSVC().fit(spread(X, n_parts), spread(y, n_parts)))
        wanted = wanted or found
        print(f"{n_parts} partitions, {n_workers} workers: same bits {found == wanted}", flush=True)
    with cluster() as made, distributed.Client(made) as client:
        same = killed = 0
        for _ in range(times):
            pid = next(iter(client.run(os.getpid).values()))
            timer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
            timer.start()
            same += bits(LSSVC().fit(spread(X, 16), spread(y, 16))) == wanted
            timer.join()
            killed += 1
            print(f"killed {killed}, same bits {same}", flush=True)
            client.wait_for_workers(2)
        print(f"{killed} workers killed during fit: same bits {same} times")


def make_block(start: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(start).normal(size=(n, d))


def memory() -> None:
    n_parts, n, d = 40, 25_000, 100  # 20 MB each, 800 MB in all
    with cluster(memory="400MB") as made, distributed.Client(made):
        make = [dask_block(k, n, d) for k in range(n_parts)]
        X = da.concatenate([da.from_delayed(block, (n, d), float) for block in make])
        y = (X[:, 0] > 0.0).astype(int)
        started = time.perf_counter()
        model = LSSVC().fit(X, y)
        print(
            f"{n_parts * n * d * 8 / 1e9:.1f} GB of rows on 2 workers of 0.4 GB: "
            f"{time.perf_counter() - started:.1f} s, {model.certificate()}"
        )


def dask_block(k: int, n: int, d: int) -> Any:
    import dask

    return dask.delayed(make_block, pure=True)(k, n, d)


def compare(X: np.ndarray, y: np.ndarray, params: dict[str, Any], memory: str, alone: bool) -> None:
    with cluster(memory=memory) as made, distributed.Client(made):
        started = time.perf_counter()
        model = SVC(**params).fit(spread(X, 16), spread(y, 16))
        seconds = time.perf_counter() - started
        for number, one in enumerate(model.rounds_):
            print(f"round {number}: {one}")
        print(f"{len(X)} rows on the cluster: {seconds:.1f} s; {model.certificate()}")
        if alone:
            started = time.perf_counter()
            whole = adiabat.SVC(**params).fit(X, y)
            seconds = time.perf_counter() - started
            at = X[:: max(1, len(X) // 2000)]
            off = np.abs(whole.decision_function(at) - model.to_local().decision_function(at)).max()
            print(f"one machine: {seconds:.1f} s; f differs by {off:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("kills", "memory", "noisy", "kdd"))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--rows", type=int, default=60_000)
    asked = parser.parse_args()
    if asked.what == "kills":
        kills(asked.times, asked.rows)
    elif asked.what == "memory":
        memory()
    elif asked.what == "noisy":
        X, y = rows(10_000, 20)
        compare(X / X.std(axis=0), y, {"C": 1.0, "gamma": 0.05}, "auto", alone=True)
    else:
        X, y = kdd_rows(asked.rows)
        alone = asked.rows <= 100_000
        compare(X, y, {"C": 10.0, "gamma": 1.0 / X.shape[1]}, "1.5GB", alone)


if __name__ == "__main__":
    main()
