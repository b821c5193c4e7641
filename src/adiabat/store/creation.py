# SPDX-License-Identifier: BSD-3-Clause
"""A new store: complete in its place, or nothing at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import sqlalchemy as sa

from adiabat.errors import StoreError
from adiabat.store import connection as database
from adiabat.store import log, schema
from adiabat.store.digests import SetDigest, sha256
from adiabat.store.frame import entry_frame
from adiabat.store.settings import IMPUTING, Settings
from adiabat.store.signing import Keys, Signer, fingerprint, sign
from adiabat.store.tasks import TASKS, new_model, plain


def create(path: str, settings: Settings, keys: Keys) -> None:
    """Make a store of these settings in a folder that is not there yet, or empty."""
    _check(settings)
    if keys.signer is not None:
        settings = replace(settings, public_key=keys.signer.public_key.hex())
    if keys.suppression is not None:
        settings = replace(settings, pepper="", suppression_key=fingerprint(keys.suppression))
    with assembled(path) as folder:
        _fill(folder, settings, keys.signer)


@contextmanager
def assembled(path: str) -> Iterator[str]:
    """A folder beside `path` that takes its place, durably, if the block succeeds."""
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise StoreError(f"{path!r} is there already and not empty; choose another folder")
    target = os.path.abspath(path)
    beside = f"{target}.init-{secrets.token_hex(8)}"
    try:
        os.makedirs(beside, mode=0o700)
        yield beside
        os.rename(beside, target)
        if os.name == "posix":
            # The folder's name is an entry of its parent; until that is on disk it may vanish.
            handle = os.open(os.path.dirname(target), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except StoreError:  # one kind of it is a TimeoutError, and so an OSError
        shutil.rmtree(beside, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise StoreError(f"{path!r} cannot be made ({error}); choose another folder") from error
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _check(settings: Settings) -> None:
    if settings.task not in TASKS:
        raise ValueError(f"task={settings.task!r} is none of {', '.join(TASKS)}")
    task = TASKS[settings.task]
    new_model(settings)
    if task.target is not None and not settings.label_column:
        raise ValueError(f"task {settings.task!r} needs a column of labels; name it with label")
    if task.target is None and settings.label_column:
        raise ValueError(
            f"label={settings.label_column!r}: task {settings.task!r} has no labels; have the "
            "column ignored"
        )
    if settings.impute not in (None, *IMPUTING):
        raise ValueError(f"impute={settings.impute!r} is none of {', '.join(IMPUTING)}")
    if settings.classes is not None and task.target != "class":
        raise ValueError(f"classes are given, and task {settings.task!r} has none")
    for name, values in settings.categories.items():
        if values is not None and (not all(values) or len(set(values)) < len(values)):
            raise ValueError(
                f"categories of column {name!r} are {', '.join(map(repr, values))}; none may be "
                "empty, and none there twice"
            )
    named = [settings.id_column, *settings.ignored, *settings.categories]
    named += [name for name in (settings.label_column, settings.weight_column) if name]
    for name in named:
        if named.count(name) > 1:
            raise ValueError(f"column {name!r} is given two roles; give it one")


def _fill(folder: str, settings: Settings, signer: Signer | None) -> None:
    model = new_model(settings)
    empty = SetDigest()
    body = {
        "operation": "init",
        "reference": None,
        "details": {
            "task": settings.task,
            "parameters": plain(settings.parameters),
            "scale": settings.scale,
        },
        **entry_frame(settings, model),
        "dataset": {"before": None, "after": empty.hexdigest()},
        "model": {"before": None, "after": sha256(b"")},
        "suppressed": empty.hexdigest(),
        "next_number": 0,
    }
    engine = database.create(folder)
    with database.transaction(engine, writes=True) as connection:
        connection.execute(sa.insert(schema.settings).values(one=1, body=settings.to_json()))
        connection.execute(
            sa.insert(schema.state).values(
                one=1,
                entry=1,
                model=b"",
                dataset=empty.to_bytes(),
                suppressed=empty.to_bytes(),
                next_number=0,
                purge=0,
            )
        )
        sign(connection, log.append(connection, None, body, []), signer)
    engine.dispose()
