# SPDX-License-Identifier: BSD-3-Clause
"""Long work: begun by one request, asked about by others. One thread does one piece at a time."""

from __future__ import annotations

import queue
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from adiabat.service.problems import Problem, problem_of

Progress = Callable[[int, int], None]
_KEPT: Final = 256
_RETRY_SECONDS: Final = "5"


@dataclass
class Job:
    """A piece of work, and how far it is.

    Attributes
    ----------
    id, kind, model : str
    by : str
        Who asked for it.
    state : {"waiting", "running", "done", "failed"}
    done, total : int
        Progress, if the work can tell.
    result : object
        As plain JSON, once done.
    problem : dict or None
        Why it failed.
    """

    id: str
    kind: str
    model: str
    by: str
    state: str = "waiting"
    done: int = 0
    total: int = 0
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    result: Any = None
    problem: dict[str, Any] | None = None
    finished: threading.Event = field(default_factory=threading.Event, repr=False)


class JobBoard:
    """The jobs of a service. The last ones stay to be asked about."""

    def __init__(self, most: int) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: queue.Queue[tuple[Job, Callable[[Progress], Any]] | None] = queue.Queue()
        self._most = most
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="adiabat-jobs", daemon=True)
        self._thread.start()

    def begin(self, kind: str, model: str, by: str, work: Callable[[Progress], Any]) -> Job:
        """Have work done; Problem 429 if too much is waiting."""
        with self._lock:
            open_jobs = [job for job in self._jobs.values() if not job.finished.is_set()]
            if self._closed:
                raise Problem(503, "The service is stopping.", {"Retry-After": _RETRY_SECONDS})
            if len(open_jobs) >= self._most:
                raise Problem(
                    429,
                    f"{len(open_jobs)} jobs are waiting already; ask again later.",
                    {"Retry-After": _RETRY_SECONDS},
                )
            job = Job(secrets.token_urlsafe(12), kind, model, by)
            self._jobs[job.id] = job
            while len(self._jobs) > _KEPT + self._most:
                self._jobs.popitem(last=False)
            self._waiting.put((job, work))
            return job

    def get(self, id: str) -> Job | None:
        """A job by its id."""
        return self._jobs.get(id)

    def waiting(self) -> int:
        """Jobs that are not finished."""
        with self._lock:
            return sum(not job.finished.is_set() for job in self._jobs.values())

    def close(self) -> None:
        """Begin nothing more; what runs is left to end with the process, since it only reads."""
        self._closed = True
        self._waiting.put(None)

    def _work(self) -> None:
        while (found := self._waiting.get()) is not None:
            job, work = found
            if self._closed:
                self._fail(job, Problem(503, "The service stopped before it began."))
                continue
            job.state = "running"

            def progress(done: int, total: int, job: Job = job) -> None:
                job.done, job.total = done, total

            try:
                job.result = work(progress)
                job.state = "done"
                job.finished.set()
            except Exception as error:
                self._fail(job, problem_of(error) or Problem(500, "It could not be done."))

    def _fail(self, job: Job, problem: Problem) -> None:
        job.problem, job.state = problem.body(), "failed"
        job.finished.set()
