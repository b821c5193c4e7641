# SPDX-License-Identifier: BSD-3-Clause
"""A store does what its estimator does, and keeps it."""

import json

import numpy as np
import pandas as pd
import pytest

import adiabat
from store_tools import people


def plain_model(frame):
    """The estimator on the same rows, without a store."""
    X = np.column_stack(
        [frame.income, frame.age]
        + [(frame.colour == value).astype(float) for value in ("blue", "green", "red")]
    )
    return adiabat.SVC(C=5.0, gamma=0.5).fit(X, frame.good), X


def same_decisions(store, frame):
    model, X = plain_model(frame)
    found = adiabat.open_store(store.path).predict(frame)["decision"]
    return np.abs(found - model.decision_function(X)).max() < 1e-8


def test_learning_in_parts_equals_fitting_at_once(store):
    done = store.learn(people(60, 90))
    assert (done.added, done.entry, done.certificate["ok"]) == (30, 3, True)
    assert same_decisions(store, people(0, 90))


def test_forgetting_equals_never_having_learned(store):
    done = store.forget(["person-00003", "person-00010"], reference="DSR-1")
    assert done.removed == 2
    assert same_decisions(store, people(0, 60).drop([3, 10]).reset_index(drop=True))
    assert "person-00003" not in store.ids


def test_revising_labels_features_and_a_category(store):
    fixed = people(0, 60)
    fixed.loc[4, "good"] = "no" if fixed.good[4] == "yes" else "yes"
    fixed.loc[5, ["income", "colour"]] = [2.5, "green"]
    store.revise(fixed.loc[[4], ["name", "good"]])
    store.revise(fixed.loc[[5], ["name", "colour", "income"]])
    assert same_decisions(store, fixed)


def test_everything_verifies_also_against_a_refit(store):
    store.forget("person-00001")
    found = adiabat.open_store(store.path).verify(retrain=True)
    assert found.ok and not found.problems and found.rows == 59 and found.entries == 3
    assert found.retrained["largest_difference"] < 1e-8


def test_all_rows_may_go_and_others_come(store):
    store.forget(store.ids)
    assert store.verify().ok and len(store) == 0
    with pytest.raises(adiabat.StoreError, match="learned nothing"):
        store.predict(people(0, 3))
    store.learn(people(100, 150))
    assert same_decisions(store, people(100, 150))


def test_a_dry_run_changes_nothing_and_says_what_would_move(store):
    before = store.verify().head
    done = store.forget(["person-00001", "person-00002"], dry_run=True)
    assert done.entry is None and done.dry_run and done.removed == 2
    assert done.moved["rows_compared"] == 58 and done.moved["largest_change"] > 0
    assert store.verify().head == before and len(store) == 60
    assert same_decisions(store, people(0, 60))


def test_an_empty_batch_is_no_entry(store):
    assert store.learn(people(0, 0)).entry is None
    assert store.forget("nobody", missing="ignore").entry is None
    assert len(store.log()) == 2


def test_erased_ids_are_refused_until_allowed(store):
    store.forget("person-00007")
    with pytest.raises(adiabat.IdError, match=r"person-00007.* were erased"):
        store.learn(people(7, 8))
    assert store.learn(people(7, 8), allow_erased=True).added == 1
    store.forget("person-00008", suppress=False)
    assert store.learn(people(8, 9)).added == 1
    assert store.verify().ok


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.learn(people(0, 1)), "in the store already; use revise"),
        (lambda s: s.forget("nobody"), "'nobody' are not in the store"),
        (lambda s: s.forget(["person-00001"] * 2), "more than once"),
        (lambda s: s.forget(3.5), "id 3.5 is a float"),
        (lambda s: s.revise(people(70, 71)), "not in the store"),
        (lambda s: s.forget("person-00001", missing="maybe"), "missing='maybe'"),
    ],
)
def test_refusals_leave_the_store_as_it_was(store, call, message):
    before = store.verify().head
    with pytest.raises((ValueError, TypeError), match=message):
        call(store)
    after = store.verify()
    assert after.ok and after.head == before


def test_the_log_holds_no_id_and_no_feature(store):
    store.forget("person-00007", reference="DSR-7")
    text = json.dumps([entry.body for entry in store.log()])
    assert "person-" not in text and "DSR-7" in text
    assert [entry.operation for entry in store.log()] == ["init", "learn", "forget"]


def test_arrays_and_integer_ids(tmp_path):
    store = adiabat.create_store(tmp_path / "m", label="y", weight="w", kernel="linear")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2))
    store.learn(X, (X[:, 0] > 0).astype(int), ids=range(20), sample_weight=np.full(20, 2.0))
    store.forget([3, 4])
    assert store.ids == [str(i) for i in range(20) if i not in (3, 4)]
    assert store.model.classes_.tolist() == [0, 1]
    assert store.verify(retrain=True).ok


def test_two_handles_see_each_others_changes(store):
    other = adiabat.open_store(store.path)
    assert len(other) == 60
    store.learn(people(60, 70))
    other.learn(people(70, 80))
    assert len(store) == len(other) == 80
    assert same_decisions(store, people(0, 80))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "svx"}, "task='svx' is none of"),
        ({"label": None}, "needs a column of labels"),
        ({"C": -1.0}, "'C' parameter"),
        ({"nu": 0.5}, "nu=0.5 is no parameter of SVC"),
        ({"kernel": "precomputed"}, "no features to store"),
        ({"label": "id"}, "'id' is given two roles"),
    ],
)
def test_a_store_that_cannot_be_is_not_made(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        adiabat.create_store(tmp_path / "m", **{"label": "y", **arguments})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_overwritten(store):
    with pytest.raises(adiabat.StoreError, match="not empty"):
        adiabat.create_store(store.path, label="y")
    assert store.verify().ok


def test_no_store_no_folder(tmp_path):
    with pytest.raises(adiabat.StoreError, match="holds no store"):
        adiabat.open_store(tmp_path)


def test_a_newer_schema_is_refused(store):
    import sqlite3

    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        connection.execute("PRAGMA user_version=999")
    with pytest.raises(adiabat.StoreError, match=r"schema version 999.*upgrade"):
        adiabat.open_store(store.path)


def test_pandas_and_arrow_frames_are_alike(tmp_path):
    import pyarrow as pa

    frame = people(0, 30).drop(columns="colour")
    for name, data in {"pandas": frame, "arrow": pa.table(dict(frame))}.items():
        store = adiabat.create_store(tmp_path / name, id="name", label="good")
        assert store.learn(data).added == 30
    with pytest.raises(TypeError, match="data is a list"):
        store.learn([1, 2])


def test_weights_are_kept(tmp_path):
    frame = people(0, 40).drop(columns="colour").assign(force=np.linspace(0.5, 2.0, 40))
    store = adiabat.create_store(tmp_path / "m", id="name", label="good", weight="force")
    store.learn(frame)
    store.revise(pd.DataFrame({"name": ["person-00003"], "force": [4.0]}))
    assert store.rows().weights[3] == 4.0
    assert store.verify(retrain=True).ok


def test_sparse_arrays(tmp_path):
    import scipy.sparse as sp

    X = sp.random_array((30, 200), density=0.05, random_state=1, format="csr")
    store = adiabat.create_store(tmp_path / "m", label="y", gamma=0.5)
    store.learn(X[:20], np.arange(20) % 2, ids=range(20))
    store.learn(X[20:], np.arange(10) % 2, ids=range(20, 30))
    store.forget([3, 25])
    assert store.verify(retrain=True).ok and sp.issparse(store.rows().X)
    with pytest.raises(ValueError, match="5 entries, X has 10 rows"):
        store.learn(X[20:], np.arange(10) % 2, ids=range(100, 105))


def test_an_interrupt_leaves_the_store_as_it_was(store, monkeypatch):
    before = store.verify().head

    def interrupted(*_):
        raise KeyboardInterrupt

    for place in ("adiabat.store.records.insert", "adiabat.store.session.pack_model"):
        with monkeypatch.context() as patched:
            patched.setattr(place, interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.learn(people(60, 70))
        assert store.verify(retrain=True).head == before
    assert store.learn(people(60, 70)).added == 10 and same_decisions(store, people(0, 70))
