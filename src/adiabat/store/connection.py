# SPDX-License-Identifier: BSD-3-Clause
"""The database under a store. All that is particular to SQLite is in this file.

Rollback journal in DELETE mode: the unlinking of the journal is the commit, and what it held of
overwritten pages goes with it. ``synchronous=EXTRA`` also syncs the folder after that, without
which a power cut may bring the journal back and undo the commit. ``secure_delete`` overwrites what
is deleted; temporary tables stay in memory.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from adiabat.errors import StoreDamagedError, StoreError
from adiabat.store import schema
from adiabat.store.folder import DATABASE

APPLICATION_ID: Final = 0x41444941  # "ADIA"
#: How long SQLite waits for others to finish reading or writing.
BUSY_SECONDS: Final = 60.0
_SINCE: Final = "since"
_JOURNAL_MODE: Final = "delete"
_PRAGMAS: Final = (
    "synchronous=EXTRA",
    "secure_delete=ON",
    "temp_store=MEMORY",
    "trusted_schema=OFF",
    "cell_size_check=ON",
)


def connect(folder: str) -> sa.Engine:
    """An engine on the database of a store's folder; the file must be there."""
    path = os.path.join(folder, DATABASE)

    def open_file() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{_quoted(path)}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
        )
        for pragma in (f"busy_timeout={round(1000 * BUSY_SECONDS)}", *_PRAGMAS):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        # The mode of every store ever made; another would need files that nobody accounts for.
        ((mode,),) = connection.execute("PRAGMA journal_mode").fetchall()
        if mode != _JOURNAL_MODE:
            connection.close()
            raise StoreDamagedError(
                f"{folder!r} holds a database that is not a store's; restore it from a copy"
            )
        return connection

    # No pool: a connection that is closed holds no file, no lock and no page in memory.
    engine = sa.create_engine("sqlite://", creator=open_file, poolclass=sa.pool.NullPool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @sa.event.listens_for(engine, "before_cursor_execute")
    def note_time(connection: sa.Connection, *_: Any) -> None:
        connection.info[_SINCE] = time.monotonic()

    return engine


def create(folder: str) -> sa.Engine:
    """A database with empty tables in a folder that has none."""
    descriptor = os.open(os.path.join(folder, DATABASE), os.O_CREAT | os.O_EXCL, 0o600)
    os.close(descriptor)
    engine = connect(folder)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version={schema.SCHEMA_VERSION}")
        schema.metadata.create_all(connection)
    return engine


@contextmanager
def transaction(engine: sa.Engine, *, writes: bool = False) -> Iterator[sa.Connection]:
    """A transaction: all of it durable at the end, or none. SQLite's errors in our words."""
    started = time.monotonic()
    info: dict[Any, Any] = {}
    try:
        with engine.connect().execution_options(writes=writes) as connection:
            info = connection.info
            with connection.begin():
                yield connection
                info[_SINCE] = time.monotonic()
    except sa.exc.DBAPIError as error:
        raise _translated(error.orig or error, info.get(_SINCE, started)) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _translated(error, info.get(_SINCE, started)) from error


def require_ours(connection: sa.Connection, folder: str) -> int:
    """Refuse a database that is not a store's; the version of its schema."""
    if connection.exec_driver_sql("PRAGMA application_id").scalar_one() != APPLICATION_ID:
        raise StoreDamagedError(
            f"{folder!r} holds a database that is not a store's; restore it from a copy"
        )
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if version > schema.SCHEMA_VERSION:
        raise StoreError(
            f"{folder!r} has schema version {version}, and this release reads up to "
            f"{schema.SCHEMA_VERSION}; upgrade adiabat"
        )
    return version


def require_schema(connection: sa.Connection, folder: str) -> None:
    """Refuse tables, triggers and views that are not exactly those of the schema."""
    found = {
        (kind, name, table): _squeezed(sql or "")
        for kind, name, table, sql in connection.exec_driver_sql(
            "SELECT type, name, tbl_name, sql FROM sqlite_master"
        )
    }
    expected = {
        ("table", table.name, table.name): _squeezed(str(CreateTable(table).compile(connection)))
        for table in schema.metadata.sorted_tables
    }
    for name, table in (("records", "records"), ("suppressed", "suppressed")):
        expected["index", f"sqlite_autoindex_{name}_1", table] = ""
    if found != expected:
        raise StoreDamagedError(
            f"{folder!r} does not have the tables of a store; restore it from a copy"
        )


def integrity_problems(connection: sa.Connection) -> list[str]:
    """What SQLite's own check of pages and indices finds."""
    found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(10)")]
    return [] if found == ["ok"] else found


def discard_journal(engine: sa.Engine) -> None:
    """Have SQLite remove a journal that a killed process began and that nothing follows from.

    SQLite passes over a journal without a sound header, and leaves it to the next change.
    """
    with transaction(engine, writes=True) as connection:
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version={int(version)}")


def copy_into(engine: sa.Engine, path: str) -> None:
    """Write the last committed content to another file, which must be empty."""
    since = time.monotonic()
    try:
        with engine.connect() as connection:
            raw: Any = connection.connection.dbapi_connection
            raw.execute("VACUUM INTO ?", (path,))
    except sa.exc.DBAPIError as error:
        raise _translated(error.orig or error, since) from error
    except sqlite3.Error as error:
        raise _translated(error, since) from error


@contextmanager
def snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """The last committed content in memory, pages and all; the file is free meanwhile."""
    since = time.monotonic()
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    copied = sa.create_engine("sqlite://", creator=lambda: memory, poolclass=sa.pool.StaticPool)
    try:
        with engine.connect() as connection:
            raw: Any = connection.connection.dbapi_connection
            raw.backup(memory)
        with copied.connect() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        raise _translated(error.orig or error, since) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _translated(error, since) from error
    finally:
        copied.dispose()
        memory.close()


def vacuum(engine: sa.Engine) -> None:
    """Write the database anew from its content, so that no byte of anything else is left in it."""
    since = time.monotonic()
    try:
        with engine.connect() as connection:
            connection.connection.dbapi_connection.execute("VACUUM")  # type: ignore[union-attr]
    except sa.exc.DBAPIError as error:
        raise _translated(error.orig or error, since) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _translated(error, since) from error


def _translated(error: BaseException, since: float) -> StoreError:
    """SQLite's error in our words; `since` is when it was last asked for something."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError("the disk is full; nothing was changed. Free some space and try again")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return StoreError(
            f"the store's files could not be read or written ({error}); nothing was changed. "
            "Check the disk and the permissions of the folder"
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreError(
            "another process is using the store and did not finish within "
            f"{time.monotonic() - since:.1f} seconds; nothing was changed. Try again"
        )
    if code == sqlite3.SQLITE_TOOBIG:
        return StoreError(
            "the state of the model takes more than a store can hold (1 GB); nothing was changed. "
            "Use fewer features or classes"
        )
    return StoreDamagedError(f"the database of the store is damaged ({error}); restore a copy")


def _squeezed(sql: str) -> str:
    return " ".join(sql.split())


def _quoted(path: str) -> str:
    return os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def checked_text(value: Any) -> str:
    """Text as the database gave it; a damaged page may give another type."""
    if not isinstance(value, str):
        raise StoreDamagedError("the store holds a value of the wrong type; restore a copy")
    return value
