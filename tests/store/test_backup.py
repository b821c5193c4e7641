# SPDX-License-Identifier: BSD-3-Clause
"""Backups and restores: what was erased since stays erased, and older copies show."""

import errno
import fcntl
import os
import shutil
from datetime import datetime, timedelta

import pytest

import adiabat
from adiabat import InputFileError, StoreDamagedError, StoreError
from store_tools import people


@pytest.fixture
def restored(store, tmp_path):
    """A backup of Monday, an erasure, and a function that restores the one after the other."""
    done = store.backup(tmp_path / "monday", reference="nightly")
    store.learn(people(60, 61))
    store.forget(["person-00003", "person-00060"], reference="DSR-2")

    def restore(**arguments):
        found = adiabat.restore_store(tmp_path / "monday", tmp_path / "again", **arguments)
        return found, adiabat.open_store(tmp_path / "again")

    restore.done = done
    return restore


def test_a_restored_store_is_the_one_backed_up(restored, store):
    found, again = restored()
    assert again.verify(retrain=True).ok and again.ids == people(0, 60).name.tolist()
    assert found["erased_again"] == 0 and found["entry"] == restored.done["entry"] - 1
    assert os.stat(os.path.join(again.path, "store.sqlite")).st_mode & 0o077 == 0


def test_what_was_erased_since_is_erased_again(restored, store, tmp_path):
    made = datetime.fromisoformat(store.log()[restored.done["entry"] - 1].body["time"])
    earlier, later = made - timedelta(days=1), made + timedelta(seconds=1)
    (tmp_path / "list.csv").write_text(
        "id,reference,time\n"
        f"person-00001,DSR-1,{earlier.isoformat()}\n"  # erased before, and let back in
        f"person-00003,DSR-2,{later.isoformat()}\n"
        "person-00060,DSR-2,\n"  # learned after the backup
    )
    found, again = restored(erased_since=tmp_path / "list.csv")
    assert found["erased_again"] == 1 and "person-00003" not in again.ids
    assert "person-00001" in again.ids
    assert again.verify(retrain=True).ok
    assert again.receipt("DSR-2")["erasures"][0]["kept_from_coming_back"]
    with pytest.raises(adiabat.IdError, match="were erased"):
        again.learn(people(60, 61))
    with open(os.path.join(again.path, "store.sqlite"), "rb") as file:
        assert b"person-00003" not in file.read()


def test_a_receipt_lists_the_backups_that_hold_the_row(restored, store):
    [erasure] = store.receipt("DSR-2")["erasures"]
    assert [item["operation"] for item in erasure["exports_while_held"]] == ["backup"]


def test_an_older_copy_does_not_have_the_expected_head(store, tmp_path):
    shutil.copytree(store.path, tmp_path / "yesterday")
    store.forget("person-00003")
    head = store.verify().head
    old = adiabat.open_store(tmp_path / "yesterday")
    assert old.verify().ok
    found = old.verify(expect_head=head)
    assert not found.ok and "an older copy" in found.problems[0] and not found.repairable
    store.export(tmp_path / "file")
    assert store.verify(expect_head=head.upper()).ok
    with pytest.raises(ValueError, match="64 hex digits"):
        store.verify(expect_head="abc")


def test_a_damaged_backup_is_refused_and_leaves_nothing(restored, tmp_path):
    with open(tmp_path / "monday", "r+b") as file:
        file.seek(4096)
        file.write(b"damage" * 4096)
    with pytest.raises(StoreDamagedError):
        restored()
    assert not (tmp_path / "again").exists()
    assert not [name for name in os.listdir(tmp_path) if "init-" in name]


def test_what_cannot_be_restored_is_said(restored, tmp_path, store):
    with pytest.raises(StoreError, match="cannot be read"):
        adiabat.restore_store(tmp_path / "nothing", tmp_path / "again")
    with pytest.raises(StoreError, match="already and not empty"):
        adiabat.restore_store(tmp_path / "monday", store.path)
    for text, said in (
        ("a,b\n", "2 values in line 1, and 1 are expected"),
        ("id,time\nsecret,yesterday\n", "a time in line 2"),
    ):
        (tmp_path / "list.csv").write_text(text)
        with pytest.raises(InputFileError, match=said) as refused:
            restored(erased_since=tmp_path / "list.csv")
        assert "secret" not in str(refused.value)


def test_a_store_that_learned_nothing_can_be_backed_up(tmp_path):
    adiabat.create_store(tmp_path / "m", label="y").backup(tmp_path / "b")
    adiabat.restore_store(tmp_path / "b", tmp_path / "n")
    assert adiabat.open_store(tmp_path / "n").verify().ok


def test_an_unsigned_store_has_no_signatures_that_hold(store):
    found = store.verify()
    assert found.ok and not found.signed and "signatures" not in found.checks


def test_a_closed_store_is_closed(store):
    store.close()
    for use in (lambda: store.predict(people(0, 3)), lambda: store.model, lambda: len(store),
                lambda: store.learn(people(60, 61)), store.verify, store.info):  # fmt: skip
        with pytest.raises(StoreError, match="was closed; open it again"):
            use()


def test_a_file_system_without_locks_is_said(store, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match=r"cannot lock files.*local disk"):
        store.learn(people(60, 61))


def test_a_journal_that_cannot_be_read_is_said(store, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("adiabat.store.folder.open", refuse, raising=False)
    with pytest.raises(StoreError, match=r"cannot be read \(Permission denied\)"):
        adiabat.open_store(store.path)
