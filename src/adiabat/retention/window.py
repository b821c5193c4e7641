# SPDX-License-Identifier: BSD-3-Clause
"""So many samples, and the oldest go (KT09 §4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from adiabat.retention.policy import Held, Policy, Timing, register, require_size


@register
class Window(Policy):
    """The last `size` samples: new ones come and the oldest go in one step (KT09 §4.2).

    Parameters
    ----------
    size : int
        Samples to keep; at least 1.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.retention import Window
    >>> model = SVC(retain=Window(3)).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> report = model.update([[3.0]], [1])
    >>> report.n_added, report.n_removed, model.ids_
    (1, 1, array([1, 2, 3]))
    """

    timing: ClassVar[Timing] = "together"

    def __init__(self, size: int) -> None:
        self.size = require_size("Window", size)

    def leaving(self, held: Held) -> Iterable[int]:
        """The oldest, as many as are too many."""
        return range(held.n - self.size)
