# SPDX-License-Identifier: BSD-3-Clause
"""Stores as an attacker, a restored backup or a busy machine leaves them."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import adiabat
from adiabat.cli import output
from adiabat.cli.main import app
from adiabat.store import connection as database
from adiabat.store import folder as files
from adiabat.store.digests import sha256
from adiabat.store.receipt import receipt_page
from adiabat.store.session import Session
from adiabat.store.settings import Settings
from adiabat.store.signing import Signer
from store_tools import people, reseal, write_keys


@pytest.fixture
def store(tmp_path):
    made = adiabat.create_store(
        tmp_path / "m", id="name", label="good", categories={"colour": None}, C=5.0, gamma=0.5
    )
    made.learn(people(0, 60))
    return made


def query(folder, statement, *values):
    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection, connection:
        return connection.execute(statement, values).fetchall()


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# -- a backup is restored under an open handle ---------------------------------------------------


def test_a_model_in_memory_goes_by_the_hash_of_its_entry(store, tmp_path):
    shutil.copytree(store.path, tmp_path / "backup")
    handle = adiabat.open_store(store.path)
    handle.learn(people(60, 70))  # entry 3 of one history
    shutil.rmtree(store.path)
    shutil.copytree(tmp_path / "backup", store.path)
    adiabat.open_store(store.path).forget("person-00001")  # entry 3 of another
    handle.learn(people(80, 81))
    found = adiabat.open_store(store.path).verify(retrain=True)
    assert found.ok and found.rows == 60, found.problems
    assert len(handle.model.ids_) == 60


def test_readers_go_by_the_hash_of_the_entry_too(store, tmp_path):
    shutil.copytree(store.path, tmp_path / "backup")
    handle = adiabat.open_store(store.path)
    handle.learn(people(60, 70))
    handle.forget("person-00061")  # entry 4 of one history
    assert len(handle.model.ids_) == 69 and len(handle.leave_one_out().ids) == 69
    shutil.rmtree(store.path)
    shutil.copytree(tmp_path / "backup", store.path)
    other = adiabat.open_store(store.path)
    other.forget("person-00001")
    other.forget("person-00002")  # entry 4 of another
    asked = people(100, 110)
    expected = adiabat.open_store(store.path).predict(asked)["decision"]
    assert np.abs(handle.predict(asked)["decision"] - expected).max() < 1e-9
    assert len(handle.model.ids_) == 58 and handle.info()["certificate"]["n_samples"] == 58
    other.forget("person-00003")
    expected = adiabat.open_store(store.path).predict(asked)["decision"]
    assert np.abs(handle.predict(asked)["decision"] - expected).max() < 1e-9
    assert len(handle.model.ids_) == 57


@pytest.mark.parametrize(
    "ids", [lambda store: store.model.ids_, lambda store: store.leave_one_out().ids]
)
def test_a_reader_that_is_the_only_one_goes_by_the_hash(store, tmp_path, ids):
    """No other kind of reader comes between, which would put another model into memory."""
    shutil.copytree(store.path, tmp_path / "backup")
    handle = adiabat.open_store(store.path)
    adiabat.open_store(store.path).learn(people(60, 70))  # entry 3 of one history
    assert len(ids(handle)) == 70
    shutil.rmtree(store.path)
    shutil.copytree(tmp_path / "backup", store.path)
    adiabat.open_store(store.path).forget("person-00001")  # entry 3 of another
    assert len(ids(handle)) == 59


# -- signatures ----------------------------------------------------------------------------------


@pytest.fixture
def signed(tmp_path):
    private, public = write_keys(tmp_path, "ours")
    store = adiabat.create_store(
        tmp_path / "s", id="name", label="good", gamma=0.5, signing_key=private
    )
    store.learn(people(0, 40).drop(columns="colour"))
    store.forget("person-00001", reference="DSR-1")
    return store, private, public


def take_off(folder, signer=None):
    """Take the signatures off, forge a reference, and make the chain anew, as its owner could."""
    ((text,),) = query(folder, "SELECT body FROM settings")
    key = None if signer is None else signer.public_key.hex()
    text = replace(Settings.from_json(text), public_key=key).to_json()
    query(folder, "UPDATE settings SET body = ?", text)
    query(folder, "DELETE FROM signatures")

    def forge(seq, body):
        body["settings"] = sha256(text)
        if body["reference"]:
            body["reference"] = "DSR-999"

    reseal(folder, forge)
    for seq, digest in query(folder, "SELECT seq, hash FROM log") if signer else ():
        values = (seq, signer.public_key, signer.sign(digest))
        query(folder, "INSERT INTO signatures VALUES (?, ?, ?)", *values)


@pytest.mark.parametrize("forger", [False, True])
def test_signatures_cannot_be_taken_off_or_replaced_unnoticed(signed, tmp_path, forger):
    store, private, public = signed
    other, _ = write_keys(tmp_path, "other")
    take_off(store.path, Signer(other) if forger else None)
    assert adiabat.open_store(store.path).verify().ok  # nothing in the folder shows it
    said = "give that key" if forger else "may have been taken off"
    for keys in ({"signing_key": private}, {"public_key": public}):
        with pytest.raises(adiabat.StoreError, match=said):
            adiabat.open_store(store.path, **keys)
    opened = adiabat.open_store(store.path)
    assert not opened.verify(public_key=public).ok
    with pytest.raises(adiabat.StoreDamagedError, match="no receipt can be issued"):
        opened.receipt("DSR-999", public_key=public)
    assert call("verify", store.path, "--public-key", public).exit_code != 0
    assert call("receipt", store.path, "DSR-999", "--public-key", public).exit_code != 0


def test_a_pin_in_the_environment_holds_for_every_command(signed, monkeypatch):
    store, private, public = signed
    monkeypatch.setenv("ADIABAT_PUBLIC_KEY", str(public))
    monkeypatch.setenv("ADIABAT_SIGNING_KEY", str(private))
    assert call("info", store.path).exit_code == 0
    assert call("forget", store.path, "--id", "person-00002").exit_code == 0
    take_off(store.path)
    for words in (("info",), ("log",), ("loo",), ("forget", "--id", "person-00003")):
        result = call(words[0], store.path, *words[1:])
        assert result.exit_code == 4 and "taken" in result.stderr


def test_a_signing_key_for_an_unsigned_store_is_refused_unless_told(store, tmp_path):
    private, public = write_keys(tmp_path, "ours")
    with pytest.raises(adiabat.StoreError, match="allow_unsigned"):
        adiabat.open_store(store.path, signing_key=private)
    told = adiabat.open_store(store.path, signing_key=private, allow_unsigned=True)
    assert told.forget("person-00001").removed == 1
    with pytest.raises(adiabat.StoreError, match="is not signed"):
        adiabat.open_store(store.path, public_key=public, allow_unsigned=True)
    forget = ("forget", store.path, "--id", "person-00002", "--signing-key", private)
    assert call(*forget).exit_code == 4
    assert call(*forget, "--allow-unsigned").exit_code == 0


def test_a_receipt_says_whether_the_key_was_given(signed):
    store, _, public = signed
    given = store.receipt("DSR-1")  # the handle signs, so it knows the key
    assert given["verified"]["public_key_given"] and "given from outside" in str(given["statement"])
    opened = adiabat.open_store(store.path)
    unknown, pinned = opened.receipt("DSR-1"), opened.receipt("DSR-1", public_key=public)
    assert not unknown["verified"]["public_key_given"]
    assert "key that the store itself names" in str(unknown["limits"])
    assert pinned["verified"]["public_key_given"] and "cut off" in str(pinned["limits"])
    assert pinned["verified"]["public_key"] in receipt_page(pinned)


def test_a_key_that_cannot_be_read_is_an_error_of_the_store(signed, tmp_path):
    store, _, _ = signed
    (tmp_path / "text").write_text("no key")
    for path in (tmp_path / "text", tmp_path / "nothing", tmp_path):
        with pytest.raises(adiabat.StoreError, match="cannot be read"):
            store.verify(public_key=path)
        with pytest.raises(adiabat.StoreError, match="cannot be read"):
            adiabat.open_store(store.path, signing_key=path)


# -- what an erasure leaves ----------------------------------------------------------------------


def test_a_purge_that_failed_is_done_by_whoever_comes_next(store, monkeypatch):
    def full(engine):
        raise adiabat.StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(database, "vacuum", full)
        with pytest.raises(adiabat.StoreError, match="could not be overwritten"):
            store.forget("person-00001", reference="DSR-1")
        with suppress(adiabat.StoreError):
            store.learn(people(60, 61))
        assert query(store.path, "SELECT purge FROM state") == [(1,)]
        assert len(store) == 60  # both changes are in the store
        content = store.receipt("DSR-1")
        assert "NOT been overwritten" in str(content["statement"])
        assert content["verified"]["file_written_anew"] is False
    adiabat.open_store(store.path)
    assert query(store.path, "SELECT purge FROM state") == [(0,)]
    assert "written anew" in str(store.receipt("DSR-1")["statement"])


def test_a_receipt_finishes_the_purge_if_it_can(store, monkeypatch):
    monkeypatch.setattr(Session, "_purge", lambda self: None)  # as if killed just before
    store.forget("person-00001", reference="DSR-1")
    monkeypatch.undo()
    assert store.receipt("DSR-1")["verified"]["file_written_anew"] is True
    assert query(store.path, "SELECT purge FROM state") == [(0,)]


# -- links and other files -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lock", "store.sqlite", "store.sqlite-journal", "tmp"])
def test_no_file_of_a_folder_is_followed_out_of_it(store, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    place = Path(store.path) / name
    place.unlink(missing_ok=True)
    place.symlink_to(victim)
    for use in (
        lambda: adiabat.open_store(store.path).forget("person-00001"),
        lambda: store.export(tmp_path / "out"),
    ):
        with pytest.raises(adiabat.StoreError):
            use()
    assert not (tmp_path / "out").exists()
    assert victim.read_bytes() == b"precious" and place.is_symlink()


def test_a_lock_that_is_no_file_does_not_hang(store):
    place = Path(store.path) / "lock"
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(adiabat.StoreDamagedError):
        adiabat.open_store(store.path)
    with pytest.raises(adiabat.StoreDamagedError, match="no file"):
        store.forget("person-00001")


def test_a_lock_with_a_second_name_is_locked_and_not_written_to(store, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (Path(store.path) / "lock").unlink(missing_ok=True)
    os.link(victim, Path(store.path) / "lock")
    assert adiabat.open_store(store.path).forget("person-00001").removed == 1
    assert victim.read_bytes() == b"precious"


def test_a_journal_that_names_another_file_is_refused(store, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    name = str(victim).encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    tail = name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    (Path(store.path) / "store.sqlite-journal").write_bytes(magic.ljust(512, b"\0") + tail)
    with pytest.raises(adiabat.StoreDamagedError, match="names a file outside"):
        adiabat.open_store(store.path)
    assert victim.exists()


@pytest.mark.parametrize("name", ["store.sqlite-wal", "store.sqlite-shm"])
def test_files_of_another_way_of_writing_are_refused(store, name):
    (Path(store.path) / name).write_bytes(b"")
    with pytest.raises(adiabat.StoreDamagedError, match="not of a store"):
        adiabat.open_store(store.path)


def test_a_database_in_another_mode_is_refused(store):
    with closing(sqlite3.connect(f"{store.path}/store.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(adiabat.StoreDamagedError, match="not a store's"):
        adiabat.open_store(store.path)


# -- threads -------------------------------------------------------------------------------------


def test_threads_that_predict_see_only_what_was_committed(store):
    questions = people(100, 130)
    committed = store.predict(questions)["decision"]
    victims = [f"person-{i:05d}" for i in range(0, 40)]
    stop, faults, reads = threading.Event(), [], []

    def ask():
        while not stop.is_set():
            try:
                found = store.predict(questions)["decision"]
                if np.abs(found - committed).max() > 1e-9:
                    faults.append("another model")
                reads.append(1)
            except Exception as error:
                faults.append(repr(error))

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for _ in range(12):
        assert store.forget(victims, dry_run=True).removed == 40
    stop.set()
    for asker in askers:
        asker.join()
    assert not faults and len(reads) > 12, faults[:3]


def test_threads_see_one_committed_state_or_another(store):
    questions = people(100, 130)
    states = [store.predict(questions)["decision"]]
    clone = shutil.copytree(store.path, f"{store.path}-copy")
    with closing(adiabat.open_store(clone)) as twin:
        for k in range(6):
            twin.learn(people(60 + k, 61 + k))
            states.append(twin.predict(questions)["decision"])
    stop, faults = threading.Event(), []

    def ask():
        while not stop.is_set():
            found = store.predict(questions)["decision"]
            if min(np.abs(found - state).max() for state in states) > 1e-9:
                faults.append(found)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for k in range(6):
        store.learn(people(60 + k, 61 + k))
    stop.set()
    for asker in askers:
        asker.join()
    assert not faults
    assert np.abs(store.predict(questions)["decision"] - states[-1]).max() < 1e-9


def test_a_model_that_was_handed_out_stays_as_it_was(store):
    model = store.model
    store.forget("person-00001")
    assert len(model.ids_) == 60 and model.certificate().ok
    assert len(store.model.ids_) == 59


# -- files that go out ---------------------------------------------------------------------------

KILLED = """
import os, signal, sys, adiabat
from adiabat.store import folder, session
which = sys.argv[3]
def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if which == "before the entry":
    session.Session._write = kill
elif which == "before its place":
    folder.Draft.place = kill
else:
    replaced = os.replace
    def elsewhere(source, target):
        if target == sys.argv[2]:
            raise OSError(18, "another file system")
        replaced(source, target)
    os.replace = elsewhere
    folder.shutil.copymode = kill
adiabat.open_store(sys.argv[1]).export(sys.argv[2])
"""


@pytest.mark.rotates(3)
@pytest.mark.parametrize("when", ["before the entry", "before its place", "within a copy"])
def test_a_killed_export_leaves_nothing_once_the_store_is_opened(store, tmp_path, when):
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-c", KILLED, store.path, str(out / "model.adiabat"), when]
    assert subprocess.run(command).returncode == -9
    left = [*(Path(store.path) / "tmp").iterdir(), *out.iterdir()]
    assert left, "the kill came too early to test anything"
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in left if path.suffix != ".beside")
    opened = adiabat.open_store(store.path)
    assert list(out.iterdir()) == [] and not (Path(store.path) / "tmp").exists()
    kept = [entry.operation for entry in opened.log()][2:]
    assert kept == ([] if when == "before the entry" else ["export"])
    assert opened.verify().ok


def test_cleaning_waits_for_whoever_is_writing(store):
    with files.drafting(store.path) as draft:
        from adiabat.store.lock import writing

        with writing(store.path, "export", 0.0):
            adiabat.open_store(store.path)
            assert Path(draft.path).exists()
    assert not (Path(store.path) / "tmp").exists()


def test_a_note_of_a_stranger_removes_nothing_else(store, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = Path(store.path) / "tmp"
    folder.mkdir()
    (folder / "0123.beside").write_text(str(victim))
    adiabat.open_store(store.path)
    assert victim.exists() and not folder.exists()


@pytest.mark.parametrize("form", ["adiabat", "sklearn", "onnx", "report"])
def test_what_holds_rows_is_private_and_on_disk(store, tmp_path, monkeypatch, form):
    synced = set()
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), fsync(fd))[1])
    path = tmp_path / "out.file"
    if form == "report":
        store.report(path)
    else:
        store.export(path, format=form)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_ino, tmp_path.stat().st_ino} <= synced
    assert store.log()[-1].body["details"]["sha256"] == sha256(path.read_bytes())
    path.chmod(0o640)
    store.report(path) if form == "report" else store.export(path, format=form)
    assert path.stat().st_mode & 0o777 == 0o640  # what its owner has set
    assert sorted(os.listdir(store.path)) == ["lock", "store.sqlite"]


def test_an_export_to_another_file_system(store, tmp_path, monkeypatch):
    replaced = os.replace

    def across(source, target):
        if os.path.basename(os.path.dirname(source)) == "tmp" and "adiabat-" not in source:
            raise OSError(18, "another file system")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", across)
    store.export(tmp_path / "model.adiabat", with_ids=False)
    assert len(adiabat.load(tmp_path / "model.adiabat").ids_) == 60
    assert (tmp_path / "model.adiabat").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "model.adiabat"]


# -- text of strangers ---------------------------------------------------------------------------

NASTY = [
    "[/x]",
    "[bold]b[/]",
    ":smile:",
    "a\x1b[31mred",
    "c1\x9b2J",
    "two\nlines",
    "r\u202etl",
    "é漢",
]


@pytest.mark.rotates(3)
@pytest.mark.parametrize("text", NASTY)
def test_a_terminal_shows_text_as_text(store, text):
    store.learn(people(60, 61), reference=text)
    for words in (("log", store.path), ("log", store.path, "--json")):
        result = call(*words)
        assert result.exit_code == 0, result.output
        assert not set(result.stdout) & set("\x1b\x9b\u202e")
    shown = call("log", store.path).stdout
    assert text.encode("unicode_escape").decode()[:4] in shown or text in shown
    refused = call("receipt", store.path, text)
    assert refused.exit_code == 4 and not set(refused.output) & set("\x1b\x9b\u202e")


def test_ids_labels_and_files_on_a_terminal(tmp_path):
    ids = [f"{nasty}{k}" for k in range(5) for nasty in NASTY]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(ids), 2))
    y = ["[/y]\x1b[0m" if (k % 3 == 0) else "no" for k in range(len(ids))]
    store = adiabat.create_store(tmp_path / "m", label="y", gamma=0.5)
    store.learn(X, y, ids=ids)
    shown = call("loo", store.path, "--top", "40")
    assert shown.exit_code == 0 and "\x1b" not in shown.stdout and "\\x1b[31mred" in shown.stdout
    missing = call("learn", store.path, tmp_path / "[/no]\x1b.csv")
    assert missing.exit_code == 3 and "\x1b" not in missing.output and "[/no]" in missing.output
    assert call("report", store.path, "-o", tmp_path / "r.html").exit_code == 0
    assert not set((tmp_path / "r.html").read_text()) & set("\x1b\x9b\u202e")


def test_predictions_are_no_formulas_and_forge_no_rows(tmp_path):
    ids = [
        "=1+1",
        "+cmd",
        "-x",
        "@sum",
        "\tz",
        "-5",
        "+1e3",
        "plain",
        "＝2",
        "two\n1 1:9 # fake",
        "a\rb",
    ]
    X = np.arange(22.0).reshape(11, 2)
    store = adiabat.create_store(tmp_path / "m", label="y", kernel="linear")
    store.learn(X, ["=bad"] * 5 + ["good"] * 6, ids=ids)
    store.learn(X, ["=bad"] * 5 + ["good"] * 6, ids=[f"{name}'" for name in ids])
    rows = {"id": ids, "x0": X[:, 0], "x1": X[:, 1]}
    from adiabat.store.tables import read_table, write_table

    predicted = store.predict(rows)
    write_table(str(tmp_path / "out.csv"), predicted)
    found = read_table(str(tmp_path / "out.csv"), text=("id",)).columns["id"].to_pylist()
    expected = ["'=1+1", "'+cmd", "'-x", "'@sum", "'\tz", "-5", "+1e3", "plain", "'＝2"]
    assert found == expected + ids[9:]
    assert "'=bad" in (tmp_path / "out.csv").read_text()
    write_table(str(tmp_path / "out.svmlight"), {**predicted, "prediction": np.arange(11)})
    table = read_table(str(tmp_path / "out.svmlight"))
    assert table.n == 11 and "two\\n1 1:9 # fake" in table.columns["id"].to_pylist()


def test_halves_of_characters_are_refused_or_shown_as_escapes(store, tmp_path):
    with pytest.raises(adiabat.IdError, match="not text in UTF-8"):
        store.forget("\ud800")
    with pytest.raises(ValueError, match="not text in UTF-8"):
        store.forget("person-00001", reference="\udcff")
    numbers = adiabat.create_store(tmp_path / "n", label="y")
    with pytest.raises(ValueError, match="UTF-8"):
        numbers.learn([[0.0], [1.0]], [0, 1], ids=["a", "\ud800"])

    def old(seq, body):  # an entry of a release that took it
        if seq == 2:
            body["reference"] = "\udcff"

    reseal(store.path, old)
    for words in (("log",), ("log", "--json"), ("report", "-o", tmp_path / "r.html")):
        result = call(words[0], store.path, *words[1:])
        assert result.exit_code == 0, result.output
    assert "\\udcff" in (tmp_path / "r.html").read_text()


# -- the clock, and who is waited for --------------------------------------------------------------


def test_a_clock_that_goes_back_is_in_the_log(store, monkeypatch):
    monkeypatch.setattr(output.out, "width", 200)
    from adiabat.store import frame

    class Earlier(frame.datetime):
        @classmethod
        def now(cls, zone=None):
            return frame.datetime.fromisoformat("2001-01-01T00:00:00+00:00")

    with monkeypatch.context() as patched:
        patched.setattr(frame, "datetime", Earlier)
        store.forget("person-00001", reference="R")
    store.learn(people(60, 61))
    bodies = [entry.body for entry in store.log()]
    assert bodies[2]["clock_back"] > 1e8 and "clock_back" not in bodies[3]
    assert store.verify().ok and "clock went back" in call("log", store.path).stdout
    assert "The clock went back before entry 3" in str(store.receipt("R")["limits"])

    def silent(seq, body):
        body.pop("clock_back", None)

    reseal(store.path, silent)
    assert "does not say so" in str(adiabat.open_store(store.path).verify().problems)


def test_a_busy_store_says_how_long_was_waited(store, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.4)
    with closing(sqlite3.connect(f"{store.path}/store.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM log").fetchone()
        with pytest.raises(adiabat.StoreError, match=r"within 0\.[45] seconds"):
            store.learn(people(60, 61))
    assert store.learn(people(60, 61)).added == 1


def test_no_error_is_its_own_cause(store):
    with pytest.raises(adiabat.StoreError) as caught:
        with store._session.changing("learn"):
            raise adiabat.StoreError("made up")
    seen, error = set(), caught.value
    while error is not None:
        assert id(error) not in seen
        seen.add(id(error))
        error = error.__cause__


# -- what erased rows had settled ----------------------------------------------------------------


@pytest.mark.parametrize("task", ["svc", "lssvc"])
def test_a_category_that_only_an_erased_row_had_goes_with_a_refresh(tmp_path, task):
    rows = people(0, 40)
    rows.loc[7, "colour"] = "violet"
    store = adiabat.create_store(
        tmp_path / "m", task, id="name", label="good", categories={"colour": None}
    )
    store.learn(rows)
    store.forget("person-00007", reference="DSR-7")
    assert b"violet" in (Path(store.path) / "store.sqlite").read_bytes()
    if task == "svc":
        assert "categories" in str(store.receipt("DSR-7")["limits"])
    done = store.refresh()
    assert done.entry == 4 and done.certificate["ok"]
    assert b"violet" not in (Path(store.path) / "store.sqlite").read_bytes()
    opened = adiabat.open_store(store.path)
    assert opened.settings.n_features == 5 and opened.verify(retrain=True).ok
    assert opened.log()[-1].body["details"] == {"categories_dropped": 1}
    fresh = adiabat.create_store(
        tmp_path / "f", task, id="name", label="good", categories={"colour": None}
    )
    fresh.learn(rows.drop(index=7))
    found = [each.predict(people(50, 70))["decision"] for each in (opened, fresh)]
    assert np.abs(found[0] - found[1]).max() < 1e-8
    with pytest.raises(adiabat.InputFileError, match="'violet'"):
        opened.learn(people(60, 61).assign(colour="violet"))
    if task == "svc":
        assert "categories" not in str(opened.receipt("DSR-7")["limits"])


def test_categories_that_were_declared_stay(tmp_path):
    values = ["blue", "green", "red", "violet"]
    store = adiabat.create_store(
        tmp_path / "m", id="name", label="good", categories={"colour": values}
    )
    store.learn(people(0, 40))
    store.refresh()
    assert store.settings.n_features == 6


def test_a_store_without_rows_settles_its_categories_anew(tmp_path):
    store = adiabat.create_store(
        tmp_path / "m", id="name", label="good", categories={"colour": None}
    )
    store.learn(people(0, 10).assign(colour="violet"))
    store.forget(store.ids)
    assert store.refresh().entry == 4
    assert b"violet" not in (Path(store.path) / "store.sqlite").read_bytes()
    assert store.learn(people(20, 60)).added == 40
    assert store.verify(retrain=True).ok


# -- the key of the marks ------------------------------------------------------------------------


def test_the_key_of_the_marks_may_stay_outside_of_the_folder(tmp_path):
    key, other, short = tmp_path / "key", tmp_path / "other", tmp_path / "short"
    key.write_bytes(os.urandom(40).hex().encode())
    other.write_bytes(os.urandom(40).hex().encode())
    short.write_bytes(b"too short")
    rows = people(0, 40).drop(columns="colour")
    store = adiabat.create_store(tmp_path / "m", id="name", label="good", suppression_key=key)
    store.learn(rows)
    store.forget("person-00001")
    with pytest.raises(adiabat.IdError, match="were erased"):
        store.learn(rows[1:2])
    assert store.settings.pepper == ""
    content = (Path(store.path) / "store.sqlite").read_bytes()
    assert key.read_bytes() not in content and bytes.fromhex(key.read_text()) not in content
    for given in ({}, {"suppression_key": other}):
        opened = adiabat.open_store(store.path, **given)
        assert opened.verify().ok  # which needs no key
        with pytest.raises(adiabat.StoreError, match="give that key"):
            opened.forget("person-00002")
        with pytest.raises(adiabat.StoreError, match="give that key"):
            opened.learn(rows[1:2])
        assert opened.forget("person-00003", suppress=False, dry_run=True).removed == 1
    with pytest.raises(adiabat.StoreError, match="has 9 bytes"):
        adiabat.open_store(store.path, suppression_key=short)
    again = adiabat.open_store(store.path, suppression_key=key)
    assert again.learn(rows[1:2], allow_erased=True).added == 1
    own = adiabat.create_store(tmp_path / "own", id="name", label="good")
    own.learn(rows)
    with pytest.raises(adiabat.StoreError, match="under one of its own"):
        adiabat.open_store(own.path, suppression_key=key).forget("person-00001")


# -- whatever else a store holds -------------------------------------------------------------------


def settings_with(folder, **fields):
    ((text,),) = query(folder, "SELECT body FROM settings")
    text = json.dumps({**json.loads(text), **fields}, sort_keys=True, separators=(",", ":"))
    query(folder, "UPDATE settings SET body = ?", text)
    reseal(folder, lambda seq, body: body.update(settings=sha256(text)))


SETTINGS = {
    "task that is none": {"task": "sudo"},
    "task of another type": {"task": 7},
    "tolerance that excuses everything": {"parameters": {"tol": 1e300}},
    "parameters that are none": {"parameters": {"shell": "sh"}},
    "kernel of no kind": {"parameters": {"kernel": ["rbf"]}},
    "features without end": {"features": {"sparse": 10**15}},
    "features below zero": {"features": {"sparse": -1}},
    "features of another kind": {"features": 7},
    "columns without a name": {"features": [{"kind": "number"}]},
    "columns of no kind": {"features": [{"name": "x", "kind": "code"}]},
    "categories of numbers": {"categories": {"colour": [1, 2]}},
    "key of the wrong length": {"public_key": "abcd"},
    "pepper of no bytes": {"pepper": "zz"},
    "no pepper": {"pepper": ""},
    "labels of no kind": {"label_kind": "code"},
    "scale of no kind": {"scale": "log"},
    "another field": {"more": 1},
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_a_stranger_raise_an_error_of_the_store(store, case):
    settings_with(store.path, **SETTINGS[case])
    store.close()
    for use in (
        lambda: adiabat.open_store(store.path).model,
        lambda: adiabat.open_store(store.path).forget("person-00001", dry_run=True),
        lambda: adiabat.open_store(store.path).info(),
        lambda: adiabat.open_store(store.path).repair(),
    ):
        with pytest.raises(adiabat.StoreError):
            use()


ENTRIES = {
    "time of no day": lambda body: body.update(time="yesterday"),
    "time without a zone": lambda body: body.update(time="2024-01-01T00:00:00"),
    "time of another type": lambda body: body.update(time=7),
    "no certificate": lambda body: body.pop("certificate"),
    "certificate of text": lambda body: body["certificate"].update(after="fine"),
    "residual of text": lambda body: body["certificate"]["after"].update(residual="0"),
    "samples of text": lambda body: body["certificate"]["after"].update(n_samples="many"),
    "reference of another type": lambda body: body.update(reference=["x"]),
    "operation of another type": lambda body: body.update(operation=None),
    "details of another type": lambda body: body.update(details=[]),
    "counts of text": lambda body: body["details"].update(added="60"),
    "sets of text": lambda body: body.update(sets={"margin": "1", "error": 0, "reserve": 0}),
    "model of another type": lambda body: body.update(model=7),
    "no settings": lambda body: body.pop("settings"),
    "a number of text": lambda body: body.update(next_number="9"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_entries_of_a_stranger_raise_an_error_of_the_store(store, case):
    reseal(store.path, lambda seq, body: ENTRIES[case](body) if seq == 2 else None)
    store.close()
    for use in (
        lambda: adiabat.open_store(store.path).log(),
        lambda: adiabat.open_store(store.path).info(),
    ):
        with pytest.raises(adiabat.StoreDamagedError):
            use()


STATEMENTS = [
    "UPDATE state SET entry = 'two'",
    "UPDATE state SET dataset = 7",
    "UPDATE state SET suppressed = 'x'",
    "UPDATE state SET next_number = 'x'",
    "UPDATE state SET purge = 'x'",
    "DELETE FROM state",
    "DELETE FROM settings",
    "DELETE FROM log",
    "UPDATE settings SET body = x'ff'",
    "UPDATE log SET body = x'ff' WHERE seq = 2",
    "UPDATE log SET hash = 7 WHERE seq = 2",
    "UPDATE records SET label = 7 WHERE number = 3",
    "UPDATE records SET id = x'ff' WHERE number = 3",
    "UPDATE records SET key = 'k' WHERE number = 3",
    "UPDATE records SET weight = 'w' WHERE number = 3",
    "UPDATE records SET features = 9 WHERE number = 3",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_values_of_other_types_raise_an_error_of_the_store(store, statement):
    query(store.path, statement)
    store.close()
    for use in (
        lambda: adiabat.open_store(store.path).model,
        lambda: adiabat.open_store(store.path).forget("person-00003"),
    ):
        with pytest.raises(adiabat.StoreError):
            use()


def test_a_width_that_no_memory_holds_is_refused(tmp_path):
    (tmp_path / "wide.svmlight").write_text("1 2000000000:1 # a\n0 1:1 # b\n")
    store = adiabat.create_store(tmp_path / "m", label="y")
    with pytest.raises(adiabat.InputFileError, match="features up to number 2000000000"):
        store.learn(tmp_path / "wide.svmlight")
    assert len(store) == 0


def test_opening_a_store_lets_go_of_no_lock(store):
    """A file that is closed loses all locks of its process, whoever in it holds them."""
    attempt = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    c.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError:\n    sys.exit(7)"
    )
    command = [sys.executable, "-c", attempt, f"{store.path}/store.sqlite"]
    with store._session.changing("learn") as change:
        assert subprocess.run(command).returncode == 7
        other = adiabat.open_store(store.path)
        assert len(other) == 60
        files.require_plain_files(store.path)
        assert subprocess.run(command).returncode == 7, "the lock is gone"
        change.idle = True
    assert subprocess.run(command).returncode == 0
