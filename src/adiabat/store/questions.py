# SPDX-License-Identifier: BSD-3-Clause
"""Rows to decide on, of plain Python values, without a table in between.

A row of JSON becomes a row of numbers in a few microseconds, where a table of Arrow's takes a
millisecond and, with the first, the import of pandas. It is for what needs no second look; whatever
else there is, `encoding` takes it, or says what is wrong with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adiabat.store.settings import Settings
from adiabat.typing import FloatArray


def plain_features(columns: Mapping[str, Sequence[Any]], settings: Settings) -> FloatArray | None:
    """Features of rows as `encode_questions` gives them; None if they are not plain.

    Plain are columns that are exactly the store's features and perhaps its ids, numbers that are
    finite, and categories that are known.
    """
    features = settings.features
    if not isinstance(features, list) or settings.impute is not None:
        return None
    if columns.keys() - {settings.id_column} != {column["name"] for column in features}:
        return None
    n = len(next(iter(columns.values())))
    X = np.zeros((n, settings.n_features))
    at = 0
    for column in features:
        values = columns[column["name"]]
        if column["kind"] == "number":
            if not all(_is_number(value) for value in values):
                return None
            X[:, at] = values
            at += 1
            continue
        for row, value in enumerate(values):
            if not isinstance(value, str) or value not in column["values"]:
                return None
            X[row, at + column["values"].index(value)] = 1.0
        at += len(column["values"])
    return X


def _is_number(value: Any) -> bool:
    if type(value) is int:  # a larger one may be beyond float64
        return -(1 << 53) <= value <= 1 << 53
    return type(value) is float and math.isfinite(value)
