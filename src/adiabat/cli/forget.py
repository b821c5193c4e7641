# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat forget``: rows out of the model and out of its folder."""

from __future__ import annotations

from typing import Annotated

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
from adiabat.errors import InputFileError


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
        done = opened(
            model, wait, signing_key, allow_unsigned=allow_unsigned, suppression_key=suppression_key
        ).forget(
            _ids(ids or [], ids_file),
            reference=reference,
            missing=missing,
            suppress=suppress,
            dry_run=dry_run,
        )
    show(done.to_dict(), as_json, outcome_lines(done))


def _ids(given: list[str], path: str | None) -> list[str]:
    if path is not None:
        try:
            with open(path, encoding="utf-8-sig") as file:
                given = given + [line.rstrip("\r\n") for line in file if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise InputFileError(f"{path!r} cannot be read ({error}); one id a line") from error
    if not given:
        raise InputFileError("no ids are given; use --id or --ids-file")
    return given
