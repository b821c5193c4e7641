# SPDX-License-Identifier: BSD-3-Clause
"""One row, or a batch, into and out of a least-squares model, against refitting Ridge.

    python -m benchmarks.speed.ls_updates [--quick]

MNIST, 784 features. Times are minima, ratios are within one run. The last column is the distance of
w from a fit on the same rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.linear_model import Ridge

from adiabat import LSSVC
from benchmarks import machine
from benchmarks.papers.lkw19 import RHO, Mnist
from benchmarks.papers.lkw19_formulas import normal_equations
from benchmarks.tables import Table, console, write_csv, write_markdown

AIM = 200.0  # a single row, against Ridge


def least(repeats: int, work: Callable[[], object], undo: Callable[[], object]) -> float:
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
        undo()
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, fewer repeats")
    quick = parser.parse_args().quick
    data = Mnist(10_000 if quick else 60_000)
    X, y = data.X, data.y
    refits = 2 if quick else 4
    ridge = least(refits, lambda: Ridge(alpha=RHO).fit(X, y), lambda: None)
    normal = least(refits, lambda: normal_equations(X, y.astype(np.float64), RHO), lambda: None)
    model = LSSVC(rho=RHO).fit(X, y)
    fitted = model.coef_.copy()
    table = Table(
        f"Updates of a model of {len(X):,} rows, 784 features",
        ("update", "ms", "Ridge / update", "normal equations / update", "w off by"),
        note=f"Ridge {ridge:.2f} s, normal equations {normal:.2f} s; aim for one row: {AIM:g}.",
    )
    records: list[dict[str, object]] = []
    for rows in (1, 10, 100, 1000):
        X_r, y_r = X[:rows], y[:rows]
        repeats = max(3, 40 // rows)
        forget, learn = partial(model.forget, X_r, y_r), partial(model.partial_fit, X_r, y_r)
        out, back = least(repeats, forget, learn), least(repeats, learn, forget)
        off = float(np.linalg.norm(model.coef_ - fitted) / np.linalg.norm(fitted))
        for name, seconds in ((f"{rows} out", out), (f"{rows} in", back)):
            table.add(
                name, f"{1e3 * seconds:.2f}", f"{ridge / seconds:.0f}", f"{normal / seconds:.0f}",
                f"{off:.0e}",
            )  # fmt: skip
            records.append({"update": name, "seconds": seconds, "ridge": ridge, "normal": normal})
    table.show(console())
    write_csv("ls_updates", records)
    write_markdown("ls_updates", "Least-squares updates", machine.description(), [table])


if __name__ == "__main__":
    main()
