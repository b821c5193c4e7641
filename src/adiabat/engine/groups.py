# SPDX-License-Identifier: BSD-3-Clause
"""Which samples are in the same machines: their kernel columns stand together.

One against one, a machine has the samples of two classes only. Where columns stand by class, it
reads those of its classes and no other (`_core/gram.pyx`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random

from adiabat.engine.machine import Machine
from adiabat.engine.row_change import RowChange
from adiabat.engine.samples import Samples


class Groups:
    """Each machine has a random number; the group of a sample is the sum of its machines'."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._lots = Random(0)

    def follow(
        self,
        samples: Samples,
        machines: Mapping[Hashable, Machine],
        changes: Mapping[Hashable, RowChange],
    ) -> None:
        """Groups after a change of rows; none as long as machines have half the samples or more."""
        if samples.by_features:
            return
        if samples.group is None:
            n_machines = len(machines.keys() | changes.keys())
            if n_machines == 1:
                return
            n_rows = sum(machine.n for machine in machines.values())
            n_rows += sum(len(change.add_at) - len(change.remove) for change in changes.values())
            if 2 * n_rows > samples.n * n_machines:
                return
            for key, machine in machines.items():
                samples.regroup(machine.at, self._number(key))
        for key, change in changes.items():
            if len(change.remove):
                samples.regroup(machines[key].at[change.remove], -self._number(key))
            samples.regroup(change.add_at, self._number(key))

    def _number(self, key: Hashable) -> int:
        if key not in self._numbers:
            self._numbers[key] = self._lots.getrandbits(40)
        return self._numbers[key]
