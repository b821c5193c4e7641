# SPDX-License-Identifier: BSD-3-Clause
"""The audit log: entries in canonical JSON, each holding the SHA-256 of the one before.

An entry says what was done, when and under which reference, with digests of the data and of the
model before and after. It holds no id and no feature: the ids it speaks of are commitments in a
table of their own, whose digest the entry has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from adiabat.errors import StoreDamagedError
from adiabat.store.digests import canonical, sha256
from adiabat.store.schema import commitments, log

_COMMITMENT_BYTES: Final = 32
#: What the first entry names as its predecessor.
BEGINNING: Final = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One entry: its number, its content, and its hash."""

    seq: int
    body: dict[str, Any]
    hash: str

    @property
    def operation(self) -> str:
        """What was done."""
        return str(self.body["operation"])

    @property
    def by(self) -> str:
        """Who asked for it, if the log says so."""
        return str(self.body.get("origin", {}).get("by", ""))


def append(
    connection: sa.Connection, head: Entry | None, body: dict[str, Any], marks: list[bytes]
) -> Entry:
    """Add an entry after `head`, with the commitments it speaks of."""
    seq = 1 if head is None else head.seq + 1
    joined = b"".join(marks)
    body = {
        **body,
        "seq": seq,
        "previous": BEGINNING if head is None else head.hash,
        "commitments": {"count": len(marks), "sha256": sha256(joined)},
    }
    text = canonical(body)
    entry = Entry(seq, json.loads(text), sha256(text))
    connection.execute(sa.insert(log).values(seq=seq, body=text, hash=entry.hash))
    if marks:
        connection.execute(sa.insert(commitments).values(seq=seq, body=joined))
    return entry


def read_head(connection: sa.Connection) -> Entry:
    """The last entry, its hash checked."""
    row = connection.execute(sa.select(log).order_by(log.c.seq.desc()).limit(1)).first()
    if row is None:
        raise StoreDamagedError("the log of the store is empty; restore it from a copy")
    return _entry(*row)


def read_chain(connection: sa.Connection) -> Iterator[Entry]:
    """All entries from the first, each checked against its hash and its predecessor."""
    previous, expected = BEGINNING, 1
    for row in connection.execute(sa.select(log).order_by(log.c.seq)):
        entry = _entry(*row)
        if entry.seq != expected or entry.body.get("previous") != previous:
            raise StoreDamagedError(
                f"entry {expected} of the log is missing or does not follow the one before; "
                "restore the store from a copy"
            )
        yield entry
        previous, expected = entry.hash, expected + 1


def read_since(connection: sa.Connection, seq: int) -> list[Entry]:
    """The entries after one, in order."""
    rows = connection.execute(sa.select(log).where(log.c.seq > seq).order_by(log.c.seq))
    return [_entry(*row) for row in rows]


def read_commitments(connection: sa.Connection, entry: Entry) -> list[bytes]:
    """The commitments that an entry speaks of, checked against its digest."""
    body = connection.execute(
        sa.select(commitments.c.body).where(commitments.c.seq == entry.seq)
    ).scalar_one_or_none()
    body = b"" if body is None else body
    said = entry.body.get("commitments", {})
    if not isinstance(body, bytes) or said != {
        "count": len(body) // _COMMITMENT_BYTES,
        "sha256": sha256(body),
    }:
        raise StoreDamagedError(
            f"the commitments of entry {entry.seq} of the log are not those it vouches for; "
            "restore the store from a copy"
        )
    return [body[at : at + _COMMITMENT_BYTES] for at in range(0, len(body), _COMMITMENT_BYTES)]


def _entry(seq: Any, text: Any, digest: Any) -> Entry:
    try:
        if sha256(text) != digest:
            raise ValueError
        body = json.loads(text)
        if canonical(body) != text or body["seq"] != seq:
            raise ValueError
        _require_body(body)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreDamagedError(
            f"entry {seq!r} of the log does not match its hash; restore the store from a copy"
        ) from error
    return Entry(seq, body, digest)


_TEXT: Final = (str,)
_TEXT_OR_NONE: Final = (str, type(None))
_NUMBER: Final = (int, float)
#: What an entry must have, and of which type; it may have more.
_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    "seq": (int,), "operation": _TEXT, "reference": _TEXT_OR_NONE, "details": (dict,),
    "time": _TEXT, "software": _TEXT, "settings": _TEXT, "sets": (dict, type(None)),
    "certificate": (dict,), "dataset": (dict,), "model": (dict,), "suppressed": _TEXT,
    "next_number": (int,), "commitments": (dict,), "previous": _TEXT,
}  # fmt: skip
_OF_A_CERTIFICATE: Final[dict[str, tuple[type, ...]]] = {
    "residual": _NUMBER, "gap": _NUMBER, "tol": _NUMBER, "n_samples": (int,), "n_support": (int,),
    "ok": (bool,), "held_fixed": (dict,),
}  # fmt: skip
_OF_DETAILS: Final[dict[str, tuple[type, ...]]] = {
    "added": (int,), "removed": (int,), "revised": (int,), "returned": (int,), "refitted": (int,),
    "suppressed": (bool,), "file": _TEXT, "sha256": _TEXT, "format": _TEXT, "as_of": (int,),
}  # fmt: skip


def _require_body(body: dict[str, Any]) -> None:
    """Raise ValueError or KeyError unless an entry has what is read from it, of the right types."""
    _require_kinds(body, _FIELDS)
    if datetime.fromisoformat(body["time"]).utcoffset() is None:
        raise ValueError("time")
    for name in ("dataset", "model"):
        _require_kinds(body[name], {"before": _TEXT_OR_NONE, "after": _TEXT})
    for side in ("before", "after"):
        if body["certificate"][side] is not None:
            _require_kinds(body["certificate"][side], _OF_A_CERTIFICATE)
    if body["sets"] is not None:
        _require_kinds(body["sets"], dict.fromkeys(("margin", "error", "reserve"), (int,)))
    if "clock_back" in body:
        _require_kinds(body, {"clock_back": _NUMBER})
    if "origin" in body:
        _require_kinds(body, {"origin": (dict,)})
        _require_kinds(body["origin"], dict.fromkeys(body["origin"], _TEXT))
    details = body["details"]
    _require_kinds(details, {name: _OF_DETAILS[name] for name in details if name in _OF_DETAILS})


def _require_kinds(found: dict[str, Any], kinds: dict[str, tuple[type, ...]]) -> None:
    for name, allowed in kinds.items():
        if type(found[name]) not in allowed:
            raise ValueError(name)
