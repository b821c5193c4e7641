# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat receipt``: what was erased under a reference."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from adiabat.cli.options import Force, Json, Model, PublicKey, opened, require_free
from adiabat.cli.output import show, working
from adiabat.errors import InputFileError


def receipt(
    model: Model,
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="As given to forget.")],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="OUT", help="A .json or .html file.")
    ] = None,
    public_key: PublicKey = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Say what was erased under REFERENCE, after a verification."""
    with working("Verifying", as_json):
        from adiabat.store.receipt import export_lines, receipt_page

        store = opened(model, public_key=public_key)
        if out is not None:
            store.require_outside(out)
            require_free(out, force)
        content = store.receipt(reference)
        if out is not None:
            if out.lower().endswith((".html", ".htm")):
                text = receipt_page(content)
            elif out.lower().endswith(".json"):
                text = json.dumps(content, indent=2) + "\n"
            else:
                raise InputFileError(f"{out!r} must end in .json or .html; rename it")
            with open(out, "w", encoding="utf-8") as file:
                file.write(text)
    lines = [*content["statement"], *export_lines(content)]
    lines += [f"Note: {limit}" for limit in content["limits"]]
    if out is not None:
        lines.append(f"Wrote {out}.")
    show(content, as_json, lines)
