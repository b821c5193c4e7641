# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat restore``: a store from a backup, without what was erased since."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import Json, Model, Reference, SigningKey, SuppressionKey
from adiabat.cli.output import show, working
from adiabat.store import restore_store
from adiabat.store.words import counted


def restore(
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="A file of adiabat backup.")],
    model: Model,
    erased_since: Annotated[
        str | None,
        typer.Option(
            "--erased-since",
            metavar="FILE",
            help="Ids erased since: one a line, or a CSV with id, reference and time.",
        ),
    ] = None,
    reference: Reference = None,
    signing_key: SigningKey = None,
    suppression_key: SuppressionKey = None,
    as_json: Json = False,
) -> None:
    """Make the folder MODEL from BACKUP, after a verification."""
    with working(f"Restoring {backup}", as_json):
        done = restore_store(
            backup,
            model,
            erased_since=erased_since,
            reference=reference,
            signing_key=signing_key,
            suppression_key=suppression_key,
        )
    lines = [f"Restored {model} as of entry {done['entry']}, {done['time'][:19]} UTC."]
    if erased_since is None:
        lines.append(
            "Rows erased after that are back, and receipts of their erasure are gone: restore with "
            "--erased-since, or erase them again."
        )
    else:
        lines.append(f"Erased {counted(done['erased_again'], 'row')} again.")
    lines.append(f"{done['entries']} entries, head {done['head']}.")
    show({"model": model, **done}, as_json, lines)
