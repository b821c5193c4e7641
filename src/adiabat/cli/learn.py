# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat learn``: rows that are not in the model yet."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import (
    AllowUnsigned,
    Decimal,
    Delimiter,
    DryRun,
    FileOrQuery,
    Json,
    Model,
    Reference,
    SigningKey,
    Sql,
    SuppressionKey,
    Wait,
    opened,
    source,
)
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working


def learn(
    model: Model,
    file: FileOrQuery = None,
    reference: Reference = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sql: Sql = None,
    skip_known: Annotated[
        bool,
        typer.Option("--skip-known", help="Pass over rows that are there already and the same."),
    ] = False,
    allow_erased: Annotated[
        bool, typer.Option("--allow-erased", help="Let erased ids come back.")
    ] = False,
    dry_run: DryRun = False,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    suppression_key: SuppressionKey = None,
    as_json: Json = False,
) -> None:
    """Learn the rows of FILE: all of them, or none."""
    with working(f"Learning {file or 'the query'}", as_json):
        rows = source(file, sql)
        done = opened(
            model, wait, signing_key, allow_unsigned=allow_unsigned, suppression_key=suppression_key
        ).learn(
            rows,
            reference=reference,
            delimiter=delimiter,
            decimal=decimal,
            skip_known=skip_known,
            allow_erased=allow_erased,
            dry_run=dry_run,
        )
    show(done.to_dict(), as_json, outcome_lines(done))
