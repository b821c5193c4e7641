# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out margins, as they are drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_moons

from adiabat import SVC, SVR
from adiabat.analysis import check_sensitivity
from adiabat.plots import LeaveOneOutDisplay


@pytest.fixture(scope="module")
def model():
    X, y = make_moons(60, noise=0.35, random_state=0)
    return SVC(C=10.0, gamma=0.5).fit(X, y)


def drawn(display):
    points = [np.column_stack(line.get_data()) for line in display.markers_]
    return np.array(sorted(map(tuple, np.concatenate(points))))


def test_effect_draws_exact_margins_against_those_of_the_model(model):
    display = LeaveOneOutDisplay.from_estimator(model)
    known = check_sensitivity(model)
    expected = np.column_stack([known.sensitivity.g, known.exact_g])
    assert_allclose(drawn(display), np.array(sorted(map(tuple, expected))))
    errors = int(np.sum(known.exact_g < -1.0))
    assert display.ax_.get_title() == f"leave-one-out errors: {errors} of 60"
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[0].startswith("MARGIN (") and texts[-1] == "leave-one-out error"


def test_response_circles_what_is_judged_differently(model):
    display = LeaveOneOutDisplay.from_estimator(model, kind="response")
    known = check_sensitivity(model)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"judged differently ({len(known.disagree)})" in texts
    expected = np.column_stack([known.exact_g, known.sensitivity.loo_g])
    assert_allclose(drawn(display), np.array(sorted(map(tuple, expected))))


def test_regression_pairs_and_margins_without_end():
    X, y = load_iris(return_X_y=True)
    X, y = X[::6], y[::6]
    assert len(drawn(LeaveOneOutDisplay.from_estimator(SVR().fit(X, X[:, 0])))) == 25
    many = SVC().fit(X, y)
    display = LeaveOneOutDisplay.from_estimator(many, machine=(0, 2), legend=False)
    assert display.ax_.get_legend() is None and len(display.sets) == int(np.sum(y != 1))
    with pytest.raises(ValueError, match="3 machines"):
        LeaveOneOutDisplay.from_estimator(many)
    with pytest.raises(ValueError, match="kind='cause' must be one of"):
        LeaveOneOutDisplay.from_estimator(many, kind="cause")
    lone = SVC(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert len(drawn(LeaveOneOutDisplay.from_estimator(lone))) == 2
