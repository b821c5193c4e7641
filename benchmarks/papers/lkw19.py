# SPDX-License-Identifier: BSD-3-Clause
"""LKW19's experiments: MNIST, even against odd, half of the labels wrong.

    python -m benchmarks.papers.lkw19 [--quick]

Removing wrong labels by update and by retraining; the update's time against its batch size; storage
against the number of rows; and what happens when the row to remove is known only roughly. Each is a
table (CSV and Markdown) and a panel of one figure, in out/.
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier

from adiabat import LSSVC, LSSVR, NotLearnedError
from benchmarks import machine
from benchmarks.papers.lkw19_formulas import PaperModel, normal_equations
from benchmarks.tables import OUT, ROOT, Table, console, write_csv, write_markdown

RHO = 255.0**2  # 1 for pixels between 0 and 1
PAPER = {"retraining": 0.81, "update": 0.26, "gain": 12.0}


def data_folder() -> Path:
    return Path(os.environ.get("ADIABAT_DATA", ROOT.parent / "shared" / "data"))


class Mnist:
    """Pixels as they are, even or odd, and labels of which half are wrong."""

    def __init__(self, n: int) -> None:
        with np.load(data_folder() / "mnist.npz") as file:
            self.X = file["X_train"].reshape(60_000, -1)[:n].astype(np.float64)
            self.X_test = file["X_test"].reshape(10_000, -1).astype(np.float64)
            self.y = np.where(file["y_train"][:n] % 2 == 0, 1, -1)
            self.y_test = np.where(file["y_test"] % 2 == 0, 1, -1)
        rng = np.random.default_rng(2019)
        wrong = rng.permutation(n)[: n // 2]
        self.given = self.y.copy()
        self.given[wrong] *= -1
        self.removed = np.sort(wrong[: len(wrong) // 10])
        self.kept = np.setdiff1d(np.arange(n), self.removed)

    def accuracy(self, w: np.ndarray, b: float) -> float:
        return float(np.mean(np.where(self.X_test @ w + b > 0, 1, -1) == self.y_test))


def best(repeats: int, work: Callable[[], object]) -> float:
    """The least of several times, in seconds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def mislabelled(data: Mnist, repeats: int) -> Table:
    """The paper's slide 'Training with Incorrectly Labeled Data'."""
    model = LSSVC(rho=RHO).fit(data.X, data.given)
    before = data.accuracy(model.coef_[0], model.intercept_[0])
    X_r, y_r = data.X[data.removed], data.given[data.removed]
    X_k, y_k = data.X[data.kept], data.given[data.kept].astype(np.float64)
    seconds: dict[str, list[float]] = {}
    ways: dict[str, Callable[[], object]] = {
        "retraining, normal equations": lambda: normal_equations(X_k, y_k, RHO),
        "retraining, Ridge": lambda: Ridge(alpha=RHO).fit(X_k, y_k),
        "retraining, RidgeClassifier": lambda: RidgeClassifier(alpha=RHO).fit(X_k, y_k),
        "retraining, LSSVC.fit": lambda: LSSVC(rho=RHO).fit(X_k, y_k),
        "update, LSSVC.forget": lambda: model.forget(X_r, y_r),
    }
    for _ in range(repeats):  # in turn, so that a busy moment hits all of them
        for name, work in ways.items():
            seconds.setdefault(name, []).append(best(1, work))
        if model.n_samples_ != len(X_k):
            raise AssertionError("the update did not take place")
        after = data.accuracy(model.coef_[0], model.intercept_[0])
        distance = np.linalg.norm(model.coef_[0] - LSSVC(rho=RHO).fit(X_k, y_k).coef_[0])
        distance /= np.linalg.norm(model.coef_[0])
        model.partial_fit(X_r, y_r)
        for _ in range(3):  # short enough to be repeated
            seconds["update, LSSVC.forget"].append(best(1, ways["update, LSSVC.forget"]))
            model.partial_fit(X_r, y_r)
    retraining = min(min(seconds[name]) for name in list(ways)[:3])
    update = min(seconds["update, LSSVC.forget"])
    table = Table(
        f"Half of {len(data.X):,} labels wrong, {len(X_r):,} of the wrong removed",
        ("", "seconds", "times faster than the best retraining"),
        note=(
            f"Accuracy {100 * before:.1f} % before, {100 * after:.1f} % after "
            f"({100 * (after - before):+.1f} points; paper {PAPER['gain']:+.0f}). w differs from a "
            f"fit on the rest by {distance:.0e}. Paper, a laptop: {PAPER['retraining']} s against "
            f"{PAPER['update']} s, {PAPER['retraining'] / PAPER['update']:.1f} times; here "
            f"{retraining:.2f} s against {update:.3f} s, {retraining / update:.1f} times."
        ),
    )
    for name in ways:
        table.add(name, f"{min(seconds[name]):.4f}", f"{retraining / min(seconds[name]):.1f}")
    table.add("paper: retraining", PAPER["retraining"], 1.0)
    table.add("paper: update", PAPER["update"], f"{PAPER['retraining'] / PAPER['update']:.1f}")
    return table


def batch_sizes(data: Mnist, repeats: int) -> Table:
    """The paper's slide 'Update Time with Different Batch Sizes'."""
    X_r, y_r = data.X[data.removed], data.given[data.removed]
    paper = PaperModel.of(data.X, data.given.astype(np.float64), RHO)
    ours = LSSVC(rho=RHO, fit_intercept=False).fit(data.X, data.given)
    total = len(X_r)
    table = Table(
        f"Seconds to remove {total:,} rows, by rows in a batch",
        ("batch", "LKW19 (5), (6) in NumPy", "LSSVC", "way"),
        note="Where there are many batches some are timed and the rest is counted like them.",
    )
    sizes = [size for size in (1, 3, 10, 30, 100, 300, 1000, 3000) if size <= total]
    for size in sizes:
        batches = -(-total // size)
        timed = min(batches, 12)
        formula = ours_time = np.inf
        for _ in range(repeats):
            twin = paper.copy()
            started = time.perf_counter()
            for start in range(0, timed * size, size):
                part = slice(start, min(total, start + size))
                twin.remove(X_r[part], y_r[part].astype(np.float64))
            formula = min(formula, (time.perf_counter() - started) * batches / timed)
            started = time.perf_counter()
            for start in range(0, timed * size, size):
                part = slice(start, min(total, start + size))
                ours.forget(X_r[part], y_r[part])
            ours_time = min(ours_time, (time.perf_counter() - started) * batches / timed)
            way = ours.last_update_.solver
            done = slice(0, min(total, timed * size))
            ours.partial_fit(X_r[done], y_r[done])
        table.add(size, f"{formula:.3f}", f"{ours_time:.3f}", way)
    return table


def storage(data: Mnist) -> Table:
    """The paper's slide 'Storage Saving'."""
    table = Table(
        "Megabytes kept, by rows learned",
        ("rows", "the rows", "w and C (LKW19)", "LSSVC file"),
        note="The file holds the moments to twice the precision, so about as much as w and C.",
    )
    J = data.X.shape[1]
    for n in (1_000, 5_000, 10_000, 30_000, 60_000):
        if n > len(data.X):
            break
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.adiabat"
            LSSVC(rho=RHO).fit(data.X[:n], data.given[:n]).save(path)
            size = path.stat().st_size
        table.add(n, f"{8e-6 * n * (J + 1):.1f}", f"{8e-6 * (J * J + J):.1f}", f"{1e-6 * size:.1f}")
    return table


def roughly_known(data: Mnist, rows: int) -> Table:
    """The paper's slide 'When we don't exactly know the data samples to be removed'."""
    rng = np.random.default_rng(7)
    y = data.given.astype(np.float64)
    chosen = rng.choice(data.removed, rows, replace=False)
    full = LSSVR(rho=RHO).fit(data.X, y)
    noises = (0.0, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
    distances = np.zeros((len(noises) + 1, rows))
    for place, row in enumerate(chosen):
        x, t = data.X[[row]], y[[row]]
        exact = _without(full, x, t)
        size = float(np.linalg.norm(exact.coef_))
        for number, noise in enumerate(noises):
            # relative to the row's own size, as a copy of it would be off
            error = rng.normal(size=x.shape)
            error *= noise * np.linalg.norm(x) / np.linalg.norm(error)
            try:
                rough = _without(full, x + error, t)
            except NotLearnedError:  # so far off that rho I + Phi'Phi would be indefinite
                distances[number, place] = np.nan
                continue
            distances[number, place] = np.linalg.norm(rough.coef_ - exact.coef_) / size
        distances[-1, place] = np.linalg.norm(full.coef_ - exact.coef_) / size
    table = Table(
        f"One row removed that is known only roughly (mean of {rows})",
        ("noise, relative to the row", "distance of w from the exact model", "of not removing it"),
        note="Below 1 in the last column, removing the rough row beats leaving the row in.",
    )
    left_in = float(distances[-1].mean())
    for number, noise in enumerate(noises):
        taken = distances[number][~np.isnan(distances[number])]
        if len(taken) < rows:
            table.add(f"{noise:g}", f"refused {rows - len(taken)} of {rows} times", "")
        else:
            table.add(f"{noise:g}", f"{taken.mean():.1e}", f"{taken.mean() / left_in:.3g}")
    table.add("not removed", f"{left_in:.1e}", "1")
    return table


def _without(model: LSSVR, x: np.ndarray, t: np.ndarray) -> LSSVR:
    twin: LSSVR = copy.copy(model)
    return twin.forget(x, t, approximate=True)


def draw(tables: dict[str, Table], path: Path) -> None:
    """One panel for each study that has a curve."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")

    def column(table: Table, number: int) -> list[float]:
        rows = [row for row in table.rows if row[0] != "not removed" and row[2]]
        return [float(row[number]) for row in rows]

    table = tables["batch"]
    panels[0].loglog(column(table, 0), column(table, 1), "o--", label="LKW19 (5), (6)")
    panels[0].loglog(column(table, 0), column(table, 2), "o-", label="LSSVC")
    panels[0].set(xlabel="rows in a batch", ylabel="seconds", title=table.title)
    table = tables["storage"]
    for number, label in ((1, "the rows"), (2, "w and C"), (3, "LSSVC file")):
        panels[1].loglog(column(table, 0), column(table, number), "o-", label=label)
    panels[1].set(xlabel="rows learned", ylabel="megabytes", title="Storage")
    table = tables["rough"]
    panels[2].loglog(column(table, 0)[1:], column(table, 1)[1:], "o-", label="rough row removed")
    panels[2].axhline(float(table.rows[-1][1]), color="0.6", label="row left in")
    panels[2].set(
        xlabel="noise, relative to the row", ylabel="distance of w", title="Known roughly"
    )
    for panel in panels:
        panel.title.set_fontsize(9)
        panel.legend(fontsize=8)
    OUT.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, fewer repeats")
    quick = parser.parse_args().quick
    data = Mnist(10_000 if quick else 60_000)
    repeats = 2 if quick else 4
    tables = {
        "mislabelled": mislabelled(data, repeats),
        "batch": batch_sizes(data, 1 if quick else 2),
        "storage": storage(data),
        "rough": roughly_known(data, 3 if quick else 20),
    }
    screen = console()
    for name, table in tables.items():
        table.show(screen)
        records = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        write_csv(f"lkw19_{name}", records)
    draw(tables, OUT / "lkw19.png")
    heading = "LKW19: exact incremental and decremental learning for LS-SVM"
    write_markdown("lkw19", heading, machine.description(), tables.values())
    screen.print(f"written to {OUT}")


if __name__ == "__main__":
    main()
