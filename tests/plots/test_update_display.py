# SPDX-License-Identifier: BSD-3-Clause
"""The table of an update, from two states of a model and from the trace of the way between."""

import copy
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError

from adiabat import SVC
from adiabat.analysis import sets
from adiabat.plots import MarginDisplay, TrajectoryDisplay, UpdateDisplay


@pytest.fixture
def states():
    X, y = make_moons(40, noise=0.3, random_state=0)
    before = SVC(C=5.0, gamma=0.7).fit(X, y)
    after = copy.deepcopy(before)
    gone = after.ids_[after.support_[:4]].tolist()
    report = after.update(X[:3] + 0.2, 1 - y[:3], ids=[50, 51, 52], remove=gone, trace=True)
    return before, after, report


def test_counts_are_those_of_the_sets(states):
    before, after, _ = states
    display = UpdateDisplay.from_estimator(after, before)
    old = dict(zip(before.ids_.tolist(), sets(before), strict=True))
    new = dict(zip(after.ids_.tolist(), sets(after), strict=True))
    for (a, b), ids in display.moved().items():
        for sample in ids:
            assert (old.get(sample, "ABSENT"), new.get(sample, "ABSENT")) == (a, b)
    assert display.counts.sum() == 43
    assert display.counts[0].sum() == 3 and display.counts[:, 0].sum() == 4
    changed = sum(old.get(i, "ABSENT") != new.get(i, "ABSENT") for i in {*old, *new})
    assert display.ax_.get_title() == f"{changed} of 43 samples changed sets"
    stays = display.text_[1, 1].get_text()
    assert stays == f"{display.counts[1, 1]} stay"


def test_a_traced_report_gives_the_same_table(states):
    before, after, report = states
    table = UpdateDisplay.from_estimator(after, before).counts
    assert_array_equal(UpdateDisplay.from_report(report).counts, table)


def test_pairs_of_classes_and_long_ids():
    X, y = load_iris(return_X_y=True)
    names = [f"customer number {i}" for i in range(50)]
    model = SVC(C=1.0).fit(X[::3], y[::3], ids=names)
    before = copy.deepcopy(model)
    report = model.update(remove=names[20:26], trace=True)
    whole = UpdateDisplay.from_report(report)
    assert whole.counts[:, 0].sum() == 6
    pair = UpdateDisplay.from_report(report, machine=(0, 1))
    assert len(pair.ids) == 34
    assert UpdateDisplay.from_estimator(model, before).counts.sum() == 50
    texts = "".join(text.get_text() for text in whole.text_.ravel())
    assert "customer …" in texts and "customer number" not in texts


def test_bad_input_is_named(states):
    before, after, report = states
    with pytest.raises(ValueError, match="no trace; call update"):
        UpdateDisplay.from_report(before.last_update_)
    with pytest.raises(ValueError, match=r"no trajectory of machine=\(8, 9\)"):
        UpdateDisplay.from_report(report, machine=(8, 9))
    with pytest.raises(NotFittedError):
        UpdateDisplay.from_estimator(after, SVC())


def test_without_matplotlib_the_error_names_the_extra(states, monkeypatch):
    before, after, _ = states
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    draws = [
        lambda: MarginDisplay.from_estimator(after),
        lambda: TrajectoryDisplay.from_estimator(after, ids=[50]),
        lambda: UpdateDisplay.from_estimator(after, before),
        lambda: UpdateDisplay(ids=np.array([]), before=np.array([]), after=np.array([])).plot(),
    ]
    for draw in draws:
        with pytest.raises(ImportError, match=r"needs matplotlib.*adiabat\[plots\]"):
            draw()
