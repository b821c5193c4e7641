# SPDX-License-Identifier: BSD-3-Clause
"""OneClassSVM: against scikit-learn, an interior point solver and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.svm

from adiabat import OneClassSVM

from laws.compare import assert_is_optimum
from oracles.operations import Roster

SOLVERS = ["auto", "path", "exchange"]


def cloud(seed: int, n: int) -> Any:
    return np.random.default_rng(seed).standard_normal((n, 2))


def roster(X: Any) -> Roster:
    return Roster(X, np.zeros(len(X)), np.ones(len(X)), np.arange(len(X)))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("nu", [0.05, 0.3, 0.5, 0.9])
def test_it_is_the_model_of_scikit_learn(kernel: str, nu: float) -> None:
    X, probe = cloud(0, 97) + 2.0, cloud(1, 40) + 2.0  # nu n is no integer: b is unique
    params = {"kernel": kernel, "nu": nu, "gamma": 0.5, "degree": 2, "coef0": 1.0}
    ours = OneClassSVM(**params).fit(X)
    theirs = sklearn.svm.OneClassSVM(**params, tol=1e-5).fit(X)
    size = max(1.0, float(np.abs(theirs.score_samples(probe)).max()))
    for name in ("decision_function", "score_samples"):
        one, other = getattr(ours, name)(probe), getattr(theirs, name)(probe)
        np.testing.assert_allclose(one, other, atol=1e-4 * size)
    assert ours.offset_ == pytest.approx(float(np.ravel(theirs.offset_)[0]), abs=1e-4 * size)
    assert ours.dual_coef_.sum() == pytest.approx(nu * 97)
    clear = np.abs(theirs.decision_function(probe)) > 1e-3 * size
    assert ours.predict(probe)[clear].tolist() == theirs.predict(probe)[clear].tolist()


def test_weights_are_those_of_scikit_learn() -> None:
    """LIBSVM's sum for weights is nu sum(w), as is ours."""
    X = cloud(2, 80)
    weight = np.random.default_rng(3).integers(1, 4, 80) / 2.0
    ours = OneClassSVM(nu=0.3, gamma=0.5).fit(X, sample_weight=weight)
    assert ours.dual_coef_.sum() == pytest.approx(0.3 * weight.sum())
    repeated = np.repeat(X, (2 * weight).astype(int), axis=0)
    theirs = sklearn.svm.OneClassSVM(nu=0.3, gamma=0.5, tol=1e-5).fit(repeated)
    f = 2.0 * ours.decision_function(X)  # a row of weight w is 2w rows of weight 1/2
    np.testing.assert_allclose(f, theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nu", [0.1, 0.25, 0.5, 1.0])
def test_nu_bounds_outliers_and_support(nu: float, solver: str) -> None:
    """At most nu n outside, at least nu n with weight (Schoelkopf et al., proposition 3)."""
    X = cloud(4, 80)
    model = OneClassSVM(nu=nu, gamma=0.5, solver=solver).fit(X)
    for _ in range(2):
        n = len(model.ids_)
        held = X[model.ids_]
        assert np.sum(model.predict(held) < 0) <= nu * n + 1e-9
        assert len(model.support_) >= nu * n - 1e-9
        model.forget(model.ids_[::4])


@pytest.mark.parametrize("solver", SOLVERS)
def test_nu_of_one_weighs_every_sample_fully(solver: str) -> None:
    X = cloud(5, 30)
    model = OneClassSVM(nu=1.0, gamma=0.5, solver=solver).fit(X)
    np.testing.assert_allclose(model.dual_coef_, 1.0)
    model.partial_fit(X[:5] + 0.5)
    model.forget([0, 31])
    np.testing.assert_allclose(model.dual_coef_, 1.0)
    assert model.dual_coef_.shape == (1, 33)
    assert model.decision_function(np.delete(np.vstack([X, X[:5] + 0.5]), [0, 31], 0)).max() <= 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nu", [1e-6, 0.2, 0.5, 1.0])
def test_one_two_and_three_samples(nu: float, solver: str) -> None:
    """One: u = nu. Two: nu each by symmetry. Three equal distances: nu each."""
    model = OneClassSVM(nu=nu, gamma=1.0, solver=solver).fit([[0.0, 0.0]])
    np.testing.assert_allclose(model.dual_coef_, [[nu]], rtol=1e-9)
    assert model.offset_ == pytest.approx(nu)
    assert model.predict([[0.0, 0.0], [9.0, 9.0]]).tolist() == [1, -1]
    model.partial_fit([[1.0, 0.0]])
    np.testing.assert_allclose(model.dual_coef_, [[nu, nu]], rtol=1e-9)
    assert model.offset_ == pytest.approx(nu * (1.0 + np.exp(-1.0)))
    model.partial_fit([[0.5, np.sqrt(0.75)]])
    np.testing.assert_allclose(model.dual_coef_, [[nu, nu, nu]], rtol=1e-9)
    assert model.offset_ == pytest.approx(nu * (1.0 + 2.0 * np.exp(-1.0)))
    model.forget([0, 2])
    np.testing.assert_allclose(model.dual_coef_, [[nu]], rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_samples_share_one_value(solver: str) -> None:
    model = OneClassSVM(nu=0.4, gamma=1.0, solver=solver).fit(np.ones((10, 2)))
    assert model.dual_coef_.sum() == pytest.approx(4.0)
    np.testing.assert_allclose(model.score_samples(np.ones((1, 2))), [4.0])
    np.testing.assert_array_equal(model.decision_function(np.ones((3, 2))), 0.0)
    assert model.predict(np.ones((3, 2))).tolist() == [1, 1, 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sum_that_fills_whole_boxes_is_exact(solver: str) -> None:
    """nu n an integer: every weight at a bound is an optimum of vertices, and b has an interval."""
    X = np.arange(10.0)[:, None] ** 2
    model = OneClassSVM(nu=0.3, gamma=10.0, solver=solver).fit(X)  # K is the identity
    np.testing.assert_allclose(model.dual_coef_.sum(), 3.0, rtol=1e-12)
    assert_is_optimum(model, roster(X), X + 0.1)
    model.forget([0])
    np.testing.assert_allclose(model.dual_coef_.sum(), 2.7, rtol=1e-12)
    model.partial_fit([[0.0]], ids=[0])
    np.testing.assert_allclose(model.dual_coef_.sum(), 3.0, rtol=1e-12)


def test_labels_are_ignored_and_none_are_needed() -> None:
    X = cloud(6, 20)
    with_labels = OneClassSVM(gamma=0.5).fit(X, np.arange(20) % 2)
    without = OneClassSVM(gamma=0.5).fit(X)
    np.testing.assert_array_equal(with_labels.dual_coef_, without.dual_coef_)
    assert with_labels.fit_predict(X).tolist() == without.predict(X).tolist()
    report = without.update(X[:2] + 1.0, remove=[0])
    assert (report.n_added, report.n_removed) == (2, 1)


def test_a_plain_copy_decides_the_same() -> None:
    X = cloud(7, 60)
    for kernel in ("rbf", "linear", "poly", "laplacian"):
        model = OneClassSVM(kernel=kernel, nu=0.3).fit(X + 1.0)
        model.forget(range(10))
        plain = model.to_sklearn()
        np.testing.assert_allclose(
            plain.decision_function(X), model.decision_function(X), atol=1e-9
        )
        np.testing.assert_allclose(plain.score_samples(X), model.score_samples(X), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_the_export_takes_the_boundary_in_as_the_model_does(kernel, seed):
    X = np.random.default_rng(seed).standard_normal((200, 3)) + 2.0
    rows = X @ X.T if kernel == "precomputed" else X
    model = OneClassSVM(nu=0.1, kernel=kernel).fit(rows)
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(rows), model.predict(rows))
    scale = np.abs(model.dual_coef_).sum() * (X @ X.T).max()
    np.testing.assert_allclose(
        plain.decision_function(rows), model.decision_function(rows), atol=1e-12 * scale
    )
