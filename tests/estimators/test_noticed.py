# SPDX-License-Identifier: BSD-3-Clause
"""Faults that once went unnoticed, each with the test that notices it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import adiabat
from adiabat.certificate import Problem, judge
from adiabat.engine.solver import Solver

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)


@pytest.mark.parametrize("offset", [0.0, 50.0, 3000.0])
def test_an_intercept_belongs_to_the_features_as_they_were_given(offset):
    """Far from zero a linear kernel measures from an origin; b is then moved back."""
    rows = X + offset
    model = adiabat.SVC(kernel="linear", C=2.0).fit(rows, Y)
    f = rows @ (model.dual_coef_[0] @ rows[model.support_]) + model.intercept_[0]
    scale = np.abs(f).max() + abs(model.intercept_[0])
    assert np.abs(f - model.decision_function(rows)).max() < 1e-9 * scale
    regression = adiabat.SVR(kernel="linear").fit(rows, X[:, 0])
    f = rows @ (regression.dual_coef_[0] @ rows[regression.support_]) + regression.intercept_[0]
    assert np.abs(f - regression.predict(rows)).max() < 1e-9 * (1 + abs(regression.intercept_[0]))


@pytest.mark.parametrize("tol", [1e-6, 1e-11])
def test_another_tolerance_is_the_one_that_is_judged_by(tol):
    """All machines at once, also those that a later change does not touch."""
    labels = np.arange(60) % 4
    model = adiabat.SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X, labels)
    report = model.retune(tol=tol)
    assert model.tol == tol and report.certificate.tol == pytest.approx(tol, rel=0.1)
    assert model.certificate().tol == pytest.approx(tol, rel=0.1)
    model.forget([3])
    assert model.last_update_.certificate.tol == pytest.approx(tol, rel=0.1)
    model.set_params(tol=3e-9)
    for call in (lambda: model.forget([4]), lambda: model.forget([], missing="ignore")):
        call()
        verdicts = [machine.verdict for _, machine in model._model.machines]
        assert all(found.gap_allowed == pytest.approx(3e-9, rel=0.1) for found in verdicts)


def test_a_tolerance_that_the_model_does_not_meet_yet_is_met():
    model = adiabat.SVC(C=2.0, gamma=0.5, tol=1e-5).fit(X, Y)
    expected = model.decision_function(X)
    machine = model._model.machines[0][1]
    machine.b += 1e-6  # well within what was asked for so far
    machine.r += 1e-6
    assert model.certificate().ok
    assert model.retune(tol=1e-9).certificate.ok and model.certificate().ok
    assert np.abs(model.decision_function(X) - expected).max() < 1e-9


def test_balanced_classes_count_by_weight():
    weights = np.where(Y == 1, 3.0, 1.0)
    model = adiabat.SVC(gamma=0.5, class_weight="balanced").fit(X, Y, sample_weight=weights)
    total, own = weights.sum(), weights[Y == 1].sum()
    held = model.certificate().held_fixed["class_weight"]
    assert held[1] == pytest.approx(total / (2 * own))
    assert held[0] == pytest.approx(total / (2 * (total - own)))


def test_a_retuning_that_fails_leaves_the_tolerance_as_it_was(monkeypatch):
    model = adiabat.SVC(C=2.0, gamma=0.5).fit(X, Y)
    before = model.certificate()

    def give_up(*_):
        raise adiabat.NotOptimalError("given up")

    with monkeypatch.context() as patched:
        patched.setattr(Solver, "_solve", give_up)
        with pytest.raises(adiabat.NotOptimalError):
            model.retune(tol=1e-4, C=50.0)
    assert model.tol == 1e-9 and model.certificate() == before
    assert model.forget([3]).last_update_.certificate.tol == pytest.approx(1e-9, rel=0.1)


def verdicts_of(model):
    """The judge's word on each machine and the id of its worst, by scikit-learn's kernel values."""
    ids = np.empty(model._model.solver.samples.n, dtype=int)
    ids[model._model.position] = model.ids_  # which say where a sample is in X
    found = []
    for _, machine in model._model.machines:
        rows, u = ids[machine.at], machine.u
        K = rbf_kernel(X[rows], gamma=0.5)
        problem = Problem(u, machine.t, machine.lo, machine.hi, machine.d, machine.b)
        verdict = judge(problem, K @ u + machine.b - machine.t, K @ np.abs(u), model.tol)
        found.append((verdict, int(rows[verdict.worst])))
    return found


def test_a_certificate_speaks_of_the_machine_that_is_worst():
    labels = np.arange(60) % 4
    for place in range(6):
        model = adiabat.SVC(C=5.0, gamma=0.5).fit(X, labels).forget([0, 5, 10, 15])
        assert (model._model.position != np.arange(56)).any()
        assert all(found.ok for found, _ in verdicts_of(model)) and model.certificate().ok
        machine = model._model.machines[place][1]
        machine.b += 5e-10  # half of what is allowed
        certificate = model.certificate()
        found, worst = verdicts_of(model)[place]
        assert certificate.ok and found.ok
        assert certificate.residual == pytest.approx(found.residual, rel=1e-3)
        assert certificate.gap == pytest.approx(found.gap, rel=1e-3)
        machine.b += 1e-6
        machine.u[5] *= 1.0 - 1e-5  # so that one row stands out
        certificate = model.certificate()
        found, worst = verdicts_of(model)[place]
        assert not certificate.ok and not found.ok
        assert certificate.worst == worst


def test_a_scaler_that_has_seen_weights_counts_in_weights():
    weights = np.linspace(0.1, 3.0, 30)
    ours = adiabat.StandardScaler().partial_fit(X[:30], sample_weight=weights).partial_fit(X[30:])
    assert ours.n_samples_seen_ == pytest.approx(weights.sum() + 30)
    every = np.append(weights, np.ones(30))
    mean = np.average(X, axis=0, weights=every)
    assert np.allclose(ours.mean_, mean, atol=1e-14)
    assert np.allclose(ours.var_, np.average((X - mean) ** 2, axis=0, weights=every), atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_decides_no_tie(seed):
    """Each row has its mirror image in the other class, so f is 0 in the middle, and no 1e-16."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((15, 3))
    X, y = np.r_[half, -half], np.repeat([1, 0], 15)
    middle = np.zeros((1, 3))
    for order in (np.arange(30), rng.permutation(30)):
        model = adiabat.SVC(C=2.0, gamma=0.3).fit(X[order], y[order])
        assert model.decision_function(middle).tolist() == [0.0]
        assert model.predict(middle).tolist() == [0]
        assert np.abs(model.decision_function(half)).min() > 1e-6
