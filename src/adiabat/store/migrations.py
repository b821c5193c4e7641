# SPDX-License-Identifier: BSD-3-Clause
"""Stores of older releases, brought up to date on opening.

`STEPS[v]` turns schema version v into v + 1, by SQL alone. The ritual for a new version: write its
step here, raise `schema.SCHEMA_VERSION`, and keep a store of the version before in
``tests/store/golden``. A step is never edited once released.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from adiabat.errors import StoreError
from adiabat.store import connection as database
from adiabat.store import schema

#: Version to the function that makes the next one of it.
STEPS: Final[dict[int, Callable[[sa.Connection], None]]] = {}


def migrate(engine: sa.Engine, folder: str) -> None:
    """All steps to the current version, in one transaction."""
    with database.transaction(engine, writes=True) as connection:
        version = database.require_ours(connection, folder)
        while version < schema.SCHEMA_VERSION:
            if version not in STEPS:
                raise StoreError(
                    f"{folder!r} has schema version {version}, which no release has written; "
                    "restore it from a copy"
                )
            STEPS[version](connection)
            version += 1
            connection.exec_driver_sql(f"PRAGMA user_version={version}")
