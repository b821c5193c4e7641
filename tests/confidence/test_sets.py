# SPDX-License-Identifier: BSD-3-Clause
"""Sets of labels: from p-values, full and across folds, with a bound that says what it is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from adiabat import SVC

from .brute_force import margins
from .test_p_values import three_classes


def test_sets_are_the_labels_with_p_values_above_alpha():
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    prediction, sets = model.predict_set(Z, [0.5, 0.8, 0.95])
    p = np.asarray(model.predict_p(Z))
    np.testing.assert_array_equal(prediction, model.predict(Z))
    assert sets.shape == (6, 3, 3)
    np.testing.assert_array_equal(sets, p[:, :, None] > np.array([0.5, 0.2, 0.05]))


def test_across_folds_by_refits():
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    cv = KFold(4, shuffle=True, random_state=3)
    counts, by_class = np.ones((2, 6, 3))
    for train, test in cv.split(X):
        other = SVC(gamma=0.5).fit(X[train], y[train])
        held = margins(other, X[test], y[test])
        for k, label in enumerate(model.classes_):
            own = margins(other, Z, np.full(6, label))
            counts[:, k] += (held[:, None] <= own + 1e-9).sum(axis=0)
            by_class[:, k] += (held[y[test] == label, None] <= own + 1e-9).sum(axis=0)
    members = np.array([np.sum(y == label) for label in model.classes_])
    _, sets = model.predict_set(Z, 0.8, method="cross", cv=cv)
    np.testing.assert_array_equal(sets[:, :, 0], counts / 61 > 0.2 + 1e-12)
    _, sets = model.predict_set(Z, 0.8, method="cross", cv=cv, per_class=True)
    np.testing.assert_array_equal(sets[:, :, 0], by_class / (members + 1) > 0.2 + 1e-12)


def test_a_fold_that_takes_a_class_with_it():
    X, y, Z = three_classes()
    alone = np.array(["d", *y[1:]])
    model = SVC(gamma=0.5).fit(X, alone)
    _, sets = model.predict_set(Z, 0.8, method="cross")
    assert sets.shape == (6, 4, 1)


def test_the_bound_across_folds():
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    # 60 samples in 5 folds of 12: 2 alpha + min(2 (1 - alpha) 4 / 65, (1 - 5/60) / 6)
    said = model.predict_set(Z, 0.9, method="cross", cv=5).guarantee
    assert said.coverage[0] == pytest.approx(1 - 0.2 - 2 * 0.9 * 4 / 65)
    # 60 folds of 1: the second is 0
    said = model.predict_set(Z[:1], 0.9, method="cross", cv=60).guarantee
    assert said.coverage[0] == pytest.approx(0.8)
    # 30 folds of 2: the second is the smaller, (1 - 30/60) / 31
    said = model.predict_set(Z[:1], 0.9, method="cross", cv=30).guarantee
    assert said.coverage[0] == pytest.approx(0.8 - 0.5 / 31)
    # folds of different sizes: the first alone
    said = model.predict_set(Z[:1], 0.9, method="cross", cv=7).guarantee
    assert said.coverage[0] == pytest.approx(0.8 - 1.8 * 6 / 67)
    # by class: the smallest class, whose parts of the folds differ
    fewest = min(np.sum(y == label) for label in model.classes_)
    said = model.predict_set(Z[:1], 0.8, method="cross", cv=5, per_class=True).guarantee
    assert said.coverage[0] == pytest.approx(0.6 - 1.6 * 4 / (fewest + 5))
    assert said.by_class
    assert model.predict_set(Z[:1], 0.9).guarantee.coverage[0] == pytest.approx(0.9)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, float("nan"), "much", [], [0.5, 2.0], True])
def test_levels_outside_0_and_1(level):
    X, y, Z = three_classes()
    with pytest.raises(ValueError, match="confidence_level="):
        SVC(gamma=0.5).fit(X, y).predict_set(Z, level)


def test_too_few_samples_for_a_level():
    X, y, Z = three_classes()
    model = SVC(gamma=0.5).fit(X, y)
    with pytest.raises(ValueError, match="needs 99 samples, and the model has 60"):
        model.predict_set(Z, 0.99)
    with pytest.raises(ValueError, match="needs 19 samples, and the class 'c' has 1"):
        model.predict_set(Z, 0.95, per_class=True)
    with pytest.raises(ValueError, match="cv=3 is for method='cross'"):
        model.predict_set(Z, cv=3)
    with pytest.raises(ValueError, match="method='split'"):
        model.predict_set(Z, method="split")
    with pytest.raises(ValueError, match="cv=100 must be between 2 and"):
        model.predict_set(Z, method="cross", cv=100)
