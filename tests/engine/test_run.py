# SPDX-License-Identifier: BSD-3-Clause
"""A machine on its way: when it has arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1, make_moons

import adiabat
from adiabat.engine import solver
from adiabat.engine.exchange import Exchange
from adiabat.engine.interior import start_inside
from adiabat.engine.run import (
    GROWTH,
    GROWTH_EACH,
    LARGE_MARGIN,
    REFINEMENTS,
    SMALL_MARGIN,
    SUBSET_PART,
    WEAK,
    Run,
)

EPSILON = float(np.finfo(np.float64).eps)


def tied(seed: int, C: float) -> adiabat.SVC:
    """One-hot rows, tied everywhere, under a C that binds."""
    rng = np.random.default_rng(seed)
    X = np.eye(4)[rng.integers(0, 4, (50, 3))].reshape(50, 12)
    return adiabat.SVC(C=C, kernel="linear").fit(X, rng.integers(0, 2, 50))


def worst_in_roundings(seed: int, C: float) -> float:
    """The largest violation in a stream of revisions."""
    model, rng = tied(seed, C), np.random.default_rng(seed)
    worst = 0.0
    for _ in range(12):
        ids = rng.choice(model.ids_, 5, replace=False)
        model.revise(ids, y=rng.integers(0, 2, 5))
        rounding = EPSILON * 3.0 * np.abs(model.dual_coef_).sum()
        worst = max(worst, model.certificate().residual / rounding)
    return worst


@pytest.mark.rotates(3)
@pytest.mark.parametrize("C", [1e5, 1e6])
@pytest.mark.parametrize("seeds", [range(10), range(10, 20), range(20, 30)])
def test_rows_that_all_but_tie_are_wrong_by_no_more_than_a_rounding(seeds: range, C: float) -> None:
    assert max(worst_in_roundings(seed, C) for seed in seeds) <= 2.0


def arrived(C: float) -> tuple[Run, int]:
    """A run at the optimum of a machine, and a row at its lower bound."""
    (machine,) = tied(0, C)._model.solver.machines.values()
    run = Run(machine, 1e-9, np.empty(0, dtype=np.int64), fresh=False, carried=False)
    run.watched[:] = False
    row = int(np.flatnonzero((machine.u == machine.lo) & (machine.hi > machine.lo))[0])
    return run, row


def violate(run: Run, row: int, roundings: float) -> None:
    machine = run.machine
    machine.r[row] = -roundings * machine.rounding(run.tol)[row]
    machine.update_verdict(run.tol)


def test_a_few_roundings_are_too_many_where_f_shows_them() -> None:
    run, row = arrived(1e6)
    violate(run, row, 0.5)
    assert run.satisfied()
    violate(run, row, 3.0)
    for _ in range(REFINEMENTS):
        assert not run.satisfied()
    assert run.watched[row]
    assert run.exchange is not None and run.exchange.roundings == 1.0
    assert run.satisfied(), "it is tried so many times, and no more"


def test_what_the_judge_allows_is_bettered_a_few_times_and_no_more() -> None:
    run, row = arrived(1e6)
    violate(run, row, 10.0)
    assert run.machine.verdict.ok
    for _ in range(REFINEMENTS):
        assert not run.satisfied()
    assert run.watched[row] and run.satisfied()


def test_what_the_judge_does_not_allow_is_never_enough() -> None:
    run, row = arrived(1e6)
    violate(run, row, 1e4)
    assert not run.machine.verdict.ok
    assert not any(run.satisfied() for _ in range(3 * REFINEMENTS))


def test_where_f_does_not_show_them_they_are_left() -> None:
    run, row = arrived(1.0)
    violate(run, row, 10.0)
    assert run.satisfied()
    assert run.exchange is None


def test_blocks_that_overshoot_get_a_coarse_step() -> None:
    X, y = make_moons(600, noise=0.3, random_state=1)
    model = adiabat.SVC(gamma=10.0, C=10.0, solver="exchange").fit(X, y)
    gone = np.random.default_rng(0).choice(600, 40, replace=False)
    model.forget(gone).partial_fit(X[gone], y[gone], ids=gone)
    anew = adiabat.SVC(gamma=10.0, C=10.0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), anew.decision_function(X), rtol=0.0, atol=1e-8
    )


def checkers(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A checkerboard, one label in twenty wrong: margins of low rank, and blocks overshoot."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 4.0, (n, 2))
    return X, (np.floor(X).sum(axis=1).astype(int) + (rng.random(n) < 0.05)) % 2


def forget_and_learn_back(model: Any, X: np.ndarray, y: Any, part: float) -> list[Any]:
    """Reports of unlearning a part of the support vectors and of learning them back."""
    support = model.ids_[model.support_]
    gone = np.random.default_rng(0).choice(support, round(part * len(support)), replace=False)
    there = [model.forget(gone).last_update_]
    return [*there, model.partial_fit(X[gone], y[gone], ids=gone).last_update_]


@pytest.mark.parametrize("seed", [0, 1])
def test_where_blocks_overshoot_rows_go_on_from_where_they_stood(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that rounds had left aside had the residuals of before, and were taken for settled."""
    X, y = checkers(1_000, seed)
    model = adiabat.SVC(gamma=5.0, C=100.0).fit(X, y)
    go_on, seen = Run._go_on, []

    def checked(this: Run, near: bool) -> None:
        m = this.exchange.machine if this.exchange is not None else this.machine
        if this.exchange is not None and this.exchange.overshoots:
            rounds, watched = this.exchange._rounds, this.watched
            watched = watched if m is this.machine else np.ones(m.n, dtype=bool)
            f = m.kernel(np.arange(m.n), np.arange(m.n)) @ (m.u - rounds.delta)
            r = f + (m.b - rounds.delta_b) - m.t
            np.testing.assert_allclose(m.r[watched], r[watched], rtol=0.0, atol=1e-8)
            assert len(m.margin) == 0 and not m.in_margin.any()
            seen.append(m.n)
        go_on(this, near)

    monkeypatch.setattr(Run, "_go_on", checked)
    for report in forget_and_learn_back(model, X, y, 0.5):
        assert report.fallbacks == 0 and report.breakpoints == 0
        assert report.rounds < 60
    assert seen
    anew = adiabat.SVC(gamma=5.0, C=100.0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), anew.decision_function(X), rtol=0.0, atol=1e-7
    )


def test_few_rows_go_one_at_a_time_where_a_large_margin_overshoots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pairs would take thousands of steps there, and rounds would follow all the same."""
    X, y = make_classification(900, 260, n_informative=20, flip_y=0.05, random_state=1)
    model = adiabat.SVC(kernel="linear", C=1.0).fit(X, y)
    (machine,) = model._model.solver.machines.values()
    assert len(machine.margin) >= LARGE_MARGIN and not model._model.solver.samples.by_features
    solve, singly = Exchange.solve, []

    def noted(this: Exchange, watched: np.ndarray, nearly_there: bool = False) -> None:
        singly.append(nearly_there)
        solve(this, watched, nearly_there)

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "solve", noted)
        patch.setattr(Exchange, "descend", lambda *given: pytest.fail("pairs went first"))
        forget_and_learn_back(model, X, y, 0.03)
    assert True in singly
    anew = adiabat.SVC(kernel="linear", C=1.0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), anew.decision_function(X), rtol=0.0, atol=1e-8
    )


def moved_first(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of every coarse step, of how many rows."""
    descend, found = Exchange.descend, []

    def noted(this: Exchange, rows: np.ndarray, *how: Any) -> None:
        found.append(len(rows))
        descend(this, rows, *how)

    monkeypatch.setattr(Exchange, "descend", noted)
    return found


def test_parts_of_a_new_machine_go_in_pairs_until_the_margin_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = moved_first(monkeypatch)
    X, y = make_classification(4_000, 20, n_informative=8, class_sep=0.8, random_state=0)
    model = adiabat.SVC(gamma=0.025, C=10.0).fit(X, y)
    assert found[0] == 200 and model.certificate().ok
    found.clear()
    adiabat.OneClassSVM(gamma=0.1, nu=0.1).fit(X)
    assert 200 not in found


def test_an_update_of_all_that_carries_weight_goes_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks overshoot there, if most of what is left ends at a bound."""
    X, y = make_moons(500, noise=0.3, random_state=0)
    model = adiabat.SVC(gamma=1.0, C=10.0).fit(X, y)
    found = moved_first(monkeypatch)
    for report in forget_and_learn_back(model, X, y, 0.8):
        assert report.certificate.ok and report.rounds <= 12
    assert 500 in found


@pytest.mark.parametrize("steps", [0, None])
def test_large_updates_by_features_start_in_pairs_or_from_inside(
    steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From inside where pairs do not get there in the time that takes."""
    X, y = make_classification(1_500, 12, n_informative=6, flip_y=0.1, random_state=0)
    model = adiabat.SVC(kernel="linear", C=1.0).fit(X, y)
    inside = []
    if steps is not None:
        monkeypatch.setattr(solver, "pairs_worth", lambda machine: steps)
    monkeypatch.setattr(solver, "start_inside", lambda m: (inside.append(m), start_inside(m)))
    for report in forget_and_learn_back(model, X, y, 0.9):
        assert report.fallbacks == 0 and report.breakpoints == 0 and report.certificate.ok
    assert len(inside) == 2 if steps == 0 else len(inside) <= 2
    anew = adiabat.SVC(kernel="linear", C=1.0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), anew.decision_function(X), rtol=0.0, atol=1e-9
    )


def test_rows_of_one_class_that_nearly_depend_go_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum moves, so that no path is short; of rounds there are few."""
    X = np.random.default_rng(5).standard_normal((2_000, 2))
    model = adiabat.OneClassSVM(gamma=0.5, nu=0.05).fit(X)
    gone = np.random.default_rng(1).choice(2_000, 60, replace=False)
    for report in (
        model.forget(gone).last_update_,
        model.partial_fit(X[gone], ids=gone).last_update_,
    ):
        assert report.fallbacks == 0 and report.rounds <= 12
    anew = adiabat.OneClassSVM(gamma=0.5, nu=0.05).fit(X)
    np.testing.assert_allclose(
        model.decision_function(X), anew.decision_function(X), rtol=0.0, atol=1e-8
    )


def test_a_large_margin_that_is_well_conditioned_goes_by_exchange() -> None:
    X, y = make_friedman1(1_000, noise=1.0, random_state=0)
    model = adiabat.SVR(gamma=0.7, C=4.0, epsilon=0.1).fit(X, y)
    (machine,) = model._model.solver.machines.values()
    assert LARGE_MARGIN <= len(machine.margin) <= len(model.support_) // SMALL_MARGIN
    assert machine.factor.weakest() >= WEAK
    model.forget(model.ids_[model.support_[:3]])
    assert model.last_update_.solver == "exchange"
    assert model.certificate().ok


def test_few_violators_are_watched_where_few_rows_carry_weight() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 2))
    model = adiabat.SVC(C=1.0, gamma=0.5).fit(X, np.where(X[:, 0] > 0.0, 1, -1))
    (machine,) = model._model.solver.machines.values()
    run = Run(machine, 1e-9, np.arange(8000), fresh=True, carried=False)
    run.watched[:4000] = True
    weights = int(np.count_nonzero(machine.u))
    assert 250 < GROWTH_EACH * weights < GROWTH * 4000
    assert run._most_new() == GROWTH_EACH * weights
    run.watched[:] = False
    run.watched[:100] = True
    assert run._most_new() == GROWTH * 100
    machine.u[:] = 0.0
    assert run._most_new() == 8000 // SUBSET_PART
