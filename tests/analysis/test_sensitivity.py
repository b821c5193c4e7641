# SPDX-License-Identifier: BSD-3-Clause
"""Sensitivities against geometry in plain NumPy, and against the exact path and refits."""

import copy
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError

from adiabat import LSSVC, SVC, SVDD, SVR, OneClassSVM
from adiabat.analysis import check_sensitivity, sensitivity, sets, unlearning_trajectory

TOL = 1e-7


def moons(n=50, seed=0):
    return make_moons(n, noise=0.3, random_state=seed)


def machines():
    X, y = moons()
    return [
        SVC(C=5.0, gamma=0.7).fit(X, y),
        SVR(C=5.0, gamma=0.7, epsilon=0.2).fit(X, X[:, 0] + 0.3 * y),
        OneClassSVM(nu=0.2, gamma=0.7).fit(X),
        SVDD(C=0.1, gamma=0.7).fit(X),
    ]


def squared_span(points, margin, c):
    """CP01 (20) solved as it stands: project on the affine hull of the margin without c."""
    others = [j for j in margin if j != c]
    if not others:
        return np.inf
    base = points[others[0]]
    directions = (points[others[1:]] - base).T
    away = points[c] - base
    if directions.shape[1]:
        away = away - directions @ np.linalg.lstsq(directions, away, rcond=None)[0]
    return float(away @ away)


@pytest.mark.parametrize("features", [2, 12])
def test_gamma_is_the_squared_distance_to_the_span(features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, features))
    y = (X[:, 0] + 0.8 * rng.normal(size=40) > 0).astype(int)
    model = SVC(kernel="linear", C=0.5).fit(X, y)
    found = sensitivity(model)
    margin = np.flatnonzero(sets(model) == "MARGIN")
    assert len(margin) > 1
    for c in range(40):
        assert_allclose(found.gamma[c], squared_span(X, margin, c), atol=1e-9, rtol=1e-7)
    assert_allclose(found.span**2, found.gamma)


@pytest.mark.parametrize("model", machines(), ids=lambda model: type(model).__name__)
def test_linear_response_is_the_first_segment_of_the_exact_path(model):
    found = sensitivity(model)
    exact = check_sensitivity(model).exact_g
    before = dict(zip(model.ids_.tolist(), sets(model), strict=True))
    same = 0
    for i, sample in enumerate(found.ids.tolist()):
        other = copy.deepcopy(model).forget([sample])
        after = zip(other.ids_.tolist(), sets(other), strict=True)
        if all(before[name] == kind for name, kind in after):  # then one segment is all
            assert_allclose(found.loo_g[i], exact[i], atol=TOL)
            same += before[sample] != "RESERVE"
        if isinstance(model, SVC) and found.weight[i] != 0.0:
            alpha, g = unlearning_trajectory(model, sample).of(sample)
            first = int(np.argmax(alpha < alpha[0]))
            slope = (g[first - 1] - g[first]) / (alpha[first - 1] - alpha[first])
            assert_allclose(slope, found.gamma[i], rtol=1e-5, atol=TOL)
    assert same >= 1


@pytest.mark.parametrize("model", machines(), ids=lambda model: type(model).__name__)
def test_exact_margins_are_those_of_refits(model):
    X, y = moons()
    target = X[:, 0] + 0.3 * y if isinstance(model, SVR) else y
    exact = check_sensitivity(model).exact_g
    params = {**model.get_params(), "gamma": model.gamma_}
    for c in range(0, 50, 3):
        rest = np.arange(50) != c
        refit = type(model)(**params).fit(X[rest], target[rest])
        if isinstance(model, SVC):
            expected = (2 * y[c] - 1) * refit.decision_function(X[[c]])[0] - 1.0
        elif isinstance(model, SVR):
            expected = model.epsilon - abs(refit.predict(X[[c]])[0] - target[c])
        else:
            expected = refit._model.decide(X[[c]])[0, 0] - (0.5 if isinstance(model, SVDD) else 0.0)
            outside = refit.decision_function(X[[c]])[0] < -TOL
            assert outside == (expected < -TOL)
        assert_allclose(exact[c], expected, atol=TOL)


def test_agreement_counts_where_the_two_differ():
    X, y = moons(100)
    agreement = check_sensitivity(SVC(C=10.0, gamma=0.5).fit(X, y))
    approximate, exact = agreement.sensitivity.loo_error, agreement.exact_error
    assert_array_equal(agreement.disagree, np.flatnonzero(approximate != exact))
    assert 0 < len(agreement.disagree) < 10
    assert agreement.largest_difference > 0.1
    assert str(agreement).startswith("leave-one-out errors of 100 samples: ")
    assert f"differ on {len(agreement.disagree)}" in str(agreement)


def test_alone_on_the_margin_nothing_answers():
    X = [[0.0], [0.3], [0.5]]
    model = SVC(kernel="linear", C=1.0).fit(X, [1, 0, 0], sample_weight=[1.5, 1.0, 1.0])
    assert np.sum(sets(model) == "MARGIN") == 1
    found = sensitivity(model)
    alone = sets(model) == "MARGIN"
    assert np.all(np.isinf(found.gamma[alone])) and np.all(found.loo_g[alone] == -np.inf)
    assert np.all(np.isfinite(found.gamma[~alone]))


def test_no_margin_at_all():
    model = SVC(kernel="linear", C=0.1).fit([[0.0], [1.0], [0.0], [1.0]], [0, 1, 1, 0])
    assert "MARGIN" not in sets(model)
    assert np.all(np.isinf(sensitivity(model).gamma))


def test_a_copy_of_a_margin_vector_has_no_span():
    X, y = moons(30)
    model = SVC(C=5.0, gamma=0.7).fit(X, y)
    twin = int(np.flatnonzero(sets(model) == "MARGIN")[0])
    model.partial_fit(X[[twin]], y[[twin]], ids=[100])
    found = sensitivity(model)
    off = 30 if model._model.machines[0][1].in_margin[twin] else twin  # one of them is in
    assert_allclose(found.gamma[off], 0.0, atol=1e-9)
    assert_allclose(found.loo_g[off], found.g[off], atol=1e-9)


def test_pairs_of_many_classes():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=1.0).fit(X[::5], y[::5])
    found = sensitivity(model, machine=(2, 1))
    assert found.machine == (1, 2)
    assert_array_equal(found.ids, np.flatnonzero(y[::5] > 0))
    with pytest.raises(ValueError, match=r"3 machines.*machine=\(0, 1\)"):
        sensitivity(model)


def test_precomputed_kernels_and_classes_of_one_sample():
    X, y = moons(20)
    K = np.exp(-0.7 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    given = check_sensitivity(SVC(C=5.0, kernel="precomputed").fit(K, y))
    usual = check_sensitivity(SVC(C=5.0, gamma=0.7).fit(X, y))
    assert_allclose(given.exact_g, usual.exact_g, atol=TOL)
    assert_allclose(given.sensitivity.gamma, usual.sensitivity.gamma, atol=TOL)
    lone = check_sensitivity(SVC(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 1]))
    assert np.isnan(lone.exact_g[0]) and np.isfinite(lone.exact_g[1:]).all()


def test_frames_and_bad_input(monkeypatch):
    found = sensitivity(SVC(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 1]))
    columns = ["id", "weight", "gamma", "span", "g", "loo_g", "loo_error"]
    assert list(found.to_frame().columns) == columns
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert list(found.to_frame()) == columns
    with pytest.raises(NotFittedError):
        sensitivity(SVC())
    for other in (1.0, LSSVC().fit([[0.0], [1.0]], [0, 1])):
        with pytest.raises(TypeError, match=f"model={type(other).__name__} has no margin, error"):
            sensitivity(other)
