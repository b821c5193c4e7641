# SPDX-License-Identifier: BSD-3-Clause
"""The certificate of a model: the verdict on each machine, and which row is worst."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from adiabat._core.kernel_values import multiply
from adiabat._core.rows import place_at
from adiabat.certificate import Certificate, Problem, Verdict, judge
from adiabat.engine.machine import Machine
from adiabat.engine.samples import Samples
from adiabat.engine.threads import pool_for
from adiabat.error_bound import error_bound
from adiabat.estimators.kernel.model import BLOCK_ENTRIES, Model
from adiabat.logs import Progress
from adiabat.typing import FloatArray, IntArray


def certify(
    model: Model,
    held_fixed: Mapping[str, Any],
    afresh: bool,
    retain: str = "",
    progress: Progress | None = None,
) -> Certificate:
    """From residuals kept since the last updates, or with everything computed afresh.

    The latter may take long, and says how far it is.
    """
    machines = model.machines
    verdicts = [machine.verdict for _, machine in machines]
    f_error = math.nan
    if afresh:
        verdicts, errors = judged_afresh(model, progress)
        f_error = float(np.max(errors, initial=0.0))
    worst, found = _worst_of(verdicts)
    return Certificate(
        residual=found.residual,
        gap=found.gap,
        n_samples=len(model),
        n_support=model.n_support(),
        tol=found.allowed or model.solver.tol,
        ok=found.ok,
        held_fixed=held_fixed,
        n_seen=model.ledger.n_seen,
        retain=retain,
        balance=found.balance,
        gap_tol=found.gap_allowed or model.solver.tol,
        worst=_id_of(model, machines[worst][1], found.worst) if found.worst >= 0 else None,
        rounding=found.rounding,
        f_error=f_error,
        n_bounded=found.n_bounded,
        moved=found.moved,
    )


def _worst_of(verdicts: list[Verdict]) -> tuple[int, Verdict]:
    """Whose verdict is the worst, and that verdict, with what is to hold for all machines."""
    if len(verdicts) < 2:
        return 0, verdicts[0] if verdicts else Verdict()
    worst = max(range(len(verdicts)), key=lambda k: verdicts[k].severity)
    return worst, verdicts[worst]._replace(
        ok=all(verdict.ok for verdict in verdicts),
        balance=max([verdict.balance for verdict in verdicts]),
        n_bounded=sum([verdict.n_bounded for verdict in verdicts]),
        moved=max([verdict.moved for verdict in verdicts]),
    )


def _id_of(model: Model, machine: Machine, row: int) -> Any:
    """Id of the sample that a row stands for."""
    return model.ledger.name_at(place_at(model.position, machine.at[row]))


def judged_afresh(
    model: Model, progress: Progress | None = None
) -> tuple[list[Verdict], FloatArray]:
    """Verdicts on machines, every kernel value computed anew, and how far f may be off by sample.

    The second has the samples in the order of learning, and a column for each machine.
    """
    samples = model.solver.samples
    machines = [machine for _, machine in model.machines]
    f, sizes = decide_training(samples, machines, model.position, progress)
    verdicts, errors = [], np.zeros((samples.n, len(machines)))
    for column, machine in enumerate(machines):
        at = machine.at
        problem = Problem(machine.u, machine.t, machine.lo, machine.hi, machine.d, machine.b)
        r = f[at, column] + machine.b - machine.t
        size = sizes[at, column]
        verdicts.append(judge(problem, r, size, model.solver.tol))
        block = partial(_block_of, samples, at)
        if progress is not None and progress.is_due():
            progress.tell(f"certificate, machine {column + 1} of {len(machines)}")
        features = samples.features[at] if samples.by_features else None
        bound = error_bound(problem, r, size, samples.diagonal[at], block, features)
        np.maximum.at(errors[:, column], at, bound)
    return verdicts, errors[model.position]


def decide_training(
    samples: Samples,
    machines: list[Machine],
    order: IntArray,
    progress: Progress | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Decision values less b at all samples by position, and |K||u|, the sizes of their terms.

    Terms are summed in an order of positions.
    """
    weights = np.zeros((samples.n, len(machines)))
    for column, machine in enumerate(machines):
        np.add.at(weights[:, column], machine.at, machine.u)
    at = order[weights[order].any(axis=1)]
    weights = weights[at]
    f, sizes = np.zeros((2, samples.n, len(machines)))
    step = max(1, BLOCK_ENTRIES // max(1, len(at)))
    with pool_for(samples.n * len(at) * samples.n_features if len(at) else 0):
        for start in range(0, samples.n if len(at) else 0, step):
            rows = np.arange(start, min(samples.n, start + step))
            K = samples.block(rows, at)
            f[rows] = multiply(K, weights)
            sizes[rows] = multiply(np.abs(K, out=K), np.abs(weights))
            if progress is not None and progress.is_due():
                progress.tell(f"certificate, {rows[-1] + 1:,} of {samples.n:,} rows recomputed")
    return f, sizes


def _block_of(samples: Samples, at: IntArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Kernel values between rows of a machine, from the data."""
    return samples.block(at[rows], at[columns])
