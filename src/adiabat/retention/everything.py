# SPDX-License-Identifier: BSD-3-Clause
"""Everything stays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from adiabat.retention.policy import Held, Policy, Timing, register


@register
class All(Policy):
    """Every sample stays, until it is forgotten; what ``retain=None`` means."""

    timing: ClassVar[Timing] = "together"

    def leaving(self, held: Held) -> Iterable[int]:
        """None."""
        return ()
