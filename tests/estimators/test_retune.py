# SPDX-License-Identifier: BSD-3-Clause
"""retune and refresh: the model that a fit with the new parameters would give, or the old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from adiabat import SVC, SVDD, SVR, OneClassSVM

from laws.compare import ESTIMATORS, assert_is_optimum, assert_same, exact_state
from laws.laws import fit_on
from oracles.operations import Roster

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
SCORE = X[:, 0] - X[:, 1] + 0.3 * RNG.standard_normal(60)
TARGETS: dict[str, Any] = {
    "svc": (SCORE > 0.5).astype(np.int64) + (SCORE > -0.5),
    "svr": SCORE,
    "one_class": np.zeros(60),
    "svdd": np.zeros(60),
}
PROBE = RNG.standard_normal((10, 3))
SOLVERS = ["auto", "path", "exchange"]


def roster(kind: str, weight: Any = None) -> Roster:
    return Roster(X, TARGETS[kind], np.ones(60) if weight is None else weight, np.arange(60))


def assert_holds_the_same(one: Any, other: Any) -> None:
    """What was taken from data is the same: gamma, and the factors of classes."""
    held, expected = ({**model.certificate().held_fixed} for model in (one, other))
    factors, expected_factors = held.pop("class_weight", {}), expected.pop("class_weight", {})
    assert held == pytest.approx(expected, rel=1e-12)
    assert factors == pytest.approx(expected_factors, rel=1e-12)
    assert one.gamma_ == pytest.approx(other.gamma_, rel=1e-12)


KERNELS: list[dict[str, Any]] = [
    {"gamma": 2.0},
    {"gamma": "auto"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
    {"coef0": 2.0},
    {"kernel": "laplacian", "gamma": 0.3},
    {"kernel": "rbf", "gamma": "scale"},
]
JOURNEYS: dict[str, list[dict[str, Any]]] = {
    "svc": [
        {"C": 100.0},
        {"C": 1e-3},
        {"class_weight": {0: 3.0, 2: 0.1}},
        {"C": 5.0, "class_weight": "balanced"},
        {"class_weight": None, "C": 1.0},
    ],
    "svr": [
        {"C": 100.0},
        {"epsilon": 0.0},
        {"epsilon": 3.0},
        {"epsilon": 0.2, "C": 1e-3},
        {"C": 1.0},
        {"epsilon": 100.0},
        {"epsilon": 0.1},
    ],
    "one_class": [{"nu": 1.0}, {"nu": 0.1}, {"nu": 1e-3}, {"nu": 0.5}, {"nu": 0.505}],
    "svdd": [{"C": 1.0}, {"C": 1e6}, {"C": 1 / 60}, {"C": 1e-3}, {"C": 0.1}, {"C": 0.05}],
}


@pytest.mark.rotates(3)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_it_follows_the_optimum(kind: str, solver: str) -> None:
    """Through shapes and kernels, forth and back, always the model of a fresh fit."""
    held = roster(kind)
    model = fit_on(ESTIMATORS[kind](solver=solver), held)
    for params in [*JOURNEYS[kind], *KERNELS, *JOURNEYS[kind][:2]]:
        report = model.retune(**params)
        assert report is model.last_update_ and report.certificate.ok
        assert (report.n_added, report.n_removed, report.n_revised) == (0, 0, 0)
        for name, value in params.items():
            assert getattr(model, name) == value
        afresh = fit_on(ESTIMATORS[kind](**model.get_params()), held)
        assert model.gamma_ == pytest.approx(afresh.gamma_, rel=1e-12)
        assert_same(model, afresh, held, PROBE)
    assert_is_optimum(model, held, PROBE)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_it_goes_on_learning_under_the_new_parameters(kind: str) -> None:
    held = roster(kind)
    params = {**JOURNEYS[kind][1], "gamma": 0.7}
    model = fit_on(ESTIMATORS[kind](), held)
    model.retune(**params)
    model.forget(range(10))
    y = TARGETS[kind]
    model.update(X[:10], y[:10], ids=range(100, 110), remove=range(10, 15))
    order = np.r_[15:60, 0:10]
    now = Roster(X[order], y[order], np.ones(55), np.r_[15:60, 100:110])
    assert_same(model, fit_on(ESTIMATORS[kind](**params), now), now, PROBE)


def test_nothing_to_change_changes_nothing() -> None:
    model = SVC(C=3.0).fit(X, TARGETS["svc"])
    f, alpha = model.decision_function(PROBE), model.dual_coef_
    for params in ({}, {"C": 3.0}, {"kernel": "rbf"}, {"tol": 1e-8}, {"solver": "path"}):
        report = model.retune(**params)
        assert report.solver == "none" and report.rounds == report.breakpoints == 0
        np.testing.assert_array_equal(model.decision_function(PROBE), f)
        np.testing.assert_array_equal(model.dual_coef_, alpha)
    assert model.tol == 1e-8 and model.solver == "path"


def test_balanced_class_weights_are_taken_from_the_samples_now_there() -> None:
    y = TARGETS["svc"]
    model = SVC().fit(X, y)
    model.forget(np.flatnonzero(y == 0)[2:])
    rest = model.ids_
    model.retune(class_weight="balanced", gamma="scale")
    afresh = SVC(class_weight="balanced").fit(X[rest], y[rest], ids=rest)
    assert_holds_the_same(model, afresh)
    held = Roster(X[rest], y[rest], np.ones(len(rest)), rest)
    assert_same(model, afresh, held, PROBE)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "C below zero": ("svc", {"C": -1.0}, "'C' parameter"),
    "C zero": ("svr", {"C": 0.0}, "'C' parameter"),
    "C infinite": ("svdd", {"C": np.inf}, "C"),
    "C text": ("svdd", {"C": "1"}, "'C' parameter"),
    "epsilon below zero": ("svr", {"epsilon": -0.1}, "'epsilon' parameter"),
    "epsilon NaN": ("svr", {"epsilon": np.nan}, "epsilon"),
    "epsilon infinite": ("svr", {"epsilon": np.inf}, "epsilon"),
    "nu zero": ("one_class", {"nu": 0.0}, "'nu' parameter"),
    "nu above one": ("one_class", {"nu": 1.5}, "'nu' parameter"),
    "nu NaN": ("one_class", {"nu": np.nan}, "nu"),
    "good and bad": ("svr", {"C": 5.0, "epsilon": -1.0}, "'epsilon' parameter"),
    "unknown": ("svr", {"nu": 0.5}, "nu is not a parameter of SVR; retune takes C, cache_size"),
    "nothing like it": ("svc", {"depth": 3, "C": 5.0}, "depth is not a parameter of SVC"),
    "kernel unknown": ("one_class", {"kernel": "cubic"}, "'kernel' parameter"),
    "kernel indefinite": ("svc", {"kernel": "sigmoid"}, "sigmoid"),
    "kernel given": ("svdd", {"kernel": "precomputed"}, "kernel='precomputed'.*fit"),
    "gamma below zero": ("svr", {"gamma": -1.0}, "'gamma' parameter"),
    "chi2 with negatives": ("svc", {"kernel": "chi2"}, "chi2"),
    "degree fractional": ("svr", {"kernel": "poly", "degree": 1.5}, "degree=1.5"),
    "kernel of NaN": ("svr", {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "finite"),
    "class weight": ("svc", {"class_weight": {0: -1.0}}, "class_weight"),
    "class weight text": ("svc", {"class_weight": "heavy"}, "'class_weight'"),
    "tol zero": ("svdd", {"tol": 0.0}, "'tol' parameter"),
    "solver unknown": ("one_class", {"solver": "smo"}, "'solver' parameter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_change_changes_nothing(name: str) -> None:
    kind, params, message = REFUSED[name]
    held = roster(kind)
    model = fit_on(ESTIMATORS[kind](), held)
    before, attributes = exact_state(model, PROBE), dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.retune(**params)
    assert exact_state(model, PROBE) == before
    assert vars(model) == attributes
    model.retune(**JOURNEYS[kind][1])
    assert_same(model, fit_on(ESTIMATORS[kind](**JOURNEYS[kind][1]), held), held, PROBE)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_given_kernel_has_nothing_to_retune_but_shapes(kind: str) -> None:
    K = X @ X.T
    model = ESTIMATORS[kind](kernel="precomputed").fit(K, TARGETS[kind])
    state = model.dual_coef_.tolist()
    for params in ({"gamma": 0.5}, {"kernel": "linear"}, {"degree": 2}, {"coef0": 1.0}):
        with pytest.raises(ValueError, match=r"precomputed.*call fit"):
            model.retune(**params)
        assert model.dual_coef_.tolist() == state
    for params in JOURNEYS[kind]:
        model.retune(**params)
    afresh = fit_on(ESTIMATORS[kind](**{**model.get_params(), "kernel": "linear"}), roster(kind))
    for one, other in ((model.retune(), afresh.retune()), (model.refresh(), afresh.refresh())):
        assert one.certificate.ok and other.certificate.ok
    np.testing.assert_allclose(
        model.dual_coef_ @ X[model.support_], afresh.dual_coef_ @ X[afresh.support_], atol=1e-7
    )


@pytest.mark.parametrize("call", [lambda m: m.retune(C=1.0), lambda m: m.refresh()])
def test_an_unfitted_model_has_nothing_to_retune(call: Callable[[Any], Any]) -> None:
    for model in (SVC(), SVR(), SVDD(), OneClassSVM()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(model)
        assert not hasattr(model, "ids_")


def test_parameters_set_behind_its_back_are_refused_with_the_remedy() -> None:
    model = SVR().fit(X, SCORE)
    before = exact_state(model, PROBE)
    model.set_params(epsilon=0.5)
    for act in (lambda: model.retune(C=3.0), model.refresh, lambda: model.forget([0])):
        with pytest.raises(ValueError, match=r"epsilon=0.5 was 0.1.*retune\(epsilon=0.5\)"):
            act()
    model.set_params(epsilon=0.1)
    assert exact_state(model, PROBE) == before
    assert model.retune(epsilon=0.5).certificate.ok


# -- refresh ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_refreshed_it_is_a_fit_on_what_is_left(kind: str, solver: str) -> None:
    """Nothing of an outlier is left: neither in gamma nor in balanced class weights."""
    params = {"class_weight": "balanced"} if kind == "svc" else {}
    wild = np.vstack([X, [[500.0, 0.0, 0.0], [0.0, -300.0, 0.0]]])
    y = np.concatenate([TARGETS[kind], TARGETS[kind][:2]])
    model = ESTIMATORS[kind](solver=solver, **params).fit(wild, y)
    spoiled = model.gamma_
    model.forget([60, 61])
    assert model.gamma_ == spoiled  # held
    report = model.refresh()
    assert report is model.last_update_ and report.certificate.ok
    afresh = fit_on(ESTIMATORS[kind](solver=solver, **params), roster(kind))
    assert model.gamma_ > 10.0 * spoiled
    assert_holds_the_same(model, afresh)
    assert_same(model, afresh, roster(kind), PROBE)
    assert model.refresh().solver == "none"


def test_refreshed_weights_of_samples_count() -> None:
    weight = RNG.integers(0, 4, 60).astype(float)
    model = SVC(class_weight="balanced").fit(X, TARGETS["svc"])
    model.revise(range(60), sample_weight=weight)
    model.refresh()
    afresh = SVC(class_weight="balanced").fit(X, TARGETS["svc"], sample_weight=weight)
    assert_holds_the_same(model, afresh)
    assert_same(model, afresh, roster("svc", weight), PROBE)
