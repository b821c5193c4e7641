# SPDX-License-Identifier: BSD-3-Clause
"""Rows in front of a pipeline's transformers: numbers with gaps, or numbers beside text."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from adiabat.estimators.arguments.validation import check_rows


def check_mixed_rows(
    pipeline: Any, X: Any, y: Any = "no_validation", reset: bool = False, multi_output: bool = False
) -> Any:
    """Rows (and targets, if given) as float64, where all are numbers, or as Python objects.

    What the transformers cannot take, they refuse themselves.
    """
    if sp.issparse(X):
        return check_rows(pipeline, X, y, reset=reset, multi_output=multi_output)
    if isinstance(X, list):
        X = np.array(X, dtype=object)
    several = {} if isinstance(y, str) else {"multi_output": multi_output}
    checked = validate_data(
        pipeline, X, y, dtype=None, reset=reset, ensure_all_finite="allow-nan", order="C", **several
    )
    if isinstance(y, str):
        return _plain(checked)
    return _plain(checked[0]), checked[1]


def _plain(rows: Any) -> Any:
    if rows.dtype.kind in "fiub":
        return rows.astype(np.float64)
    rows = rows.astype(object)
    gaps = np.array([[_is_gap(value) for value in row] for row in rows], dtype=bool)
    if gaps.any():
        rows[gaps] = np.nan
    try:  # numbers in a column of objects are numbers
        return rows.astype(np.float64) if not _has_text(rows) else rows
    except (TypeError, ValueError):
        return rows


def _is_gap(value: Any) -> bool:
    """Whether it is what pandas writes for no value; None stays, as in scikit-learn."""
    return type(value).__name__ in ("NAType", "NaTType")


def _has_text(rows: Any) -> bool:
    return any(isinstance(value, (str, bytes)) or value is None for value in rows.flat)
