# SPDX-License-Identifier: BSD-3-Clause
"""Where the judge need not compute every residual: rows that cannot have moved as far as 0.

Of a large model most rows are far from the margin, and an update of a few rows moves w by little.
The judge bounds what it does not compute (`Looks`), and its verdict is the same. The engine then
knows r of these rows to that bound, watches few of them, and asks for what it watches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat._core.looks import Looks
from adiabat.engine.landmarks import TINY, place_landmarks
from adiabat.engine.machine import Machine
from adiabat.engine.samples import LEFT_LINES
from adiabat.typing import BoolArray

# Rows from which on the judge may bound some; with fewer, to compute all costs as little.
SCREENED = 20_000
# If more than this part is not bounded, all are computed.
MOST_DOUBTFUL = 0.25
# Rows that the next look would ask for are kept, unless they are more than one in so many.
MANY = 32


def start_looking(machine: Machine) -> None:
    """Let the judge remember residuals of all rows, just computed, where that may save some."""
    usable = machine.n >= SCREENED and machine.d == 0.0 and not machine.samples.by_features
    machine.looks = Looks(machine.held_r, machine.u, machine.b) if usable else None


def look(machine: Machine) -> bool:
    """Residuals by the judge, those that are not bounded; False if all are to be computed."""
    looks, samples = machine.looks, machine.samples
    if looks is None or not machine.in_part:
        return False
    gram, at = samples.gram, machine.at
    rows, change = looks.changed(machine.u)
    samples.slots(at[rows])
    weights = machine.coefficients()
    moved = gram.collect(change, at[rows])
    assert moved is not None
    marks = _marks(machine)
    doubtful = looks.look(
        gram.panels, moved, gram.lines(at[rows]), rows, machine.u, machine.t, machine.lo,
        machine.hi, machine.root, machine.b, marks,
    )  # fmt: skip
    if len(doubtful) > MOST_DOUBTFUL * machine.n and not samples.in_lines:
        return False
    apart = machine.root if marks is None else marks[1]
    # those that another look, in which w moves as far, would ask for as well
    near = np.abs(looks.r[doubtful]) <= apart[doubtful] * (looks.drift - looks.before)
    if np.count_nonzero(near) <= machine.n // MANY:
        samples.draw(at[doubtful[near]])
    looks.adopt(samples.judged(weights, at[doubtful]), machine.t, doubtful)
    machine.is_bounded = looks.n_bounded > 0
    # who reads residuals that are bounded reads, and changes, computed ones instead
    machine.held_r = looks.r if machine.is_bounded else looks.r.copy()
    return True


def prepare_to_look(machine: Machine) -> None:
    """Place landmarks, and let columns have values for the rows that looks will ask for first."""
    looks, samples = machine.looks, machine.samples
    if looks is None or not samples.in_lines:
        return
    machine.landmarks = place_landmarks(machine, looks)
    with np.errstate(over="ignore"):  # infinite is far
        reach = np.abs(looks.r) / np.maximum(machine.landmarks.apart, TINY)
    some = machine.n // LEFT_LINES
    samples.draw(machine.at[np.argpartition(reach, some)[:some]])
    samples.draw(machine.at[machine.landmarks.rows()])


def _marks(machine: Machine) -> Any:
    """Landmarks as the judge takes them."""
    marks, samples = machine.landmarks, machine.samples
    if marks is None:
        return None
    rows = marks.rows()
    samples.draw(machine.at[rows])
    lines = samples.gram.lines(machine.at[rows])
    order = np.argsort(lines)  # as they stand in memory
    return marks.number, marks.apart, marks.stands[rows[order]], lines[order]


def compute_watched(machine: Machine, watched: BoolArray) -> None:
    """Residuals of watched rows, as of now, before the machine moves."""
    if machine.looks is None or not machine.in_part:
        return
    rows, samples = machine.looks.stale(np.flatnonzero(watched)), machine.samples
    samples.draw(machine.at[rows])
    f = samples.judged(machine.coefficients(), machine.at[rows])
    machine.held_r[rows] = machine.looks.adopt(f, machine.t, rows)
