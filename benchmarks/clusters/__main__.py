# SPDX-License-Identifier: BSD-3-Clause
"""Models on a local cluster of two processes: bits, losses, memory, rounds, backends, recipes.

python -m benchmarks.clusters kills --times 20    SIGKILL of a worker in the middle of fit
python -m benchmarks.clusters memory              2 GB of rows on two workers of 400 MB
python -m benchmarks.clusters noisy               SVC on 10,000 noisy rows, against one process
python -m benchmarks.clusters kdd --rows 60000    SVC on KDD Cup 1999 (ADIABAT_DATA)
python -m benchmarks.clusters kdd --rows 494021   the same on all of its rows
python -m benchmarks.clusters backends            every backend of joblib, every question
python -m benchmarks.clusters recipes             those of docs/clusters.md, as they stand there
"""

from __future__ import annotations

import argparse

from benchmarks import machine
from benchmarks.clusters import backends, losses, recipes, rows_away
from benchmarks.clusters.local import versions

WHAT = ("kills", "memory", "noisy", "kdd", "backends", "recipes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--alone", action="store_true", help="one process on all rows as well")
    parser.add_argument("--only", nargs="+", help="backends, or ray or spark")
    asked = parser.parse_args()
    print(f"{machine.description()}, {versions()}", flush=True)
    if asked.what == "kills":
        losses.partitions_and_workers(asked.rows)
        losses.kills(asked.times, asked.rows)
    elif asked.what == "memory":
        rows_away.memory()
    elif asked.what == "noisy":
        rows_away.noisy()
    elif asked.what == "kdd":
        rows_away.kdd(asked.rows, asked.alone or asked.rows <= 100_000)
    elif asked.what == "backends":
        backends.compare(asked.only)
    else:
        recipes.run(asked.only)


if __name__ == "__main__":
    main()
