# SPDX-License-Identifier: BSD-3-Clause
"""So many samples, and the least relevant go (LGKM06 §6.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from adiabat.retention.policy import Held, Policy, Timing, register, require_size

TIE = 1e-9


@register
class Budget(Policy):
    """At most `size` samples: over that, the one of least absolute weight goes (LGKM06 §6.1).

    Samples without weight go first, the oldest first and in one step; then one after the other,
    each unlearned before the next is chosen; of equal ones the oldest.

    Parameters
    ----------
    size : int
        Samples to keep; at least 1.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.retention import Budget
    >>> model = SVC(kernel="linear", C=10.0, retain=Budget(2))
    >>> model.fit([[0.0], [1.0], [5.0]], [0, 1, 1]).ids_
    array([0, 1])
    """

    timing: ClassVar[Timing] = "in turn"

    def __init__(self, size: int) -> None:
        self.size = require_size("Budget", size)

    def leaving(self, held: Held) -> Iterable[int]:
        """Those without weight that are too many, or else the sample of least weight."""
        excess = held.n - self.size
        if excess <= 0:
            return ()
        idle = np.flatnonzero(held.weight == 0.0)[:excess]
        # of weights that are equal but for rounding, as at the bound they are, the oldest goes
        least = held.weight.min() + TIE * held.weight.max()
        return idle.tolist() or [int(np.argmax(held.weight <= least))]
