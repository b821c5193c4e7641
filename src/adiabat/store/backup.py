# SPDX-License-Identifier: BSD-3-Clause
"""A store as one file, and back: rows that were erased since are erased again.

A backup is a copy of the database as of one entry, written by SQLite from its content, so that no
byte of anything erased before is in it. What was erased after it, it cannot know: the caller keeps
a list of these erasures outside the store, and `restore` applies it before the store is in place.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adiabat.errors import InputFileError, StoreDamagedError, StoreError
from adiabat.store import connection as database
from adiabat.store.changes import erase_again
from adiabat.store.creation import assembled
from adiabat.store.folder import DATABASE
from adiabat.store.session import Change, Session
from adiabat.store.signing import Keys
from adiabat.store.verification import verify


@dataclass(frozen=True)
class Erasure:
    """One line of the list that is kept outside: an id, why, and when."""

    id: str
    reference: str | None = None
    time: datetime | None = None


def write_backup(path: str, change: Change) -> None:
    """The database as of the last entry, as one file."""
    database.copy_into(change.connection.engine, path)


def restore(
    backup: str, path: str, erasures: Sequence[Erasure], reference: str | None, keys: Keys
) -> dict[str, Any]:
    """Make a store of a backup, without the rows erased since; complete, or not at all."""
    with assembled(path) as folder:
        target = os.path.join(folder, DATABASE)
        try:
            shutil.copyfile(backup, target)
            os.chmod(target, 0o600)
        except OSError as error:
            raise StoreError(f"{backup!r} cannot be read ({error})") from error
        session = Session(folder, 0.0, keys, None)
        found = verify(session, retrain=False, public_key=None)
        if not found.ok:
            raise StoreDamagedError(
                f"{backup!r} does not verify ({found.problems[0]}); restore another copy"
            )
        with session.reading() as (_, head, _):
            made = datetime.fromisoformat(head.body["time"])
        since = [item for item in erasures if item.time is None or item.time > made]
        removed = 0
        for reason in dict.fromkeys(item.reference or reference for item in since):
            names = [item.id for item in since if (item.reference or reference) == reason]
            with session.changing("forget", reason) as change:
                removed += erase_again(change, list(dict.fromkeys(names)))
        with session.reading() as (_, now, _):
            pass
        session.close()
    return {
        "entry": head.seq,
        "time": head.body["time"],
        "head": now.hash,
        "entries": now.seq,
        "listed": len(erasures),
        "erased_again": removed,
    }


def read_erasures(path: str) -> list[Erasure]:
    """The list of a file: one id a line, or a CSV with the columns id, reference and time.

    Errors name lines, never what is in them: that may be personal.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [(reader.line_num, row) for reader in [csv.reader(file)] for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputFileError(f"{path!r} cannot be read ({error}); one id a line") from error
    lines = [(number, row) for number, row in lines if any(cell.strip() for cell in row)]
    columns = ["id"]
    if lines and "id" in lines[0][1]:
        columns = lines.pop(0)[1]
    found = []
    for number, row in lines:
        if len(row) != len(columns):
            raise InputFileError(
                f"{path!r} has {len(row)} values in line {number}, and {len(columns)} are "
                "expected; give one id a line, or a CSV whose header names id, reference and time"
            )
        cells = dict(zip(columns, row, strict=True))
        found.append(
            Erasure(cells["id"], cells.get("reference") or None, _time(path, number, cells))
        )
    return found


def _time(path: str, number: int, cells: dict[str, str]) -> datetime | None:
    text = cells.get("time", "").strip()
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputFileError(
            f"{path!r} has a time in line {number} that is not like 2026-03-01T12:00:00+00:00"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
