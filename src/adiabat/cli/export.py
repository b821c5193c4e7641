# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat export``: the model as a file."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import Json, Model, Out, Reference, SigningKey, Wait, opened
from adiabat.cli.output import show, working


def export(
    model: Model,
    out: Out,
    form: Annotated[
        str, typer.Option("--format", help="adiabat, sklearn (joblib) or onnx (float32).")
    ] = "adiabat",
    reference: Reference = None,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    as_json: Json = False,
) -> None:
    """Write the model to OUT, and the fact to the log: the file holds training rows."""
    with working(f"Exporting to {out}", as_json):
        done = opened(model, wait, signing_key).export(out, format=form, reference=reference)
    show(
        {"out": out, **done},
        as_json,
        [
            f"Wrote {out} ({form}, log entry {done['entry']}).",
            "It holds training rows: when one is forgotten, replace the file.",
        ],
    )
