# SPDX-License-Identifier: BSD-3-Clause
"""Rows without weight come and go, and nothing is computed or copied for the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat.engine.machine import Machine
from adiabat.kernels import make_kernel
from engine.rig import Rig

RNG = np.random.default_rng(5)
Y = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
X = RNG.standard_normal((200, 2)) + np.outer(Y, [1.5, 0.0])
#: Far on their own side: such a row has no weight, and r far from 0.
FAR = np.array([[3.0, 0.0], [-3.0, 0.2]])


@pytest.fixture
def rig() -> Rig:
    rig = Rig(make_kernel("rbf", gamma=0.3, degree=3, coef0=0.0, X=X), C=2.0)
    rig.change(X, Y)
    return rig


def idle(rig: Rig) -> np.ndarray:
    """Names of samples without weight whose condition holds."""
    machine = rig.machine
    good = (machine.u == 0.0) & ~machine.in_margin & (machine.r * machine.t > 1e-3)
    return rig.names_of_rows()[good]


def verdicts_made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    original = Machine.judged

    def judged(self: Machine, tol: float) -> Any:
        calls.append(1)
        return original(self, tol)

    monkeypatch.setattr(Machine, "judged", judged)
    return calls


def test_the_verdict_is_carried_and_is_that_of_all_rows(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = verdicts_made(monkeypatch)
    for k in range(6):
        before = rig.machine.verdict
        rig.change(FAR + 0.01 * k, [1.0, -1.0], remove=idle(rig)[[0, -1, 7]])
        assert not calls and rig.machine.verdict.residual == before.residual
        found = rig.machine.judged(rig.solver.tol)
        calls.clear()
        assert found.ok and found.worst == rig.machine.verdict.worst
        assert found.residual == before.residual
        assert found.gap == pytest.approx(rig.machine.verdict.gap, rel=1e-9)
        assert rig.violation() <= 1e-12


def test_arrays_are_not_copied(rig: Rig) -> None:
    rig.change(FAR, [1.0, -1.0], remove=idle(rig)[:1])
    arrays = {name: getattr(rig.machine, name).base for name in ("u", "r", "t", "root")}
    for _ in range(3):
        rig.change(FAR, [1.0, -1.0], remove=idle(rig)[:2])
        for name, base in arrays.items():
            assert getattr(rig.machine, name).base is base
        assert not arrays["r"][rig.machine.n :].any()  # of rows that are gone


def test_a_step_that_is_not_committed_leaves_the_machine(rig: Rig) -> None:
    machine = rig.machine
    n, r, lo, count = machine.n, machine.r.copy(), machine.lo.copy(), rig.solver.samples.n
    gone = idle(rig)[:2]
    with rig.solver.changing() as step:
        new = step.add(FAR)
        step.solve({(0, 1): rig.row_change(new, np.array([1.0, -1.0]), np.ones(2), gone)})
    assert (machine.n, rig.solver.samples.n) == (n, count)
    np.testing.assert_array_equal(machine.r, r)
    np.testing.assert_array_equal(machine.lo, lo)


@pytest.mark.parametrize("kind", ["weight", "violator", "path"])
def test_other_changes_are_judged(rig: Rig, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = verdicts_made(monkeypatch)
    if kind == "weight":
        row = int(np.flatnonzero(rig.machine.u)[0])
        rig.change(remove=rig.names_of_rows()[[row]])
    elif kind == "violator":
        rig.change(FAR, [-1.0, 1.0])
    else:
        rig.change(FAR, [1.0, -1.0], method="path")
    assert calls and rig.violation() <= 1e-12
