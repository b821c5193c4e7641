# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a store.

A change of any of them is a new `SCHEMA_VERSION`, a step in `migrations.py`, and a golden file of
the version before in the tests.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Column,
    Dialect,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

SCHEMA_VERSION: Final = 1


class Blob(LargeBinary):
    """Bytes handed to the driver as they are; SQLAlchemy's own type wraps each value first."""

    def bind_processor(self, dialect: Dialect) -> None:  # noqa: D102
        return None


metadata = MetaData()

#: One row: what the model is, as JSON (`settings.py`).
settings = Table(
    "settings",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)

#: The training rows. `number` is the estimator's id; `entry` is the log entry that learned it,
#: `leaf` the HMAC of all the rest under `key`.
records = Table(
    "records",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("key", Blob, nullable=False),
    Column("leaf", Blob, nullable=False),
    Column("features", Blob, nullable=False),
    Column("label", Text, nullable=False),
    Column("weight", Float, nullable=False),
    Column("entry", Integer, nullable=False),
)

#: One row: the model as of log entry `entry`, and the running digests.
state = Table(
    "state",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("entry", Integer, nullable=False),
    Column("model", Blob, nullable=False),
    Column("dataset", Blob, nullable=False),
    Column("suppressed", Blob, nullable=False),
    Column("next_number", Integer, nullable=False),
    Column("purge", Integer, nullable=False),
)

#: The audit log: canonical JSON and its SHA-256. Rows are only ever added.
log = Table(
    "log",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

#: The commitments to ids that a log entry speaks of, 32 bytes each.
commitments = Table(
    "commitments",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("body", Blob, nullable=False),
)

#: Marks of erased ids, so that a later file does not bring them back.
suppressed = Table(
    "suppressed",
    metadata,
    Column("mark", Blob, primary_key=True),
)

#: Ed25519 signatures of log entries' hashes.
signatures = Table(
    "signatures",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("public_key", Blob, nullable=False),
    Column("signature", Blob, nullable=False),
)
