# SPDX-License-Identifier: BSD-3-Clause
"""`memory_limit`, before an update begins: what must be in memory is compared with it, and kernel
columns get the rest.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from adiabat.engine.mapped import in_memory
from adiabat.engine.memory import (
    allot,
    bytes_beside_columns,
    bytes_of,
    bytes_of_rows,
    regain,
    require_room,
)
from adiabat.engine.solver import Solver
from adiabat.estimators.kernel.plan import Plan

_REMEDY: Final = "a larger memory_limit, fewer rows or features, or retain="


def keep_within(plan: Plan, former: Solver, limit: float | None) -> None:
    """MemoryError if what no file can take is more than a limit; else columns get what is left.

    What goes is never refused, nor what is there already. `former` is the solver before the change.
    """
    solver, gram = plan.solver, plan.solver.samples.gram
    regain(former.samples)
    if limit is None:
        if gram.memory.limit is not None:
            allot(gram, None, 0.0)
        return
    if solver.is_fork:  # it shares the columns that there are
        return
    n_new = 0 if plan.X is None else plan.X.shape[0]
    margins = [len(machine.margin) for machine in former.machines.values()]
    beside = bytes_beside_columns(
        bytes_of_rows(solver.samples) + bytes_of(plan.X), _rows_of_machines(plan, n_new), margins
    )
    if n_new:
        n = solver.samples.n + n_new
        require_room(beside, limit, f"Holding {n:,} rows, without kernel columns,", _REMEDY)
    if former is not solver:  # its columns are there until the commit
        beside += in_memory(former.samples.gram.panels)
    allot(gram, limit, beside)


def _rows_of_machines(plan: Plan, n_new: int) -> float:
    """Rows of all machines after a change, about."""
    samples, machines = plan.solver.samples, plan.solver.machines
    if machines and samples.n:
        return sum([machine.n for machine in machines.values()]) * (1.0 + n_new / samples.n)
    target, weight, known = plan.target, plan.weight, plan.formulation
    own = np.zeros(len(target))
    rows = [known.rows(key, target, weight, own) for key in known.machines(target)]
    return float(sum([len(one.t) for one in rows]))
