# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat learn``: rows that are not in the model yet."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import (
    AllowUnsigned,
    Delimiter,
    DryRun,
    File,
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


def learn(
    model: Model,
    file: File,
    reference: Reference = None,
    delimiter: Delimiter = None,
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
    with working(f"Learning {file}", as_json):
        done = opened(
            model, wait, signing_key, allow_unsigned=allow_unsigned, suppression_key=suppression_key
        ).learn(
            file,
            reference=reference,
            delimiter=delimiter,
            allow_erased=allow_erased,
            dry_run=dry_run,
        )
    show(done.to_dict(), as_json, outcome_lines(done))
