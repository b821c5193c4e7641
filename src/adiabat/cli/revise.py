# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat revise``: corrections of rows that are in the model."""

from __future__ import annotations

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
    Wait,
    opened,
    source,
)
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working


def revise(
    model: Model,
    file: FileOrQuery = None,
    reference: Reference = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sql: Sql = None,
    dry_run: DryRun = False,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    as_json: Json = False,
) -> None:
    """Correct rows by their ids. FILE has the columns to correct; what it leaves out stays."""
    with working(f"Revising by {file or 'the query'}", as_json):
        rows = source(file, sql)
        done = opened(model, wait, signing_key, allow_unsigned).revise(
            rows, reference=reference, delimiter=delimiter, decimal=decimal, dry_run=dry_run
        )
    show(done.to_dict(), as_json, outcome_lines(done))
