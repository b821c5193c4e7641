# SPDX-License-Identifier: BSD-3-Clause
"""Every experiment of the papers runs through, on tiny made-up data in place of the real."""

from __future__ import annotations

import csv
import gzip
import importlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
STUDIES = (
    "cp01_figures35",
    "sls99_calibration",
    "sls99_table2",
    "sls99_table3",
    "kt09_figures45",
    "kt09_figures67",
    "lgkm06_figures1to7",
    "lgkm06_figure8",
    "lgkm06_figures910",
)


def write(path: Path, rows: list[list[Any]]) -> None:
    opened = gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w", newline="")
    with opened as file:
        csv.writer(file).writerows(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of the shape of the real ones."""
    here = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)

    def labelled(n: int, d: int) -> list[list[Any]]:
        X = rng.normal(size=(n, d)).round(3)
        return [[*row, int(row[0] + 0.3 * rng.normal() > 0)] for row in X.tolist()]

    for name in ("heart_statlog", "promoters"):
        write(here / f"{name}.csv", [[*"abcd", "label"], *labelled(40, 4)])
    days = [[f"day{i}", *rng.random(3).round(3).tolist()] for i in range(80)]
    write(here / "fisher_river.csv", [["date", "t", "p", "label"], *days])
    numbers = [[f"c{i}" for i in range(41)] + ["label"]]
    for row in rng.random((300, 41)).round(3).tolist():
        row[1:4] = [str(rng.choice(["tcp", "udp"])), "http", "SF"]
        attack = rng.random() < 0.3
        row[5] += 2.0 * attack
        numbers.append([*row, "smurf" if attack else "normal"])
    write(here / "kddcup99_10_percent.csv.gz", numbers)
    for name, side, n in (("usps", 4, 60), ("mnist", 5, 420)):
        y = rng.integers(0, 10, n)
        X = (rng.random((n, side, side)) * 100 + 10 * y[:, None, None]).astype(np.int16)
        np.savez(here / name, X_train=X, y_train=y, X_test=X[:30], y_test=y[:30])
    return here


@pytest.mark.parametrize("name", STUDIES)
def test_an_experiment_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADIABAT_DATA", str(folder))
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module(f"benchmarks.papers.{name}")
    for small, value in {
        "N": 60, "FIRST": 50, "BATCH": 5, "FOLDS": 3, "INCREMENTS": 3, "CHOSEN": 5
    }.items():  # fmt: skip
        if name.startswith(("kt09", "sls99", "lgkm06_figures9")) and hasattr(module, small):
            monkeypatch.setattr(module, small, value)

    @contextmanager
    def steps(total: int, what: str) -> Any:
        yield lambda: None

    found = module.STUDY.run(True, steps)
    assert all(table.rows for table in found.tables) and len(found.words) > 100
    if found.draw is not None:
        found.draw()
