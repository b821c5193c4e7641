# SPDX-License-Identifier: BSD-3-Clause
"""A store's folder between its last acknowledged entry and the next.

Every change has one shape: take the lock, begin, read what is there, move the model, write rows,
model and log entry, commit. It is acknowledged when `changing` ends without an exception, and is
durable by then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from adiabat.errors import (
    NotOptimalError,
    StoreDamagedError,
    StoreError,
)
from adiabat.store import connection as database
from adiabat.store import folder as files
from adiabat.store import log, migrations, schema
from adiabat.store.cache import ModelCache
from adiabat.store.digests import SetDigest, sha256
from adiabat.store.frame import entry_frame, seconds_behind
from adiabat.store.lock import writing
from adiabat.store.origin import Origin
from adiabat.store.predictor import Predictor
from adiabat.store.records import Record
from adiabat.store.settings import Settings
from adiabat.store.signing import Keys, require_signed, sign
from adiabat.store.state import pack_model
from adiabat.store.stored_model import load_model, load_predictor, new_model
from adiabat.store.tasks import TASKS, is_fitted


class Abandoned(Exception):
    """Raised inside a change that is not to be kept."""


@dataclass(frozen=True)
class View:
    """The last acknowledged state: its entry, its settings, and the estimator it left."""

    head: log.Entry
    settings: Settings
    model: Any
    found: Any = None


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
    keys: Keys
    purges: bool
    body: dict[str, Any]
    marks: list[bytes] = field(default_factory=list)
    origin: Origin | None = None
    touched: list[Record] = field(default_factory=list)  # rows that are there after it
    model_changed: bool = True
    idle: bool = False
    entry: log.Entry | None = None
    draft: files.Draft | None = None

    @property
    def seq(self) -> int:
        """Number of the entry that this change will be."""
        return self.head.seq + 1


class Session:
    """The folder, the keys that its user has, and the model as of the last entry."""

    def __init__(
        self,
        folder: str,
        wait: float,
        keys: Keys,
        announce: Callable[[str], None] | None,
    ) -> None:
        self.folder = folder
        self.wait = wait
        self.keys = keys
        self.announce = announce
        self.cache = ModelCache()
        self._published: Predictor | None = None
        self._publishing = threading.Lock()
        self._closed = False
        files.require_plain_files(folder)
        if not os.path.isfile(os.path.join(folder, files.DATABASE)):
            raise StoreError(f"{folder!r} holds no store; make one with adiabat init")
        self.engine = database.connect(folder)
        with database.transaction(self.engine) as connection:
            version = database.require_ours(connection, folder)
        if version < schema.SCHEMA_VERSION:
            with writing(folder, "migrate", wait, announce):
                migrations.migrate(self.engine, folder)
        with database.transaction(self.engine) as connection:
            database.require_schema(connection, folder)
            self._head(connection)
            pending = bool(self._state(connection)["purge"])
        if files.needs_cleaning(folder):
            # Whoever has the lock is writing there, and will clean up after itself; where nothing
            # can be written, reading may go on.
            with suppress(StoreError), writing(folder, "clean", 0.0):
                files.clean(folder)
                database.discard_journal(self.engine)
        if pending:
            self.finish_purge()

    def close(self) -> None:
        """Release the model and the database; the session cannot be used after that."""
        self.cache.drop()
        self._published = None
        self.engine.dispose()
        self._closed = True

    def require_open(self) -> None:
        """Refuse a store that was closed."""
        if self._closed:
            raise StoreError(f"{self.folder!r} was closed; open it again with adiabat.open_store")

    # -- read --------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[tuple[sa.Connection, log.Entry, Settings]]:
        """A consistent view of the last acknowledged state."""
        self.require_open()
        with database.transaction(self.engine) as connection:
            yield connection, *self._head(connection)

    @contextmanager
    def snapshot(self) -> Iterator[tuple[sa.Connection, log.Entry, Settings]]:
        """As `reading`, of a copy in memory: however long it takes, nobody has to wait."""
        self.require_open()
        with database.snapshot(self.engine) as connection:
            yield connection, *self._head(connection)

    @contextmanager
    def using(self, find: Callable[[sa.Connection, Settings], Any] | None = None) -> Iterator[View]:
        """The last acknowledged state with its model, which does not change during the block.

        `find` reads more of the same state. The database is free again when the block begins.
        """
        self.require_open()
        with ExitStack() as stack:
            with database.transaction(self.engine) as connection:
                head, settings = self._head(connection)
                model = stack.enter_context(
                    self.cache.borrowed(head.hash, lambda: self.load(connection, head, settings))
                )
                found = None if find is None else find(connection, settings)
            yield View(head, settings, model, found)

    def model(self) -> Any:
        """The estimator as of the last entry: judged, and not changed by anything later."""
        with self.reading() as (connection, head, settings):
            return self.cache.lend(head.hash, lambda: self.load(connection, head, settings))

    def predictor(self) -> Predictor:
        """What the last entry's model decides with; nothing later changes it."""
        with self.reading() as (connection, head, settings):
            found = self._published
            if found is not None and found.hash == head.hash:
                return found
            with self._publishing:
                found = self._published
                if found is None or found.hash != head.hash:
                    found = self._published = self._make_predictor(connection, head, settings)
                return found

    def _make_predictor(
        self, connection: sa.Connection, head: log.Entry, settings: Settings
    ) -> Predictor:
        """The predictor of the last entry, from the estimator only if that is there or needed."""
        if not self.cache.holds(head.hash):
            state = self._state(connection)
            found = load_predictor(self.folder, connection, head, settings, state)
            if found is not None:
                return found
        with self.cache.borrowed(head.hash, lambda: self.load(connection, head, settings)) as model:
            return Predictor.of(head, settings, model)

    def prepare(self) -> None:
        """Have the estimator of the last entry at hand, so that the next change need not wait."""
        with self.using():
            pass

    def load(self, connection: sa.Connection, head: log.Entry, settings: Settings) -> Any:
        """The estimator of the last entry, read and judged anew."""
        return load_model(self.folder, connection, head, settings, self._state(connection))

    def pending_purge(self) -> bool:
        """Whether what was erased may still stand in unused parts of the file."""
        with database.transaction(self.engine) as connection:
            return bool(self._state(connection)["purge"])

    def say(self, phase: str) -> None:
        """Report what is being done, if `announce` was given."""
        if self.announce is not None:
            self.announce(phase)

    def _head(self, connection: sa.Connection) -> tuple[log.Entry, Settings]:
        head = log.read_head(connection)
        text = database.checked_text(
            connection.execute(sa.select(schema.settings.c.body)).scalar_one_or_none()
        )
        if sha256(text) != head.body["settings"]:
            raise StoreDamagedError(
                f"{self.folder!r} has settings other than its log vouches for; restore a copy"
            )
        settings = Settings.from_json(text)
        if settings.task not in TASKS:
            raise StoreDamagedError(
                f"{self.folder!r} has the task {settings.task!r}, which is none; restore a copy"
            )
        require_signed(connection, self.folder, head, settings, self.keys)
        return head, settings

    def _state(self, connection: sa.Connection) -> dict[str, Any]:
        row = connection.execute(sa.select(schema.state)).mappings().first()
        kinds = {"entry": int, "model": bytes, "dataset": bytes, "suppressed": bytes}
        kinds |= {"next_number": int, "purge": int}
        if row is None or any(type(row[name]) is not kind for name, kind in kinds.items()):
            raise StoreDamagedError(f"{self.folder!r} has no sound state; restore it from a copy")
        return dict(row)

    # -- change ------------------------------------------------------------------------------------

    @contextmanager
    def changing(
        self,
        operation: str,
        reference: str | None = None,
        dry_run: bool = False,
        afresh: bool = False,
        publishes: str | None = None,
        origin: Origin | None = None,
    ) -> Iterator[Change]:
        """A change: kept whole at the end of the block, or not at all.

        `origin` is kept in the log: by whom, and for which request. With `afresh` it begins with an
        estimator that has learned nothing, not with the stored one. With `publishes` it has a
        draft, which becomes that file once the log says so.
        """
        self.require_open()
        _require_reference(reference)
        with writing(self.folder, operation, self.wait, self.announce), ExitStack() as stack:
            entry: log.Entry | None = None
            try:
                with database.transaction(self.engine, writes=True) as connection:
                    change = self._begin(connection, operation, reference, afresh, dry_run)
                    change.origin = origin
                    if publishes is not None:
                        change.draft = stack.enter_context(files.drafting(self.folder))
                    with self._kept_if_unchanged(change):
                        yield change
                        require_optimal(operation, change.model)
                        if dry_run or change.idle:
                            raise Abandoned
                    self.say(f"{operation}: writing")
                    entry = change.entry = self._write(change)
            except Abandoned:
                return
            except StoreError as error:
                explained = self._explained(error, entry)
                if explained is error:
                    raise
                raise explained from error
            if self._published is not None:  # predictions are in use: prepare them now
                self._published = Predictor.of(entry, change.settings, change.model)
            self.cache.put(entry.hash, change.model)
            if change.draft is not None and publishes is not None:
                change.draft.place(publishes)
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

    @contextmanager
    def _kept_if_unchanged(self, change: Change) -> Iterator[None]:
        """Put the estimator back where a change was refused before it had moved it.

        An update of an estimator is all or nothing, and each that is made leaves a new report.
        """
        model = change.model
        report = getattr(model, "last_update_", None)
        try:
            yield
        except BaseException:
            if report is not None and model.last_update_ is report:
                self.cache.put(change.head.hash, model)
            raise

    def _begin(
        self,
        connection: sa.Connection,
        operation: str,
        reference: str | None,
        afresh: bool,
        dry_run: bool,
    ) -> Change:
        head, settings = self._head(connection)
        self.keys.require_signer(self.folder, settings)
        if afresh:
            self.cache.drop()
            model = new_model(self.folder, settings)
        else:
            find = self.cache.copy if dry_run else self.cache.take
            model = find(head.hash, lambda: self.load(connection, head, settings))
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
            keys=self.keys,
            purges=bool(state["purge"]),
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
        if change.origin is not None:
            after["origin"] = change.origin.to_log(change.touched)
        behind = seconds_behind(after["time"], before["time"])
        if behind > 0.0:
            after["clock_back"] = behind
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
        sign(connection, entry, self.keys.signer if change.settings.public_key else None)
        return entry

    def finish_purge(self) -> None:
        """Overwrite what an erasure left, if that is still to be done."""
        with writing(self.folder, "purge", self.wait, self.announce):
            if self.pending_purge():
                self._purge()

    def _purge(self) -> None:
        """Write the database anew, so that nothing erased is left between its pages."""
        self.say("overwriting what was erased")
        try:
            database.vacuum(self.engine)
            files.remove_former(self.folder)
            with database.transaction(self.engine, writes=True) as connection:
                connection.execute(sa.update(schema.state).values(purge=0))
        except (StoreError, OSError) as error:
            raise StoreError(
                "the change is in the store, and erased rows are gone from the model and its "
                "table, but what they left in unused parts of the file could not be overwritten "
                f"({error}); the next change, or opening the store again, finishes it"
            ) from error


def _require_reference(reference: str | None) -> None:
    if reference is None:
        return
    if not reference.strip():
        raise ValueError("reference is empty; give one, or leave it out")
    try:
        reference.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"reference={reference!r} is not text in UTF-8; write it without such characters"
        ) from None


def require_optimal(operation: str, model: Any) -> None:
    """Refuse to keep a model whose certificate does not hold, whatever made it."""
    certificate = model.last_update_.certificate if is_fitted(model) else None
    if certificate is not None and not certificate.ok:
        raise NotOptimalError(
            f"{operation} would leave a model that is not the optimum ({certificate}); nothing was "
            "changed. Scale the features, or lower C",
            certificate,
        )
