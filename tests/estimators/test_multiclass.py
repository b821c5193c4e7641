# SPDX-License-Identifier: BSD-3-Clause
"""Classes that come and go, votes, and the layout that scikit-learn gives to coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from adiabat import SVC

from laws.compare import assert_is_optimum, assert_same, values_of
from oracles.operations import Roster

# LIBSVM keeps its kernel in float32.
LIBSVM = {"rtol": 0.0, "atol": 2e-4}


def clouds(n: int, classes: int, seed: int = 0, spread: float = 1.2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    angle = 2.0 * np.pi * y / classes
    X = 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + spread * rng.standard_normal((n, 2)), y


def roster(X: Any, y: Any) -> Roster:
    return Roster(X, y, np.ones(len(y)), np.arange(len(y)))


# -- classes come and go -----------------------------------------------------------------------


def test_a_class_never_seen_before_may_arrive() -> None:
    X, y = clouds(60, 4)
    early = y < 2
    order = np.concatenate([np.flatnonzero(early), np.flatnonzero(~early)])
    model = SVC(gamma=0.5).fit(X[early], y[early])
    assert model.classes_.tolist() == [0, 1]
    model.partial_fit(X[~early], y[~early])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert_is_optimum(model, roster(X[order], y[order]), X)
    assert model.decision_function(X).shape == (60, 4)


def test_classes_arrive_one_at_a_time_from_a_single_class() -> None:
    X, y = clouds(40, 3)
    model = SVC(gamma=0.5)
    for label in (2, 0, 1):
        model.partial_fit(X[y == label], y[y == label])
    order = np.concatenate([np.flatnonzero(y == label) for label in (2, 0, 1)])
    assert_is_optimum(model, roster(X[order], y[order]), X)


def test_the_last_member_of_a_class_takes_the_class_with_it() -> None:
    X, y = clouds(45, 3)
    model = SVC(gamma=0.5).fit(X, y)
    members = np.flatnonzero(y == 1)
    model.forget(members[:-1])
    assert model.classes_.tolist() == [0, 1, 2]
    model.forget(members[-1])
    assert model.classes_.tolist() == [0, 2]
    assert model.decision_function(X).shape == (45,)
    stays = y != 1
    afresh = SVC(gamma=0.5).fit(X[stays], y[stays])
    np.testing.assert_allclose(
        model.decision_function(X), afresh.decision_function(X), rtol=0.0, atol=1e-10
    )


def test_a_revision_may_take_the_last_member_away_and_bring_a_new_class() -> None:
    X, y = clouds(30, 3)
    model = SVC(gamma=0.5).fit(X, y)
    members = np.flatnonzero(y == 2)
    model.revise(members, y=np.full(len(members), 7))
    after = np.where(y == 2, 7, y)
    assert model.classes_.tolist() == [0, 1, 7]
    assert_is_optimum(model, roster(X, after), X)
    model.revise(members, y=y[members])
    assert_same(model, SVC(gamma=0.5).fit(X, y), roster(X, y), X)


def test_one_class_left_predicts_that_class() -> None:
    X, y = clouds(20, 2)
    names = np.array(["ham", "spam"])[y]
    model = SVC(gamma=0.5).fit(X, names)
    model.forget(np.flatnonzero(y == 0))
    assert model.classes_.tolist() == ["spam"]
    assert model.predict(X).tolist() == ["spam"] * 20
    assert model.decision_function(X).shape == (20, 1)
    assert model.certificate().ok and model.certificate().n_support == 0
    assert len(model.support_) == 0
    model.partial_fit(X[y == 0], names[y == 0])
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.certificate().ok


def test_none_left_is_unfitted_and_numbers_are_not_used_again() -> None:
    X, y = clouds(12, 2)
    model = SVC(gamma=0.5).fit(X, y)
    report = model.update(remove=model.ids_)
    assert report.n_removed == 12 and report.certificate.n_samples == 0
    for ask in (model.predict, model.decision_function):
        with pytest.raises(NotFittedError):
            ask(X)
    with pytest.raises(NotFittedError):
        model.certificate()
    with pytest.raises(NotFittedError):
        model.forget([0])
    assert not hasattr(model, "ids_")
    model.partial_fit(X[:5], y[:5])
    assert model.ids_.tolist() == [12, 13, 14, 15, 16]
    assert model.certificate().ok
    model.fit(X[:3], [0, 1, 0])
    assert model.ids_.tolist() == [0, 1, 2]


def test_a_model_emptied_may_start_again_with_other_features() -> None:
    model = SVC().fit([[0.0], [1.0]], [0, 1]).forget([0, 1])
    model.partial_fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "b", "a"])
    assert model.n_features_in_ == 2 and model.classes_.tolist() == ["a", "b"]


def test_classes_given_to_partial_fit_are_a_promise() -> None:
    X, y = clouds(20, 3)
    model = SVC(gamma=0.5)
    model.partial_fit(X[:10], y[:10], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X[10:], y[10:], classes=[0, 1])
    assert model.classes_.tolist() == np.unique(y[:10]).tolist()


# -- votes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_predict_is_the_argmax_of_the_decision_function(classes: int) -> None:
    X, y = clouds(80, classes, spread=2.0)
    model = SVC(gamma=0.5).fit(X, y)
    probe = np.random.default_rng(1).standard_normal((500, 2)) * 3.0
    f = model.decision_function(probe)
    chosen = (f > 0).astype(int) if classes == 2 else np.argmax(f, axis=1)
    np.testing.assert_array_equal(model.predict(probe), model.classes_[chosen])


def test_predict_does_not_depend_on_the_shape_asked_for() -> None:
    X, y = clouds(80, 4, spread=2.0)
    one, other = SVC(gamma=0.5).fit(X, y), SVC(gamma=0.5, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert other.decision_function(X).shape == (80, 6)


# -- scikit-learn's layout ---------------------------------------------------------------------


CASES = [
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "rbf", "gamma": "auto", "class_weight": {0: 2.0, 1: 0.5}},
    {"kernel": "rbf", "gamma": 0.5, "class_weight": "balanced"},
    {"kernel": "linear", "C": 0.5},
    {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 1.0},
]


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("params", CASES, ids=str)
def test_attributes_are_laid_out_as_scikit_learns(params: dict[str, Any], classes: int) -> None:
    X, y = clouds(70, classes, seed=classes)
    ours = SVC(**params).fit(X, y)
    theirs = svm.SVC(**params, tol=1e-8).fit(X, y)
    for shape in ("ovr", "ovo"):
        ours.set_params(decision_function_shape=shape)
        theirs.set_params(decision_function_shape=shape)
        f, g = ours.decision_function(X), theirs.decision_function(X)
        if shape == "ovo" or classes == 2:
            np.testing.assert_allclose(f, g, **LIBSVM)
        else:
            assert f.shape == g.shape
    theirs.set_params(break_ties=classes > 2, decision_function_shape="ovr")
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, **LIBSVM)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.support_vectors_, theirs.support_vectors_)
    size = np.abs(theirs.dual_coef_).max()
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=0.0, atol=5e-3 * size)
    for name in ("support_", "n_support_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    if params["kernel"] == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, **LIBSVM)
    else:
        with pytest.raises(AttributeError, match="linear"):
            _ = ours.coef_


def test_balanced_class_weights_are_held_after_fit() -> None:
    X, y = clouds(40, 2)
    model = SVC(gamma=0.5, class_weight="balanced").fit(X, y)
    held = dict(model.certificate().held_fixed["class_weight"])
    counts = np.bincount(y)
    assert held == pytest.approx({k: 40 / (2 * counts[k]) for k in (0, 1)})
    model.forget(np.flatnonzero(y == 0)[:3])
    assert dict(model.certificate().held_fixed["class_weight"]) == held
    stays = np.isin(np.arange(40), model.ids_)
    afresh = SVC(gamma=0.5, class_weight=held).fit(X[stays], y[stays])
    np.testing.assert_allclose(
        model.decision_function(X), afresh.decision_function(X), rtol=0.0, atol=1e-10
    )


# -- export ------------------------------------------------------------------------------------


def product_kernel(A: Any, B: Any) -> Any:
    return (1.0 + A @ B.T) ** 2


EXPORTS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.5},
    "laplacian": {"kernel": "laplacian", "gamma": 0.5},
    "callable": {"kernel": product_kernel},
    "balanced": {"class_weight": "balanced"},
    "ovo": {"decision_function_shape": "ovo"},
}


# scikit-learn passes sparse rows to no callable.
ROWS = [(name, False) for name in EXPORTS] + [
    (name, True) for name in EXPORTS if name != "callable"
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "sparse"), ROWS)
def test_export_to_scikit_learn(name: str, classes: int, sparse: bool) -> None:
    X, y = clouds(50, classes)
    X = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X)) if sparse else X
    model = SVC(**EXPORTS[name]).fit(X, y)
    model.forget([3, 4])
    plain = model.to_sklearn()
    assert type(plain) is svm.SVC
    probe = X[:20]
    given = sp.csr_matrix(probe) if sparse else probe
    np.testing.assert_allclose(
        plain.decision_function(given)
        if classes == 2 or name == "ovo"
        else -_pairs_of(plain, given),
        model.decision_function(probe)
        if classes == 2 or name == "ovo"
        else np.column_stack(list(values_of(model, probe).values())),
        rtol=0.0,
        atol=1e-9,
    )
    np.testing.assert_array_equal(plain.predict(given), model.predict(probe))
    np.testing.assert_array_equal(plain.support_, model.support_)
    assert plain.score(given, y[:20]) == model.score(probe, y[:20])


def _pairs_of(plain: Any, X: Any) -> Any:
    plain.set_params(decision_function_shape="ovo", break_ties=False)
    try:
        return plain.decision_function(X)
    finally:
        plain.set_params(decision_function_shape="ovr", break_ties=True)


def test_export_with_a_precomputed_kernel() -> None:
    X, y = clouds(40, 3)
    K = rbf_kernel(X, X, gamma=0.5)
    model = SVC(kernel="precomputed", decision_function_shape="ovo").fit(K, y)
    model.forget([0, 7])
    stays = np.isin(np.arange(40), model.ids_)
    rows = rbf_kernel(X[:9], X[stays], gamma=0.5)
    plain = model.to_sklearn()
    np.testing.assert_allclose(
        plain.decision_function(rows), model.decision_function(rows), rtol=0.0, atol=1e-9
    )


def test_export_needs_two_classes() -> None:
    model = SVC().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(ValueError, match="two classes"):
        model.to_sklearn()


def test_iris_is_as_in_scikit_learn() -> None:
    X, y = load_iris(return_X_y=True)
    ours, theirs = SVC(C=10.0).fit(X, y), svm.SVC(C=10.0).fit(X, y)
    assert ours.gamma_ == pytest.approx(theirs._gamma, rel=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_laplacian_is_the_kernel_of_scikit_learn() -> None:
    X, y = clouds(40, 2)
    one = SVC(kernel="laplacian", gamma=0.5).fit(X, y)
    two = SVC(kernel="precomputed").fit(laplacian_kernel(X, X, gamma=0.5), y)
    np.testing.assert_allclose(
        one.decision_function(X),
        two.decision_function(laplacian_kernel(X, X, gamma=0.5)),
        rtol=0.0,
        atol=1e-10,
    )
