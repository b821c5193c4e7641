# SPDX-License-Identifier: BSD-3-Clause
"""Bets against exchangeability: fair while it holds, rich when it does not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import quad

import adiabat
from adiabat import SVC, SVR
from adiabat.martingales import PowerMartingale, SimpleJumper
from adiabat.retention import Adaptive
from adiabat.streams import RiverDriftDetector
from benchmarks import coverage


@pytest.mark.parametrize("make", [PowerMartingale, lambda: PowerMartingale(0.2), SimpleJumper])
def test_a_bet_is_fair(make):
    """Whatever came before, the mean of the capital after a uniform p-value is the capital."""
    for before in ([], [0.1, 0.9], [0.01] * 5):

        def capital(p, before=before):
            martingale = make()
            for value in before:
                martingale.update(value)
            return martingale.update(p)

        martingale = make()
        for value in before:
            martingale.update(value)
        mean, _ = quad(capital, 0.0, 1.0, limit=200)
        assert mean == pytest.approx(martingale.value, rel=1e-3)


@pytest.mark.parametrize("make", [PowerMartingale, SimpleJumper])
def test_uniform_p_values_seldom_reach_high_odds(make):
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(400):
        martingale = make()
        for p in rng.uniform(size=100):
            martingale.update(p)
        reached += martingale.largest >= 20.0
    assert reached <= 33  # 20 expected at most, and 33 exceeded by chance once in a thousand runs


def test_small_p_values_are_found_and_reset_forgets_them():
    martingale = SimpleJumper(jump=0.1)
    for _ in range(60):
        martingale.update(0.02)
    assert martingale.value > 1e3
    martingale.reset()
    assert (martingale.value, martingale.largest, martingale.jump) == (1.0, 1.0, 0.1)
    with pytest.raises(ValueError, match=r"p=1\.5"):
        martingale.update(1.5)
    with pytest.raises(ValueError, match=r"epsilon=1\.0"):
        PowerMartingale(1.0)
    with pytest.raises(ValueError, match=r"jump=0\.0"):
        SimpleJumper(0.0)


def drifting(n: int = 160, at: int = 100, seed: int = 0):
    X = np.random.default_rng(seed).standard_normal((n, 1))
    return X, np.where(np.arange(n) < at, X[:, 0] > 0, X[:, 0] < 0).astype(int)


def test_a_drift_cuts_the_window_and_the_rest_is_exact(tmp_path):
    X, y = drifting()
    model = SVC(gamma=0.5, retain=Adaptive(odds=100.0)).fit(X[:20], y[:20])
    for k in range(20, 160):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        assert set(model._model.notes) <= set(model.ids_.tolist())
    assert model.ids_[0] >= 90
    again = SVC(gamma=0.5).fit(X[model.ids_], y[model.ids_])
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-8)
    assert pickle.loads(pickle.dumps(model))._model.notes == model._model.notes
    model.save(tmp_path / "model.zip")
    assert adiabat.load(tmp_path / "model.zip").retain == model.retain
    first = model.ids_[0]
    model.forget([first])
    assert first not in model._model.notes


def test_without_drift_all_stay_but_those_too_many():
    X, y = drifting(at=160)
    model = SVC(gamma=0.5, retain=Adaptive()).fit(X[:60], y[:60])
    model.partial_fit(X[60:], y[60:])
    assert len(model.ids_) == 160
    few = SVR(gamma=0.5, retain=Adaptive(size=30)).fit(X, X[:, 0])
    assert list(few.ids_) == list(range(130, 160))
    for wrong in ({"odds": 1.0}, {"betting": "roulette"}, {"size": 0}):
        with pytest.raises(ValueError, match="Adaptive"):
            Adaptive(**wrong)


def test_rivers_interface():
    detector = RiverDriftDetector(odds=50.0)
    for p in np.full(200, 0.01):
        detector.update(p)
        if detector.drift_detected:
            break
    assert detector.drift_detected
    detector.update(0.5)
    assert not detector.drift_detected
    for wrong in ({"odds": 0.5}, {"betting": "roulette"}):
        with pytest.raises(ValueError, match="must be"):
            RiverDriftDetector(**wrong)


@pytest.mark.parametrize("name", ["SVC full", "SVR full", "SVR jackknife+", "KernelLSSVR full"])
def test_coverage_over_some_draws(name):
    part, promised, least = coverage.coverage(name, 60)
    assert part >= least
    assert promised in (pytest.approx(0.8), pytest.approx(0.6))


def test_p_values_and_martingales_over_some_draws():
    assert coverage.uniformity("p-values of OneClassSVM", 60) > 1e-3
    assert max(coverage.alarms(8)[:2]) <= 0.5
