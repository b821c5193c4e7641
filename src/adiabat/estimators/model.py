# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator holds: samples by id, and the machines solved on them.

Per-sample arrays here are in the order of learning (`ids_`); `position` says where each sample is
in the solver, which moves samples about as others leave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.kernel_values import multiply
from adiabat._core.rows import nonzero, without
from adiabat.engine.machine import NO_ROWS, Machine, RowChange
from adiabat.engine.solver import Outcome, Solver
from adiabat.engine.threads import pool_for
from adiabat.engine.trace import RowNames, name_rows
from adiabat.errors import NotOptimalError
from adiabat.estimators.change import Change
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.naming import name_traces, named_by_id
from adiabat.formulations import Formulation
from adiabat.formulations.base import Key, Rows
from adiabat.kernels import Kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Kernel values are recomputed for at most this many entries at a time: 8 MB, in the cache.
BLOCK_ENTRIES = 1 << 20


class Model:
    """Samples, their targets and weights, and the solver that follows their optimum."""

    def __init__(
        self, kernel: Kernel, tol: float, formulation: Formulation, ledger: Ledger
    ) -> None:
        self.solver = Solver(kernel, tol)
        self.formulation = formulation
        self.ledger = ledger
        self.position = np.empty(0, dtype=np.int64)
        self.target: npt.NDArray[Any] = np.empty(0, dtype=formulation.target_type)
        self.weight = np.empty(0)
        self.version = 0  # changes carried out
        self.notes: dict[Any, float] = {}  # of a policy, by id
        self.calibration: Any = None  # curves from f to probabilities; gone with every change
        self._keys: list[Key] = []
        self._keys_of: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.position)

    @property
    def kernel(self) -> Kernel:
        """The kernel, its parameters settled."""
        return self.solver.samples.kernel

    @property
    def tol(self) -> float:
        """What the model is judged by, from the next change on at the latest."""
        return self.solver.tol

    @tol.setter
    def tol(self, tol: float) -> None:
        self.solver.require(tol)

    @property
    def is_judged(self) -> bool:
        """Whether the verdicts on all machines are by the tolerance now in force."""
        return self.solver.tol == self.solver.judged_by

    @property
    def machines(self) -> list[tuple[Key, Machine]]:
        """The machines, in the order of the formulation."""
        held: dict[Any, Machine] = self.solver.machines
        if self._keys_of is not self.target:  # which is replaced, never written to
            self._keys, self._keys_of = self.formulation.machines(self.target), self.target
        return [(key, held[key]) for key in self._keys]

    # -- change ----------------------------------------------------------------------------------

    def change(
        self,
        change: Change,
        formulation: Formulation,
        method: str,
        trace: bool,
        announce: Callable[[Outcome], None],
    ) -> None:
        """Carry out a change: all of it, or an exception and nothing.

        `announce` is called when it is done, and like the rest of the commit is not interrupted.
        """
        n_replaced, removed = len(change.replaced), np.sort(change.removed)
        target, weight = self.after(change)
        settled = formulation.settle(target, weight)
        # a tolerance that the machines do not hold by yet is a reason to solve all of them
        reshaped = len(self) > 0 and (settled.reshapes(self.formulation) or not self.is_judged)
        stale, fresh, moved = self._touched(change, removed, formulation.targets_move, reshaped)
        stale_at = self.position[stale]
        position = self.position

        def place(new: IntArray) -> None:
            nonlocal position
            if n_replaced:
                position = position.copy()
                position[change.replaced] = new[:n_replaced]
            position = without(position, removed, new[n_replaced:])

        named: dict[Any, RowNames] = {}

        def plan(new: IntArray) -> dict[Any, RowChange]:
            place(new)
            changes = self._row_changes(
                settled, wanted, target, weight, position, stale_at, self.target[stale], fresh,
                moved,
            )  # fmt: skip
            if trace:
                id_at = np.empty(self.solver.samples.n, dtype=object)
                id_at[self.position] = self.ledger.ids
                id_at[new] = [*self.ledger.ids[change.replaced], *change.ids]
                for key, rows in changes.items():
                    named[key] = name_rows(self.solver.machines.get(key), rows, id_at)
            return changes

        wanted = settled.machines(target)
        retired = set(self.solver.machines).difference(wanted)
        gone = self.position[np.concatenate([change.removed, change.replaced])]

        def commit(new: IntArray, where: IntArray, outcome: Outcome) -> None:
            self.position = where.take(position)
            self.target, self.weight = target, weight
            self.formulation = settled
            self._keys, self._keys_of = wanted, target
            for name in self.ledger.ids[change.removed].tolist() if self.notes else ():
                self.notes.pop(name, None)
            self.ledger.delete(change.removed)
            if change.passing:  # so that their numbers are not given again
                stay = len(self.ledger)
                self.ledger.append(change.passing)
                self.ledger.delete(range(stay, len(self.ledger)))
            self.ledger.append(change.ids)
            self.version += 1
            name_traces(outcome, settled, named)
            announce(outcome)

        try:
            self.solver.apply(change.X, gone, plan, retired, commit, method=method, trace=trace)
        except NotOptimalError as error:
            raise named_by_id(error, position, self._names_after(change)) from error

    def _names_after(self, change: Change) -> list[Any]:
        """Ids of the samples once a change is carried out, in the order of learning."""
        return [*self.ledger.ids[self.staying(change)].tolist(), *change.ids]

    def staying(self, change: Change) -> npt.NDArray[np.bool_]:
        """Which samples are not removed."""
        return ~np.isin(np.arange(len(self)), change.removed)

    def after(self, change: Change) -> tuple[npt.NDArray[Any], FloatArray]:
        """Targets and weights of the samples once a change is carried out."""
        removed, n_replaced = np.sort(change.removed), len(change.replaced)
        target, weight = self.target, self.weight
        if change.revises:
            target, weight = target.copy(), weight.copy()
            target[change.retargeted] = change.new_target
            weight[change.reweighed] = change.new_weight
            target[change.replaced] = change.target[:n_replaced]
            weight[change.replaced] = change.weight[:n_replaced]
        target = without(target, removed, change.target[n_replaced:])
        return target, without(weight, removed, change.weight[n_replaced:])

    def _touched(
        self, change: Change, removed: IntArray, targets_move: bool, reshaped: bool
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Who a change touches: samples whose rows go, who get rows, and whose rows change.

        The first by their place before the change, the others by that after it.
        """
        n, kept = len(self), len(self) - len(removed)
        new = np.arange(kept, kept + len(change.target) - len(change.replaced))
        if not (reshaped or change.revises):
            return removed, new, NO_ROWS
        fresh, moved = np.zeros(n, dtype=bool), np.full(n, reshaped)
        fresh[change.replaced] = True
        moved[change.reweighed] = True
        (moved if targets_move else fresh)[change.retargeted] = True
        stale = np.union1d(np.flatnonzero(fresh), removed)
        fresh, moved = without(fresh, removed), without(moved & ~fresh, removed)
        return stale, np.concatenate([np.flatnonzero(fresh), new]), np.flatnonzero(moved)

    def _row_changes(
        self,
        formulation: Formulation,
        keys: list[Key],
        target: npt.NDArray[Any],
        weight: FloatArray,
        position: IntArray,
        stale_at: IntArray,
        stale_target: npt.NDArray[Any],
        new: IntArray,
        again: IntArray,
    ) -> dict[Any, RowChange]:
        """Changes of rows for every machine that will be there."""
        changes: dict[Any, RowChange] = {}
        affected = {*stale_target.tolist(), *target[new].tolist(), *target[again].tolist()}
        stale = np.zeros(self.solver.samples.n, dtype=bool)
        stale[stale_at] = True

        def rows_of(key: Key, chosen: IntArray) -> tuple[IntArray, Rows]:
            at = position[chosen]
            own = self.solver.samples.diagonal[at]
            rows = formulation.rows(key, target[chosen], weight[chosen], own)
            return at[rows.sample], rows

        for key in keys:
            machine = self.solver.machines.get(key)
            if machine is not None and not formulation.concerns(key, affected):
                continue
            at, rows = rows_of(key, np.arange(len(target)) if machine is None else new)
            parts: dict[str, Any] = {}
            if machine is not None:
                parts["remove"] = np.flatnonzero(stale.take(machine.at))
                if len(again):
                    bound_at, bound = rows_of(key, again)
                    parts["rebound"] = machine.rows_at(bound_at)
                    parts["rebound_t"] = bound.t
                    parts["rebound_lo"], parts["rebound_hi"] = bound.lo, bound.hi
            changes[key] = RowChange(
                add_at=at,
                add_t=rows.t,
                add_lo=rows.lo,
                add_hi=rows.hi,
                d=formulation.total(key, target, weight),
                **parts,
            )
            if machine is not None and not changes[key].size:
                del changes[key]
        return changes

    def resolve(
        self,
        kernel: Kernel,
        formulation: Formulation,
        X: Any,
        method: str,
        announce: Callable[[Outcome], None],
        change: Change | None = None,
        trace: bool = False,
    ) -> None:
        """Carry out a change, if any, with another kernel or other features: all solved anew.

        It starts from the weights that are there, which tend to be near; to be traced, from none,
        since there is no path of optima from kernel to kernel. X has a row for each sample after
        the change, in the order of learning.
        """
        change = change or Change(ids=[])
        solver = Solver(kernel, self.solver.tol)
        target, weight = self.after(change)
        settled = formulation.settle(target, weight)
        place = self._places_after(change, formulation.targets_move)
        named: dict[Any, RowNames] = {}

        def plan(new: IntArray) -> dict[Any, RowChange]:
            changes = {}
            own = solver.samples.diagonal[new]
            for key in settled.machines(target):
                rows = settled.rows(key, target, weight, own)
                start, margin = None, NO_ROWS
                if not trace:
                    start, margin = self._start(key, rows, place, len(target))
                changes[key] = RowChange(
                    add_at=new[rows.sample],
                    add_t=rows.t,
                    add_lo=rows.lo,
                    add_hi=rows.hi,
                    add_u=start,
                    add_margin=margin,
                    d=settled.total(key, target, weight),
                )
                if trace:
                    id_at = np.empty(solver.samples.n, dtype=object)
                    id_at[new] = [*self.ledger.ids[self.staying(change)], *change.ids]
                    named[key] = name_rows(None, changes[key], id_at)
            return changes

        def commit(new: IntArray, where: IntArray, outcome: Outcome) -> None:
            self.solver, self.formulation = solver, settled
            self.position = where[new]
            self.target, self.weight = target, weight
            self.ledger.delete(change.removed)
            self.ledger.append(change.ids)
            self.version += 1
            name_traces(outcome, settled, named)
            announce(outcome)

        try:
            solver.apply(X, NO_ROWS, plan, set(), commit, method=method, trace=trace)
        except NotOptimalError as error:
            places = np.arange(len(target))
            raise named_by_id(error, places, self._names_after(change)) from error

    def _places_after(self, change: Change, targets_move: bool) -> IntArray:
        """Where each sample will be in the order of learning; -1 if it goes or has other rows."""
        stays = self.staying(change)
        place = np.where(stays, np.cumsum(stays) - 1, -1)
        place[change.replaced] = -1
        if not targets_move:
            place[change.retargeted] = -1
        return place

    def _start(
        self, key: Key, rows: Rows, place: IntArray, n: int
    ) -> tuple[FloatArray | None, IntArray]:
        """Weights and MARGIN rows to start from: those of the samples that keep their rows."""
        machine = self.solver.machines.get(key)
        if machine is None:
            return None, NO_ROWS
        learned = np.full(self.solver.samples.n, -1)
        learned[self.position] = place
        order = np.argsort(learned[machine.at], kind="stable")
        order = order[learned[machine.at[order]] >= 0]
        kept = np.zeros(n, dtype=bool)
        kept[place[place >= 0]] = True
        again = np.flatnonzero(kept[rows.sample])
        start, row_of = np.zeros(len(rows.t)), np.full(machine.n, -1)
        start[again] = np.clip(machine.u[order], rows.lo[again], rows.hi[again])
        row_of[order] = again
        margin = row_of[machine.margin]
        return start, margin[margin >= 0]

    def in_order(self, machine: Machine) -> tuple[IntArray, IntArray]:
        """(order, margin): rows in the order in which the formulation gives them for all samples,
        and the MARGIN rows by their places in it.
        """
        learned = np.empty(self.solver.samples.n, dtype=np.int64)
        learned[self.position] = np.arange(len(self))
        order = np.argsort(learned[machine.at], kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return order, place[machine.margin]

    # -- what was learned ------------------------------------------------------------------------

    def support(self) -> IntArray:
        """Places (in the order of learning) of the samples that carry weight."""
        return np.flatnonzero(self._carrying()[self.position])

    def _carrying(self) -> npt.NDArray[np.bool_]:
        """Which samples, by position, carry weight: the rows of one may cancel each other."""
        n = self.solver.samples.n
        carries = np.zeros(n, dtype=bool)
        for _, machine in self.machines:
            carries |= np.bincount(machine.at, machine.u, minlength=n) != 0.0
        return carries

    def n_support(self) -> int:
        """How many samples carry weight."""
        machines = list(self.solver.machines.values())
        if len(machines) == 1 and machines[0].n == len(self):  # a row for each sample
            return nonzero(machines[0].u)
        return int(self._carrying().sum())

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

    def zero_but_for_rounding(
        self, column: int, values: FloatArray, X: Any, own: FloatArray, t: Any = 0.0, few: int = 1
    ) -> npt.NDArray[np.bool_]:
        """Which values f - t of a machine at rows X are 0 but for `few` times the rounding of f.

        `own` are k(x, x). A bound on the rounding clears most rows; for the others it is computed.
        """
        machine = self.machines[column][1]
        zero = np.abs(values) <= few * machine.noise(self.solver.tol, own, t)
        doubtful = np.flatnonzero(zero)
        if len(doubtful):
            sizes = self._weigh(X[doubtful], sizes=True)[:, column]
            targets = t if np.ndim(t) == 0 else t[doubtful]
            noise = machine.noise(self.solver.tol, own[doubtful], targets, sizes)
            zero[doubtful] = np.abs(values[doubtful]) <= few * noise
        return zero

    def decide(self, X: Any) -> FloatArray:
        """Decision values at new rows, (len(X), machines).

        For a given kernel X has the kernel values against all samples in the order of learning.
        """
        return self._weigh(X) + self.biases()

    def _weigh(self, X: Any, sizes: bool = False) -> FloatArray:
        """Decision values less b at new rows, or the sizes of the terms they are the sums of."""
        places = self.support()
        weights = self.weights(places)
        if sizes:
            np.abs(weights, out=weights)
        out = np.zeros((X.shape[0], weights.shape[1]))
        step = max(1, BLOCK_ENTRIES // max(1, len(places)))
        with pool_for(X.shape[0] * len(places) * X.shape[1]):
            for start in range(0, X.shape[0] if len(places) else 0, step):
                values = self._kernel_values(X[start : start + step], places)
                out[start : start + step] = multiply(np.abs(values) if sizes else values, weights)
        return out

    def _kernel_values(self, X: Any, places: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """Kernel values of new rows against samples."""
        if self.kernel.name == "precomputed":
            values: FloatArray = X[:, places]
            return values
        if self.kernel.function is not None:
            return self.kernel.block(X, self.features(places))
        samples = self.solver.samples
        return self.kernel.block(X, samples.view(self.position[places], X.shape[0]))
