# SPDX-License-Identifier: BSD-3-Clause
"""Regression and one-class: updates against scikit-learn's refits, in one run.

An operation is the mean of unlearning a random support vector and learning it back, certified to
1e-9 both times; a refit is LIBSVM's at tol 1e-3 with a cache of 500 MB, best of three.

    python -m benchmarks.speed.formulations [--only NAME ...] [--repeats N]

The table goes to the terminal and, as Markdown and CSV, to out/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sklearn.svm
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

import adiabat
from benchmarks import machine
from benchmarks.speed.problems import Data, MissingData, data_folder
from benchmarks.speed.updates import REFIT, SINGLES, fitted, operate, verdict
from benchmarks.tables import Table, console, write_csv, write_markdown

SIZES = (1000, 5000)


@dataclass(frozen=True)
class Case:
    """A machine, its data by size, and the ratios to reach."""

    name: str
    load: Callable[[int], Data]
    ours: type[Any]
    theirs: type[Any]
    parameters: dict[str, float]
    targets: tuple[float, ...]


def friedman(n: int) -> Data:
    """A smooth function of five of ten features, with noise of unit variance."""
    X, y = make_friedman1(n, noise=1.0, random_state=0)
    return StandardScaler().fit_transform(X), y


def zeros(n: int) -> Data:
    """Images of the digit 0."""
    path = data_folder() / "mnist.npz"
    if not path.exists():
        raise MissingData(f"mnist.npz is not in {path.parent}; set ADIABAT_DATA to its folder")
    with np.load(path) as archive:
        images = archive["X_train"][archive["y_train"] == 0][:n]
    X = images.reshape(len(images), -1) / 255.0
    return X, np.zeros(len(X))


CASES = (
    Case(
        "svr", friedman, adiabat.SVR, sklearn.svm.SVR,
        {"C": 10.0, "epsilon": 0.5, "gamma": 0.1}, (10.0, 25.0),
    ),
    Case(
        "one-class", zeros, adiabat.OneClassSVM, sklearn.svm.OneClassSVM,
        {"nu": 0.1, "gamma": 0.02}, (10.0, 25.0),
    ),
)  # fmt: skip


def measure(case: Case, n: int, repeats: int) -> dict[str, Any]:
    """Everything measured on one machine and size."""
    data = case.load(n)
    refit, _ = fitted(partial(case.theirs, **case.parameters, **REFIT), data)
    fit, model = fitted(partial(case.ours, **case.parameters), data)
    operation = operate(model, data, model.support_, 1, SINGLES, repeats)
    return {
        "machine": case.name,
        "n": n,
        "support": int(model.n_support_.sum()),
        "refit_seconds": refit,
        "fit_seconds": fit,
        "operation_seconds": operation.seconds,
        "ratio": refit / operation.seconds,
        "rounds": operation.rounds,
        "fallbacks": operation.fallbacks,
        "residual": operation.residual,
    }


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Regression and one-class against refits.")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(given)
    screen = console()
    table = Table(
        "Refits of scikit-learn in the time of one operation",
        ("machine", "n", "support", "ratio", "refit ms", "operation ms", "fit / refit", "rounds"),
        note="An operation is the mean of unlearning one support vector and learning it back.",
    )
    records, missed = [], 0
    for case in CASES:
        if chosen.only and case.name not in chosen.only:
            continue
        for n, target in zip(SIZES, case.targets, strict=True):
            try:
                found = measure(case, n, chosen.repeats)
            except MissingData as error:
                screen.print(f"{case.name} is left out: {error}")
                continue
            shown, met = verdict(found["ratio"], target)
            missed += not met
            records.append(found)
            table.add(
                case.name, n, found["support"], shown, f"{1e3 * found['refit_seconds']:.1f}",
                f"{1e3 * found['operation_seconds']:.2f}",
                f"{found['fit_seconds'] / found['refit_seconds']:.2f}", f"{found['rounds']:.1f}",
            )  # fmt: skip
    table.show(screen)
    write_csv("formulations", records)
    write_markdown("formulations", "Regression and one-class", machine.description(), [table])
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
