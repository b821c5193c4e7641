# SPDX-License-Identifier: BSD-3-Clause
"""Some rows of a machine as a machine of their own.

Of a large model few rows move in an update. The others carry no weight and are not watched, so that
the problem of these few is the whole problem, and a round costs what they cost.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from adiabat.engine.machine import BY_ROW, SINGLE, Machine
from adiabat.typing import FloatArray, IntArray


class Part(Machine):
    """Rows of a machine (ascending), among them all that carry weight.

    As a context it takes the factor over, and at the end gives back what it was moved to. Residuals
    stay its own.
    """

    def __init__(self, machine: Machine, rows: IntArray) -> None:
        super().__init__(machine.samples, machine.d)
        self._machine, self._rows = machine, rows
        for name in BY_ROW:
            setattr(self, name, getattr(machine, name)[rows])
        for name in SINGLE:
            setattr(self, name, getattr(machine, name))
        self.factor = machine.factor

    @property
    def has_pairs(self) -> bool:
        """Whether some sample may have two rows."""
        return self._machine.has_pairs

    @property
    def _roots(self) -> FloatArray:
        return self._machine.root

    def __enter__(self) -> Self:
        members = self.factor.rows
        members[:] = np.searchsorted(self._rows, members)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        machine, members = self._machine, self.factor.rows
        members[:] = self._rows[members]
        machine.u[self._rows], machine.in_margin[self._rows] = self.u, self.in_margin
        machine.weighty = self._rows
        machine.b = self.b
