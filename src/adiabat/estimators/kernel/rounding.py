# SPDX-License-Identifier: BSD-3-Clause
"""Decision values that are 0 but for rounding, as 0: their sign would be chance.

So the order of the rows, of which f is a sum, decides no label.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np

from adiabat.typing import BoolArray, FloatArray

# Roundings of f within which a sample counts as on the boundary of one class.
_ON_THE_BOUNDARY: Final = 4


class Decides(Protocol):
    """A `Model`, or a `Decider` made of one."""

    def zero_but_for_rounding(
        self, column: int, values: FloatArray, X: Any, own: FloatArray, t: Any = 0.0, few: int = 1
    ) -> BoolArray:
        """Which values f - t of a machine at rows X are 0 but for `few` times the rounding of f."""


def pairs_without(held: Decides, pairs: FloatArray, X: Any, own: FloatArray) -> FloatArray:
    """Decision values of pairs of classes at rows X, 0 where a pair ties; `own` are k(x, x)."""
    for column in range(pairs.shape[1]):
        values = pairs[:, column]
        values[held.zero_but_for_rounding(column, values, X, own)] = 0.0
    return pairs


def novelty_without(
    held: Decides, values: FloatArray, own: FloatArray, X: Any, targets: Any = 0.0
) -> FloatArray:
    """Decision values of one class at rows X, 0 on the boundary; `own` are k(x, x).

    Samples on the boundary, as those of the margin are, have values of either sign by chance; they
    count as inside, in every run.
    """
    zero = held.zero_but_for_rounding(0, values, X, own, targets, few=_ON_THE_BOUNDARY)
    return np.where(zero, 0.0, values)
