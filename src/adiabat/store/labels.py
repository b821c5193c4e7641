# SPDX-License-Identifier: BSD-3-Clause
"""Labels of a table: whole numbers, numbers or text, resolved from the first rows."""

from __future__ import annotations

import math
from typing import Any

from adiabat.errors import InputFileError
from adiabat.store.settings import Settings
from adiabat.store.tables import Table
from adiabat.store.tasks import TASKS


def labels_of(
    table: Table, settings: Settings, required: bool = True
) -> tuple[list[Any] | None, str | None]:
    """Labels of a table, None if it need not have any and has none; and how they are taken."""
    kind = settings.label_kind
    name = settings.label_column or "the label"
    if table.targets is not None:
        given: list[Any] = table.targets.tolist()
    else:
        if settings.label_column not in table.columns and not required:
            return None, kind
        given = table.column(name, "the labels").to_pylist()
    parsed = [_number(value) for value in given]
    for row, value in enumerate(given):
        if value is None or value == "" or (parsed[row] is not None and _lost(parsed[row])):
            raise InputFileError(
                f"{table.name!r} has no label in column {name!r} on {table.place(row)}; fill it "
                "in, or remove the row"
            )
    settled = kind is not None
    if kind is None:
        kind = "number"
        if TASKS[settings.task].target == "class":
            whole = all(value is not None and value == int(value) for value in parsed)
            kind = "integer" if whole else "text"
    wanted = {"integer": "a whole number", "number": "a number", "text": "text"}[kind]
    values: list[Any] = []
    for row, value in enumerate(given):
        number = parsed[row]
        if kind == "text":
            values.append(str(value))
        elif number is None or (kind == "integer" and number != int(number)):
            raise InputFileError(
                f"{table.name!r} has the label {value!r} on {table.place(row)}, which is not "
                f"{wanted}{' as in the first rows' if settled else ''}; correct it"
            )
        else:
            values.append(int(number) if kind == "integer" else number)
        if settings.classes is not None and str(values[-1]) not in map(str, settings.classes):
            raise InputFileError(
                f"{table.name!r} has the label {value!r} on {table.place(row)}, which is none of "
                f"the classes {', '.join(map(str, settings.classes))}; correct it"
            )
    return values, kind


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _lost(number: float | None) -> bool:
    return number is not None and not math.isfinite(number)
