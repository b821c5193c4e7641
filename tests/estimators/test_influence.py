# SPDX-License-Identifier: BSD-3-Clause
"""The influence of each sample against refitting without it."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import hinge_loss, mean_absolute_error, mean_squared_error

from adiabat import SVC, SVDD, SVR, OneClassSVM

TIGHT = 1e-7


def data(n=40, n_classes=3):
    X, y = make_blobs(n + 12, 3, centers=n_classes, cluster_std=5.0, random_state=4)
    return X[:n], y[:n], X[n:], y[n:]


def hinge_inside(y, decision):
    return np.mean(np.maximum(0.0, 1.0 - y * decision))


CASES = {
    "binary": (lambda: SVC(C=1.0, gamma=0.05), 2, None,
               lambda m, X, y: hinge_loss(y, m.decision_function(X), labels=[0, 1])),
    "classes": (lambda: SVC(C=1.0, gamma=0.05), 3, "hinge",
                lambda m, X, y: hinge_loss(y, m.decision_function(X), labels=[0, 1, 2])),
    "wrong": (lambda: SVC(C=1.0, gamma=0.05), 3, "zero_one",
              lambda m, X, y: np.mean(m.predict(X) != y)),
    "squared": (lambda: SVR(C=1.0, gamma=0.05), 3, None,
                lambda m, X, y: mean_squared_error(y, m.predict(X))),
    "absolute": (lambda: SVR(C=1.0, kernel="linear"), 3, "absolute",
                 lambda m, X, y: mean_absolute_error(y, m.predict(X))),
    "one class": (lambda: OneClassSVM(nu=0.3, gamma=0.05), 2, "hinge",
                  lambda m, X, y: hinge_inside(y, m.decision_function(X))),
    "sphere": (lambda: SVDD(C=0.026, gamma=0.05), 2, "zero_one",
               lambda m, X, y: np.mean(m.predict(X) != y)),
    "own": (lambda: SVR(C=1.0, gamma=0.05), 3, lambda y, f: np.abs(y - f).max(),
            lambda m, X, y: np.abs(y - m.predict(X)).max()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_influence_of_every_sample_is_that_of_refitting(case):
    make, n_classes, loss, truth = CASES[case]
    X, y, X_val, y_val = data(n_classes=n_classes)
    if case in ("one class", "sphere"):
        y_val = 2 * y_val - 1
    model = make().fit(X, y)
    found = model.influence(X_val, y_val, loss=loss, n_jobs=2 if case == "binary" else None)
    assert found.loss == pytest.approx(truth(model, X_val, y_val), abs=TIGHT)
    for place in range(len(X)):
        rest = np.arange(len(X)) != place
        refit = make().partial_fit(X[rest], y[rest])
        wanted = truth(refit, X_val, y_val) - found.loss
        assert found.change[place] == pytest.approx(wanted, abs=TIGHT)
    if isinstance(model, SVR):
        idle = np.setdiff1d(np.arange(len(X)), model.support_)
        assert len(idle) and np.all(found.change[idle] == 0.0)
        assert found.n_removals == len(model.support_)
    assert "removals" in str(found)


def test_a_given_kernel_and_the_last_of_a_class():
    X, y, X_val, y_val = data()
    y[0] = 5
    given = SVC(kernel="precomputed").fit(X @ X.T / 50, y)
    plain = SVC(kernel="linear").fit(X / np.sqrt(50), y)
    ours = given.influence(X_val @ X.T / 50, y_val, loss="zero_one")
    theirs = plain.influence(X_val / np.sqrt(50), y_val, loss="zero_one")
    np.testing.assert_array_equal(ours.change, theirs.change)


def test_kernel_values_of_validation_points_are_computed_once():
    X, y, X_val, y_val = data(n_classes=2)
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return A @ B.T / 50

    model = SVC(kernel=kernel, C=0.1).fit(X, y)
    asked.clear()
    found = model.influence(X_val, y_val)
    plain = SVC(kernel="linear", C=0.1).fit(X / np.sqrt(50), y)
    theirs = plain.influence(X_val / np.sqrt(50), y_val)
    np.testing.assert_allclose(found.change, theirs.change, atol=TIGHT)
    columns = sum(b for a, b in asked if a == len(X_val) != len(X))
    assert found.n_removals > 10 and columns <= len(X)


def test_the_last_of_a_class_and_plain_lists():
    X, y, X_val, y_val = data()
    y[0] = 5
    found = SVC().fit(X, y).influence(X_val.tolist(), y_val.tolist(), loss="zero_one")
    assert np.all(np.isfinite(found.change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loss": "squared"}, "loss='squared' is not a loss for SVC"),
        ({"y_val": [1, 2]}, r"y_val has shape \(2,\), X_val has 12 rows"),
        ({"y_val": [9] * 12}, "label 9"),
        ({"X_val": np.zeros((12, 2))}, "2 features"),
    ],
)
def test_influence_refuses(change, said):
    X, y, X_val, y_val = data()
    with pytest.raises(ValueError, match=said):
        SVC().fit(X, y).influence(**{"X_val": X_val, "y_val": y_val, **change})
    with pytest.raises(
        ValueError, match="X_val has 3 columns; with kernel='precomputed' it has 40"
    ):
        SVC(kernel="precomputed").fit(X @ X.T, y).influence(X_val, y_val)


def test_influence_needs_a_model_and_its_own_losses():
    X, y, X_val, y_val = data()
    with pytest.raises(NotFittedError):
        SVC().influence(X_val, y_val)
    with pytest.raises(ValueError, match="ovo"):
        SVC(decision_function_shape="ovo").fit(X, y).influence(X_val, y_val)
    with pytest.raises(ValueError, match="two samples or more"):
        SVC().partial_fit(X[:1], y[:1]).influence(X_val, y_val)
    with pytest.raises(ValueError, match=r"\+1 \(inside\)"):
        OneClassSVM().fit(X).influence(X_val, np.arange(12))
