# SPDX-License-Identifier: BSD-3-Clause
"""Queries against their plain restatement, and a loop whose scores are those of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from adiabat import SVC, SVDD, SVR, OneClassSVM
from adiabat.active import ActiveLearner, query
from adiabat.active.learner import RENEWAL
from adiabat.retention import Budget

RNG = np.random.default_rng(2)
X = RNG.standard_normal((240, 4))
TWO = (X[:, 0] * X[:, 1] > 0.0).astype(int)
THREE = TWO + (X[:, 2] > 0.8)
START, POOL = slice(0, 40), X[40:]


def fitted(y: Any, **params: Any) -> SVC:
    return SVC(C=5.0, gamma=0.3, **params).fit(X[START], y[START])


def restated(model: Any, pool: Any, strategy: str, n: int) -> list[int]:
    """One after the other, by a look at every sample."""
    chosen: list[int] = []
    for _ in range(n):
        best, best_value = -1, np.inf
        for place, row in enumerate(pool):
            f = model.decision_function(row[None])[0]
            if np.ndim(f):
                first, second = sorted(f.tolist(), reverse=True)[:2]
                value = first - second
            else:
                value = abs(f) if strategy == "near_boundary" else -f
            if place not in chosen and value < best_value:
                best, best_value = place, value
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("strategy", ["near_boundary", "largest_positive"])
@pytest.mark.parametrize("n", [1, 5])
def test_a_query_is_its_restatement(strategy: str, n: int) -> None:
    for model in (fitted(TWO), OneClassSVM(gamma=0.3).fit(X[START]), SVDD(gamma=0.3).fit(X[START])):
        found = query(model, POOL[:60], strategy=strategy, n=n)
        values = model.decision_function(POOL[:60])
        plain = restated(model, POOL[:60], strategy, n)
        # equal but for the rounding of a product of one row or of many
        np.testing.assert_allclose(values[found], values[plain], atol=1e-12)
    if strategy == "near_boundary":
        model = fitted(THREE)
        assert query(model, POOL[:60], n=n).tolist() == restated(model, POOL[:60], strategy, n)


def test_equal_samples_are_asked_in_their_order() -> None:
    model = fitted(TWO)
    assert query(model, np.repeat(POOL[:1], 5, axis=0), n=5).tolist() == [0, 1, 2, 3, 4]
    assert query(SVC().fit(X[:5], np.zeros(5)), POOL, n=2).tolist() == [0, 1]


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_the_loops_scores_are_the_models(kernel: str, labels: Any) -> None:
    model = fitted(labels, kernel=kernel, coef0=1.0)
    learner = ActiveLearner(model, POOL)
    for step in range(25):
        asked = learner.query(3)
        assert (
            asked.tolist() == learner.remaining[query(model, POOL[learner.remaining], n=3)].tolist()
        )
        report = learner.teach(asked, labels[40:][asked])
        assert report.n_added == 3 and report.certificate.ok
        if step % 6 == 0:
            np.testing.assert_allclose(
                learner.scores, model.decision_function(POOL[learner.remaining]), atol=1e-9
            )
    assert len(learner.remaining) == len(POOL) - 75
    assert not set(learner.remaining.tolist()) & set(asked.tolist())


def test_only_columns_of_new_support_vectors_are_computed() -> None:
    model = fitted(TWO)
    learner = ActiveLearner(model, POOL)
    ever = set()
    for _ in range(RENEWAL + 10):  # past a renewal of the sum
        ever |= set(model.ids_[model.support_].tolist())
        before = learner.columns_computed
        held = set(learner._names)
        asked = learner.query()
        now = set(model.ids_[model.support_].tolist())
        assert learner.columns_computed - before == len(now - held)
        learner.teach(asked, TWO[40:][asked])
    assert learner.columns_computed < 4 * len(ever)
    np.testing.assert_allclose(
        learner.scores, model.decision_function(POOL[learner.remaining]), atol=1e-9
    )


def test_changes_made_elsewhere_are_noticed() -> None:
    model = fitted(TWO)
    learner = ActiveLearner(model, POOL)
    acts = [
        lambda: model.revise([3, 4], X=X[[100, 101]]),
        lambda: model.forget([7, 8, 9]),
        lambda: model.retune(gamma=0.8),
        lambda: model.retune(C=1.0),
        lambda: model.partial_fit(X[50:60], THREE[50:60]),  # a third class
        lambda: model.fit(X[:30], TWO[:30]),
    ]
    for act in acts:
        asked = learner.query()
        learner.teach(asked, TWO[40:][asked])
        act()
        np.testing.assert_allclose(
            learner.scores, model.decision_function(POOL[learner.remaining]), atol=1e-9
        )


def test_with_sparse_rows_and_a_budget() -> None:
    model = SVC(gamma=0.3, retain=Budget(30)).fit(sp.csr_array(X[START]), TWO[START])
    learner = ActiveLearner(model, sp.csr_array(POOL), strategy="largest_positive")
    for _ in range(10):
        asked = learner.query(2)
        learner.teach(asked, TWO[40:][asked])
    assert len(model.ids_) == 30
    np.testing.assert_allclose(
        learner.scores, model.decision_function(POOL[learner.remaining]), atol=1e-9
    )


def test_a_failed_lesson_changes_nothing() -> None:
    learner = ActiveLearner(fitted(TWO), POOL)
    before = learner.scores.tolist()
    with pytest.raises(ValueError, match="y has"):
        learner.teach([3, 4], ["text", "text"])
    assert len(learner.remaining) == len(POOL) and learner.scores.tolist() == before


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: query(m, POOL, strategy="random"), ValueError, "strategy='random'"),
        (lambda m: query(m, POOL, strategy=None), ValueError, "strategy=None"),
        (lambda m: query(m, POOL, n=201), ValueError, "n=201 .*200 samples"),
        (lambda m: query(m, POOL, n=0), ValueError, "n=0"),
        (lambda m: query(m, POOL, n=1.5), ValueError, "n=1.5"),
        (lambda m: query(m, POOL, n=True), ValueError, "n=True"),
        (lambda m: query(m, POOL[:0]), ValueError, "0 samples"),
        (lambda m: query(m, POOL[:, :2]), ValueError, "2 features"),
        (lambda m: query(SVC(), POOL), NotFittedError, "not fitted"),
        (lambda m: query(SVR().fit(X, X[:, 0]), POOL), TypeError, "decision_function"),
        (lambda m: query(fitted(THREE), POOL, "largest_positive"), ValueError, "3 classes"),
        (lambda m: ActiveLearner(OneClassSVM().fit(X), POOL), TypeError, "SVC"),
        (lambda m: ActiveLearner(SVC(), POOL), NotFittedError, "not fitted"),
        (lambda m: ActiveLearner(m, POOL, "best"), ValueError, "strategy='best'"),
        (lambda m: ActiveLearner(m, POOL[:, :2]), ValueError, "2 features"),
        (lambda m: ActiveLearner(m, POOL).query(999), ValueError, "n=999"),
        (lambda m: ActiveLearner(m, POOL).teach([200], [0]), ValueError, "remaining"),
        (lambda m: ActiveLearner(m, POOL).teach([1, 1], [0, 0]), ValueError, "remaining"),
        (lambda m: ActiveLearner(m, POOL).teach([0.5], [0]), ValueError, "integers"),
    ],
)
def test_bad_input(act: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        act(fitted(TWO))
