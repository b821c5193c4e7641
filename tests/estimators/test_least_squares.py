# SPDX-License-Identifier: BSD-3-Clause
"""The laws of LSSVC and LSSVR: sequences of updates against the closed form on what remains."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import adiabat
from adiabat import LSSVC, LSSVR, NotLearnedError
from adiabat.feature_maps import Nystroem, Polynomial, RandomFourier

from oracles.least_squares import closed_form, indicators, relative

MAPS = {
    "none": None,
    "poly": Polynomial(degree=2),
    "fourier": RandomFourier(n_components=6, gamma=0.2, seed=3),
    "nystroem": Nystroem(landmarks=np.eye(3), gamma=0.3),
}


class Pool:
    """Rows known by number, and which of them a model holds."""

    def __init__(self, rng: np.random.Generator, n: int, classes: int, whole: bool = False) -> None:
        self.rng = rng
        self.X = rng.integers(-3, 4, (n, 3)).astype(float) if whole else rng.normal(size=(n, 3))
        self.y = rng.integers(0, classes, n)
        self.values = self.X @ rng.normal(size=3) + rng.normal(size=n)
        self.s = rng.choice([0.0, 0.5, 1.0, 2.5], n)
        self.held: list[int] = []

    def target(self, kind: type) -> np.ndarray:
        return self.y if kind is LSSVC else self.values

    def step(self, model: Any, weighted: bool) -> None:
        """Some rows in, some out, by any of the verbs."""
        kind, rng = type(model), self.rng
        t = self.target(kind)
        free = np.setdiff1d(np.arange(len(self.X)), self.held)
        come = rng.choice(free, min(len(free), rng.integers(1, 6)), replace=False)
        go = rng.choice(self.held, min(len(self.held) - 4, rng.integers(1, 6)), replace=False)

        def weights(rows: np.ndarray) -> Any:
            return self.s[rows] if weighted else None

        verb = rng.integers(0, 4)
        if verb == 0:
            model.partial_fit(self.X[come], t[come], sample_weight=weights(come))
            go = go[:0]
        elif verb == 1:
            model.forget(self.X[go], t[go], weights(go))
            come = come[:0]
        elif verb == 2:
            k = min(len(come), len(go))
            come, go = come[:k], go[:k]
            model.revise(
                self.X[go], t[go], self.X[come], t[come],
                sample_weight_old=weights(go), sample_weight_new=weights(come),
            )  # fmt: skip
        else:
            model.update(
                self.X[come], t[come], sample_weight=weights(come),
                remove_X=self.X[go], remove_y=t[go], remove_sample_weight=weights(go),
            )  # fmt: skip
        self.held = [*(row for row in self.held if row not in set(go.tolist())), *come.tolist()]


def assert_closed_form(model: Any, pool: Pool, weighted: bool, tol: float = 1e-11) -> None:
    rows = np.array(pool.held)
    phi = pool.X[rows] if model.feature_map is None else model._map.transform(pool.X[rows])
    t = pool.target(type(model))[rows]
    targets = indicators(t, np.unique(t)) if isinstance(model, LSSVC) else t[:, None]
    truth = closed_form(
        phi, targets, model.rho, model.fit_intercept, pool.s[rows] if weighted else None
    )
    found = model.coef_.reshape(targets.shape[1], -1).T
    if model.fit_intercept:
        found = np.vstack([found, np.atleast_1d(model.intercept_)])
    assert relative(found, truth) < tol
    assert model.certificate().ok and model.last_update_.certificate.ok
    assert model.n_samples_ == len(rows)


def started(kind: type, pool: Pool, weighted: bool, first: int = 12, **params: Any) -> Any:
    pool.held = list(range(first))
    pool.s[:2] = 1.0
    pool.y[:2] = [0, 1]
    t = pool.target(kind)[:first]
    return kind(**params).fit(pool.X[:first], t, pool.s[:first] if weighted else None)


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("feature_map", MAPS)
def test_any_sequence_of_updates_is_the_closed_form(kind, fit_intercept, weighted, feature_map):
    pool = Pool(np.random.default_rng(1), 40, 3)
    model = started(
        kind, pool, weighted, rho=0.3, fit_intercept=fit_intercept, feature_map=MAPS[feature_map]
    )
    for _ in range(12):
        pool.step(model, weighted)
    assert_closed_form(model, pool, weighted)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(2, 4),
    rho=st.sampled_from([1e-8, 1e-3, 1.0, 1e4]),
    kind=st.sampled_from([LSSVC, LSSVR]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
    whole=st.booleans(),
)
def test_whatever_hypothesis_finds(seed, classes, rho, kind, fit_intercept, weighted, whole):
    pool = Pool(np.random.default_rng(seed), 30, classes, whole)
    model = started(kind, pool, weighted, rho=rho, fit_intercept=fit_intercept)
    for _ in range(8):
        pool.step(model, weighted)
    rows = np.array(pool.held)
    if len(np.unique(pool.y[rows])) > 1 and (not weighted or pool.s[rows].any()):
        assert_closed_form(model, pool, weighted)


def test_classes_come_and_go():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)), np.repeat(["b", "a", "c"], 10)
    model = LSSVC().fit(X[:10], y[:10])
    assert model.classes_.tolist() == ["b"] and set(model.predict(X)) == {"b"}
    assert model.decision_function(X).shape == (30, 1)
    model.partial_fit(X[10:20], y[10:20])
    assert model.decision_function(X).shape == (30,)
    model.partial_fit(X[20:], y[20:])
    assert model.classes_.tolist() == ["a", "b", "c"]
    truth = closed_form(X, indicators(y, ["a", "b", "c"]), 1.0, True)
    assert relative(model.coef_.T, truth[:-1]) < 1e-13
    model.forget(X[:10], y[:10])
    assert model.classes_.tolist() == ["a", "c"] and model.coef_.shape == (1, 3)
    truth = closed_form(X[10:], indicators(y[10:], ["a", "c"]), 1.0, True)
    assert relative(model.coef_.T, truth[:-1]) < 1e-13
    model.forget(X[10:], y[10:])
    with pytest.raises(AttributeError, match="call fit"):
        _ = model.coef_
    model.partial_fit(X[:20], y[:20])
    assert relative(model.coef_, LSSVC().fit(X[:20], y[:20]).coef_) < 1e-14


def test_several_values_for_each_row():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    model = LSSVR(rho=0.2).fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:]).forget(X[:5], Y[:5])
    truth = closed_form(X[5:], Y[5:], 0.2, True)
    assert relative(model.coef_.T, truth[:-1]) < 1e-13
    assert model.predict(X).shape == (30, 2)
    with pytest.raises(ValueError, match="2 values for each row"):
        model.partial_fit(X, Y[:, 0])


def test_adding_then_forgetting_restores_every_digit():
    pool = Pool(np.random.default_rng(4), 200, 3)
    model = LSSVC(rho=0.1).fit(pool.X[:100], pool.y[:100])
    before = model.coef_.copy()
    model.partial_fit(pool.X[100:], pool.y[100:])
    for row in range(100, 150):
        model.forget(pool.X[[row]], pool.y[[row]])
    model.forget(pool.X[150:], pool.y[150:])
    assert relative(model.coef_, before) < 1e-15


def test_order_and_batching_do_not_matter():
    pool = Pool(np.random.default_rng(5), 60, 3)
    order = pool.rng.permutation(60)
    one = LSSVC().fit(pool.X, pool.y)
    other = LSSVC()
    for part in np.array_split(order, 7):
        other.partial_fit(pool.X[part], pool.y[part])
    assert other.classes_.tolist() == one.classes_.tolist()
    assert relative(other.coef_, one.coef_) < 1e-15


def test_a_weight_is_a_repetition_and_no_weight_is_absence():
    pool = Pool(np.random.default_rng(6), 30, 2)
    times = pool.rng.integers(0, 3, 30)
    times[:4] = 1
    weighted = LSSVR(rho=0.5).fit(pool.X, pool.values, sample_weight=times)
    repeated = np.repeat(np.arange(30), times)
    plain = LSSVR(rho=0.5).fit(pool.X[repeated], pool.values[repeated])
    assert relative(weighted.coef_, plain.coef_) < 1e-14


def test_sparse_rows_are_dense_rows():
    pool = Pool(np.random.default_rng(7), 50, 3, whole=True)
    dense = LSSVC().fit(pool.X, pool.y).forget(pool.X[:5], pool.y[:5])
    sparse = LSSVC().fit(sp.csr_array(pool.X), pool.y).forget(sp.csr_array(pool.X[:5]), pool.y[:5])
    assert np.array_equal(dense.coef_, sparse.coef_)


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_pickle_save_and_load_continue_identically(kind, feature_map, tmp_path):
    pool = Pool(np.random.default_rng(8), 40, 3)
    model = started(kind, pool, False, feature_map=MAPS[feature_map])
    model.save(tmp_path / "m.adiabat")
    twins = [adiabat.load(tmp_path / "m.adiabat"), pickle.loads(pickle.dumps(model))]
    t = pool.target(kind)
    model.update(pool.X[20:30], t[20:30], remove_X=pool.X[:4], remove_y=t[:4])
    for twin in twins:
        assert twin.get_params().keys() == model.get_params().keys()
        twin.update(pool.X[20:30], t[20:30], remove_X=pool.X[:4], remove_y=t[:4])
        assert relative(twin.coef_, model.coef_) < 1e-14
        assert str(twin.last_update_.certificate.held_fixed) == str(
            model.last_update_.certificate.held_fixed
        )


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_no_training_row_is_in_the_file_or_the_pickle(kind, tmp_path):
    pool = Pool(np.random.default_rng(9), 60, 3)
    model = started(kind, pool, False, first=50)
    model.forget(pool.X[:5], pool.target(kind)[:5])
    model.save(tmp_path / "m.adiabat")
    for content in ((tmp_path / "m.adiabat").read_bytes(), pickle.dumps(model)):
        for row in pool.X[:50]:
            # neither the row nor any of its numbers, in any byte order
            assert row.tobytes() not in content
            for number in row:
                assert np.float64(number).tobytes() not in content
                assert np.float64(number).astype(">f8").tobytes() not in content


def test_a_file_of_another_or_of_altered_content_is_refused(tmp_path):
    pool = Pool(np.random.default_rng(10), 20, 2)
    model = started(LSSVC, pool, False)
    model.save(tmp_path / "m.adiabat")
    manifest, arrays = adiabat.archive.read_archive(tmp_path / "m.adiabat")
    arrays["solution"] = arrays["solution"] * 1.001
    adiabat.archive.write_archive(tmp_path / "m.adiabat", manifest, arrays)
    with pytest.raises(adiabat.ModelFileError, match="not the solution"):
        adiabat.load(tmp_path / "m.adiabat")


def test_the_landmarks_are_named_as_data_that_stays():
    pool = Pool(np.random.default_rng(11), 20, 2)
    model = LSSVC(feature_map=MAPS["nystroem"]).fit(pool.X, pool.y)
    assert "3 rows of data" in model.certificate().held_fixed["landmarks"]


def test_rows_known_roughly_are_unlearned_roughly_and_the_certificate_says_so():
    pool = Pool(np.random.default_rng(12), 100, 2)
    exact = LSSVR().fit(pool.X[1:], pool.values[1:])
    model = LSSVR().fit(pool.X, pool.values)
    model.forget(pool.X[:1] + 1e-6, pool.values[:1], approximate=True)
    assert 1e-12 < relative(model.coef_, exact.coef_) < 1e-5
    assert model.certificate().held_fixed["rows_unlearned_roughly"] == 1


def test_moments_that_no_rows_can_have_are_refused():
    X = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    y = np.array([0, 1, 1])
    model = LSSVC(rho=10.0).fit(X, y)
    before = model.coef_
    stranger = np.array([[1.0, 1.0]])
    with pytest.raises(NotLearnedError, match="feature 0"):
        model.forget(stranger, [1])
    with pytest.raises(NotLearnedError, match="last of their class"):
        model.forget([[0.0, 1.1]], [0])
    with pytest.raises(NotLearnedError, match="positive definite"):
        model.forget(100.0 * X[1:2], [1], approximate=True)
    assert np.array_equal(model.coef_, before)
    model.forget(stranger, [1], approximate=True)


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_inputs_are_never_written_to_and_predictions_never_write(kind):
    pool = Pool(np.random.default_rng(13), 40, 2)
    t = pool.target(kind)
    given = [pool.X, t, pool.s]
    for array in given:
        array.setflags(write=False)
    model = kind().fit(pool.X[:30], t[:30], pool.s[:30])
    model.update(
        pool.X[30:], t[30:], sample_weight=pool.s[30:],
        remove_X=pool.X[:9], remove_y=t[:9], remove_sample_weight=pool.s[:9],
    )  # fmt: skip
    state = pickle.dumps(model)
    model.predict(pool.X)
    model.certificate()
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[:] = 0.0
    model.rho_path([1.0, 2.0])
    assert pickle.dumps(model) == state


def test_a_rho_that_rounding_would_swallow_is_not_lost():
    big = 2.0**30
    X = np.array([[big, big], [0.0, big]])
    model = LSSVR(rho=1e-6, fit_intercept=False).fit(X, [1.0, 2.0])
    model.forget(X[1:], [2.0])  # what is left is singular, and rho is below the last bit of 2^60
    fresh = LSSVR(rho=1e-6, fit_intercept=False).fit(X[:1], [1.0])
    for machine in (model, fresh):
        assert machine.certificate().ok and machine.certificate().f_error < 1e-15
        assert np.allclose(machine.coef_, 0.5 / big, rtol=1e-15)


def test_rows_that_no_number_of_parts_holds_are_named_as_such():
    X, y = np.array([[1.0, 2.0], [0.5, 1.0], [3.0, 1e160]]), [1.0, 2.0, 0.0]
    model = LSSVR().fit(X[:2], y[:2])
    before = model.coef_
    with pytest.raises(
        adiabat.NotOptimalError, match=r"overflow.*Scale the features, or raise rho"
    ):
        model.partial_fit(X[2:], y[2:])
    X[2, 1] = 1e150
    with pytest.raises(adiabat.NotOptimalError, match=r"parts.*Scale the features, or raise rho"):
        model.partial_fit(X[2:], y[2:])
    assert np.array_equal(model.coef_, before)
