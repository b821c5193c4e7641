# SPDX-License-Identifier: BSD-3-Clause
"""A machine on its way: when it has arrived."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons

import adiabat
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
