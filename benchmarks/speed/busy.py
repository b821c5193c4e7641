# SPDX-License-Identifier: BSD-3-Clause
"""Updates while another program keeps the cores busy, against the same updates on a quiet machine.

As many processes as there are cores run an empty loop. They take half of each core, so that an
update of two threads can at best take twice its time; it should take no more than three times.
Threads that wait for one that has lost its core would make it ten times and more.

    python -m benchmarks.speed.busy [--only NAME ...] [--seconds N]

Run it on a computer that is quiet otherwise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import mean

import numpy as np

import adiabat
from benchmarks import machine
from benchmarks.speed.problems import PROBLEMS, Data, MissingData
from benchmarks.tables import Table, console, write_markdown

WANTED = 3.0
NAMES = ("mnist-8", "noisy-1000", "noisy-5000")
SIZES = (1, 100)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that do nothing else than keep a core."""
    loop = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(loop) for _ in range(processes)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def update_times(
    model: adiabat.SVC, data: Data, support: np.ndarray, size: int, seconds: float
) -> list[float]:
    """Seconds of unlearning some support vectors and learning them back, for a while."""
    X, y = data
    rng = np.random.default_rng(0)
    times: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(times) < 5:
        chosen = rng.choice(support, min(size, len(support)), replace=False)
        rows, labels = X[chosen], y[chosen]
        started = time.perf_counter()
        model.forget(chosen)
        model.partial_fit(rows, labels, ids=chosen)
        times.append(time.perf_counter() - started)
    return times


def table_of(names: Sequence[str], seconds: float) -> Table:
    """Mean and longest times of a pair of updates, quiet and busy."""
    processes = os.cpu_count() or 1
    table = Table(
        f"Unlearning rows and learning them back beside {processes} busy processes, milliseconds",
        ("problem, rows", "quiet", "busy", "ratio of means", "longest, busy / mean, quiet"),
        note=f"at most {WANTED:g} is wanted",
    )
    for problem in PROBLEMS:
        if problem.name not in names:
            continue
        try:
            data = problem.load()
        except MissingData:
            continue
        model = adiabat.SVC(C=problem.C, gamma=problem.gamma).fit(*data)
        support = model.ids_[model.support_]
        for size in SIZES:
            quiet = update_times(model, data, support, size, seconds)
            with busy(processes):
                other = update_times(model, data, support, size, seconds)
            ratio = mean(other) / mean(quiet)
            table.add(
                f"{problem.name}, {size}",
                f"{1e3 * mean(quiet):.1f}",
                f"{1e3 * mean(other):.1f}",
                f"{ratio:.2f} {'✓' if ratio <= WANTED else '✗'}",
                f"{max(other) / mean(quiet):.1f}",
            )
    return table


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.busy", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--only", action="append", choices=[problem.name for problem in PROBLEMS])
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    options = parser.parse_args(given)
    screen = console()
    screen.print(machine.description(), style="dim")
    table = table_of(options.only or NAMES, options.seconds)
    table.show(screen)
    path = write_markdown("busy", "Updates on a busy machine", machine.description(), [table])
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
