# SPDX-License-Identifier: BSD-3-Clause
"""The last digits of f where weights are huge.

An f is a sum of terms u k(x, z). Where C is 1e6 and the classes all but touch, terms of 1e8 add up
to an f of 1, and an update that ends at a few roundings of these (docs/numerics.md) has fixed f on
the margin to no better than 1e-7; away from it, on the far side of what three margin rows span,
that is several times as much. But u holds more digits than a plain sum shows. So r of the margin
is summed to twice the precision, and the margin system answers to that: iterative refinement, two
or three solves with the factor that is there.
"""

from __future__ import annotations

import numpy as np

from adiabat._core.conditions import within
from adiabat._core.twofold import weighted_sums
from adiabat.engine.machine import FINE, Machine
from adiabat.engine.noise import BLOCK_ENTRIES
from adiabat.typing import FloatArray

# Solves at most.
SOLVES = 4


def polish(machine: Machine) -> bool:
    """Bring r of MARGIN and the sum of u as near to 0 and d as u can; whether it changed anything.

    Weights stay in their boxes and no row changes sets. Needs r as of now, which is then out of
    date. Where all of MARGIN are far outliers nothing is done: to match their r by b would cost all
    other rows their digits.
    """
    margin, unit = machine.margin, machine.typical or abs(machine.b)
    if not machine.factor.holds_b() or within(machine.r, machine.t, margin, unit, FINE):
        return False
    margin = margin.copy()
    lo, hi = machine.lo[margin], machine.hi[margin]
    before, best, machine.weighty = None, np.inf, None
    for _ in range(SOLVES):
        r, missing = _exactly(machine)
        off = max(float(np.abs(r).max()), abs(missing))
        if before is not None and off > 0.5 * best:
            if off > best:
                machine.u[margin], machine.b = before
            break
        before, best = (machine.u[margin], machine.b), off
        du, db = machine.factor.solve(-r, missing)
        machine.u[margin] = np.clip(machine.u[margin] + du, lo, hi)
        machine.b += db
    return True


def _exactly(machine: Machine) -> tuple[FloatArray, float]:
    """Residuals of MARGIN, and what the sum of u lacks, from sums that round once."""
    margin, weighty = machine.margin, machine.rows_with_weight()
    u = machine.u[weighty]
    # f - t once more as a sum: b and -t are terms like the others, only not to be rounded first
    start = np.full(len(margin), machine.b)
    r = np.empty(len(margin))
    step = max(1, BLOCK_ENTRIES // max(1, len(weighty)))
    for first in range(0, len(margin), step):
        rows = margin[first : first + step]
        K = np.column_stack([machine.kernel(rows, weighty), machine.t[rows]])
        r[first : first + step] = weighted_sums(K, np.append(u, -1.0), start[first : first + step])
    ones = np.ones((1, len(u)))
    return r, float(weighted_sums(ones, -u, np.array([machine.d]))[0])
