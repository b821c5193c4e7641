# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat verify``: whether the model is what its log says, and the optimum."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import Json, Model, PublicKey, opened
from adiabat.cli.output import CHECK_FAILED, certificate_sentence, show, working


def verify(
    model: Model,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Also fit anew from the stored rows and compare.")
    ] = False,
    public_key: PublicKey = None,
    expect_head: Annotated[
        str | None,
        typer.Option("--expect-head", help="A head kept elsewhere, which the log must contain."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the files, the log, the rows and the model. Exit code 1 if anything does not hold."""
    with working("Verifying", as_json):
        found = opened(model, public_key=public_key).verify(
            retrain=retrain, expect_head=expect_head
        )
    lines = [f"holds: {said}" for said in found.checks]
    if found.ok and not found.signed:
        lines.append(
            "not signed: that the log was not written anew shows only against a head kept "
            "elsewhere (--expect-head)"
        )
    lines += [f"DOES NOT HOLD: {problem}" for problem in found.problems]
    if found.repairable:
        lines.append(f"Only the model is at fault: adiabat repair {model} fits it again.")
    if found.ok:
        lines.append(certificate_sentence(found.certificate))
        if found.retrained is not None:
            lines.append(
                "A model fitted anew decides the same to "
                f"{found.retrained['largest_difference']:.1e}."
            )
        lines.append(f"{found.entries} entries, head {found.head}.")
    show(found.to_dict(), as_json, lines)
    if not found.ok:
        raise typer.Exit(CHECK_FAILED)
