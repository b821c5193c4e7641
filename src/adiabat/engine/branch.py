# SPDX-License-Identifier: BSD-3-Clause
"""A solver that goes its own way from another's optimum, which stays as it is.

Kernel columns are shared; those that the branch asks for beyond them are its own. Rows may leave
and boxes may move as in any update, and the judge looks as closely; but samples keep their
positions and their columns, since the trunk still stands on them. No samples can come in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from adiabat._core.factor import Factor
from adiabat.engine.machine import DEPENDENT, Machine, RowChange
from adiabat.engine.solver import Key, Solver

IntArray = npt.NDArray[np.int64]


class Branch(Solver):
    """Copies of all machines of a solver, on the same samples."""

    def __init__(self, trunk: Solver) -> None:
        super().__init__(trunk.samples.kernel, trunk.tol)
        self.samples = trunk.samples.fork()
        for key, machine in trunk.machines.items():
            self.machines[key] = self._twin(machine)

    def _twin(self, machine: Machine) -> Machine:
        twin = Machine(self.samples, machine.d)
        for name in ("at", "t", "lo", "hi", "u", "r", "root", "in_margin"):
            setattr(twin, name, getattr(machine, name).copy())
        twin.b, twin.verdict, twin.typical = machine.b, machine.verdict, machine.typical
        if machine.factor is not None:  # s^2 numbers copied, where making it anew costs s^3
            twin.factor = Factor(machine.factor.shift, DEPENDENT)
            twin.factor.copy_from(machine.factor)
        return twin

    def _commit(
        self, changes: Mapping[Key, RowChange], removed: IntArray, retired: Collection[Key]
    ) -> IntArray:
        """Rows go, samples and columns stay where they are: they are the trunk's."""
        for key in retired:
            self.machines.pop(key, None)
        for key, change in changes.items():
            if key in self.machines:
                self.machines[key].finish(change.remove)
                self.machines[key].refresh_on_schedule()
        return np.arange(self.samples.n)
