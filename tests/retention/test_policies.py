# SPDX-License-Identifier: BSD-3-Clause
"""Each policy against its plain restatement, and what it says of itself."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import adiabat
from adiabat import SVC, SVDD, SVR, ModelFileError, OneClassSVM
from adiabat.engine.exchange import Exchange, Stuck
from adiabat.retention import All, Budget, Policy, Reserve, Support, Window, register
from adiabat.retention import policy as policies
from retention_restated import Restated

RNG = np.random.default_rng(5)
N = 150
X = RNG.standard_normal((N, 3))
LABELS = (X[:, 0] + 0.5 * RNG.standard_normal(N) > 0.0).astype(int)
THREE = LABELS + (X[:, 1] > 0.7)
NUMBERS = np.sin(2.0 * X[:, 0]) + 0.2 * RNG.standard_normal(N)

MACHINES = {
    "svc": (SVC(C=2.0, gamma=0.5), LABELS),
    "three classes": (SVC(C=2.0, gamma=0.5), THREE),
    "svr": (SVR(C=2.0, gamma=0.5, epsilon=0.3), NUMBERS),
    "one class": (OneClassSVM(gamma=0.5, nu=0.3), np.zeros(N)),
    "svdd": (SVDD(gamma=0.5, C=0.1), np.zeros(N)),
}
POLICIES = [All(), Support(), Reserve(0.1), Budget(25), Window(40)]


def assert_alike(model: Any, other: Any) -> None:
    for name in ("predict",) if isinstance(model, SVR) else ("decision_function",):
        np.testing.assert_allclose(getattr(model, name)(X), getattr(other, name)(X), atol=1e-8)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_policy_keeps_what_its_restatement_keeps(machine: str, policy: Policy) -> None:
    base, y = MACHINES[machine]
    model = clone(base).set_params(retain=policy)
    plain = Restated(model)
    held = 0
    for start, stop in [(0, 50), (50, 51), (51, 52), (52, 80), (80, N)]:
        batch = range(start, stop)
        expected = plain.learn(X, y, batch)
        report = model.update(X[start:stop], y[start:stop])
        assert model.ids_.tolist() == plain.rows
        assert_alike(model, expected)
        certificate = model.certificate()
        assert certificate.ok and report.certificate.ok
        assert certificate.n_samples == len(plain.rows)
        assert certificate.n_seen == report.certificate.n_seen == stop
        assert certificate.retain == repr(policy)
        assert report.n_added == len(batch)
        held += report.n_added - report.n_removed
        assert held == len(plain.rows)


@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_one_row_at_a_time(policy: Policy) -> None:
    """From the first row on: a single class, then both, integers with many an equal row."""
    rows, labels = np.round(X), LABELS
    model = SVC(C=2.0, gamma=0.5, retain=policy)
    for k in range(80):
        model.partial_fit(rows[k : k + 1], labels[k : k + 1])
        assert model.last_update_.certificate.ok
    assert model.certificate().ok and model.certificate().n_seen == 80
    held = model.ids_
    assert_alike(model, SVC(C=2.0, gamma=0.5).fit(rows[held], labels[held]))


def test_a_single_class_stays_until_there_is_another() -> None:
    model = SVC(retain=Support()).fit(X[:10], np.zeros(10))
    assert len(model.ids_) == 10
    model.partial_fit(X[10:12], [1.0, 1.0])
    assert len(model.ids_) == len(model.support_)


def test_a_window_is_one_step() -> None:
    model = SVC(gamma=0.5, solver="path", retain=Window(50)).fit(X[:50], LABELS[:50])
    twin = SVC(gamma=0.5, solver="path").fit(X[:50], LABELS[:50])
    report = model.update(X[50:60], LABELS[50:60], remove=[3, 30])
    other = twin.update(X[50:60], LABELS[50:60], remove=[3, 30, 0, 1, 2, 4, 5, 6, 7, 8])
    assert report.breakpoints == other.breakpoints > 0
    assert model.ids_.tolist() == twin.ids_.tolist()
    assert report.n_removed == 10


@pytest.mark.parametrize("at", [0, 1, 5])
def test_fallbacks_of_every_step_are_counted(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaves in turn is many steps; the first gives up, or the second, or a later one.

    Without the coarse step, which may end at the optimum by itself.
    """
    model = SVC(C=2.0, gamma=0.5, retain=Budget(25)).fit(X[:50], LABELS[:50])
    solve, calls = Exchange.solve, []

    def stuck_once(self: Exchange, *turn: Any) -> None:
        calls.append(1)
        if len(calls) == at + 1:
            raise Stuck
        solve(self, *turn)

    monkeypatch.setattr(Exchange, "solve", stuck_once)
    monkeypatch.setattr(Exchange, "descend", lambda *given: None)
    report = model.update(X[50:], LABELS[50:])
    assert len(calls) > at + 1 and report.fallbacks == 1
    assert report.certificate.ok


def test_a_batch_larger_than_the_window_and_its_numbers() -> None:
    model = SVC(gamma=0.5, retain=Window(20)).fit(X[:60], LABELS[:60])
    assert model.ids_.tolist() == list(range(40, 60))
    assert (model.last_update_.n_added, model.last_update_.n_removed) == (60, 40)
    model.update(X[60:110], LABELS[60:110])
    assert model.ids_.tolist() == list(range(90, 110))
    assert model.certificate().n_seen == 110


class Newest(Policy):
    """New rows go at once, if they are no more than so many."""

    timing = "together"

    def __init__(self, most: int) -> None:
        self.most = most

    def leaving(self, held: Any) -> Any:
        assert len(held.ids) == held.n
        return range(held.n - held.n_new, held.n) if held.n_new <= self.most else ()


def test_numbers_of_rows_that_passed_are_not_given_again() -> None:
    model = SVC(gamma=0.5, retain=Newest(5)).fit(X[:20], LABELS[:20])
    model.update(X[20:25], LABELS[20:25])
    assert len(model.ids_) == 20 and model.certificate().n_seen == 25
    model.update(X[25:31], LABELS[25:31])
    assert model.ids_[20:].tolist() == list(range(25, 31))


@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_a_given_kernel(policy: Policy) -> None:
    K = rbf_kernel(X, gamma=0.5)
    model = SVC(kernel="precomputed", retain=policy).fit(K[:70, :70], LABELS[:70])
    plain = SVC(gamma=0.5, retain=policy).fit(X[:70], LABELS[:70])
    for start, stop in [(70, 71), (71, 140)]:
        columns = [*model.ids_.tolist(), *range(start, stop)]
        model.update(K[start:stop][:, columns], LABELS[start:stop])
        plain.update(X[start:stop], LABELS[start:stop])
        assert model.ids_.tolist() == plain.ids_.tolist()
    np.testing.assert_allclose(
        model.decision_function(K[:, model.ids_]), plain.decision_function(X), atol=1e-8
    )


def test_other_verbs_let_go_of_nothing() -> None:
    model = SVC(gamma=0.5, retain=Support()).fit(X[:60], LABELS[:60])
    held = model.ids_
    model.forget([held[0]])
    assert model.ids_.tolist() == held[1:].tolist() and model.last_update_.n_removed == 1
    model.revise([held[1]], y=[1 - LABELS[held[1]]])
    model.retune(C=5.0)
    assert len(model.ids_) == len(held) - 1


def test_a_policy_may_change_between_updates() -> None:
    model = SVC(gamma=0.5).fit(X[:60], LABELS[:60])
    model.set_params(retain=Window(30)).update(X[60:61], LABELS[60:61])
    assert model.ids_.tolist() == list(range(31, 61))
    with pytest.raises(ValueError, match="retain"):
        model.set_params(retain="window").update(X[61:62], LABELS[61:62])
    assert len(model.ids_) == 30


# -- as values and in files ----------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_policies_are_plain_values(policy: Policy, tmp_path: Any) -> None:
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert clone(policy, safe=False) == policy and hash(clone(policy, safe=False)) == hash(policy)
    assert all((policy == other) == (policy is other) for other in POLICIES)
    model = SVC(gamma=0.5, retain=policy).fit(X[:60], LABELS[:60])
    assert clone(model).retain == policy
    model.save(tmp_path / "m.adiabat")
    loaded, copied = adiabat.load(tmp_path / "m.adiabat"), pickle.loads(pickle.dumps(model))
    for twin in (loaded, copied):
        assert twin.retain == policy and type(twin.retain) is type(policy)
        assert twin.last_update_.solver == model.last_update_.solver
        assert twin.certificate() == model.certificate()
        twin.update(X[60:80], LABELS[60:80])
    model.update(X[60:80], LABELS[60:80])
    for twin in (loaded, copied):
        assert twin.ids_.tolist() == model.ids_.tolist()
        assert twin.certificate().n_seen == 80
        assert_alike(twin, model)


def test_a_policy_of_ones_own_in_a_file(tmp_path: Any) -> None:
    model = SVC(gamma=0.5, retain=Newest(5)).fit(X[:20], LABELS[:20])
    with pytest.raises(TypeError, match=r"retain=Newest\(most=5\).*register"):
        model.save(tmp_path / "m.adiabat")
    assert register(Newest) is Newest
    try:
        model.save(tmp_path / "m.adiabat")
        assert adiabat.load(tmp_path / "m.adiabat").retain == Newest(5)
    finally:
        del policies._REGISTERED["Newest"]
    with pytest.raises(ModelFileError, match=r"retain=Newest.*register"):
        adiabat.load(tmp_path / "m.adiabat")


def test_a_name_is_registered_once() -> None:
    class Window(Policy):
        pass

    with pytest.raises(ValueError, match="rename"):
        register(Window)
    with pytest.raises(TypeError, match="subclass"):
        register(int)  # type: ignore[type-var]


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Window(0), "Window: size=0"),
        (lambda: Window(2.5), "size=2.5"),
        (lambda: Window(True), "size=True"),
        (lambda: Window("many"), "size='many'"),
        (lambda: Budget(-1), "Budget: size=-1"),
        (lambda: Budget(None), "size=None"),
        (lambda: Reserve(-1), "eps=-1"),
        (lambda: Reserve(0.0), "eps=0.0.*Support"),
        (lambda: Reserve(np.nan), "eps=nan"),
        (lambda: Reserve(np.inf), "eps=inf"),
        (lambda: Reserve("wide"), "eps='wide'"),
    ],
)
def test_parameters_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "retain", [5, "window", Window, [Window(5)]], ids=["number", "text", "class", "list"]
)
@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM, SVDD])
def test_what_is_no_policy(kind: Any, retain: Any) -> None:
    model = kind(retain=retain)
    with pytest.raises(ValueError, match="retain"):
        model.fit(X, LABELS)
    assert not hasattr(model, "ids_")


def test_where_every_row_is_held(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match=r"retain=Window\(size=5\).*pipeline"):
        adiabat.IncrementalPipeline(SVC(retain=Window(5))).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"retain=Window\(size=5\).*store"):
        adiabat.create_store(tmp_path / "s", "svc", id="name", label="good", retain=Window(5))


class Answers(Policy):
    """A policy that gives one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def leaving(self, held: Any) -> Any:
        return self.answer


class Peeks(Policy):
    timing = "together"

    def leaving(self, held: Any) -> Any:
        return np.flatnonzero(held.weight == 0.0)


@pytest.mark.parametrize("answer", [[-1], [61], [0, 0], [0.5], None, [[1]], "all", [True] * 61])
@pytest.mark.parametrize("timing", ["after", "together"])
def test_an_answer_that_is_no_list_of_places(answer: Any, timing: str) -> None:
    model = SVC(gamma=0.5).fit(X[:60], LABELS[:60])
    before = model.decision_function(X).tolist()
    policy = type("Timed", (Answers,), {"timing": timing})(answer)
    with pytest.raises(ValueError, match=r"retain=.*leaving returned"):
        model.set_params(retain=policy).update(X[60:61], LABELS[60:61])
    assert len(model.ids_) == 60 and model.decision_function(X).tolist() == before


def test_a_look_at_the_solution_too_early() -> None:
    with pytest.raises(RuntimeError, match="timing"):
        SVC(retain=Peeks()).fit(X, LABELS)
