# SPDX-License-Identifier: BSD-3-Clause
"""Weights of samples, on every estimator: given, revised, zero and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat import SVC

from laws.compare import ESTIMATORS, assert_is_optimum, assert_same, exact_state
from laws.laws import fit_on
from oracles.operations import Roster

RNG = np.random.default_rng(1)
N = 40
X = np.round(2.0 * RNG.standard_normal((N, 2))) / 2.0  # ties
SCORE = X[:, 0] + 0.3 * np.round(RNG.standard_normal(N))
TARGETS: dict[str, Any] = {
    "svc": (SCORE > 0).astype(np.int64),
    "svr": SCORE,
    "one_class": np.zeros(N),
    "svdd": np.zeros(N),
}
WEIGHTS = RNG.choice([0.0, 1 / 3, 0.5, 1.0, 2.0, 5.0], N)
PROBE = RNG.standard_normal((8, 2))
SOLVERS = ["auto", "path", "exchange"]
everywhere = pytest.mark.parametrize("solver", SOLVERS)
every_kind = pytest.mark.parametrize("kind", ESTIMATORS)


def roster(kind: str, weight: Any) -> Roster:
    return Roster(X, TARGETS[kind], weight, np.arange(N))


def learned(kind: str, solver: str, weight: Any) -> Any:
    return fit_on(ESTIMATORS[kind](gamma=0.5, solver=solver), roster(kind, weight))


@everywhere
@every_kind
def test_revised_weights_are_given_weights(kind: str, solver: str) -> None:
    model = learned(kind, solver, np.ones(N))
    model.revise(np.arange(N), sample_weight=WEIGHTS)
    assert model.last_update_.n_revised == N
    assert_same(model, learned(kind, solver, WEIGHTS), roster(kind, WEIGHTS), PROBE)
    assert_is_optimum(model, roster(kind, WEIGHTS), PROBE)
    for i in (3, 4, 5):
        model.revise(i, sample_weight=7.0)
        now = np.where((np.arange(N) >= 3) & (np.arange(N) <= i), 7.0, WEIGHTS)
        assert_is_optimum(model, roster(kind, now), PROBE)


@everywhere
@every_kind
def test_without_weight_a_sample_is_as_if_it_were_not_there(kind: str, solver: str) -> None:
    model = learned(kind, solver, np.ones(N))
    silent = np.arange(0, N, 3)
    model.revise(silent, sample_weight=0.0)
    rest = np.setdiff1d(np.arange(N), silent)
    assert not np.isin(model.support_, silent).any() and len(model.ids_) == N
    without = learned(kind, solver, np.ones(N))
    without.forget(silent)
    values = "predict" if kind == "svr" else "decision_function"
    np.testing.assert_allclose(getattr(model, values)(X), getattr(without, values)(X), atol=1e-7)
    model.forget(silent)
    held = Roster(X[rest], TARGETS[kind][rest], np.ones(len(rest)), rest)
    assert_same(model, without, held, PROBE)


@everywhere
@every_kind
def test_all_weight_may_go_and_come_back(kind: str, solver: str) -> None:
    model, untouched = learned(kind, solver, WEIGHTS), learned(kind, solver, WEIGHTS)
    model.revise(np.arange(N), sample_weight=np.zeros(N))
    assert len(model.support_) == 0 and model.certificate().ok
    assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()
    model.revise(np.arange(N), sample_weight=WEIGHTS)
    assert_same(model, untouched, roster(kind, WEIGHTS), PROBE)


@everywhere
@every_kind
def test_tiny_and_huge_weights(kind: str, solver: str) -> None:
    weight = np.where(np.arange(N) % 2, 1e-6, 1e4)
    model = learned(kind, solver, np.ones(N))
    model.revise(np.arange(N), sample_weight=weight)
    assert_is_optimum(model, roster(kind, weight), PROBE)
    model.revise(np.arange(N), sample_weight=1.0)
    assert_same(model, learned(kind, solver, np.ones(N)), roster(kind, np.ones(N)), PROBE)


@every_kind
def test_a_common_factor_is_a_factor_on_c(kind: str) -> None:
    """2w with C is w with 2C; with nu it scales the model, and changes no verdict."""
    double = learned(kind, "auto", 2.0 * WEIGHTS)
    if kind == "one_class":
        once = learned(kind, "auto", WEIGHTS)
        np.testing.assert_allclose(
            double.decision_function(PROBE), 2.0 * once.decision_function(PROBE), atol=1e-9
        )
        return
    other = learned(kind, "auto", WEIGHTS)
    other.retune(C=2.0 * other.C)
    values = "predict" if kind == "svr" else "decision_function"
    np.testing.assert_allclose(getattr(double, values)(X), getattr(other, values)(X), atol=1e-8)


@every_kind
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([-1.0, 1.0], "sample_weight"),
        ([np.nan, 1.0], "sample_weight contains NaN"),
        ([np.inf, 1.0], "sample_weight contains infinity"),
        ([1.0], "sample_weight"),
        ([[1.0, 1.0]], "[Ss]ample.weight"),
        (["a", "b"], "sample_weight|float"),
    ],
)
def test_weights_that_make_no_sense_change_nothing(kind: str, weight: Any, message: str) -> None:
    model = learned(kind, "auto", WEIGHTS)
    before = exact_state(model, PROBE)
    for act in (
        lambda: model.revise([0, 1], sample_weight=weight),
        lambda: model.partial_fit(X[:2], TARGETS[kind][:2], sample_weight=weight),
        lambda: model.fit(X[:2], TARGETS[kind][:2], sample_weight=weight),
    ):
        with pytest.raises(ValueError, match=message):
            act()
        assert exact_state(model, PROBE) == before


def test_a_class_without_weight_stays_a_class() -> None:
    y = TARGETS["svc"]
    model = SVC(gamma=0.5).fit(X, y)
    model.revise(np.flatnonzero(y == 1), sample_weight=0.0)
    assert model.classes_.tolist() == [0, 1] and model.certificate().ok
    assert_is_optimum(model, roster("svc", (y == 0).astype(float)), PROBE)
