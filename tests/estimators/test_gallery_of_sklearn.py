# SPDX-License-Identifier: BSD-3-Clause
"""What scikit-learn's gallery shows of SVMs, with the import changed: the same pictures come out.

Each example is one that its users start from, reduced to what it computes, and run twice: with
`sklearn.svm` and with `adiabat`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sklearn.svm
from sklearn import config_context
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.feature_selection import SelectPercentile, f_classif
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import adiabat
from adiabat import SVC, IncrementalPipeline

IRIS = load_iris()
PLANE = IRIS.data[:, :2]


def iris_with_several_kernels(svm: Any) -> Any:
    models = (svm.SVC(kernel="linear", C=1.0), svm.SVC(kernel="rbf", gamma=0.7, C=1.0),
              svm.SVC(kernel="poly", degree=3, gamma="auto", C=1.0))  # fmt: skip
    return [model.fit(PLANE, IRIS.target).predict(PLANE) for model in models]


def maximum_margin_hyperplane(svm: Any) -> Any:
    X, y = make_blobs(n_samples=40, centers=2, random_state=6)
    model = svm.SVC(kernel="linear", C=1000).fit(X, y)
    return [model.coef_, model.intercept_, np.sort(model.support_vectors_, axis=0)]


def custom_kernel(svm: Any) -> Any:
    M = np.array([[2.0, 0.0], [0.0, 1.0]])
    model = svm.SVC(kernel=lambda X, Y: X @ M @ Y.T).fit(PLANE, IRIS.target)
    return [model.predict(PLANE)]


def anova_before_the_machine(svm: Any) -> Any:
    rng = np.random.RandomState(0)
    X = np.hstack((IRIS.data, 2 * rng.random((IRIS.data.shape[0], 36))))
    model = Pipeline([("anova", SelectPercentile(f_classif)), ("scaler", StandardScaler()),
                      ("svc", svm.SVC(gamma="auto"))])  # fmt: skip
    scores = []
    for percentile in (3, 30, 100):
        model.set_params(anova__percentile=percentile)
        scores.append(cross_val_score(model, X, IRIS.target).mean())
    return [np.array(scores)]


def weighted_samples(svm: Any) -> Any:
    rng = np.random.RandomState(0)
    X = np.r_[rng.randn(10, 2) + 1, rng.randn(10, 2)]
    y = [1] * 10 + [-1] * 10
    weight = np.abs(rng.randn(20))
    weight[15:] *= 5
    models = [svm.SVC(gamma=1).fit(X, y, sample_weight=w) for w in (weight, np.ones(20))]
    return [model.decision_function(X) for model in models]


def one_class_with_a_boundary(svm: Any) -> Any:
    rng = np.random.RandomState(42)
    X = 0.3 * rng.randn(60, 2)
    X = np.r_[X + 2, X - 2]
    model = svm.OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(X)
    return [model.predict(rng.uniform(low=-4, high=4, size=(40, 2)))]


def regression_with_three_kernels(svm: Any) -> Any:
    rng = np.random.RandomState(0)
    X = np.sort(5 * rng.rand(40, 1), axis=0)
    y = np.sin(X).ravel()
    y[::5] += 3 * (0.5 - rng.rand(8))
    models = (svm.SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1),
              svm.SVR(kernel="linear", C=100, gamma="auto"),
              svm.SVR(kernel="poly", C=1, gamma="auto", degree=3, coef0=1))  # fmt: skip
    return [model.fit(X, y).predict(X) for model in models]


def nested_cross_validation(svm: Any) -> Any:
    grid = {"C": [1, 10], "gamma": [0.01, 0.1]}
    inner, outer = KFold(3, shuffle=True, random_state=0), KFold(3, shuffle=True, random_state=1)
    search = GridSearchCV(svm.SVC(kernel="rbf"), grid, cv=inner)
    return [cross_val_score(search, IRIS.data, IRIS.target, cv=outer)]


def digits(svm: Any) -> Any:
    X, y = load_digits(return_X_y=True)
    model = svm.SVC(gamma=0.001).fit(X[:300], y[:300])
    return [model.predict(X[300:600])]


def self_training(svm: Any) -> Any:
    rng = np.random.RandomState(42)
    y = np.where(rng.rand(len(IRIS.target)) < 0.3, IRIS.target, -1)
    base = OneVsRestClassifier(make_pipeline(StandardScaler(), svm.SVC(random_state=42)))
    model = SelfTrainingClassifier(_Confident(base), threshold=0.8).fit(IRIS.data, y)
    return [model.predict(IRIS.data)]


class _Confident(sklearn.base.BaseEstimator, sklearn.base.ClassifierMixin):  # type: ignore[misc]
    """A classifier with probabilities that are its decision values squashed, as both have those."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def fit(self, X: Any, y: Any) -> Any:
        self.base_ = sklearn.base.clone(self.base).fit(X, y)
        self.classes_ = self.base_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        values = np.exp(2 * self.base_.decision_function(X))
        return values / values.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


EXAMPLES = [
    iris_with_several_kernels, maximum_margin_hyperplane, custom_kernel, anova_before_the_machine,
    weighted_samples, one_class_with_a_boundary, regression_with_three_kernels,
    nested_cross_validation, digits, self_training,
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_the_same_comes_out_with_the_import_changed(example: Any) -> None:
    modules: tuple[ModuleType, ...] = (sklearn.svm, adiabat)
    for theirs, ours in zip(*map(example, modules), strict=True):
        if theirs.dtype.kind == "i":
            # LIBSVM stops at 1e-3: a row that close to the boundary may fall on either side
            assert np.mean(theirs != ours) <= 0.02
        else:
            np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_metadata_reach_the_pipeline() -> None:
    weight = np.linspace(0.5, 2.0, len(PLANE))
    with config_context(enable_metadata_routing=True):
        model = IncrementalPipeline(SVC()).set_fit_request(sample_weight=True, ids=True)
        model = model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"estimator__C": [1.0, 10.0]}, cv=StratifiedKFold(3))
        names = np.array([f"P{i}" for i in range(len(PLANE))], dtype=object)
        search.fit(PLANE, IRIS.target, sample_weight=weight, ids=names)
    best = search.best_estimator_
    assert best.ids_.tolist() == names.tolist()
    alone = IncrementalPipeline(SVC(C=best.estimator.C)).fit(PLANE, IRIS.target, weight)
    np.testing.assert_allclose(
        best.decision_function(PLANE), alone.decision_function(PLANE), atol=1e-9
    )
