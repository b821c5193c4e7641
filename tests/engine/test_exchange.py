# SPDX-License-Identifier: BSD-3-Clause
"""Exchange settles everywhere, in few rounds, and in single file it never goes uphill."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import make_classification, make_moons

from adiabat.engine import exchange
from adiabat.engine.exchange import Exchange, Stuck
from adiabat.engine.machine import Machine
from adiabat.engine.row_change import RowChange
from adiabat.engine.samples import Samples
from adiabat.errors import IndefiniteKernelError
from adiabat.kernels import make_kernel
from engine.rig import EPSILON, Rig

from oracles import batch_qp, problems

EVERY_FAMILY = {**problems.FAMILIES, **problems.C_VARIANTS}

# Violations in roundings of f: what the engine aims at is 64 of them.
ROUNDINGS = 100.0
TOL_OBJECTIVE = 1e-9


def story(rig: Rig, problem: problems.Problem) -> None:
    """Half comes, the other half comes while every second of the first goes, some go."""
    half = len(problem.y) // 2
    first, second = slice(None, half), slice(half, None)
    rig.change(problem.X[first], problem.y[first], problem.sample_weight[first], method="exchange")
    assert_settled(rig)
    rig.change(
        problem.X[second],
        problem.y[second],
        problem.sample_weight[second],
        remove=range(0, half, 2),
        method="exchange",
    )
    assert_settled(rig)
    rig.change(remove=rig.names[::3], method="exchange")
    assert_settled(rig)


def assert_settled(rig: Rig) -> None:
    """No condition is violated by more than rounding, and the oracle finds nothing better."""
    allowed = ROUNDINGS * rig.rounding()
    assert rig.violation() <= allowed
    machine, exact = rig.machine, rig.oracle()
    room = float((machine.hi - machine.lo).sum())
    size = max(1.0, abs(exact.objective))
    assert rig.objective() <= exact.objective + TOL_OBJECTIVE * size + allowed * room


@pytest.mark.parametrize("name", EVERY_FAMILY)
def test_exchange_settles_on_every_family(name: str) -> None:
    for seed in range(2):
        problem = EVERY_FAMILY[name](np.random.default_rng(seed))
        story(Rig.of(problem), problem)


@pytest.mark.parametrize(
    "name, seed",
    [
        ("one_hot_features-C=1000", 40),
        ("one_hot_features-C=1e+06", 40),
        ("contradictory_duplicates-C=1e+06", 36),
        ("hard_margin_poly-C=1e+06", 36),
    ],
)
def test_small_weights_in_large_boxes(name: str, seed: int) -> None:
    """On the way weights go up to C and come back; their rounding is not chased for ever."""
    rng = np.random.default_rng(seed)
    problem = EVERY_FAMILY[name](rng)
    rig, half = Rig.of(problem), len(problem.y) // 2
    rig.change(problem.X[:half], problem.y[:half], method="exchange")
    rig.change(problem.X[half:], problem.y[half:], remove=range(0, half, 2), method="exchange")
    for _ in range(6):
        new = problem.draw(rng, int(rng.integers(0, 8)))
        gone = rng.choice(rig.names, int(rng.integers(0, 8)), replace=False)
        X = new.X if len(new.y) else None
        outcome = rig.change(X, new.y, remove=gone, method="exchange")
        assert outcome.rounds <= 300
        assert rig.violation() <= ROUNDINGS * rig.rounding()


# ---------------------------------------------------------------------------------------------
# Single file: the objective falls


class Watcher:
    """Objectives of the feasible points after every face of an exchange."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rounds: list[tuple[Exchange, float, float]] = []
        original = Exchange._survey

        def survey(this: Exchange, *arguments: Any) -> bool:
            anchored = original(this, *arguments)
            machine = this.machine
            if this._rounds.measure(machine.d):
                K = machine.samples.block(machine.at, machine.at)
                value = batch_qp.objective(K, machine.t, machine.u)
                weight = float(np.abs(machine.u).sum())
                rounding = EPSILON * weight * (1.0 + float(np.abs(K).max()) * weight)
                self.rounds.append((this, value, rounding))
            return anchored

        monkeypatch.setattr(Exchange, "_survey", survey)

    def assert_never_rises(self) -> None:
        for (one, before, _), (other, after, rounding) in zip(
            self.rounds, self.rounds[1:], strict=False
        ):
            assert one is not other or after <= before + 10.0 * rounding


@pytest.mark.parametrize("name", EVERY_FAMILY)
def test_single_file_alone_settles_and_never_goes_uphill(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "BLOCK_ROUNDS", 0)
    monkeypatch.setattr(exchange, "REGROUPS", 0)
    monkeypatch.setattr(exchange.Exchange, "descend", lambda *given: None)
    problem = EVERY_FAMILY[name](np.random.default_rng(0))
    watcher = Watcher(monkeypatch)
    story(Rig.of(problem), problem)
    assert len(watcher.rounds) > 1
    watcher.assert_never_rises()


# ---------------------------------------------------------------------------------------------
# Few rounds


@pytest.fixture(scope="module")
def large() -> Rig:
    """A thousand noisy rows under an RBF kernel, settled, with a hundred support vectors apart."""
    X, y = make_classification(1000, 10, n_informative=6, flip_y=0.1, class_sep=0.8, random_state=0)
    rig = Rig(make_kernel("rbf", gamma=0.1, degree=3, coef0=0.0, X=X), C=1.0)
    outcome = rig.change(X, np.where(y > 0, 1.0, -1.0))
    print(f"\nfit: {outcome.rounds} rounds")
    assert outcome.rounds <= 60
    return rig


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("count", [1, 10, 100])
def test_few_rounds_whether_support_vectors_go_or_come(large: Rig, count: int, C: float) -> None:
    """About as few to add as to remove, and hardly more for a hundred than for one."""
    assert large.X is not None
    rig = Rig(large.solver.samples.kernel, C)
    rig.change(large.X, large.y)
    before = rig.objective()
    weighty = rig.names_of_rows()[rig.machine.u != 0.0]
    chosen = np.random.default_rng(count).choice(weighty, count, replace=False)
    out = rig.change(remove=chosen, method="exchange")
    assert rig.violation() <= ROUNDINGS * rig.rounding()
    back = rig.change(rig.X[chosen], rig.y[chosen], method="exchange")
    assert rig.violation() <= ROUNDINGS * rig.rounding()
    assert rig.objective() == pytest.approx(before, rel=1e-10)
    print(f"\nC={C:g}, {count} out: {out.rounds} rounds; in: {back.rounds} rounds")
    assert out.rounds <= 20 and back.rounds <= 20
    assert back.rounds <= out.rounds + 8
    assert out.fallbacks == back.fallbacks == 0


def test_nothing_to_do_takes_no_round_and_moves_nothing(large: Rig) -> None:
    u, b = large.machine.u.copy(), large.machine.b
    outside = large.names_of_rows()[(large.machine.u == 0.0) & (np.abs(large.machine.r) > 0.1)]
    outcome = large.change(remove=outside[:5], method="exchange")
    assert outcome.rounds == 0 and outcome.solver == "none"
    np.testing.assert_array_equal(
        np.sort(u[u != 0.0]), np.sort(large.machine.u[large.machine.u != 0.0])
    )
    assert large.machine.b == b


# ---------------------------------------------------------------------------------------------
# Kernels that are none


def sums(A: Any, B: Any) -> npt.NDArray[np.float64]:
    """|a + b|^2 - |a|^2 |b|^2 + 1: symmetric, and of both signs."""
    squares = (A**2).sum(axis=1)[:, None] * (B**2).sum(axis=1)
    return np.asarray(((A[:, None, :] + B[None, :, :]) ** 2).sum(axis=2) - squares + 40.0)


def distances(A: Any, B: Any) -> npt.NDArray[np.float64]:
    """A measure of difference, not of likeness: concave where the weights add up to 0."""
    return np.asarray(((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def sigmoid(A: Any, B: Any) -> npt.NDArray[np.float64]:
    return np.asarray(np.tanh(A @ B.T + 0.5))


@pytest.mark.parametrize("function", [sums, distances, sigmoid])
def test_indefinite_kernels_are_refused(function: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0.0, 1.0, -1.0)
    rig = Rig(make_kernel(function, gamma=1.0, degree=3, coef0=0.0, X=X), C=1.0)
    with pytest.raises(IndefiniteKernelError, match="positive semidefinite"):
        rig.change(X, y)
    assert rig.solver.samples.n == 0 and rig.solver.machines == {}


# ---------------------------------------------------------------------------------------------
# Parts


def machine_of(K: npt.NDArray[np.float64], change: RowChange) -> Machine:
    kernel = make_kernel("precomputed", gamma=1.0, degree=3, coef0=0.0, X=K)
    samples = Samples(kernel)
    samples.add(K)
    machine = Machine(samples)
    machine.begin(change)
    return machine


def test_rows_outside_a_new_box_come_back_into_it() -> None:
    """Every box shrinks below the weights in it, some to a point."""
    problem = problems.poly2_low_rank(np.random.default_rng(0))
    rig = Rig.of(problem)
    rig.change(problem.X, problem.y)
    machine, everyone = rig.machine, np.arange(rig.machine.n)
    part = np.where(everyone % 5 == 0, 0.0, 0.3)
    machine.begin(
        RowChange(
            rebound=everyone,
            rebound_t=machine.t,
            rebound_lo=part * machine.lo,
            rebound_hi=part * machine.hi,
        )
    )
    assert machine.infeasibility() > 0.0
    Exchange(machine, 1e-9).solve(np.ones(machine.n, dtype=bool))
    assert machine.infeasibility() == 0.0
    assert rig.violation() <= ROUNDINGS * rig.rounding()


def test_a_sum_that_no_box_allows_is_stuck() -> None:
    machine = machine_of(
        np.eye(3),
        RowChange(
            add_at=np.arange(3), add_t=np.zeros(3), add_lo=np.zeros(3), add_hi=np.ones(3), d=3.5
        ),
    )
    with pytest.raises(Stuck):
        Exchange(machine, 1e-9).solve(np.ones(3, dtype=bool))


@pytest.mark.parametrize("d", [0.0, 0.5, 2.0, 3.0])
def test_other_sums_than_zero(d: float) -> None:
    """The one-class problem: t = 0, and weights that add up to d."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3, 2))
    K = problems.gram("rbf", X, X, gamma=0.5)
    machine = machine_of(
        K,
        RowChange(
            add_at=np.arange(3), add_t=np.zeros(3), add_lo=np.zeros(3), add_hi=np.ones(3), d=d
        ),
    )
    Exchange(machine, 1e-9).solve(np.ones(3, dtype=bool))
    exact = batch_qp.solve(K, np.zeros(3), np.zeros(3), np.ones(3), d)
    np.testing.assert_allclose(machine.u, exact.u, atol=1e-9)


# ---------------------------------------------------------------------------------------------
# Rows without weight, and the coarse step


def test_rows_without_weight_cost_no_solve_and_no_column(
    large: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any, machines: list[Any]) -> None:
        assert not machines, "all residuals were computed anew"

    solver, machine = large.solver, large.machine
    light = np.flatnonzero((machine.u == 0.0) & (machine.r * np.sign(machine.t) > 0.2))[:3]
    rows, y = solver.samples.rows(machine.at[light]), np.sign(machine.t[light])
    names, verdict = large.names_of_rows()[light], machine.verdict
    monkeypatch.setattr(type(solver), "refresh", fail)
    assert large.change(remove=names).solver == "none"
    assert machine.verdict.ok and machine.verdict.residual == verdict.residual
    slots = solver.samples.gram.slot_of.copy()
    assert large.change(rows, y).solver == "none"
    assert machine.verdict.ok and machine.n == solver.samples.n
    assert np.all(solver.samples.gram.slot_of[-3:] < 0)
    np.testing.assert_array_equal(solver.samples.gram.slot_of[: len(slots)], slots)
    assert large.violation() <= 1e-9


def test_a_row_that_asks_for_weight_gets_it(large: Rig) -> None:
    """One new row in a batch that violates, and all of them are solved for."""
    machine = large.machine
    light = np.flatnonzero((machine.u == 0.0) & (machine.r * np.sign(machine.t) > 0.2))[:3]
    rows, y = large.solver.samples.rows(machine.at[light]), np.sign(machine.t[light])
    y[1] = -y[1]
    outcome = large.change(rows, y)
    assert outcome.solver != "none" and large.violation() <= 1e-9
    assert np.count_nonzero(machine.u[-3:]) >= 1


@pytest.mark.parametrize("n", [300, 3_000])
def test_the_coarse_step_leaves_little_to_do(n: int) -> None:
    """Most weights end at a bound: exchange alone takes rounds by the dozen, or single file."""
    X, y = make_moons(n, noise=0.3, random_state=0)
    rig = Rig(make_kernel("rbf", gamma=1.0, degree=3, coef0=0.0, X=X), C=10.0)
    outcome = rig.change(X, np.where(y > 0, 1.0, -1.0))
    assert outcome.rounds <= 8 and outcome.fallbacks == 0
    assert rig.violation() <= 1e-9
    names = rig.names_of_rows()
    outcome = rig.change(remove=names[::10])
    assert outcome.rounds <= 8 and outcome.fallbacks == 0
    assert rig.violation() <= 1e-9
