# SPDX-License-Identifier: BSD-3-Clause
"""The check of sample weights, one for all that take them."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from adiabat.typing import FloatArray


def check_weights(sample_weight: Any, n: int) -> FloatArray:
    """N finite weights >= 0; None means 1."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n, sample_weight)
    weights: FloatArray = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, copy=True, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if len(weights) != n:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n,)}: one weight a row"
        )
    if len(weights) and weights.min() < 0.0:
        raise ValueError(
            f"Negative values in data passed to `sample_weight` (least {weights.min():g}); "
            "weights must be >= 0"
        )
    return weights
