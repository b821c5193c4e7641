# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities from leave-one-out: their curves, their coupling, and that rows leave them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import adiabat
from adiabat import SVC
from adiabat.estimators.confidence.calibration import coupled

from .test_p_values import three_classes

KINDS = ("sigmoid", "isotonic", "venn_abers")


def two_classes(n: int = 80, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(int), rng.standard_normal((9, 2))


def test_a_sigmoid_is_the_most_likely_one():
    X, y, Z = two_classes()
    model = SVC(gamma=0.5, calibration="sigmoid").fit(X, y)
    f = model.leave_one_out().decision
    many, few = y.sum(), (1 - y).sum()
    target = np.where(y == 1, (many + 1) / (many + 2), 1 / (few + 2))

    def loss(line):
        p = expit(line[0] * f + line[1])
        return -np.sum(target * np.log(p) + (1 - target) * np.log(1 - p))

    line = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9}).x
    found = model.predict_proba(Z)
    np.testing.assert_allclose(
        found[:, 1], expit(line[0] * model.decision_function(Z) + line[1]), atol=1e-5
    )
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_an_isotonic_curve_is_scikit_learns():
    X, y, Z = two_classes()
    model = SVC(gamma=0.5, calibration="isotonic").fit(X, y)
    curve = IsotonicRegression(out_of_bounds="clip", y_min=0.0, y_max=1.0)
    curve.fit(model.leave_one_out().decision, y)
    np.testing.assert_allclose(
        model.predict_proba(Z)[:, 1], curve.predict(model.decision_function(Z)), atol=1e-12
    )


def test_venn_abers_fits_the_row_with_either_label():
    X, y, Z = two_classes()
    model = SVC(gamma=0.5, calibration="venn_abers").fit(X, y)
    points = np.vstack([Z, X[:3]])
    f, held = model.decision_function(points), model.leave_one_out().decision
    found = model.predict_proba_interval(points)
    for k, value in enumerate(f):
        for label in (0, 1):
            curve = IsotonicRegression(out_of_bounds="clip", y_min=0.0, y_max=1.0)
            curve.fit(np.append(held, value), np.append(y, label))
            assert found[k, label] == pytest.approx(curve.predict([value])[0], abs=1e-12)
    assert np.all(found[:, 0] <= found[:, 1])
    p = model.predict_proba(points)[:, 1]
    assert np.all((found[:, 0] <= p) & (p <= found[:, 1]))


@pytest.mark.parametrize("kind", KINDS)
def test_many_classes(kind):
    X, y, Z = three_classes()
    found = SVC(gamma=0.5, calibration=kind).fit(X, y).predict_proba(Z)
    assert found.shape == (6, 3)
    assert np.all(found >= 0.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_coupling_minimises_what_it_says_and_finds_consistent_pairs():
    p = np.array([0.5, 0.3, 0.2])
    pairs = np.array([[p[1] / (p[0] + p[1]), p[2] / (p[0] + p[2]), p[2] / (p[1] + p[2])]])
    np.testing.assert_allclose(coupled(pairs, 3)[0], p)
    rng = np.random.default_rng(0)
    pairs = rng.uniform(0.05, 0.95, (20, 3))
    found = coupled(pairs, 3)

    def off(p, r):
        a, b, c = r
        return (
            (a * p[0] - (1 - a) * p[1]) ** 2 + (b * p[0] - (1 - b) * p[2]) ** 2
            + (c * p[1] - (1 - c) * p[2]) ** 2
        )  # fmt: skip

    for r, own in zip(pairs, found, strict=True):
        for other in rng.dirichlet([1.0, 1.0, 1.0], 200):
            assert off(own, r) <= off(other, r) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_a_forgotten_row_leaves_the_probabilities(kind):
    X, y, Z = two_classes()
    never = SVC(gamma=0.5, calibration=kind).fit(X[5:], y[5:]).predict_proba(Z)
    model = SVC(gamma=0.5, calibration=kind).fit(X, y)
    model.predict_proba(Z)
    model.forget(np.arange(5))
    assert model._model.calibration is None
    np.testing.assert_allclose(model.predict_proba(Z), never, atol=1e-8)
    model.partial_fit(X[:5], y[:5])
    assert model._model.calibration is None
    whole = SVC(gamma=0.5, calibration=kind).fit(X, y).predict_proba(Z)
    np.testing.assert_allclose(model.predict_proba(Z), whole, atol=1e-8)


def test_files_and_pickles_hold_the_parameter_and_no_curve(tmp_path):
    X, y, Z = two_classes()
    model = SVC(gamma=0.5, calibration="venn_abers").fit(X, y)
    found = model.predict_proba(Z)
    model.save(tmp_path / "model.zip")
    for other in (adiabat.load(tmp_path / "model.zip"), pickle.loads(pickle.dumps(model))):
        assert other._model.calibration is None
        np.testing.assert_allclose(other.predict_proba(Z), found, atol=1e-9)


def test_two_samples_a_class_suffice_and_one_does_not():
    X = [[0.0], [0.4], [2.0], [2.4]]
    model = SVC(gamma=0.5, calibration="sigmoid").fit(X, [0, 0, 1, 1])
    assert model.predict_proba([[0.0]]).shape == (1, 2)
    with pytest.raises(ValueError, match="two samples of each class, and 1 has one"):
        SVC(gamma=0.5, calibration="sigmoid").fit(X[:3], [0, 0, 1]).predict_proba(X)
    alone = SVC(gamma=0.5, calibration="sigmoid").fit(X, [1, 1, 1, 1])
    np.testing.assert_array_equal(alone.predict_proba(X), np.ones((4, 1)))


def test_methods_exist_where_they_have_an_answer():
    X, y, Z = two_classes()
    assert not hasattr(SVC(), "predict_proba")
    assert hasattr(SVC(calibration="sigmoid"), "predict_proba")
    assert not hasattr(SVC(calibration="sigmoid"), "predict_proba_interval")
    with pytest.raises(AttributeError, match="predict_proba"):
        SVC().fit(X, y).predict_proba(Z)
    with pytest.raises(ValueError, match="calibration"):
        SVC(calibration="platt").fit(X, y)
    many = SVC(gamma=0.5, calibration="venn_abers").fit(*three_classes()[:2])
    with pytest.raises(ValueError, match="two classes, and the model has 3"):
        many.predict_proba_interval(Z)


def test_predict_stays_the_largest_decision():
    X, y, _ = two_classes(60, 3)
    X[:, 0] += 1.0
    y[:50] = 1
    model = SVC(gamma=0.5, calibration="sigmoid").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), SVC(gamma=0.5).fit(X, y).predict(X))
