# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories: at every breakpoint the optimum of a problem on the way, under the right names."""

import copy
import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError

from adiabat import SVC, SVR, IdError, IncrementalPipeline, OneClassSVM
from adiabat.analysis import (
    join_trajectories,
    learning_trajectory,
    sets,
    trajectories,
    unlearning_trajectory,
)

TOL = 1e-7


def moons(n=40, seed=0):
    X, y = make_moons(n, noise=0.3, random_state=seed)
    return X, y


def kernel(X, gamma):
    return np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))


def assert_on_the_way(path, X_of, y_of, gamma):
    """Every step is consistent, and all rows but the driven ones meet CP01 (2)."""
    X = np.array([X_of[sample] for sample in path.ids])
    y = np.array([y_of[sample] for sample in path.ids])
    K = kernel(X, gamma)
    driven = path.entering | path.leaving
    for alpha, g, found, bias in zip(path.alpha, path.g, path.sets, path.bias, strict=True):
        assert abs(y @ alpha) < TOL
        assert_allclose(g, y * (K @ (y * alpha) + bias) - 1.0, atol=TOL)
        for kind, low, high in (
            ("MARGIN", -TOL, TOL), ("RESERVE", -TOL, np.inf), ("ERROR", -np.inf, TOL)
        ):  # fmt: skip
            rest = (found == kind) & ~driven
            assert np.all((g[rest] >= low) & (g[rest] <= high)), kind


@pytest.fixture
def fitted():
    X, y = moons()
    return SVC(C=5.0, gamma=0.7).fit(X, y), X, y


def test_every_breakpoint_is_an_optimum_on_the_way(fitted):
    model, X, y = fitted
    X_new, y_new = moons(8, seed=1)
    X_of = dict(enumerate(np.concatenate([X, X_new])))
    y_of = dict(enumerate(2 * np.concatenate([y, y_new]) - 1))
    gone = model.ids_[model.support_[:5]].tolist()
    [path] = trajectories(model.update(X_new, y_new, remove=gone, trace=True))
    assert sorted(path.ids[path.leaving].tolist()) == sorted(gone)
    assert path.ids[path.entering].tolist() == list(range(40, 48))
    assert path.events[0] == "start" and len(path) > 5
    assert np.all(path.alpha[0, path.entering] == 0.0)
    assert_allclose(path.alpha[-1, path.leaving], 0.0, atol=1e-12)
    assert_on_the_way(path, X_of, y_of, 0.7)


def test_unlearning_ends_at_the_margin_of_a_model_that_never_saw_the_sample(fitted):
    model, X, y = fitted
    values = model.decision_function(X)
    for sample in model.ids_[model.support_].tolist():
        alpha, g = unlearning_trajectory(model, sample).of(sample)
        rest = np.arange(len(X)) != sample
        refit = SVC(C=5.0, gamma=0.7).fit(X[rest], y[rest])
        expected = (2 * y[sample] - 1) * refit.decision_function(X[[sample]])[0] - 1.0
        assert alpha[0] > 0.0 and alpha[-1] == 0.0
        assert np.all(np.diff(alpha) <= 0.0) and np.all(np.diff(g) <= TOL)
        assert_allclose(g[-1], expected, atol=TOL)
    assert_array_equal(model.decision_function(X), values)
    assert len(model.ids_) == len(X)


def test_learning_one_at_a_time_ends_at_the_model_of_all():
    X, y = moons(24)
    model = SVC(C=5.0, gamma=0.7)
    path = learning_trajectory(model, X, y, one_at_a_time=True)
    assert not hasattr(model, "ids_")
    fitted = SVC(C=5.0, gamma=0.7).fit(X, y)
    signed = path.alpha[-1] * (2 * y[path.ids.astype(int)] - 1)
    values = kernel(X, 0.7)[:, path.ids.astype(int)] @ signed + path.bias[-1]
    assert_allclose(values, fitted.decision_function(X), atol=TOL)
    first = int(np.argmax(path.sets[:, path.row_of(20)] != "ABSENT"))
    assert np.isnan(path.alpha[first - 1, path.row_of(20)]) and path.alpha[first, -1] != 0.0


def test_the_sets_at_the_end_are_those_of_the_model(fitted):
    model, _, _ = fitted
    [path] = trajectories(model.update(remove=[int(model.ids_[model.support_[0]])], trace=True))
    order = np.argsort(path.ids[~path.leaving].astype(int))
    at_end = path.sets[-1, ~path.leaving][order]
    assert_array_equal(at_end, sets(model)[np.argsort(model.ids_)])
    assert path.n_margin[-1] == np.sum(sets(model) == "MARGIN")


def way(model, X, y, gamma, path, C_of):
    """Every step of a path on which C moves: CP01 (2) with the C that its ERROR rows are at."""
    assert_on_the_way(path, dict(enumerate(X)), dict(enumerate(2 * y - 1)), gamma)
    for alpha, found, C in zip(path.alpha, path.sets, C_of, strict=True):
        assert_allclose(alpha[found == "ERROR"], C, atol=TOL)
        assert np.all(alpha[found == "RESERVE"] == 0.0)
        assert np.all((alpha > -TOL) & (alpha < C + TOL))
    order = np.argsort(path.ids[~path.leaving].astype(int))
    assert_array_equal(path.sets[-1, ~path.leaving][order], sets(model))


@pytest.mark.parametrize("C", [0.3, 60.0])
def test_retuning_follows_c_from_one_optimum_to_the_next(fitted, C):
    model, X, y = fitted
    report = model.retune(C=C, trace=True)
    [path] = trajectories(report)
    assert report.solver == "path" and len(path) > 5 and not path.entering.any()
    at = [np.max(alpha[found == "ERROR"], initial=0.0)
          for alpha, found in zip(path.alpha, path.sets, strict=True)]  # fmt: skip
    assert at[0] == 5.0 and at[-1] == C
    assert np.all(np.diff(at) * np.sign(C - 5.0) >= -TOL)
    way(model, X, y, 0.7, path, at)
    refit = SVC(C=C, gamma=0.7).fit(X, y)
    assert_allclose(model.decision_function(X), refit.decision_function(X), atol=TOL)
    assert model.retune(C=C, trace=True).trace == [] and model.retune(C=1.0).trace is None


def test_from_kernel_to_kernel_all_is_learned_anew(fitted):
    model, X, y = fitted
    [path] = trajectories(model.retune(gamma=0.2, trace=True))
    assert path.entering.all() and np.all(path.alpha[0] == 0.0)
    assert_on_the_way(path, dict(enumerate(X)), dict(enumerate(2 * y - 1)), 0.2)
    order = np.argsort(path.ids.astype(int))
    assert_array_equal(path.sets[-1][order], sets(model))


def test_revising_labels_features_and_weights_is_traced(fitted):
    model, X, y = fitted
    model.revise([3, 7], y=1 - y[[3, 7]], trace=True)
    y = np.where(np.isin(np.arange(len(y)), [3, 7]), 1 - y, y)
    [path] = trajectories(model.last_update_)
    assert path.ids[path.leaving].tolist() == path.ids[path.entering].tolist() == [3, 7]
    model.revise([5], X=X[[5]] + 0.1, trace=True)
    X = X + 0.1 * (np.arange(len(X)) == 5)[:, None]
    [path] = trajectories(model.last_update_)
    assert path.ids[path.leaving].tolist() == path.ids[path.entering].tolist() == [5]
    weighty = model.ids_[sets(model) == "ERROR"][:2]
    model.revise(weighty, sample_weight=[0.2, 3.0], trace=True)
    [path] = trajectories(model.last_update_)
    assert_on_the_way(path, dict(enumerate(X)), dict(enumerate(2 * y - 1)), 0.7)
    order = np.argsort(path.ids.astype(int))
    assert_array_equal(path.sets[-1][order], sets(model))
    weights = np.abs(model._model.weights(np.arange(len(X))))[:, 0]
    assert_allclose(path.alpha[-1][order], weights, atol=TOL)
    assert path.alpha[0].max() == 5.0 < weights.max() <= 15.0
    assert model.revise([1], y=[y[1]]).last_update_.trace is None


@pytest.mark.parametrize("mode", ["exact", "held"])
def test_a_pipeline_is_traced_as_well(mode):
    X, y = moons()
    model = IncrementalPipeline(SVC(C=5.0), mode=mode).fit(X, y)
    for act in (
        lambda: model.update(X[:2] + 0.1, y[:2], remove=[3], trace=True),
        lambda: model.retune(C=1.0, trace=True),
        lambda: model.revise([4], y=[1 - y[4]], trace=True),
        lambda: model.revise([6], X=[[9.0, 9.0]], trace=True),
    ):
        act()
        [path] = trajectories(model.last_update_)
        alpha = np.abs(model.estimator_._model.weights(np.arange(len(model.ids_))))[:, 0]
        for sample, value in zip(model.ids_, alpha, strict=True):
            rows = (path.ids == sample) & ~path.leaving
            assert_allclose(path.alpha[-1, rows], value, atol=TOL)


def test_names_are_those_that_were_given():
    X, y = moons(20)
    names = [f"p{i}" for i in range(20)]
    model = SVC(C=5.0).fit(X, y, ids=names)
    report = model.update(X[:2] + 0.1, y[:2], ids=["n0", "n1"], remove=["p3"], trace=True)
    [path] = trajectories(pickle.loads(pickle.dumps(report)))
    assert path.ids.tolist() == [*names, "n0", "n1"]
    assert path.machine == (0, 1)
    assert all(name in path.ids for name in path.met if name is not None)
    with pytest.raises(IdError, match="id='q' is not in this trajectory"):
        path.of("q")


def test_one_trajectory_for_each_pair_that_moves():
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], np.array(["a", "b", "c"])[y[::5]]
    model = SVC(C=1.0).fit(X, y)
    gone = int(model.support_[-1])
    paths = trajectories(copy.deepcopy(model).update(remove=[gone], trace=True))
    assert [path.machine for path in paths] == [("a", "c"), ("b", "c")]
    assert unlearning_trajectory(model, gone, machine=("c", "b")).machine == ("b", "c")
    with pytest.raises(ValueError, match=r"2 machines move.*machine="):
        unlearning_trajectory(model, gone)
    with pytest.raises(ValueError, match=r"\('a', 'b'\) does not move"):
        unlearning_trajectory(model, gone, machine=("a", "b"))


def test_a_regression_has_two_rows_a_sample():
    x = np.linspace(0.0, 3.0, 15)[:, None]
    model = SVR(C=2.0, epsilon=0.05, gamma=1.0).fit(x, np.sin(2.0 * x[:, 0]))
    gone = int(model.support_[0])
    path = unlearning_trajectory(model, gone)
    assert np.sum(path.ids == gone) == 2
    alpha, _ = path.of(gone)
    assert alpha[0] > 0.0 and alpha[-1] == 0.0
    assert np.all(path.alpha >= 0.0)


def test_one_class_and_samples_without_weight_have_trajectories():
    X, y = moons(20)
    gone = OneClassSVM(nu=0.3, gamma=1.0).fit(X)
    assert unlearning_trajectory(gone, [0, 1]).alpha[-1, :2].tolist() == [0.0, 0.0]
    model = SVC(C=5.0).fit(X, y, sample_weight=[0.0] + [1.0] * 19)
    _, g = unlearning_trajectory(model, 0).of(0)
    assert_allclose(g[0], (2 * y[0] - 1) * model.decision_function(X[:1])[0] - 1.0)


def test_duplicates_and_contradictions_have_trajectories():
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    y = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0])
    model = SVC(kernel="linear", C=1.0).fit(X, y)
    for sample in range(12):
        path = unlearning_trajectory(model, sample)
        refit = SVC(kernel="linear", C=1.0).fit(np.delete(X, sample, 0), np.delete(y, sample))
        expected = (2 * y[sample] - 1) * refit.decision_function(X[[sample]])[0] - 1.0
        if np.any((path.sets[-1] == "MARGIN") & ~path.leaving):  # else b has an interval
            assert_allclose(path.of(sample)[1][-1], expected, atol=TOL)


def test_frames_with_and_without_pandas(fitted, monkeypatch):
    model, _, _ = fitted
    path = unlearning_trajectory(model, int(model.support_[0]))
    frame = path.to_frame()
    assert list(frame.columns) == ["step", "event", "id", "row", "alpha", "g", "set"]
    assert len(frame) == path.alpha.size
    monkeypatch.setitem(sys.modules, "pandas", None)
    plain = path.to_frame()
    assert isinstance(plain, dict)
    assert_array_equal(plain["alpha"], frame["alpha"])


def test_bad_input_is_named(fitted):
    model, X, _ = fitted
    with pytest.raises(ValueError, match="no trace; call update"):
        trajectories(model.last_update_)
    with pytest.raises(IdError, match=r"\(999\) is not known"):
        unlearning_trajectory(model, 999)
    with pytest.raises(NotFittedError):
        unlearning_trajectory(SVC(), 0)
    with pytest.raises(TypeError, match="LinearRegression has no margin, error"):
        from sklearn.linear_model import LinearRegression

        unlearning_trajectory(LinearRegression(), 0)
    with pytest.raises(ValueError, match="no path was followed"):
        unlearning_trajectory(SVC().fit(X[:3], [0, 0, 1]), 2)
    with pytest.raises(ValueError, match="nothing to join"):
        join_trajectories([])
    with pytest.raises(ValueError, match=r"machine=\(0, 7\) is not there; there are \[\(0, 1\)\]"):
        sets(model, machine=(0, 7))
    with pytest.raises(ValueError, match="one class, 0"):
        sets(SVC().partial_fit(X[:2], [0, 0]), machine=(0, 1))
