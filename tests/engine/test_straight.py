# SPDX-License-Identifier: BSD-3-Clause
"""Where row i stands for sample i, rows go as samples do: the last fill their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat import SVC, SVR
from adiabat._core.room import Leaving
from adiabat.engine import straight
from adiabat.engine.machine import Machine
from adiabat.kernels import make_kernel
from engine.rig import Rig

RNG = np.random.default_rng(11)
N = 120
Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
X = RNG.standard_normal((N, 2)) + np.outer(Y, [1.3, 0.0])


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with few rows."""
    monkeypatch.setattr(straight, "FILLED", 0)


def assert_whole(machine: Machine) -> None:
    """What is known by number is what the arrays say."""
    if machine.straight.holds:
        np.testing.assert_array_equal(machine.at, np.arange(machine.n))
    assert machine.weighty is not None
    np.testing.assert_array_equal(np.sort(machine.weighty), np.flatnonzero(machine.u))
    np.testing.assert_array_equal(np.sort(machine.margin), np.flatnonzero(machine.in_margin))
    some = np.sort(machine.at[::5])
    np.testing.assert_array_equal(
        machine.straight.rows_of(machine.at, some[::-1], machine.samples.n),
        np.flatnonzero(np.isin(machine.at, some)),
    )


def test_rows_stay_where_their_samples_are() -> None:
    rig = Rig(make_kernel("rbf", gamma=0.3, degree=3, coef0=0.0, X=X), C=2.0)
    rig.change(X[:80], Y[:80])
    rng = np.random.default_rng(1)
    for start in range(80, N, 4):
        gone = rng.choice(rig.names, int(rng.integers(1, 6)), replace=False)
        rig.change(X[start : start + 4], Y[start : start + 4], remove=gone)
        assert rig.machine.straight.holds
        assert_whole(rig.machine)
        assert rig.violation() <= 1e-9
    for name in rig.names[[-1, -2, 0, 5]]:
        rig.change(remove=[name])
        assert rig.machine.straight.holds
        assert_whole(rig.machine)


def machine_of(model: Any) -> Machine:
    machine: Machine = next(iter(model._model.solver.machines.values()))
    return machine


def assert_as_refitted(model: Any, here: list[int], labels: np.ndarray) -> None:
    assert model.certificate().ok and model.ids_.tolist() == here
    again = type(model)(**model.get_params()).fit(X[here], labels[here])
    np.testing.assert_allclose(
        model.decision_function(X), again.decision_function(X), rtol=0.0, atol=1e-7
    )
    np.testing.assert_array_equal(model._model.target, again._model.target)
    held = model._model
    np.testing.assert_array_equal(held.solver.samples.rows(held.position), X[here])


def test_updates_are_those_of_a_refit_also_once_rows_stand_elsewhere() -> None:
    model, labels = SVC(C=2.0, gamma=0.3).fit(X[:80], Y[:80]), Y.copy()
    here = list(range(80))
    rng = np.random.default_rng(4)
    for turn in range(12):
        gone = rng.choice(here, 3, replace=False).tolist()
        new = 80 + turn
        model.update(X[[new]], labels[[new]], ids=[new], remove=gone)
        here = [name for name in here if name not in gone] + [new]
        if turn == 5:  # another label is another row, at the end
            labels[here[2]] *= -1.0
            model.revise([here[2]], y=labels[[here[2]]])
        assert machine_of(model).straight.holds is (turn < 5)
        assert_whole(machine_of(model))
        assert_as_refitted(model, here, labels)


def test_two_rows_for_a_sample_move_up() -> None:
    model = SVR(C=2.0, gamma=0.3).fit(X[:50], X[:50, 0])
    assert not machine_of(model).straight.holds
    model.forget([3, 17])
    assert_whole(machine_of(model))
    assert np.all(np.diff(machine_of(model).lo.reshape(-1, 2), axis=1) < 0.0)


def test_a_machine_to_try_something_out_on_keeps_its_samples() -> None:
    model = SVC(C=2.0, gamma=0.3).fit(X[:60], Y[:60])
    before = model.decision_function(X)
    loo = model.leave_one_out()
    assert len(loo.decision) == 60 and machine_of(model).straight.holds
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not machine_of(model).copied(model._model.solver.samples).straight.holds


def test_arrays_of_samples_are_not_copied() -> None:
    model = SVC(C=2.0, gamma=0.3).fit(X[:60], Y[:60])
    model.update(X[[60]], Y[[60]], remove=[5])
    held = model._model
    bases = [held.target.base, held.weight.base, held.position.base]
    for name in (61, 62, 63):
        model.update(X[[name]], Y[[name]], ids=[name], remove=[name - 55])
    assert all(a is b for a, b in zip(
        bases, (held.target.base, held.weight.base, held.position.base), strict=True
    ))  # fmt: skip
    assert not bases[0][len(held) :].any() and not bases[1][len(held) :].any()


@pytest.mark.parametrize("filled", [True, False])
def test_rows_close_up(filled: bool) -> None:
    class Owner:
        values = np.arange(8.0)

    owner, gone = Owner(), np.array([1, 4, 7])
    leaving = Leaving(gone, 8, filled)
    leaving.close(owner, ("values",))
    assert owner.values.tolist() == ([0, 5, 2, 3, 6] if filled else [0, 2, 3, 5, 6])
    rows = np.array([5, 0, 6, 3])
    before = rows.astype(float)
    assert [leaving.place_of(row) for row in rows] == [
        owner.values.tolist().index(row) for row in rows
    ]
    leaving.renumber(rows)
    np.testing.assert_array_equal(owner.values[rows], before)
