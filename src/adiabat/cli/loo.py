# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat loo``: exact leave-one-out, and the labels that the other rows contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Column, Table

from adiabat.cli.options import HoldScaling, Json, Model, opened
from adiabat.cli.output import advance, foreign, out, show, working

if TYPE_CHECKING:
    from adiabat.store.analysis import LeftOut


def loo(
    model: Model,
    top: Annotated[int, typer.Option(help="How many suspicious rows to list.", min=0)] = 10,
    hold_scaling: HoldScaling = False,
    as_json: Json = False,
) -> None:
    """Leave each row out in turn, exactly and without a refit; list the most contradicted."""
    with working("Leaving each row out", as_json):
        found = opened(model).leave_one_out(hold_scaling=hold_scaling, n_jobs=-1, progress=advance)
    suspects = found.suspects(top)
    if as_json:
        fields = {"rows": len(found.ids), "score": found.score, "kind": found.kind}
        show({**fields, "suspects": suspects}, as_json, [])
        return
    show({}, as_json, [found.sentence()])
    if suspects:
        show({}, as_json, [_HEADINGS[found.kind]])
        out.print(_table(found, suspects))


_HEADINGS: Final = {
    "class": "Most contradicted by the other rows:",
    "number": "Farthest from what the other rows say:",
    "one class": "Taken for strangers by the other rows:",
}


def _table(found: LeftOut, suspects: list[dict[str, Any]]) -> Table:
    from adiabat.store.report import doubt_text

    labelled = found.labels is not None
    by_how_much = Column("off by" if found.kind == "number" else "margin", justify="right")
    table = Table("id", *(("stored", "predicted") if labelled else ()), by_how_much, box=None)
    for item in suspects:
        margin = doubt_text(item["margin"], found.kind)
        labels = (_brief(item["label"]), _brief(item["prediction"])) if labelled else ()
        table.add_row(*map(foreign, (item["id"], *labels, margin)))
    return table


def _brief(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
