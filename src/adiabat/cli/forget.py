# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat forget``: rows out of the model and out of its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from adiabat.cli.options import (
    AllowUnsigned,
    DryRun,
    Json,
    Model,
    Reference,
    SigningKey,
    SuppressionKey,
    Wait,
    opened,
)
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working
from adiabat.errors import LISTED, InputFileError
from adiabat.store.words import counted

if TYPE_CHECKING:
    from adiabat.store.store import Store


def forget(
    model: Model,
    ids: Annotated[list[str] | None, typer.Option("--id", help="The id of a row.")] = None,
    ids_file: Annotated[
        str | None, typer.Option("--ids-file", help="A file with one id a line.")
    ] = None,
    reference: Reference = None,
    missing: Annotated[
        str, typer.Option(help="What to do about unknown ids: raise or ignore.")
    ] = "raise",
    suppress: Annotated[
        bool, typer.Option(help="Refuse these ids when a later file brings them.")
    ] = True,
    dry_run: DryRun = False,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    suppression_key: SuppressionKey = None,
    as_json: Json = False,
) -> None:
    """Erase rows: the model is then as if they had never been there."""
    with working("Forgetting", as_json):
        store = opened(
            model, wait, signing_key, allow_unsigned=allow_unsigned, suppression_key=suppression_key
        )
        done = store.forget(
            _ids(store, ids or [], ids_file, missing),
            reference=reference,
            missing=missing,
            suppress=suppress,
            dry_run=dry_run,
        )
    lines = outcome_lines(done)
    if reference is None and done.reference is not None:
        lines.append(f"For a receipt: adiabat receipt {model} {done.reference}")
    show(done.to_dict(), as_json, lines)


def _ids(store: Store, given: list[str], path: str | None, missing: str) -> list[str]:
    if path is not None:
        given = given + _ids_of_file(store, path, missing)
    if not given:
        raise InputFileError("no ids are given; use --id or --ids-file")
    return given


def _ids_of_file(store: Store, path: str, missing: str) -> list[str]:
    """The ids of a file, each once. Errors name lines: what is in them may be personal."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = [(number, line.rstrip("\r\n")) for number, line in enumerate(file, 1)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"{path!r} cannot be read ({error}); one id a line") from error
    lines = [(number, line) for number, line in lines if line.strip()]
    unknown = set(store.unknown(line for _, line in lines))
    if lines and lines[0][1] in unknown and lines[0][1].strip('"') == store.settings.id_column:
        lines = lines[1:]
    strange = [number for number, line in lines if line in unknown]
    if strange and missing == "raise":
        shown = ", ".join(map(str, strange[:LISTED])) + (" ..." if strange[LISTED:] else "")
        raise InputFileError(
            f"{path!r} has {counted(len(strange), 'line')} that name no row of the model (line "
            f"{shown}). Give one id a line and no other column, or pass over unknown ids with "
            "--missing ignore"
        )
    return list(dict.fromkeys(line for _, line in lines))
