# SPDX-License-Identifier: BSD-3-Clause
"""Receipts of erasure: what was erased, when, under which reference, and what that means.

A receipt says what the log and a verification made at its issue bear out, and names what it cannot
know. It does not name the id: after an erasure nothing here could.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from adiabat.errors import StoreDamagedError, StoreError
from adiabat.store import log
from adiabat.store.pages import (
    Markup,
    bullets,
    commands,
    definition_list,
    page,
    paragraph,
    section,
    table,
)
from adiabat.store.session import Session
from adiabat.store.settings import Settings
from adiabat.store.signing import read_signature
from adiabat.store.verification import verify
from adiabat.store.words import counted, printable

#: Operations that put training rows, or their ids, into a file outside the store.
PUBLISHING: Final = ("export", "report", "backup")

_HELD: Final = (
    "What was held fixed (such as gamma, or the categories of a column) was settled from rows that "
    "were there at the time, which may have been the erased rows too; a refresh takes it again "
    "from the rows that are left."
)
_SCOPE: Final = (
    "It speaks of this store's folder alone: not of copies or backups of it, of the files the rows "
    "were learned from, or of exports, reports and backups listed here."
)
_CHAIN: Final = (
    "The log is a chain of hashes. That it was not written anew as a whole shows only against a "
    "signature, or against a hash of its head that was kept elsewhere."
)
_KEY_UNKNOWN: Final = (
    "The log is signed under the key that the store itself names. That proves something only to "
    "those who know the key from elsewhere: give it when the receipt is issued."
)
_CUT: Final = (
    "That the end of the log was not cut off shows only against a hash of its head that was kept "
    "elsewhere."
)


def receipt(session: Session, reference: str, public_key: bytes | None) -> dict[str, Any]:
    """The receipt of all erasures under a reference, as plain JSON."""
    found = verify(session, retrain=False, public_key=public_key)
    if not found.ok:
        raise StoreDamagedError(
            f"{session.folder!r} does not verify ({found.problems[0]}); no receipt can be issued"
        )
    if session.pending_purge():
        with suppress(StoreError):  # then the receipt says so
            session.finish_purge()
    with session.reading() as (connection, head, settings):
        expected = public_key or session.keys.expected(settings)
        pending = session.pending_purge()
        entries = list(log.read_chain(connection))
        marks = {entry.seq: log.read_commitments(connection, entry) for entry in entries}
        signature = read_signature(connection, head)
    erasures = [e for e in entries if e.operation == "forget" and e.body["reference"] == reference]
    if not erasures:
        known = sorted({e.body["reference"] for e in entries if e.operation == "forget"} - {None})
        raise StoreError(
            f"reference {reference!r} erased nothing in {session.folder!r}; its references are "
            f"{', '.join(map(repr, known)) or 'none'}"
        )
    learned = {
        mark: entry for entry in entries if entry.operation == "learn" for mark in marks[entry.seq]
    }
    refreshed = [e for e in entries if e.operation == "refresh" and e.seq > erasures[-1].seq]
    returned = sum(
        int(entry.body["details"].get("returned", 0))
        for entry in entries
        if entry.seq > erasures[0].seq
    )
    return {
        "receipt": "adiabat erasure",
        "version": 1,
        "model": printable(os.path.basename(os.path.abspath(session.folder))),
        "store": entries[0].hash,
        "reference": reference,
        "issued": datetime.now(UTC).isoformat(timespec="seconds"),
        "software": f"adiabat {version('adiabat')}",
        "task": settings.task,
        "erasures": [_erasure(entry, marks[entry.seq], learned, entries) for entry in erasures],
        "erased_ids_let_back_in_since": returned,
        "verified": {
            "checks": list(found.checks),
            "entries": found.entries,
            "rows": found.rows,
            "head": found.head,
            "dataset": head.body["dataset"]["after"],
            "certificate": found.certificate,
            "public_key": settings.public_key,
            "public_key_given": expected is not None,
            "signature": None if signature is None else signature.hex(),
            "file_written_anew": not pending,
        },
        "statement": [
            *_statement(reference, erasures, found.certificate, returned, pending),
            *_signed(settings, expected),
            *(
                f"What is held fixed was taken again from the rows left in entry {e.seq}."
                for e in refreshed[:1]
            ),
        ],
        "limits": [
            _SCOPE,
            _CUT if expected else (_KEY_UNKNOWN if settings.public_key else _CHAIN),
            *([] if refreshed or not _holds(found.certificate, settings) else [_HELD]),
            *_clock(entries),
        ],
    }


def _signed(settings: Settings, expected: bytes | None) -> list[str]:
    if expected is None:
        return []
    return [
        f"Every entry of the log is signed under the key {expected.hex()}, which was given from "
        "outside."
    ]


def _clock(entries: Sequence[log.Entry]) -> list[str]:
    back = [entry.seq for entry in entries if "clock_back" in entry.body]
    if not back:
        return []
    return [
        f"The clock went back before entry {', '.join(map(str, back))}: times in the log may be "
        "wrong."
    ]


def _holds(certificate: dict[str, Any] | None, settings: Settings) -> bool:
    fixed = settings.impute is None and None in settings.categories.values()
    return bool(certificate and (certificate["held_fixed"] or fixed))


def _erasure(
    entry: log.Entry,
    marks: Sequence[bytes],
    learned: dict[bytes, log.Entry],
    entries: Sequence[log.Entry],
) -> dict[str, Any]:
    first = min((learned[mark].seq for mark in marks if mark in learned), default=entry.seq)
    return {
        "entry": entry.seq,
        "hash": entry.hash,
        "time": entry.body["time"],
        "records": [
            {
                "commitment": mark.hex(),
                "learned_in_entry": learned[mark].seq if mark in learned else None,
                "learned": learned[mark].body["time"] if mark in learned else None,
            }
            for mark in marks
        ],
        "kept_from_coming_back": bool(entry.body["details"].get("suppressed")),
        "dataset": entry.body["dataset"],
        "model": entry.body["model"],
        "certificate": entry.body["certificate"]["after"],
        "exports_while_held": [
            {"entry": other.seq, "time": other.body["time"], "operation": other.operation,
             **other.body["details"]}
            for other in entries
            if other.operation in PUBLISHING and first < other.seq < entry.seq
        ],
    }  # fmt: skip


def _statement(
    reference: str,
    erasures: Sequence[log.Entry],
    certificate: dict[str, Any] | None,
    returned: int,
    pending: bool,
) -> list[str]:
    """What is borne out; with erased ids let back in since, only how it was right after."""
    count = sum(entry.body["details"]["removed"] for entry in erasures)
    last = erasures[-1].body
    said = [
        f"{counted(count, 'training row')} {'was' if count == 1 else 'were'} erased under the "
        f"reference {reference}, the last on {_time(last['time'])} UTC."
    ]
    verb, when = "is", ""
    if returned:
        certificate, verb, when = last["certificate"]["after"], "was", "Right after that, "
    if certificate is None:
        said.append(f"{when}the model {verb} without training rows.")
    else:
        held = ", ".join(certificate["held_fixed"]) or "nothing"
        said.append(
            f"{when}the model {verb} the optimum on a dataset of "
            f"{counted(certificate['n_samples'], 'row')} "
            f"that {'did' if returned else 'does'} not contain {'it' if count == 1 else 'them'} "
            "(residual "
            f"{certificate['residual']:.1e}, {certificate['tol']:.1e} allowed). Held fixed: {held}."
        )
    if returned:
        said.append(
            f"Since then {returned} erased id{'s have' if returned != 1 else ' has'} been let back "
            "in on request. Whether from this erasure or from another, the store cannot tell."
        )
    elif pending:
        said.append(
            "The rows, their ids and keys were deleted. What they left in unused parts of the "
            "store's file has NOT been overwritten yet; opening the store again does it."
        )
    else:
        said.append(
            "The rows, their ids and keys were deleted, and the store's file was written anew."
        )
    return [sentence[0].upper() + sentence[1:] for sentence in said]


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def export_lines(content: dict[str, Any]) -> list[str]:
    """The files made while a row was in the model, a sentence each."""
    return [
        f"While a row was in the model, {item['file']} was written ({item['operation']}, entry "
        f"{item['entry']}, {_time(item['time'])} UTC, SHA-256 {item['sha256']})."
        for erasure in content["erasures"]
        for item in erasure["exports_while_held"]
    ]


_TERMS: Final = {
    "optimum": "the model that training gives; there is one for a set of rows and settings",
    "residual": "by how much the conditions of the optimum are missed, recomputed from the rows",
    "held fixed": "settings taken from the rows once, and kept when rows come or go",
    "log": "the list of all operations; each entry holds the hash of the one before",
    "head": "the hash of the last entry; it stands for the whole log",
    "commitment": "a number made from the id and a secret key that was destroyed with the row",
    "digest of the data": "a number made from all rows; it changes when any of them does",
    "signature": "made with a private key; whoever has the public key can check it",
}
_UNSIGNED: Final = (
    "This receipt is not signed. It shows what the log of the store says today; it cannot show "
    "that the log was not written anew as a whole. Keep the head of the log below elsewhere, or "
    "have the model sign its log."
)


def plain_words(content: dict[str, Any]) -> str:
    """What happened, for those who know nothing of models."""
    count = sum(len(erasure["records"]) for erasure in content["erasures"])
    one = count == 1
    when = _time(content["erasures"][-1]["time"])
    said = (
        f"At the request filed as {content['reference']}, {counted(count, 'record')} "
        f"{'was' if one else 'were'} erased from the model “{content['model']}” on {when} UTC. "
    )
    if content["erased_ids_let_back_in_since"]:
        return said + "Erased ids have been let back in since; see below."
    if content["verified"]["certificate"] is None:
        return said + "The model holds no records any more."
    held = ", ".join(content["verified"]["certificate"]["held_fixed"])
    return said + (
        f"The model is now the one that training would give without {'it' if one else 'them'}"
        + (f", with {held} as settled before" if held else "")
        + ". This was not assumed but recomputed when the receipt was issued."
    )


def receipt_page(content: dict[str, Any]) -> str:
    """A receipt as a printable page."""
    verified = content["verified"]
    parts: list[Markup] = [paragraph(plain_words(content), "lead")]
    if not verified["signature"]:
        parts.append(paragraph(_UNSIGNED, "warning"))
    parts += [
        definition_list(
            {
                "Reference": content["reference"],
                "Model": content["model"],
                "Store (hash of its first entry)": content["store"],
                "Task": content["task"],
                "Issued": f"{_time(content['issued'])} UTC, by {content['software']}",
                "Head of the log": f"{verified['head']} (entry {verified['entries']})",
                "Digest of the data": verified["dataset"],
                "Signature of the head": verified["signature"] or "none",
                "Under the key": verified["public_key"] or "none",
                "Erased ids let back in since": content["erased_ids_let_back_in_since"],
            }
        ),
        section("What is stated", bullets(content["statement"])),
        section(
            "What was checked for it", bullets(f"{item}: holds" for item in verified["checks"])
        ),
    ]
    for erasure in content["erasures"]:
        rows = [
            [record["commitment"], record["learned_in_entry"], _time(record["learned"] or "")]
            for record in erasure["records"]
        ]
        exports = [
            [item["entry"], _time(item["time"]), item["operation"], item["file"], item["sha256"]]
            for item in erasure["exports_while_held"]
        ]
        parts.append(
            section(
                f"Erasure in entry {erasure['entry']}, {_time(erasure['time'])} UTC",
                table(["commitment to the id", "learned in entry", "at (UTC)"], rows),
                paragraph(
                    "Exports, reports and backups made while a row was in the model:"
                    if exports
                    else "No export, report or backup was made while a row was in the model."
                ),
                table(["entry", "time (UTC)", "kind", "file", "SHA-256"], exports)
                if exports
                else "",
            )
        )
    parts += [
        section("What this receipt does not say", bullets(content["limits"])),
        section(
            "How anybody can verify it",
            paragraph(
                "With the folder of the model and the free program adiabat; the second line also "
                "trains the model anew and compares:"
            ),
            commands(
                "pip install 'adiabat[cli]'",
                f"adiabat verify FOLDER --retrain --expect-head {verified['head']}"
                + (" --public-key KEY.pem" if verified["public_key"] else ""),
                f"adiabat receipt FOLDER '{content['reference']}'",
            ),
        ),
        section("Terms", definition_list(_TERMS)),
    ]
    return page(f"Receipt of erasure, {content['reference']}", parts)
