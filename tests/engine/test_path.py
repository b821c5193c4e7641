# SPDX-License-Identifier: BSD-3-Clause
"""The path of the engine is the path of the papers, breakpoint by breakpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from adiabat.engine import path as engine_path
from adiabat.engine.path import Breakpoint, Path
from adiabat.engine.row_change import RowChange
from adiabat.kernels import make_kernel
from engine.rig import PAIR, Rig

from oracles import batch_qp, path_numpy, problems
from oracles.path_numpy import Event

EVERY_FAMILY = {**problems.FAMILIES, **problems.C_VARIANTS}
TOL = 1e-8
ROUNDINGS = 100.0

# Where b moves alone the oracle has one name for both of the engine's events.
SAME_EVENT = {
    Event.START: {"start"},
    Event.MARGIN_MEETS_BOUND: {"to bound"},
    Event.BOUND_JOINS_MARGIN: {"to margin"},
    Event.ENTERING_JOINS_MARGIN: {"entered"},
    Event.BIAS_MOVES: {"to margin", "entered"},
    Event.ARRIVE: {"arrival"},
}


class Pool(NamedTuple):
    """Rows in general position: Gaussian features, noisy labels, weights all different.

    Different weights keep a margin row from meeting its bound just where the driven rows arrive,
    and the driven rates from cancelling: there the papers leave a choice, and the oracle and the
    engine need not choose alike.
    """

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]
    C: float


def pool(seed: int, n: int, C: float) -> Pool:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return Pool(X, y, rng.uniform(0.5, 2.0, n), C)


class Both:
    """The engine and the oracle side by side, on the first rows of a pool."""

    def __init__(self, pool: Pool, n: int) -> None:
        self.pool = pool
        kernel = make_kernel("rbf", gamma=0.5, degree=3, coef0=0.0, X=pool.X)
        self.rig = Rig(kernel, pool.C)
        rows = batch_qp.svc_rows(pool.y, pool.C, pool.weight)
        K = problems.gram("rbf", pool.X, pool.X, gamma=0.5)
        self.oracle = path_numpy.Path(K, rows.t, rows.lo, rows.hi)
        self.rig.change(pool.X[:n], pool.y[:n], pool.weight[:n])
        self.oracle.move(enter=np.arange(n))
        margin = self.rig.names_of_rows()[self.rig.machine.margin]
        assert set(margin.tolist()) == set(self.oracle.order)
        # In the engine a sample that comes gets the next name; in the pool its row.
        self.row_of = list(range(n))

    def move(self, enter: Sequence[int] = (), leave: Sequence[int] = ()) -> list[Breakpoint]:
        """Rows of the pool come and go, in both; the two trajectories are compared."""
        coming = list(enter)
        if len(coming) == 1 and not leave:
            exact = self.oracle.increment(coming[0])
        elif len(leave) == 1 and not coming:
            exact = self.oracle.decrement(leave[0])
        else:
            exact = self.oracle.move(enter=coming, leave=np.array(leave, dtype=int))
        names = [len(self.row_of) - 1 - self.row_of[::-1].index(row) for row in leave]
        order = [self.row_of[name] for name in self.rig.names_of_rows()] + coming
        X, y, weight = (part[coming] for part in self.pool[:3])
        outcome = self.rig.change(
            X if coming else None, y, weight, remove=names, method="path", trace=True
        )
        self.row_of += coming
        assert outcome.fallbacks == 0 and outcome.methods == {"path"}
        trace: list[Breakpoint] = outcome.traces[PAIR]
        self.compare(trace, exact, np.array(order))
        assert outcome.breakpoints == sum(point.row >= 0 for point in trace)
        assert self.rig.violation() <= ROUNDINGS * self.rig.rounding()
        return trace

    @staticmethod
    def compare(
        trace: list[Breakpoint],
        exact: list[path_numpy.Breakpoint],
        order: npt.NDArray[np.int64],
    ) -> None:
        """The same events of the same rows, and u, r, b and the sets at each of them."""
        assert Event.CENTRE_BIAS not in {point.event for point in exact}
        if all(point.event is Event.START for point in exact):
            exact = exact[:1]
        assert len(trace) == len(exact)
        for found, known in zip(trace, exact, strict=True):
            assert found.event in SAME_EVENT[known.event]
            assert (order[found.row] if found.row >= 0 else -1) == known.row
            np.testing.assert_allclose(found.u, known.u[order], atol=TOL, rtol=0)
            np.testing.assert_allclose(found.r, known.r[order], atol=TOL, rtol=0)
            assert found.b == pytest.approx(known.b, abs=TOL)
            assert found.n_margin == known.sizes.margin
            if known.event is not Event.BIAS_MOVES:
                assert found.eta == pytest.approx(known.step, abs=TOL)


# ---------------------------------------------------------------------------------------------
# The papers


@pytest.mark.parametrize("C", [0.3, 3.0, 100.0])
def test_one_row_comes_or_goes(C: float) -> None:
    """CP01: increments, then decrements, one row at a time."""
    both = Both(pool(21, 50, C), 30)
    breakpoints = sum(len(both.move(enter=[row])) - 1 for row in range(30, 50))
    rng = np.random.default_rng(0)
    breakpoints += sum(len(both.move(leave=[int(row)])) - 1 for row in rng.permutation(50)[:30])
    assert breakpoints > 50


@pytest.mark.parametrize("C", [0.3, 3.0, 100.0])
def test_many_rows_come(C: float) -> None:
    """KT09: all of them in one motion."""
    both = Both(pool(22, 70, C), 30)
    assert len(both.move(enter=range(30, 50))) > 10
    both.move(enter=range(50, 70))


@pytest.mark.parametrize("C", [0.3, 3.0, 100.0])
def test_many_rows_go(C: float) -> None:
    both = Both(pool(23, 70, C), 70)
    assert len(both.move(leave=range(0, 40, 2))) > 10
    both.move(leave=range(1, 40, 2))


@pytest.mark.parametrize("C", [0.3, 3.0, 100.0])
def test_rows_come_and_go_in_one_motion(C: float) -> None:
    both = Both(pool(24, 90, C), 40)
    rng = np.random.default_rng(1)
    inside = set(range(40))
    for start in range(40, 90, 10):
        leave = rng.choice(sorted(inside), 8, replace=False).tolist()
        enter = list(range(start, start + 10))
        both.move(enter=enter, leave=leave)
        inside = (inside - set(leave)) | set(enter)


def test_rows_that_are_content_leave_no_breakpoint() -> None:
    both = Both(pool(25, 60, 3.0), 60)
    idle = np.flatnonzero((both.oracle.u == 0.0) & (np.abs(both.oracle.r) > 1e-3))[:4]
    trace = both.move(leave=idle.tolist())
    assert [point.event for point in trace] == ["start"]
    trace = both.move(enter=idle.tolist())
    assert [point.event for point in trace] == ["start"]


# ---------------------------------------------------------------------------------------------
# Every breakpoint is an optimum of the rows that are not driven


def test_the_conditions_hold_all_along_the_path() -> None:
    data = pool(26, 60, 5.0)
    both = Both(data, 40)
    settled = np.arange(10, 40)
    lo, hi = (part[settled] for part in (both.oracle.lo, both.oracle.hi))
    for point in both.move(enter=range(40, 60), leave=range(10))[1:]:
        u, r = point.u[settled], point.r[settled]
        assert np.all(r[u < hi - 1e-9] > -TOL) and np.all(r[u > lo + 1e-9] < TOL)
        assert abs(point.u.sum()) < TOL
        # the rows of the three sets are all the rows
        assert point.n_margin + point.n_error + point.n_reserve == len(point.u)


# ---------------------------------------------------------------------------------------------
# Path and exchange agree, on degenerate data too


@pytest.mark.parametrize("name", EVERY_FAMILY)
def test_path_and_exchange_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same objective and same f; what the path leaves undone, exchange may finish.

    Once all rows are watched from the start, once a few, and more as the drift demands it.
    """
    for seed, watched in enumerate((engine_path.WATCH_LEAST, 3)):
        monkeypatch.setattr(engine_path, "WATCH_LEAST", watched)
        monkeypatch.setattr(engine_path, "WATCH_PART", 1_000)
        problem = EVERY_FAMILY[name](np.random.default_rng(seed))
        half = len(problem.y) // 2
        rigs = {}
        for method in ("path", "exchange"):
            rig = rigs[method] = Rig.of(problem)
            rig.change(problem.X[:half], problem.y[:half], problem.sample_weight[:half])
            outcome = rig.change(
                problem.X[half:],
                problem.y[half:],
                problem.sample_weight[half:],
                remove=range(0, half, 2),
                method=method,
            )
            nothing_to_do = method == "exchange" and outcome.rounds == 0
            assert method in outcome.methods or nothing_to_do
            assert rig.violation() <= ROUNDINGS * rig.rounding()
        one, other = rigs["path"], rigs["exchange"]
        room = float((one.machine.hi - one.machine.lo).sum())
        allowed = ROUNDINGS * max(one.rounding(), other.rounding()) * room
        size = max(1.0, abs(one.objective()))
        assert abs(one.objective() - other.objective()) <= 1e-9 * size + allowed


def test_the_path_completes_on_most_families() -> None:
    completed = 0
    for family in EVERY_FAMILY.values():
        problem = family(np.random.default_rng(0))
        half = len(problem.y) // 2
        rig = Rig.of(problem)
        rig.change(problem.X[:half], problem.y[:half], problem.sample_weight[:half])
        outcome = rig.change(remove=range(0, half, 5), method="path")
        completed += outcome.fallbacks == 0
    print(f"\n{completed} of {len(EVERY_FAMILY)} paths complete")
    assert completed >= 0.8 * len(EVERY_FAMILY)


# ---------------------------------------------------------------------------------------------
# Parts


def shrunk(part: float) -> tuple[Rig, Path]:
    """A settled machine whose boxes have just become smaller."""
    data = pool(27, 40, 10.0)
    rig = Both(data, 40).rig
    machine, everyone = rig.machine, np.arange(40)
    machine.begin(
        RowChange(
            rebound=everyone,
            rebound_t=machine.t,
            rebound_lo=part * machine.lo,
            rebound_hi=part * machine.hi,
        )
    )
    return rig, Path(machine, 1e-9, keep_trace=True)


def test_smaller_boxes_are_followed_too() -> None:
    """Rows driven into their new boxes may violate there; a second motion settles them."""
    rig, path = shrunk(0.4)
    path.follow()
    assert path.completed and path.breakpoints > 0 and rig.machine.infeasibility() <= TOL
    path = Path(rig.machine, 1e-9, keep_trace=False)
    path.follow()
    assert path.completed and rig.violation() <= TOL


def test_the_bound_on_work_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_path, "MOST_BREAKPOINTS", 0)
    _, path = shrunk(0.4)
    path.follow()
    assert not path.completed and path.breakpoints == 0


def test_no_trace_is_kept_unless_asked_for() -> None:
    both = Both(pool(28, 40, 3.0), 30)
    outcome = both.rig.change(both.pool.X[30:], both.pool.y[30:], method="path")
    assert outcome.breakpoints > 0 and outcome.traces == {}


def test_the_first_class_alone_and_then_the_second() -> None:
    """Without a margin b moves alone; with one class only there is nothing to balance."""
    data = pool(29, 40, 3.0)
    rig = Rig(make_kernel("rbf", gamma=0.5, degree=3, coef0=0.0, X=data.X), 3.0)
    positive = data.y > 0
    rig.change(data.X[positive], data.y[positive], method="path")
    assert not rig.machine.u.any() and rig.machine.b == pytest.approx(1.0)
    outcome = rig.change(data.X[~positive], data.y[~positive], method="path")
    assert "path" in outcome.methods
    assert rig.violation() <= ROUNDINGS * rig.rounding()
