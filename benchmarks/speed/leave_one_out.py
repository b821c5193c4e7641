# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out against n refits, in one run, both on all cores.

The refits are those of the faster of scikit-learn's SVC (LIBSVM, one refit a core at a time) and
scikit-learn-intelex's (oneDAL, which uses all cores in each), at tol 1e-3 with a cache of 500 MB.
Where n of them would take more than five minutes, some are measured and scaled to n; the table says
how many. Ours is the whole call of `leave_one_out`, every removal checked.

    python -m benchmarks.speed.leave_one_out [--only NAME ...] [--repeats N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import sklearn.svm
import sklearnex.svm
from joblib import Parallel, cpu_count, delayed
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

import adiabat
from benchmarks import machine
from benchmarks.speed.problems import PROBLEMS, Data, MissingData
from benchmarks.tables import Table, console, write_csv, write_markdown

REFIT = {"tol": 1e-3, "cache_size": 500}
LONGEST = 300.0
SAMPLED = 12


@dataclass(frozen=True)
class Case:
    """Data, kernel and the ratio that is aimed at."""

    name: str
    load: Callable[[], Data]
    gamma: float
    C: float
    target: float


@dataclass(frozen=True)
class Result:
    """Seconds of n refits, and of ours with decision values and with verdicts alone."""

    name: str
    n: int
    margin: int
    support: int
    errors: int
    refit: str
    refits_measured: int
    refits_seconds: float
    decisions_seconds: float
    verdicts_seconds: float
    target: float


def overlapping(n: int) -> Data:
    """The known case: at n = 300 there are 41 errors at C = 1 and 49 at C = 10."""
    X, y = make_classification(n, 10, n_informative=6, flip_y=0.05, class_sep=0.8, random_state=0)
    return StandardScaler().fit_transform(X), y


MNIST = next(problem for problem in PROBLEMS if problem.name == "mnist-8")
CASES = (
    Case("overlapping-1000-C1", partial(overlapping, 1000), 0.1, 1.0, 100.0),
    Case("overlapping-1000-C10", partial(overlapping, 1000), 0.1, 10.0, 100.0),
    Case("overlapping-2000-C1", partial(overlapping, 2000), 0.1, 1.0, 150.0),
    Case("overlapping-2000-C10", partial(overlapping, 2000), 0.1, 10.0, 150.0),
    Case("mnist-8", MNIST.load, MNIST.gamma, MNIST.C, 300.0),
)


def _refit_without(new: Callable[[], Any], X: Any, y: Any, i: int) -> bool:
    rest = np.arange(len(y)) != i
    return bool(new().fit(X[rest], y[rest]).predict(X[i : i + 1])[0] == y[i])


def refits(case: Case, data: Data) -> tuple[str, int, float]:
    """(which library, how many were measured, seconds of n): the faster of the two."""
    X, y = data
    cores = cpu_count()
    found = []
    for name, module, jobs in (("LIBSVM", sklearn.svm, cores), ("oneDAL", sklearnex.svm, 1)):
        new = partial(module.SVC, C=case.C, gamma=case.gamma, **REFIT)
        _refit_without(new, X, y, 0)  # warm

        def run(places: Any, new: Any = new, jobs: int = jobs) -> float:
            started = time.perf_counter()
            Parallel(n_jobs=jobs, prefer="threads")(
                delayed(_refit_without)(new, X, y, int(i)) for i in places
            )
            return time.perf_counter() - started

        sample = np.random.default_rng(0).permutation(len(y))[: SAMPLED * cores]
        seconds = min(run(sample) for _ in range(2)) * len(y) / len(sample)
        found.append((seconds, name, len(sample), run))
    seconds, name, count, run = min(found, key=lambda one: one[0])
    if seconds <= LONGEST:
        seconds, count = run(np.arange(len(y))), len(y)
    return name, count, seconds


def measure(case: Case, repeats: int) -> Result:
    """Refits and ours."""
    data = case.load()
    name, count, seconds = refits(case, data)
    model = adiabat.SVC(C=case.C, gamma=case.gamma).fit(*data)
    best = {True: np.inf, False: np.inf}
    for _ in range(repeats):
        for decisions in best:
            started = time.perf_counter()
            found = model.leave_one_out(decisions=decisions, n_jobs=-1)
            best[decisions] = min(best[decisions], time.perf_counter() - started)
    machine_of = model._model.machines[0][1]
    return Result(
        case.name, len(data[1]), len(machine_of.margin), len(model.support_),
        int(np.sum(~found.correct)), name, count, seconds, best[True], best[False], case.target,
    )  # fmt: skip


def table(results: Sequence[Result]) -> Table:
    """Ratios first."""
    out = Table(
        "Leave-one-out against n refits",
        ("problem", "margin + bounded", "errors", "n refits s", "measured", "values s", "ratio",
         "verdicts s", "ratio", "goal"),
        note="Refits by the faster of LIBSVM and oneDAL, all cores; scaled where not all were run.",
    )  # fmt: skip
    for r in results:
        out.add(
            r.name, f"{r.margin} + {r.support - r.margin}", r.errors,
            f"{r.refits_seconds:.1f} ({r.refit})", f"{r.refits_measured} of {r.n}",
            f"{r.decisions_seconds:.3f}", f"{r.refits_seconds / r.decisions_seconds:.0f}x",
            f"{r.verdicts_seconds:.3f}", f"{r.refits_seconds / r.verdicts_seconds:.0f}x",
            f"{r.target:.0f}x",
        )  # fmt: skip
    return out


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.leave_one_out")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(given)
    screen = console()
    screen.print(machine.description(), style="dim", highlight=False)
    results = []
    for case in CASES:
        if case.name not in options.only:
            continue
        try:
            results.append(measure(case, options.repeats))
        except MissingData as missing:
            screen.print(f"skipped {case.name}: {missing}", style="yellow", highlight=False)
    found = table(results)
    found.show(screen)
    write_csv("leave-one-out", [asdict(result) for result in results])
    write_markdown("leave-one-out", "Leave-one-out", machine.description(), [found])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
