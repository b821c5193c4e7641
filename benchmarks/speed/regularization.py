# SPDX-License-Identifier: BSD-3-Clause
"""200 values of C along the exact path against 200 refits by scikit-learn, in one run.

Ours is `regularization_path` from end to end and the decision values of all training rows at the
200 values; scikit-learn's is 200 fits (LIBSVM, tol 1e-3, cache 500 MB), without decision values.

    python -m benchmarks.speed.regularization [--repeats N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import sklearn.svm

import adiabat
from benchmarks import machine
from benchmarks.speed.problems import noisy
from benchmarks.tables import Table, console, write_csv, write_markdown

GAMMA = 1.0 / 40.0
VALUES = 200
ENDS = ((0.1, 10.0), (0.01, 100.0))


@dataclass(frozen=True)
class Result:
    """One range of C."""

    C_min: float
    C_max: float
    breakpoints: int
    residual: float
    path_seconds: float
    values_seconds: float
    refit_seconds: float

    @property
    def ratio(self) -> float:
        """Refits / ours."""
        return self.refit_seconds / (self.path_seconds + self.values_seconds)


def measure(C_min: float, C_max: float, repeats: int) -> Result:
    """The best of some repeats, ours and the refits in turn."""
    X, y = noisy(1000)
    model = adiabat.SVC(C=1.0, gamma=GAMMA).fit(X, y)
    values = np.geomspace(C_min, C_max, VALUES)
    path_seconds = values_seconds = refit_seconds = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        path = model.regularization_path(C_min, C_max)
        path_seconds = min(path_seconds, time.perf_counter() - started)
        started = time.perf_counter()
        path.decision_function(X, values)
        values_seconds = min(values_seconds, time.perf_counter() - started)
        started = time.perf_counter()
        for C in values:
            sklearn.svm.SVC(C=C, gamma=GAMMA, tol=1e-3, cache_size=500).fit(X, y)
        refit_seconds = min(refit_seconds, time.perf_counter() - started)
    return Result(
        C_min, C_max, path.n_breakpoints, path.residual, path_seconds, values_seconds,
        refit_seconds,
    )  # fmt: skip


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.regularization")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(given)
    results = [measure(*ends, options.repeats) for ends in ENDS]
    table = Table(
        f"{VALUES} values of C, n = 1,000",
        ("C", "breakpoints", "residual", "path s", "values s", f"{VALUES} refits s", "ratio"),
    )
    for r in results:
        table.add(
            f"{r.C_min:g} to {r.C_max:g}", r.breakpoints, f"{r.residual:.0e}",
            f"{r.path_seconds:.2f}", f"{r.values_seconds:.3f}", f"{r.refit_seconds:.2f}",
            f"{r.ratio:.1f}x",
        )  # fmt: skip
    table.show(console())
    write_csv("regularization", [asdict(result) for result in results])
    write_markdown("regularization", "Regularization path", machine.description(), [table])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
