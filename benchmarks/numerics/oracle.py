# SPDX-License-Identifier: BSD-3-Clause
"""Can LIBSVM judge an exact solver? Its own violation and f, at ever smaller tol.

LIBSVM keeps kernel values in single precision. Here its coefficients, and ours, are judged by
kernel values in double precision.

    python -m benchmarks.numerics.oracle
"""

from __future__ import annotations

import numpy as np
import sklearn.svm
from sklearn.metrics.pairwise import rbf_kernel

import adiabat
from adiabat.certificate import violations
from benchmarks import machine
from benchmarks.speed.problems import PROBLEMS, MissingData
from benchmarks.tables import Table, console, write_markdown

NAMES = ("noisy-1000", "mnist-8", "usps-8")
TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-12)


def main() -> int:
    """Measure, print, write."""
    screen = console()
    table = Table(
        "LIBSVM judged in double precision",
        ("solver", "problem", "violation", "max |f - f of ours|", "relative objective above ours"),
    )
    for problem in PROBLEMS:
        if problem.name not in NAMES:
            continue
        try:
            X, y = problem.load()
        except MissingData as missing:
            screen.print(f"skipped {problem.name}: {missing}", style="yellow", highlight=False)
            continue
        K = rbf_kernel(X, gamma=problem.gamma)
        sign = np.where(y == y.max(), 1.0, -1.0)
        lo, hi = np.minimum(0.0, problem.C * sign), np.maximum(0.0, problem.C * sign)
        settings = {"C": problem.C, "gamma": problem.gamma}
        models = {"adiabat": adiabat.SVC(**settings)}
        for tol in TOLERANCES:
            models[f"LIBSVM, tol {tol:.0e}"] = sklearn.svm.SVC(**settings, tol=tol, cache_size=500)
        ours, least = np.empty(0), 0.0
        for name, model in models.items():
            model.fit(X, y)
            u = np.zeros(len(X))
            u[model.support_] = model.dual_coef_[0]
            f = K @ u + model.intercept_[0]
            objective = 0.5 * float(u @ (K @ u)) - float(u @ sign)
            if name == "adiabat":
                ours, least = f, objective
            table.add(
                name,
                problem.name,
                f"{violations(f - sign, u, lo, hi).max():.0e}",
                f"{np.abs(f - ours).max():.0e}",
                f"{(objective - least) / abs(least):.0e}",
            )
    table.show(screen)
    path = write_markdown("oracle", "LIBSVM as an oracle", machine.description(), [table])
    screen.print(f"written to {path.parent.name}/", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
