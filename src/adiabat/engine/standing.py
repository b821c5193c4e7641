# SPDX-License-Identifier: BSD-3-Clause
"""Rows without weight that come and go: the optimum stays where it is.

Most rows of a large model carry no weight, and are far from the margin. Where only such rows come
and go, no other residual changes, and the judge says of each of them that its verdict is the same
with and without it (`adds_nothing`). So nothing is computed, or copied, for the others.

Rows whose condition holds but for rounding, targets of several sizes (whose median moves), and a b
that no row holds take the longer way (`is_at_rest`): the verdict is then made anew from all
residuals.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from adiabat._core.conditions import violations
from adiabat._core.judge import adds_nothing
from adiabat.engine.bias import centre_bias, is_anchored
from adiabat.engine.machine import Machine
from adiabat.engine.row_change import NO_VALUES, RowChange
from adiabat.typing import FloatArray, IntArray

# What `strength` may have grown to since b was last centred: refinement moves weights by roundings.
STRONGER = 2.0
# A violation above this part of a target is not looked at for rounding: the machine is solved.
SEEN = 1e-6


def find_standing(
    machines: Mapping[Hashable, Machine], changes: Mapping[Hashable, RowChange]
) -> dict[Hashable, FloatArray]:
    """Machines that stay as they are, and the residuals of rows that come to them."""
    found = {}
    for key, change in changes.items():
        r = _standing(machines[key], change) if key in machines else None
        if r is not None:
            found[key] = r
    return found


def _standing(machine: Machine, change: RowChange) -> FloatArray | None:
    """Residuals of the rows that come, if the machine and its verdict stay as they are; or None."""
    added, gone = len(change.add_at), change.remove
    if machine.factor is None or len(change.rebound) or change.add_u is not None:
        return None
    if machine.d != 0.0 or change.d or added > machine.n:
        return None
    if not machine.verdict.ok or machine.judged_by_sizes or machine.common < 0.0:
        return None
    # the first MARGIN row is inside its box, and so holds b (`centre_bias`)
    if not machine.factor.holds_b() or (len(gone) and machine.in_margin[gone].any()):
        return None
    if not is_anchored(machine, STRONGER * machine.strength_seen):
        return None
    if len(gone):
        r, u, t = machine.held_r[gone], machine.u[gone], machine.t[gone]
        if not adds_nothing(r, u, t, machine.lo[gone], machine.hi[gone], machine.common):
            return None
    if not added:
        return NO_VALUES
    r = machine.residuals_of(change)
    new = r, np.zeros(added), change.add_t, change.add_lo, change.add_hi
    return r if adds_nothing(*new, machine.common) else None


def is_at_rest(machine: Machine, touched: IntArray, tol: float) -> bool:
    """Whether a changed machine is at its optimum as it is: rows came and go that carry no weight.

    Then no other residual has changed since the judge computed it.
    """
    if not _add_nothing(machine, touched, tol) or centre_bias(machine):
        return False
    machine.update_verdict(tol)
    return bool(machine.verdict.ok)


def _add_nothing(machine: Machine, touched: IntArray, tol: float) -> bool:
    """Whether rows that came or are to go carry no weight, and none of them violates."""
    u = machine.u[touched]
    if u.any() or machine.in_margin[touched].any():
        return False
    found = violations(machine.held_r[touched], u, machine.lo[touched], machine.hi[touched])
    most = found.max(initial=0.0)
    if most == 0.0 or most > SEEN * (machine.typical or abs(machine.b)):
        return bool(most == 0.0)
    own = machine.root[touched] ** 2
    return bool(np.all(found <= machine.noise(tol, own, machine.t[touched])))
