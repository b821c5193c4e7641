# SPDX-License-Identifier: BSD-3-Clause
"""KDD Cup 1999, the 10 % subset: rows as numbers, and which are attacks."""

from __future__ import annotations

import csv
import gzip
from itertools import islice

import numpy as np

from benchmarks.speed.problems import MissingData, data_folder

SYMBOLS = (1, 2, 3)  # protocol, service, flag
PIECE = 20_000  # rows read at a time: as strings, all of them would take gigabytes


def connections(limit: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Features (symbols one-hot) and 1 for attacks, in the order of the file."""
    path = data_folder() / "kddcup99_10_percent.csv.gz"
    if not path.exists():
        raise MissingData(f"{path.name} is not in {path.parent}; set ADIABAT_DATA to its folder")
    with gzip.open(path, "rt", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        rows, pieces = islice(reader, limit), []
        while some := list(islice(rows, PIECE)):
            pieces.append(_columns(some))
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    parts = []
    for number, column in enumerate(columns[:-1]):
        if number in SYMBOLS:
            parts.append((column[:, None] == np.unique(column)).astype(np.float64))
        else:
            parts.append(column[:, None])
    return np.hstack(parts), (columns[-1] != "normal").astype(np.int64)


def _columns(rows: list[list[str]]) -> list[np.ndarray]:
    """The columns of some rows, numbers where they are not symbols or the label."""
    columns = list(zip(*rows, strict=True))
    words = (*SYMBOLS, len(columns) - 1)
    return [
        np.array(column) if number in words else np.array(column, dtype=np.float64)
        for number, column in enumerate(columns)
    ]


def sample(
    X: np.ndarray, attack: np.ndarray, n: int, part: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """N random rows, a part of them attacks."""
    bad = rng.choice(np.flatnonzero(attack == 1), round(n * part), replace=False)
    good = rng.choice(np.flatnonzero(attack == 0), n - len(bad), replace=False)
    rows = rng.permutation(np.concatenate([bad, good]))
    return X[rows], attack[rows]
