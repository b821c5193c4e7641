# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out is what n refits give, by an independent solver and by `forget`."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.preprocessing import StandardScaler

from adiabat import SVC
from adiabat.engine.trial import Trial

from laws.compare import exact_state, hangs_on_a_digit
from oracles import batch_qp, problems


def known_case(n: int = 300) -> tuple[Any, Any]:
    X, y = make_classification(n, 10, n_informative=6, flip_y=0.05, class_sep=0.8, random_state=0)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("decisions", [True, False])
@pytest.mark.parametrize("C, errors", [(1.0, 41), (10.0, 49)])
def test_the_known_case(C: float, errors: int, decisions: bool) -> None:
    X, y = known_case()
    found = SVC(C=C, gamma=0.1).fit(X, y).leave_one_out(decisions=decisions, n_jobs=2)
    assert int(np.sum(~found.correct)) == errors
    assert found.error_rate == pytest.approx(errors / 300)
    assert (found.decision is None) == (not decisions)
    assert str(errors) in str(found)


# ---------------------------------------------------------------------------------------------
# Against refits


def refits(problem: problems.Problem, places: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """(f, what f may differ by, whether its sign is certain) at each sample, learned without it.

    Where b is not determined, or its determination hangs on a digit, f is not compared.
    """
    X, weight = problem.X, problem.sample_weight
    y = np.where(problem.y == problem.y.max(), 1.0, -1.0)
    K = problems.gram_of(problem.params, X, X)
    C = problem.params["C"]
    f, floor = np.full(len(y), np.nan), np.zeros(len(y))
    for i in places:
        rest = np.arange(len(y)) != i
        if len(np.unique(y[rest])) < 2:
            continue
        rows = batch_qp.svc_rows(y[rest], C, weight[rest])
        try:
            best = batch_qp.solve(K[np.ix_(rest, rest)], *rows)
        except ArithmeticError:
            continue
        if hangs_on_a_digit(K[np.ix_(rest, rest)], rows, best.u):
            continue
        f[i] = float(batch_qp.exact_product(K[i : i + 1, rest], best.u)[0]) + best.b
        floor[i] = 1e-7 * max(1.0, abs(f[i])) + 64.0 * best.kkt_violation
        floor[i] += 1e-13 * float(np.abs(K[i, rest]) @ np.abs(best.u))
    return f, floor, np.abs(f) > floor


@pytest.mark.parametrize("name", problems.FAMILIES)
def test_equals_refitting_on_degenerate_families(name: str) -> None:
    problem = problems.FAMILIES[name](np.random.default_rng(0))
    model = SVC(**problem.params).fit(problem.X, problem.y, sample_weight=problem.sample_weight)
    found = model.leave_one_out()
    places = np.random.default_rng(1).permutation(len(problem.y))[:25]
    f, floor, certain = refits(problem, places)
    known = np.isfinite(f)
    assert found.decision is not None
    off = np.abs(found.decision - f)[known]
    assert np.all(off <= floor[known]), (name, off.max())
    expected = np.where(f > 0.0, problem.y.max(), problem.y.min())
    assert np.all(found.prediction[certain] == expected[certain])
    verdicts = model.leave_one_out(decisions=False)
    assert np.all(verdicts.prediction[certain] == expected[certain])


@pytest.mark.parametrize("seed", range(4))
def test_equals_refitting_in_general_position(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + 0.7 * rng.standard_normal(60) > 0).astype(int)
    params = {"kernel": "rbf", "gamma": 0.5, "C": [0.3, 3.0, 30.0, 300.0][seed]}
    family = problems.FAMILIES["duplicates"](rng)
    problem = replace(family, X=X, y=y, sample_weight=rng.uniform(0.5, 2.0, 60), params=params)
    model = SVC(**params).fit(X, y, sample_weight=problem.sample_weight)
    f, _, _ = refits(problem, np.arange(60))
    found = model.leave_one_out(n_jobs=2)
    np.testing.assert_allclose(found.decision, f, atol=1e-7, rtol=0)
    for decisions in (True, False):
        again = model.leave_one_out(decisions=decisions)
        np.testing.assert_array_equal(again.prediction, (f > 0).astype(int))


# ---------------------------------------------------------------------------------------------
# Against forget


def by_forgetting(model: SVC, X: Any, y: Any, i: int) -> tuple[Any, Any, Any]:
    rest = SVC(**model.get_params()).fit(X, y)
    rest.forget([i])
    return rest.predict(X[i : i + 1])[0], rest.decision_function(X[i : i + 1])[0], rest.classes_


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_more_than_two_classes(shape: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = SVC(C=1.0, gamma=0.3, decision_function_shape=shape).fit(X, y)
    found = model.leave_one_out(n_jobs=2)
    assert found.decision is not None and found.decision.shape == (150, 3)
    for i in range(0, 150, 6):
        label, value, _ = by_forgetting(model, X, y, i)
        assert found.prediction[i] == label
        np.testing.assert_allclose(found.decision[i], value, atol=1e-9)


def test_the_last_of_a_class_takes_the_class_with_it() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = np.vstack([X[:100], X[130:131]]), np.concatenate([y[:100], [2]])
    found = SVC(gamma=0.3).fit(X, y).leave_one_out()
    label, value, classes = by_forgetting(SVC(gamma=0.3), X, y, 100)
    assert classes.tolist() == [0, 1] and found.prediction[100] == label
    assert found.decision is not None and found.decision[100, 2] == -np.inf
    assert (found.decision[100, 1] > found.decision[100, 0]) == (value > 0)
    alone = SVC(gamma=0.3).fit(X[50:], y[50:]).leave_one_out()
    assert alone.prediction[-1] == 1 and not alone.correct[-1] and alone.decision is not None
    assert alone.decision[-1] == 0.0


def test_one_class_and_no_weight() -> None:
    X = np.arange(6.0).reshape(3, 2)
    found = SVC().fit(X, [7, 7, 7]).leave_one_out()
    assert found.prediction.tolist() == [7, 7, 7] and found.n_removals == 0


# ---------------------------------------------------------------------------------------------
# The model is only read


def test_the_model_is_not_changed_and_ids_are_its_own() -> None:
    X, y = known_case()
    labels, ids = np.where(y > 0, "yes", "no"), [f"s{i}" for i in range(300)]
    model = SVC(C=5.0, gamma=0.1).fit(X, labels, ids=ids)
    model.forget(["s3", "s77"])
    before = exact_state(model, X)
    found = model.leave_one_out(n_jobs=2)
    assert exact_state(model, X) == before
    assert found.ids.tolist() == model.ids_.tolist()
    assert found.target.tolist() == [labels[int(i[1:])] for i in found.ids]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_any_backend_gives_the_same(backend: str) -> None:
    X, y = known_case(120)
    model = SVC(C=5.0, gamma=0.1).fit(X, y)
    alone, calls = model.leave_one_out(), list[tuple[int, int]]()
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = model.leave_one_out(progress=lambda done, total: calls.append((done, total)))
    np.testing.assert_allclose(found.decision, alone.decision, atol=1e-12)
    assert calls[-1] == (found.n_removals, found.n_removals)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_it_can_be_stopped(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = known_case(120)
    model = SVC(C=5.0, gamma=0.1).fit(X, y)
    before = exact_state(model, X)

    def progress(done: int, total: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.leave_one_out(n_jobs=n_jobs, progress=progress)
    assert exact_state(model, X) == before
    assert threading.active_count() < 50
    assert model.leave_one_out().n_removals > 10


def test_what_the_path_leaves_the_solver_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = known_case(120)
    model = SVC(C=5.0, gamma=0.1).fit(X, y)
    known = model.leave_one_out()
    monkeypatch.setattr(Trial, "_along_the_path", lambda *_: None)
    found = model.leave_one_out()
    np.testing.assert_allclose(found.decision, known.decision, atol=1e-9)
