# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are not numbers, for a kernel of the user's own: texts, graphs, tables of words.

They are kept as arrays of objects, (n, columns); what has no columns has one. The kernel gets a
list of objects where there is one column, else the array.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length


def as_objects(X: Any) -> npt.NDArray[Any] | None:
    """Rows that are not numbers, as an array of objects; None if numbers can be made of them."""
    if X is None or sp.issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") in "biuf":
        return None
    if not hasattr(X, "shape"):
        X = _listed(X)
        if X is None:
            return None
    if X.ndim not in (1, 2) or not X.size:
        return None
    rows = np.asarray(X, dtype=object)
    if rows.ndim == 1:
        numbers = all(isinstance(row, Real) for row in rows)
        return None if numbers else rows.reshape(-1, 1)
    try:
        rows.astype(np.float64)
    except (TypeError, ValueError):
        return rows
    return None


def _listed(X: Any) -> npt.NDArray[Any] | None:
    """A list as an array; of objects, one an element, where its rows are not alike."""
    try:
        table = np.asarray(X)
    except ValueError:  # rows of different lengths
        table = np.empty(0, dtype=object)
    if table.ndim == 2 or table.dtype.kind in "biuf":
        return table
    if not hasattr(X, "__len__"):
        return None
    objects = np.empty(len(X), dtype=object)
    objects[:] = list(X)
    return objects


def check_objects(estimator: Any, rows: npt.NDArray[Any], y: Any, reset: bool) -> Any:
    """Rows of objects (and targets, if given): as many as targets, as wide as those learned."""
    if reset:
        estimator.n_features_in_ = rows.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    elif rows.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {rows.shape[1]} columns, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_}"
        )
    if isinstance(y, str):  # none are wanted
        return rows
    check_consistent_length(rows, y)
    return rows, y
