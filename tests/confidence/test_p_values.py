# SPDX-License-Identifier: BSD-3-Clause
"""P-values are those of the definition, on degenerate data too, and nothing else moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, kstest

import adiabat
from adiabat import SVC, SVDD, OneClassSVM
from adiabat.engine import newcomers

from .brute_force import doubtful, margins, margins_by_piqp, margins_by_refit, rank
from oracles.kinds import as_kind
from oracles.problems import FAMILIES


def three_classes(n: int = 60, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, 2)), rng.standard_normal((6, 2))
    y = (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int) + (X[:, 1] > 0.7)
    return X, np.array(["a", "b", "c"])[y], Z


@pytest.mark.parametrize("name", FAMILIES)
def test_p_values_are_those_of_refits_and_of_another_solver(name):
    rng = np.random.default_rng(7)
    problem = FAMILIES[name](rng)
    model = SVC(**problem.params).fit(problem.X, problem.y, problem.sample_weight)
    Z = problem.draw(rng, 3).X
    found = model.predict_p(Z)
    compared = 0
    for i, x in enumerate(Z):
        for k, label in enumerate(model.classes_):
            refit = margins_by_refit(model, problem.X, problem.y, problem.sample_weight, x, label)
            if not doubtful(refit):
                compared += 1
                assert found[i, k] == pytest.approx(rank(refit), abs=1e-12)
            other = margins_by_piqp(problem, x, int(label))
            if other is not None and not doubtful(other):
                assert found[i, k] == pytest.approx(rank(other), abs=1e-12)
    assert compared >= 4


@pytest.mark.parametrize("kind", ["one_class", "svdd"])
@pytest.mark.parametrize("name", ["duplicates", "integer_features", "gamma_huge", "xor_grid"])
def test_p_values_of_novelty_are_those_of_refits(name, kind):
    rng = np.random.default_rng(3)
    problem = as_kind(FAMILIES[name](rng), kind, rng)
    kind_of = OneClassSVM if kind == "one_class" else SVDD
    model = kind_of(**problem.params).fit(problem.X)
    Z = problem.draw(rng, 4).X
    found = model.predict_p(Z)
    for x, p in zip(Z, found, strict=True):
        rows = np.vstack([problem.X, x[None, :]])
        own = kind_of(**problem.params).fit(rows)
        scores = own.decision_function(rows)
        if not doubtful(scores):
            assert p == pytest.approx(rank(scores), abs=1e-12)


def test_many_classes_by_the_least_margin_of_their_pairs():
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    found = model.predict_p(Z)
    by_class = model.predict_p(Z, per_class=True)
    for i, x in enumerate(Z):
        for k, label in enumerate(model.classes_):
            scores = margins_by_refit(model, X, y, np.ones(len(y)), x, label)
            assert found[i, k] == pytest.approx(rank(scores))
            assert by_class[i, k] == pytest.approx(rank(scores, y == label))


def test_the_score_of_leave_one_out():
    X, y, Z = three_classes(18)
    model = SVC(gamma=0.5).fit(X, y)
    found = model.predict_p(Z[:2], score="loo")
    for i, x in enumerate(Z[:2]):
        for k, label in enumerate(model.classes_):
            rows, labels = np.vstack([X, x[None, :]]), np.append(y, label)
            scores = np.array([
                margins(
                    SVC(gamma=0.5).fit(np.delete(rows, j, axis=0), np.delete(labels, j)),
                    rows[j : j + 1], labels[j : j + 1],
                )[0]
                for j in range(len(rows))
            ])  # fmt: skip
            assert found[i, k] == pytest.approx(rank(scores))


def test_the_pivots_do_the_work_on_ordinary_data(monkeypatch):
    X, y, Z = three_classes(120)
    model = SVC(gamma=0.5).fit(X, y)
    monkeypatch.setattr("adiabat.estimators.confidence.visits.Visits.of", None)
    assert model.predict_p(Z).shape == (6, 3)
    assert OneClassSVM(nu=0.2, gamma=0.5).fit(X).predict_p(Z).shape == (6,)


def test_what_the_pivots_leave_is_done_by_a_copy(monkeypatch):
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    found = model.predict_p(Z)
    monkeypatch.setattr(
        newcomers.Newcomers, "join", lambda self, entries, noise: [None] * len(entries)
    )
    np.testing.assert_array_equal(model.predict_p(Z), found)


@pytest.mark.parametrize("make", [
    lambda X, y: SVC(gamma=0.5).fit(X, y),
    lambda X, y: OneClassSVM(nu=0.2, gamma=0.5).fit(X),
    lambda X, y: SVDD(C=0.1, gamma=0.5).fit(X),
])  # fmt: skip
def test_order_and_forgotten_rows_leave_no_trace(make):
    X, y, Z = three_classes()
    order = np.random.default_rng(1).permutation(len(X))
    found = make(X, y).predict_p(Z)
    np.testing.assert_array_equal(make(X[order], y[order]).predict_p(Z), found)
    longer = make(np.vstack([X, Z]), np.append(y, y[:6])).forget(np.arange(60, 66))
    before = longer.decision_function(X).copy()
    np.testing.assert_array_equal(longer.predict_p(Z), found)
    np.testing.assert_array_equal(longer.decision_function(X), before)


def test_p_values_of_true_labels_are_uniform_with_smoothing():
    rng = np.random.default_rng(5)
    found = []
    for draw in range(100):
        X = rng.standard_normal((25, 2))
        y = (X[:, 0] + rng.standard_normal(25) > 0).astype(int)
        if len(np.unique(y[:-1])) == 2:
            model = SVC(gamma=0.5).fit(X[:-1], y[:-1])
            p = model.predict_p(X[-1:], smoothing=True, random_state=draw)
            found.append(p[0, list(model.classes_).index(y[-1])])
    assert kstest(found, "uniform").pvalue > 1e-3


def test_false_discoveries():
    rng = np.random.default_rng(0)
    X, inliers = rng.standard_normal((200, 2)), rng.standard_normal((40, 2))
    outliers = rng.standard_normal((10, 2)) + 6.0
    model = OneClassSVM(nu=0.1, gamma=0.5).fit(X)
    p = model.predict_p(np.vstack([inliers, outliers]))
    found = false_discovery_control(p) <= 0.1
    assert found[40:].all()
    assert found[:40].sum() <= 3


def test_a_given_kernel():
    X, y, Z = three_classes()
    plain = SVC(kernel="linear").fit(X, y).predict_p(Z)
    given = SVC(kernel="precomputed").fit(X @ X.T, y)
    own = np.einsum("ij,ij->i", Z, Z)
    np.testing.assert_array_equal(given.predict_p(Z @ X.T, diagonal=own), plain)
    with pytest.raises(ValueError, match="diagonal is missing"):
        given.predict_p(Z @ X.T)
    with pytest.raises(ValueError, match="diagonal has shape"):
        given.predict_p(Z @ X.T, diagonal=own[:2])


def test_what_is_guaranteed_and_what_is_not():
    X, y, Z = three_classes()
    assert SVC(gamma=0.5).fit(X, y).predict_p(Z).guarantee.holds
    weak = SVC(class_weight="balanced").fit(X, y, sample_weight=np.full(60, 2.0))
    said = weak.predict_p(Z).guarantee
    assert not said.holds
    assert len(said.weakened_by) == 3
    assert "not guaranteed" in str(said)
    kept = SVC(gamma=0.5, retain=adiabat.retention.Support()).fit(X, y)
    assert "Support" in str(kept.predict_p(Z).guarantee)


def test_bad_questions_change_nothing():
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    before = model.decision_function(Z).copy()
    with pytest.raises(ValueError, match="score='f'"):
        model.predict_p(Z, score="f")
    with pytest.raises(ValueError, match="NaN"):
        model.predict_p(np.full((1, 2), np.nan))
    with pytest.raises(ValueError, match="has one"):
        SVC(gamma=0.5).fit(X[:3], ["a"] * 3).predict_p(Z)
    np.testing.assert_array_equal(model.decision_function(Z), before)
