# SPDX-License-Identifier: BSD-3-Clause
"""Updates against refits over many kinds of data: where is the worst ratio?

For each problem: our fit as a part of the refit, and how many updates of 1, 10, 100 and n/10 rows
fit into one refit, any rows and support vectors. The refit is the faster of scikit-learn's (LIBSVM)
and scikit-learn-intelex's (oneDAL), both at tol 1e-3, in the same run. An update is the mean of
unlearning rows and learning them back, certified to 1e-9 both times.

    python -m benchmarks.speed.grid [--quick] [--only NAME ...] [--levels]

`--levels` repeats it on every SIMD level that the CPU has.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import sklearn.svm
import sklearnex.svm
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    make_classification,
    make_friedman1,
    make_moons,
)
from sklearn.preprocessing import StandardScaler

import adiabat
from adiabat._core import simd
from benchmarks import machine
from benchmarks.speed.problems import PROBLEMS, MissingData
from benchmarks.tables import Table, console, write_csv, write_markdown

FITS = 3
REFIT = {"tol": 1e-3, "cache_size": 500}
SECONDS = 1.0  # spent on updates of one size
DRAWS = 3, 20  # at least, at most
# From how many rows on a model is large, and what is asked of small and of large ones.
LARGE = 2_000
SMALL_AIMS = {"fit": 1.5, "1": 5.0, "10": 3.0, "100": 1.5, "n/10": 2.0}
LARGE_AIMS = {"fit": 1.0, "1": 20.0, "10": 8.0, "100": 3.0, "n/10": 2.0}


@dataclass(frozen=True)
class Case:
    """Rows, and the machine that is to learn them."""

    name: str
    load: Callable[[], tuple[Any, Any]]
    parameters: dict[str, Any]
    kind: str = "SVC"
    quick: bool = False


def moons(n: int) -> tuple[Any, Any]:
    """Two features, a small margin, a fifth of the weights at a bound."""
    return make_moons(n, noise=0.3, random_state=0)


def digits_8() -> tuple[Any, Any]:
    """Digits 8 against the rest, a tenth of the labels wrong."""
    digits = load_digits()
    y = (digits.target == 8).astype(int)
    wrong = np.random.default_rng(0).random(len(y)) < 0.1
    return digits.data, np.where(wrong, 1 - y, y)


def ten_digits() -> tuple[Any, Any]:
    """Ten classes."""
    digits = load_digits()
    return digits.data, digits.target


def cancer() -> tuple[Any, Any]:
    """Breast cancer, standardised."""
    data = load_breast_cancer()
    return StandardScaler().fit_transform(data.data), data.target


def overlapping(n: int) -> tuple[Any, Any]:
    """Fifty features, a fifth of the labels wrong."""
    X, y = make_classification(
        n, 50, n_informative=8, flip_y=0.2, class_sep=0.5, random_state=0
    )  # fmt: skip
    return StandardScaler().fit_transform(X), y


def friedman(n: int) -> tuple[Any, Any]:
    """Regression of a smooth function with noise."""
    return make_friedman1(n, noise=1.0, random_state=0)


def blobs(n: int) -> tuple[Any, Any]:
    """Rows of one class."""
    return np.random.default_rng(0).standard_normal((n, 8)), None


CASES = (
    *(
        Case(f"moons-{n}", partial(moons, n), {"gamma": 1.0, "C": 10.0}, quick=n == 2000)
        for n in (500, 2000, 8000)
    ),
    Case("digits-8-noisy", digits_8, {"gamma": 0.002, "C": 10.0}),
    Case("cancer", cancer, {"gamma": 1.0 / 30.0, "C": 10.0}, quick=True),
    Case("overlapping-2000", partial(overlapping, 2000), {"gamma": 0.02, "C": 1.0}, quick=True),
    *(
        Case(
            f"friedman-{n}", partial(friedman, n), {"gamma": 0.5, "C": 10.0, "epsilon": 0.5}, "SVR"
        )
        for n in (500, 2000)
    ),
    *(
        Case(f"one-class-{n}", partial(blobs, n), {"gamma": 0.1, "nu": 0.1}, "OneClassSVM")
        for n in (500, 4000)
    ),
    Case("digits-ten", ten_digits, {"gamma": 0.001, "C": 10.0}),
    *(
        Case(problem.name, problem.load, {"gamma": problem.gamma, "C": problem.C})
        for problem in PROBLEMS
    ),
)


@dataclass(frozen=True)
class Row:
    """What was measured of one update size on one problem; of `fit`, the fit."""

    case: str
    n: int
    what: str
    rows: str
    seconds: float
    refit_seconds: float
    fallbacks: int

    @property
    def ratio(self) -> float:
        """Fit / refit, or refit / update."""
        if self.what == "fit":
            return self.seconds / self.refit_seconds
        return self.refit_seconds / self.seconds

    @property
    def aim(self) -> float:
        """What is asked of the ratio."""
        return (LARGE_AIMS if self.n >= LARGE else SMALL_AIMS)[self.what]

    @property
    def met(self) -> bool:
        """Whether it is what is asked."""
        return self.ratio <= self.aim if self.what == "fit" else self.ratio >= self.aim


def fastest(new: Callable[[], Any], X: Any, y: Any) -> tuple[float, Any]:
    """Seconds of the fastest of a few fits, and the last model."""
    seconds, model = [], None
    for _ in range(FITS):
        model = new()
        started = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - started)
    return min(seconds), model


def measure(case: Case) -> Iterator[Row]:
    """The fit, and updates of every size."""
    X, y = case.load()
    refit = min(
        fastest(partial(getattr(library, case.kind), **case.parameters, **REFIT), X, y)[0]
        for library in (sklearn.svm, sklearnex.svm)
        if hasattr(library, case.kind)  # oneDAL has no machine of one class
    )
    fit, model = fastest(partial(getattr(adiabat, case.kind), **case.parameters), X, y)
    n = len(X)
    yield Row(case.name, n, "fit", "", fit, refit, model.last_update_.fallbacks)
    support = model.ids_[model.support_]
    sizes = {"1": 1, "10": 10, "100": 100, "n/10": n // 10}
    for what, size in sizes.items():
        for rows, among in (("any", model.ids_.copy()), ("support", support)):
            if size <= len(among) and size < n // 2:
                seconds, fallbacks = operate(model, X, y, among, size)
                yield Row(case.name, n, what, rows, seconds, refit, fallbacks)


def operate(model: Any, X: Any, y: Any, among: Any, size: int) -> tuple[float, int]:
    """Median seconds of unlearning some rows or learning them back, and fallbacks."""
    rng = np.random.default_rng(size)
    seconds, fallbacks, ends = [], 0, time.perf_counter() + SECONDS
    while len(seconds) < DRAWS[0] or (len(seconds) < DRAWS[1] and time.perf_counter() < ends):
        chosen = rng.choice(among, size, replace=False)
        rows, targets = X[chosen], None if y is None else y[chosen]
        started = time.perf_counter()
        model.forget(chosen)
        spent = time.perf_counter() - started
        fallbacks += model.last_update_.fallbacks
        resumed = time.perf_counter()
        model.partial_fit(rows, targets, ids=chosen)
        seconds.append(0.5 * (spent + time.perf_counter() - resumed))
        fallbacks += model.last_update_.fallbacks
    return median(seconds), fallbacks


def tables(rows: Sequence[Row]) -> list[Table]:
    """All ratios, and the worst of each kind."""
    heads = ("problem", "rows", "fit / refit", "refit / 1", "10", "100", "n/10")
    every = Table(f"Ratios at SIMD level {simd.level()}", heads)
    for case in dict.fromkeys(row.case for row in rows):
        own = [row for row in rows if row.case == case]
        cells = {what: _cell([row for row in own if row.what == what]) for what in LARGE_AIMS}
        every.add(case, f"{own[0].n:,}", *cells.values())
    met, fallbacks = sum(row.met for row in rows), sum(row.fallbacks for row in rows)
    every.note = (
        f"of any rows / of support vectors; {met} of {len(rows)} as asked, {fallbacks} fallbacks"
    )
    worst = Table(
        "The worst, and a typical one", ("what", "n", "asked", "worst", "where", "median")
    )
    for large in (False, True):
        for what in LARGE_AIMS:
            kind = [row for row in rows if row.what == what and (row.n >= LARGE) == large]
            if kind:
                ratios = [row.ratio for row in kind]
                least = (max if what == "fit" else min)(kind, key=lambda row: row.ratio)
                sign, size = "≤" if what == "fit" else "≥", "≥ 2,000" if large else "< 2,000"
                worst.add(
                    what, size, f"{sign} {least.aim:g}", _shown(least), least.case,
                    f"{median(ratios):.2g}",
                )  # fmt: skip
    return [every, worst]


def _shown(row: Row) -> str:
    return f"{row.ratio:.3g} {'✓' if row.met else '✗'}"


def _cell(rows: Sequence[Row]) -> str:
    return " / ".join(map(_shown, rows)) or "-"


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.grid", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="three problems")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--levels", action="store_true", help="on every SIMD level of the CPU")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = arguments(given)
    screen = console()
    if options.levels:
        own = [argument for argument in given or sys.argv[1:] if argument != "--levels"]
        for level in simd.levels():
            command = [sys.executable, "-m", "benchmarks.speed.grid", *own]
            subprocess.run(command, env={**os.environ, "ADIABAT_SIMD": level}, check=True)
        return 0
    screen.print(machine.description(), style="dim", highlight=False)
    rows: list[Row] = []
    for case in CASES:
        if case.name in (options.only or [case.name]) and (case.quick or not options.quick):
            try:
                with screen.status(case.name):
                    rows += measure(case)
            except MissingData as missing:
                screen.print(f"skipped {case.name}: {missing}", style="yellow", highlight=False)
    shown = tables(rows)
    for table in shown:
        table.show(screen)
    name = f"grid-{simd.level()}"
    records = [{**row.__dict__, "ratio": row.ratio, "met": row.met} for row in rows]
    write_csv(name, records)
    path = write_markdown(name, "Updates over many kinds of data", machine.description(), shown)
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
