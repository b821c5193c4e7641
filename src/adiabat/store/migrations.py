# SPDX-License-Identifier: BSD-3-Clause
"""Stores of older releases, brought up to date on opening; a copy as it was stays in the folder.

`STEPS[v]` turns schema version v into v + 1, by SQL alone, and says in words what it does. The
ritual for a new version: write its step here, raise `schema.SCHEMA_VERSION`, and keep a store of
the version before in ``tests/store/golden``. A step is never edited once released.

The copy holds all rows, so that the first erasure after it removes it (`Session._purge`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from adiabat.errors import StoreError, StoreUpgradeWarning
from adiabat.store import connection as database
from adiabat.store import folder as files
from adiabat.store import schema


@dataclass(frozen=True)
class Step:
    """From one schema version to the next: what is done, in words and in SQL."""

    says: str
    apply: Callable[[sa.Connection], None]


#: Version to the step that makes the next one of it.
STEPS: Final[dict[int, Step]] = {}


def migrate(engine: sa.Engine, folder: str) -> None:
    """A copy, then all steps to the current version in one transaction. Under the lock only."""
    with database.transaction(engine) as connection:
        version = database.require_ours(connection, folder)
    if version == schema.SCHEMA_VERSION:  # another process was faster
        return
    steps = _steps_from(version, folder)
    copy = files.former_path(folder, version)
    with files.drafting(folder) as draft:
        os.unlink(draft.path)
        database.copy_into(engine, draft.path)
        draft.sync()
        draft.place(copy)
    warnings.warn(
        f"bringing {folder!r} from schema version {version} to {schema.SCHEMA_VERSION}: "
        f"{'; '.join(step.says for step in steps)}. {copy!r} is a copy as it was, which the next "
        "erasure removes",
        StoreUpgradeWarning,
        stacklevel=5,
    )
    with database.transaction(engine, writes=True) as connection:
        for step in steps:
            step.apply(connection)
        connection.exec_driver_sql(f"PRAGMA user_version={schema.SCHEMA_VERSION}")


def _steps_from(version: int, folder: str) -> list[Step]:
    missing = [v for v in range(version, schema.SCHEMA_VERSION) if v not in STEPS]
    if missing:
        raise StoreError(
            f"{folder!r} has schema version {missing[0]}, which no release has written; "
            "restore it from a copy"
        )
    return [STEPS[v] for v in range(version, schema.SCHEMA_VERSION)]
