# SPDX-License-Identifier: BSD-3-Clause
"""Reading while it changes: no torn read, and nobody waits for long work."""

import threading

import numpy as np
import pytest

import adiabat
from adiabat.errors import StoreError
from adiabat.estimators.predictors.answers import confidence
from adiabat.estimators.predictors.making import make_predictor
from adiabat.store import analysis, outgoing, verification
from adiabat.store.tasks import TASKS, Rows
from store_tools import people

from service.torn_reads import torn_reads


@pytest.fixture
def store(folder):
    with adiabat.open_store(folder / "loans", wait=0.5) as opened:
        yield opened


@pytest.mark.parametrize("published", [False, True])
def test_no_read_is_torn(store, published):
    reads = 1000 if published else 200
    found = torn_reads(store, reads, threads=3, published=published, least_states=4)
    assert found.torn == 0 and found.raised == 0 and found.states > 3, found


@pytest.mark.parametrize("scale", [None, "exact", "held"])
@pytest.mark.parametrize("task", TASKS)
def test_a_predictor_decides_as_the_model_did(task, scale):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(60, 3)), rng.normal(size=(40, 3))
    kind = TASKS[task]
    try:
        model = kind.create({}, scale)
    except ValueError:
        pytest.skip("least squares are not scaled")
    labels = {None: None, "number": X[:, 0] + X[:, 1]}.get(
        kind.target, np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
    )
    kind.learn(model, np.arange(60), X, labels, None)
    names = [name for name in ("predict", "decision_function") if hasattr(model, name)]
    held = make_predictor(model)
    before = {name: getattr(model, name)(Q) for name in names}
    assert all(np.array_equal(getattr(held, name)(Q), before[name]) for name in names)
    gone = Rows(X[:20], None if labels is None else labels[:20], np.ones(20))
    kind.forget(model, np.arange(20), gone)
    assert all(np.array_equal(getattr(held, name)(Q), before[name]) for name in names)
    assert any(not np.array_equal(getattr(model, name)(Q), before[name]) for name in names)


@pytest.mark.parametrize("scale", [None, "exact"])
def test_a_predictor_is_as_sure_as_the_model_was(scale):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(60, 3)), rng.normal(size=(40, 3))
    labels = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
    kind = TASKS["svc"]
    model = kind.create({"calibration": "isotonic"}, scale)
    kind.learn(model, np.arange(60), X, labels, None)
    held, before = make_predictor(model), model.predict_proba(Q)
    kind.forget(model, np.arange(20), Rows(X[:20], labels[:20], np.ones(20)))
    assert not np.array_equal(model.predict_proba(Q), before)
    said = held.predict(Q)
    assert np.array_equal(held.predict_proba(Q), before)
    assert np.array_equal(confidence(held, Q, said), before[np.arange(40), said])
    few = np.concatenate([np.flatnonzero(labels[20:] == k)[:n] + 20 for k, n in enumerate((9, 1))])
    kind.forget(model, np.setdiff1d(np.arange(20, 60), few), None)
    assert confidence(make_predictor(model), Q, model.predict(Q)) is None  # of one class one row


def test_publishing_solves_nothing(monkeypatch):
    model = adiabat.SVC().fit(np.arange(8.0)[:, None], [0, 1] * 4)
    monkeypatch.setattr(adiabat.SVC, "__setstate__", lambda *_: pytest.fail("solved anew"))
    assert np.array_equal(make_predictor(model).predict([[2.0]]), model.predict([[2.0]]))


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.forget("person-00001", dry_run=True),
        lambda store: store.forget("nobody", missing="ignore"),
        lambda store: store.forget("nobody"),
        lambda store: store.learn(people(0, 1)),
        lambda store: store.retune(C=-1.0),
    ],
)
def test_what_changes_nothing_leaves_the_model_in_memory(store, monkeypatch, ask):
    store.prepare()
    before = store.predict(people(0, 60))["decision"]
    loaded = []
    load = store._session.load
    monkeypatch.setattr(store._session, "load", lambda *given: loaded.append(1) or load(*given))
    try:
        assert ask(store).entry is None
    except (adiabat.IdError, ValueError):
        pass
    assert np.array_equal(store.predict(people(0, 60))["decision"], before)
    store.revise(people(1, 2)[["name", "good"]])
    assert not loaded and store.verify(retrain=True).ok


def held_up(monkeypatch, place, name):
    """Have a function wait inside, as if it took long."""
    inside, go_on = threading.Event(), threading.Event()
    act = getattr(place, name)

    def slowly(*args, **options):
        inside.set()
        assert go_on.wait(300)
        return act(*args, **options)

    monkeypatch.setattr(place, name, slowly)
    return inside, go_on


def meanwhile(store, inside, go_on, long, change):
    found = []
    thread = threading.Thread(target=lambda: found.append(long()))
    thread.start()
    try:
        assert inside.wait(300)
        change()  # raises after half a second if it has to wait
    finally:
        go_on.set()
        thread.join()
    return found[0]


@pytest.mark.parametrize("name", ["_pages", "_rows", "_certificate", "_refit"])
def test_a_change_does_not_wait_for_a_verification(store, monkeypatch, name):
    events = held_up(monkeypatch, verification, name)
    found = meanwhile(
        store, *events, lambda: store.verify(retrain=True), lambda: store.learn(people(60, 61))
    )
    assert found.ok and found.rows == 60
    assert len(store) == 61


def test_a_change_does_not_wait_for_a_report(store, tmp_path, monkeypatch):
    events = held_up(monkeypatch, outgoing, "left_out")
    path = tmp_path / "report.html"
    done = meanwhile(
        store, *events, lambda: store.report(path), lambda: store.learn(people(60, 61))
    )
    assert done["as_of"] == 2 and done["entry"] == 4 and "60 rows" in path.read_text()


def test_a_report_never_shows_a_row_erased_meanwhile(store, tmp_path, monkeypatch):
    suspect = store.leave_one_out().suspects(1)[0]["id"]
    events = held_up(monkeypatch, outgoing, "left_out")
    path = tmp_path / "report.html"
    done = meanwhile(store, *events, lambda: store.report(path), lambda: store.forget(suspect))
    assert done["as_of"] == 3 and suspect not in path.read_text()
    monkeypatch.undo()
    ids = iter(store.ids)
    act = analysis.left_out

    def erasing(*args, **options):
        store.forget(next(ids))
        return act(*args, **options)

    monkeypatch.setattr(outgoing, "left_out", erasing)
    with pytest.raises(StoreError, match="rows erased whenever its report was ready"):
        store.report(tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


def test_the_log_says_by_whom(store):
    store.on_behalf_of("ann", "r-1").learn(people(60, 61))
    assert store.log()[-1].body["origin"] == {"by": "ann", "request": "r-1"}
    assert store.log()[-1].by == "ann" and store.verify().ok
    store.learn(people(61, 62))
    assert store.log()[-1].by == ""
