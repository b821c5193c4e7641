# SPDX-License-Identifier: BSD-3-Clause
"""Where a machine is on its way to the optimum, in a sentence, once a second.

Rows are counted as users know them: two rows of one sample are one.
"""

from __future__ import annotations

import numpy as np

from adiabat.engine.machine import Machine
from adiabat.logs import Progress
from adiabat.typing import BoolArray


class RunProgress:
    """What is said of one machine while it is solved."""

    def __init__(self, progress: Progress, machine: Machine) -> None:
        self._progress, self._machine = progress, machine
        self.place = (1, 1)  # of the run among those of all machines

    def tell_round(self, machine: Machine, watched: BoolArray, rounds: int) -> None:
        """Rounds go on, with these rows of the machine, or of a part of it."""
        if self._progress.is_due():
            seen = self._count(machine, watched | (machine.u != 0.0))
            self._tell(f"{seen:,} of {self._n_rows():,} rows looked at", machine, rounds)

    def tell_coarse(self, machine: Machine, rows: BoolArray) -> None:
        """A coarse step begins, of these rows."""
        if self._progress.is_due():
            seen = self._count(machine, rows)
            self._tell(f"coarse step with {seen:,} of {self._n_rows():,} rows", machine)

    def tell_path(self, breakpoints: int) -> None:
        """The path goes on."""
        if self._progress.is_due():
            self._tell(f"{breakpoints:,} breakpoints of the path", self._machine)

    def tell_judged(self, rounds: int) -> None:
        """The judge has looked at all rows."""
        if self._progress.is_due():
            self._tell(f"all {self._n_rows():,} rows judged", self._machine, rounds)

    def _tell(self, what: str, machine: Machine, rounds: int = 0) -> None:
        number, total = self.place
        weighty = self._count(machine, machine.u != 0.0)
        which = f"machine {number} of {total}, " if total > 1 else ""
        spent = f", {rounds} rounds" if rounds else ""
        self._progress.tell(f"{which}{what}, {weighty:,} carry weight{spent}")

    def _n_rows(self) -> int:
        return self._count(self._machine, np.ones(self._machine.n, dtype=bool))

    def _count(self, machine: Machine, rows: BoolArray) -> int:
        """How many samples some rows of a machine are of."""
        found = np.zeros(machine.samples.n, dtype=bool)
        found[machine.at[rows]] = True
        return int(np.count_nonzero(found))
