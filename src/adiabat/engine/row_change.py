# SPDX-License-Identifier: BSD-3-Clause
"""What happens to the rows of one machine in one update."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from adiabat.typing import FloatArray, IntArray

NO_ROWS: IntArray = np.empty(0, dtype=np.int64)
NO_VALUES: FloatArray = np.empty(0)


def no_rows() -> IntArray:
    """No rows, or places, as the default of a field."""
    return NO_ROWS


def no_values() -> FloatArray:
    """No values, as the default of a field."""
    return NO_VALUES


@dataclass(frozen=True)
class RowChange:
    """What happens to the rows of one machine in one update."""

    remove: IntArray = field(default_factory=no_rows)
    add_at: IntArray = field(default_factory=no_rows)
    add_t: FloatArray = field(default_factory=no_values)
    add_lo: FloatArray = field(default_factory=no_values)
    add_hi: FloatArray = field(default_factory=no_values)
    add_u: FloatArray | None = None  # where they start; at 0 by default
    add_margin: IntArray = field(default_factory=no_rows)  # which of them start in MARGIN
    rebound: IntArray = field(default_factory=no_rows)
    rebound_t: FloatArray = field(default_factory=no_values)
    rebound_lo: FloatArray = field(default_factory=no_values)
    rebound_hi: FloatArray = field(default_factory=no_values)
    d: float | None = None

    @property
    def size(self) -> int:
        """Number of rows touched."""
        return len(self.remove) + len(self.add_at) + len(self.rebound)
