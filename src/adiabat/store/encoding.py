# SPDX-License-Identifier: BSD-3-Clause
"""Tables into rows of numbers: ids, features with one-hot categories, labels and weights.

The first rows of a store fix which columns are features and what the categories are; from then on
a file has those columns, in any order, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from adiabat.errors import IdError, InputFileError
from adiabat.estimators.files.reading import OF_MOMENTS
from adiabat.inputs import require_csr, require_memory, require_width
from adiabat.store.labels import labels_of
from adiabat.store.settings import Settings
from adiabat.store.tables import Table
from adiabat.store.tasks import TASKS, Rows, Task
from adiabat.store.words import did_you_mean
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Batch:
    """Rows ready to be learned. `labels` is None where the task or the file has none."""

    ids: list[str]
    X: Any
    labels: list[Any] | None
    weights: FloatArray | None
    settings: Settings

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, places: list[int]) -> Batch:
        """The rows at these places."""
        labels = None if self.labels is None else [self.labels[i] for i in places]
        weights = None if self.weights is None else self.weights[places]
        ids = [self.ids[i] for i in places]
        return Batch(ids, self.X[places], labels, weights, self.settings)


def encode(table: Table, settings: Settings) -> Batch:
    """Rows of a table, to be learned; `Batch.settings` has what was resolved from the first."""
    ids = _ids(table, settings)
    features = settings.features
    if features is None:
        features = _first_columns(table, settings)
    _require_form(table, features)
    kind, values = settings.label_kind, None
    if TASKS[settings.task].target is not None:
        values, kind = labels_of(table, settings)
    settings = with_values(table, settings.resolved(features, kind))
    if "sparse" not in features:
        _refuse_extra(table, settings)
    X = _features(table, settings)
    return Batch(ids, X, values, _weights(table, settings), settings)


def encode_questions(table: Table, settings: Settings) -> tuple[list[str] | None, Any]:
    """Rows to be predicted: ids, if they have any, and features; other columns are passed over."""
    _require_form(table, settings.features)
    ids = table.columns.get(_id_column(table, settings))
    return None if ids is None else list(map(str, ids.to_pylist())), _features(table, settings)


def encode_arrays(X: Any, y: Any, ids: Any, sample_weight: Any, settings: Settings) -> Batch:
    """Rows of an array whose columns have no names."""
    if sp.issparse(X):
        return _encode_sparse(sp.csr_array(require_csr(X)), y, ids, sample_weight, settings)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; pass rows and columns")
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(f"X has {X[row, column]} in row {row}, column {column}; leave it out")
    names = [as_id(item) for item in ids]
    if len(names) != len(X):
        raise ValueError(f"ids has {len(names)} entries, X has {len(X)} rows")
    columns: dict[str, Any] = {settings.id_column: pa.array(names, pa.string())}
    expected = settings.features or [{"name": f"x{j}", "kind": "number"} for j in range(X.shape[1])]
    if isinstance(expected, dict) or len(expected) != X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, the store has {settings.n_features}")
    for j, column in enumerate(expected):
        if column["kind"] != "number":
            raise ValueError("X is an array, the store has categories; pass a data frame or a file")
        columns[column["name"]] = pa.array(X[:, j])
    columns.update(_given_columns(y, sample_weight, settings))
    return encode(Table("data", "frame", len(X), columns), settings)


def _encode_sparse(X: Any, y: Any, ids: Any, sample_weight: Any, settings: Settings) -> Batch:
    columns = {settings.id_column: pa.array([as_id(item) for item in ids], pa.string())}
    columns.update(_given_columns(y, sample_weight, settings))
    X.sum_duplicates()
    for name, column in columns.items():
        if len(column) != X.shape[0]:
            raise ValueError(f"{name} has {len(column)} entries, X has {X.shape[0]} rows")
    return encode(Table("data", "frame", X.shape[0], columns, X.astype(np.float64)), settings)


def _given_columns(y: Any, sample_weight: Any, settings: Settings) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if y is not None and settings.label_column:
        columns[settings.label_column] = pa.array(np.asarray(y).tolist())
    if sample_weight is not None:
        if not settings.weight_column:
            raise ValueError("sample_weight is given, and the store has no column of weights")
        columns[settings.weight_column] = pa.array(np.asarray(sample_weight, dtype=np.float64))
    elif settings.weight_column:
        raise ValueError(
            f"sample_weight is missing; the store has weights, {settings.weight_column!r}"
        )
    return columns


def table_ids(table: Table, settings: Settings) -> list[str]:
    """The ids of a table."""
    return _ids(table, settings)


def encode_revision(table: Table, settings: Settings, old: Rows) -> tuple[Rows, list[str]]:
    """Rows as they are after a correction, and the columns that it gives.

    `old` are the rows of the table's ids as they are now; a column that is not in the table stays.
    """
    X, labels, weights = old.X, old.labels, old.weights
    given: list[str] = []
    named = settings.features if isinstance(settings.features, list) else []
    if table.sparse is not None:
        _require_form(table, settings.features)
        X = _sparse(table, settings)
        given.append("features")
    else:
        present = [column for column in named if column["name"] in table.columns]
        _refuse_extra(table, settings)
        if present:
            X = old.X.copy()
            at = 0
            for column in named:
                whole = settings.impute is not None
                if column["name"] in table.columns:
                    _fill(X, at, table, column, whole)
                at += 1 if whole else len(column.get("values", (0,)))
            given += [column["name"] for column in present]
    if TASKS[settings.task].target is not None:
        found, _ = labels_of(table, settings, required=False)
        if found is not None:
            labels = np.array(found)
            given.append(settings.label_column or "label")
    found_weights = _weights(table, settings, required=False)
    if found_weights is not None:
        weights = found_weights
        given.append(settings.weight_column or "weight")
    if not given:
        raise InputFileError(
            f"{table.name!r} has no column to correct: neither features nor "
            f"{settings.label_column!r}"
        )
    return Rows(X, labels, weights), given


def as_id(value: Any) -> str:
    """An id as text: integers in decimal, text as it is."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer, str, UUID)):
        raise IdError(f"id {value!r} is a {type(value).__name__}; ids are whole numbers or text")
    name = str(value)
    if not name:
        raise IdError("an id is empty; every row needs one")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise IdError(
            f"id {name!r} is not text in UTF-8; write it without such characters"
        ) from None
    return name


def text_columns(settings: Settings) -> list[str]:
    """Columns that a CSV is to give as text."""
    named = [settings.id_column, *settings.categories]
    if settings.label_column:
        named.append(settings.label_column)
    return named


# -- ids -----------------------------------------------------------------------------------------


def _id_column(table: Table, settings: Settings) -> str:
    return "id" if table.format == "svmlight" else settings.id_column


def _ids(table: Table, settings: Settings) -> list[str]:
    name = _id_column(table, settings)
    if table.format == "svmlight" and not table.columns:
        raise InputFileError(f"{table.name!r} has no ids; end each line with '# id'")
    column = table.column(name, "the ids")
    if pa.types.is_floating(column.type):
        raise InputFileError(
            f"{table.name!r} has numbers with a fraction or missing values in {name!r}; ids are "
            "whole numbers or text"
        )
    ids = [None if value is None else str(value) for value in column.to_pylist()]
    seen: dict[str, int] = {}
    for row, value in enumerate(ids):
        if not value:
            raise InputFileError(
                f"{table.name!r} has no id in column {name!r} on {table.place(row)}; every row "
                "needs one"
            )
        if value in seen:
            raise InputFileError(
                f"{table.name!r} has the id {value!r} on {table.place(seen[value])} and on "
                f"{table.place(row)}; ids are unique: remove one of the rows"
            )
        seen[value] = row
    return ids  # type: ignore[return-value]


# -- features ------------------------------------------------------------------------------------


def _first_columns(table: Table, settings: Settings) -> Any:
    if table.sparse is not None:
        width = int(table.sparse.shape[1])
        try:
            require_affordable(width, TASKS[settings.task])
        except ValueError as error:
            raise InputFileError(
                f"{table.name!r} has features up to number {width}: {error}; number them from 1 on"
            ) from error
        return {"sparse": width}
    special = _special(settings)
    columns: list[dict[str, Any]] = []
    for name in settings.categories:
        table.column(name, "a category")
    for name in table.columns:
        if name in special:
            continue
        if name not in settings.categories:
            columns.append({"name": name, "kind": "number"})
            continue
        fixed = settings.categories[name]
        if fixed is None:
            empty = settings.impute is not None  # every value is then welcome at any time
            fixed = [] if empty else sorted({str(v) for v in _texts(table, name) if v})
        columns.append({"name": name, "kind": "category", "values": list(fixed)})
    if not columns:
        raise InputFileError(f"{table.name!r} has no column of features besides id and label")
    return columns


def require_affordable(width: int, task: Task) -> None:
    """Refuse so many features that a model of them could not be held; ValueError."""
    require_width(width, "a file")
    if not task.keeps_rows:
        require_memory(8 * OF_MOMENTS * width * width, f"moments of {width} features")


def _require_form(table: Table, features: Any) -> None:
    """Named columns for a store with names, svmlight for one that was begun with it."""
    if table.sparse is not None and "sparse" not in features:
        raise InputFileError(
            f"{table.name!r} is svmlight, and the store has named columns; use CSV or Parquet"
        )
    if table.sparse is None and "sparse" in features:
        raise InputFileError(
            f"{table.name!r} has named columns, and the store was begun with svmlight; use that"
        )


def _features(table: Table, settings: Settings) -> Any:
    if "sparse" in settings.features:
        return _sparse(table, settings)
    X = np.zeros((table.n, settings.n_features))
    at = 0
    for column in settings.features:
        at += _fill(X, at, table, column, settings.impute is not None)
    return X


def with_values(table: Table, settings: Settings) -> Settings:
    """Settings that know all values of a table's categories, if rows are kept as they came."""
    if settings.impute is None or not isinstance(settings.features, list):
        return settings
    features = []
    for column in settings.features:
        if column["kind"] == "category" and column["name"] in table.columns:
            values = list(column["values"])
            given = sorted({value for value in _texts(table, column["name"]) if value})
            values += [value for value in given if value not in values]
            column = {**column, "values": values}
        features.append(column)
    return settings.resolved(features, settings.label_kind)


def _refuse_extra(table: Table, settings: Settings) -> None:
    named = settings.features if isinstance(settings.features, list) else []
    known = {column["name"] for column in named} | _special(settings)
    for name in table.columns:
        if name not in known:
            raise InputFileError(
                f"{table.name!r} has the column {name!r}, which is not in the store; remove it"
                + did_you_mean(name, {str(item) for item in known if item} - set(table.columns))
            )


def _fill(
    X: FloatArray, at: int, table: Table, column: dict[str, Any], with_gaps: bool = False
) -> int:
    """Write one column of a table from column `at` of X on; how many it takes."""
    name = column["name"]
    if with_gaps:
        X[:, at] = _kept(table, column)
        return 1
    if column["kind"] == "number":
        X[:, at] = _numbers(table, name)
        return 1
    width = len(column["values"])
    place = {value: at + k for k, value in enumerate(column["values"])}
    X[:, at : at + width] = 0.0
    for row, value in enumerate(_texts(table, name)):
        if value not in place:
            said = "no value" if not value else repr(value)
            raise InputFileError(
                f"{table.name!r} has {said} in column {name!r} on {table.place(row)}; its "
                f"categories are {', '.join(map(repr, column['values'][:10]))}"
            )
        X[row, place[value]] = 1.0
    return width


def _kept(table: Table, column: dict[str, Any]) -> FloatArray:
    """A column as it is kept where gaps are filled: numbers, or the places of values."""
    if column["kind"] == "number":
        return _numbers(table, column["name"], with_gaps=True)
    place = {value: code for code, value in enumerate(column["values"]) if value is not None}
    texts = _texts(table, column["name"])
    # A value that was never learned has a place that no row has.
    return np.array([np.nan if not text else place.get(text, -1) for text in texts])


def _special(settings: Settings) -> set[str | None]:
    """Columns that are not features."""
    return {settings.id_column, settings.label_column, settings.weight_column, *settings.ignored}


def _sparse(table: Table, settings: Settings) -> Any:
    width = settings.n_features
    if table.sparse.shape[1] > width:
        raise InputFileError(
            f"{table.name!r} has {table.sparse.shape[1]} features, the store has {width}"
        )
    X = table.sparse.copy()
    X.resize((table.n, width))
    bad = np.flatnonzero(~np.isfinite(X.data))
    if len(bad):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        raise InputFileError(
            f"{table.name!r} has a value that is not finite on {table.place(row)}; leave it out"
        )
    return X


def _numbers(table: Table, name: str, with_gaps: bool = False) -> FloatArray:
    column = table.column(name, "features")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = _days(column)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        row, value = _first_text(column)
        if row is None and with_gaps:
            return np.full(len(column), np.nan)
        if row is None:
            raise InputFileError(
                f"{table.name!r} has no numbers in column {name!r} ({column.type}); fill or remove "
                "it, or have the store ignore it"
            )
        raise InputFileError(
            f"{table.name!r} has {value!r} in column {name!r} on {table.place(row)}, which is not "
            "a number; correct it, or declare the column categorical or ignored at init"
        )
    if column.null_count and not with_gaps:
        import pyarrow.compute as pc

        row = int(pc.index(pc.is_null(column), True).as_py())
        raise InputFileError(
            f"{table.name!r} has no value in column {name!r} on {table.place(row)}; fill it in, or "
            "remove the row"
        )
    values: FloatArray = column.to_numpy(zero_copy_only=False).astype(np.float64)
    bad = np.flatnonzero(np.isinf(values) if with_gaps else ~np.isfinite(values))
    if len(bad):
        raise InputFileError(
            f"{table.name!r} has {values[bad[0]]} in column {name!r} on "
            f"{table.place(int(bad[0]))}; fill it in, or remove the row"
        )
    return values


def _days(column: Any) -> Any:
    """Dates and times as days since 1970-01-01."""
    zone = getattr(column.type, "tz", None)
    import pyarrow.compute as pc

    seconds = column.cast(pa.timestamp("us", tz=zone)).cast(pa.int64())
    return pc.divide(seconds.cast(pa.float64()), 86_400e6)


def _first_text(column: Any) -> tuple[int | None, Any]:
    """The first value that is not a number."""
    for row, value in enumerate(column.to_pylist()):
        try:
            if value is not None:
                float(value)
        except (TypeError, ValueError):
            return row, value if value is None or isinstance(value, str) else str(value)
    return None, None


def _texts(table: Table, name: str) -> list[str | None]:
    values = table.column(name, "a category").to_pylist()
    return [None if value is None else str(value) for value in values]


# -- weights ---------------------------------------------------------------------------------------


def _weights(table: Table, settings: Settings, required: bool = True) -> FloatArray | None:
    name = settings.weight_column
    if not name or (name not in table.columns and not required):
        return None
    weights = _numbers(table, name)
    if len(weights) and weights.min() < 0.0:
        row = int(np.argmin(weights))
        raise InputFileError(
            f"{table.name!r} has the weight {weights[row]} on {table.place(row)}; weights are >= 0"
        )
    return weights
