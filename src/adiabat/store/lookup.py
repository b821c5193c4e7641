# SPDX-License-Identifier: BSD-3-Clause
"""Ids that a caller names, against those that the store has or had."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from adiabat.errors import LISTED, IdError
from adiabat.store import log, records
from adiabat.store.encoding import Batch, as_id
from adiabat.store.log import Entry
from adiabat.store.origin import content_mark
from adiabat.store.session import Change
from adiabat.store.settings import Settings
from adiabat.store.signing import Keys
from adiabat.store.suppression import erased_among, find_marks, lift_marks, mark


def names_of(ids: Any) -> list[str]:
    """Ids as the store writes them; IdError if one is named twice."""
    given = list(ids) if hasattr(ids, "__iter__") and not isinstance(ids, str) else [ids]
    names = [as_id(item) for item in given]
    if len(set(names)) != len(names):
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise IdError(f"ids has {_listing(twice)} more than once; name each id once")
    return names


def find_records(change: Change, names: Sequence[str], missing: str) -> list[records.Record]:
    """The records of these ids, in their order."""
    held = records.find(change.connection, names)
    unknown = [name for name in names if name not in held]
    if unknown and missing == "raise":
        _require_not_erased(change, unknown)
        raise IdError(f"ids {_listing(unknown)} are not in the store; check them against its ids")
    return [held[name] for name in names if name in held]


def _require_not_erased(change: Change, unknown: Sequence[str]) -> None:
    """Say when ids that are not there were erased, if they were."""
    erased = erased_among(change, unknown)
    if not erased:
        return
    key = change.keys.of_marks(change.settings)
    wanted = mark(key, erased[0]).hex()
    said = ""
    for entry in log.read_chain(change.connection):
        if wanted in entry.body["details"].get("marks", ()):
            when = entry.body["time"][:19].replace("T", " ")
            said = f", {erased[0]!r} on {when} UTC under the reference {entry.body['reference']}"
    raise IdError(
        f"ids {_listing(erased)} are already erased{said}; nothing of them is left to erase"
    )


def new_ones(change: Change, batch: Batch) -> Batch:
    """A batch without those rows that the store has already, and has the same."""
    held = records.find(change.connection, batch.ids)
    features = records.encode_features(batch.X)
    labels = records.encode_labels(batch.labels, len(batch))
    weights = [1.0] * len(batch) if batch.weights is None else batch.weights.tolist()
    places = []
    for place, name in enumerate(batch.ids):
        old = held.get(name)
        new = (features[place], labels[place], weights[place])
        if old is None or (old.features, old.label, old.weight) != new:
            places.append(place)
    return batch.only(places)


def require_new(change: Change, names: Sequence[str], allow_erased: bool) -> None:
    """Refuse ids that are there, or were erased; lift the marks of those that may come back."""
    held = records.known(change.connection, names)
    if held:
        raise IdError(
            f"ids {_listing([name for name in names if name in held])} are in the store already; "
            "use revise to correct them"
        )
    erased = erased_among(change, names)
    if erased and not allow_erased:
        raise IdError(
            f"ids {_listing(erased)} were erased from this store and are refused; leave them out "
            "of the file, or allow erased ids to come back"
        )
    if erased:
        lift_marks(change, erased)
        change.body["details"]["returned"] = len(erased)


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:LISTED]))
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"


def is_retry(
    connection: sa.Connection,
    settings: Settings,
    keys: Keys,
    entry: Entry,
    names: Sequence[str],
    content: bytes,
) -> bool:
    """Whether a request for the rows of these ids may be the one that an entry is of.

    Where rows of the request have been erased since, what it said of them can no longer be told.
    """
    details, said = entry.body["details"], entry.body["origin"].get("content")
    held = records.find(connection, names)
    marks = {mark(keys.of_marks(settings), name): name for name in names}
    if "marks" in details:
        erased = {bytes.fromhex(found) for found in details["marks"]}
        # Ids besides those erased were missing then; if they are there now, it asks for more.
        besides = [name for found, name in marks.items() if found not in erased]
        return erased <= set(marks) and not any(name in held for name in besides)
    absent = [found for found, name in marks.items() if name not in held]
    if len(find_marks(connection, absent)) < len(absent):
        return False  # it names rows that were never there
    if said is None or absent or any(row.entry > entry.seq for row in held.values()):
        return True
    return hmac.compare_digest(said, content_mark([row.key for row in held.values()], content))
