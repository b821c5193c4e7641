# SPDX-License-Identifier: BSD-3-Clause
"""Rows that cannot have moved as far as 0 are bounded, and the verdict is that on all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat import SVC, SVR
from adiabat._core.judge import verdict, weigh_rows
from adiabat._core.looks import Looks, unbounded
from adiabat.engine import run, screening
from adiabat.engine.machine import Machine
from adiabat.engine.row_change import RowChange
from adiabat.kernels import make_kernel
from engine.rig import Rig

RNG = np.random.default_rng(3)
N = 600
Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
X = RNG.standard_normal((N, 3)) + np.outer(Y, [1.2, 0.0, 0.3])


@pytest.fixture(autouse=True)
def screened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with few rows, and however many are doubtful."""
    monkeypatch.setattr(screening, "SCREENED", 0)
    monkeypatch.setattr(screening, "MOST_DOUBTFUL", 1.0)
    monkeypatch.setattr(run, "WATCH_MOST", 40)
    monkeypatch.setattr(run, "WATCH_LIKELY", 20)
    monkeypatch.setattr(run, "WATCH_AMONG", 8)


def started(C: float = 1.0, gamma: float = 0.2) -> Rig:
    rig = Rig(make_kernel("rbf", gamma=gamma, degree=3, coef0=0.0, X=X), C=C)
    rig.change(X[:500], Y[:500])
    return rig


def judged_in_full(machine: Machine, tol: float) -> Any:
    """What the judge says of residuals that are all computed, on a copy."""
    twin = machine.copied(machine.samples)
    everyone = np.arange(machine.samples.n)
    f = machine.samples.block(everyone, machine.at) @ machine.u
    twin.r = f[machine.at] + machine.b - machine.t
    return twin.judged(tol), twin.r


def assert_bounded(machine: Machine, tol: float) -> None:
    """Each r is within what it can have moved by, and the verdict is that on all of them."""
    looks, held = machine.looks, machine.held_r.copy()
    assert looks is not None and machine.verdict.n_bounded == looks.n_bounded
    said, reach = machine.verdict, looks.off + machine.root * looks.drift
    expected, r = judged_in_full(machine, tol)
    off = np.abs(held - r)
    assert np.all(off <= reach + 1e-11)
    assert said.ok and expected.ok
    assert said.residual == pytest.approx(expected.residual, abs=1e-12)
    assert said.gap == pytest.approx(expected.gap, abs=1e-12)
    assert float(off.max()) <= said.moved + 1e-11


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_verdict_is_that_on_all_rows(C: float) -> None:
    rig, rng, n_bounded = started(C), np.random.default_rng(1), []
    for turn in range(12):
        gone = rng.choice(rig.names, 2, replace=False)
        if turn % 3 == 0:
            gone[0] = rng.choice(rig.names_of_rows()[rig.machine.u != 0.0])
        new = 500 + 2 * turn + np.arange(2)
        rig.change(X[new], Y[new], remove=np.unique(gone), method="exchange")
        if rig.machine.is_bounded:
            saved = rig.machine.snapshot()
            n_bounded.append(rig.machine.verdict.n_bounded)
            assert_bounded(rig.machine, rig.solver.tol)
            # `copied` computed what was bounded; go on from where it was
            rig.machine.held_r, rig.machine.looks = saved.r, saved.looks
            rig.machine.is_bounded = True
        assert rig.violation() <= 1e-12
    assert n_bounded and max(n_bounded) > 0


def test_whoever_reads_r_reads_all_of_it() -> None:
    rig = started()
    rig.change(remove=rig.names_of_rows()[np.flatnonzero(rig.machine.u)[:1]], method="exchange")
    machine = rig.machine
    assert machine.is_bounded and machine.verdict.n_bounded > 0
    everyone = np.arange(machine.samples.n)
    f = machine.samples.block(everyone, machine.at) @ machine.u
    np.testing.assert_allclose(machine.r, f[machine.at] + machine.b - machine.t, atol=1e-12)
    assert not machine.is_bounded


def test_an_update_that_is_not_committed_leaves_the_looks() -> None:
    rig = started()
    rig.change(remove=rig.names_of_rows()[np.flatnonzero(rig.machine.u)[:1]], method="exchange")
    looks = rig.machine.looks
    assert looks is not None
    before = [getattr(looks, name).copy() for name in ("r", "off", "rows", "weights")]
    before.append(np.array(looks.drift))
    gone = rig.names_of_rows()[np.flatnonzero(rig.machine.u)[:2]]
    with rig.solver.changing() as step:
        new = step.add(X[500:502])
        step.solve({(0, 1): rig.row_change(new, Y[500:502], np.ones(2), gone)})
    assert rig.machine.looks is looks
    after = looks.r, looks.off, looks.rows, looks.weights, looks.drift
    for was, now in zip(before, after, strict=True):
        np.testing.assert_array_equal(was, now)
    rig.change(remove=gone)
    assert rig.violation() <= 1e-12


def test_rows_are_watched_that_may_move_with_those_that_change() -> None:
    machine = started().machine
    machine.in_part = True
    touched = np.flatnonzero(machine.u)[:1]
    watched = run.Run(machine, 1e-9, touched, fresh=False, carried=False).watched
    together = machine.samples.block(machine.at, machine.at[touched])[:, 0]
    reach = np.where(machine.in_margin, np.inf, np.abs(machine.r) / together)
    near = np.where(machine.in_margin, np.inf, np.abs(machine.r))
    assert watched[touched].all() and watched.sum() < machine.n // 8
    assert watched[np.argsort(near)[: run.WATCH_LIKELY // run.NEAREST]].all()
    # about the nearest eighth of all is asked who may move
    asked = near <= np.sort(near)[machine.n // 10]
    likely = np.argsort(np.where(asked, reach, np.inf))[: run.WATCH_LIKELY]
    assert watched[likely].mean() > 0.9
    assert np.max(reach[likely]) < np.median(reach[asked])


def test_rows_that_have_nothing_to_do_with_those_that_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = started().machine
    machine.in_part, machine.held_r = True, 100.0 * machine.held_r
    monkeypatch.setattr(
        machine.samples, "block", lambda rows, columns: np.zeros((len(rows), len(columns)))
    )
    touched = np.flatnonzero(machine.u)[:1]
    watched = run.Run(machine, 1e-9, touched, fresh=False, carried=False).watched
    assert run.WATCH_LIKELY <= watched.sum() < machine.n // 8


def test_the_report_says_how_many_rows_are_bounded() -> None:
    model = SVC(C=1.0, gamma=0.2, solver="exchange").fit(X, Y)
    assert model.last_update_.certificate.n_bounded == 0
    certificate = model.forget([int(model.support_[0])]).last_update_.certificate
    assert 0 < certificate.n_bounded < N and 0.0 < certificate.moved < 1.0
    assert f"{certificate.n_bounded} rows bounded" in str(certificate)
    assert model.certificate().n_bounded == 0
    assert model.certificate().ok


def test_a_sum_that_is_not_zero_and_changes_of_all_rows_are_judged_in_full() -> None:
    model = SVR(C=1.0, gamma=0.2).fit(X, X[:, 0])
    assert model.retune(C=2.0).certificate.n_bounded == 0
    assert model.certificate().ok


# -- the bound -------------------------------------------------------------------------------------


#: r, lo, hi, sqrt k, how far r is off beside the drift; and whether it is bounded at a drift of 1
ROWS = {
    "far": ([2.0, 0.0, 1.0, 1.0, 0.0], True),
    "far below": ([-2.0, -1.0, 0.0, 1.0, 0.0], True),
    "near": ([0.9, 0.0, 1.0, 1.0, 0.0], False),
    "near, just computed": ([0.9, 0.0, 1.0, 1.0, -1.0], True),
    "large": ([2.0, 0.0, 1.0, 3.0, 0.0], False),
    "wrong side": ([-2.0, 0.0, 1.0, 1.0, 0.0], False),
    "known by itself": ([2.0, 0.0, 1.0, 1.0, np.nan], False),
    "never computed": ([2.0, 0.0, 1.0, 1.0, np.inf], False),
    "outside of its box": ([2.0, 0.0, -1.0, 1.0, 0.0], False),
    "infinite": ([np.inf, 0.0, 1.0, 1.0, 0.0], False),
    "not a number": ([np.nan, 0.0, 1.0, 1.0, 0.0], False),
}


@pytest.mark.parametrize("kind", ROWS)
def test_which_rows_are_bounded(kind: str) -> None:
    row, bounded = ROWS[kind]
    r, lo, hi, root, off = (np.array([value]) for value in row)
    found, furthest, common = unbounded(
        r, np.ones(1), lo, hi, root, root, off, 1.0, 1.0, 0.0, 1e-14, np.zeros(1)
    )
    assert len(found) == (0 if bounded else 1) and common == 1.0
    assert (furthest > 0.0) == bounded


def test_rows_take_the_steps_of_their_landmarks_first() -> None:
    n = 40_000  # several parts
    rng = np.random.default_rng(4)
    r, steps = rng.uniform(0.5, 3.0, n), np.array([0.25, -0.5, 1.0])
    number = rng.integers(0, 3, n).astype(np.int16)
    zeros, ones = np.zeros(n), np.ones(n)
    expected = r + steps[number]
    given = ones, zeros, ones, ones, ones, zeros, 1.0, 1.0, 0.0, 1e-14, steps
    found, furthest, common = unbounded(r, *given, number)
    assert common == 1.0
    assert unbounded(r.copy(), ones + (np.arange(n) == n - 1), *given[1:], number)[2] == -1.0
    np.testing.assert_array_equal(r, expected)
    np.testing.assert_array_equal(found, np.flatnonzero(expected <= 1.0 + 1e-12))
    assert 1.0 < furthest < 1.0 + 1e-12
    with pytest.raises(ValueError, match="a landmark is not there"):
        unbounded(r, *given, number + np.int16(1))


def test_a_verdict_on_rows_that_were_not_bounded_is_that_on_all() -> None:
    rng = np.random.default_rng(6)
    n = 200
    u, lo, hi = np.zeros(n), np.zeros(n), np.ones(n)
    u[:20], lo[:10], u[:10] = 0.5, -1.0, -0.5
    t, r = np.ones(n), np.where(np.arange(n) < 20, 1e-9 * rng.standard_normal(n), 2.0)
    t[50:] = 3.0  # the typical target is that of all
    whole = verdict(r, u, t, lo, hi, 0.0, 0.3, 1e-6, 32.0)
    rows = np.array([*range(20), 77])
    part = verdict(r, u, t, lo, hi, 0.0, 0.3, 1e-6, 32.0, rows=rows)
    np.testing.assert_allclose(part, whole, rtol=1e-12)
    r[77] = -1.0
    assert verdict(r, u, t, lo, hi, 0.0, 0.3, 1e-6, 32.0, rows=rows)[3] == 77


def test_after_a_change_the_verdict_is_that_of_all_rows() -> None:
    machine = started().machine
    assert machine.looks is not None
    machine.is_bounded, machine.looks.computed = True, np.arange(3)
    assert machine.computed() is not None
    machine.begin(RowChange(remove=np.arange(1)))
    assert machine.is_bounded and machine.computed() is None


def test_drift_is_the_length_that_w_has_moved() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((30, 4))
    K = np.zeros((30, 40))
    K[:, :30] = Z @ Z.T
    u, b = rng.standard_normal(30), 0.5
    t, at, root = np.zeros(30), np.arange(30), np.sqrt(K[:, :30].diagonal())
    looks = Looks(K[:, :30] @ u + b, u, b)
    length, before = 0.0, u
    for _ in range(3):
        after = before + 0.1 * rng.standard_normal(30) * (rng.random(30) < 0.3)
        weights, moved = np.zeros(40), np.zeros(40)
        rows, change = looks.changed(after)
        np.testing.assert_array_equal(change, after[rows] - before[rows])
        weights[:30], moved[rows] = after, change
        lo, hi = -np.ones(30), np.ones(30)
        f = np.empty(len(rows))
        weigh_rows([K], weights, at[rows], f)
        given = [K], moved, at[rows], rows, change, f, after, t, lo, hi, root, b
        doubtful = looks.look(*given)
        assert len(np.intersect1d(rows, doubtful)) == 0
        f = np.empty(len(doubtful))
        weigh_rows([K], weights, at[doubtful], f)
        looks.adopt(f, t, doubtful, root)
        r = looks.r
        length += float(np.linalg.norm(Z.T @ (after - before)))
        assert looks.drift == pytest.approx(length, rel=1e-6)
        np.testing.assert_allclose(r, K[:, :30] @ after + b, atol=1e-12)
        before = after
