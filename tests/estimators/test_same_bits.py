# SPDX-License-Identifier: BSD-3-Clause
"""f of a row does not depend on the rows beside it, nor on how rows are stored: to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from adiabat import LSSVC, SVC, SVDD, SVR, KernelLSSVC, KernelLSSVR, OneClassSVM, limit_threads
from adiabat.engine import threads
from adiabat.estimators.kernel.evidence import decide_training
from adiabat.feature_maps import Nystroem, RandomFourier

KERNELS = ("chi2", "laplacian", "linear", "poly", "rbf")
ESTIMATORS = (SVC, SVR, OneClassSVM, SVDD, KernelLSSVC, KernelLSSVR)


def problem(features: int, form: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(features)
    X = rng.random((120, features))
    if form in ("zeros", "csr"):
        X *= rng.random(X.shape) < 0.25
    if form == "far":
        X[::7, 1] = 1e8
        X[3::7, 2] = 1e5
    y = np.arange(120) % 3
    return X, y


def f(model: Any, X: Any) -> Any:
    return model.predict(X) if isinstance(model, SVR | KernelLSSVR) else model.decision_function(X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", ["dense", "zeros", "csr"])
@pytest.mark.parametrize("features", [4, 70])
def test_one_row_or_many(estimator: Any, kernel: str, form: str, features: int) -> None:
    X, y = problem(features, form)
    store = sp.csr_array if form == "csr" else np.asarray
    model = estimator(kernel=kernel)
    model.fit(store(X[:80]), *(() if estimator in (OneClassSVM, SVDD) else (y[:80],)))
    everyone = f(model, X)
    np.testing.assert_array_equal(f(model, sp.csr_array(X)), everyone)
    for i in range(0, 120, 11):
        for row in (X[i : i + 1], sp.csr_array(X[i : i + 1])):
            np.testing.assert_array_equal(f(model, row)[0], everyone[i])
    np.testing.assert_array_equal(f(model, X[50:53]), everyone[50:53])


@pytest.mark.parametrize("feature_map", [None, RandomFourier(30), "nystroem"])
def test_machines_on_features(feature_map: Any) -> None:
    X, y = problem(40, "dense")
    if feature_map == "nystroem":
        feature_map = Nystroem(X[100:])
    model = LSSVC(feature_map=feature_map).fit(X[:80], y[:80])
    everyone = model.decision_function(X)
    for i in range(0, 120, 11):
        np.testing.assert_array_equal(model.decision_function(X[i : i + 1])[0], everyone[i])


@pytest.mark.parametrize("features", [4, 70])
def test_rows_far_away(features: int) -> None:
    """One cell of 1e8: neither f of that row nor that of another depends on its company."""
    X, y = problem(features, "far")
    model = SVC(gamma=0.5, C=10.0).fit(X[:80], y[:80] > 0)
    samples = model._model.solver.samples
    everyone = np.arange(samples.n)
    assert np.all(samples.block(everyone, everyone).diagonal() == 1.0)
    values = model.decision_function(X)
    for i in range(0, 120, 5):
        assert model.decision_function(X[i : i + 1])[0] == values[i]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", ["dense", "zeros", "csr", "far"])
def test_the_certificate_sees_the_f_of_predictions(kernel: str, form: str) -> None:
    X, y = problem(50, form)
    if kernel in ("linear", "poly") and form == "far":
        X = np.minimum(X, 100.0)
    store = sp.csr_array if form == "csr" else np.asarray
    model = SVC(kernel=kernel, gamma=0.02).fit(store(X), y == 1)._model
    machines = [machine for _, machine in model.machines]
    seen, _ = decide_training(model.solver.samples, machines, model.position)
    seen = seen[model.position] + model.biases()
    np.testing.assert_array_equal(seen, model.decide(store(X)))


def test_a_given_kernel() -> None:
    X, y = problem(5, "dense")
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = SVC(kernel="precomputed").fit(K[:80, :80], y[:80])
    everyone = model.decision_function(K[:, :80])
    for i in range(0, 120, 11):
        np.testing.assert_array_equal(model.decision_function(K[i : i + 1, :80])[0], everyone[i])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_threads(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(70, "dense")
    model = SVC(kernel=kernel).fit(X[:80], y[:80])
    alone = model.decision_function(X)
    monkeypatch.setattr(threads, "SHARED_TERMS", 0)
    for number in (1, 2, 3):
        with limit_threads(number):
            np.testing.assert_array_equal(model.decision_function(X), alone)
