# SPDX-License-Identifier: BSD-3-Clause
"""The map of a model: what is drawn is what the model says."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError

from adiabat import SVC, SVDD, SVR, OneClassSVM
from adiabat.analysis import sets
from adiabat.plots import MarginDisplay

SMALL = {"resolution": 15}


def moons(n=40):
    return make_moons(n, noise=0.3, random_state=0)


def words(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def test_values_sets_and_labels_are_the_models():
    X, y = moons()
    model = SVC(C=5.0, gamma=0.7).fit(X, np.array(["no", "yes"])[y])
    display = MarginDisplay.from_estimator(model, **SMALL)
    corner = [[display.grid[0][3], display.grid[1][7]]]
    assert_allclose(display.values[7, 3], model.decision_function(corner)[0])
    assert_array_equal(display.sets, sets(model))
    assert_array_equal(display.labels, y)
    drawn = sum(len(line.get_xdata()) for line in display.markers_)
    assert drawn == 40 and display.figure_ is display.ax_.figure
    kinds = ("MARGIN", "ERROR", "RESERVE")
    counted = [f"{kind} ({np.sum(display.sets == kind)})" for kind in kinds]
    expected = [*counted, "class no", "class yes", "boundary, f = 0", "margin, f = ±1"]
    assert words(display) == expected


def test_sets_and_classes_differ_without_colour():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=1.0).fit(X[::3, 2:], y[::3])
    display = MarginDisplay.from_estimator(model, **SMALL)
    looks = [(line.get_marker(), line.get_fillstyle(), line.get_markerfacecolor() == "white")
             for line in display.markers_]  # fmt: skip
    assert len(looks) == len(set(looks)) > 5


def test_an_update_shows_who_came_and_who_went():
    X, y = moons()
    model = SVC(C=5.0, gamma=0.7).fit(X, y)
    before = copy.deepcopy(model)
    model.update(X[:2] + 0.5, y[:2], remove=[7, 8, 9])
    display = MarginDisplay.from_estimator(model, before=before, **SMALL)
    assert_allclose(display.came, X[:2] + 0.5)
    assert_allclose(display.went, X[7:10])
    assert words(display)[-3:] == ["before", "came (2)", "went (3)"]
    corner = [[display.grid[0][0], display.grid[1][14]]]
    assert_allclose(display.values_before[14, 0], before.decision_function(corner)[0])


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.2), SVDD(C=0.1)])
def test_novelty_is_drawn(model):
    X, _ = moons()
    display = MarginDisplay.from_estimator(model.fit(X), before=model, **SMALL)
    assert "boundary, f = 0" in words(display)


def test_many_classes_are_drawn_as_regions_before_and_after():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=1.0).fit(X[::3, 2:], y[::3])
    before = copy.deepcopy(model)
    display = MarginDisplay.from_estimator(model.forget(range(20, 30)), before=before, **SMALL)
    assert set(np.unique(display.regions)) <= {0, 1, 2}
    assert set(np.unique(display.values_before)) <= {0.0, 1.0, 2.0}
    assert "class 2" in words(display)


def test_a_regression_on_one_feature_is_a_curve_and_on_two_a_map():
    X, y = moons()
    curve = SVR(epsilon=0.25).fit(X[:, :1], X[:, 1])
    display = MarginDisplay.from_estimator(curve, before=curve, **SMALL)
    assert display.kind == "curve" and "tube, ± 0.25" in words(display)
    assert display.ax_.get_ylabel() == "target"
    assert_allclose(display.samples, X)
    plane = SVR().fit(X, X[:, 0] + y)
    assert MarginDisplay.from_estimator(plane, **SMALL).kind == "regression"


def test_other_features_are_held_where_they_are_told_to_be():
    data = load_iris(as_frame=True)
    model = SVC(C=1.0).fit(data.data[50:], data.target[50:])
    display = MarginDisplay.from_estimator(model, features=("petal length (cm)", 3), **SMALL)
    assert display.ax_.get_xlabel() == "petal length (cm)"
    assert "at their means" in display.ax_.get_title()
    fixed = [5.0, 3.0, 0.0, 0.0]
    display = MarginDisplay.from_estimator(model, features=(2, 3), fixed=fixed, **SMALL)
    point = pd.DataFrame(
        [[5.0, 3.0, display.grid[0][4], display.grid[1][5]]], columns=data.data.columns
    )
    assert_allclose(display.values[5, 4], model.decision_function(point)[0])


def test_one_feature_of_many_is_a_curve():
    X, y = moons()
    model = SVR().fit(X, y)
    display = MarginDisplay.from_estimator(model, features=1, **SMALL)
    assert display.kind == "curve"
    assert_allclose(display.samples, np.column_stack([X[:, 1], y]))
    assert "at their means" in display.ax_.get_title()


def test_before_there_were_two_classes():
    X, y = moons()
    model = SVC().partial_fit(X[y == 0], y[y == 0])
    before = copy.deepcopy(model)
    assert MarginDisplay.from_estimator(before, **SMALL).values.shape == (15, 15)
    model.partial_fit(X[y == 1], y[y == 1])
    display = MarginDisplay.from_estimator(model, before=before, **SMALL)
    assert len(display.came) == 20


def test_sparse_rows_and_given_axes():
    X, y = moons(20)
    ax = plt.figure().add_subplot()
    model = SVC().fit(sp.csr_array(X), y)
    display = MarginDisplay.from_estimator(model, ax=ax, legend=False, **SMALL)
    assert display.ax_ is ax and display.legend_ is None
    assert display.plot().ax_ is not ax


def test_bad_input_is_named():
    X, y = moons(20)
    wide = SVC().fit(np.column_stack([X, X]), y)
    flat = SVC().fit(X, y)
    with pytest.raises(NotFittedError):
        MarginDisplay.from_estimator(SVC())
    with pytest.raises(TypeError, match="model=dict has no margin, error"):
        MarginDisplay.from_estimator({})
    with pytest.raises(ValueError, match=r"4 features and the picture has 2.*features=\(0, 1\)"):
        MarginDisplay.from_estimator(wide)
    with pytest.raises(ValueError, match=r"4 is not a feature of 0 ... 3"):
        MarginDisplay.from_estimator(wide, features=(0, 4))
    with pytest.raises(ValueError, match="'age' is not among"):
        MarginDisplay.from_estimator(wide, features=("age", 0))
    for features in ((1, 1), 1, [0, 1, 2]):
        with pytest.raises(ValueError, match="must be 2 different features"):
            MarginDisplay.from_estimator(wide, features=features)
    with pytest.raises(ValueError, match="one finite value for each of the 4 features"):
        MarginDisplay.from_estimator(wide, features=(0, 1), fixed=[0.0])
    with pytest.raises(ValueError, match="precomputed"):
        MarginDisplay.from_estimator(SVC(kernel="precomputed").fit(np.eye(4), [0, 0, 1, 1]))
    with pytest.raises(ValueError, match="resolution=1 must be"):
        MarginDisplay.from_estimator(flat, resolution=1)
    with pytest.raises(ValueError, match="earlier state of the same model"):
        MarginDisplay.from_estimator(flat, before=wide)
    with pytest.raises(TypeError, match="ax='here' is not an Axes"):
        MarginDisplay.from_estimator(flat, ax="here", **SMALL)
    with pytest.raises(ValueError, match="1 features and the picture has 2"):
        MarginDisplay.from_estimator(SVC().fit(X[:, :1], y))
    with pytest.raises(ValueError, match=r"limits=.* for each of the 2 features"):
        MarginDisplay.from_estimator(flat, limits=[(0.0, 1.0), (1.0, 0.0)])
