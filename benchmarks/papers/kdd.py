# SPDX-License-Identifier: BSD-3-Clause
"""KDD Cup 1999, the 10 % subset: rows as numbers, and which are attacks."""

from __future__ import annotations

import csv
import gzip
from itertools import islice

import numpy as np

from benchmarks.speed.problems import MissingData, data_folder

SYMBOLS = (1, 2, 3)  # protocol, service, flag


def connections(limit: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Features (symbols one-hot) and 1 for attacks, in the order of the file."""
    path = data_folder() / "kddcup99_10_percent.csv.gz"
    if not path.exists():
        raise MissingData(f"{path.name} is not in {path.parent}; set ADIABAT_DATA to its folder")
    with gzip.open(path, "rt", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        rows = list(islice(reader, limit))
    columns = list(zip(*rows, strict=True))
    parts = []
    for number, column in enumerate(columns[:-1]):
        if number in SYMBOLS:
            parts.append((np.array(column)[:, None] == np.unique(column)).astype(np.float64))
        else:
            parts.append(np.array(column, dtype=np.float64)[:, None])
    return np.hstack(parts), np.array([label != "normal" for label in columns[-1]], dtype=np.int64)


def sample(
    X: np.ndarray, attack: np.ndarray, n: int, part: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """N random rows, a part of them attacks."""
    bad = rng.choice(np.flatnonzero(attack == 1), round(n * part), replace=False)
    good = rng.choice(np.flatnonzero(attack == 0), n - len(bad), replace=False)
    rows = rng.permutation(np.concatenate([bad, good]))
    return X[rows], attack[rows]
