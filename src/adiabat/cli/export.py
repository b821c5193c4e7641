# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat export``: the model as a file."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import (
    AllowUnsigned,
    Force,
    Json,
    Model,
    Out,
    Reference,
    SigningKey,
    Wait,
    opened,
    require_free,
)
from adiabat.cli.output import show, working


def export(
    model: Model,
    out: Out,
    form: Annotated[
        str, typer.Option("--format", help="adiabat, sklearn (joblib) or onnx (float32).")
    ] = "adiabat",
    with_ids: Annotated[
        bool,
        typer.Option(
            "--ids/--no-ids", help="Whether an adiabat file knows rows by id, or by number."
        ),
    ] = True,
    reference: Reference = None,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the model to OUT, and the fact to the log: erasing does not reach the file."""
    with working(f"Exporting to {out}", as_json):
        require_free(out, force)
        done = opened(model, wait, signing_key, allow_unsigned).export(
            out, format=form, reference=reference, with_ids=with_ids
        )
    show(
        {"out": out, **done},
        as_json,
        [
            f"Wrote {out} ({form}, log entry {done['entry']}).",
            "It holds training rows: when one is forgotten, replace the file (--force)."
            if done["holds_rows"]
            else "It holds no training rows, but was learned from them: when one is forgotten, "
            "replace the file (--force).",
        ],
    )
