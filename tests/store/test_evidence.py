# SPDX-License-Identifier: BSD-3-Clause
"""Signatures, the chain, the lock, and stores of other versions."""

import multiprocessing
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import adiabat
from adiabat.store import connection as database
from adiabat.store import migrations, schema
from adiabat.store.digests import SetDigest
from store_tools import people, write_keys

SOAKS = Path(__file__).parent / "soaks"
SIGNALS = ("kill", "term", "int", "stop")


def test_a_signed_log_needs_the_key_and_shows_it(tmp_path):
    private, public = write_keys(tmp_path, "ours")
    other, other_public = write_keys(tmp_path, "other")
    frame = people(0, 20).drop(columns="colour")
    store = adiabat.create_store(tmp_path / "m", id="name", label="good", signing_key=private)
    store.learn(frame)
    assert store.verify(public_key=public).ok
    assert not store.verify(public_key=other_public).ok
    for signing_key in (None, other):
        with pytest.raises(adiabat.StoreError, match="give that key"):
            adiabat.open_store(store.path, signing_key=signing_key).forget("person-00001")
    assert store.forget("person-00001", reference="R").entry == 3
    assert len(store.receipt("R")["verified"]["signature"]) == 128
    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        connection.execute("DELETE FROM signatures WHERE seq = 2")
    assert "entry 2 is not signed" in str(store.verify().problems)


@pytest.mark.parametrize(
    "tampering",
    [
        "DELETE FROM log WHERE seq = 2",
        "DELETE FROM log WHERE seq = 3",
        "UPDATE log SET body = replace(body, 'DSR-1', 'DSR-2')",
        "UPDATE settings SET body = replace(body, '5.0', '6.0')",
        "UPDATE records SET weight = 2.0 WHERE number = 7",
        "UPDATE records SET id = 'person-x' WHERE number = 7",
        "DELETE FROM records WHERE number = 7",
        "UPDATE state SET model = zeroblob(10)",
        "UPDATE state SET next_number = 7",
        "DELETE FROM suppressed",
        "DELETE FROM commitments WHERE seq = 2",
        "INSERT INTO commitments VALUES (9, zeroblob(32))",
        "INSERT INTO signatures VALUES (3, zeroblob(32), zeroblob(64))",
        "CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM log; END",
        "CREATE VIEW v AS SELECT * FROM log",
    ],
)
def test_tampering_is_noticed(store, tampering):
    store.forget("person-00001", reference="DSR-1")
    assert store.verify().ok
    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        connection.execute(tampering)
    connection.close()
    try:
        noticed = not adiabat.open_store(store.path).verify().ok
    except adiabat.StoreDamagedError:
        noticed = True
    assert noticed


def test_the_digest_of_a_set_knows_no_order():
    one, other = SetDigest(), SetDigest()
    one.add([b"a", b"b", b"c"])
    one.remove([b"b"])
    other.add([b"c"])
    other.add([b"a"])
    assert one.hexdigest() == other.hexdigest()
    other.add([b"a"])
    assert one.hexdigest() != other.hexdigest()
    assert SetDigest(one.to_bytes()).hexdigest() == one.hexdigest()


def _hold(folder, ready):
    from adiabat.store.lock import writing

    with writing(folder, "learn", 0.0):
        ready.set()
        time.sleep(30)


def test_a_second_writer_is_told_who_holds_the_lock(store):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(store.path, ready))
    holder.start()
    assert ready.wait(60)
    impatient = adiabat.open_store(store.path, wait=0.05)
    said = rf"process {holder.pid} on .*\(learn, since"
    with pytest.raises(adiabat.StoreLockedError, match=said):
        impatient.forget("person-00001")
    assert len(impatient) == 60 and impatient.verify().ok  # readers do not wait
    holder.kill()
    holder.join()
    assert adiabat.open_store(store.path).forget("person-00001").removed == 1


def test_writers_at_once_wait_for_each_other(store):
    code = (
        "import sys, adiabat; from store_tools import people; start = int(sys.argv[2])\n"
        "store = adiabat.open_store(sys.argv[1], wait=60)\n"
        "for k in range(start, start + 6): store.learn(people(k, k + 1))"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, store.path, str(start)],
            cwd=Path(__file__).parents[1],
        )
        for start in (100, 200)
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    found = store.verify(retrain=True)
    assert found.ok and found.rows == 72 and found.entries == 14


def test_an_older_schema_is_brought_up_to_date_or_left_alone(store, monkeypatch):
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
    with pytest.raises(adiabat.StoreError, match="no release has written"):
        adiabat.open_store(store.path)
    assert not list(Path(store.path).glob("store-before*"))
    step = migrations.Step("labels are written twice", lambda connection: None)
    monkeypatch.setitem(migrations.STEPS, 1, step)
    with pytest.warns(UserWarning, match="from schema version 1 to 2: labels are written twice"):
        opened = adiabat.open_store(store.path)
    engine = database.connect(store.path)
    with database.transaction(engine) as connection:
        assert database.require_ours(connection, store.path) == 2
    assert opened.verify().ok
    former = Path(store.path) / "store-before-schema-1.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "SCHEMA_VERSION", 1)
        adiabat.restore_store(former, Path(store.path).parent / "as-it-was")
        assert adiabat.open_store(Path(store.path).parent / "as-it-was").head() == opened.head()
    opened.forget("person-00001", reference="gone from the copy, too")
    assert not former.exists()


def test_a_step_that_fails_leaves_the_store_as_it_was(store, monkeypatch):
    def broken(connection):
        connection.exec_driver_sql("DELETE FROM records")
        raise OSError("no room")

    monkeypatch.setitem(migrations.STEPS, 1, migrations.Step("nothing good", broken))
    with monkeypatch.context() as patch:
        patch.setattr(schema, "SCHEMA_VERSION", 2)
        with pytest.warns(UserWarning), pytest.raises(OSError, match="no room"):
            adiabat.open_store(store.path)
    assert adiabat.open_store(store.path).verify(retrain=True).ok


GOLDEN = sorted((Path(__file__).parent / "golden").glob("v*"))


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda path: path.name)
def test_a_store_of_every_version_opens(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "model")
    store = adiabat.open_store(tmp_path / "model")
    found = store.verify(retrain=True)
    assert found.ok, found.problems
    assert store.learn(people(100, 105)).added == 5
    assert store.forget("person-00002", reference="golden").removed == 1
    assert store.verify(retrain=True).ok


def test_there_is_a_golden_store_of_this_version():
    assert [path.name for path in GOLDEN] == [f"v{n}" for n in range(1, schema.SCHEMA_VERSION + 1)]


@pytest.mark.rotates(3)
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        *(("crash.py", ["--signal", name, "--times", "4"]) for name in SIGNALS),
        ("crowd.py", ["--operations", "160"]),
        ("flips.py", ["--flips", "160"]),
        ("failing_io.py", ["--every", "61"]),
    ],
)
def test_a_short_soak(script, arguments):
    if script == "failing_io.py" and (sys.platform != "linux" or not shutil.which("cc")):
        pytest.skip("needs Linux and a C compiler")
    if sys.platform == "win32":
        pytest.skip("needs fork")
    done = subprocess.run(
        [sys.executable, str(SOAKS / script), *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
