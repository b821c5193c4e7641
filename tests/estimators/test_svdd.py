# SPDX-License-Identifier: BSD-3-Clause
"""SVDD: closed forms, the sphere itself by an interior point solver, and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import piqp
import pytest
import sklearn.svm

from adiabat import SVDD

from laws.compare import assert_is_optimum
from oracles.operations import Roster

SOLVERS = ["auto", "path", "exchange"]


def cloud(seed: int, n: int, d: int = 2) -> Any:
    return np.random.default_rng(seed).standard_normal((n, d))


def centre(model: SVDD) -> Any:
    """The centre of a sphere under the linear kernel."""
    return (model.dual_coef_ @ model.support_vectors_)[0]


def smallest_sphere(X: Any, C: float) -> tuple[Any, float]:
    """(centre, squared radius) from the primal problem itself.

    min R2 + C sum xi over |x - a|^2 <= R2 + xi, xi >= 0; with q = |a|^2 - R2 that is the QP
    min |a|^2 - q + C sum xi over |x|^2 - 2 x'a + q <= xi.
    """
    n, d = X.shape
    P = np.zeros((d + 1 + n, d + 1 + n))
    P[:d, :d] = 2.0 * np.eye(d)
    c = np.concatenate([np.zeros(d), [-1.0], np.full(n, C)])
    G = np.hstack([-2.0 * X, np.ones((n, 1)), -np.eye(n)])
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-12
    free = np.full(d + 1, -np.inf)
    solver.setup(
        np.asfortranarray(P), c, None, None, np.asfortranarray(G), None, -(X**2).sum(axis=1),
        np.concatenate([free, np.zeros(n)]), np.full(d + 1 + n, np.inf),
    )  # fmt: skip
    solver.solve()
    a, q = solver.result.x[:d], solver.result.x[d]
    return np.array(a), float(a @ a - q)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.03, 0.0517, 0.11, 0.5, 1.0, 100.0])
def test_it_is_the_smallest_sphere(C: float, solver: str) -> None:
    X = cloud(0, 60, 3)
    model = SVDD(C=C, kernel="linear", solver=solver).fit(X)
    for _ in range(3):
        held = X[model.ids_]
        a, square = smallest_sphere(held, C)
        np.testing.assert_allclose(centre(model), a, atol=1e-7)
        assert model.radius_**2 == pytest.approx(square, abs=1e-7)
        distance = np.linalg.norm(held - centre(model), axis=1)
        np.testing.assert_allclose(model.centre_distance(held), distance, atol=1e-9)
        np.testing.assert_allclose(
            model.decision_function(held), model.radius_**2 - distance**2, atol=1e-9
        )
        assert np.sum(model.predict(held) < 0) <= 1.0 / C
        model.forget(model.ids_[np.argsort(-distance)[:6]])


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_points_are_a_diameter(solver: str) -> None:
    model = SVDD(C=1.0, kernel="linear", solver=solver).fit([[0.0, 0.0], [6.0, 8.0]])
    np.testing.assert_allclose(centre(model), [3.0, 4.0], atol=1e-12)
    assert model.radius_ == pytest.approx(5.0)
    model.partial_fit([[3.0, 5.0]])  # within: nothing changes
    assert model.radius_ == pytest.approx(5.0) and len(model.support_) == 2
    model.update([[12.0, 16.0]], remove=[1])
    assert model.radius_ == pytest.approx(10.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("d", [2, 3, 7])
def test_a_simplex_has_its_mean_for_centre(d: int, solver: str) -> None:
    X = np.eye(d)
    model = SVDD(C=1.0, kernel="linear", solver=solver)
    for row in X:
        model.partial_fit(row[None, :])
    np.testing.assert_allclose(model.dual_coef_, 1.0 / d, rtol=1e-9)
    assert model.radius_**2 == pytest.approx(1.0 - 1.0 / d)


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_samples_have_their_mean_for_centre(solver: str) -> None:
    """C n < 1: C is then 1 / n, and the sphere ends at the nearest sample."""
    X = cloud(1, 12)
    model = SVDD(C=0.1, kernel="linear", solver=solver)
    for n in range(1, 10):
        model.partial_fit(X[n - 1 : n])
        mean = X[:n].mean(axis=0)
        np.testing.assert_allclose(model.dual_coef_, 1.0 / n, rtol=1e-12)
        np.testing.assert_allclose(centre(model), mean, atol=1e-12)
        nearest = np.linalg.norm(X[:n] - mean, axis=1).min()
        assert model.radius_ == pytest.approx(nearest, abs=1e-7)
    model.partial_fit(X[9:])
    assert model.dual_coef_.max() <= 0.1 + 1e-15
    model.forget(range(5))
    np.testing.assert_allclose(model.dual_coef_, 1.0 / 7, rtol=1e-12)
    np.testing.assert_allclose(centre(model), X[5:].mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n", [3, 7, 10, 49, 97])
def test_c_of_exactly_one_over_n_is_the_mean(n: int, solver: str) -> None:
    X = cloud(2, n)
    model = SVDD(C=1.0 / n, kernel="linear", solver=solver).fit(X)
    np.testing.assert_allclose(model.dual_coef_, 1.0 / n, rtol=1e-12)
    np.testing.assert_allclose(centre(model), X.mean(axis=0), atol=1e-12)
    model.partial_fit(X[:1] + 1.0)
    model.forget([0])
    np.testing.assert_allclose(model.dual_coef_, 1.0 / n, rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_equal_samples_are_a_point(kernel: str, solver: str) -> None:
    model = SVDD(C=0.25, kernel=kernel, gamma=1.0, solver=solver).fit(np.full((8, 2), 2.0))
    assert model.radius_ == pytest.approx(0.0, abs=1e-6)
    assert model.dual_coef_.sum() == pytest.approx(1.0)
    assert model.predict([[2.0, 2.0], [2.5, 2.0]]).tolist() == [1, -1]
    model.partial_fit([[4.0, 2.0]])
    model.forget([8])
    assert model.radius_ == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("C", [1.0, 2.0, 1e6])
def test_a_c_of_one_or_more_leaves_none_outside(C: float) -> None:
    X = cloud(3, 50)
    model, hard = SVDD(C=C, gamma=0.5).fit(X), SVDD(C=1.0, gamma=0.5).fit(X)
    assert np.all(model.predict(X) == 1)
    np.testing.assert_allclose(model.decision_function(X), hard.decision_function(X), atol=1e-9)
    outside = X[:1] + 5.0
    assert model.predict(outside).tolist() == [-1]
    assert np.all(model.partial_fit(outside).predict(np.vstack([X, outside])) == 1)


@pytest.mark.parametrize("C", [0.02, 0.1, 0.4])
def test_with_rbf_it_is_the_one_class_machine(C: float) -> None:
    """Where k(x, x) is constant the two have the same weights, with nu = 1 / (C n)."""
    X, probe = cloud(4, 60), cloud(5, 30)
    ours = SVDD(C=C, gamma=0.5).fit(X)
    theirs = sklearn.svm.OneClassSVM(nu=1.0 / (C * 60), gamma=0.5, tol=1e-5).fit(X)
    np.testing.assert_allclose(
        ours.decision_function(probe), 2.0 * C * theirs.decision_function(probe), atol=1e-4
    )
    plain = ours.to_sklearn()
    np.testing.assert_allclose(
        plain.decision_function(probe), ours.decision_function(probe), atol=1e-9
    )


def test_a_given_kernel_needs_the_samples_own_values() -> None:
    X = cloud(6, 40)
    K = X @ X.T
    given, linear = SVDD(kernel="precomputed").fit(K), SVDD(kernel="linear").fit(X)
    assert given.radius_ == pytest.approx(linear.radius_)
    with pytest.raises(ValueError, match="diagonal is missing"):
        given.decision_function(K)
    np.testing.assert_allclose(
        given.decision_function(K, diagonal=np.diag(K)), linear.decision_function(X), atol=1e-9
    )


def test_a_sphere_does_not_depend_on_where_the_origin_is() -> None:
    X = np.round(64.0 * cloud(7, 40)) / 64.0
    model, far = (SVDD(C=0.1, kernel="linear").fit(rows) for rows in (X, X + 1024.0))
    assert far.radius_ == pytest.approx(model.radius_, abs=1e-6)
    np.testing.assert_allclose(
        far.decision_function(X + 1024.0), model.decision_function(X), atol=1e-6
    )


def test_weights_of_samples_are_multiples_of_c() -> None:
    X, weight = cloud(8, 30), np.random.default_rng(9).integers(0, 3, 30).astype(float)
    model = SVDD(C=0.07, gamma=0.5).fit(X, sample_weight=weight)
    assert_is_optimum(model, Roster(X, np.zeros(30), weight, np.arange(30)), cloud(10, 5))
    repeated = SVDD(C=0.07, gamma=0.5).fit(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(model.decision_function(X), repeated.decision_function(X), atol=1e-9)
