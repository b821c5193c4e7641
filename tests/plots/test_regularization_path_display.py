# SPDX-License-Identifier: BSD-3-Clause
"""Weights against C: what is drawn are the weights of models fitted at each C."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_moons

from adiabat import SVC, IdError, OneClassSVM
from adiabat.plots import RegularizationPathDisplay


@pytest.fixture(scope="module")
def model():
    X, y = make_moons(30, noise=0.3, random_state=0)
    return SVC(C=2.0, gamma=0.5).fit(X, y)


@pytest.mark.parametrize("kind", ["share", "weight"])
def test_curves_are_the_weights_of_the_models_at_each_c(model, kind):
    X, y = make_moons(30, noise=0.3, random_state=0)
    display = RegularizationPathDisplay.from_estimator(
        model, 0.1, 20.0, ids=list(range(30)), kind=kind
    )
    assert display.C[0] == 0.1 and display.C[-1] == 20.0
    for place in (0, len(display.C) // 2, -1):
        C = display.C[place]
        refit = SVC(C=C, gamma=0.5).fit(X, y)
        alpha = np.zeros(30)
        alpha[refit.support_] = np.abs(refit.dual_coef_[0])
        drawn = [line.get_ydata()[place] for line in display.lines_]
        assert_allclose(drawn, alpha / C if kind == "share" else alpha, atol=1e-7)
    assert model.C == 2.0


def test_a_few_are_named_and_the_others_grey(model):
    display = RegularizationPathDisplay.from_estimator(model, 0.1, 20.0)
    assert len(display.lines_) == 6
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[-2:] == ["other samples", "breakpoints"]
    styles = {(line.get_linestyle(), line.get_color()) for line in display.lines_}
    assert len(styles) == 6
    assert RegularizationPathDisplay.from_path(
        model.regularization_path(0.5, 1.0), ids=3, legend=False
    ).ids == [3]


def test_pairs_and_bad_input(model):
    X, y = load_iris(return_X_y=True)
    many = SVC().fit(X[::6], y[::6])
    pair = RegularizationPathDisplay.from_estimator(many, 0.5, 2.0, machine=(1, 2))
    assert np.all(pair.weights[:, y[::6] == 0] == 0.0) and pair.weights.max() > 0.0
    with pytest.raises(ValueError, match="3 machines"):
        RegularizationPathDisplay.from_estimator(many, 0.5, 2.0)
    with pytest.raises(ValueError, match="kind='log' must be one of"):
        RegularizationPathDisplay.from_estimator(model, 0.5, 2.0, kind="log")
    with pytest.raises(IdError, match=r"ids: \[99\] not on this path"):
        RegularizationPathDisplay.from_estimator(model, 0.5, 2.0, ids=[99])
    with pytest.raises(ValueError, match="C_min"):
        RegularizationPathDisplay.from_estimator(model, 2.0, 1.0)
    with pytest.raises(TypeError, match="OneClassSVM has no regularization_path"):
        RegularizationPathDisplay.from_estimator(OneClassSVM().fit(X), 0.5, 2.0)
