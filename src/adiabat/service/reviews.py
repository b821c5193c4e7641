# SPDX-License-Identifier: BSD-3-Clause
"""Who reviews which row, and which rows were found right.

A row that one person looks at is not shown to another for some minutes. Rows found right are not
shown again; what is kept of them are the numbers that the store has for its rows, never ids.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from adiabat.service.desk import Desk
from adiabat.service.served import ServedModel
from adiabat.service.settings import OWN
from adiabat.store.tasks import plain

_LEASE_SECONDS: Final = 300.0
_LOOKED_AT: Final = 500


class Reviews:
    """The reviews of all models of a desk."""

    def __init__(self, desk: Desk) -> None:
        self._folder = os.path.join(desk.folder, OWN)
        self._kept: dict[str, set[int]] = {}
        self._skipped: dict[tuple[str, str], set[int]] = {}
        self._leases: dict[tuple[str, int], tuple[str, float]] = {}
        self._lock = threading.Lock()

    def next(self, model: ServedModel, session: str) -> dict[str, Any] | None:
        """The worst row that nobody else looks at, as `Store.find` has it, with what is said."""
        left_out = model.left_out
        if left_out is None:
            return None
        suspects = left_out.suspects(_LOOKED_AT)
        rows = {row["id"]: row for row in model.store.find(item["id"] for item in suspects)}
        now = time.monotonic()
        with self._lock:
            kept = self._kept_numbers(model.name)
            skipped = self._skipped.get((model.name, session), set())
            for item in suspects:
                row = rows.get(item["id"])
                # What was erased or corrected since is none any more.
                if row is None or plain(row["label"]) != item["label"]:
                    continue
                number = row["number"]
                holder, until = self._leases.get((model.name, number), (session, 0.0))
                if number in kept or number in skipped or (holder != session and until > now):
                    continue
                self._leases[model.name, number] = (session, now + _LEASE_SECONDS)
                return {**row, "said": item, "kind": left_out.kind, "entry_of": left_out.entry}
        return None

    def keep(self, model: str, number: int, by: str) -> None:
        """The row was found right; durable when this returns."""
        with self._lock:
            self._kept_numbers(model).add(number)
            said = {"number": number, "by": by, "time": datetime.now(UTC).isoformat()}
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self._path(model), flags, 0o600)
            with open(descriptor, "a", encoding="utf-8") as file:
                file.write(json.dumps(said) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def skip(self, model: str, number: int, session: str) -> None:
        """Show the row to this visitor no more, and to others again."""
        with self._lock:
            self._skipped.setdefault((model, session), set()).add(number)
            self._leases.pop((model, number), None)

    def _path(self, model: str) -> str:
        return os.path.join(self._folder, f"{model}.kept")

    def _kept_numbers(self, model: str) -> set[int]:
        if model not in self._kept:
            found: set[int] = set()
            with suppress(FileNotFoundError), open(self._path(model), encoding="utf-8") as file:
                for line in file:
                    with suppress(ValueError, KeyError, TypeError):  # a line cut short by a crash
                        found.add(int(json.loads(line)["number"]))
            self._kept[model] = found
        return self._kept[model]
