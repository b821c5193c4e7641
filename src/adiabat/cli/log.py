# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat log``: what was done to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from adiabat.cli.options import Json, Model, opened
from adiabat.cli.output import foreign, out, show, working

if TYPE_CHECKING:
    from adiabat.store.log import Entry


def log(model: Model, as_json: Json = False) -> None:
    """Show the log, its chain checked."""
    with working("Reading the log", as_json):
        entries = opened(model).log()
    if as_json:
        show({"entries": [{**entry.body, "hash": entry.hash} for entry in entries]}, as_json, [])
        return
    table = Table("entry", "time", "operation", "rows", "support", "reference", "hash", box=None)
    for entry in entries:
        table.add_row(*map(foreign, _cells(entry)))
    out.print(table)


def _cells(entry: Entry) -> list[str]:
    body: dict[str, Any] = entry.body
    after = body["certificate"]["after"] or {}
    changed = body["details"]
    sign = "".join(
        f"{mark}{changed[name]} "
        for name, mark in (("added", "+"), ("removed", "−"), ("revised", "~"))
        if changed.get(name)
    )
    if "clock_back" in body:
        sign += f"(the clock went back {body['clock_back']:g} s)"
    return [
        str(entry.seq),
        body["time"][:19].replace("T", " "),
        f"{body['operation']} {sign}".strip(),
        str(after.get("n_samples", 0)),
        str(after.get("n_support", 0)),
        body["reference"] or "",
        entry.hash[:12],
    ]
