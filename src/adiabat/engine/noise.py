# SPDX-License-Identifier: BSD-3-Clause
"""How exactly a decision value is known, and so what is 0 within rounding.

The terms of f have sizes |k(x, z) u|; their sum is known to some roundings of them. `tol` may be
coarser than that, and then stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adiabat._core.conditions import typical_size
from adiabat.typing import FloatArray, IntArray

# A violation to aim at is this part of `tol`, in units of the row's target, but not less than
# FEWEST roundings of f, and not more than ROUNDINGS of them.
AIM, FEWEST, ROUNDINGS = 0.1, 4.0, 64.0
EPSILON = float(np.finfo(np.float64).eps)
# MARGIN rows whose rounding is that of b.
MOST_HOLDERS = 32
# Kernel values gathered at a time (32 MB).
BLOCK_ENTRIES = 4_000_000


def noise(
    tol: float, sizes: FloatArray, least: float, b: float, typical: float, t: Any = 0.0
) -> FloatArray:
    """What f - t is known to where the terms of f have these sizes.

    `least` is the size that b carries, `typical` that of a target.
    """
    rounding = EPSILON * (np.maximum(sizes, least) + abs(b) + np.abs(t))
    part = AIM * tol * np.maximum(np.abs(t), typical or abs(b))
    found: FloatArray = np.maximum(np.minimum(part, ROUNDINGS * rounding), FEWEST * rounding)
    return found


def usual_diagonal(root: FloatArray) -> float:
    """A typical k(x, x), which no outlier moves, from the roots of those of the rows."""
    size = typical_size(root)
    if size == 0.0 and root.any():
        size = typical_size(root[root > 0.0])
    return size * size if size > 0.0 else 1.0


def holders_of(margin: IntArray, n: int) -> IntArray:
    """Which of n rows hold b, so that it carries their rounding."""
    return margin[:MOST_HOLDERS] if len(margin) else np.arange(n)


def absolute_sums(
    values: Callable[[IntArray, IntArray], FloatArray],
    at: IntArray,
    owners: IntArray,
    u: FloatArray,
) -> FloatArray:
    """Sums |k(x, z) u_z| at samples; `values` gives kernel values of some with the owners of u."""
    out, weight = np.empty(len(at)), np.abs(u)
    step = max(1, BLOCK_ENTRIES // max(1, len(owners)))
    for start in range(0, len(at), step):
        part = slice(start, start + step)
        out[part] = np.abs(values(at[part], owners)) @ weight
    return out
