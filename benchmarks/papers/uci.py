# SPDX-License-Identifier: BSD-3-Clause
"""The twelve data sets of SLS99, with the kernels of its figure 2 and its results."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from adiabat import SVC
from benchmarks.speed.problems import MissingData, data_folder


@dataclass(frozen=True)
class DataSet:
    """A data set: its file, the paper's kernel, and the rows of the paper's tables 2 and 3."""

    name: str
    file: str
    gamma: float | None  # None: linear
    scaled: bool  # features standardised; chosen with C by sls99_calibration
    C: float
    batch: float  # table 2, %
    incremental: float
    selected: float  # table 3: % of examples that are support vectors
    of_selected: float  # and % accuracy within them

    def load(self, scaled: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows as numbers, one column for each value of a symbol, and labels 0 and 1."""
        path = data_folder() / self.file
        if not path.exists():
            raise MissingData(
                f"{self.file} is not in {path.parent}; set ADIABAT_DATA to its folder"
            )
        with path.open(newline="") as file:
            _, *rows = csv.reader(file)
        columns = [_numbers(column) for column in list(zip(*rows, strict=True))[:-1]]
        labels = np.array([row[-1] for row in rows])
        X = np.hstack(columns)
        if self.scaled if scaled is None else scaled:
            X = StandardScaler().fit_transform(X)
        return X, (labels == np.unique(labels)[1]).astype(np.int64)

    def machine(self, X: np.ndarray, C: float | None = None, **options: Any) -> SVC:
        """The paper's kernel; C in SVM-light's unit 1 / mean k(x, x)."""
        C = self.C if C is None else C
        if self.gamma is None:
            return SVC(C=C / float(np.mean(np.sum(X * X, axis=1))), kernel="linear", **options)
        return SVC(C=C, gamma=self.gamma, **options)


def _numbers(column: tuple[str, ...]) -> np.ndarray:
    try:
        return np.array(column, dtype=np.float64)[:, None]
    except ValueError:
        values = np.unique(column)
        return (np.array(column)[:, None] == values).astype(np.float64)


# SVM-light's -g is our gamma: the paper's "gaussian sigma" is read as that.
DATA_SETS = (
    DataSet("Australian", "australian.csv", 0.0005, True, 10000.0, 84.63, 84.63, 33.76, 48.40),
    DataSet("Diabetes", "diabetes.csv", 0.0005, True, 100.0, 77.08, 76.95, 58.03, 51.68),
    DataSet("German", "german_numeric.csv", 0.005, True, 1.0, 75.10, 74.10, 54.16, 45.35),
    DataSet("Heart", "heart_statlog.csv", 0.0005, True, 100.0, 84.45, 79.63, 35.16, 33.31),
    DataSet("Ionosphere", "ionosphere.csv", 1.6, False, 1.0, 94.57, 93.14, 53.05, 84.77),
    DataSet("Liver disorders", "liver_bupa.csv", 0.1, True, 100.0, 68.68, 61.03, 67.64, 21.25),
    DataSet("Monk-1", "monks1.csv", 0.1, False, 100.0, 100.0, 100.0, 82.61, 100.0),
    DataSet("Monk-2", "monks2.csv", 0.1, False, 1000.0, 99.17, 99.17, 78.76, 98.75),
    DataSet("Monk-3", "monks3.csv", 0.001, False, 10000.0, 98.91, 98.73, 23.54, 94.04),
    DataSet("Mushroom", "mushroom.csv", None, False, 10.0, 100.0, 99.88, 5.99, 100.0),
    DataSet("Promoter gene", "promoters.csv", None, False, 1.0, 93.55, 92.55, 69.19, 79.46),
    DataSet("Sonar", "sonar.csv", 0.4, False, 100.0, 87.38, 87.41, 67.38, 58.81),
)
