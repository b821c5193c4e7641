# SPDX-License-Identifier: BSD-3-Clause
"""Kernel columns with values for the rows near the margin: every update is that of full columns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from adiabat import SVC, SVR, OneClassSVM, load
from adiabat._core.line_gram import LineGram
from adiabat.engine import landmarks, memory, run, samples, screening
from adiabat.engine.samples import Samples
from adiabat.kernels import make_kernel

RNG = np.random.default_rng(5)
N = 700
Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
X = RNG.standard_normal((N, 3)) + np.outer(Y, [1.1, 0.0, 0.4])
X[300:400] = X[:100]  # rows that are there twice


@pytest.fixture(autouse=True)
def lined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with few rows."""
    monkeypatch.setattr(samples, "LINED", 300)
    monkeypatch.setattr(screening, "SCREENED", 300)
    monkeypatch.setattr(screening, "MANY", 3)
    monkeypatch.setattr(screening, "BLENDED", 2)
    monkeypatch.setattr(run, "WATCH_MOST", 40)
    monkeypatch.setattr(run, "WATCH_LIKELY", 20)
    monkeypatch.setattr(run, "WATCH_AMONG", 8)
    monkeypatch.setattr(run, "MANY_ROWS", 300)
    monkeypatch.setattr(landmarks, "LANDMARKS", 40)
    monkeypatch.setattr(landmarks, "ROWS_EACH", 10)
    monkeypatch.setattr(landmarks, "AT_ONCE", 20)


def gram_of(model: Any) -> LineGram:
    gram = model._model.solver.samples.gram
    assert isinstance(gram, LineGram)
    return gram


def assert_same(model: Any, other: Any) -> None:
    points = X[::7] + 0.1
    expected = other.decision_function(points) if hasattr(other, "decision_function") else None
    found = model.decision_function(points) if expected is not None else model.predict(points)
    expected = other.predict(points) if expected is None else expected
    np.testing.assert_allclose(found, expected, atol=1e-8)


def assert_optimal(model: Any) -> None:
    """By the update's certificate and by one that computes everything from the data."""
    assert model.last_update_.certificate.ok and model.certificate().ok


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_updates_are_those_of_a_refit(C: float) -> None:
    rng = np.random.default_rng(2)
    model = SVC(C=C, gamma=0.3).fit(X[:600], Y[:600])
    assert gram_of(model).n_lines < 600
    here = list(range(600))
    for turn in range(12):
        gone = rng.choice(here, 3, replace=False).tolist()
        if turn % 2:
            gone[0] = int(rng.choice(model.ids_[model.support_]))
        gone = sorted(set(gone))
        new = 600 + turn * 3 + np.arange(3)
        model.update(X[new], Y[new], ids=new.tolist(), remove=gone)
        here = [name for name in here if name not in gone] + new.tolist()
        assert_optimal(model)
    assert_same(model, SVC(C=C, gamma=0.3).fit(X[here], Y[here]))


def test_weights_labels_and_parameters_change() -> None:
    model = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600])
    model.revise([5, 6], sample_weight=[2.0, 0.5])
    model.revise([9], y=[-Y[9]])
    model.forget([int(model.ids_[model.support_[0]])])
    assert_optimal(model)
    for settings in ({"C": 3.0}, {"gamma": 0.5}, {"tol": 1e-8}):
        model.retune(**settings)
        assert_optimal(model)
    names, weight = model.ids_.tolist(), np.ones(600)
    weight[[5, 6]] = 2.0, 0.5
    y = np.where(np.arange(600) == 9, -Y[:600], Y[:600])
    other = SVC(C=3.0, gamma=0.5, tol=1e-8).fit(X[names], y[names], sample_weight=weight[names])
    assert_same(model, other)


def test_regression_and_many_classes() -> None:
    model = SVR(C=1.0, gamma=0.3, epsilon=0.05).fit(X[:600], X[:600, 0])
    model.partial_fit(X[600:620], X[600:620, 0]).forget([3, int(model.support_[0])])
    assert_optimal(model)
    names = model.ids_.tolist()
    other = SVR(C=1.0, gamma=0.3, epsilon=0.05).fit(X[names], X[names, 0])
    assert_same(model, other)
    y = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.8])
    three = SVC(C=1.0, gamma=0.3).fit(X[:600], y[:600])
    three.partial_fit(X[600:620], y[600:620]).forget([3, int(three.support_[0])])
    assert_optimal(three)
    assert gram_of(three).n_lines == 618  # each machine has few of the rows
    names = three.ids_.tolist()
    assert_same(three, SVC(C=1.0, gamma=0.3).fit(X[names], y[names]))


def test_a_sum_that_is_not_zero_has_all_lines() -> None:
    model = OneClassSVM(nu=0.2, gamma=0.3).fit(X[:600])
    assert gram_of(model).n_lines == 600
    model.partial_fit(X[600:610]).forget([3, int(model.support_[0])])
    assert gram_of(model).n_lines == 608
    assert_optimal(model)
    assert_same(model, OneClassSVM(nu=0.2, gamma=0.3).fit(X[model.ids_.tolist()]))


def test_what_reads_all_rows_has_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SVC(C=1.0, gamma=0.3).fit(X[:400], Y[:400])
    found = model.leave_one_out()
    assert gram_of(model).n_lines == 400
    model.partial_fit(X[600:602], Y[600:602]).forget([3, 7])
    assert gram_of(model).n_lines == 400
    assert_optimal(model)
    monkeypatch.setattr(samples, "LINED", 1000)
    plain = SVC(C=1.0, gamma=0.3).fit(X[:400], Y[:400]).leave_one_out()
    np.testing.assert_allclose(found.decision, plain.decision, atol=1e-9)


def test_a_trace_follows_the_path_over_all_rows() -> None:
    model = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600])
    report = model.update(X[600:601], Y[600:601], trace=True)
    assert report.trace and model.certificate().ok


def test_columns_are_complete_where_many_rows_carry_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MANY_ROWS", 1000)
    weights = []
    for y, complete in ((Y[:600], False), (RNG.choice([-1.0, 1.0], 600), True)):
        monkeypatch.setattr(run, "MANY_WEIGHTS", 2)
        model = SVC(C=1.0, gamma=0.3).fit(X[:600], y)
        assert (gram_of(model).n_lines == 600) == complete
        weights.append(len(model.support_))
        model.forget([int(model.support_[0])])
        assert_optimal(model)
    assert weights[0] < 300 < weights[1]


def test_files_and_pickles(tmp_path: Any) -> None:
    model = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600]).forget([1])
    model.save(tmp_path / "model.adiabat")
    for other in (load(tmp_path / "model.adiabat"), pickle.loads(pickle.dumps(model))):
        assert gram_of(other).n_lines < 599
        other.forget([int(other.ids_[other.support_[0]])])
        assert_optimal(other)


def test_an_update_that_fails_leaves_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600])
    before = model.decision_function(X)

    def fail(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run.Run, "satisfied", fail)
        with pytest.raises(KeyboardInterrupt):
            model.update(X[600:603], -Y[600:603], remove=[int(model.support_[0])])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.update(X[600:603], -Y[600:603], remove=[int(model.support_[0])])
    assert_optimal(model)


def test_lines_that_nobody_reads_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_LINES", 2)
    monkeypatch.setattr(samples, "LEFT_LINES", 3)
    model = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600])
    held = model._model.solver.samples
    held.draw(np.arange(600))
    held.trim()
    owners = int(np.count_nonzero(held.gram.owner >= 0))
    assert gram_of(model).n_lines == max(200, owners)
    model.forget([2])
    assert_optimal(model)


def test_columns_are_completed_if_they_are_read_often_and_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600])
    held = model._model.solver.samples
    read = 2 * samples.OFTEN * held.n * held.gram.n_slots
    for there, whole in ((0.0, False), (1e12, True)):
        monkeypatch.setattr(memory, "available_bytes", lambda there=there: there)
        held.n_read = read
        held.settle()
        assert held.in_lines != whole
    model.forget([int(model.support_[0])]).partial_fit(X[600:601], Y[600:601])
    assert gram_of(model).n_lines == 600
    assert_optimal(model)


# -- parts -----------------------------------------------------------------------------------------


def test_sums_are_the_same_with_lines_and_without() -> None:
    held = Samples(make_kernel("rbf", gamma=0.3, degree=3, coef0=0.0, X=X))
    held.add(X)
    assert held.in_lines
    held.slots(np.arange(0, 60, 2))
    weights = np.zeros(held.gram.n_slots)
    weights[:30] = RNG.standard_normal(30)
    everyone = np.arange(N)
    f = held.judged(weights, everyone)
    assert held.n_read > 0
    owners = held.gram.owner[:30]
    np.testing.assert_allclose(f, held.block(everyone, owners) @ weights[:30], atol=1e-12)
    held.complete()
    np.testing.assert_allclose(held.judged(weights, everyone), f, atol=1e-12)
    np.testing.assert_allclose(held.weigh(weights, everyone), f, atol=1e-12)


def test_rows_that_are_equal_are_read_once() -> None:
    held = Samples(make_kernel("rbf", gamma=0.3, degree=3, coef0=0.0, X=X))
    held.add(np.concatenate([X[:100]] * 4 + [-X[:100]] * 3))  # equal norms, other rows
    alike, which = held._alike(np.arange(700))
    assert len(alike) < 700
    np.testing.assert_array_equal(held.rows(alike[which]), held.rows(np.arange(700)))


def test_landmarks_bound_what_rows_move_by() -> None:
    """A row's f moves as its landmark's, but for the distance times the length that w moved."""
    model = SVC(C=10.0, gamma=0.3).fit(X[:600], Y[:600])
    machine = next(iter(model._model.solver.machines.values()))
    marks = machine.landmarks
    assert marks is not None and machine.looks is not None
    K = machine.samples.block(machine.at, machine.at)
    rows = marks.rows
    of = dict(zip(marks.stands[rows].tolist(), rows.tolist(), strict=True))
    rng = np.random.default_rng(0)
    for _ in range(20):
        change = rng.standard_normal(600) * (rng.random(600) < 0.05)
        length, f = np.sqrt(change @ K @ change), K @ change
        beside = np.array([f[of[k]] if k else 0.0 for k in marks.number.tolist()])
        blends = marks.blends
        assert np.count_nonzero(blends.rows >= 0) > 30
        for row, parts, shares in zip(blends.rows, blends.parts, blends.shares, strict=True):
            if row >= 0:
                assert marks.number[row] == 0
                beside[row] = sum(s * f[of[k]] for k, s in zip(parts.tolist(), shares, strict=True))
        assert np.all(np.abs(f - beside) <= marks.apart * length * (1 + 1e-9) + 1e-12)
    assert np.median(marks.apart) < 0.7


def test_a_landmark_that_is_forgotten_leaves_bounds_that_hold() -> None:
    model = SVC(C=10.0, gamma=0.3).fit(X[:600], Y[:600])
    machine = next(iter(model._model.solver.machines.values()))
    rng = np.random.default_rng(1)
    for _ in range(12):
        marks = machine.landmarks
        assert marks is not None
        place = {at: name for name, at in zip(model.ids_, model._model.position, strict=True)}
        gone = {place[machine.at[rng.choice(marks.rows)]]}
        gone.add(model.ids_[rng.choice(model.support_)])
        model.forget([int(name) for name in gone])
        looks = machine.looks
        assert looks is not None
        r = machine.samples.block(machine.at, machine.at) @ machine.u + machine.b - machine.t
        apart = machine.landmarks.apart
        reach = looks.off + apart * looks.drift + 1e-9
        assert np.all(np.abs(machine.held_r - r) <= reach)
        assert_optimal(model)


def test_landmarks_are_a_part_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for rows_each in (10, 30, 1000):
        monkeypatch.setattr(landmarks, "ROWS_EACH", rows_each)
        (machine,) = SVC(C=1.0, gamma=0.3).fit(X[:600], Y[:600])._model.solver.machines.values()
        counts.append(machine.landmarks.n_followed)
    assert counts[0] > 20 >= counts[1] > counts[2] == 0


def test_a_row_is_a_landmark_once() -> None:
    """Drawn again, it would take its number from the rows that follow it."""
    few = np.repeat(X[:12], 50, axis=0)
    model = SVC(C=10.0, gamma=0.3).fit(few, np.repeat(Y[:12], 50))
    machine = next(iter(model._model.solver.machines.values()))
    marks = machine.landmarks
    assert marks is not None
    stands = marks.stands[marks.rows]
    assert set(marks.number.tolist()) <= {0, *stands.tolist()}
    assert len(np.unique(stands)) == len(stands)
