# SPDX-License-Identifier: BSD-3-Clause
"""What the columns of a file could be, and all that stands in the way of learning it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from adiabat.store.tables import Table
from adiabat.store.words import counted, did_you_mean

# A column of text with more different values than this, and hardly one of them twice, names rows.
_MOST_CATEGORIES: Final = 50


@dataclass
class Proposal:
    """Columns of a file: what each is taken for, and why it cannot be learned as it is."""

    id: str | None = None
    #: Name to ``id``, ``label``, ``weight``, ``number``, ``date``, ``category`` or ``ignored``.
    kinds: dict[str, str] = field(default_factory=dict)
    #: Name to a few words about it.
    notes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def names(self, kind: str) -> list[str]:
        """Columns of one kind."""
        return [name for name, found in self.kinds.items() if found == kind]


def propose(
    table: Table,
    id: str | None,
    label: str | None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    needs_label: bool = True,
) -> Proposal:
    """Look at a table once and say what its columns are, and everything that is wrong with them."""
    found = Proposal()
    for name, role in ((id, "id"), (label, "label"), (weight, "weight")):
        if name is not None and name not in table.columns:
            found.problems.append(
                f"there is no column {name!r} (the {role})" + did_you_mean(name, table.columns)
            )
    for name in (*ignore, *categorical):
        if name not in table.columns:
            found.problems.append(
                f"there is no column {name!r}" + did_you_mean(name, table.columns)
            )
    found.id = id or _id_of(table, {label, weight, *ignore})
    if found.id is None:
        found.problems.append(
            "no column can be the ids: none has a different value in every row; add one, and name "
            "it with --id"
        )
    for name, column in table.columns.items():
        roles = {found.id: "id", label: "label", weight: "weight"}
        if name in roles:
            found.kinds[name] = roles[name]
        elif name in ignore:
            found.kinds[name] = "ignored"
        elif name in categorical:
            found.kinds[name] = "category"
        else:
            found.kinds[name], found.notes[name] = _kind_of(column)
        if name in table.columns and found.kinds[name] in ("number", "category", "date"):
            gaps = sum(not value and value != 0 for value in column.to_pylist())
            if gaps:
                note = found.notes.get(name, "")
                found.notes[name] = f"{note}{', ' if note else ''}{counted(gaps, 'gap')}"
    _check_ids(table, found)
    if needs_label and label is None:
        found.problems.append("no column of labels is named; name it with --label")
    if label in table.columns:
        _check_labels(table, found, str(label))
    if not any(found.names(kind) for kind in ("number", "category", "date")):
        found.problems.append("no column of features is left")
    return found


def _id_of(table: Table, taken: set[Any]) -> str | None:
    """The column that is named as ids are, or the first that has another value in every row."""
    free = [name for name in table.columns if name not in taken]
    named = [name for name in free if name.lower() == "id"]
    for name in named + free:
        column = table.columns[name]
        values = column.to_pylist()
        if pa.types.is_floating(column.type) or None in values or "" in values:
            continue
        if len(set(values)) == len(values):
            return name
    return None


def _kind_of(column: Any) -> tuple[str, str]:
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date", "days since 1970"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number", ""
    if pa.types.is_boolean(kind):
        return "number", "true is 1"
    values = [str(value) for value in column.to_pylist() if value not in (None, "")]
    different = set(values)
    if not values:
        return "ignored", "empty"
    if len(different) > _MOST_CATEGORIES and len(different) > len(values) / 2:
        return "ignored", f"{counted(len(different), 'different text')}"
    numbers = sum(_is_number(value) for value in values)
    if numbers > 0.9 * len(values):
        strange = next((value for value in values if not _is_number(value)), None)
        if strange is None:
            return "category", f"numbers written as text, such as {values[0]!r}; see --decimal"
        return "category", f"mostly numbers, but not {strange!r}: correct it, or ignore the column"
    return "category", counted(len(different), "value")


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _check_ids(table: Table, found: Proposal) -> None:
    if found.id not in table.columns:
        return
    values = table.columns[found.id].to_pylist()
    empty = sum(value in (None, "") for value in values)
    if empty:
        found.problems.append(f"{counted(empty, 'row')} without an id in {found.id!r}")
    twice = [value for value, n in Counter(values).items() if n > 1 and value not in (None, "")]
    if twice:
        found.problems.append(
            f"{counted(len(twice), 'id')} in {found.id!r} more than once, such as {twice[0]!r}"
        )


def _check_labels(table: Table, found: Proposal, label: str) -> None:
    values = table.columns[label].to_pylist()
    empty = sum(value in (None, "") for value in values)
    if empty:
        found.problems.append(
            f"{counted(empty, 'row')} without a label in {label!r}: fill them in, or take the rows "
            "out"
        )
    different = sorted({str(value) for value in values if value not in (None, "")})
    shown = ", ".join(different[:6]) + (", …" if len(different) > 6 else "")
    found.notes[label] = f"{counted(len(different), 'value')}: {shown}"
