# SPDX-License-Identifier: BSD-3-Clause
"""Where the judge need not compute every residual: rows that cannot have moved as far as 0.

Of a large model most rows are far from the margin, and an update of a few rows moves w by little.
The judge bounds what it does not compute (`Looks`), and its verdict is the same. The engine then
knows r of these rows to that bound, watches few of them, and asks for what it watches.
"""

from __future__ import annotations

import numpy as np

from adiabat._core.judge import Looks
from adiabat.engine.machine import Machine
from adiabat.typing import BoolArray

# Rows from which on the judge may bound some; with fewer, to compute all costs as little.
SCREENED = 20_000
# If more than this part is not bounded, all are computed.
MOST_DOUBTFUL = 0.25


def start_looking(machine: Machine) -> None:
    """Let the judge remember residuals of all rows, just computed, where that may save some."""
    usable = machine.n >= SCREENED and machine.d == 0.0 and not machine.samples.by_features
    machine.looks = Looks(machine.held_r, machine.u, machine.b) if usable else None


def look(machine: Machine) -> bool:
    """Residuals by the judge, those that are not bounded; False if all are to be computed."""
    looks, samples = machine.looks, machine.samples
    if looks is None or not machine.in_part:
        return False
    moved = looks.moved(machine.u)
    samples.slots(machine.at[(moved != 0.0) | (machine.u != 0.0)])
    r = looks.look(
        samples.gram.panels, machine.coefficients(), machine.coefficients(moved), machine.at,
        machine.u, machine.t, machine.lo, machine.hi, machine.root, machine.b, MOST_DOUBTFUL,
    )  # fmt: skip
    if r is None:
        return False
    machine.r = r
    machine.is_bounded = looks.n_bounded > 0
    return True


def compute_watched(machine: Machine, watched: BoolArray) -> None:
    """Residuals of watched rows, as of now, before the machine moves."""
    if machine.looks is None or not machine.in_part:
        return
    rows = machine.looks.stale(np.flatnonzero(watched))
    panels, weights = machine.samples.gram.panels, machine.coefficients()
    machine.held_r[rows] = machine.looks.compute(panels, weights, machine.at, machine.t, rows)
