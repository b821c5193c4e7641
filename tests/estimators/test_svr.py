# SPDX-License-Identifier: BSD-3-Clause
"""SVR: against scikit-learn, an interior point solver and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm

from adiabat import SVR

from laws.compare import assert_is_optimum, assert_same
from laws.laws import fit_on
from oracles.operations import Roster


def curve(seed: int, n: int, d: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n)


def roster(X: Any, y: Any, weight: Any = None) -> Roster:
    return Roster(X, y, np.ones(len(y)) if weight is None else weight, np.arange(len(y)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize(("C", "epsilon"), [(0.1, 0.1), (1.0, 0.0), (10.0, 0.3), (1.0, 5.0)])
def test_it_is_the_model_of_scikit_learn(
    kernel: str, C: float, epsilon: float, weighted: bool
) -> None:
    """To the accuracy that LIBSVM has; it keeps kernel values in single precision."""
    X, y = curve(0, 120)
    weight = np.random.default_rng(1).integers(0, 4, 120) / 2.0 if weighted else None
    params = {"kernel": kernel, "C": C, "epsilon": epsilon, "degree": 2, "coef0": 1.0}
    params["gamma"] = 0.3  # "scale" counts weights here, and rows there
    ours = SVR(**params).fit(X, y, sample_weight=weight)
    theirs = sklearn.svm.SVR(**params, tol=1e-5).fit(X, y, sample_weight=weight)
    probe = curve(2, 50)[0]
    np.testing.assert_allclose(ours.predict(probe), theirs.predict(probe), rtol=1e-4, atol=1e-4)
    assert ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_learned_attributes_have_the_shapes_of_scikit_learn() -> None:
    X, y = curve(3, 60)
    ours, theirs = SVR().fit(X, y), sklearn.svm.SVR(tol=1e-5).fit(X, y)
    for name in ("support_", "support_vectors_", "dual_coef_", "n_support_", "intercept_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.dtype == other.dtype and one.ndim == other.ndim, name
    assert ours.support_.tolist() == theirs.support_.tolist()
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=5e-3)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
def test_one_sample_is_its_own_prediction(solver: str) -> None:
    model = SVR(solver=solver, epsilon=0.25).fit([[1.0, 2.0]], [7.0])
    np.testing.assert_allclose(model.predict([[1.0, 2.0], [5.0, 5.0]]), 7.0)
    model.partial_fit([[3.0, 4.0]], [7.5])  # both within a tube around the middle
    np.testing.assert_allclose(model.predict([[0.0, 0.0]]), 7.25)
    model.forget([0])
    np.testing.assert_allclose(model.predict([[0.0, 0.0]]), 7.5)


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
def test_two_points_in_closed_form(solver: str) -> None:
    """f is a line; between (0, 0) and (1, 1) its slope is min(1 - 2 epsilon, C), middle 1/2."""
    for C, epsilon in ((10.0, 0.0), (10.0, 0.2), (0.3, 0.1), (10.0, 0.5), (10.0, 2.0)):
        model = SVR(kernel="linear", C=C, epsilon=epsilon, solver=solver)
        model.fit([[0.0], [1.0]], [0.0, 1.0])
        slope = min(max(1.0 - 2.0 * epsilon, 0.0), C)
        np.testing.assert_allclose(model.coef_, [[slope]], atol=1e-12)
        np.testing.assert_allclose(model.predict([[0.5]]), [0.5], atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
def test_without_weight_to_gain_it_is_the_median(solver: str) -> None:
    """A kernel of zeros and no tube: the constant that least absolute deviations give."""
    y = np.array([1.0, 2.0, 3.0, 10.0, 11.0])
    model = SVR(kernel="linear", epsilon=0.0, C=2.0, solver=solver).fit(np.zeros((5, 1)), y)
    np.testing.assert_allclose(model.predict([[0.0]]), [3.0], atol=1e-12)
    model.partial_fit([[0.0]], [4.0])  # any constant in [3, 4]: its middle
    np.testing.assert_allclose(model.predict([[0.0]]), [3.5], atol=1e-12)
    model.revise([5], y=[30.0])
    np.testing.assert_allclose(model.predict([[0.0]]), [6.5], atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 10.0])
def test_equal_targets_are_predicted_everywhere(solver: str, epsilon: float) -> None:
    X, _ = curve(4, 30)
    model = SVR(epsilon=epsilon, solver=solver).fit(X, np.full(30, -3.0))
    np.testing.assert_allclose(model.predict(2.0 * X), -3.0, atol=1e-9)
    assert len(model.support_) == 0
    model.partial_fit(X[:4] + 0.1, [-3.0, -3.0, 5.0, -3.0])
    model.forget([32])
    np.testing.assert_allclose(model.predict(2.0 * X), -3.0, atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
def test_a_tube_that_holds_everything_leaves_the_middle(solver: str) -> None:
    X, y = curve(5, 40)
    model = SVR(epsilon=0.05, C=10.0, solver=solver).fit(X, y)
    model.retune(epsilon=100.0)
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), 0.5 * (y.min() + y.max()), atol=1e-9)
    model.forget([int(np.argmax(y))])
    rest = np.delete(y, np.argmax(y))
    np.testing.assert_allclose(model.predict(X), 0.5 * (rest.min() + rest.max()), atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
def test_targets_may_be_large_and_far_from_zero(solver: str) -> None:
    X, y = curve(6, 60)
    for scale, offset in ((1e3, 1e6), (1e-3, 1.0)):
        shifted = scale * y + offset
        model = SVR(C=10.0 * scale, epsilon=0.1 * scale, gamma=0.5, solver=solver).fit(X, shifted)
        plain = SVR(C=10.0, epsilon=0.1, gamma=0.5).fit(X, y)
        np.testing.assert_allclose((model.predict(X) - offset) / scale, plain.predict(X), atol=1e-7)
        shifted[[3, 4]] += scale
        model.revise([3, 4], y=shifted[[3, 4]])
        assert_is_optimum(model, roster(X, shifted), X[:5])


def test_a_target_moves_without_new_rows() -> None:
    """Revising a target to and fro gives the model back, and only the two rows have moved."""
    X, y = curve(7, 80)
    model, untouched = SVR(C=5.0).fit(X, y), SVR(C=5.0).fit(X, y)
    for value in (100.0, -100.0, 0.0):
        model.revise([5, 9], y=[value, -value])
        held = y.copy()
        held[[5, 9]] = value, -value
        assert_is_optimum(model, roster(X, held), X[:5] + 0.1)
    model.revise([5, 9], y=y[[5, 9]])
    assert_same(model, untouched, roster(X, y), X[:5] + 0.1)
    model.revise(5, y=1.5)
    assert model.last_update_.n_revised == 1


def test_sparse_rows_are_dense_rows() -> None:
    X, y = curve(8, 50)
    X[np.abs(X) < 0.7] = 0.0
    dense = SVR(gamma=0.3).fit(X, y)
    sparse = SVR(gamma=0.3).fit(sp.csr_array(X[:30]), y[:30])
    sparse.partial_fit(sp.csr_array(X[30:]), y[30:])
    np.testing.assert_allclose(dense.predict(X), sparse.predict(sp.csr_array(X)), atol=1e-10)


def test_a_given_kernel_is_the_kernel() -> None:
    X, y = curve(9, 50)
    K = X @ X.T
    given = SVR(kernel="precomputed", C=0.5).fit(K[:40, :40], y[:40])
    given.partial_fit(K[40:], y[40:])
    given.forget([1, 2, 3])
    rest = np.delete(np.arange(50), [1, 2, 3])
    linear = fit_on(SVR(kernel="linear", C=0.5), roster(X[rest], y[rest]))
    np.testing.assert_allclose(given.predict(K[:, rest]), linear.predict(X), atol=1e-9)


def test_a_plain_copy_predicts_the_same() -> None:
    X, y = curve(10, 50)
    for kernel in ("rbf", "linear", "poly", "laplacian"):
        model = SVR(kernel=kernel, C=3.0).fit(X, y)
        model.forget(range(10))
        np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), atol=1e-9)
