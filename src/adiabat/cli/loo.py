# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat loo``: exact leave-one-out, and the labels that the other rows contradict."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import Json, Model, opened
from adiabat.cli.output import show, working


def loo(
    model: Model,
    top: Annotated[int, typer.Option(help="How many suspicious rows to list.", min=0)] = 10,
    as_json: Json = False,
) -> None:
    """Leave each row out in turn, exactly and without a refit; list the most contradicted."""
    with working("Leaving each row out", as_json):
        found = opened(model).leave_one_out()
    suspects = found.suspects(top)
    lines = [found.sentence()]
    if suspects:
        lines.append("Most contradicted by the other rows (id, stored, predicted, margin):")
    for item in suspects:
        margin = "" if item["margin"] is None else f"{item['margin']:.3f}"
        lines.append(f"  {item['id']}  {item['label']}  {item['prediction']}  {margin}")
    show(
        {"rows": len(found.ids), "score": found.score, "kind": found.kind, "suspects": suspects},
        as_json,
        lines,
    )
