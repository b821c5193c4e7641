# SPDX-License-Identifier: BSD-3-Clause
"""Intervals and calibration, as they are drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons

from adiabat import SVC, SVR, KernelLSSVR
from adiabat.plots import CalibrationDisplay, IntervalDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 6.0, (40, 1))
Y = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(40)


@pytest.mark.parametrize("kind", [SVR, KernelLSSVR])
def test_intervals_are_those_of_the_model(kind):
    model = kind(gamma=1.0).fit(X, Y)
    display = IntervalDisplay.from_estimator(
        model, confidence_level=0.8, methods=["jackknife+", "minmax"], n_points=9
    )
    assert list(display.bounds_) == ["jackknife+", "minmax"]
    at = display.line_.get_xdata()[:, None]
    assert_allclose(display.line_.get_ydata(), model.predict(at))
    for method, lines in display.bounds_.items():
        wanted = model.predict_interval(at, 0.8, method)[1][:, :, 0]
        assert_allclose(np.column_stack([line.get_ydata() for line in lines]), wanted)
    assert display.ax_.get_title() == "intervals at 80 %"
    with pytest.raises(ValueError, match="one feature"):
        IntervalDisplay.from_estimator(kind(gamma=1.0).fit(np.hstack([X, X]), Y))


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic", "venn_abers"])
def test_the_curve_is_that_of_the_model(kind):
    rows, labels = make_moons(60, noise=0.35, random_state=0)
    model = SVC(gamma=0.5, calibration=kind).fit(rows, labels)
    display = CalibrationDisplay.from_estimator(model)
    assert (display.interval is not None) == (kind == "venn_abers")
    f, p = model.decision_function(rows), model.predict_proba(rows)[:, 1]
    if kind != "venn_abers":  # whose curve has steps
        inside = (f > display.decision[0]) & (f < display.decision[-1])
        found = np.interp(f[inside], display.decision, display.probability)
        assert_allclose(found, p[inside], atol=0.05)
    assert display.ax_.get_ylabel() == "probability of 1"
    with pytest.raises(ValueError, match="with a calibration"):
        CalibrationDisplay.from_estimator(SVC(gamma=0.5).fit(rows, labels))
