# SPDX-License-Identifier: BSD-3-Clause
"""A change of samples as changes of rows: what the engine is to solve, and what the model becomes.

A plan is made before anything moves. It knows targets, weights and formulation after the change;
where new samples are, it is told once they are stored (`row_changes`). `adopt` makes the model what
was planned.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from adiabat._core.rows import ascending, delete_entries, rename
from adiabat.engine.machine import Machine
from adiabat.engine.row_change import NO_ROWS, NO_VALUES, RowChange
from adiabat.engine.solver import Solver
from adiabat.engine.straight import rows_in_turn
from adiabat.engine.trace import RowNames, name_rows
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.formulations.base import NO_ROWS as NOTHING
from adiabat.formulations.base import Key, Rows
from adiabat.typing import BoolArray, FloatArray, IntArray

#: Positions, targets and weights of some samples.
Known: TypeAlias = tuple[IntArray, npt.NDArray[Any], FloatArray]
NOBODY: Known = (NO_ROWS, NO_VALUES, NO_VALUES)


class Plan:
    """A change of a model, planned.

    Attributes
    ----------
    solver : Solver
        The model's own, or a new one if the kernel changes.
    X
        Features of the samples that are new to the solver, or None.
    formulation
        That after the change.
    target, weight : ndarray
        Those after the change. Where samples only come and go, nobody asks for them before.
    gone : ndarray
        Positions of the samples that leave the solver.
    retired : set
        Machines that are no longer needed.
    """

    def __init__(self, model: Model, change: SampleChange) -> None:
        self._model, self._change = model, change
        self._removed = ascending(change.removed)
        self._new: IntArray = NO_ROWS  # positions of samples that come
        self._position: IntArray | None = None
        self._target: npt.NDArray[Any] | None = None
        self._weight: FloatArray | None = None
        self.formulation = change.formulation or model.formulation
        self._is_plain = self._comes_and_goes()
        if self._is_plain:
            self._keys = model.keys
        else:
            self.formulation = self.formulation.resolve(self.target, self.weight)
            self._keys = self.formulation.machines(self.target)
        if change.kernel is None:
            self.solver, self.X = model.solver, change.X
            leaving = change.removed
            if len(change.replaced):
                leaving = np.concatenate([leaving, change.replaced])
            self.gone = model.position[leaving]
            held = model.solver.machines
            self.retired = set() if self._is_plain else set(held).difference(self._keys)
        else:
            self.solver, self.X = Solver(change.kernel, model.solver.tol), change.rows
            self.gone, self.retired = NO_ROWS, set()

    def _comes_and_goes(self) -> bool:
        """Whether samples only come and go, and the formulation needs to see no other for it."""
        model, change = self._model, self._change
        if change.kernel is not None or change.revises or model.keys_of is not model.target:
            return False
        known = self.formulation is model.formulation
        return known and model.formulation.stays(model.target, self._removed)

    @property
    def target(self) -> npt.NDArray[Any]:
        """Targets after the change, in the order of learning."""
        if self._target is None:
            self._target = targets_after(self._model, self._change, self._removed)
        return self._target

    @property
    def weight(self) -> FloatArray:
        """Weights after the change."""
        if self._weight is None:
            self._weight = weights_after(self._model, self._change, self._removed)
        return self._weight

    @property
    def position(self) -> IntArray:
        """Positions after the change and before the commit, once the new ones are known."""
        if self._change.kernel is not None:
            return self._new
        if self._position is None:
            before = self._model.position
            self._position = _exchanged(before, self._change, self._removed, self._new)
        return self._position

    def ids(self) -> list[Any]:
        """Ids after the change, in the order of learning."""
        ids = self._model.ledger.ids[_staying(self._model, self._change)]
        return [*ids.tolist(), *self._change.ids]

    def row_changes(self, new: IntArray, warm: bool = True) -> dict[Any, RowChange]:
        """Changes of rows for every machine, given the positions of the new samples.

        With another kernel, a `warm` start is from the weights that are there.
        """
        self._new, model = new, self._model
        if self.solver is not model.solver:
            return self._all_rows(warm)
        # a tolerance that the machines do not hold by yet is a reason to solve all of them
        known = self.formulation is model.formulation
        reshaped = len(model.position) > 0 and not (
            model.is_judged and (known or not self.formulation.reshapes(model.formulation))
        )
        return self._changed_rows(*self._touched(self._removed, reshaped))

    def row_names(self, new: IntArray, changes: dict[Any, RowChange]) -> dict[Any, RowNames]:
        """Whose rows the machines have during the update; asked before it begins."""
        model, ids = self._model, self._model.ledger.ids
        id_at = np.empty(self.solver.samples.n, dtype=object)
        if self.solver is not model.solver:
            id_at[new] = self.ids()
        else:
            id_at[model.position] = ids
            id_at[new] = [*ids[self._change.replaced], *self._change.ids]
        held = self.solver.machines
        return {key: name_rows(held.get(key), rows, id_at) for key, rows in changes.items()}

    def adopt(self, old: IntArray, new: IntArray) -> None:
        """Make the model the planned one; samples at `old` positions have moved to `new` ones."""
        model, change = self._model, self._change
        model.solver, model.formulation = self.solver, self.formulation
        if self._is_plain:
            model.exchange(self._removed, change.target, change.weight, self._new)
        else:
            model.position, model.target, model.weight = self.position, self.target, self.weight
        rename(model.position, old, new, once=True)
        model.keys, model.keys_of = self._keys, model.target
        for name in model.ledger.ids[change.removed].tolist() if model.notes else ():
            model.notes.pop(name, None)
        model.ledger.delete(change.removed)
        if change.passing:  # so that their numbers are not given again
            stay = len(model.ledger)
            model.ledger.append(change.passing)
            model.ledger.delete(range(stay, len(model.ledger)))
        model.ledger.record(change.ids)
        model.version += 1

    # -- the same kernel: rows that go, come and change ------------------------------------------

    def _touched(self, removed: IntArray, reshaped: bool) -> tuple[IntArray, IntArray, IntArray]:
        """Samples whose rows go, who get rows, and whose rows change.

        The first by their place before the change, the others by that after it.
        """
        model, change = self._model, self._change
        n, n_new = len(model), len(change.target) - len(change.replaced)
        new = np.arange(n - len(removed), n - len(removed) + n_new) if n_new else NO_ROWS
        if not (reshaped or change.revises):
            return removed, new, NO_ROWS
        fresh, moved = np.zeros(n, dtype=bool), np.full(n, reshaped)
        fresh[change.replaced] = True
        moved[change.reweighed] = True
        (moved if self.formulation.targets_move else fresh)[change.retargeted] = True
        stale = np.union1d(np.flatnonzero(fresh), removed)
        fresh, moved = delete_entries(fresh, removed), delete_entries(moved & ~fresh, removed)
        return stale, np.concatenate([np.flatnonzero(fresh), new]), np.flatnonzero(moved)

    def _changed_rows(
        self, stale: IntArray, fresh: IntArray, moved: IntArray
    ) -> dict[Any, RowChange]:
        model, change, changes = self._model, self._change, {}
        leaving, n_samples = model.position[stale], self.solver.samples.n
        if self._is_plain:  # nobody but new samples gets rows
            coming = self._new, change.target, change.weight
        else:
            coming = self._known(fresh)
        changing = self._known(moved)
        many = len(self._keys) > 1
        affected = set(model.target[stale].tolist()) if many else set()
        for _, target, _ in (coming, changing) if many else ():
            affected.update(target.tolist())
        for key in self._keys:
            machine: Machine | None = self.solver.machines.get(key)
            if machine is None:
                at, rows = self._rows(key, self._known(np.arange(len(self.target))))
                changes[key] = self._row_change(key, at, rows)
                continue
            if many and not self.formulation.concerns(key, affected):
                continue
            remove = NO_ROWS
            if len(leaving):
                remove = machine.straight.rows_of(machine.at, leaving, n_samples)
            parts: dict[str, Any] = {}
            if len(moved):
                bound_at, bound = self._rows(key, changing)
                parts["rebound"] = rows_in_turn(machine.at, bound_at)
                parts["rebound_t"] = bound.t
                parts["rebound_lo"], parts["rebound_hi"] = bound.lo, bound.hi
            rows_change = self._row_change(key, *self._rows(key, coming), remove=remove, **parts)
            if rows_change.size:
                changes[key] = rows_change
        return changes

    def _rows(self, key: Key, some: Known) -> tuple[IntArray, Rows]:
        """Positions and rows of some samples in a machine."""
        at, target, weight = some
        if len(at) == 0:
            return at, NOTHING
        own = self.solver.samples.diagonal[at]
        rows = self.formulation.rows(key, target, weight, own)
        return at[rows.sample], rows

    def _known(self, chosen: IntArray) -> Known:
        """Samples by their places after the change."""
        if len(chosen) == 0:
            return NOBODY
        return self.position[chosen], self.target[chosen], self.weight[chosen]

    def _row_change(self, key: Key, at: IntArray, rows: Rows, **parts: Any) -> RowChange:
        d = 0.0
        if not self.formulation.shift_free:
            d = self.formulation.total(key, self.target, self.weight)
        return RowChange(add_at=at, add_t=rows.t, add_lo=rows.lo, add_hi=rows.hi, d=d, **parts)

    # -- another kernel: all rows anew -----------------------------------------------------------

    def _all_rows(self, warm: bool) -> dict[Any, RowChange]:
        everyone = self._known(np.arange(len(self.target)))
        place = self._places()
        changes = {}
        for key in self._keys:
            at, rows = self._rows(key, everyone)
            start, margin = self._start(key, rows, place) if warm else (None, NO_ROWS)
            changes[key] = self._row_change(key, at, rows, add_u=start, add_margin=margin)
        return changes

    def _places(self) -> IntArray:
        """Where each sample will be in the order of learning; -1 if it goes or has other rows."""
        change = self._change
        stays = _staying(self._model, change)
        place = np.where(stays, np.cumsum(stays) - 1, -1)
        place[change.replaced] = -1
        if not self.formulation.targets_move:
            place[change.retargeted] = -1
        return place

    def _start(self, key: Key, rows: Rows, place: IntArray) -> tuple[FloatArray | None, IntArray]:
        """Weights and MARGIN rows to start from: those of the samples that keep their rows."""
        model = self._model
        machine = model.solver.machines.get(key)
        if machine is None:
            return None, NO_ROWS
        learned = np.full(model.solver.samples.n, -1)
        learned[model.position] = place
        order = np.argsort(learned[machine.at], kind="stable")
        order = order[learned[machine.at[order]] >= 0]
        kept = np.zeros(len(self.target), dtype=bool)
        kept[place[place >= 0]] = True
        again = np.flatnonzero(kept[rows.sample])
        start, row_of = np.zeros(len(rows.t)), np.full(machine.n, -1)
        start[again] = np.clip(machine.u[order], rows.lo[again], rows.hi[again])
        row_of[order] = again
        margin = row_of[machine.margin]
        return start, margin[margin >= 0]


def targets_after(model: Model, change: SampleChange, removed: IntArray) -> npt.NDArray[Any]:
    """Targets of the samples once a change is carried out; those `removed` in ascending order."""
    target = model.target
    if len(change.retargeted):
        target = target.copy()
        target[change.retargeted] = change.new_target
    return _exchanged(target, change, removed, change.target)


def weights_after(model: Model, change: SampleChange, removed: IntArray) -> FloatArray:
    """Their weights."""
    weight = model.weight
    if len(change.reweighed):
        weight = weight.copy()
        weight[change.reweighed] = change.new_weight
    return _exchanged(weight, change, removed, change.weight)


def _exchanged(
    values: npt.NDArray[Any], change: SampleChange, removed: IntArray, new: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Values of the samples once some have others, some are removed, and new ones are there."""
    n_replaced = len(change.replaced)
    if n_replaced:
        values = values.copy()
        values[change.replaced], new = new[:n_replaced], new[n_replaced:]
    return delete_entries(values, removed, new)


def _staying(model: Model, change: SampleChange) -> BoolArray:
    """Which samples are not removed."""
    return ~np.isin(np.arange(len(model)), change.removed)
