# SPDX-License-Identifier: BSD-3-Clause
"""Rows out of the body of a request: JSON or CSV, within the limits."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from adiabat.errors import IdError
from adiabat.service.problems import Problem
from adiabat.service.settings import Limits
from adiabat.store.encoding import as_id, encode_questions, text_columns
from adiabat.store.questions import plain_features
from adiabat.store.settings import Settings
from adiabat.store.tables import Table, as_table

JSON: Final = "application/json"
CSV: Final = "text/csv"
_DEEPEST: Final = 32
_FIELD: Final = 100_000


def read_rows(body: bytes, media_type: str, settings: Settings, limits: Limits) -> Table:
    """The rows of a body, as a table of the store's columns."""
    return as_rows(_columns(body, media_type, limits), settings, limits)


def read_questions(
    body: bytes, media_type: str, settings: Settings, limits: Limits
) -> tuple[list[str] | None, Any]:
    """The rows of a body, to be predicted: ids, if they have any, and features."""
    columns = _columns(body, media_type, limits)
    X = plain_features(columns, settings)
    if X is None:
        return encode_questions(as_rows(columns, settings, limits), settings)
    ids = columns.get(settings.id_column)
    return None if ids is None else check_ids(ids, limits), X


def _columns(body: bytes, media_type: str, limits: Limits) -> dict[str, list[Any]]:
    kind = media_type.partition(";")[0].strip().lower()
    if kind == JSON:
        columns, n = _of_json(body, limits)
    elif kind == CSV:
        columns, n = _of_csv(body, limits)
    else:
        raise Problem(415, f"Content-Type must be {JSON} or {CSV}.")
    if n == 0:
        raise Problem(422, "There are no rows in the body.")
    return columns


def read_json(body: bytes, media_type: str) -> Any:
    """A JSON document; Problem if it is none."""
    if media_type.partition(";")[0].strip().lower() != JSON:
        raise Problem(415, f"Content-Type must be {JSON}.")
    try:
        text = body.decode("utf-8")
        found = json.loads(text, parse_constant=_refuse_constant)
        _require_shallow(found)
        return found
    except UnicodeDecodeError:
        raise Problem(400, "The body is not text in UTF-8.") from None
    except RecursionError:
        raise Problem(400, "The body is nested too deeply.") from None
    except ValueError as error:
        raise Problem(400, f"The body is not JSON ({_where(error)}).") from None


def check_ids(names: Sequence[Any], limits: Limits) -> list[str]:
    """Ids as text; Problem 422 if one cannot be an id, or is too long."""
    found = []
    for name in names:
        try:
            found.append(as_id(name))
        except IdError as error:
            raise Problem(422, str(error)) from None
        if len(found[-1]) > limits.id_length:
            raise Problem(422, f"An id has more than {limits.id_length} characters.")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _where(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, line {error.lineno}, column {error.colno}"
    return str(error)[:100]


def _require_shallow(value: Any, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (list, dict)):
                _require_shallow(item, depth + 1)


def _of_json(body: bytes, limits: Limits) -> tuple[dict[str, list[Any]], int]:
    found = read_json(body, JSON)
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or set(found) != {"rows"}:
        raise Problem(422, 'The body must be {"rows": [{"column": value, …}, …]}.')
    _require_rows(len(rows), limits)
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(rows):
        if not isinstance(row, dict) or not row:
            raise Problem(422, f"Row {at + 1} is not an object of columns and values.")
        if at == 0:
            _require_columns(len(row), limits)
            columns = {name: [] for name in row}
        if row.keys() != columns.keys():
            raise Problem(422, f"Row {at + 1} has other columns than row 1.")
        for name, value in row.items():
            if isinstance(value, (list, dict)):
                raise Problem(422, f"Row {at + 1} has a list or an object in column {name!r}.")
            columns[name].append(value)
    return columns, len(rows)


def _of_csv(body: bytes, limits: Limits) -> tuple[dict[str, list[Any]], int]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(400, "The body is not text in UTF-8.") from None
    csv.field_size_limit(_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = next(reader, [])
        _require_columns(len(head), limits)
        if len(set(head)) != len(head):
            raise Problem(422, "A column is there twice.")
        values: list[list[str]] = []
        for row in reader:
            if not row:
                continue
            if len(row) != len(head):
                raise Problem(
                    422,
                    f"Line {reader.line_num} has {len(row)} values, the header has {len(head)} "
                    "columns.",
                )
            values.append(row)
            _require_rows(len(values), limits)
    except csv.Error as error:
        raise Problem(400, f"The body is not CSV (line {reader.line_num}: {error}).") from None
    return {name: [row[at] for row in values] for at, name in enumerate(head)}, len(values)


def _require_rows(n: int, limits: Limits) -> None:
    if n > limits.rows:
        raise Problem(413, f"There are more than {limits.rows} rows; send them in parts.")


def _require_columns(n: int, limits: Limits) -> None:
    if n > limits.columns:
        raise Problem(413, f"There are more than {limits.columns} columns.")


def as_rows(columns: Mapping[str, list[Any]], settings: Settings, limits: Limits) -> Table:
    """Columns of values as a table of the store's columns."""
    text = set(text_columns(settings)) - {settings.id_column, settings.label_column}
    arrays = {}
    for name, values in columns.items():
        try:
            name.encode()
            if name == settings.id_column:
                arrays[name] = pa.array(check_ids(values, limits), pa.string())
            elif name == settings.label_column:
                arrays[name] = pa.array([_label(value) for value in values])
            elif name in text:
                arrays[name] = pa.array(
                    [None if value is None else str(value) for value in values], pa.string()
                )
            else:
                arrays[name] = _numbers(values)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError):
            raise Problem(
                422, f"Column {name[:100]!r} has values of several kinds, or too large."
            ) from None
    return as_table(pa.table(arrays))


def _label(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _numbers(values: list[Any]) -> Any:
    """Numbers as float64, text that is none as it is: the store then says where."""
    found = []
    for value in values:
        if isinstance(value, str):
            try:
                value = float(value) if value.strip() else None
            except ValueError:
                return pa.array([None if item is None else str(item) for item in values])
        found.append(None if value is None else float(value))
    return pa.array(found, pa.float64())
