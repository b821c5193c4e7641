# SPDX-License-Identifier: BSD-3-Clause
"""Removals by pivots: the tableau is what it says, and what comes of it is checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import adiabat
from adiabat._core.ratio import MARGIN
from adiabat.engine import removals as removing
from adiabat.engine import tableau as module
from adiabat.engine.machine import Machine
from adiabat.engine.removals import Remover
from adiabat.engine.tableau import Tableau
from adiabat.engine.trial import Removal, Trial

from oracles import problems

IntArray = npt.NDArray[np.int64]


def overlapping(n: int = 120, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + 0.8 * rng.standard_normal(n) > 0).astype(int)


def machine_of(model: Any) -> tuple[Any, tuple[int, ...], Machine]:
    """(solver, key, machine) of an estimator's only machine."""
    ((key, machine),) = model._model.machines
    return model._model.solver, key, machine


def tableau_of(model: Any, n_followed: int | None = None) -> Tableau:
    solver, _, machine = machine_of(model)
    made = Tableau.of(machine, solver.tol, n_followed)
    assert made is not None
    return made


def rows_of_samples(machine: Machine) -> list[IntArray]:
    return [np.flatnonzero(machine.at == at) for at in np.unique(machine.at[machine.u != 0.0])]


def by_trial(model: Any, rows: list[IntArray], totals: list[float]) -> npt.NDArray[np.float64]:
    solver, key, _ = machine_of(model)
    trial = Trial(solver, key)
    return np.array([trial.removal(own, d).f for own, d in zip(rows, totals, strict=True)])


def values(found: list[Removal | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if removal is None else removal.f for removal in found])


MODELS = {
    "SVC": lambda X, y: adiabat.SVC(C=3.0, gamma=0.5).fit(X, y),
    "SVC, linear": lambda X, y: adiabat.SVC(C=0.1, kernel="linear").fit(X, y),
    "SVR": lambda X, y: adiabat.SVR(C=3.0, gamma=0.5, epsilon=0.2).fit(X, X[:, 0] + 0.3 * y),
    "OneClassSVM": lambda X, y: adiabat.OneClassSVM(nu=0.3, gamma=0.5).fit(X),
    "SVDD": lambda X, y: adiabat.SVDD(C=0.03, gamma=0.5).fit(X),
}


def defined(tableau: Tableau) -> npt.NDArray[np.float64]:
    """All of the tableau by its definition, b first."""
    machine = tableau.machine
    n, s = machine.n, len(machine.margin)
    at = machine.at[tableau.rows]
    M = np.zeros((n + 1, n + 1))
    M[0, 1:] = M[1:, 0] = 1.0
    M[1:, 1:] = machine.samples.block(at, at) + machine.factor.shift
    S, N = np.arange(s + 1), np.arange(s + 1, n + 1)
    inverse = np.linalg.inv(M[np.ix_(S, S)])
    T = np.empty((n + 1, n + 1))
    T[np.ix_(S, S)] = inverse
    T[np.ix_(S, N)] = -inverse @ M[np.ix_(S, N)]
    T[np.ix_(N, S)] = M[np.ix_(N, S)] @ inverse
    T[np.ix_(N, N)] = M[np.ix_(N, N)] - M[np.ix_(N, S)] @ inverse @ M[np.ix_(S, N)]
    return T


@pytest.mark.parametrize("name", MODELS)
def test_columns_are_those_of_the_definition(name: str) -> None:
    made = tableau_of(MODELS[name](*overlapping()))
    made.fill(np.arange(len(made.machine.margin), made.machine.n))
    T = defined(made)
    atol = 1e-8 * np.abs(T).max()
    np.testing.assert_allclose(made.columns[made.slot].T, T, atol=atol)
    np.testing.assert_allclose(made.own, np.where(
        made.role == MARGIN, 0.0, np.diag(T)[1:]), atol=atol)  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_columns_grow_to_those_of_the_definition(name: str) -> None:
    made = tableau_of(MODELS[name](*overlapping()), n_followed=3)
    s, n = len(made.machine.margin), made.machine.n
    T = defined(made)
    before = made.current()
    for width in (s + 3, s + 20, s + 11, n):
        made.widen(width)
        made.fill(np.arange(s, n)[:: 1 if width == n else 7])
        held = np.flatnonzero(made.slot >= 0)
        found = made.columns[made.slot[held], : made.width + 1].T
        np.testing.assert_allclose(found, T[: made.width + 1, held], atol=1e-8 * np.abs(T).max())
    columns, slot = before
    held = np.flatnonzero(slot >= 0)
    np.testing.assert_allclose(columns[slot[held]].T, T[: s + 4, held], atol=1e-8 * np.abs(T).max())
    assert made.width == n


@pytest.mark.parametrize("n_followed", [None, 0, 7])
@pytest.mark.parametrize("name", MODELS)
def test_removals_are_those_of_the_path(name: str, n_followed: int | None) -> None:
    model = MODELS[name](*overlapping())
    made = tableau_of(model, n_followed)
    machine = made.machine
    rows = rows_of_samples(machine)
    # in the one-class machine sum u goes down with each sample, also with those without weight
    step = 0.3 if name == "OneClassSVM" else 0.0
    if step:
        rows += [np.array([row]) for row in np.flatnonzero(machine.u == 0.0)[:9]]
    totals = [machine.d - step] * len(rows)
    points = machine.samples.block(np.arange(5), np.arange(machine.samples.n))
    found = Remover(made, points).removals(rows, totals, ask=False)
    done = [removal is not None for removal in found]
    # in low rank a row that joins may depend on the margin
    assert any(done) if name == "SVC, linear" else all(done)
    expected = by_trial(model, rows, totals)
    np.testing.assert_allclose(values(found)[done], expected[done], atol=1e-9)
    assert name == "SVC, linear" or sum(
        removal.breakpoints for removal in found if removal is not None
    ) > len(rows)
    trial = Trial(*machine_of(model)[:2])
    for own, total, removal in zip(rows[::5], totals[::5], found[::5], strict=True):
        if removal is not None:
            trial.removal(own, total)
            np.testing.assert_allclose(removal.elsewhere, trial.elsewhere(points), atol=1e-9)


@pytest.mark.parametrize("n_followed", [None, 0, 7])
def test_signs_are_those_of_the_values(n_followed: int | None) -> None:
    model = MODELS["SVC"](*overlapping())
    remover, machine = Remover(tableau_of(model, n_followed)), machine_of(model)[2]
    rows = [own for own in rows_of_samples(machine) if (machine.r + machine.t)[own[0]] * (
        machine.t[own[0]]) > 0.0]  # fmt: skip
    f = values(remover.removals(rows, [0.0] * len(rows), ask=False))
    asked = remover.removals(rows, [0.0] * len(rows), ask=True)
    t = np.array([machine.t[own[0]] for own in rows])
    for removal, value, sign in zip(asked, f, t, strict=True):
        assert removal is not None
        assert not removal.decided or value * sign < 0.0
        assert (removal.f * sign > 0.0) == (value * sign > 0.0)
    assert any(removal.decided for removal in asked if removal is not None)


@pytest.mark.parametrize("n_followed", [None, 2])
@pytest.mark.parametrize("name", problems.FAMILIES)
def test_what_passes_is_right_on_degenerate_families(name: str, n_followed: int | None) -> None:
    problem = problems.FAMILIES[name](np.random.default_rng(3))
    model = adiabat.SVC(**problem.params)
    model.fit(problem.X, problem.y, sample_weight=problem.sample_weight)
    solver, _, machine = machine_of(model)
    made = Tableau.of(machine, solver.tol, n_followed)
    if made is None:
        return
    rows = rows_of_samples(machine)[:30]
    found = Remover(made).removals(rows, [0.0] * len(rows), ask=False)
    done = [k for k, removal in enumerate(found) if removal is not None]
    f, expected = values(found)[done], by_trial(model, [rows[k] for k in done], [0.0] * len(done))
    largest = float(solver.samples.diagonal.max()) * float(np.abs(machine.u).sum())
    np.testing.assert_allclose(f, expected, rtol=1e-8, atol=1e-8 + 1e-13 * largest)


def test_rows_that_depend_on_the_margin_have_no_tableau() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    X, y = np.vstack([X, X]), np.tile((X[:, 0] + 0.5 * rng.standard_normal(40) > 0).astype(int), 2)
    model = adiabat.SVC(C=50.0, gamma=0.3).fit(X, y)
    found = model.leave_one_out()
    for i in range(0, 80, 9):
        rest = np.arange(80) != i
        again = adiabat.SVC(C=50.0, gamma=0.3).fit(X[rest], y[rest])
        assert found.decision is not None
        assert found.decision[i] == pytest.approx(again.decision_function(X[[i]])[0], abs=1e-7)


# -- nothing is believed ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_followed", [None, 7])
def test_a_wrong_column_is_noticed(n_followed: int | None) -> None:
    model = MODELS["SVC"](*overlapping())
    made = tableau_of(model, n_followed)
    rows = rows_of_samples(made.machine)
    made.columns[: made._used] *= 1.0 + 1e-5 * np.random.default_rng(0).standard_normal(
        made.columns[: made._used].shape
    )
    found = Remover(made).removals(rows, [0.0] * len(rows), ask=False)
    assert sum(removal is None for removal in found) > 0.9 * len(rows)


@pytest.mark.parametrize("limit", ["pivots", "room"])
def test_what_cannot_be_done_is_done_otherwise(limit: str, monkeypatch: Any) -> None:
    X, y = overlapping()
    model = MODELS["SVC"](X, y)
    expected = model.leave_one_out().decision
    if limit == "pivots":
        monkeypatch.setattr(removing, "MOST_PIVOTS", 3)
    else:
        carrying = np.count_nonzero(machine_of(model)[2].u)
        monkeypatch.setattr(module, "MOST_ENTRIES", len(y) * (carrying + 2))
    made = tableau_of(model)
    rows = rows_of_samples(made.machine)
    found = Remover(made).removals(rows, [0.0] * len(rows), ask=False)
    assert any(removal is None for removal in found) and any(removal for removal in found)
    np.testing.assert_allclose(model.leave_one_out().decision, expected, atol=1e-9)
    monkeypatch.setattr(module, "MOST_ENTRIES", 10)
    assert Tableau.of(made.machine, 1e-9) is None
    np.testing.assert_allclose(model.leave_one_out(n_jobs=2).decision, expected, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_one_by_one_it_is_the_same(name: str, monkeypatch: Any) -> None:
    model = MODELS[name](*overlapping())
    expected = model.leave_one_out().decision
    monkeypatch.setattr(module, "MOST_ENTRIES", 0)
    np.testing.assert_allclose(model.leave_one_out().decision, expected, atol=1e-8)
