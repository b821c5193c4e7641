# SPDX-License-Identifier: BSD-3-Clause
"""What durability costs: rows a second from CSV into a store, and the store's share of the time.

`python -m benchmarks.store [--rows-ls 100000] [--rows-svc 5000]`. The same rows are learned by the
estimator alone in the same run; the store's share is what is left of the operation's time after
the estimator's own.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import adiabat
from benchmarks.machine import description

FEATURES = 20
REPEATS = 7


def write_rows(path, start, stop, seed=0):
    """Noisy rows of two classes, with an id each."""
    rng = np.random.default_rng([seed, start])
    X = rng.normal(size=(stop - start, FEATURES))
    y = (X[:, :5].sum(axis=1) + rng.normal(size=stop - start) > 0).astype(int)
    columns = {"id": [f"customer-{i:08d}" for i in range(start, stop)], "y": y}
    columns.update({f"x{j}": X[:, j] for j in range(FEATURES)})
    pa.csv.write_csv(pa.table(columns), path)
    return X, y


def timed(action):
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def measure(folder, task, rows, alone, **parameters):
    """One table row: bulk learning, then single operations, opening and verifying."""
    first, single = folder / "first.csv", folder / "single.csv"
    X, y = write_rows(first, 0, rows)
    plain_seconds, _ = timed(lambda: alone.fit(X, y))
    store = adiabat.create_store(folder / task, task, label="y", **parameters)
    bulk_seconds, done = timed(lambda: store.learn(first))
    size = (folder / task / "store.sqlite").stat().st_size
    ones = {"learn": [], "revise": [], "forget": []}
    inside = {"learn": [], "revise": [], "forget": []}
    for k in range(REPEATS):
        write_rows(single, rows + k, rows + k + 1)
        name = f"customer-{rows + k:08d}"
        for verb, action in (
            ("learn", lambda: store.learn(single)),
            ("revise", lambda n=name: store.revise({"id": [n], "y": [1]})),
            ("forget", lambda n=name: store.forget(n)),
        ):
            seconds, outcome = timed(action)
            ones[verb].append(seconds)
            inside[verb].append(outcome.model_seconds)
    open_seconds, _ = timed(lambda: adiabat.open_store(folder / task).model)
    verify_seconds, found = timed(lambda: adiabat.open_store(folder / task).verify())
    assert found.ok
    print(f"\n{task}, {rows:,} rows of {FEATURES} features from CSV ({size / 1e6:.1f} MB)")
    print(f"  bulk learn       {bulk_seconds:8.2f} s   {rows / bulk_seconds:,.0f} rows a second")
    print(
        f"    of it estimator{done.model_seconds:8.2f} s   alone, in memory: {plain_seconds:.2f} s"
    )
    print(f"    store's share  {1 - done.model_seconds / bulk_seconds:8.0%}")
    for verb, values in ones.items():
        share = 1 - statistics.median(inside[verb]) / statistics.median(values)
        print(
            f"  one row: {verb:7s} {1e3 * min(values):8.1f} ms  (median "
            f"{1e3 * statistics.median(values):.1f} ms, store's share {share:.0%})"
        )
    print(f"  open             {open_seconds:8.2f} s   verify {verify_seconds:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows-ls", type=int, default=100_000)
    parser.add_argument("--rows-svc", type=int, default=5_000)
    arguments = parser.parse_args()
    print(description())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        measure(folder, "lssvc", arguments.rows_ls, adiabat.LSSVC())
        measure(folder, "svc", arguments.rows_svc, adiabat.SVC(gamma=0.05), gamma=0.05)


if __name__ == "__main__":
    main()
