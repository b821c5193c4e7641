# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator holds: samples by id, and the machines solved on them.

Per-sample arrays here are in the order of learning (`ids_`); `position` says where each sample is
in the solver, which moves samples about as others leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.certificate import Certificate, judge
from adiabat.engine.machine import Machine, RowChange
from adiabat.engine.solver import Outcome, Solver
from adiabat.estimators.ledger import Ledger
from adiabat.formulations.c_svc import CSVC, Pair
from adiabat.kernels import Kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Kernel values are recomputed for at most this many entries at a time (64 MB).
BLOCK_ENTRIES = 8_000_000

_NONE: IntArray = np.empty(0, dtype=np.int64)


def _no_places() -> IntArray:
    return _NONE


def _no_values() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True)
class Change:
    """One update of the samples, by place in the order of learning.

    `X`, `target`, `weight` describe the samples that come in; the first `len(replaced)` of them
    take the places of samples whose features change, the others come at the end under `ids`.
    """

    ids: list[Any]
    X: Any = None
    target: IntArray = field(default_factory=_no_places)
    weight: FloatArray = field(default_factory=_no_values)
    removed: IntArray = field(default_factory=_no_places)
    replaced: IntArray = field(default_factory=_no_places)
    retargeted: IntArray = field(default_factory=_no_places)
    new_target: IntArray = field(default_factory=_no_places)
    reweighed: IntArray = field(default_factory=_no_places)
    new_weight: FloatArray = field(default_factory=_no_values)


class Model:
    """Samples, their targets and weights, and the solver that follows their optimum."""

    def __init__(self, kernel: Kernel, tol: float, formulation: CSVC, ledger: Ledger) -> None:
        self.solver = Solver(kernel, tol)
        self.formulation = formulation
        self.ledger = ledger
        self.position = np.empty(0, dtype=np.int64)
        self.target = np.empty(0, dtype=np.int64)
        self.weight = np.empty(0)
        self.version = 0  # changes carried out

    def __len__(self) -> int:
        return len(self.position)

    @property
    def kernel(self) -> Kernel:
        """The kernel, its parameters settled."""
        return self.solver.samples.kernel

    @property
    def machines(self) -> list[tuple[Pair, Machine]]:
        """The machines, in the order of their pairs of labels."""
        held: dict[Any, Machine] = self.solver.machines
        return [(pair, held[pair]) for pair in self.formulation.machines(self.target)]

    # -- change ----------------------------------------------------------------------------------

    def change(
        self,
        change: Change,
        formulation: CSVC,
        method: str,
        trace: bool,
        announce: Callable[[Outcome], None],
    ) -> None:
        """Carry out a change: all of it, or an exception and nothing.

        `announce` is called when it is done, and like the rest of the commit is not interrupted.
        """
        n = len(self)
        stays = np.ones(n, dtype=bool)
        stays[change.removed] = False
        target, weight = self.target.copy(), self.weight.copy()
        target[change.retargeted] = change.new_target
        weight[change.reweighed] = change.new_weight
        n_replaced = len(change.replaced)
        target[change.replaced] = change.target[:n_replaced]
        weight[change.replaced] = change.weight[:n_replaced]
        target = np.concatenate([target[stays], change.target[n_replaced:]])
        weight = np.concatenate([weight[stays], change.weight[n_replaced:]])
        fresh = np.zeros(n, dtype=bool)
        fresh[change.retargeted] = True
        fresh[change.replaced] = True
        n_new = len(change.target) - n_replaced
        fresh = np.concatenate([fresh[stays], np.ones(n_new, dtype=bool)])
        rebound = np.zeros(n, dtype=bool)
        rebound[change.reweighed] = True
        rebound = np.concatenate([rebound[stays], np.zeros(n_new, dtype=bool)]) & ~fresh
        position = self.position.copy()
        stale = np.concatenate([change.removed, change.replaced, change.retargeted])
        stale_at = self.position[stale]

        def plan(new: IntArray) -> dict[Any, RowChange]:
            position[change.replaced] = new[:n_replaced]
            after = np.concatenate([position[stays], new[n_replaced:]])
            return self._row_changes(
                formulation, target, weight, after, stale_at, self.target[stale], fresh, rebound
            )

        held = set(self.solver.machines)
        wanted = set(formulation.machines(target))
        gone = self.position[np.concatenate([change.removed, change.replaced])]

        def commit(new: IntArray, where: IntArray, outcome: Outcome) -> None:
            position[change.replaced] = new[:n_replaced]
            after = np.concatenate([position[stays], new[n_replaced:]])
            self.position = where[after]
            self.target, self.weight = target, weight
            self.formulation = formulation
            self.ledger.delete(change.removed)
            self.ledger.append(change.ids)
            self._drop_vanished()
            self.version += 1
            announce(outcome)

        self.solver.apply(change.X, gone, plan, held - wanted, commit, method=method, trace=trace)

    def _row_changes(
        self,
        formulation: CSVC,
        target: IntArray,
        weight: FloatArray,
        position: IntArray,
        stale_at: IntArray,
        stale_target: IntArray,
        fresh: npt.NDArray[np.bool_],
        rebound: npt.NDArray[np.bool_],
    ) -> dict[Any, RowChange]:
        """Changes of rows for every machine that will be there."""
        changes: dict[Any, RowChange] = {}
        affected = {*stale_target.tolist(), *target[fresh | rebound].tolist()}
        everyone = np.ones(len(target), dtype=bool)
        for pair in formulation.machines(target):
            machine = self.solver.machines.get(pair)
            if machine is not None and not formulation.concerns(pair, affected):
                continue
            chosen = everyone if machine is None else fresh
            rows = formulation.rows(pair, target[chosen], weight[chosen])
            removed = moved = _NONE
            new_t = new_lo = new_hi = np.empty(0)
            if machine is not None:
                removed = np.flatnonzero(np.isin(machine.at, stale_at))
                if rebound.any():
                    boxes = formulation.rows(pair, target[rebound], weight[rebound])
                    moved = _rows_of(machine, position[rebound][boxes.sample])
                    new_t, new_lo, new_hi = boxes.t, boxes.lo, boxes.hi
            change = RowChange(
                remove=removed,
                add_at=position[chosen][rows.sample],
                add_t=rows.t,
                add_lo=rows.lo,
                add_hi=rows.hi,
                rebound=moved,
                rebound_t=new_t,
                rebound_lo=new_lo,
                rebound_hi=new_hi,
                d=formulation.d,
            )
            if machine is None or change.size:
                changes[pair] = change
        return changes

    # -- what was learned ------------------------------------------------------------------------

    def support(self) -> IntArray:
        """Places (in the order of learning) of the samples that carry weight."""
        carries = np.zeros(self.solver.samples.n, dtype=bool)
        for _, machine in self.machines:
            carries[machine.at[machine.u != 0.0]] = True
        return np.flatnonzero(carries[self.position])

    def weights(self, places: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """Signed weights u of samples, (len(places), machines)."""
        out = np.zeros((len(places), len(self.machines)))
        for column, (_, machine) in enumerate(self.machines):
            total = np.zeros(self.solver.samples.n)
            np.add.at(total, machine.at, machine.u)
            out[:, column] = total[self.position[places]]
        return out

    def biases(self) -> FloatArray:
        """Biases b, one a machine."""
        return np.array([machine.b for _, machine in self.machines])

    def intercepts(self) -> FloatArray:
        """Biases for a linear kernel that measures from zero: w (x - o) + b = w x + (b - w o)."""
        if self.kernel.name != "linear" or self.kernel.origin is None:
            return self.biases()
        places = self.support()
        w = np.asarray(self.features(places).T @ self.weights(places))
        return np.asarray(self.biases() - self.kernel.origin @ w)

    def features(self, places: npt.NDArray[np.integer[Any]]) -> Any:
        """Feature rows of samples."""
        return self.solver.samples.rows(self.position[places])

    def given_kernel(self) -> FloatArray:
        """The kernel matrix that was given, in the order of learning."""
        kernel: FloatArray = self.solver.samples.data[np.ix_(self.position, self.position)]
        return kernel

    def certificate(self, held_fixed: Mapping[str, Any], afresh: bool) -> Certificate:
        """The judge's word: on residuals kept from the last updates, or on all of it afresh."""
        verdicts = {pair: machine.verdict for pair, machine in self.machines}
        if afresh:
            f = self.decide_training()
            for column, (pair, machine) in enumerate(self.machines):
                r = f[machine.at, column] + machine.b - machine.t
                verdicts[pair] = judge(
                    r, machine.u, machine.t, machine.lo, machine.hi, machine.d, machine.b
                )
        tolerances = {pair: self.solver.tolerance(machine) for pair, machine in self.machines}
        worst = max(
            verdicts, key=lambda pair: verdicts[pair].residual / tolerances[pair], default=None
        )
        carries = np.zeros(self.solver.samples.n, dtype=bool)
        for _, machine in self.machines:
            carries[machine.at[machine.u != 0.0]] = True
        return Certificate(
            residual=0.0 if worst is None else verdicts[worst].residual,
            gap=max((verdict.gap for verdict in verdicts.values()), default=0.0),
            n_samples=len(self),
            n_support=int(carries.sum()),
            tol=self.solver.tol if worst is None else tolerances[worst],
            ok=worst is None or verdicts[worst].residual <= tolerances[worst],
            held_fixed=held_fixed,
        )

    def decide(self, X: Any) -> FloatArray:
        """Decision values at new rows, (len(X), machines); above 0 for the pair's second class.

        For a given kernel X has the kernel values against all samples in the order of learning.
        """
        places = self.support()
        weights = self.weights(places)
        out = np.empty((X.shape[0], weights.shape[1]))
        given = self.kernel.name == "precomputed"
        vectors = None if given or len(places) == 0 else self.features(places)
        step = max(1, BLOCK_ENTRIES // max(1, len(places)))
        for start in range(0, X.shape[0], step):
            part = X[start : start + step]
            if given:
                out[start : start + step] = part[:, places] @ weights
            elif vectors is not None:
                out[start : start + step] = self.kernel.block(part, vectors) @ weights
            else:
                out[start : start + step] = 0.0
        return out + self.biases()

    def _drop_vanished(self) -> None:
        """The last sample of a class takes the class with it."""
        present = set(self.formulation.codes(self.target))
        known = self.formulation
        if set(known.label) - present:
            self.formulation = CSVC(
                known.C,
                {code: label for code, label in known.label.items() if code in present},
                {code: factor for code, factor in known.class_weight.items() if code in present},
            )

    def decide_training(self) -> FloatArray:
        """Decision values less b at all samples by position, every kernel value computed anew."""
        samples = self.solver.samples
        places = self.support()
        weights, at = self.weights(places), self.position[places]
        out = np.zeros((samples.n, weights.shape[1]))
        step = max(1, BLOCK_ENTRIES // max(1, len(at)))
        for start in range(0, samples.n, step):
            rows = np.arange(start, min(samples.n, start + step))
            out[rows] = samples.block(rows, at) @ weights
        return out


def _rows_of(machine: Machine, positions: IntArray) -> IntArray:
    """Rows of a machine that stand for samples at positions, in that order."""
    order = np.argsort(machine.at, kind="stable")
    sorted_at = machine.at[order]
    repeat = np.zeros(len(positions), dtype=np.int64)
    if len(positions) > 1:  # a sample listed k times means its first k rows
        same = positions[1:] == positions[:-1]
        for i in np.flatnonzero(same):
            repeat[i + 1] = repeat[i] + 1
    rows: IntArray = order[np.searchsorted(sorted_at, positions) + repeat]
    return rows
