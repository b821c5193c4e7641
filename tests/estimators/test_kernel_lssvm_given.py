# SPDX-License-Identifier: BSD-3-Clause
"""Kernel least squares with a given kernel, other parameters, and several values a sample."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, cross_val_score

import adiabat
from adiabat import SVC, IndefiniteKernelError, KernelLSSVC, KernelLSSVR

from oracles.least_squares import relative

RNG = np.random.default_rng(3)
X = RNG.normal(size=(50, 3))
K = rbf_kernel(X, gamma=0.3)
Y = RNG.integers(0, 3, 50)
VALUES = np.column_stack([X @ RNG.normal(size=3), X[:, 0] ** 2]) + 0.1 * RNG.normal(size=(50, 2))
S = RNG.choice([0.0, 0.5, 1.0, 2.0], 50)
KINDS = [(KernelLSSVC, Y), (KernelLSSVR, VALUES[:, 0]), (KernelLSSVR, VALUES)]


def assert_same(found: Any, expected: Any, rows: np.ndarray, against: np.ndarray) -> None:
    """Whether two models are the same, the first of kernel values, the second of features."""
    assert found.ids_.tolist() == expected.ids_.tolist()
    assert relative(found.dual_coef_, expected.dual_coef_) < 1e-10
    ask = "decision_function" if isinstance(found, KernelLSSVC) else "predict"
    ours, theirs = getattr(found, ask)(against), getattr(expected, ask)(rows)
    assert ours.shape == theirs.shape and np.allclose(ours, theirs, atol=1e-9)
    assert found.certificate().ok


@pytest.mark.parametrize(("kind", "t"), KINDS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_given_kernel_is_that_kernel(kind, t, fit_intercept, tmp_path):
    ours = kind(rho=0.2, kernel="precomputed", fit_intercept=fit_intercept)
    theirs = kind(rho=0.2, gamma=0.3, fit_intercept=fit_intercept)
    ours.fit(K[:30, :30], t[:30], S[:30])
    theirs.fit(X[:30], t[:30], S[:30])
    assert_same(ours, theirs, X, K[:, :30])
    for model, rows in ((ours, K[30:33, :33]), (theirs, X[30:33])):
        model.partial_fit(rows, t[30:33], sample_weight=S[30:33])
        model.forget([4, 31])
    held = np.delete(np.arange(33), [4, 31])
    # against all samples held, those that leave in the same step included
    new = K[33:36][:, [*held, 33, 34, 35]]
    ours.update(new, t[33:36], remove=[0, 9])
    theirs.update(X[33:36], t[33:36], remove=[0, 9])
    held = np.setdiff1d(np.arange(36), [0, 4, 9, 31])
    ours.revise([5, 6], y=t[[40, 41]], sample_weight=[0.0, 3.0])
    theirs.revise([5, 6], y=t[[40, 41]], sample_weight=[0.0, 3.0])
    assert ours.n_features_in_ == len(held) == 32
    assert_same(ours, theirs, X, K[:, held])
    assert np.allclose(ours.leave_one_out().decision, theirs.leave_one_out().decision, atol=1e-9)
    ours.save(tmp_path / "m.adiabat")
    for twin in (adiabat.load(tmp_path / "m.adiabat"), pickle.loads(pickle.dumps(ours))):
        twin.forget([7])
        assert_same(twin, clone_of(theirs).forget([7]), X, K[:, held[held != 7]])
    folds = [adiabat.cross_validate(model, cv=KFold(4))["test_score"] for model in (ours, theirs)]
    assert np.allclose(*folds, atol=1e-9)


def clone_of(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize(("kind", "t"), KINDS)
def test_a_given_kernel_of_which_all_is_forgotten(kind, t):
    model = kind(kernel="precomputed").fit(K[:9, :9], t[:9])
    model.update(K[9:12, :12], t[9:12], remove=np.arange(9))
    assert model.ids_.tolist() == [9, 10, 11]
    model.forget(model.ids_).partial_fit(K[:20, :20], t[:20])
    fresh = kind(kernel="precomputed").fit(K[:20, :20], t[:20])
    assert relative(model.dual_coef_, fresh.dual_coef_) < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(K[:5, :4], Y[:5]), "square"),
        (lambda m: m.fit(np.tril(K[:5, :5]), Y[:5]), "symmetric"),
        (lambda m: m.partial_fit(K[20:22, :20], Y[20:22]), "22 columns"),
        (lambda m: m.partial_fit(K[20:22, :22] * np.nan, Y[20:22]), "NaN"),
        (lambda m: m.partial_fit(K[20:22, :22], Y[20:23]), "y has 3 targets"),
        (lambda m: m.partial_fit(K[20:22, :22] - 3 * np.eye(2, 22, 20), Y[20:22]), "semidefinite"),
        (lambda m: m.revise([1], X=K[:1]), "cannot be revised"),
        (lambda m: m.predict(K[:, :19]), "19 features"),
        (lambda m: m.retune(gamma=2.0), "to or from kernel='precomputed'"),
        (lambda m: m.retune(fit_intercept=False), "fit_intercept cannot be retuned"),
        (lambda m: m.retune(C=2.0), "C is not a parameter"),
        (lambda m: m.retune(rho=-1.0), "rho"),
    ],
)
def test_what_a_given_kernel_cannot_be(call, message):
    model = KernelLSSVC(kernel="precomputed").fit(K[:20, :20], Y[:20])
    state = pickle.dumps(model.__dict__)
    with pytest.raises(ValueError, match=message):
        call(model)
    assert pickle.dumps(model.__dict__) == state


def test_an_indefinite_kernel_is_named():
    def distance(A: Any, B: Any) -> np.ndarray:
        return -np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    with pytest.raises(IndefiniteKernelError, match="not positive semidefinite"):
        KernelLSSVR(kernel=distance, rho=0.1).fit(X, VALUES)


@pytest.mark.parametrize(("kind", "t"), KINDS)
@pytest.mark.parametrize(
    "params",
    [{"rho": 3.0}, {"gamma": 0.7}, {"kernel": "poly", "coef0": 1.0, "rho": 0.1}, {"tol": 1e-8}],
)
def test_a_retuned_model_is_that_of_a_fit(kind, t, params):
    model = kind(rho=0.5, gamma=0.4).fit(X, t, S)
    assert model.retune(**params) is model.last_update_
    fresh = kind(**{"rho": 0.5, "gamma": 0.4, **params}).fit(X, t, S)
    assert model.get_params() == fresh.get_params() and model.gamma_ == fresh.gamma_
    assert relative(model.dual_coef_, fresh.dual_coef_) < 1e-9
    model.forget([0])
    fresh.forget([0])
    assert relative(model.dual_coef_, fresh.dual_coef_) < 1e-9 and model.certificate().ok


def test_nothing_is_done_where_nothing_changes():
    model = KernelLSSVR().fit(X, VALUES)
    assert model.retune(rho=1.0).solver == "none" and model.refresh().rounds == 0


def test_refreshing_takes_gamma_from_the_samples_that_are_left():
    model = KernelLSSVR().fit(np.vstack([X, X[:1] * 1e3]), np.vstack([VALUES, VALUES[:1]]))
    model.forget([50])
    assert model.certificate().held_fixed == {"gamma": model.gamma_}
    model.refresh()
    assert model.gamma_ == pytest.approx(KernelLSSVR().fit(X, VALUES).gamma_, rel=1e-12)


def test_several_values_are_as_many_models():
    model = KernelLSSVR(rho=0.3, gamma=0.2).fit(X[:40], VALUES[:40], S[:40])
    model.update(X[40:], VALUES[40:], remove=[0, 5])
    model.revise([7], y=VALUES[[8]])
    assert model.predict(X).shape == (50, 2) and model.intercept_.shape == (2,)
    found = model.leave_one_out()
    for column in range(2):
        t = VALUES[:, column]
        alone = KernelLSSVR(rho=0.3, gamma=0.2).fit(X[:40], t[:40], S[:40])
        alone.update(X[40:], t[40:], remove=[0, 5])
        alone.revise([7], y=[t[8]])
        assert np.allclose(model.predict(X)[:, column], alone.predict(X), atol=1e-10)
        assert np.allclose(found.residual[:, column], alone.leave_one_out().residual, atol=1e-10)
    for y in (VALUES[:1, 0], np.zeros((1, 3))):
        with pytest.raises(ValueError, match="as many"):
            model.partial_fit(X[:1], y)
        with pytest.raises(ValueError, match="as many"):
            model.revise([1], y=y)


def test_results_of_leaving_out_are_those_of_the_other_machines():
    found = KernelLSSVC().fit(X, Y, ids=[f"s{i}" for i in range(50)]).leave_one_out()
    other = SVC().fit(X, Y, ids=[f"s{i}" for i in range(50)]).leave_one_out()
    assert type(found) is type(other)
    assert found.ids.tolist() == other.ids.tolist() and (found.target == other.target).all()
    assert found.error_rate == pytest.approx(np.mean(found.prediction != Y))


def test_validation_curve_over_rho_is_that_of_refitting():
    _, found = adiabat.validation_curve(
        KernelLSSVR(gamma=0.3).fit(X, VALUES[:, 0]), "rho", [0.1, 1.0, 10.0], cv=KFold(5)
    )
    for row, rho in enumerate([0.1, 1.0, 10.0]):
        fresh = clone(KernelLSSVR(gamma=0.3, rho=rho))
        assert np.allclose(found[row], cross_val_score(fresh, X, VALUES[:, 0], cv=KFold(5)))
