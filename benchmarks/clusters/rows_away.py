# SPDX-License-Identifier: BSD-3-Clause
"""Rows larger than memory, and kernel machines whose rows stay in their partitions."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

import adiabat
from adiabat.dask import LSSVC, SVC
from benchmarks import machine
from benchmarks.clusters.local import cluster, removals, spread, worker_peaks
from benchmarks.speed.large import C, kdd_rows
from benchmarks.speed.problems import PROBLEMS

N_PARTS = 16
# What the rows held at the client may take with their kernel columns.
CLIENT_LIMIT = 1.5e9


def memory() -> None:
    """LSSVC on 2 GB of rows, made where they are needed, on two workers of 400 MB."""
    n_parts, n, d = 100, 25_000, 100  # 20 MB each
    make = dask.delayed(_block, pure=True)
    X = da.concatenate([da.from_delayed(make(k, n, d), (n, d), float) for k in range(n_parts)])
    y = (X[:, 0] > 0.0).astype(int)
    with cluster(memory="400MB") as client:
        started = time.perf_counter()
        model = LSSVC().fit(X, y)
        seconds = time.perf_counter() - started
        print(f"{X.nbytes / 1e9:.1f} GB of rows on 2 workers of 0.4 GB: {seconds:.0f} s")
        print(f"peaks {worker_peaks(client)}, {len(removals(client))} workers lost")
        print(model.certificate())


def _block(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def noisy() -> None:
    """The 10,000 rows of `benchmarks.speed.updates`, of which 2,600 are support vectors."""
    (problem,) = (each for each in PROBLEMS if each.name == "noisy-10000")
    X, y = problem.load()
    params = {"C": problem.C, "gamma": problem.gamma}
    with cluster() as client:
        model = _fitted(spread(X, N_PARTS), spread(y, N_PARTS), params, client)
        _compare(model, X, y, params)


def kdd(n: int, alone: bool) -> None:
    """KDD Cup 1999 on two workers of 1.5 GB, which read their partitions from files."""
    with tempfile.TemporaryDirectory() as folder:
        # prepared in another process, so that the client's peak is its own
        writer = multiprocessing.get_context("spawn").Process(target=_write, args=(folder, n))
        writer.start()
        writer.join()
        if writer.exitcode:
            raise SystemExit("the rows could not be prepared")
        shapes = [np.load(Path(folder, f"y{k}.npy"), mmap_mode="r").shape for k in range(N_PARTS)]
        width = np.load(Path(folder, "X0.npy"), mmap_mode="r").shape[1]
        X, y = (
            da.concatenate([
                da.from_delayed(dask.delayed(np.load)(f"{folder}/{name}{k}.npy"), shape, kind)
                for k, shape in enumerate([(*each, *more) for each in shapes])
            ])
            for name, more, kind in (("X", (width,), float), ("y", (), np.int64))
        )  # fmt: skip
        params = {"C": C, "gamma": 1.0 / width}
        with cluster(memory="1.5GB") as client:
            model = _fitted(X, y, params, client)
            if alone:
                _compare(model, *kdd_rows(n), params)


def _write(folder: str, n: int) -> None:
    for name, array in zip("Xy", kdd_rows(n), strict=True):
        size = -(-len(array) // N_PARTS)
        for k in range(N_PARTS):
            np.save(Path(folder, f"{name}{k}.npy"), array[k * size : (k + 1) * size])


def _fitted(X: Any, y: Any, params: dict[str, Any], client: Any) -> Any:
    machine.forget_peak()
    started = time.perf_counter()
    model = SVC(**params, memory_limit=CLIENT_LIMIT).fit(X, y)
    seconds = time.perf_counter() - started
    for number, one in enumerate(model.rounds_):
        print(f"look {number}: {one}")
    moved = sum(one.bytes_sent + one.bytes_received for one in model.rounds_) / 1e6
    last = model.rounds_[-1]
    print(
        f"{model.n_samples_} rows on the cluster: {seconds:.1f} s, {len(model.rounds_)} looks, "
        f"{moved:.0f} MB to and from partitions, {last.n_held} rows held, "
        f"{last.n_support} support vectors"
    )
    print(f"certificate of all rows: {model.certificate()}")
    print(
        f"peaks: workers {worker_peaks(client)}, client and scheduler {machine.peak_mib():.0f} "
        f"MiB (memory_limit {CLIENT_LIMIT / 1e9:g} GB); {len(removals(client))} workers lost",
        flush=True,
    )
    return model


def _compare(model: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
    started = time.perf_counter()
    whole = adiabat.SVC(**params).fit(X, y)
    seconds = time.perf_counter() - started
    f = whole.decision_function(X)
    off = np.abs(f - model.to_local().decision_function(X)).max()
    print(f"one process: {seconds:.1f} s; f differs by {off:.1e} at most, on all {len(X)} rows")
