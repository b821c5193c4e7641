# SPDX-License-Identifier: BSD-3-Clause
"""Curves of the path: what is drawn is what the trajectory has."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_moons

from adiabat import SVC, IdError, OneClassSVM
from adiabat.analysis import learning_trajectory, trajectories, unlearning_trajectory
from adiabat.plots import TrajectoryDisplay


@pytest.fixture
def model():
    X, y = make_moons(30, noise=0.3, random_state=0)
    return SVC(C=5.0, gamma=0.7).fit(X, y)


def words(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_unlearning_draws_margin_against_weight(model):
    ids = model.ids_[model.support_[:3]].tolist()
    display = TrajectoryDisplay.from_estimator(model, ids=ids)
    for sample, line in zip(ids, display.lines_, strict=True):
        alpha, g = unlearning_trajectory(model, sample).of(sample)
        assert_array_equal(line.get_xdata(), alpha)
        assert_array_equal(line.get_ydata(), g)
    assert words(display) == [
        *(f"id {sample}" for sample in ids),
        "leave-one-out margin", "linear response", "leave-one-out error below",
    ]  # fmt: skip
    assert len(model.ids_) == 30


def test_all_that_carry_weight_by_default_and_too_many_to_name(model):
    display = TrajectoryDisplay.from_estimator(model)
    assert len(display.lines_) == len(model.support_) > 10
    assert words(display) == ["leave-one-out margin", "leave-one-out error below"]


def test_one_class_has_no_error_line():
    X, _ = make_moons(20, noise=0.3, random_state=0)
    model = OneClassSVM(nu=0.3).fit(X)
    display = TrajectoryDisplay.from_estimator(model, ids=int(model.support_[0]))
    assert "leave-one-out error below" not in words(display)


@pytest.mark.parametrize("kind", ["alpha", "g"])
def test_a_report_is_drawn_by_breakpoint(model, kind):
    gone = model.ids_[model.support_[:2]].tolist()
    report = model.update([[0.5, 0.5]], [0], ids=[99], remove=gone, trace=True)
    display = TrajectoryDisplay.from_report(report, kind=kind)
    [path] = trajectories(report)
    assert sorted(display.ids) == sorted([*gone, 99])
    values = path.alpha if kind == "alpha" else path.g
    assert_array_equal(display.lines_[-1].get_ydata(), values[:, path.row_of(99)])
    styles = {(line.get_linestyle(), line.get_color()) for line in display.lines_}
    assert len(styles) == 3
    assert TrajectoryDisplay.from_report(report, ids=0, kind=kind).ids == [0]


def test_many_samples_are_told_apart_by_what_they_did():
    X, y = make_moons(30, noise=0.3, random_state=0)
    path = learning_trajectory(SVC(C=5.0), X, y, one_at_a_time=True)
    display = TrajectoryDisplay.from_trajectory(path)
    assert len(display.lines_) == 30 and words(display) == ["came"]
    display = TrajectoryDisplay.from_estimator(
        SVC(C=5.0).fit(X, y), ids=np.arange(12), kind="alpha", legend=False
    )
    assert {line.get_linestyle() for line in display.lines_} == {"--"}
    assert display.ax_.get_legend() is None


def test_bad_input_is_named(model):
    report = model.update(remove=[0], trace=True)
    with pytest.raises(ValueError, match="no trace; call update"):
        TrajectoryDisplay.from_report(model.forget([1]).last_update_)
    with pytest.raises(ValueError, match="kind='beta' must be one of"):
        TrajectoryDisplay.from_report(report, kind="beta")
    with pytest.raises(ValueError, match=r"0 trajectories \(machine=\(5, 6\)\)"):
        TrajectoryDisplay.from_report(report, machine=(5, 6))
    with pytest.raises(IdError, match="id=777 is not in this trajectory"):
        TrajectoryDisplay.from_report(report, ids=[777])
    with pytest.raises(IdError, match=r"\(777\) is not known"):
        TrajectoryDisplay.from_estimator(model, ids=[777])
    with pytest.raises(ValueError, match="ids=None: kind='alpha' needs"):
        TrajectoryDisplay.from_estimator(model, kind="alpha")
    with pytest.raises(ValueError, match="ids is empty"):
        TrajectoryDisplay.from_estimator(model, ids=[])
