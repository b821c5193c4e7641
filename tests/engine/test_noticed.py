# SPDX-License-Identifier: BSD-3-Clause
"""Faults that once went unnoticed, each with the test that notices it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adiabat import SVC, SVR
from adiabat._core.rounds import NEGATIVE
from adiabat.engine import solver as solvers
from adiabat.engine.exchange import Exchange
from adiabat.engine.machine import Machine
from adiabat.engine.merged import cancel_pairs
from adiabat.engine.path import PATIENCE, Path
from adiabat.engine.polish import polish
from adiabat.engine.row_change import RowChange
from adiabat.errors import IndefiniteKernelError
from adiabat.kernels import make_kernel

RNG = np.random.default_rng(4)
X = RNG.standard_normal((80, 3))
Y = (X[:, 0] + 0.5 * RNG.standard_normal(80) > 0.0).astype(int)


def machine_of(model: Any) -> Machine:
    (machine,) = model._model.solver.machines.values()
    assert isinstance(machine, Machine)
    return machine


def test_a_path_left_undone_counts_as_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops before its first breakpoint, and exchange does the whole way."""
    model = SVC(C=3.0, gamma=0.3, solver="path").fit(X[:60], Y[:60])
    assert model.update(X[60:70], Y[60:70]).fallbacks == 0
    monkeypatch.setattr(Path, "follow", lambda self: None)
    report = model.update(X[70:], Y[70:])
    assert report.fallbacks == 1 and report.rounds > 0 and report.certificate.ok


def test_columns_without_weight_are_released_but_for_some() -> None:
    """A function's columns are never all kept: those of rows that lost their weight go."""
    n = 600
    points = np.random.default_rng(0).standard_normal((n, 2))
    labels = (points[:, 0] > 0.0).astype(int)
    labels[::2] = 1 - labels[::2]  # noise: most rows have weight
    model = SVC(C=1.0, kernel=lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(axis=2)))
    model.fit(points, labels)
    model.revise(model.ids_, y=(points[:, 0] > 0.0).astype(int))  # and now few have
    solver = model._model.solver
    weighty = int(np.count_nonzero(machine_of(model).u))
    occupied = int(np.count_nonzero(solver.samples.gram.owner >= 0))
    assert not solver.samples.is_small and weighty < 100
    assert occupied <= weighty + max(solvers.SPARE_LEAST, weighty // solvers.SPARE_PART)


def test_curvature_that_rounding_does_not_explain_is_refused() -> None:
    exchange = Exchange.__new__(Exchange)
    exchange.machine = machine_of(SVC(gamma=0.3).fit(X, Y))
    exchange._refuse_negative(-0.5 * NEGATIVE)
    with pytest.raises(IndefiniteKernelError, match="kernel='rbf' is not positive semidefinite"):
        exchange._refuse_negative(-2.0 * NEGATIVE)


class Watched:
    """A factor that says whether what is left of removed rows was overwritten."""

    def __init__(self, factor: Any) -> None:
        self.factor, self.wiped = factor, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.factor, name)

    def wipe_removed(self) -> None:
        self.factor.wipe_removed()
        self.wiped = True


def test_rows_that_go_take_their_place_and_their_traces_with_them() -> None:
    machine = machine_of(SVC(C=3.0, gamma=0.3).fit(X, Y))
    idle = np.flatnonzero((machine.u == 0.0) & ~machine.in_margin)
    gone = idle[:3]
    worst = int(gone[1]) + 1
    assert worst not in gone and len(gone) == 3
    machine.verdict = machine.verdict._replace(worst=worst)
    at = machine.at[worst]
    machine.factor = watched = Watched(machine.factor)
    machine.finish(gone)
    assert machine.at[machine.verdict.worst] == at
    assert machine.verdict.worst == worst - 2 and watched.wiped


def test_rows_of_one_sample_do_not_pull_against_each_other() -> None:
    machine = machine_of(SVR(gamma=1.0, C=0.5, epsilon=0.1).fit(X, X[:, 0]))
    net = np.bincount(machine.at, machine.u)
    pulled = int(machine.at[np.argmax(machine.u)])
    up, down = (np.flatnonzero((machine.at == pulled) & side) for side in _sides(machine))
    machine.u[up] += 0.01
    machine.u[down] -= 0.01
    cancel_pairs(machine)
    np.testing.assert_allclose(np.bincount(machine.at, machine.u), net, rtol=0.0, atol=1e-15)
    assert machine.u[down].tolist() == [0.0]


def _sides(machine: Machine) -> tuple[Any, Any]:
    return machine.hi > 0.0, machine.lo < 0.0


def test_ties_are_parted_each_time_the_path_stands_still() -> None:
    path = Path(machine_of(SVC(C=3.0, gamma=0.3).fit(X, Y)), 1e-9, keep_trace=False)
    motion = SimpleNamespace(b=0.0, breakpoints=0, row=0, event="", eta=0.0, idle=0, done=False)

    def stands_still(most: int, patience: int) -> bool:
        motion.breakpoints += 1
        motion.idle += 1
        motion.done = motion.idle > 2 * PATIENCE
        return True

    motion.run = stands_still
    assert not path.parted
    path._run(motion, 100)
    assert path.parted and path._spreads == 2


def test_a_trace_counts_its_sets() -> None:
    """RESERVE has no weight, and here more rows than are in ERROR."""
    model = SVC(C=3.0, gamma=0.3, solver="path").fit(X[:70], Y[:70])
    report = model.update(X[70:], Y[70:], trace=True)
    assert report.trace is not None
    (trace,) = report.trace
    for point in trace:
        reserve = int(np.count_nonzero(point.u == 0.0))
        assert point.n_reserve == reserve
        assert point.n_margin + point.n_error + reserve == len(point.u)
    assert any(point.n_reserve != point.n_error for point in trace)


def test_polishing_takes_an_error_out_of_b() -> None:
    machine = machine_of(SVC(C=3.0, gamma=0.3).fit(X, Y))
    b = machine.b
    machine.b += 1e-6
    machine.r += 1e-6
    assert polish(machine)
    assert abs(machine.b - b) < 1e-12


def test_a_row_that_all_but_equals_one_in_margin_does_not_join_it() -> None:
    """A twin 3e-6 away has a pivot of 1e-11: no rounding, and still no direction of its own."""
    half = X[:20]
    points, t = np.r_[half, half + 3e-6 / np.sqrt(3.0)], np.tile(np.where(Y[:20] > 0, 1.0, -1.0), 2)
    solver = solvers.Solver(make_kernel("rbf", gamma=0.5, degree=3, coef0=0.0, X=points), 1e-9)
    lo, hi = np.minimum(t, 0.0), np.maximum(t, 0.0)
    with solver.changing() as step:
        rows = step.add(points)
        step.solve({"only": RowChange(add_at=rows, add_t=t, add_lo=lo, add_hi=hi, d=0.0)})
        step.commit()
    machine = solver.machines["only"]
    machine.begin(
        RowChange(rebound=np.arange(40), rebound_t=t, rebound_lo=1.5 * lo, rebound_hi=1.5 * hi)
    )
    answers = []

    def try_twins(motion: Any, role: Any) -> None:
        members = set(machine.margin.tolist())
        twins = {(row + 20) % 40 for row in members} - members
        answers.extend(motion.join(twin) for twin in sorted(twins)[:1])

    Path(machine, 1e-9, keep_trace=False, observe=try_twins).follow()
    assert answers and not any(answers)
