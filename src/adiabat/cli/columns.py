# SPDX-License-Identifier: BSD-3-Clause
"""``adiabat columns``: which columns a model has, and a further one."""

from __future__ import annotations

from typing import Annotated

import typer

from adiabat.cli.options import AllowUnsigned, Json, Model, Reference, SigningKey, Wait, opened
from adiabat.cli.outcomes import outcome_lines
from adiabat.cli.output import show, working
from adiabat.store.words import counted


def columns(
    model: Model,
    add: Annotated[
        str | None, typer.Option("--add", help="A column to add; rows that are there have a gap.")
    ] = None,
    category: Annotated[
        bool, typer.Option("--category", help="The column added has text, not numbers.")
    ] = False,
    reference: Reference = None,
    wait: Wait = 10.0,
    signing_key: SigningKey = None,
    allow_unsigned: AllowUnsigned = False,
    as_json: Json = False,
) -> None:
    """List the columns of MODEL, or add one to a model that fills gaps."""
    with working("Reading the columns", as_json):
        store = opened(model, wait, signing_key, allow_unsigned)
        lines: list[str] = []
        if add is not None:
            kind = "category" if category else "number"
            done = store.add_column(add, kind=kind, reference=reference)
            lines = outcome_lines(done)
        settings = store.settings
    features = settings.features
    lines += [f"id: {settings.id_column}"]
    lines += [f"label: {settings.label_column}"] if settings.label_column else []
    lines += [f"weight: {settings.weight_column}"] if settings.weight_column else []
    if isinstance(features, dict):
        lines.append(counted(features["sparse"], "feature"))
    for column in features if isinstance(features, list) else ():
        values = [value for value in column.get("values", ()) if value is not None]
        lines.append(f"{column['kind']}: {column['name']}" + _listed(values))
    lines += [f"ignored: {name}" for name in settings.ignored]
    if features is None:
        lines.append("The first rows say which columns of features there are.")
    found = {
        "id": settings.id_column, "label": settings.label_column, "weight": settings.weight_column,
        "features": features, "ignored": list(settings.ignored), "impute": settings.impute,
    }  # fmt: skip
    show(found, as_json, lines)


def _listed(values: list[str]) -> str:
    return f" ({', '.join(values[:8])}{', …' if len(values) > 8 else ''})" if values else ""
