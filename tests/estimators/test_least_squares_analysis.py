# SPDX-License-Identifier: BSD-3-Clause
"""Merging, cross-validation, leave-one-out and the path over rho, each against refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)

import adiabat
from adiabat import LSSVC, LSSVR, NotLearnedError
from adiabat.feature_maps import Polynomial, RandomFourier

from oracles.least_squares import relative

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=90) > 0).astype(int) + (X[:, 1] > 0.6)
VALUES = X @ RNG.normal(size=4) + RNG.normal(size=90)
S = RNG.choice([0.0, 0.5, 1.0, 2.0], 90)


def target(kind: type) -> np.ndarray:
    return Y if kind is LSSVC else VALUES


def assert_same_model(one: Any, other: Any, tol: float = 1e-14) -> None:
    assert relative(one.coef_, other.coef_) < tol
    assert relative(one.intercept_, other.intercept_) < 100 * tol
    assert one.n_samples_ == other.n_samples_


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_models_trained_apart_merge_into_the_model_of_all_rows(kind):
    t = target(kind)
    whole = kind(rho=0.4).fit(X, t)
    parts = [kind(rho=0.4).fit(X[i::3], t[i::3]) for i in range(3)]
    one = clone(parts[0]).fit(X[0::3], t[0::3]).merge(parts[1]).merge(parts[2])
    pair = clone(parts[0]).fit(X[2::3], t[2::3]).merge(parts[1])
    other = pair.merge(parts[0])
    for merged in (one, other):
        assert_same_model(merged, whole)
    one.subtract(parts[0])
    rest = kind(rho=0.4).fit(np.vstack([X[1::3], X[2::3]]), np.concatenate([t[1::3], t[2::3]]))
    assert_same_model(one, rest)
    assert one.last_update_.n_removed == 30 and one.certificate().ok


def test_classes_that_only_one_side_knows():
    low, high = Y < 1, Y >= 1
    one, other = LSSVC().fit(X[low], Y[low]), LSSVC().fit(X[high], Y[high])
    one.merge(other)
    assert_same_model(one, LSSVC().fit(X, Y))
    one.subtract(other)
    assert one.classes_.tolist() == [0]
    one.merge(other).subtract(LSSVC().fit(X[low], Y[low]))
    assert_same_model(one, other)


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (LSSVC(rho=2.0).fit(X, Y), ValueError, "rho=2.0"),
        (LSSVC(fit_intercept=False).fit(X, Y), ValueError, "fit_intercept"),
        (LSSVC(feature_map=Polynomial()).fit(X, Y), ValueError, "feature_map"),
        (LSSVC().fit(X[:, :3], Y), ValueError, "3 features"),
        (LSSVC(), ValueError, "not fitted"),
        (LSSVR().fit(X, Y), TypeError, "LSSVR"),
        (LSSVC().fit(X, Y.astype(str)), ValueError, "one type of label"),
    ],
)
def test_models_of_different_problems_do_not_merge(other, error, message):
    model = LSSVC().fit(X, Y)
    before = model.coef_
    with pytest.raises(error, match=message):
        model.merge(other)
    assert np.array_equal(model.coef_, before)


def test_maps_of_different_seeds_do_not_merge():
    one, other = (LSSVR(feature_map=RandomFourier(9, seed=k)).fit(X, VALUES) for k in (0, 1))
    with pytest.raises(ValueError, match="feature_map"):
        one.merge(other)


def test_what_was_never_merged_cannot_be_subtracted():
    model, other = LSSVR().fit(X[:50], VALUES[:50]), LSSVR().fit(3.0 * X[50:], VALUES[50:])
    before = model.coef_
    with pytest.raises(NotLearnedError):
        model.subtract(other)
    with pytest.raises(NotLearnedError, match="more rows"):
        other.subtract(model)
    assert np.array_equal(model.coef_, before)


SPLITTERS = {
    "int": 4,
    "k-fold": KFold(5, shuffle=True, random_state=0),
    "stratified": StratifiedKFold(3),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1),
    "shuffle": ShuffleSplit(4, test_size=0.3, train_size=0.3, random_state=2),
    "time": TimeSeriesSplit(4),
    "groups": GroupKFold(3),
    "pairs": [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(30))],
}


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize("name", SPLITTERS)
def test_cross_validation_is_that_of_refitting(kind, name):
    groups = np.arange(90) % 7 if name == "groups" else None
    if kind is LSSVR and name in ("stratified", "repeated"):
        return  # these need classes
    t = target(kind)
    model = kind(rho=0.7).fit(X, t)
    found = model.cross_validate(X, t, SPLITTERS[name], groups=groups)
    expected = cross_val_score(kind(rho=0.7), X, t, cv=SPLITTERS[name], groups=groups)
    assert np.allclose(found.test_score, expected, rtol=0, atol=1e-12)


def test_cross_validation_with_weights_and_a_scorer():
    model = LSSVR().fit(X, VALUES, S)
    found = model.cross_validate(X, VALUES, 5, scoring="neg_mean_absolute_error", sample_weight=S)
    for fold, score in zip(found.folds, found.test_score, strict=True):
        rest = np.setdiff1d(np.arange(90), fold)
        fresh = LSSVR().fit(X[rest], VALUES[rest], S[rest])
        assert abs(score + np.abs(fresh.predict(X[fold]) - VALUES[fold]).mean()) < 1e-12


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_leave_one_out_is_that_of_refitting(kind, weighted, fit_intercept):
    t = target(kind)
    s = S if weighted else None
    model = kind(rho=0.3, fit_intercept=fit_intercept).fit(X, t, s)
    found = model.leave_one_out(X, t, s)
    for train, test in LeaveOneOut().split(X):
        fresh = clone(model).fit(X[train], t[train], None if s is None else s[train])
        outputs = fresh.decision_function(X[test]) if kind is LSSVC else fresh.predict(X[test])
        assert np.allclose(found.decision[test], outputs, rtol=0, atol=1e-11)
        assert np.all(found.prediction[test] == fresh.predict(X[test])) or kind is LSSVR


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_folds_of_weighted_rows_are_those_of_refitting(kind):
    t = target(kind)
    model = kind(rho=0.7).fit(X, t, S)
    found = adiabat.cross_validate(model, X, t, cv=KFold(4), sample_weight=S, return_estimator=True)
    for (train, test), view, score in zip(
        KFold(4).split(X), found["estimator"], found["test_score"], strict=True
    ):
        fresh = kind(rho=0.7).fit(X[train], t[train], S[train])
        assert relative(view.coef_, fresh.coef_) < 1e-12
        assert abs(score - fresh.score(X[test], t[test])) < 1e-12
    with pytest.raises(ValueError, match="with their weights"):
        adiabat.cross_validate(model, X, t)
    with pytest.raises(ValueError, match="leave sample_weight out"):
        adiabat.cross_validate(adiabat.SVR().fit(X, VALUES), sample_weight=S)


def test_leave_one_out_of_rows_that_decide_alone():
    """A row with a feature of its own, and the only members of classes."""
    rows = np.vstack([X[:20], [[0.0, 0.0, 0.0, 1e7]]])
    values = np.append(VALUES[:20], 5.0)
    model = LSSVR(rho=1e-6).fit(rows, values)
    found = model.leave_one_out(rows, values)
    fresh = LSSVR(rho=1e-6).fit(rows[:20], values[:20])
    assert np.allclose(found.prediction[20], fresh.predict(rows[20:])[0], rtol=1e-9)
    for labels in (np.array([0] + [1] * 9 + [2] * 10), np.array([0] + [1] * 19)):
        model = LSSVC().fit(X[:20], labels)
        found = model.leave_one_out(X[:20], labels)
        fresh = LSSVC().fit(X[1:20], labels[1:])
        assert found.prediction[0] == fresh.predict(X[:1])[0]
        assert found.error_rate > 0.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_the_path_over_rho_is_that_of_refitting(kind, fit_intercept):
    t, rhos = target(kind), [1e-6, 0.1, 1.0, 1e5]
    model = kind(fit_intercept=fit_intercept).fit(X, t, S)
    path = model.rho_path(rhos, X, t, S)
    for place, rho in enumerate(rhos):
        fresh = kind(rho=rho, fit_intercept=fit_intercept).fit(X, t, S)
        assert relative(path.coef[place], np.atleast_2d(fresh.coef_)) < 1e-12
        assert np.allclose(path.intercept[place], fresh.intercept_, rtol=0, atol=1e-12)
        loo = fresh.leave_one_out(X, t, S)
        if kind is LSSVR:
            error = np.average((loo.prediction - t) ** 2, weights=S)
            assert abs(path.leave_one_out_error[place] - error) < 1e-9 * error
        retuned = kind(fit_intercept=fit_intercept).fit(X, t, S)
        assert retuned.retune(rho=rho) is retuned.last_update_
        assert relative(retuned.coef_, fresh.coef_) < 1e-13
        assert retuned.rho == rho and retuned.partial_fit(X[:1], t[:1]).certificate().ok


@pytest.mark.parametrize("rhos", [[0.0], [-1.0], [np.nan], [[1.0, 2.0]]])
def test_a_rho_out_of_range_is_refused(rhos):
    with pytest.raises(ValueError, match="above 0"):
        LSSVC().fit(X, Y).rho_path(rhos)
    with pytest.raises(ValueError, match="rho"):
        LSSVC().fit(X, Y).retune(rho=-1.0)


def test_rows_that_are_not_the_models_are_refused():
    model = LSSVC().fit(X, Y)
    for rows in (X[:80], X + 1e-6):
        with pytest.raises(ValueError, match="not the 90 rows"):
            model.leave_one_out(rows, Y[: len(rows)])
        with pytest.raises(ValueError, match="not the 90 rows"):
            model.cross_validate(rows, Y[: len(rows)], 3)
