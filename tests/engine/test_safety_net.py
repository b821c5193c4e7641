# SPDX-License-Identifier: BSD-3-Clause
"""What happens when rounds in blocks lead nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from adiabat import SVC, NotOptimalError
from adiabat.engine.exchange import Exchange, Stuck
from adiabat.engine.path import Path
from adiabat.engine.solver import ANEW, Solver

from laws.soak import soak
from laws.streams import with_third_class
from oracles.problems import FAMILIES

X, y = make_classification(80, 4, random_state=0)


def test_rounds_without_a_margin_end_in_single_file() -> None:
    """Balance, pairs, a face that drops every row, balance: this stream once did not end."""
    problem = with_third_class(FAMILIES["large_offset"](np.random.default_rng(300)))
    assert soak("large_offset", problem, "exchange", 300, 20, 5).faults == []


def test_the_path_finishes_what_exchange_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exchange that gives up at once is followed by the path, from the state before."""
    model = SVC(C=3.0, gamma=0.3).fit(X[:60], y[:60])
    expected = SVC(C=3.0, gamma=0.3).fit(X[2:], y[2:]).decision_function(X)
    solve, calls = Exchange.solve, []

    def stuck_once(self: Exchange, *turn: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise Stuck
        solve(self, *turn)

    monkeypatch.setattr(Exchange, "solve", stuck_once)
    report = model.update(X[60:], y[60:], remove=[0, 1])
    assert report.fallbacks >= 1
    assert report.breakpoints > 0
    assert report.certificate.ok
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)


def test_exchange_finishes_what_the_path_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that leads astray is left, and exchange starts from the state before."""
    model = SVC(C=3.0, gamma=0.3, solver="path").fit(X[:60], y[:60])
    expected = SVC(C=3.0, gamma=0.3).fit(X[2:], y[2:]).decision_function(X)
    solve, calls = Exchange.solve, []

    def astray(self: Path) -> None:
        self.machine.u[:] = 0.0
        self.machine.b = 1e6

    def stuck_once(self: Exchange, *turn: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise Stuck
        solve(self, *turn)

    monkeypatch.setattr(Path, "follow", astray)
    monkeypatch.setattr(Exchange, "solve", stuck_once)
    report = model.update(X[60:], y[60:], remove=[0, 1])
    assert report.fallbacks >= 1 and report.rounds > 0 and report.certificate.ok
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)


def test_a_fit_finishes_what_no_update_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither way leads on from the weights as they were, it starts from weights of 0."""
    model = SVC(C=3.0, gamma=0.3).fit(X[:60], y[:60])
    expected = SVC(C=3.0, gamma=0.3).fit(X[2:], y[2:]).decision_function(X)
    solve = Solver._solve

    def not_from_here(self: Solver, changes: Any, method: str, *rest: Any) -> None:
        if method != ANEW:
            raise NotOptimalError("no way on")
        solve(self, changes, method, *rest)

    monkeypatch.setattr(Solver, "_solve", not_from_here)
    report = model.update(X[60:], y[60:], remove=[0, 1])
    assert report.fallbacks >= 2 and report.certificate.ok
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)


def test_if_nothing_helps_it_is_said_and_nothing_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No optimum within the bound on work: an error that names the sample and the remedy."""
    names = [f"P{number}" for number in range(80)]
    model = SVC(C=3.0, gamma=0.3).fit(X[:60], y[:60], ids=names[:60])
    before = model.decision_function(X)

    def give_up(self: Exchange, *turn: Any) -> None:
        raise Stuck

    monkeypatch.setattr(Exchange, "solve", give_up)
    monkeypatch.setattr(Path, "follow", lambda self: None)
    sentence = (
        r"cannot be reached in double precision: the sample 'P\d+' ends with residual \S+, and "
        r"\S+ is allowed; the model is as it was before\. Scale the features, .* or raise tol"
    )
    with pytest.raises(NotOptimalError, match=sentence):
        model.update(X[60:], y[60:], ids=names[60:], remove=names[:2])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.forget(["P0"]).last_update_.certificate.ok
