# SPDX-License-Identifier: BSD-3-Clause
"""Marks of erased ids, so that a later file does not bring them back.

A mark is an HMAC of the id, under a key of the store's own or under one that is kept elsewhere. The
id cannot be read from it. Whoever has the key can test a guess against it, which is what it is for;
with the store's own key, that is whoever has the folder.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import sqlalchemy as sa

from adiabat.store.records import AT_ONCE
from adiabat.store.schema import suppressed
from adiabat.store.session import Change


def mark(key: bytes, name: str) -> bytes:
    """The mark of an id."""
    return hmac.digest(key, b"erased\0" + name.encode(), "sha256")


def find_marks(connection: sa.Connection, marks: Sequence[bytes]) -> list[bytes]:
    """Those of the marks that are on the list."""
    found: list[bytes] = []
    for start in range(0, len(marks), AT_ONCE):
        part = marks[start : start + AT_ONCE]
        chosen = sa.select(suppressed.c.mark).where(suppressed.c.mark.in_(part))
        found += connection.execute(chosen).scalars()
    return found


def erased_among(change: Change, names: Sequence[str]) -> list[str]:
    """Those of the ids that are on the list."""
    if change.connection.execute(sa.select(suppressed.c.mark).limit(1)).first() is None:
        return []
    key = change.keys.of_marks(change.settings)
    marks = {mark(key, name): name for name in names}
    return [marks[found] for found in find_marks(change.connection, list(marks))]


def add_marks(change: Change, names: Sequence[str]) -> None:
    """Put ids on the list."""
    key = change.keys.of_marks(change.settings)
    new = {mark(key, name) for name in names}
    new -= set(find_marks(change.connection, list(new)))
    if new:
        change.connection.execute(sa.insert(suppressed), [{"mark": item} for item in sorted(new)])
        change.suppressed.add(new)


def lift_marks(change: Change, names: Sequence[str]) -> None:
    """Take ids off the list."""
    key = change.keys.of_marks(change.settings)
    marks = [mark(key, name) for name in names]
    change.connection.execute(
        sa.delete(suppressed).where(suppressed.c.mark == sa.bindparam("m")),
        [{"m": item} for item in marks],
    )
    change.suppressed.remove(marks)
