# SPDX-License-Identifier: BSD-3-Clause
"""C, the price of an error, which may be infinite: then no row may be in error (a hard margin).

The engine wants boxes. A finite `bound` stands in for an infinite C, the same for every row that
has any force. A model whose weights are all below the bound is the optimum for every larger one,
and so for an infinite C; if a weight reaches it, it is raised (`estimators/kernel/hard_margin.py`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from adiabat.formulations.base import require_range
from adiabat.typing import FloatArray

#: The bound that is tried first, and the factor by which it is raised.
FIRST_BOUND: Final = 1024.0


def reach(
    C: float, bound: float, weight: FloatArray, factor: FloatArray | float = 1.0
) -> FloatArray:
    """The largest weights of rows: C times their own, or the bound."""
    if C < np.inf:
        return C * weight * factor
    return np.where(weight * factor > 0.0, bound, 0.0)


def require_price(C: float, bound: float) -> None:
    """Raise ValueError unless C is above 0, and a bound that stands in for it finite."""
    require_range("C", min(C, bound), 0.0)


def price_fields(C: float, bound: float) -> dict[str, Any]:
    """C as plain JSON values, which have no infinity."""
    return {"C": C} if C < np.inf else {"C": "inf", "bound": bound}
