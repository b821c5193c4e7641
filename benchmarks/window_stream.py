# SPDX-License-Identifier: BSD-3-Clause
"""A sliding window over KDD Cup 1999, one connection at a time, certified at every hundredth.

python -m benchmarks.window_stream [--steps 50000] [--window 1000] [--order random|file]

Most rows have exact copies, so that the window is full of equal samples, and in the order of the
file it holds a single class for thousands of steps.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adiabat import SVC
from adiabat.retention import Window

EVERY, REFITS = 100, 10
SYMBOLIC = ["protocol_type", "service", "flag"]


def connections(n: int, order: str) -> tuple[Any, Any]:
    """Rows (log of counts, symbols one-hot, scaled by the first thousand) and labels."""
    folder = Path(os.environ.get("ADIABAT_DATA", "../shared/data"))
    table = pd.read_csv(folder / "kddcup99_10_percent.csv.gz", nrows=n if order == "file" else None)
    if order == "random":
        table = table.sample(n=n, random_state=0)
    labels = np.where(table.pop("label") == "normal", "normal", "attack")
    symbols = pd.get_dummies(table[SYMBOLIC], dtype=float).to_numpy()
    numbers = np.log1p(table.drop(columns=SYMBOLIC).to_numpy(float))
    spread = numbers[:1000].std(axis=0)
    numbers = (numbers - numbers[:1000].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return np.hstack([numbers, symbols]), labels


def run(steps: int, window: int, order: str) -> dict[str, Any]:
    """Figures of one stream."""
    X, y = connections(window + steps, order)
    model = SVC(C=10.0, gamma=1.0 / X.shape[1], retain=Window(window)).fit(X[:window], y[:window])
    seconds = mistakes = certificates = single = fallbacks = 0.0
    worst = worst_step = farthest = 0.0
    support: list[int] = []
    solvers: Counter[str] = Counter()
    for step in range(1, steps + 1):
        at = window + step - 1
        mistakes += model.predict(X[at : at + 1])[0] != y[at]
        started = time.perf_counter()
        report = model.update(X[at : at + 1], y[at : at + 1])
        seconds += time.perf_counter() - started
        worst_step = max(worst_step, report.seconds)
        solvers[report.solver] += 1
        fallbacks += report.fallbacks
        if step % EVERY == 0:
            certificate = model.certificate()
            if not certificate.ok or certificate.n_samples != window:
                raise SystemExit(f"step {step}: {certificate}")
            certificates += 1
            worst = max(worst, certificate.residual / certificate.tol)
            support.append(certificate.n_support)
            single += len(model.classes_) == 1
        if step % max(1, steps // REFITS) == 0 and len(model.classes_) > 1:
            rows = slice(at + 1 - window, at + 1)
            plain = SVC(C=10.0, gamma=1.0 / X.shape[1]).fit(X[rows], y[rows])
            off = np.abs(model.decision_function(X[rows]) - plain.decision_function(X[rows]))
            farthest = max(farthest, float(off.max()))
    return {
        "order": order,
        "steps": steps,
        "window": window,
        "certificates, all ok": int(certificates),
        "of these with one class in the window": int(single),
        "largest residual, as a part of the tolerance": f"{worst:.2e}",
        "largest difference of f from a refit": f"{farthest:.1e}",
        "support vectors, median and most": f"{int(np.median(support))}, {max(support)}",
        "ms a step, mean and worst": f"{1e3 * seconds / steps:.2f}, {1e3 * worst_step:.1f}",
        "solvers": dict(solvers),
        "fallbacks": int(fallbacks),
        "mistakes before learning": f"{mistakes / steps:.3%}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--window", type=int, default=1000)
    parser.add_argument("--order", choices=["random", "file"], default="random")
    chosen = parser.parse_args()
    for name, value in run(chosen.steps, chosen.window, chosen.order).items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
