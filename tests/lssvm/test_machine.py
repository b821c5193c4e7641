# SPDX-License-Identifier: BSD-3-Clause
"""The machine against the closed form to sixty digits, on long streams and bad conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adiabat.lssvm.auxiliary import AuxiliaryMatrix, IndefiniteMatrix
from adiabat.lssvm.evidence import certify
from adiabat.lssvm.exact_residual import normal_residual, right_hand_side
from adiabat.lssvm.machine import Batch, LeastSquares
from adiabat.lssvm.moments import Moments
from adiabat.lssvm.normal_equations import right_sides

from oracles.least_squares import closed_form, relative

ONE = np.array([[0.0], [1.0]])  # one output: the target itself


def changed(model: LeastSquares, batches: list[Batch]) -> LeastSquares:
    return model.changed(model.summed(batches))


def batch(phi: np.ndarray, t: np.ndarray, sign: float, s: np.ndarray | None = None) -> Batch:
    return Batch(phi, t, s, sign, lambda rows: rows)


def machine(
    phi: np.ndarray, t: np.ndarray, rho: float, intercept: bool, s: np.ndarray | None = None
) -> LeastSquares:
    moments = Moments(phi.shape[1], t.shape[1])
    moments.add(phi, t, s, 1.0, rho)
    return LeastSquares.solved(moments, rho, intercept, 1e-10, ONE)


def ill_conditioned(rng: np.random.Generator, n: int, width: int, condition: float) -> np.ndarray:
    """Rows whose second moments have this condition, in no direction of the axes."""
    basis, _ = np.linalg.qr(rng.normal(size=(width, width)))
    spread = np.logspace(0.0, -0.5 * np.log10(condition), width)
    return rng.normal(size=(n, width)) * spread @ basis


@pytest.mark.rotates(2)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_hundred_thousand_additions_and_removals_at_condition_1e8(intercept):
    rng = np.random.default_rng(8)
    width, pool = 8, 600
    phi = ill_conditioned(rng, pool, width, 1e8)
    t = phi @ rng.normal(size=(width, 1)) + 0.1 * rng.normal(size=(pool, 1)) + 1.0
    rho = 1e-8 * 300
    held = np.zeros(pool, dtype=bool)
    held[:300] = True
    model = machine(phi[held], t[held], rho, intercept)
    moved = 0
    while moved < 100_000:
        free = np.flatnonzero(~held)
        come = rng.choice(free, min(len(free), rng.integers(0, 40)), replace=False)
        go = rng.choice(np.flatnonzero(held), rng.integers(1, 40), replace=False)
        if rng.random() < 0.05:
            come, go = come[:1], go[:1]
        if held.sum() + len(come) - len(go) < 100:
            go = go[:1]
        parts = [batch(phi[come], t[come], 1.0), batch(phi[go], t[go], -1.0)]
        model = changed(model, [part for part in parts if len(part)])
        held[come], held[go] = True, False
        moved += len(come) + len(go)
    truth = closed_form(phi[held], t[held], rho, intercept)
    assert relative(model.solution[:width], truth[:width]) < 1e-12  # asked: 1e-8
    assert certify(model, {}, afresh=True).ok
    assert len(model) == held.sum()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
def test_single_rows_through_the_updated_inverse(condition, intercept):
    rng = np.random.default_rng(3)
    phi = ill_conditioned(rng, 120, 6, condition)
    t = rng.normal(size=(120, 1))
    rho = 60.0 / condition
    model = machine(phi[:60], t[:60], rho, intercept)
    for step in range(180):  # three times round, and then the last sixty rows are held
        come, go = (60 + step) % 120, step % 120
        model = changed(model, [batch(phi[[come]], t[[come]], 1.0)])
        model = changed(model, [batch(phi[[go]], t[[go]], -1.0)])
    truth = closed_form(phi[60:], t[60:], rho, intercept)
    assert relative(model.solution[:6], truth[:6]) < 1e-11


def test_the_updated_inverse_is_the_rebuilt_one():
    rng = np.random.default_rng(4)
    phi, t = rng.normal(size=(50, 10)), rng.normal(size=(50, 1))
    s = rng.uniform(0.5, 2.0, 50)
    model = machine(phi[:40], t[:40], 0.3, True, s[:40])
    signed = np.concatenate([s[40:], -s[:5]])
    found = model.matrix.changed(np.concatenate([phi[40:], phi[:5]]), signed)
    moments = Moments(10, 1)
    moments.add(phi[5:], t[5:], s[5:], 1.0, 0.3)
    fresh = AuxiliaryMatrix.rebuilt(moments, 0.3, True)
    assert np.allclose(np.triu(found.inverse), np.triu(fresh.inverse), rtol=0, atol=1e-12)
    assert np.allclose(found.mean, fresh.mean, rtol=0, atol=1e-14)


def test_the_papers_matrix_and_update_for_rows_in_and_out():
    """LKW19 (3)-(6) as printed, without a bias."""
    rng = np.random.default_rng(5)
    phi, t, rho = rng.normal(size=(30, 4)), rng.normal(size=(30, 1)), 0.7
    Phi, y = phi[:20].T, t[:20]
    inner = np.linalg.inv(Phi.T @ Phi + rho * np.eye(20))
    w, C = Phi @ inner @ y, Phi @ inner @ Phi.T
    model = machine(phi[:20], t[:20], rho, False)
    P = np.triu(model.matrix.inverse)
    P = P + np.triu(P, 1).T
    assert np.allclose(model.solution, w, atol=1e-14)
    assert np.allclose(np.eye(4) - rho * P, C, atol=1e-13)
    Phi_c = np.column_stack([phi[20:].T, phi[:5].T])
    Phi_d = np.column_stack([phi[20:].T, -phi[:5].T])
    y_c = np.concatenate([t[20:], -t[:5]])
    E = C - np.eye(4)
    K = np.linalg.inv(rho * np.eye(15) - Phi_d.T @ E @ Phi_c)
    w = w + E @ Phi_c @ K @ (Phi_d.T @ w - y_c)
    C = C + E @ Phi_c @ K @ Phi_d.T @ E
    matrix = model.matrix.changed(
        np.concatenate([phi[20:], phi[:5]]), np.concatenate([np.ones(10), -np.ones(5)])
    )
    P = np.triu(matrix.inverse)
    P = P + np.triu(P, 1).T
    assert np.allclose(np.eye(4) - rho * P, C, atol=1e-12)
    moved = changed(model, [batch(phi[20:], t[20:], 1.0), batch(phi[:5], t[:5], -1.0)])
    assert np.allclose(moved.solution, w, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_row_never_added_makes_the_matrix_indefinite(intercept):
    rng = np.random.default_rng(6)
    phi, t = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))
    model = machine(phi, t, 0.1, intercept)
    before = model.moments.hi.copy()
    with pytest.raises(IndefiniteMatrix):
        changed(model, [batch(100.0 * phi[:1], t[:1], -1.0)])
    assert np.array_equal(model.moments.hi, before)


def test_features_far_from_zero():
    rng = np.random.default_rng(7)
    phi = 1e8 + rng.normal(size=(60, 3))
    t = rng.normal(size=(60, 1))
    model = machine(phi[:50], t[:50], 1e-3, True)
    for row in range(50, 60):
        model = changed(model, [batch(phi[[row]], t[[row]], 1.0)])
        model = changed(model, [batch(phi[[row - 50]], t[[row - 50]], -1.0)])
    truth = closed_form(phi[10:], t[10:], 1e-3, True)
    assert relative(model.solution[:3], truth[:3]) < 1e-10


def test_a_spoilt_inverse_is_noticed_and_built_anew():
    rng = np.random.default_rng(9)
    phi, t = rng.normal(size=(40, 12)), rng.normal(size=(40, 1))
    model = machine(phi[:30], t[:30], 0.1, True)
    model.matrix.inverse[:] *= 4.0
    moved = changed(model, [batch(phi[30:31], t[30:31], 1.0)])
    assert moved.effort.refreshes == 1
    assert relative(moved.solution, closed_form(phi[:31], t[:31], 0.1, True)) < 1e-13


def test_the_judge_agrees_with_the_machine_on_the_residual():
    rng = np.random.default_rng(10)
    phi, t = rng.normal(size=(30, 7)) * 10.0 ** rng.integers(-3, 3, 7), rng.normal(size=(30, 1))
    model = machine(phi, t, 0.1, True)
    off = model.solution * (1.0 + 1e-9)
    right = np.concatenate([model.moments.hi[:7, 8], model.moments.hi[7:8, 8]])
    rest = np.concatenate([model.moments.lo[:7, 8], model.moments.lo[7:8, 8]])
    judged = normal_residual(
        model.moments.hi, model.moments.lo, model.ridge(), off[:, 0], right, rest
    )
    lacking = model.lacking(off, (right[:, None], rest[:, None]))
    assert np.allclose(judged, lacking[:, 0], rtol=1e-12, atol=0)


def test_the_judge_finds_its_own_right_hand_side():
    rng = np.random.default_rng(11)
    phi, t = rng.normal(size=(30, 7)) * 10.0 ** rng.integers(-3, 9, 7), rng.normal(size=(30, 1))
    for intercept in (False, True):
        model = machine(phi, t, 0.1, intercept)
        combine = model.combine[:, 0]
        b, rest = right_hand_side(model.moments.hi, model.moments.lo, len(model.solution), combine)
        right, right_rest = right_sides(model.moments, intercept, model.combine)
        assert b.tolist() == right[:, 0].tolist()
        assert np.allclose(rest, right_rest[:, 0], rtol=1e-12, atol=0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("size", [1e-9, 1e-4, 1.0])
def test_f_of_a_spoiled_solution_is_within_the_bounds(intercept, size):
    """Both bounds hold, the machine's and its judge's; they are computed by different code."""
    rng = np.random.default_rng(3)
    phi = ill_conditioned(rng, 60, 5, 1e6)
    model = machine(phi, phi[:, :1] + rng.normal(size=(60, 1)), 1e-3, intercept)
    off = size * rng.normal(size=model.solution.shape)
    spoiled = replace(model, solution=model.solution + off)
    error = np.abs(spoiled.decide(phi) - model.decide(phi)).max()
    lacking = spoiled.lacking(
        spoiled.solution, right_sides(model.moments, intercept, model.combine)
    )
    moved, left = spoiled.left_over(lacking, model.matrix.solve(lacking))
    assert error <= spoiled.distance(spoiled.solution, moved + left) <= 1e3 * error
    judged = certify(spoiled, {}, afresh=True)
    assert error <= judged.f_error <= 1e3 * error
    assert not judged.ok
