# SPDX-License-Identifier: BSD-3-Clause
"""A cluster on this computer, rows cut into partitions, and what its processes took."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import dask.array as da
import distributed
import numpy as np

from benchmarks import machine

_PACKAGES = ("dask", "distributed", "joblib", "ray", "pyspark")


def versions() -> str:
    """Versions of the packages that make a cluster."""
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


@contextmanager
def cluster(n_workers: int = 2, memory: Any = "auto") -> Iterator[distributed.Client]:
    """A client of so many processes of one thread; its own process has the scheduler."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=memory,
            silence_logs=logging.CRITICAL,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def spread(array: np.ndarray, n_parts: int) -> Any:
    """An array in so many partitions."""
    return da.from_array(array, chunks=(-(-len(array) // n_parts), *array.shape[1:]))


def worker_peaks(client: distributed.Client) -> str:
    """Peak resident memory of each worker since it started."""
    peaks = client.run(machine.peak_mib).values()
    return " and ".join(f"{peak:.0f} MiB" for peak in peaks)


def removals(client: distributed.Client) -> list[dict[str, Any]]:
    """What the scheduler says of each worker that it lost, oldest first."""
    events = [event for _, event in client.get_events("all")]
    return [each for each in events if each.get("action") == "remove-worker"]
