# SPDX-License-Identifier: BSD-3-Clause
"""The record of a path, and whose rows it is about.

A breakpoint knows rows by number, in the order that they have during the update: those held before,
then those that come. Once the update is over that order is gone, so that it is written down here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.engine.machine import Machine
from adiabat.engine.path import Breakpoint
from adiabat.engine.row_change import RowChange


@dataclass(frozen=True)
class RowNames:
    """The rows of one machine during an update.

    `t`, `lo` and `hi` are those before the update for rows that leave, after it for all others.
    """

    ids: npt.NDArray[Any]
    t: npt.NDArray[np.float64]
    lo: npt.NDArray[np.float64]
    hi: npt.NDArray[np.float64]
    leaving: npt.NDArray[np.bool_]
    entering: npt.NDArray[np.bool_]


class Trace(list[Breakpoint]):
    """The breakpoints of one machine in one update, in order.

    Attributes
    ----------
    machine : tuple
        The labels of its two classes, or () where there is but one machine.
    rows : RowNames
        Whose rows they are.
    """

    def __init__(
        self, breakpoints: Iterable[Breakpoint], machine: tuple[Any, ...], rows: RowNames
    ) -> None:
        super().__init__(breakpoints)
        self.machine = machine
        self.rows = rows

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.machine, self.rows)


def name_rows(machine: Machine | None, change: RowChange, id_at: npt.NDArray[Any]) -> RowNames:
    """The rows of a machine (None: it is new) in a change; `id_at` has ids by position."""
    held = machine if machine is not None and machine.n else None
    n = held.n if held is not None else 0
    at = np.empty(n + len(change.add_at), dtype=np.int64)
    t, lo, hi = np.empty((3, len(at)))
    if held is not None:
        at[:n], t[:n], lo[:n], hi[:n] = held.at, held.t, held.lo, held.hi
    at[n:], t[n:], lo[n:], hi[n:] = change.add_at, change.add_t, change.add_lo, change.add_hi
    t[change.rebound] = change.rebound_t
    lo[change.rebound], hi[change.rebound] = change.rebound_lo, change.rebound_hi
    leaving = np.zeros(len(at), dtype=bool)
    leaving[change.remove] = True
    return RowNames(id_at[at], t, lo, hi, leaving, np.arange(len(at)) >= n)
