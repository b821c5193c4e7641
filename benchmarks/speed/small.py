# SPDX-License-Identifier: BSD-3-Clause
"""`fit` on small data against scikit-learn's, 1,000 fits of each, taken in turn.

Parameters are the defaults of both. Processor time is counted, so that another program on the
machine costs both alike.

    python -m benchmarks.speed.small [--fits N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sklearn.svm
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.preprocessing import StandardScaler

import adiabat
from benchmarks import machine
from benchmarks.speed.problems import Data
from benchmarks.tables import Table, console, write_csv, write_markdown

WARM_UP = 20


def _scaled(load: Callable[..., Any], most: int = 200) -> Data:
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:most], y[:most]


PROBLEMS: dict[str, Callable[[], Data]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine, standardised": lambda: _scaled(load_wine),
    "breast cancer, standardised, first 200": lambda: _scaled(load_breast_cancer),
    "moons, n = 100": lambda: make_moons(100, noise=0.3, random_state=0),
    "moons, n = 200": lambda: make_moons(200, noise=0.3, random_state=0),
    "ten features, n = 150": lambda: make_classification(150, 10, random_state=0),
}


@dataclass(frozen=True)
class Result:
    """One problem."""

    name: str
    sklearn_ms: float
    ours_ms: float

    @property
    def ratio(self) -> float:
        """Ours / scikit-learn's."""
        return self.ours_ms / self.sklearn_ms


def measure(name: str, fits: int) -> Result:
    """Milliseconds of a fit, the mean over so many."""
    X, y = PROBLEMS[name]()
    spent = {sklearn.svm.SVC: 0.0, adiabat.SVC: 0.0}
    for turn in range(-WARM_UP, fits):
        for kind in spent:
            started = time.process_time()
            kind().fit(X, y)
            spent[kind] += (time.process_time() - started) * (turn >= 0)
    return Result(name, *(1e3 * seconds / fits for seconds in spent.values()))


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.small")
    parser.add_argument("--fits", type=int, default=1000)
    options = parser.parse_args(given)
    results = [measure(name, options.fits) for name in PROBLEMS]
    table = Table(
        f"fit on small data, mean of {options.fits:,}",
        ("data", "scikit-learn ms", "adiabat ms", "ratio"),
    )
    for r in results:
        table.add(r.name, f"{r.sklearn_ms:.2f}", f"{r.ours_ms:.2f}", f"{r.ratio:.2f}")
    table.show(console())
    write_csv("small", [asdict(result) for result in results])
    write_markdown("small", "Small data", machine.description(), [table])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
