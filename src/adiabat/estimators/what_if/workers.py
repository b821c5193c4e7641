# SPDX-License-Identifier: BSD-3-Clause
"""Many questions to one object, answered by joblib's workers, each of which gets it once.

Threads share the object. Processes, here or on a cluster, are sent its bytes in one argument that
every backend knows how to send once: loky and multiprocessing map the array into memory, Dask and
Ray put what is large into their stores. A process reads the bytes once and keeps the object while
questions come. There are more pieces of work than workers, so that a lost worker costs little.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import cloudpickle
import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

#: Pieces of work for each worker, if there is work enough.
PIECES: Final = 4
# A process lets go of what it was sent after so many seconds without a question.
_IDLE_SECONDS: Final = 10.0
# What a parcel says its size is before it is known.
_LARGE: Final = 1 << 20

Task = Callable[[Any, Any], Any]
Answered = Callable[[int], None]


def effective_workers(n_jobs: int | None, most: int) -> tuple[int, bool]:
    """How many workers joblib has for so many pieces at most, and whether they share memory."""
    backend, active = get_active_backend(prefer="threads")
    wanted = active if n_jobs is None else n_jobs
    shared = bool(getattr(backend, "supports_sharedmem", False))
    return max(1, min(backend.effective_n_jobs(wanted), most)), shared


def ask_each(
    task: Task,
    held: Any,
    items: Sequence[Any],
    n_jobs: int | None,
    answered: Answered | None = None,
) -> list[Any]:
    """``[task(held, item) for item in items]`` by joblib's workers, in this order.

    `task` is a function of a module. `answered` is told how many more answers there are.
    """
    return [
        answer
        for piece in ask_pieces(_ask_some, (task, held), items, n_jobs, answered)
        for answer in piece
    ]


def ask_pieces(
    task: Task,
    held: Any,
    items: Sequence[Any],
    n_jobs: int | None,
    answered: Answered | None = None,
) -> list[Any]:
    """``task(held, piece)`` for every piece of consecutive items, in this order."""
    if not len(items):
        return []
    workers, _ = effective_workers(n_jobs, len(items))
    pieces = _cut(items, workers * PIECES if workers > 1 else len(items))
    if workers == 1:
        return [_counted(task(held, piece), piece, answered) for piece in pieces]
    parcel = Parcel(held)
    manner = _manner()
    found: list[Any] = [None] * len(pieces)
    with Parallel(n_jobs=workers, prefer="threads", **manner) as parallel:
        for wave in _waves(len(pieces), workers, manner):
            for k, answer in parallel(
                delayed(_one_piece)(parcel, task, k, pieces[k]) for k in wave
            ):
                found[k] = _counted(answer, pieces[k], answered)
    return found


def _manner() -> dict[str, Any]:
    """Answers as they come, from backends that can."""
    backend, _ = get_active_backend(prefer="threads")
    can = getattr(backend, "supports_return_generator", False)
    return {"batch_size": 1, "return_as": "generator_unordered" if can else "list"}


def _waves(n: int, workers: int, manner: dict[str, Any]) -> list[range]:
    """All pieces at once; a few at a time if the backend answers only when all of them are done."""
    if manner["return_as"] != "list":
        return [range(n)]
    size = 2 * workers
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


def _counted(answer: Any, piece: Sequence[Any], answered: Answered | None) -> Any:
    if answered is not None:
        answered(len(piece))
    return answer


def _cut(items: Sequence[Any], n: int) -> list[Sequence[Any]]:
    """Items in at most n pieces of nearly the same length."""
    ends = np.linspace(0, len(items), min(n, len(items)) + 1).round().astype(int).tolist()
    return [items[start:end] for start, end in pairwise(ends)]


def _ask_some(held: tuple[Task, Any], items: Sequence[Any]) -> list[Any]:
    task, value = held
    return [task(value, item) for item in items]


def _one_piece(parcel: Parcel, task: Task, k: int, piece: Sequence[Any]) -> tuple[int, Any]:
    with parcel.opened() as held:
        return k, task(held, piece)


class Parcel:
    """An object on its way to the workers: itself for threads, its bytes for processes."""

    def __init__(self, value: Any) -> None:
        self._value, self._arrived = value, False
        self._bytes: Any = None  # made when a process first asks
        self._token = uuid.uuid4().hex

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Have the object in a block."""
        if not self._arrived:
            yield self._value
            return
        with _shelf.borrowed(self._token, self._bytes) as value:
            yield value

    def __getstate__(self) -> tuple[str, Any]:
        if self._bytes is None:
            self._bytes = np.frombuffer(cloudpickle.dumps(self._value), np.uint8)
        return self._token, self._bytes

    def __setstate__(self, state: tuple[str, Any]) -> None:
        self._token, self._bytes = state
        self._value, self._arrived = None, True

    def __sizeof__(self) -> int:
        # Dask and Ray ask for it, and put what is large into their stores, once.
        return _LARGE if self._bytes is None else max(_LARGE, int(self._bytes.nbytes))


class _Shelf:
    """What this process was sent last, read once and kept while questions come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token, self._value, self._borrowers = "", None, 0
        self._timer: threading.Timer | None = None

    @contextmanager
    def borrowed(self, token: str, data: Any) -> Iterator[Any]:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if token != self._token:
                self._token, self._value = "", None
                self._value = cloudpickle.loads(data)
                self._token = token
            value = self._value
            self._borrowers += 1
        try:
            yield value
        finally:
            with self._lock:
                self._borrowers -= 1
                if self._borrowers == 0:
                    self._timer = threading.Timer(_IDLE_SECONDS, self._clear)
                    self._timer.daemon = True
                    self._timer.start()

    def _clear(self) -> None:
        with self._lock:
            if self._borrowers == 0:
                self._token, self._value = "", None


_shelf = _Shelf()
