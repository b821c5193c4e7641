# SPDX-License-Identifier: BSD-3-Clause
"""The estimator of a store's last entry in memory: read by many threads, changed by none of them.

A change needs an estimator that nobody else looks at. It takes the one in memory if no reader has
it, and else works on another that it reads from the store; readers meanwhile have what the last
entry left. Which entry that is goes by its hash: the number alone could be that of another history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any


@dataclass
class _Held:
    model: Any
    entry: str
    readers: int = 0
    lent: bool = False  # handed out for good: it may be read at any time


class ModelCache:
    """One estimator, by the hash of the entry that left it."""

    def __init__(self) -> None:
        self._held: _Held | None = None
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    @contextmanager
    def borrowed(self, entry: str, load: Callable[[], Any]) -> Iterator[Any]:
        """The estimator for the time of a block; `load` makes it if it is not there."""
        held = self._get(entry, load)
        try:
            yield held.model
        finally:
            with self._lock:
                held.readers -= 1

    def lend(self, entry: str, load: Callable[[], Any]) -> Any:
        """The estimator for good: no change will be made to it."""
        held = self._get(entry, load)
        with self._lock:
            held.readers, held.lent = held.readers - 1, True
        return held.model

    def take(self, entry: str, load: Callable[[], Any]) -> Any:
        """The estimator for a change, with nobody else looking at it."""
        with self._lock:
            held = self._held
            if held is not None and held.entry == entry and not held.readers and not held.lent:
                self._held = None
                return held.model
        return load()

    def copy(self, entry: str, load: Callable[[], Any]) -> Any:
        """A copy of the estimator, to try a change out on."""
        with self.borrowed(entry, load) as model:
            return deepcopy(model)

    def put(self, entry: str, model: Any) -> None:
        """Keep what a change left."""
        with self._lock:
            self._held = _Held(model, entry)

    def holds(self, entry: str) -> bool:
        """Whether the estimator that an entry left is there."""
        held = self._held
        return held is not None and held.entry == entry

    def drop(self) -> None:
        """Keep nothing; those who have borrowed it still do."""
        with self._lock:
            self._held = None

    def _get(self, entry: str, load: Callable[[], Any]) -> _Held:
        with self._loading:  # one thread loads, the others wait for it
            with self._lock:
                held = self._held
                if held is not None and held.entry == entry:
                    held.readers += 1
                    return held
            held = _Held(load(), entry, readers=1)
            with self._lock:
                self._held = held
            return held
