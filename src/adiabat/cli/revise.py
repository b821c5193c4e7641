# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat revise``: corrections of rows that are in the model."""

from __future__ import annotations

from adiabat.cli.options import (
    AllowUnsigned,
    Delimiter,
    DryRun,
    File,
    Json,
    Model,
    Reference,
    SigningKey,
    Wait,
    opened,
)
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working


def revise(
    model: Model,
    file: File,
    reference: Reference = None,
    delimiter: Delimiter = None,
    dry_run: DryRun = False,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    as_json: Json = False,
) -> None:
    """Correct rows by their ids. FILE has the columns to correct; what it leaves out stays."""
    with working(f"Revising by {file}", as_json):
        done = opened(model, wait, signing_key, allow_unsigned).revise(
            file, reference=reference, delimiter=delimiter, dry_run=dry_run
        )
    show(done.to_dict(), as_json, outcome_lines(done))
