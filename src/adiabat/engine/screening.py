# SPDX-License-Identifier: BSD-3-Clause
"""Where the judge need not compute every residual: rows that cannot have moved as far as 0.

Of a large model most rows are far from the margin, and an update of a few rows moves w by little.
The judge bounds what it does not compute (`Looks`), and its verdict is the same. The engine then
knows r of these rows to that bound, watches few of them, and asks for what it watches.
"""

from __future__ import annotations

import numpy as np

from adiabat._core.looks import Looks
from adiabat.engine.landmarks import TINY, Landmarks, Marks, blend_landmarks, place_landmarks
from adiabat.engine.machine import Machine
from adiabat.engine.samples import LEFT_LINES
from adiabat.typing import BoolArray, IntArray

# Rows from which on the judge may bound some; with fewer, to compute all costs as little.
SCREENED = 20_000
# If more than this part is not bounded, all are computed.
MOST_DOUBTFUL = 0.25
# One row in so many follows a blend of landmarks: those that may come to the margin first.
BLENDED = 8
# Rows that the next look would ask for are kept, unless they are more than one in so many.
MANY = 32


def start_looking(machine: Machine) -> None:
    """Let the judge remember residuals of all rows, just computed, where that may save some."""
    usable = machine.n >= SCREENED and machine.d == 0.0 and not machine.samples.by_features
    machine.looks = Looks(machine.held_r, machine.u, machine.b) if usable else None


def look(machine: Machine) -> bool:
    """Residuals by the judge, those that are not bounded; False if all are to be computed."""
    looks, samples = machine.looks, machine.samples
    machine.weighty = None  # who has weight is asked anew
    if looks is None or not machine.in_part:
        return False
    gram, at, u = samples.gram, machine.at, machine.u
    rows, change = looks.changed(u)
    samples.slots(at[rows])
    weights, moved = (gram.collect(values, at[rows]) for values in (u[rows], change))
    assert weights is not None and moved is not None
    lines, marks = gram.lines(at[rows]), _marks(machine)
    problem = machine.t, machine.lo, machine.hi, machine.root
    f = samples.judged(weights, at[rows])
    doubtful = looks.look(
        gram.panels, moved, lines, rows, change, f, u, *problem, machine.b, marks
    )  # fmt: skip
    if len(doubtful) > MOST_DOUBTFUL * machine.n and not samples.in_lines:
        return False
    apart = machine.root if marks is None else marks.apart
    # those that another look, in which w moves as far, would ask for as well
    near = np.abs(looks.r[doubtful]) <= apart[doubtful] * looks.step
    if np.count_nonzero(near) <= machine.n // MANY:
        samples.draw(at[doubtful[near]])
    looks.adopt(samples.judged(weights, at[doubtful]), machine.t, doubtful, apart)
    machine.weighty = looks.rows
    looks.conclude(np.sort(np.concatenate([rows, doubtful])))
    machine.is_bounded = looks.n_bounded > 0
    # who reads residuals that are bounded reads, and changes, computed ones instead
    machine.held_r = looks.r if machine.is_bounded else looks.r.copy()
    return True


def prepare_to_look(machine: Machine) -> None:
    """Place landmarks, and let columns have values for the rows that looks will ask for first."""
    looks, samples = machine.looks, machine.samples
    if looks is None or not samples.in_lines:
        return
    machine.landmarks = marks = place_landmarks(machine, looks)
    blend_landmarks(machine, marks, looks, _first_to_come(looks, marks, machine.n // BLENDED))
    samples.draw(machine.at[_first_to_come(looks, marks, machine.n // LEFT_LINES)])
    samples.draw(machine.at[marks.rows])


def _first_to_come(looks: Looks, marks: Landmarks, count: int) -> IntArray:
    """So many rows that the least change of w may bring to r = 0."""
    with np.errstate(over="ignore"):  # infinite is far
        reach = np.abs(looks.r) / np.maximum(marks.apart, TINY)
    return np.argpartition(reach, count)[:count]


def _marks(machine: Machine) -> Marks | None:
    """Landmarks as the judge takes them."""
    marks, samples = machine.landmarks, machine.samples
    if marks is None:
        return None
    rows = marks.rows
    samples.draw(machine.at[rows])
    lines = samples.gram.lines(machine.at[rows])
    order = np.argsort(lines)  # as they stand in memory
    blends = marks.blends
    return Marks(
        marks.number, marks.apart, marks.stands, marks.stands[rows[order]], lines[order],
        marks.most_root, blends.rows, blends.parts, blends.shares,
    )  # fmt: skip


def compute_watched(machine: Machine, watched: BoolArray) -> None:
    """Residuals of watched rows, as of now, before the machine moves."""
    looks, samples = machine.looks, machine.samples
    if looks is None or not machine.in_part:
        return
    apart = machine.root if machine.landmarks is None else machine.landmarks.apart
    rows = looks.stale(np.flatnonzero(watched), apart)
    samples.draw(machine.at[rows])
    f = samples.judged(machine.coefficients(), machine.at[rows])
    machine.held_r[rows] = looks.adopt(f, machine.t, rows, apart)
