# SPDX-License-Identifier: BSD-3-Clause
"""LGKM06, figure 8: USPS with limited memory.

    python -m benchmarks.papers.lgkm06_figure8 [--quick]

Ten machines, each a digit against the rest, see the training images once, one by one, and hold at
most so many of them: over the budget, the one of least weight is unlearned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat import SVC
from adiabat.retention import Budget
from benchmarks.papers.study import Findings, Study
from benchmarks.speed.problems import MissingData, data_folder
from benchmarks.tables import Table

GAMMA, C = 1.0 / (2.0 * 0.3 * 256.0), 100.0
SIZES = (150, 300)


def images() -> tuple[np.ndarray, ...]:
    """Training and test images with their digits."""
    path = data_folder() / "usps.npz"
    if not path.exists():
        raise MissingData(f"usps.npz is not in {path.parent}; set ADIABAT_DATA to its folder")
    with np.load(path) as file:
        parts = [file[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    return tuple(part.reshape(len(part), -1) / 1000.0 if part.ndim > 1 else part for part in parts)


def limited(X: np.ndarray, y: np.ndarray, size: int, tick: Any) -> SVC:
    """One machine that sees the rows one by one and holds at most `size` of them."""
    model = SVC(C=C, gamma=GAMMA, retain=Budget(size))
    for start in range(0, len(X), 500):
        for row in range(start, min(start + 500, len(X))):
            model.partial_fit(X[[row]], y[[row]])
        tick()
    return model


def run(quick: bool, steps: Any) -> Findings:
    X, digits, X_test, digits_test = images()
    if quick:
        X, digits = X[:500], digits[:500]
    sizes = (150,) if quick else SIZES
    order = np.random.default_rng(8).permutation(len(X))
    X, digits = X[order], digits[order]
    table = Table("Test error by memory", ("window M", "error, %", "relative to unlimited"))
    scores, full = np.empty((len(X_test), 10)), []
    for digit in range(10):
        model = SVC(C=C, gamma=GAMMA).fit(X, digits == digit)
        scores[:, digit] = model.decision_function(X_test)
        full.append(int(model.n_support_.sum()))
    unlimited = 100.0 * float(np.mean(np.argmax(scores, axis=1) != digits_test))
    errors = {}
    for size in sizes:
        with steps(10 * -(-len(X) // 500), f"M = {size}") as tick:
            for digit in range(10):
                model = limited(X, digits == digit, size, tick)
                scores[:, digit] = model.decision_function(X_test)
        errors[size] = 100.0 * float(np.mean(np.argmax(scores, axis=1) != digits_test))
        table.add(size, f"{errors[size]:.2f}", f"{errors[size] / unlimited:.2f}")
    table.add("unlimited", f"{unlimited:.2f}", "1.00")
    least = sizes[0]
    words = (
        f"{len(X):,} training and {len(X_test):,} test images, σ² = 0.3·256, C = 100, ten "
        "machines, the largest output decides. The paper finds the accuracy little worse (an error "
        f"about 10 % larger) down to M = 150. Here the error at M = {least} is "
        f"{errors[least] / unlimited:.2f} times that of unlimited memory "
        f"({errors[least]:.2f} % against {unlimited:.2f} %). The unlimited machines have "
        f"{np.mean(full):.0f} support vectors on average (paper 274). Order of the images: "
        "shuffled once; the paper does not say its own."
    )
    return Findings([table], words, lambda: draw(errors, unlimited))


def draw(errors: dict[int, float], unlimited: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    ax = figure.subplots()
    ax.plot(list(errors), list(errors.values()), "o-", label="budget")
    ax.axhline(unlimited, color="k", ls=":", label="unlimited")
    ax.set(xlabel="rows held, M", ylabel="test error, %", ylim=(0, None))
    ax.legend()
    return figure


STUDY = Study("lgkm06_figure8", "LGKM06, figure 8: USPS with limited memory", run)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
