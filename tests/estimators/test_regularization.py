# SPDX-License-Identifier: BSD-3-Clause
"""Every point of the regularization path is the optimum at its C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification

from adiabat import SVC, SVR

from laws.compare import exact_state
from oracles import batch_qp, kinds, problems


def noisy(n: int = 150) -> tuple[Any, Any]:
    return make_classification(n, 6, n_informative=4, flip_y=0.1, random_state=1)


def violation(problem: problems.Problem, C: float, u: Any, b: float) -> float:
    K = problems.gram_of(problem.params, problem.X, problem.X)
    y = np.where(problem.y == problem.y.max(), 1.0, -1.0)
    rows = batch_qp.svc_rows(y, C, problem.sample_weight)
    size = 1.0 + abs(b) + float(np.abs(K).max()) * float(np.abs(u).sum())
    return batch_qp.kkt_violation(K, *rows, np.clip(u, rows.lo, rows.hi), b) / size


@pytest.mark.parametrize("name", problems.FAMILIES)
def test_every_point_is_an_optimum_on_degenerate_families(name: str) -> None:
    problem = problems.FAMILIES[name](np.random.default_rng(0))
    C = problem.params["C"]
    model = SVC(**problem.params).fit(problem.X, problem.y, sample_weight=problem.sample_weight)
    path = model.regularization_path(0.1 * C, 10.0 * C)
    assert path.C[0] == 0.1 * C and path.C[-1] == 10.0 * C
    within = np.random.default_rng(1).uniform(np.log(0.1 * C), np.log(10.0 * C), 8)
    for value in [*path.C[:: max(1, len(path.C) // 8)], *np.exp(within)]:
        point = path.at(value)
        assert violation(problem, value, point.coefficients, point.intercept) <= 1e-9, (name, value)


def test_equals_the_models_fitted_at_each_C() -> None:
    X, y = noisy()
    path = SVC(gamma=0.2, C=3.0).fit(X, y).regularization_path(0.05, 50.0)
    values = np.geomspace(0.05, 50.0, 7)
    many = path.decision_function(X[:20], values)
    for C, decided in zip(values, many, strict=True):
        model = SVC(gamma=0.2, C=C).fit(X, y)
        point = path.at(C)
        np.testing.assert_allclose(point.decision, model.decision_function(X), atol=1e-9)
        np.testing.assert_allclose(decided, model.decision_function(X[:20]), atol=1e-9)
        np.testing.assert_allclose(path.decision_function(X[:20], C), decided, atol=1e-12)
        coefficients = np.zeros(len(y))
        coefficients[model.support_] = model.dual_coef_[0]
        np.testing.assert_allclose(point.coefficients, coefficients, atol=1e-8 * C)
        assert point.intercept == pytest.approx(model.intercept_[0], abs=1e-9)


def test_coefficients_are_linear_between_breakpoints() -> None:
    X, y = noisy()
    path = SVC(gamma=0.2).fit(X, y).regularization_path(0.5, 5.0)
    assert path.n_breakpoints > 20 and path.residual <= 1e-12
    assert path.coefficients.shape == (len(path.C), 150) and len(path.intercepts) == len(path.C)
    for k in range(0, len(path.C) - 1, 7):
        first, last = path.C[k], path.C[k + 1]
        middle = path.at(0.5 * (first + last)).coefficients
        ends = 0.5 * (path.at(first).coefficients + path.at(last).coefficients)
        np.testing.assert_allclose(middle, ends, atol=1e-10)
    assert "breakpoints" in repr(path)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_more_than_two_classes(shape: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = SVC(gamma=0.3, decision_function_shape=shape).fit(X, y)
    path = model.regularization_path(0.2, 20.0)
    refit = SVC(gamma=0.3, C=4.0, decision_function_shape=shape).fit(X, y)
    np.testing.assert_allclose(path.at(4.0).decision, refit.decision_function(X), atol=1e-9)
    assert path.at(4.0).coefficients.shape == (150, 3)


def test_a_precomputed_kernel_and_a_model_that_changes_afterwards() -> None:
    X, y = noisy()
    K = problems.gram("rbf", X, X, gamma=0.2)
    model = SVC(kernel="precomputed").fit(K, y)
    before = exact_state(model, K)
    path = model.regularization_path(0.5, 2.0)
    assert exact_state(model, K) == before
    value = path.decision_function(K[:5], 1.3)
    model.forget([0, 1, 2])
    np.testing.assert_allclose(path.decision_function(K[:5], 1.3), value, atol=0)
    np.testing.assert_allclose(
        value, SVC(gamma=0.2, C=1.3).fit(X, y).decision_function(X[:5]), atol=1e-9
    )


@pytest.mark.parametrize(
    "ends, message",
    [
        ((0.0, 1.0), "C_min=0.0 must be a finite number above 0"),
        ((1.0, np.inf), "C_max=inf must be a finite number above 0"),
        (("1", 2.0), "C_min='1' must be a finite number"),
        ((2.0, 1.0), "C_min=2.0 must be below C_max=1.0"),
    ],
)
def test_ends_that_are_none(ends: tuple[Any, Any], message: str) -> None:
    model = SVC().fit(*noisy(40))
    with pytest.raises(ValueError, match=message):
        model.regularization_path(*ends)


def test_a_C_that_is_not_on_the_path() -> None:
    path = SVC().fit(*noisy(40)).regularization_path(0.5, 2.0)
    with pytest.raises(ValueError, match=r"C=3.0 is not on the path, which goes from 0.5 to 2"):
        path.at(3.0)
    with pytest.raises(ValueError, match="one class only"):
        SVC().fit([[0.0], [1.0]], [1, 1]).regularization_path(0.5, 2.0)


@pytest.mark.parametrize("options", [{"gamma": 0.5}, {"kernel": "linear", "epsilon": 0.0}], ids=str)
@pytest.mark.parametrize("twice", [False, True])
def test_the_path_of_a_regression_is_that_of_its_fits(options: dict[str, Any], twice: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    X = np.repeat(X[:25], 2, axis=0) if twice else X
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=len(X))
    path = SVR(C=1.0, **options).fit(X, y).regularization_path(0.05, 20.0)
    for C in np.geomspace(0.06, 19.0, 6):
        fitted = SVR(C=C, **options).fit(X, y).predict(X)
        np.testing.assert_allclose(path.at(C).decision, fitted, atol=1e-9)
        np.testing.assert_allclose(path.decision_function(X, C), fitted, atol=1e-9)


EPSILON = float(np.finfo(np.float64).eps)


def assert_path_is_fit(path: Any, fitted: Any, X: Any, values: Any) -> None:
    """Intercept and decisions of the path at some C are those of a fit there."""
    for C in values:
        model, point = fitted(C), path.at(C)
        kernel = model._model.kernel
        # beyond 1e-9: what f loses to rounding where weights are huge
        size = float(np.abs(point.coefficients).sum() * np.abs(kernel.diagonal(X)).max())
        allowed = 1e-9 + 256.0 * EPSILON * size
        decide = model.decision_function if isinstance(model, SVC) else model.predict
        np.testing.assert_allclose(point.decision, decide(X), rtol=0, atol=allowed)
        np.testing.assert_allclose(
            path.decision_function(X[:7], C), decide(X[:7]), rtol=0, atol=allowed
        )
        expected = model._model.intercepts() if isinstance(model, SVC) else model.intercept_
        np.testing.assert_allclose(point.intercept, np.squeeze(expected), rtol=1e-9, atol=allowed)


def test_where_no_row_is_on_the_margin_the_intercept_is_that_of_fit() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    path = SVC(kernel="linear").fit(X, y).regularization_path(0.01, 1.0)
    C = [*np.linspace(0.01, 1.0, 800), *path.C]
    biases, labels = [], []
    for value in C:
        model = SVC(kernel="linear", C=value).fit(X, y)
        biases.append(path.at(value).intercept - model.intercept_[0])
        labels.append((path.at(value).decision > 0.0) == (model.decision_function(X) > 0.0))
    assert np.abs(biases).max() <= 1e-9
    assert np.all(labels)
    fitted = [SVC(kernel="linear", C=value).fit(X, y).intercept_[0] for value in path.C]
    np.testing.assert_allclose(path.intercepts, fitted, rtol=0, atol=1e-9)


def test_a_corner_that_is_reached_at_one_C_only() -> None:
    """At C = 1/2 both rows reach their bounds; below, b has an interval, above it has none."""
    X, y = np.array([[-1.0], [1.0], [5.0]]), np.array([0, 1, 1])
    fit = lambda C: SVC(kernel="linear", C=C).fit(X, y)  # noqa: E731
    path = fit(1.0).regularization_path(0.25, 2.0)
    assert_path_is_fit(path, fit, X, [0.25, 0.4, 0.5, np.nextafter(0.5, 1.0), 0.6, 2.0, *path.C])


@pytest.mark.parametrize("kind", ["svc", "svr"])
def test_the_path_is_that_of_fits_on_degenerate_families(kind: str) -> None:
    for name, family in kinds.families(kind).items():
        problem = family(np.random.default_rng(0))
        C = problem.params["C"]
        weight = problem.sample_weight

        def fit(value: float, problem: Any = problem, weight: Any = weight) -> Any:
            estimator = SVC if kind == "svc" else SVR
            model = estimator(**{**problem.params, "C": value})
            return model.fit(problem.X, problem.y, sample_weight=weight)

        path = fit(C).regularization_path(0.1 * C, 10.0 * C)
        within = np.random.default_rng(1).uniform(np.log(0.1 * C), np.log(10.0 * C), 2)
        values = [*path.C[:: max(1, len(path.C) // 4)], *np.exp(within)]
        try:
            assert_path_is_fit(path, fit, problem.X, values)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_classes_of_equal_size_all_at_the_bound(shape: str) -> None:
    """Every pair of classes has an interval of b while C is small."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 4, (24, 2)).astype(float), np.repeat([0, 1, 2, 3], 6)

    def fit(C: float) -> Any:
        return SVC(gamma=0.3, C=C, decision_function_shape=shape).fit(X, y)

    path = fit(1.0).regularization_path(1e-3, 1.0)
    values = [1e-3, 4e-3, 0.01, 0.1, *path.C[:: max(1, len(path.C) // 12)]]
    assert_path_is_fit(path, fit, X, values)
