# SPDX-License-Identifier: BSD-3-Clause
"""Labels of classes as arrays.

No label loses a digit. NumPy turns int64 with uint64, and whole numbers with floats, into float64,
which holds 53 bits; here they become int64 or uint64, and what neither holds is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt


def label_array(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels as an array that holds each of them exactly; ValueError where no type does."""
    array = np.array(values)
    if array.dtype.kind not in "fO" or not all(isinstance(value, Real) for value in values):
        return array
    if array.dtype.kind == "f" and array.tolist() == list(values):
        return array
    if not all(isinstance(value, Integral) or float(value).is_integer() for value in values):
        return array  # fractions, or not finite: no labels of classes
    whole = [int(value) for value in values]
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(whole) and max(whole) <= np.iinfo(kind).max:
            return np.array(whole, dtype=kind)
    raise ValueError(
        f"y has the labels {min(values)!r} and {max(values)!r}, and neither int64 nor uint64 holds "
        "both exactly; use whole numbers from -2**63 to 2**63 - 1, or strings"
    )


def typed_labels(labels: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """Labels in the type that they came in, if that holds all of them."""
    if not kind:
        return labels
    try:
        typed = labels.astype(kind)
    except (TypeError, ValueError, OverflowError):
        return labels
    return typed if typed.tolist() == labels.tolist() else labels
