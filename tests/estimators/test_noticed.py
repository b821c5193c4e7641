# SPDX-License-Identifier: BSD-3-Clause
"""Faults that once went unnoticed, each with the test that notices it."""

from dataclasses import replace

import numpy as np
import pytest

import adiabat

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


def test_another_tolerance_is_the_one_that_is_judged_by():
    model = adiabat.SVC(C=2.0, gamma=0.5).fit(X, Y)
    before = model.certificate().tol
    report = model.retune(tol=1e-6)
    assert model.tol == 1e-6 and report.certificate.tol == pytest.approx(1e3 * before, rel=1e-3)
    assert model.certificate().tol == pytest.approx(1e3 * before, rel=1e-3)
    model.forget([3])
    assert model.last_update_.certificate.tol == pytest.approx(1e3 * before, rel=1e-3)


def test_a_finer_tolerance_is_reached_or_nothing_changes():
    model = adiabat.SVC(C=2.0, gamma=0.5, tol=1e-3).fit(X, Y)
    assert model.retune(tol=1e-12).certificate.ok and model.certificate().tol < 1.5e-12
    state = model.dual_coef_.tolist(), model.tol, str(model.last_update_)
    with pytest.raises(ValueError, match="tol"):
        model.retune(tol=0.0)
    assert state == (model.dual_coef_.tolist(), model.tol, str(model.last_update_))


def test_the_certificate_is_that_of_the_worst_machine():
    labels = np.arange(60) % 4
    model = adiabat.SVC(C=5.0, gamma=0.5).fit(X, labels)
    machines = [machine for _, machine in model._model.machines]
    # what is off by as much as the tolerance allows, in one machine after the other
    for worst in machines:
        kept = [machine.verdict for machine in machines]
        worst.verdict = replace(worst.verdict, residual=0.9 * worst.verdict.allowed, gap=3e-10)
        certificate = model._certify(afresh=False)
        assert certificate.residual == worst.verdict.residual and certificate.gap == 3e-10
        for machine, verdict in zip(machines, kept, strict=True):
            machine.verdict = verdict


def test_a_scaler_that_has_seen_weights_counts_in_weights():
    weights = np.linspace(0.1, 3.0, 30)
    ours = adiabat.StandardScaler().partial_fit(X[:30], sample_weight=weights).partial_fit(X[30:])
    assert ours.n_samples_seen_ == pytest.approx(weights.sum() + 30)
    every = np.append(weights, np.ones(30))
    mean = np.average(X, axis=0, weights=every)
    assert np.allclose(ours.mean_, mean, atol=1e-14)
    assert np.allclose(ours.var_, np.average((X - mean) ** 2, axis=0, weights=every), atol=1e-14)
