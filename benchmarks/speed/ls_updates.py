# SPDX-License-Identifier: BSD-3-Clause
"""One row, or a batch, into and out of a least-squares model, against refitting Ridge.

    python -m benchmarks.speed.ls_updates [--quick]

MNIST, 784 features. Times are minima, ratios are within one run.
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
SIZES = (1, 10, 100, 1000)


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(data: Mnist, rounds: int) -> tuple[dict[str, float], float]:
    """The least time of each refit and update, all of them in turn, and how far w is off."""
    X, y = data.X, data.y
    model = LSSVC(rho=RHO).fit(X, y)
    fitted = model.coef_.copy()
    least: dict[str, float] = {}

    def note(name: str, work: Callable[[], object]) -> None:
        least[name] = min(least.get(name, np.inf), seconds_of(work))

    for _ in range(rounds):  # in turn, so that a busy moment hits all of them
        note("Ridge", lambda: Ridge(alpha=RHO).fit(X, y))
        note("normal equations", lambda: normal_equations(X, y.astype(np.float64), RHO))
        for rows in SIZES:
            for _ in range(max(1, 10 // rows)):
                note(f"{rows} out", partial(model.forget, X[:rows], y[:rows]))
                note(f"{rows} in", partial(model.partial_fit, X[:rows], y[:rows]))
    return least, float(np.linalg.norm(model.coef_ - fitted) / np.linalg.norm(fitted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, fewer repeats")
    quick = parser.parse_args().quick
    data = Mnist(10_000 if quick else 60_000)
    least, off = measure(data, 2 if quick else 6)
    ridge, normal = least.pop("Ridge"), least.pop("normal equations")
    table = Table(
        f"Updates of a model of {len(data.X):,} rows, 784 features",
        ("update", "ms", "Ridge / update", "normal equations / update"),
        note=(
            f"Ridge {ridge:.2f} s, normal equations {normal:.2f} s; aim for one row: {AIM:g}. "
            f"In the end w is off by {off:.0e}."
        ),
    )
    records: list[dict[str, object]] = []
    for name, seconds in least.items():
        ratios = (f"{ridge / seconds:.0f}", f"{normal / seconds:.0f}")
        table.add(name, f"{1e3 * seconds:.2f}", *ratios)
        records.append({"update": name, "seconds": seconds, "ridge": ridge, "normal": normal})
    table.show(console())
    write_csv("ls_updates", records)
    write_markdown("ls_updates", "Least-squares updates", machine.description(), [table])


if __name__ == "__main__":
    main()
