# SPDX-License-Identifier: BSD-3-Clause
"""The training rows in their table: written, read, erased, and vouched for by their leaves."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
import sqlalchemy as sa

from adiabat.errors import StoreDamagedError
from adiabat.inputs import csr_from_parts
from adiabat.store.connection import checked_text
from adiabat.store.digests import canonical, commitment, leaf
from adiabat.store.schema import records
from adiabat.store.tasks import Rows
from adiabat.typing import FloatArray

# SQLite takes at most 32,766 variables in a statement.
AT_ONCE: Final = 10_000
_COLUMNS: Final = tuple(records.c.keys())
_FLOAT: Final = np.dtype("<f8")
_INDEX: Final = np.dtype("<i4")


@dataclass(frozen=True)
class Record:
    """One training row as it is stored."""

    number: int
    id: str
    key: bytes
    features: bytes
    label: str
    weight: float
    entry: int

    def content(self) -> bytes:
        """All of it but the key, each part with its length."""
        name, label = self.id.encode(), self.label.encode()
        head = struct.pack(
            "<qqdqqq", self.number, self.entry, self.weight,
            len(name), len(label), len(self.features),
        )  # fmt: skip
        return head + name + label + self.features

    @cached_property
    def leaf(self) -> bytes:
        """What the digest of the data keeps of it."""
        return leaf(self.key, self.content())

    @property
    def commitment(self) -> bytes:
        """What the log keeps of its id."""
        return commitment(self.key, self.id)


def encode_features(X: Any) -> list[bytes]:
    """Rows of features as bytes: ``d`` and float64, or ``s``, count, indices and float64.

    A dense row with gaps (NaN) begins with ``g``.
    """
    if sp.issparse(X):
        X = sp.csr_array(X)
        return [
            b"s"
            + struct.pack("<q", stop - start)
            + X.indices[start:stop].astype(_INDEX).tobytes()
            + X.data[start:stop].astype(_FLOAT).tobytes()
            for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        ]
    X = np.ascontiguousarray(X, dtype=_FLOAT)
    gaps = np.isnan(X).any(axis=1)
    return [(b"g" if gap else b"d") + row.tobytes() for gap, row in zip(gaps, X, strict=True)]


def decode_features(rows: Sequence[bytes], n_features: int) -> Any:
    """The matrix of rows that `encode_features` wrote."""
    if not rows:
        return np.empty((0, n_features))
    if rows[0][:1] == b"s":
        return _decode_sparse(rows, n_features)
    width = 1 + n_features * _FLOAT.itemsize
    if any(len(row) != width or row[:1] not in (b"d", b"g") for row in rows):
        raise _damaged("it is not as wide as the settings say")
    joined = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), width)
    X: FloatArray = np.ascontiguousarray(joined[:, 1:]).view(_FLOAT).astype(np.float64)
    gaps = np.array([row[:1] == b"g" for row in rows])
    _require_finite(np.where(gaps[:, None] & np.isnan(X), 0.0, X))
    return X


def _require_finite(values: FloatArray) -> None:
    if not np.isfinite(values).all():
        raise _damaged("it has a value that is not finite")


def _damaged(why: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"a training row of the store is damaged ({why}); restore it from a copy"
    )


def _decode_sparse(rows: Sequence[bytes], n_features: int) -> Any:
    counts, indices, data = [0], [], []
    for row in rows:
        (count,) = struct.unpack_from("<q", row, 1) if len(row) >= 9 else (-1,)
        middle = 9 + count * _INDEX.itemsize
        if row[:1] != b"s" or count < 0 or len(row) != middle + count * _FLOAT.itemsize:
            raise _damaged("its entries are not as many as it says")
        counts.append(count)
        indices.append(np.frombuffer(row, _INDEX, count, 9))
        data.append(np.frombuffer(row, _FLOAT, count, middle))
    values = np.concatenate(data).astype(np.float64)
    columns = np.concatenate(indices).astype(np.int32)
    bounds = np.cumsum(counts, dtype=np.int64)
    _require_finite(values)
    try:
        return csr_from_parts(values, columns, bounds, (len(rows), n_features), "it")
    except ValueError as error:
        raise _damaged(str(error)) from error


def encode_labels(labels: Sequence[Any] | None, count: int) -> list[str]:
    """Labels as JSON, ``null`` where there are none."""
    if labels is None:
        return ["null"] * count
    texts = {value: canonical(value) for value in set(labels)}
    return [texts[value] for value in labels]


def as_rows(found: Sequence[Record], n_features: int) -> Rows:
    """Features, labels and weights of records."""
    X = decode_features([record.features for record in found], n_features)
    labels = _decode_labels([record.label for record in found])
    weights = np.array([record.weight for record in found])
    if len(found) and not (np.isfinite(weights).all() and weights.min() >= 0.0):
        raise _damaged("its weight is out of range")
    return Rows(X, labels, weights)


def _decode_labels(texts: Sequence[str]) -> Any:
    """The labels of JSON texts: all whole numbers, all numbers, or all text; None for no labels."""
    try:
        decoded = {text: json.loads(text) for text in set(texts)}
        kinds = {type(value) for value in decoded.values()}
        if kinds <= {type(None)}:
            return None
        labels = np.array([decoded[text] for text in texts])
        if not (kinds <= {int, float} or kinds == {str}) or labels.dtype.kind not in "iufU":
            raise ValueError("labels of several kinds")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("a label that is not finite")
    except (ValueError, OverflowError, RecursionError) as error:
        raise _damaged(f"its label cannot be read: {error}") from error
    return labels


def insert(connection: sa.Connection, new: Iterable[Record]) -> None:
    """Add records."""
    values = [{name: getattr(record, name) for name in _COLUMNS} for record in new]
    if values:
        connection.execute(sa.insert(records), values)


def replace(connection: sa.Connection, new: Iterable[Record]) -> None:
    """Overwrite what can change of records: features, label, weight."""
    values = [
        {
            "n": record.number,
            "leaf": record.leaf,
            "features": record.features,
            "label": record.label,
            "weight": record.weight,
        }
        for record in new
    ]
    statement = (
        sa.update(records)
        .where(records.c.number == sa.bindparam("n"))
        .values(
            leaf=sa.bindparam("leaf"),
            features=sa.bindparam("features"),
            label=sa.bindparam("label"),
            weight=sa.bindparam("weight"),
        )
    )
    if values:
        connection.execute(statement, values)


def delete(connection: sa.Connection, numbers: Iterable[int]) -> None:
    """Delete records, their keys included."""
    values = [{"n": number} for number in numbers]
    if values:
        connection.execute(sa.delete(records).where(records.c.number == sa.bindparam("n")), values)


def read_all(connection: sa.Connection) -> Iterator[Record]:
    """All records, in the order in which they were learned."""
    for row in connection.execute(sa.select(records).order_by(records.c.number)):
        yield _record(row)


def ids_by_number(connection: sa.Connection) -> dict[int, str]:
    """The ids, by record number, in the order in which they were learned."""
    chosen = sa.select(records.c.number, records.c.id).order_by(records.c.number)
    return {number: checked_text(name) for number, name in connection.execute(chosen)}


def count(connection: sa.Connection) -> int:
    """How many records there are."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(records)).scalar_one())


def known(connection: sa.Connection, ids: Sequence[str]) -> set[str]:
    """Those of the ids that are there."""
    found: set[str] = set()
    for start in range(0, len(ids), AT_ONCE):
        part = ids[start : start + AT_ONCE]
        found |= set(
            connection.execute(sa.select(records.c.id).where(records.c.id.in_(part))).scalars()
        )
    return found


def find(connection: sa.Connection, ids: Sequence[str]) -> dict[str, Record]:
    """The records of those of the ids that are there."""
    found: dict[str, Record] = {}
    for start in range(0, len(ids), AT_ONCE):
        part = ids[start : start + AT_ONCE]
        for row in connection.execute(sa.select(records).where(records.c.id.in_(part))):
            record = _record(row)
            found[record.id] = record
    return found


def find_numbers(connection: sa.Connection, numbers: Sequence[int]) -> dict[int, Record]:
    """The records of those of the numbers that are there."""
    found: dict[int, Record] = {}
    for start in range(0, len(numbers), AT_ONCE):
        part = [int(number) for number in numbers[start : start + AT_ONCE]]
        for row in connection.execute(sa.select(records).where(records.c.number.in_(part))):
            record = _record(row)
            found[record.number] = record
    return found


def _record(row: Any) -> Record:
    number, name, key, digest, features, label, weight, entry = row
    record = Record(number, name, key, features, label, weight, entry)
    sound = (
        isinstance(record.id, str)
        and isinstance(record.number, int)
        and isinstance(record.key, bytes)
        and isinstance(record.features, bytes)
        and isinstance(record.label, str)
        and isinstance(record.weight, float)
        and isinstance(record.entry, int)
        and record.leaf == digest
    )
    if not sound:
        raise _damaged("it does not match its digest")
    return record
