# SPDX-License-Identifier: BSD-3-Clause
"""Everything stays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from adiabat.retention.policy import Held, Policy, Timing, register


@register
class All(Policy):
    """Every sample stays, until it is forgotten; what ``retain=None`` means.

    Examples
    --------
    >>> from adiabat import SVC
    >>> from adiabat.retention import All
    >>> len(SVC(kernel="linear", retain=All()).fit([[0.0], [1.0], [5.0]], [0, 1, 1]).ids_)
    3
    """

    timing: ClassVar[Timing] = "together"

    def leaving(self, held: Held) -> Iterable[int]:
        """None."""
        return ()
