# SPDX-License-Identifier: BSD-3-Clause
"""A change of samples as changes of rows: what the engine is to solve, and what the model becomes.

A plan is made before anything moves. It knows targets, weights and formulation after the change;
where new samples are, it is told once they are stored (`row_changes`). `adopt` makes the model what
was planned.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.rows import ascending, delete_entries, rename
from adiabat.engine.machine import Machine
from adiabat.engine.row_change import NO_ROWS, RowChange
from adiabat.engine.solver import Solver
from adiabat.engine.straight import rows_in_turn
from adiabat.engine.trace import RowNames, name_rows
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.formulations.base import Key, Rows
from adiabat.typing import BoolArray, FloatArray, IntArray


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
        self._known_after: tuple[npt.NDArray[Any], FloatArray] | None = None
        self.formulation = change.formulation or model.formulation
        self._is_plain = self._comes_and_goes()
        if self._is_plain:
            self._keys = model.keys
        else:
            self.formulation = self.formulation.resolve(self.target, self.weight)
            self._keys = self.formulation.machines(self.target)
        if change.kernel is None:
            self.solver, self.X = model.solver, change.X
            self.gone = model.position[np.concatenate([change.removed, change.replaced])]
            self.retired = set(model.solver.machines).difference(self._keys)
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
    def _after(self) -> tuple[npt.NDArray[Any], FloatArray]:
        if self._known_after is None:
            self._known_after = after(self._model, self._change)
        return self._known_after

    @property
    def target(self) -> npt.NDArray[Any]:
        """Targets after the change, in the order of learning."""
        return self._after[0]

    @property
    def weight(self) -> FloatArray:
        """Weights after the change."""
        return self._after[1]

    @cached_property
    def position(self) -> IntArray:
        """Positions after the change and before the commit, once the new ones are known."""
        if self._change.kernel is not None:
            return self._new
        position, n_replaced = self._model.position, len(self._change.replaced)
        if n_replaced:
            position = position.copy()
            position[self._change.replaced] = self._new[:n_replaced]
        return np.asarray(delete_entries(position, self._removed, self._new[n_replaced:]))

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
        reshaped = len(model) > 0 and (
            self.formulation.reshapes(model.formulation) or not model.is_judged
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
        n, kept = len(model), len(model) - len(removed)
        new = np.arange(kept, kept + len(change.target) - len(change.replaced))
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
        model, changes = self._model, {}
        many = len(self._keys) > 1
        affected = set(model.target[stale].tolist()) if many else set()
        for places in (fresh, moved) if many else ():
            if len(places):
                affected.update(self._known(places)[1].tolist())
        for key in self._keys:
            machine: Machine | None = self.solver.machines.get(key)
            if many and machine is not None and not self.formulation.concerns(key, affected):
                continue
            everyone = np.arange(len(self.target)) if machine is None else fresh
            at, rows = self._rows(key, everyone)
            parts: dict[str, Any] = {}
            if machine is not None:
                parts["remove"] = machine.straight.rows_of(
                    machine.at, model.position[stale], self.solver.samples.n
                )
                if len(moved):
                    bound_at, bound = self._rows(key, moved)
                    parts["rebound"] = rows_in_turn(machine.at, bound_at)
                    parts["rebound_t"] = bound.t
                    parts["rebound_lo"], parts["rebound_hi"] = bound.lo, bound.hi
            rows_change = self._row_change(key, at, rows, **parts)
            if machine is None or rows_change.size:
                changes[key] = rows_change
        return changes

    def _rows(self, key: Key, chosen: IntArray) -> tuple[IntArray, Rows]:
        """Positions and rows of some samples in a machine."""
        at, target, weight = self._known(chosen)
        own = self.solver.samples.diagonal[at]
        rows = self.formulation.rows(key, target, weight, own)
        return at[rows.sample], rows

    def _known(self, chosen: IntArray) -> tuple[IntArray, npt.NDArray[Any], FloatArray]:
        """Positions, targets and weights of samples, by their places after the change."""
        new = chosen - (len(self._model) - len(self._removed))
        if self._is_plain and (len(new) == 0 or new.min() >= 0):
            return self._new[new], self._change.target[new], self._change.weight[new]
        return self.position[chosen], self.target[chosen], self.weight[chosen]

    def _row_change(self, key: Key, at: IntArray, rows: Rows, **parts: Any) -> RowChange:
        held = self._model if self._is_plain else self
        d = self.formulation.total(key, held.target, held.weight)
        return RowChange(add_at=at, add_t=rows.t, add_lo=rows.lo, add_hi=rows.hi, d=d, **parts)

    # -- another kernel: all rows anew -----------------------------------------------------------

    def _all_rows(self, warm: bool) -> dict[Any, RowChange]:
        everyone = np.arange(len(self.target))
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


def after(model: Model, change: SampleChange) -> tuple[npt.NDArray[Any], FloatArray]:
    """Targets and weights of the samples once a change is carried out."""
    removed, n_replaced = ascending(change.removed), len(change.replaced)
    target, weight = model.target, model.weight
    if change.revises:
        target, weight = target.copy(), weight.copy()
        target[change.retargeted] = change.new_target
        weight[change.reweighed] = change.new_weight
        target[change.replaced] = change.target[:n_replaced]
        weight[change.replaced] = change.weight[:n_replaced]
    target = delete_entries(target, removed, change.target[n_replaced:])
    return target, delete_entries(weight, removed, change.weight[n_replaced:])


def _staying(model: Model, change: SampleChange) -> BoolArray:
    """Which samples are not removed."""
    return ~np.isin(np.arange(len(model)), change.removed)
