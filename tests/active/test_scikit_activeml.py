# SPDX-License-Identifier: BSD-3-Clause
"""The machines inside scikit-activeml: its wrapper, its `partial_fit` hook, its strategies."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("skactiveml")

from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import QueryByCommittee, RandomSampling
from skactiveml.utils import MISSING_LABEL, unlabeled_indices

from adiabat import SVC
from adiabat.active import query
from adiabat.retention import Window

RNG = np.random.default_rng(4)
X = RNG.standard_normal((120, 3))
TRUE = (X[:, 0] + X[:, 1] > 0.0).astype(int)


def test_the_hook_learns_exactly() -> None:
    wrapped = SklearnClassifier(SVC(C=5.0, gamma=0.4), classes=[0, 1], random_state=0)
    wrapped.partial_fit(X[:10], TRUE[:10])
    y = np.where(np.arange(10, 60) % 3, TRUE[10:60], MISSING_LABEL)  # some without a label
    wrapped.partial_fit(X[10:60], y)
    labelled = np.concatenate([np.arange(10), 10 + np.flatnonzero(~np.isnan(y))])
    plain = SVC(C=5.0, gamma=0.4).fit(X[labelled], TRUE[labelled])
    assert wrapped.is_fitted_ and wrapped.certificate().ok
    assert wrapped.estimator_.certificate().n_samples == len(labelled)
    np.testing.assert_allclose(wrapped.decision_function(X), plain.decision_function(X), atol=1e-8)
    assert wrapped.predict(X).tolist() == plain.predict(X).tolist()


def test_its_loop_with_its_strategies_and_with_ours() -> None:
    y = np.full(len(X), MISSING_LABEL)
    y[:8] = TRUE[:8]
    wrapped = SklearnClassifier(SVC(C=5.0, gamma=0.4), classes=[0, 1], random_state=0).fit(X, y)
    others = [
        SklearnClassifier(SVC(C=C, gamma=0.4), classes=[0, 1], random_state=0) for C in (0.1, 50.0)
    ]
    committee = QueryByCommittee(method="vote_entropy", random_state=0)
    chance = RandomSampling(random_state=0)
    for step in range(15):
        if step % 3 == 0:
            asked = committee.query(X=X, y=y, ensemble=[wrapped, *others], fit_ensemble=True)
        elif step % 3 == 1:
            asked = chance.query(X=X, y=y)
        else:
            pool = unlabeled_indices(y)
            asked = pool[query(wrapped.estimator_, X[pool])]
        y[asked] = TRUE[asked]
        wrapped.partial_fit(X[asked], TRUE[asked])
    labelled = ~np.isnan(y)
    plain = SVC(C=5.0, gamma=0.4).fit(X[labelled], TRUE[labelled])
    np.testing.assert_allclose(wrapped.decision_function(X), plain.decision_function(X), atol=1e-8)


def test_a_window_inside_it() -> None:
    wrapped = SklearnClassifier(SVC(gamma=0.4, retain=Window(20)), classes=[0, 1], random_state=0)
    for start in range(0, 100, 10):
        wrapped.partial_fit(X[start : start + 10], TRUE[start : start + 10])
    assert wrapped.estimator_.certificate().n_seen == 100
    assert wrapped.estimator_.ids_.tolist() == list(range(80, 100))
