# SPDX-License-Identifier: BSD-3-Clause
"""What happens to the rows of one machine in one update."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adiabat.typing import FloatArray, IntArray

NO_ROWS: IntArray = np.empty(0, dtype=np.int64)
NO_VALUES: FloatArray = np.empty(0)


class RowChange(NamedTuple):
    """What happens to the rows of one machine in one update."""

    remove: IntArray = NO_ROWS
    add_at: IntArray = NO_ROWS
    add_t: FloatArray = NO_VALUES
    add_lo: FloatArray = NO_VALUES
    add_hi: FloatArray = NO_VALUES
    add_u: FloatArray | None = None  # where they start; at 0 by default
    add_margin: IntArray = NO_ROWS  # which of them start in MARGIN
    rebound: IntArray = NO_ROWS
    rebound_t: FloatArray = NO_VALUES
    rebound_lo: FloatArray = NO_VALUES
    rebound_hi: FloatArray = NO_VALUES
    d: float | None = None

    @property
    def size(self) -> int:
        """Number of rows touched."""
        return len(self.remove) + len(self.add_at) + len(self.rebound)

    def touched(self, first: int, n: int) -> IntArray:
        """Rows that go, those from the first new one to the n-th, and those whose box or target
        moved, unless these are most.
        """
        parts = [self.remove] if len(self.remove) else []
        if first < n:
            parts.append(np.arange(first, n))
        if 0 < len(self.rebound) <= n // 2:
            parts.append(self.rebound)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else NO_ROWS
