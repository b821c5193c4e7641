# SPDX-License-Identifier: BSD-3-Clause
"""One model that is served: a queue of changes with one writer, and a predictor for all readers.

Changes are carried out one after the other by a thread of their own. After each the predictor of
the new state is published; a reader keeps the one that it began with. A change that carries the
name of a request is in the log under that name, so a second request of that name finds the entry
of the first, after a crash too.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from adiabat.errors import StoreError
from adiabat.service.jobs import Job
from adiabat.service.problems import Problem
from adiabat.store.analysis import LeftOut
from adiabat.store.log import Entry
from adiabat.store.outcome import Outcome
from adiabat.store.predictor import Predictor
from adiabat.store.store import Store

_RETRY_SECONDS: Final = "1"
_log = logging.getLogger("adiabat.service")


@dataclass(frozen=True)
class Asked:
    """A change that somebody asks for.

    Attributes
    ----------
    operation : str
        As the log will have it.
    by : str
        Who asks.
    request : str or None
        The request's name; what has been done under it is not done again.
    act : callable
        What to do with the store.
    ids : sequence
        Of the rows that it is about.
    content : bytes
        The request itself, to tell a retry from another request of the same name.
    """

    operation: str
    by: str
    request: str | None
    act: Callable[[Store], Outcome]
    ids: Sequence[Any] = ()
    content: bytes = b""


@dataclass(frozen=True)
class Done:
    """What became of a change: its outcome, its entry, and whether that was there already."""

    outcome: Outcome | None
    entry: Entry | None
    replayed: bool = False


class ServedModel:
    """A store in service."""

    def __init__(self, name: str, store: Store, most_waiting: int) -> None:
        self.name = name
        self.store = store
        self.predictor: Predictor = store.predictor
        self.left_out: LeftOut | None = None
        self.left_out_job: Job | None = None
        self.verified: dict[str, Any] | None = None
        self.damage: str | None = None
        self._waiting: queue.Queue[tuple[Asked, Future[Done]] | None] = queue.Queue(most_waiting)
        self._requests: dict[str, Entry] = {}
        self._read_to = 0
        self._closed = False
        self._lock = threading.Lock()
        self._catch_up()
        self._thread = threading.Thread(target=self._work, name=f"adiabat-writer-{name}")

    def start(self) -> None:
        """Have the writer begin, if it has not: with the first change at the latest.

        It first reads the estimator, and imports scikit-learn for it. Readers need neither.
        """
        with self._lock:
            if self._thread.ident is None and not self._closed:
                self._thread.start()

    # -- read ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take notice of what other processes have changed, if the store can be read now."""
        try:
            predictor = self.store.predictor
        except StoreError as error:
            if self.damage is None:
                _log.error("unreadable", extra={"fields": {"model": self.name}})
            self.damage = str(error)
            return
        self.damage = None
        if predictor.entry >= self.predictor.entry or predictor.hash != self.predictor.hash:
            self.predictor = predictor

    @property
    def waiting(self) -> int:
        """Changes in the queue."""
        return self._waiting.qsize()

    # -- change ----------------------------------------------------------------------------------

    def submit(self, asked: Asked) -> Future[Done]:
        """Have a change carried out; Problem 429 if too many wait, 503 if the service stops."""
        self.start()
        future: Future[Done] = Future()
        with self._lock:
            if self._closed:
                raise Problem(503, "The service is stopping; nothing was changed.",
                              {"Retry-After": "5"})  # fmt: skip
            try:
                self._waiting.put_nowait((asked, future))
            except queue.Full:
                raise Problem(
                    429,
                    f"{self._waiting.maxsize} changes of {self.name!r} are waiting already; "
                    "nothing was changed.",
                    {"Retry-After": _RETRY_SECONDS},
                ) from None
        return future

    def close(self) -> None:
        """Finish the change that is under way; what waits behind it is refused."""
        with self._lock:
            self._closed = True
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        if self._thread.ident is not None:
            self._thread.join()
        self.store.close()

    def _work(self) -> None:
        with suppress(StoreError):  # whoever asks for a change is told
            self.store.prepare()
        while (found := self._waiting.get()) is not None:
            asked, future = found
            if not future.set_running_or_notify_cancel():
                continue
            if self._closed:
                future.set_exception(
                    Problem(503, "The service is stopping; nothing was changed.",
                            {"Retry-After": "5"})
                )  # fmt: skip
                if self._waiting.empty():
                    return
                continue
            try:
                future.set_result(self._apply(asked))
            except BaseException as error:
                future.set_exception(error)

    def _apply(self, asked: Asked) -> Done:
        if asked.request is not None:
            known = self._known(asked)
            if known is not None:
                return Done(None, known, replayed=True)
        outcome = asked.act(self.store.on_behalf_of(asked.by, asked.request, asked.content))
        if outcome.entry is None:
            return Done(outcome, None)
        try:
            self.predictor = self.store.predictor
            self._catch_up()
        except StoreError:  # it is done all the same; `refresh` publishes it
            _log.error("unreadable", extra={"fields": {"model": self.name}})
            return Done(outcome, None)
        entry = self._last if self._last.hash == outcome.hash else None
        return Done(outcome, entry)

    def _known(self, asked: Asked) -> Entry | None:
        """The entry that was made under the name of a request, if there is one."""
        assert asked.request is not None
        self._catch_up()
        entry = self._requests.get(asked.request)
        if entry is None:
            return None
        same = entry.operation == asked.operation
        if not same or not self.store.is_retry(entry, asked.ids, asked.content):
            raise Problem(
                422,
                "This reference (Idempotency-Key) names another request, which has been carried "
                f"out (entry {entry.seq} of the log); choose another for this one.",
            )
        return entry

    def _catch_up(self) -> None:
        """Take in the names of requests from the entries that are new."""
        for entry in self.store.log_since(self._read_to):
            request = entry.body.get("origin", {}).get("request")
            if request is not None:
                self._requests.setdefault(request, entry)
            self._read_to, self._last = entry.seq, entry
