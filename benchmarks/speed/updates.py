# SPDX-License-Identifier: BSD-3-Clause
"""Updates against refits, in one run: how many updates in the time of one refit?

The refit is the faster of scikit-learn's SVC (LIBSVM) and scikit-learn-intelex's (oneDAL), both at
tol 1e-3 with a cache of 500 MB, on the same rows, best of three in a warm process. An operation is
the mean of unlearning random support vectors and learning them back, certified to 1e-9 both times.

    python -m benchmarks.speed.updates [--quick] [--only NAME ...] [--repeats N]

Tables go to the terminal and, as Markdown and CSV, to out/.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import mean, median
from typing import Any

import numpy as np
import sklearn.svm
import sklearnex.svm
from rich.console import Console

import adiabat
from benchmarks import machine
from benchmarks.speed import one_by_one
from benchmarks.speed.problems import PROBLEMS, Data, MissingData, Problem
from benchmarks.tables import Table, console, write_csv, write_markdown

FITS = 3
REFIT = {"tol": 1e-3, "cache_size": 500}
# Random draws in one repeat: of a single support vector, and of a hundred.
SINGLES, HUNDREDS = 10, 2
QUICK = ("mnist-8", "noisy-1000")


@dataclass(frozen=True)
class Operation:
    """Unlearning some support vectors and learning them back, over all draws of all repeats."""

    seconds: float  # of one of the two; mean over draws, median over repeats
    rounds: float
    fallbacks: int
    residual: float  # the worst, as a part of what is allowed


@dataclass(frozen=True)
class Result:
    """Everything measured on one problem."""

    problem: str
    n: int
    margin: int
    bounded: int
    libsvm_seconds: float
    onedal_seconds: float
    fit_seconds: float
    fit_rounds: int
    one: Operation
    hundred: Operation
    residual: float
    allowed: float
    columns_mib: float
    peak_mib: float

    @property
    def refit_seconds(self) -> float:
        """The faster of the two others."""
        return min(self.libsvm_seconds, self.onedal_seconds)

    @property
    def ratios(self) -> tuple[float, float, float]:
        """Refit / one operation, refit / a hundred at once, fit / LIBSVM's fit."""
        return (
            self.refit_seconds / self.one.seconds,
            self.refit_seconds / self.hundred.seconds,
            self.fit_seconds / self.libsvm_seconds,
        )

    def record(self) -> dict[str, object]:
        """Flat, for CSV."""
        flat: dict[str, object] = {}
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                flat.update({f"{name}_{inner}": v for inner, v in value.items()})
            else:
                flat[name] = value
        flat.update(zip(("one_ratio", "hundred_ratio", "fit_ratio"), self.ratios, strict=True))
        return flat


def fitted(new: Callable[[], Any], data: Data) -> tuple[float, Any]:
    """Seconds of the fastest of a few fits, each of a new estimator, and the last of these."""
    seconds = []
    model = None
    for _ in range(FITS):
        del model  # before the next is made: the peak of memory is that of one
        model = new()
        started = time.perf_counter()
        model.fit(*data)
        seconds.append(time.perf_counter() - started)
    return min(seconds), model


def measure(problem: Problem, repeats: int) -> Result:
    """Refits, our fit, and operations on random support vectors."""
    data = problem.load()
    shape = {"C": problem.C, "gamma": problem.gamma}
    libsvm, _ = fitted(partial(sklearn.svm.SVC, **shape, **REFIT), data)
    onedal, _ = fitted(partial(sklearnex.svm.SVC, **shape, **REFIT), data)
    machine.forget_peak()
    fit, model = fitted(partial(adiabat.SVC, **shape), data)
    fit_rounds = model.last_update_.rounds
    support = model.ids_[model.support_]
    bounded = int(np.sum(np.abs(model.dual_coef_) >= problem.C))
    one = operate(model, data, support, 1, SINGLES, repeats)
    hundred = operate(model, data, support, min(100, len(support)), HUNDREDS, repeats)
    peak = machine.peak_mib()
    certificate = model.certificate()
    return Result(
        problem=problem.name,
        n=len(data[0]),
        margin=len(support) - bounded,
        bounded=bounded,
        libsvm_seconds=libsvm,
        onedal_seconds=onedal,
        fit_seconds=fit,
        fit_rounds=fit_rounds,
        one=one,
        hundred=hundred,
        residual=certificate.residual,
        allowed=certificate.tol,
        columns_mib=model._model.solver.samples.gram.nbytes / machine.MIB,
        peak_mib=peak,
    )


def operate(
    model: adiabat.SVC, data: Data, support: np.ndarray, size: int, draws: int, repeats: int
) -> Operation:
    """Unlearn and learn back `size` random support vectors, draws x repeats times."""
    X, y = data
    rng = np.random.default_rng(0)
    seconds, reports = [], []
    for _ in range(repeats):
        spent = []
        for _ in range(draws):
            chosen = rng.choice(support, size, replace=False)
            rows, labels = X[chosen], y[chosen]
            started = time.perf_counter()
            model.forget(chosen)
            between = time.perf_counter()
            reports.append(model.last_update_)
            resumed = time.perf_counter()
            model.partial_fit(rows, labels, ids=chosen)
            ended = time.perf_counter()
            reports.append(model.last_update_)
            spent.append(0.5 * (between - started + ended - resumed))
        seconds.append(mean(spent))
    return Operation(
        seconds=median(seconds),
        rounds=mean(report.rounds for report in reports),
        fallbacks=sum(report.fallbacks for report in reports),
        residual=max(report.certificate.residual / report.certificate.tol for report in reports),
    )


# -- tables --------------------------------------------------------------------------------------


def verdict(value: float, target: float, at_most: bool = False) -> tuple[str, bool]:
    """A ratio beside its target, with a tick or a cross."""
    met = value <= target if at_most else value >= target
    shown = f"{value:.2f}" if at_most else f"{value:.1f}"
    return f"{shown} ({'≤' if at_most else '≥'} {target:g}) {'✓' if met else '✗'}", met


def ratio_table(results: Sequence[Result]) -> Table:
    """Ratios beside their targets."""
    table = Table(
        "Updates and fits as ratios",
        ("problem", "rows", "refit / 1 op", "refit / 100 at once", "fit / LIBSVM fit"),
    )
    targets = {problem.name: problem.targets for problem in PROBLEMS}
    met = []
    for result in results:
        aim = targets[result.problem]
        one, hundred, fit = result.ratios
        cells = (
            verdict(one, aim.one),
            verdict(hundred, aim.hundred),
            verdict(fit, aim.fit, at_most=True),
        )
        met += [ok for _, ok in cells]
        table.add(result.problem, f"{result.n:,}", *(text for text, _ in cells))
    table.note = f"{sum(met)} of {len(met)} targets met"
    return table


def time_table(results: Sequence[Result]) -> Table:
    """The times behind the ratios, and the rounds they took."""
    table = Table(
        "Times and rounds",
        (
            "problem",
            "margin + bounded",
            "LIBSVM s",
            "oneDAL s",
            "fit s",
            "1 op ms",
            "100 ms",
            "rounds: fit",
            "1",
            "100",
            "fallbacks",
        ),
    )
    for r in results:
        table.add(
            r.problem,
            f"{r.margin:,} + {r.bounded:,}",
            f"{r.libsvm_seconds:.3f}",
            f"{r.onedal_seconds:.3f}",
            f"{r.fit_seconds:.3f}",
            f"{1e3 * r.one.seconds:.2f}",
            f"{1e3 * r.hundred.seconds:.1f}",
            r.fit_rounds,
            f"{r.one.rounds:.1f}",
            f"{r.hundred.rounds:.1f}",
            r.one.fallbacks + r.hundred.fallbacks,
        )
    return table


def trust_table(results: Sequence[Result]) -> Table:
    """How exact the models are, and what they occupy."""
    table = Table(
        "Certificates and memory",
        (
            "problem",
            "residual at the end",
            "allowed",
            "worst update / allowed",
            "kernel columns MiB",
            "full kernel MiB",
            "process peak MiB",
        ),
    )
    for r in results:
        table.add(
            r.problem,
            f"{r.residual:.1e}",
            f"{r.allowed:.0e}",
            f"{max(r.one.residual, r.hundred.residual):.1e}",
            f"{r.columns_mib:.0f}",
            f"{8.0 * r.n * r.n / machine.MIB:.0f}",
            f"{r.peak_mib:.0f}",
        )
    return table


# -- command line --------------------------------------------------------------------------------


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for."""
    names = [*(problem.name for problem in PROBLEMS), one_by_one.NAME]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.updates", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="two problems, fewer repeats")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeats", type=int, help="repeats of every measurement (default 3)")
    options = parser.parse_args(given)
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats {options.repeats}: at least 1 is needed")
    options.repeats = options.repeats or (1 if options.quick else 3)
    if options.only is None:
        options.only = [*QUICK, one_by_one.NAME] if options.quick else names
    return options


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = arguments(given)
    screen = console()
    screen.print(machine.description(), style="dim", highlight=False)
    results = [
        result
        for problem in PROBLEMS
        if problem.name in options.only
        and (result := _measure_or_skip(problem, options.repeats, screen)) is not None
    ]
    tables = [ratio_table(results), time_table(results), trust_table(results)] if results else []
    if one_by_one.NAME in options.only:
        ways = one_by_one.compare(options.repeats, options.quick)
        tables.append(one_by_one.table(ways))
        write_csv("one-by-one", [asdict(way) for way in ways])
    for table in tables:
        table.show(screen)
    write_csv("updates", [result.record() for result in results])
    path = write_markdown("updates", "Updates against refits", machine.description(), tables)
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


def _measure_or_skip(problem: Problem, repeats: int, screen: Console) -> Result | None:
    try:
        with screen.status(problem.title):
            return measure(problem, repeats)
    except MissingData as missing:
        screen.print(f"skipped {problem.name}: {missing}", style="yellow", highlight=False)
        return None


if __name__ == "__main__":
    raise SystemExit(main())
