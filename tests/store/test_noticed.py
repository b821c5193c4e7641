# SPDX-License-Identifier: BSD-3-Clause
"""Faults that once went unnoticed, each with the test that notices it."""

import dataclasses
import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import scipy.sparse as sp

import adiabat
from adiabat.store import connection as database
from adiabat.store import records
from adiabat.store.digests import canonical, sha256
from adiabat.store.session import Session
from adiabat.store.state import pack_model
from store_tools import people, reseal, write_keys


def query(folder, statement, *values):
    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection, connection:
        return connection.execute(statement, values).fetchall()


def test_an_entry_that_names_another_predecessor_is_noticed(store):
    """Its hash fits, and the next entry names it; only the link to the one before is wrong."""
    store.forget("person-00001")
    previous = None
    for seq, text in query(store.path, "SELECT seq, body FROM log ORDER BY seq"):
        body = json.loads(text)
        body["previous"] = "f" * 64 if seq == 2 else previous or body["previous"]
        text = canonical(body)
        previous = sha256(text)
        query(store.path, "UPDATE log SET body = ?, hash = ? WHERE seq = ?", text, previous, seq)
    opened = adiabat.open_store(store.path)
    with pytest.raises(adiabat.StoreDamagedError, match="does not follow the one before"):
        opened.log()
    assert "does not follow the one before" in str(opened.verify().problems)


def test_an_entry_that_is_missing_is_noticed(store):
    """All links hold; only a number is passed over."""
    store.forget("person-00001")
    (text,) = query(store.path, "SELECT body FROM log WHERE seq = 3")[0]
    ((previous,),) = query(store.path, "SELECT hash FROM log WHERE seq = 1")
    query(store.path, "DELETE FROM log WHERE seq = 2")
    text = canonical({**json.loads(text), "previous": previous})
    query(store.path, "UPDATE log SET body = ?, hash = ? WHERE seq = 3", text, sha256(text))
    opened = adiabat.open_store(store.path)
    with pytest.raises(adiabat.StoreDamagedError, match="entry 2 of the log is missing"):
        opened.log()


def test_rows_that_the_log_does_not_vouch_for_are_noticed_on_loading(store):
    """Each row is under its own key, and the model is the optimum on them: others than before."""
    found = query(store.path, "SELECT number, id, key, features, label, weight, entry FROM records")
    for number, name, key, features, label, weight, entry in found:
        changed = records.Record(number, f"x{name}", key, features, label, weight, entry)
        query(
            store.path, "UPDATE records SET id = ?, leaf = ? WHERE number = ?",
            changed.id, changed.leaf, number,
        )  # fmt: skip
    opened = adiabat.open_store(store.path)
    for use in (lambda: opened.model, lambda: opened.forget("xperson-00001")):
        with pytest.raises(adiabat.StoreDamagedError, match="rows other than its log vouches for"):
            use()


@pytest.mark.parametrize(
    "place",
    [
        "adiabat.store.session.pack_model",
        "adiabat.store.log.append",
        "adiabat.store.records.delete",
    ],
)
def test_no_stale_model_is_kept_after_a_change_that_failed(store, monkeypatch, place):
    before = store.predict(people(100, 120))["decision"]

    def fail(*_):
        raise RuntimeError("made up")

    with monkeypatch.context() as patched:
        patched.setattr(place, fail)
        with pytest.raises(RuntimeError):
            store.forget([f"person-{i:05d}" for i in range(20)])
    # without a verification in between, which would read the model anew
    assert np.abs(store.predict(people(100, 120))["decision"] - before).max() < 1e-9
    assert store.forget("person-00001").certificate["n_samples"] == 59


def test_a_database_is_as_durable_and_as_tidy_as_promised(store):
    engine = database.connect(store.path)
    wanted = {
        "journal_mode": "delete",
        "synchronous": 3,  # EXTRA: the folder is synced, too
        "secure_delete": 1,
        "temp_store": 2,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "busy_timeout": 60_000,
    }
    with database.transaction(engine) as connection:
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in wanted}
    assert found == wanted


def test_a_refresh_between_two_erasures_does_not_speak_for_the_second(store):
    store.retune(gamma="scale")
    store.forget("person-00001", reference="DSR")
    store.refresh()
    assert "refresh takes it again" not in str(store.receipt("DSR")["limits"])
    store.forget("person-00002", reference="DSR")
    content = store.receipt("DSR")
    assert "refresh takes it again" in str(content["limits"])
    assert "taken again" not in str(content["statement"])
    store.refresh()
    content = store.receipt("DSR")
    assert "refresh takes it again" not in str(content["limits"])
    assert "taken again from the rows left in entry 7" in str(content["statement"])


def test_other_tolerances_reach_the_model(store):
    assert store.info()["certificate"]["tol"] == pytest.approx(1e-9, rel=0.1)
    done = store.retune(tol=1e-6)
    assert done.certificate["tol"] == pytest.approx(1e-6, rel=0.1)
    again = adiabat.open_store(store.path).info()["certificate"]["tol"]
    assert again == pytest.approx(done.certificate["tol"], rel=1e-6)


def test_an_entry_is_written_in_one_way_only(store):
    """The same content in other words would be another entry to whoever reads it."""
    (text,) = query(store.path, "SELECT body FROM log WHERE seq = 2")[0]
    text = json.dumps(json.loads(text), indent=1)
    query(store.path, "UPDATE log SET body = ?, hash = ? WHERE seq = 2", text, sha256(text))
    with pytest.raises(adiabat.StoreDamagedError, match="entry 2 of the log"):
        adiabat.open_store(store.path).log()


def test_a_model_that_the_log_does_not_vouch_for_is_noticed_on_loading(store):
    """It is the optimum on the rows, and yet not the one that was committed."""
    model = store.model
    model.last_update_ = dataclasses.replace(model.last_update_, seconds=99.0)
    query(store.path, "UPDATE state SET model = ?", pack_model(model))
    opened = adiabat.open_store(store.path)
    for use in (lambda: opened.model, lambda: opened.forget("person-00001")):
        with pytest.raises(adiabat.StoreDamagedError, match="model other than its log vouches for"):
            use()


@pytest.fixture
def signed(tmp_path):
    private, _ = write_keys(tmp_path, "ours")
    made = adiabat.create_store(
        tmp_path / "signed", id="name", label="good", gamma=0.5, signing_key=private
    )
    made.learn(people(0, 40).drop(columns="colour"))
    made.forget("person-00001")
    return made


def test_a_forged_signature_of_the_last_entry_is_noticed_on_opening(signed):
    query(signed.path, "UPDATE signatures SET signature = zeroblob(64) WHERE seq = 3")
    with pytest.raises(adiabat.StoreDamagedError, match="signature of entry 3 is not valid"):
        adiabat.open_store(signed.path)


def test_a_forged_signature_of_an_earlier_entry_is_noticed_by_verify(signed):
    query(signed.path, "UPDATE signatures SET signature = zeroblob(64) WHERE seq = 2")
    found = adiabat.open_store(signed.path).verify()
    assert "signature of entry 2 is not valid" in str(found.problems)


@pytest.mark.parametrize("part", ["dataset", "model", "certificate"])
def test_an_entry_that_begins_where_the_one_before_did_not_end_is_noticed(store, part):
    """The chain holds; what the entries say of each other does not."""
    store.forget("person-00001")

    def forge(seq, body):
        if seq == 3:
            body[part]["before"] = "0" * 64 if part != "certificate" else None

    reseal(store.path, forge)
    found = adiabat.open_store(store.path).verify()
    assert f"entry 3 begins with another {part} than entry 2 left" in str(found.problems)


def test_a_running_number_that_is_behind_its_rows_is_noticed(store):
    query(store.path, "UPDATE state SET next_number = 30")
    reseal(store.path, lambda seq, body: body.update(next_number=30))
    found = adiabat.open_store(store.path).verify()
    assert "the running number is not that of the last entry" in str(found.problems)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_no_row_has_a_weight_out_of_range(weight):
    row = records.Record(0, "a", b"k" * 32, records.encode_features([[1.0]])[0], "1", weight, 2)
    with pytest.raises(adiabat.StoreDamagedError, match="weight is out of range"):
        records.as_rows([row], 1)


@pytest.mark.parametrize(("old", "new"), [('"good"', '"age"'), ('"name"', '"income"')])
def test_settings_that_the_log_does_not_vouch_for_are_noticed(store, old, new):
    """Which column has the labels is no matter of the model, and yet of what it learns next."""
    query(store.path, f"UPDATE settings SET body = replace(body, '{old}', '{new}')")
    with pytest.raises(adiabat.StoreDamagedError, match="settings other than its log vouches for"):
        adiabat.open_store(store.path)


def test_another_key_signs_nothing_though_the_right_one_is_pinned(tmp_path):
    private, public = write_keys(tmp_path, "ours")
    other, _ = write_keys(tmp_path, "other")
    made = adiabat.create_store(
        tmp_path / "signed", id="name", label="good", gamma=0.5, signing_key=private
    )
    made.learn(people(0, 40).drop(columns="colour"))
    opened = adiabat.open_store(made.path, signing_key=other, public_key=public)
    with pytest.raises(adiabat.StoreError, match="give that key to change it"):
        opened.forget("person-00001")
    assert adiabat.open_store(made.path, public_key=public).verify().ok


def test_the_same_id_has_another_mark_in_every_store(store, tmp_path):
    other = adiabat.create_store(tmp_path / "other", id="name", label="good", gamma=0.5)
    other.learn(people(0, 20).drop(columns="colour"))
    for erasing in (store, other):
        erasing.forget("person-00001")
    one, two = (query(each.path, "SELECT mark FROM suppressed") for each in (store, other))
    assert len(one) == len(two) == 1 and one != two


def test_an_id_that_was_let_back_in_is_marked_no_more(store):
    row = people(1, 2)
    store.forget("person-00001")
    store.learn(row, allow_erased=True)
    assert query(store.path, "SELECT * FROM suppressed") == []
    store.forget("person-00001", suppress=False)
    assert store.learn(row).added == 1
    assert store.verify().ok


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_no_row_has_a_value_that_is_not_finite(kind, value):
    [row] = records.encode_features(kind([[1.0, value]]))
    rows = [row.replace(b"g", b"d", 1)]  # a row with gaps says so
    with pytest.raises(adiabat.StoreDamagedError, match="not finite"):
        records.decode_features(rows, 2)


def test_a_row_that_was_altered_under_an_open_handle_is_noticed(store):
    """The model is in memory, so that the other rows are not read."""
    store.predict(people(100, 101))
    query(store.path, "UPDATE records SET weight = 2.0 WHERE number = 7")
    with pytest.raises(adiabat.StoreDamagedError, match="does not match its digest"):
        store.forget("person-00007")


def test_a_refresh_that_drops_a_category_has_the_file_written_anew(tmp_path, monkeypatch):
    rows = people(0, 40)
    rows.loc[7, "colour"] = "violet"
    made = adiabat.create_store(
        tmp_path / "m", id="name", label="good", categories={"colour": None}, gamma=0.5
    )
    made.learn(rows)
    made.forget("person-00007")
    monkeypatch.setattr(Session, "_purge", lambda self: None)
    made.refresh()
    assert query(made.path, "SELECT purge FROM state") == [(1,)]
