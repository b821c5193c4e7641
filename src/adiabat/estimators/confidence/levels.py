# SPDX-License-Identifier: BSD-3-Clause
"""Confidence levels, and the ranks that they stand for among n samples.

A newcomer has rank 1 + #(samples at least as strange as it) of n + 1. It is left out of a set of
level 1 - alpha if that rank is at most alpha (n + 1), so if fewer than k = floor(alpha (n + 1))
samples are at least as strange.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adiabat.typing import FloatArray

# Of a rank: 1 - 0.9 is not quite 0.1.
ROUNDING = 1e-9


def check_levels(confidence_level: Any) -> FloatArray:
    """One level or several, each between 0 and 1, as an array; ValueError else."""
    try:
        levels = np.asarray(confidence_level, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.empty(0)
    if levels.ndim == 0 and not isinstance(confidence_level, (bool, np.bool_)):
        levels = levels[None]
    if levels.ndim != 1 or len(levels) == 0 or not np.all((levels > 0.0) & (levels < 1.0)):
        raise ValueError(
            f"confidence_level={confidence_level!r} must be a number between 0 and 1, both "
            "excluded, such as 0.9, or a list of such numbers"
        )
    return levels


def rank_at(level: float, n: int, whose: str = "the model has") -> int:
    """k: a value that fewer than k of n samples are as strange as is outside.

    ValueError if there are too few samples for any to be outside.
    """
    k = math.floor((1.0 - level) * (n + 1) + ROUNDING)
    if k < 1:
        needed = math.ceil(1.0 / (1.0 - level) - ROUNDING) - 1
        raise ValueError(
            f"confidence_level={level:g} needs {needed} samples, and {whose} {n}: with so few, "
            "every set would be everything. Lower confidence_level, or learn more samples."
        )
    return k
