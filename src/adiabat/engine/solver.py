# SPDX-License-Identifier: BSD-3-Clause
"""Every machine at its new optimum, judged; or everything as it was.

One update is a `Step`:

1. `add`: new samples are stored at the end;
2. `solve`: rows change (`Machine.begin`), each machine is solved on its watched rows, by exchange
   or along the path; the judge computes the residuals of all rows afresh, violators are watched,
   and the machine is solved again;
3. `commit`: leaving rows and samples are removed.

A step that ends before its commit is rolled back.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import product
from typing import Any, Self

import numpy as np

from adiabat._core import thread_pool
from adiabat._core.conditions import residuals_at
from adiabat._core.judge import weigh
from adiabat._core.rows import nonzeros
from adiabat.engine.bias import centre_bias
from adiabat.engine.groups import Groups
from adiabat.engine.interior import applies, pairs_worth, start_inside
from adiabat.engine.interrupts import deferred_interrupts
from adiabat.engine.machine import Machine
from adiabat.engine.merged import cancel_pairs
from adiabat.engine.path import Path
from adiabat.engine.polish import polish
from adiabat.engine.report import SolveInfo, not_optimal
from adiabat.engine.row_change import NO_ROWS, RowChange
from adiabat.engine.run import Run
from adiabat.engine.samples import Samples
from adiabat.engine.screening import look, prepare_to_look, start_looking
from adiabat.engine.snapshot import Snapshot
from adiabat.engine.square import all_known
from adiabat.engine.standing import find_standing, is_at_rest
from adiabat.engine.threads import BlasHold
from adiabat.errors import NotOptimalError
from adiabat.kernels import Kernel
from adiabat.typing import BoolArray, FloatArray, IntArray

Key = Hashable

# The way of last resort: from weights of 0, as if all rows were new.
ANEW = "anew"
# Turns of solving and judging before the update is given up.
TURNS = 60
# Times that b is centred anew because it was too large for r to have its digits.
CENTRINGS = 3
# Columns kept for samples without weight, as a part of those with weight; those computed ahead.
SPARE_PART, SPARE_LEAST, MOST_SPARE = 2, 64, 512
# Rows of panels from which on threads are woken when there is something to solve.
CALLED = 2_000
# Once so many rows have changed, kernel columns are put in order, and as many moved to the front at
# most; columns in use that may stand behind the others meanwhile. After a fit, all are moved.
TIDYING, STRAGGLERS = 16, 24


class Step:
    """One update of a solver, rolled back unless it is committed.

    BLAS is held at one thread from `add` on, until the commit or the rollback.
    """

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._n_before = solver.samples.n
        self._saved: dict[Key, Snapshot | None] = {}
        self._group = None if solver.samples.group is None else solver.samples.group.copy()
        self._changes: Mapping[Key, RowChange] = {}
        self._standing: dict[Key, FloatArray] = {}  # machines that stay, and r of their new rows
        self._n_changed = 0  # rows of all machines
        self._is_large = False  # so many that it is a new model rather than an update
        self._committed = False
        self._blas = BlasHold()
        self.info = SolveInfo()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._committed:
            self.rollback()

    def add(self, X: Any) -> IntArray:
        """Store new samples, the rows X (or None), and return their positions."""
        if X is None:
            return NO_ROWS
        if X.shape[0] > 1:
            self._blas.take()
            self._solver._wake_threads()
        return self._solver.samples.add(X)

    def solve(
        self, changes: Mapping[Key, RowChange], method: str = "auto", trace: bool = False
    ) -> None:
        """Change rows of machines and solve them. A machine that does not exist is created."""
        solver = self._solver
        self._changes = changes
        if not (trace or method == "path" or solver.is_fork) and solver.tol == solver.judged_by:
            self._standing = find_standing(solver.machines, changes)
        moving = changes
        if self._standing:
            moving = {key: rows for key, rows in changes.items() if key not in self._standing}
        if moving:
            self._blas.take()
        held = solver.machines
        self._saved = {k: held[k].snapshot(moving[k].remove) if k in held else None for k in moving}
        n_rows = sum([len(machine.u) for machine in held.values()])
        n_rows += sum([len(change.add_at) for change in changes.values()])
        self._n_changed = sum([change.size for change in changes.values()])
        self._is_large = 2 * self._n_changed > n_rows
        if not solver.is_fork:
            solver.groups.follow(solver.samples, solver.machines, changes)
            if self._is_large and solver.samples.is_small:
                solver.samples.slots(np.arange(solver.samples.n))
        with all_known(solver.samples, self._is_large and len(moving) > 1):
            if moving:
                solver.attempt(moving, method, trace, self.info, self._saved)
            if self._is_large:
                solver._prepare_for_updates()

    def commit(
        self, removed: IntArray = NO_ROWS, retired: Collection[Key] = ()
    ) -> tuple[IntArray, IntArray]:
        """Remove samples by position and whole machines; returns (from, to): which have moved.

        The caller defers interrupts until it has taken over the new positions.
        """
        self._committed = True
        self._solver.judged_by = self._solver.tol
        try:
            return self._solver._commit(
                self._changes, self._standing, removed, retired, self._n_changed, self._is_large
            )
        finally:
            self._blas.give_back()

    def rollback(self) -> None:
        """Bring machines and samples back to where they were before `add`."""
        with deferred_interrupts():
            if not self._committed:
                self._solver._restore_machines(self._saved)
                self._solver.samples.group = self._group
                self._solver.samples.truncate(self._n_before)
            self._blas.give_back()


class Solver:
    """The samples of a model and its machines, moved from optimum to optimum together."""

    def __init__(self, kernel: Kernel, tol: float) -> None:
        self.samples = Samples(kernel)
        self.machines: dict[Key, Machine] = {}
        self.tol = tol
        self.judged_by = tol  # the tolerance of the verdicts that machines have
        self.is_fork = False
        self.groups = Groups()
        self._untidy = 0  # rows changed since kernel columns were last put in order

    def changing(self) -> Step:
        """An update of samples and rows, rolled back unless it is committed."""
        return Step(self)

    def attempt(
        self,
        changes: Mapping[Key, RowChange],
        method: str,
        trace: bool,
        info: SolveInfo,
        saved: Mapping[Key, Snapshot | None] | None = None,
    ) -> None:
        """Go to the new optimum and judge it; if one way fails, the next one is tried.

        The last way is that of a fit: where the units of all rows changed, r has lost its digits
        to the old weights. If some rows are hidden by the shift, all ways are tried with another.
        """
        if saved is None:
            saved = {key: self.machines[key].snapshot(changes[key].remove) for key in changes}
        other = "exchange" if method == "path" else "path"
        first = True in [one is not None and one.small_shift for one in saved.values()]
        for small_shift, way in product((first, not first), (method, other, ANEW)):
            traced = trace and (way == method or way == "path")
            try:
                self._begin(changes, not traced and way in ("auto", "exchange"), small_shift)
                self._solve(changes, way, traced, info)
                for key in changes:
                    self.machines[key].in_part = False
                return
            except NotOptimalError:
                uneven = any(self.machines[key].is_uneven() for key in changes)
                if way == ANEW and (small_shift != first or not uneven):
                    raise
                self._restore_machines(saved)
                info.fallbacks += 1

    def fork(self, *keys: Key) -> Solver:
        """A copy to try something out on, with some machines, or with all.

        It shares kernel columns; those it needs besides are its own. Updating it does not affect
        this solver. Samples keep their positions and columns, and none can be added.
        """
        other = Solver(self.samples.kernel, self.tol)
        other.samples, other.is_fork = self.samples.fork(), True
        for key in keys or self.machines:
            other.machines[key] = self.machines[key].copied(other.samples)
        return other

    def _begin(self, changes: Mapping[Key, RowChange], carry: bool, small_shift: bool) -> None:
        for key, change in changes.items():
            machine = self.machines.get(key)
            if machine is None:
                machine = self.machines[key] = Machine(self.samples)
            machine.begin(change, carry, small_shift)
            if machine.d != 0.0 or len(self.machines) > 1:
                self.samples.complete()  # r is not bounded, or of few rows each: all are read

    # -- the solve -------------------------------------------------------------------------------

    def _solve(
        self, changes: Mapping[Key, RowChange], method: str, trace: bool, info: SolveInfo
    ) -> None:
        runs, waiting = [], []
        for key, change in changes.items():
            machine = self.machines[key]
            n, added = machine.n, len(change.add_at)
            first, fresh = n - added, added > n // 2 and change.add_u is None
            if method == ANEW:
                machine.start_over()
                first, fresh = 0, True
            touched = change.touched(first, n)
            carried = len(change.rebound) > 0 or machine.d != 0.0
            along_path = method == "path" or trace
            if not (carried or fresh or along_path) and is_at_rest(machine, touched, self.tol):
                continue
            self._wake_threads()
            may_bound = not (along_path or self.is_fork)
            machine.in_part = may_bound and not (fresh or carried)
            runs.append(run := Run(machine, self.tol, touched, fresh, carried, info.progress))
            machine.in_part = may_bound and (machine.in_part or self.samples.in_lines)
            starts = (fresh or run.coarse) and not along_path and applies(machine)
            if starts and (fresh or not run.descend(pairs_worth(machine))):
                start_inside(machine)
                self.refresh([machine])
                run.watched[:] = run.nearly_there = True
                run.coarse = run.undecided = False
            if along_path or (method == "auto" and run.path_is_short()):
                machine.in_part = False
                self.samples.complete()
                self._follow(key, run, trace, info)
            else:
                waiting.append(run)
        self._exchange(waiting)
        pending = runs
        for _ in range(TURNS if runs else 0):
            for run in pending:
                cancel_pairs(run.machine)
            self.refresh([run.machine for run in pending])
            for run in pending:
                for _ in range(CENTRINGS):
                    if not centre_bias(run.machine):
                        break
                    self.refresh([run.machine])
                run.machine.update_verdict(self.tol)
            pending = [run for run in pending if not run.satisfied()]
            if not pending or any(run.stuck for run in pending):
                break
            self._exchange(pending)
        if pending:
            raise not_optimal(pending[0].machine)
        if polished := [run.machine for run in runs if polish(run.machine)]:
            self.refresh(polished)
            for machine in polished:
                machine.update_verdict(self.tol)
        for run in runs:
            if not run.machine.verdict.ok:
                raise not_optimal(run.machine)
            if run.exchange is not None:
                info.rounds += run.exchange.rounds
                info.methods.add("exchange")
                info.fallbacks += run.exchange.fell_back or run.left_undone

    def _exchange(self, runs: list[Run]) -> None:
        """A turn of each. Columns after the coarse steps of many are made at once, in less time."""
        coarse = [run for run in runs if run.coarse and not run.machine.in_part]
        if len(coarse) > 1:
            for run in coarse:
                run.descend()
            rows = [run.machine.at[run.machine.u != 0.0] for run in coarse]
            self.samples.slots(np.unique(np.concatenate(rows)))
        for number, run in enumerate(runs, 1):
            run.solve((number, len(runs)))

    def _wake_threads(self) -> None:
        if len(self.samples.gram.panels) * self.samples.n >= CALLED:
            thread_pool.wake()

    def _follow(self, key: Key, run: Run, trace: bool, info: SolveInfo) -> None:
        """Along the path; what it leaves undone, exchange finishes."""
        path = Path(run.machine, self.tol, trace)
        path.progress = run.progress
        path.follow()
        run.left_undone = not path.completed
        info.breakpoints += path.breakpoints
        info.methods.add("path")
        if trace:
            info.traces[key] = path.trace

    def refresh(self, machines: list[Machine]) -> None:
        """Residuals of all rows of machines from K and u alone, by the judge's own product."""
        machines = [machine for machine in machines if not look(machine)]
        if not machines:
            return
        samples, gram = self.samples, self.samples.gram
        if samples.group is not None or samples.in_lines:
            for machine in machines:
                f = samples.judged(machine.coefficients(), machine.at)
                machine.r = f + (machine.b - machine.t)
                start_looking(machine)
            return
        for machine in machines[1:]:  # their columns first: a new panel adds coefficients
            samples.slots(machine.at[machine.u != 0.0])
        by_machine = [machine.coefficients() for machine in machines]
        weights = np.column_stack(by_machine) if len(machines) > 1 else by_machine[0][:, None]
        panels = gram.panels
        if samples.by_features:  # K = XX', and of X there is one panel
            panels = [samples.features]
            weights = panels[0].T @ weights
        f = np.empty((gram.n_lines, len(machines)))
        weigh(panels, weights, f)
        for column, machine in enumerate(machines):
            machine.r = residuals_at(f, column, gram.lines(machine.at), machine.b, machine.t)
            start_looking(machine)

    def require(self, tol: float) -> None:
        """Set the tolerance; `judged_by` follows now if all machines meet it, else at a change."""
        self.tol = tol
        if tol == self.judged_by:
            return
        found = {key: machine.judged(tol) for key, machine in self.machines.items()}
        if all(verdict.ok for verdict in found.values()):
            with deferred_interrupts():
                self.judged_by = tol
                for key, verdict in found.items():
                    self.machines[key].verdict = verdict

    def restore_machine(self, key: Key, snapshot: Snapshot) -> None:
        """Set up a machine from a saved state; residuals and verdict are made anew."""
        machine = self.machines[key] = Machine(self.samples, snapshot.d)
        machine.at = snapshot.at
        machine.restore(snapshot)
        self.refresh([machine])
        machine.update_verdict(self.tol)

    # -- commit and rollback ---------------------------------------------------------------------

    def _commit(
        self,
        changes: Mapping[Key, RowChange],
        standing: Mapping[Key, FloatArray],
        removed: IntArray,
        retired: Collection[Key],
        n_changed: int,
        is_large: bool,
    ) -> tuple[IntArray, IntArray]:
        for key in retired:
            self.machines.pop(key, None)
        for key in [key for key in changes if key in self.machines]:
            machine, change = self.machines[key], changes[key]
            if key in standing:
                machine.accept(change, standing[key])
            else:
                machine.finish(change.remove)
                machine.refresh_on_schedule()
        if self.is_fork:
            return NO_ROWS, NO_ROWS
        tail, hole = self.samples.remove(removed)
        for machine in self.machines.values():
            machine.straight.follow(machine.at, tail, hole)
        self._untidy += n_changed
        self.samples.settle()
        if is_large:
            self._tidy(0, self.samples.n)
        elif self._untidy >= TIDYING:
            # after many rows, too many columns are out of place: later updates move them
            self._tidy(STRAGGLERS, TIDYING if n_changed <= TIDYING else 0)
        return tail, hole

    def _tidy(self, tolerated: int, most: int) -> None:
        """Release columns that are no longer needed, and move those in use to the front."""
        self._untidy = 0
        if self.samples.is_small:
            return
        weighty = self._weighty()
        self.samples.gram.release(weighty, _spare(weighty))
        self.samples.n_read = 0
        if self.samples.group is not None:
            return  # columns stand by group
        # MARGIN first: its columns are read in every round, those at a bound seldom
        self.samples.gram.gather_front(self._in_margin(), tolerated, most)
        self.samples.gram.gather_front(weighty, tolerated, most)

    def _prepare_for_updates(self) -> None:
        """Columns for the samples nearest to the margin, which updates will ask for first."""
        if self.samples.is_small or self.samples.kernel.function is not None:
            return  # a user's function may be slow: call it only when needed
        weighty, nearness = self._weighty(), np.full(self.samples.n, np.inf)
        for machine in self.machines.values():
            prepare_to_look(machine)
            r = machine.held_r if self.samples.in_lines else machine.r  # bounded ones are far
            np.minimum.at(nearness, machine.at, np.abs(r))
        self.samples.n_read = 0  # a fit reads all rows
        owners = self.samples.gram.owner[self.samples.gram.owner >= 0]
        nearness[owners] = nearness[weighty] = np.inf
        wanted = min(_spare(weighty), MOST_SPARE) - (len(owners) - int(weighty[owners].sum()))
        near = np.argsort(nearness, kind="stable")[: max(0, wanted)]
        self.samples.slots(near[np.isfinite(nearness[near])])

    def _weighty(self) -> BoolArray:
        """Which samples carry weight in some machine."""
        weighty = np.zeros(self.samples.n, dtype=bool)
        for machine in self.machines.values():
            rows = nonzeros(machine.u) if machine.weighty is None else machine.weighty
            weighty[machine.at[rows]] = True
        return weighty

    def _in_margin(self) -> BoolArray:
        """Which samples are in the margin of some machine."""
        inside = np.zeros(self.samples.n, dtype=bool)
        for machine in self.machines.values():
            inside[machine.at[machine.in_margin]] = True
        return inside

    def _restore_machines(self, saved: Mapping[Key, Snapshot | None]) -> None:
        for key, snapshot in saved.items():
            if snapshot is None:
                self.machines.pop(key, None)
            else:
                self.machines[key].restore(snapshot)


def _spare(weighty: BoolArray) -> int:
    return max(SPARE_LEAST, int(weighty.sum()) // SPARE_PART)
