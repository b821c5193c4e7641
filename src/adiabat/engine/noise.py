# SPDX-License-Identifier: BSD-3-Clause
"""How exactly a decision value is known, and so what is 0 within rounding.

The terms of f have sizes |k(x, z) u|; their sum is known to some roundings of them. `tol` may be
coarser than that, and then stands for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.typing import FloatArray

# A violation to aim at is this part of `tol`, in units of the row's target, but not less than
# FEWEST roundings of f, and not more than ROUNDINGS of them.
AIM, FEWEST, ROUNDINGS = 0.1, 4.0, 64.0
EPSILON = float(np.finfo(np.float64).eps)


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
