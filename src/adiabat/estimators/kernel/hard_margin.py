# SPDX-License-Identifier: BSD-3-Clause
"""A hard margin (``C=inf``): the bound that stands in for C is raised until no weight reaches it.

The model is then the optimum for every larger bound as well. If no bound is enough there is no such
model: the classes overlap, or no f passes within epsilon of all targets. With weights at a bound B,
f is a sum of terms up to B k(x, x); once their rounding hides a margin of 1, raising B
shows nothing more.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from adiabat.engine.solver import Solver

_UNIT: Final = np.finfo(np.float64).eps
# Of a margin, which has the size 1: what the rounding of f may hide before the search ends.
_HIDDEN: Final = 1e-2

NO_HARD_MARGIN: Final = (
    "C=inf allows no errors, and this data cannot be fitted without: the classes overlap under "
    "this kernel, or the targets are not within epsilon of any function. Use a finite C, or a "
    "kernel that separates the rows"
)


def has_errors(solver: Solver) -> bool:
    """Whether a row with any force is at the bound that stands in for C."""
    for machine in solver.machines.values():
        at_bound = (machine.u >= machine.hi) & (machine.hi > 0.0)
        at_bound |= (machine.u <= machine.lo) & (machine.lo < 0.0)
        if at_bound.any():
            return True
    return False


def require_precision(solver: Solver, harder: Any) -> None:
    """ValueError if a larger bound, that of a formulation, could not show a margin."""
    if harder.bound * solver.samples.largest * _UNIT > _HIDDEN:
        raise ValueError(NO_HARD_MARGIN)


def require_finite(formulation: Any) -> None:
    """Refuse what-if questions where C=inf.

    Without a row, or with another, weights may reach the bound that stands in for C.
    """
    if formulation.raised() is not None:
        raise ValueError(
            "C=inf: what the model would be with other rows is known for a finite C only; call "
            f"retune(C={formulation.bound:g}) first, which is as good as infinite for these rows"
        )
