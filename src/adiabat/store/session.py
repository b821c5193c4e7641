# SPDX-License-Identifier: BSD-3-Clause
"""A store's folder between its last acknowledged entry and the next.

Every change has one shape: take the lock, begin, read what is there, move the model, write rows,
model and log entry, commit. It is acknowledged when `changing` ends without an exception, and is
durable by then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa

from adiabat.errors import ModelFileError, NotOptimalError, StoreDamagedError, StoreError
from adiabat.store import connection as database
from adiabat.store import log, migrations, records, schema
from adiabat.store.digests import SetDigest, sha256
from adiabat.store.lock import writing
from adiabat.store.settings import Settings
from adiabat.store.signing import Signer
from adiabat.store.state import pack_model, unpack_model
from adiabat.store.tasks import TASKS, certificate_fields, is_fitted, set_sizes


class Abandoned(Exception):
    """Raised inside a change that is not to be kept."""


@dataclass
class Change:
    """A change that is under way."""

    connection: sa.Connection
    head: log.Entry
    settings: Settings
    model: Any
    dataset: SetDigest
    suppressed: SetDigest
    next_number: int
    body: dict[str, Any]
    marks: list[bytes] = field(default_factory=list)
    purges: bool = False
    model_changed: bool = True
    idle: bool = False
    entry: log.Entry | None = None

    @property
    def seq(self) -> int:
        """Number of the entry that this change will be."""
        return self.head.seq + 1


class Session:
    """The folder, what is known of its last entry, and the model as of then."""

    def __init__(
        self,
        folder: str,
        wait: float,
        signer: Signer | None,
        announce: Callable[[str], None] | None,
    ) -> None:
        self.folder = folder
        self.wait = wait
        self.signer = signer
        self.announce = announce
        self._model: Any = None
        self._model_at = -1
        if not os.path.isfile(os.path.join(folder, database.DATABASE)):
            raise StoreError(f"{folder!r} holds no store; make one with adiabat init")
        self.engine = database.connect(folder)
        with database.transaction(self.engine) as connection:
            version = database.require_ours(connection, folder)
        if version < schema.SCHEMA_VERSION:
            with writing(folder, "migrate", wait, announce):
                migrations.migrate(self.engine, folder)
        with database.transaction(self.engine) as connection:
            database.require_schema(connection, folder)
            pending = self._state(connection)["purge"]
        if pending:
            self._purge_under_lock()

    # -- read --------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[tuple[sa.Connection, log.Entry, Settings]]:
        """A consistent view of the last acknowledged state."""
        with database.transaction(self.engine) as connection:
            yield connection, *self._head(connection)

    def model(self) -> Any:
        """The estimator as of the last entry: judged, and not to be changed by the caller."""
        with self.reading() as (connection, head, settings):
            return self._load(connection, head, settings)

    def _head(self, connection: sa.Connection) -> tuple[log.Entry, Settings]:
        head = log.read_head(connection)
        text = database.checked_text(
            connection.execute(sa.select(schema.settings.c.body)).scalar_one_or_none()
        )
        if sha256(text) != head.body["settings"]:
            raise StoreDamagedError(
                f"{self.folder!r} has settings other than its log vouches for; restore a copy"
            )
        return head, Settings.from_json(text)

    def _state(self, connection: sa.Connection) -> dict[str, Any]:
        row = connection.execute(sa.select(schema.state)).mappings().first()
        if row is None or not isinstance(row["model"], bytes):
            raise StoreDamagedError(f"{self.folder!r} has no state; restore it from a copy")
        return dict(row)

    def _load(self, connection: sa.Connection, head: log.Entry, settings: Settings) -> Any:
        if self._model is not None and self._model_at == head.seq:
            return self._model
        state = self._state(connection)
        said = head.body
        if state["entry"] != head.seq or sha256(state["model"]) != said["model"]["after"]:
            raise StoreDamagedError(
                f"{self.folder!r} has a model other than its log vouches for; restore a copy"
            )
        X, numbers = None, []
        if TASKS[settings.task].keeps_rows:
            held = list(records.read_all(connection))
            digest = SetDigest()
            digest.add(record.leaf for record in held)
            if digest.hexdigest() != said["dataset"]["after"]:
                raise StoreDamagedError(
                    f"{self.folder!r} has training rows other than its log vouches for; restore a "
                    "copy"
                )
            X = records.decode_features([record.features for record in held], settings.n_features)
            numbers = [record.number for record in held]
        try:
            model = unpack_model(state["model"], settings, X)
        except ModelFileError as error:
            raise self._unusable(str(error).partition(";")[0]) from error
        if numbers and not np.array_equal(model.ids_, numbers):
            raise self._unusable("it is of other rows than the table has")
        self._model, self._model_at = model, head.seq
        return model

    def _unusable(self, why: str) -> StoreDamagedError:
        return StoreDamagedError(
            f"{self.folder!r} holds a model that cannot be used ({why}); adiabat repair, or "
            "Store.repair(), fits it again from the rows"
        )

    def say(self, phase: str) -> None:
        """Tell whoever wants to know what is being done."""
        if self.announce is not None:
            self.announce(phase)

    def drop_model(self) -> None:
        """Forget the estimator in memory; the next use reads it from the store."""
        self._model, self._model_at = None, -1

    # -- change ------------------------------------------------------------------------------------

    @contextmanager
    def changing(
        self,
        operation: str,
        reference: str | None = None,
        dry_run: bool = False,
        afresh: bool = False,
    ) -> Iterator[Change]:
        """A change: kept whole at the end of the block, or not at all.

        With `afresh` it begins with an estimator that has learned nothing, not with the stored one.
        """
        if reference is not None and not reference.strip():
            raise ValueError("reference is empty; give one, or leave it out")
        self._require_signer()
        with writing(self.folder, operation, self.wait, self.announce):
            entry: log.Entry | None = None
            try:
                with database.transaction(self.engine, writes=True) as connection:
                    change = self._begin(connection, operation, reference, afresh)
                    yield change
                    require_optimal(operation, change.model)
                    if dry_run or change.idle:
                        raise Abandoned
                    self.say(f"{operation}: writing")
                    entry = change.entry = self._write(change)
            except Abandoned:
                self.drop_model()
                return
            except StoreError as error:
                self.drop_model()
                raise self._explained(error, entry) from error
            except BaseException:
                self.drop_model()
                raise
            self._model, self._model_at = change.model, entry.seq
            if change.purges:
                self._purge()

    def _explained(self, error: StoreError, entry: log.Entry | None) -> StoreError:
        """An error as it is, or what a failure of the commit itself has left."""
        if entry is None:
            return error
        try:
            with self.reading() as (_, head, _):
                kept = head.hash == entry.hash
        except StoreError:
            return StoreError(
                f"the disk failed as log entry {entry.seq} was being committed ({error}); whether "
                "it was kept shows when the store can be opened again"
            )
        if not kept:
            return error
        return StoreError(
            f"log entry {entry.seq} is in the store, but the disk did not confirm it "
            f"({error.__cause__ or error}); a power cut may still undo it. Check the disk"
        )

    def _begin(
        self, connection: sa.Connection, operation: str, reference: str | None, afresh: bool
    ) -> Change:
        head, settings = self._head(connection)
        if afresh:
            model = TASKS[settings.task].create(settings.parameters, settings.scale)
        else:
            model = self._load(connection, head, settings)
        state = self._state(connection)
        self.say(f"{operation}: the model")
        body: dict[str, Any] = {"operation": operation, "reference": reference, "details": {}}
        return Change(
            connection=connection,
            head=head,
            settings=settings,
            model=model,
            dataset=SetDigest(state["dataset"]),
            suppressed=SetDigest(state["suppressed"]),
            next_number=int(state["next_number"]),
            body=body,
        )

    def _write(self, change: Change) -> log.Entry:
        """Rows are written by now: the model, the settings and the entry that vouches for all."""
        before, connection = change.head.body, change.connection
        after = {
            **change.body,
            **entry_frame(change.settings, change.model),
            "dataset": {"before": before["dataset"]["after"], "after": change.dataset.hexdigest()},
            "suppressed": change.suppressed.hexdigest(),
            "next_number": change.next_number,
        }
        values: dict[str, Any] = {}
        if change.model_changed:
            blob = pack_model(change.model)
            values["model"] = blob
            after["certificate"]["before"] = before["certificate"]["after"]
            digest = sha256(blob)
        else:
            digest = before["model"]["after"]
            after["certificate"] = {
                "before": before["certificate"]["after"],
                "after": before["certificate"]["after"],
            }
        after["model"] = {"before": before["model"]["after"], "after": digest}
        entry = log.append(connection, change.head, after, change.marks)
        connection.execute(
            sa.update(schema.state).values(
                entry=entry.seq,
                dataset=change.dataset.to_bytes(),
                suppressed=change.suppressed.to_bytes(),
                next_number=change.next_number,
                purge=int(change.purges),
                **values,
            )
        )
        connection.execute(sa.update(schema.settings).values(body=change.settings.to_json()))
        sign(connection, entry, self.signer if change.settings.public_key else None)
        return entry

    def _require_signer(self) -> None:
        with self.reading() as (_, _, settings):
            wanted = settings.public_key
        if wanted and (self.signer is None or self.signer.public_key.hex() != wanted):
            raise StoreError(
                f"{self.folder!r} signs its log under the key {wanted[:16]}…; give that key to "
                "change it (signing_key=, or --signing-key)"
            )

    def _purge_under_lock(self) -> None:
        with writing(self.folder, "purge", self.wait, self.announce):
            self._purge()

    def _purge(self) -> None:
        """Write the database anew, so that nothing erased is left between its pages."""
        self.say("overwriting what was erased")
        try:
            database.vacuum(self.engine)
            with database.transaction(self.engine, writes=True) as connection:
                connection.execute(sa.update(schema.state).values(purge=0))
        except StoreError as error:
            raise StoreError(
                "the rows are erased from the model and its table, but what they left in unused "
                f"parts of the file could not be overwritten ({error}); opening the store again "
                "finishes it"
            ) from error


def require_optimal(operation: str, model: Any) -> None:
    """Refuse to keep a model whose certificate does not hold, whatever made it."""
    certificate = model.last_update_.certificate if is_fitted(model) else None
    if certificate is not None and not certificate.ok:
        raise NotOptimalError(
            f"{operation} would leave a model that is not the optimum ({certificate}); nothing was "
            "changed. Scale the features, or lower C",
            certificate,
        )


def entry_frame(settings: Settings, model: Any) -> dict[str, Any]:
    """What every entry says about the model it leaves."""
    fitted = is_fitted(model)
    certificate = model.last_update_.certificate if fitted else None
    return {
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "software": f"adiabat {_version()}",
        "settings": sha256(settings.to_json()),
        "sets": set_sizes(model),
        "certificate": {"before": None, "after": certificate_fields(certificate)},
    }


def sign(connection: sa.Connection, entry: log.Entry, signer: Signer | None) -> None:
    """Keep the signature of an entry beside it."""
    if signer is not None:
        connection.execute(
            sa.insert(schema.signatures).values(
                seq=entry.seq, public_key=signer.public_key, signature=signer.sign(entry.hash)
            )
        )


def _version() -> str:
    from importlib.metadata import version

    return version("adiabat")
