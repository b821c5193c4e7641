# SPDX-License-Identifier: BSD-3-Clause
"""C grows by pivots: the nodes are those of the path, and what went wrong is not kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from adiabat import SVC, SVR
from adiabat.engine import regularization, sweep
from adiabat.engine.tableau import Tableau


def models() -> dict[str, Any]:
    X, y = make_classification(120, 6, n_informative=4, flip_y=0.1, random_state=2)
    weight = np.where(np.arange(120) % 5 == 0, 0.5, 1.0)
    return {
        "SVC": SVC(gamma=0.3).fit(X, y, sample_weight=weight),
        "SVR": SVR(gamma=0.3, epsilon=0.2).fit(X, X[:, 0] + 0.3 * y, sample_weight=weight),
    }


def track_of(model: Any) -> regularization.Track:
    ((key, _),) = model._model.machines
    return regularization.Track(model._model.solver, key, 1.0, 0.05, 20.0)


@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_nodes_are_those_of_the_path(name: str, monkeypatch: Any) -> None:
    model = models()[name]
    by_pivots = track_of(model)
    monkeypatch.setattr(Tableau, "of", staticmethod(lambda *_: None))
    by_path = track_of(model)
    assert by_pivots.breakpoints == by_path.breakpoints > 50
    for C in np.geomspace(0.05, 20.0, 40):
        (u, b), (v, c) = by_pivots.weights(C), by_path.weights(C)
        np.testing.assert_allclose(u, v, atol=1e-9 * C)
        assert b == pytest.approx(c, abs=1e-9)


def test_a_tableau_that_wears_out_is_made_anew(monkeypatch: Any) -> None:
    model = models()["SVC"]
    expected = track_of(model)
    monkeypatch.setattr(sweep, "MOST_PIVOTS", 7)
    found = track_of(model)
    # one that falls on the end of a stage is none
    assert abs(found.breakpoints - expected.breakpoints) <= expected.breakpoints // 7
    for C in np.geomspace(0.05, 20.0, 10):
        np.testing.assert_allclose(found.weights(C)[0], expected.weights(C)[0], atol=1e-9 * C)


def test_what_the_judge_does_not_believe_goes_by_path(monkeypatch: Any) -> None:
    model = models()["SVC"]
    expected = track_of(model)
    answer = Tableau.answer
    monkeypatch.setattr(Tableau, "answer", lambda self, t: 1.001 * answer(self, t))
    paths = []
    by_path = regularization.Track._by_path
    monkeypatch.setattr(
        regularization.Track, "_by_path", lambda self, *a: (paths.append(a), by_path(self, *a))
    )
    found = track_of(model)
    assert paths and found.residual <= 1e-12
    for C in np.geomspace(0.05, 20.0, 10):
        np.testing.assert_allclose(found.weights(C)[0], expected.weights(C)[0], atol=1e-9 * C)
