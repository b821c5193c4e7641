# SPDX-License-Identifier: BSD-3-Clause
"""b where no row is strictly inside its box: the middle of its interval, as in LIBSVM.

r >= -db where u < hi and r <= -db where u > lo; if one side is open, b is the other end. The
interval is that of the problem, whichever optimal u was found, so that b depends on the data alone.
MARGIN rows that only touch r = 0 at a bound do not restrict it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adiabat._core.conditions import has_room, strength_of
from adiabat.engine.machine import Machine
from adiabat.engine.noise import EPSILON, ROUNDINGS
from adiabat.engine.row_change import NO_ROWS
from adiabat.typing import FloatArray

# A row whose k(x, x) is so many times the typical one is far: its r may be nothing but rounding.
FAR = 1e8


def centre_bias(machine: Machine) -> bool:
    """Take the middle of b's interval, if it has one.

    Returns whether b was so large before that r lost digits to it, and has to be recomputed.
    """
    holds_b = machine.factor.holds_b()
    machine.strength_seen = strength = strength_of(machine.root, machine.u, machine.weighty)
    if holds_b and is_anchored(machine, strength):
        return False
    machine.in_part = False  # all rows have a say
    _move_to_corner(machine, strength)
    if holds_b and machine.n_margin:
        return False
    least, most = _interval(machine)
    shift: float
    tilt = math.fsum(machine.u[machine.margin].tolist())
    if np.isfinite(least) and np.isfinite(most):
        # far outliers in MARGIN do not hold b, but another row has to balance their weights:
        # b goes to where the first row that can do so has r = 0
        shift = 0.5 * (least + most) if tilt == 0.0 else most if tilt > 0.0 else least
    elif np.isfinite(least) or np.isfinite(most):
        shift = least if np.isfinite(least) else most
    else:
        shift = -machine.b  # no row can carry weight: b = 0
    machine.b += shift
    machine.r += shift
    return abs(shift) > abs(machine.b)


def is_anchored(machine: Machine, strength: float) -> bool:
    """Whether the first MARGIN row is inside its box, and so holds b; mostly it is."""
    if machine.n_margin == 0:
        return False
    row = machine.margin[0]
    u, t, lo, hi = machine.u[row], machine.t[row], machine.lo[row], machine.hi[row]
    return has_room(u, t, lo, hi, machine.root[row], machine.b, strength, ROUNDINGS)


def _move_to_corner(machine: Machine, strength: float) -> None:
    """Put all weights at their bounds if what keeps them from there is rounding alone.

    Such weights are left over from the rounding of the sum, or from larger weights before. They
    are below the rounding of u, or move f by less than its rounding.
    """
    u, lo, hi = machine.u, machine.lo, machine.hi
    room = np.minimum(no_weight(strength, machine.b, machine.t, machine.root), 0.5 * (hi - lo))
    low, high = (u >= lo) & (u <= lo + room), (u <= hi) & (u >= hi - room)
    if not np.all(low | high):
        return
    corner = np.where(low, lo, hi)
    if balanced_corner(corner, machine.d) and not _is_seen(machine, corner):
        machine.u, machine.weighty = corner, None
        machine.refactor(NO_ROWS)


def _is_seen(machine: Machine, corner: FloatArray) -> bool:
    """Whether the way to the corner would change some row's own f by more than rounding."""
    rows = np.flatnonzero(machine.u != corner)
    if len(rows) == 0:
        return False
    moved = machine.root[rows] ** 2 * np.abs(corner[rows] - machine.u[rows])
    terms = machine.sizes(rows) + abs(machine.b) + np.abs(machine.t[rows])
    return bool(np.any(moved > ROUNDINGS * EPSILON * terms))


def _interval(machine: Machine) -> tuple[float, float]:
    """The least and the largest change of b that all rows allow; infinite at an open side."""
    others = ~machine.in_margin
    known = -machine.r
    slack = np.zeros(machine.n)
    far = np.flatnonzero(others & (machine.root**2 > FAR * machine.factor.usual))
    if len(far):  # as another row of a sample in MARGIN has it
        terms = machine.sizes(far) + abs(machine.b) + np.abs(machine.t[far])
        slack[far] = ROUNDINGS * EPSILON * terms
    rises, falls = others & (machine.u < machine.hi), others & (machine.u > machine.lo)
    least = float(np.max((known - slack)[rises], initial=-np.inf))
    most = float(np.min((known + slack)[falls], initial=np.inf))
    return least, most


def balanced_corner(corner: FloatArray, d: float) -> bool:
    """Whether bounds sum to d but for the rounding of each: a product of C and a weight."""
    rounding = 0.5 * EPSILON * (float(np.abs(corner).sum()) + 4.0 * abs(d))
    return abs(math.fsum([*corner.tolist(), -d])) <= rounding


def no_weight(strength: float, b: float, t: Any, root: Any) -> Any:
    """The weights below which f shows nothing; `strength` is sum sqrt(k) |u|."""
    root = np.maximum(root, 1e-150)
    return ROUNDINGS * EPSILON * (strength + (abs(b) + np.abs(t)) / root) / root
