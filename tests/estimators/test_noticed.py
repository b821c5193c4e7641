# SPDX-License-Identifier: BSD-3-Clause
"""Faults that once went unnoticed, each with the test that notices it."""

import numpy as np
import pytest

import adiabat
from adiabat.certificate import judge

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
    assert model.tol == 1e-6 and report.certificate.tol == pytest.approx(1e3 * before)
    assert model.certificate().tol == pytest.approx(1e3 * before)
    model.forget([3])
    assert model.last_update_.certificate.tol == pytest.approx(1e3 * before)


def test_the_gap_is_the_largest_of_all_machines():
    labels = np.arange(60) % 4
    model = adiabat.SVC(C=5.0, gamma=0.5).fit(X, labels)
    f = model._model.decide_training()
    gaps = []
    for column, (_, machine) in enumerate(model._model.machines):
        # what is off by as much as the tolerance allows, in one machine after the other
        r = f[machine.at, column] + machine.b - machine.t
        gaps.append(judge(r, machine.u, machine.t, machine.lo, machine.hi, machine.d, machine.b))
    assert model.certificate().gap == max(found.gap for found in gaps)
    assert len({found.gap for found in gaps}) > 1
    worst = max(gaps, key=lambda found: found.residual)
    assert model.certificate().residual == worst.residual


def test_a_scaler_that_has_seen_weights_counts_in_weights():
    weights = np.linspace(0.1, 3.0, 30)
    ours = adiabat.StandardScaler().partial_fit(X[:30], sample_weight=weights).partial_fit(X[30:])
    assert ours.n_samples_seen_ == pytest.approx(weights.sum() + 30)
    every = np.append(weights, np.ones(30))
    mean = np.average(X, axis=0, weights=every)
    assert np.allclose(ours.mean_, mean, atol=1e-14)
    assert np.allclose(ours.var_, np.average((X - mean) ** 2, axis=0, weights=every), atol=1e-14)
