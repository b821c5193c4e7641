# SPDX-License-Identifier: BSD-3-Clause
"""What an operation did or, in a dry run, would do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from adiabat.errors import LISTED
from adiabat.estimators.kernel.partition import count_moves
from adiabat.logs import logger
from adiabat.store import records
from adiabat.store.session import Change
from adiabat.store.tasks import certificate_fields, is_fitted, machine, sets_by_id

_log = logger("store")


@dataclass(frozen=True)
class Outcome:
    """The outcome of an operation.

    Attributes
    ----------
    operation : str
    entry : int or None
        Number of its entry in the log; None if nothing was written (a dry run, nothing to do).
    hash : str or None
        Hash of that entry.
    added, removed, revised : int
        Rows.
    certificate : dict or None
        The certificate of the model after it; None if no rows are left.
    seconds : float
        Of the whole operation, and `model_seconds` of it in the estimator.
    model_seconds : float
    dry_run : bool
    moved : dict or None
        In a dry run, what would move: largest change of a decision value, predictions that change
        on the rows that stay, rows that come into and out of the support, and how many go from
        one set to another (``{"MARGIN to ERROR": 3}``).
    settled : list or None
        The columns of features, if this operation fixed them.
    found : list of str
        What `repair` found wrong with the model; empty if nothing was.
    reference : str or None
        Under which it is in the log.
    """

    operation: str
    entry: int | None
    hash: str | None
    added: int
    removed: int
    revised: int
    certificate: dict[str, Any] | None
    seconds: float
    model_seconds: float
    dry_run: bool
    moved: dict[str, Any] | None
    settled: Any
    found: list[str] = field(default_factory=list)
    reference: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        return asdict(self)


class Watch:
    """Measures the time of an operation and, in a dry run, what it would change."""

    def __init__(self, operation: str, dry_run: bool) -> None:
        self._started = time.perf_counter()
        self._operation = operation
        self._dry_run = dry_run
        self._before: dict[int, Any] | None = None
        self._support: set[int] = set()
        self._sets: dict[int, str] = {}
        self._fields: dict[str, Any] = {}
        self._had_columns = True

    def begin(self, change: Change) -> None:
        """Call it before the model changes."""
        self._had_columns = change.settings.features is not None
        if self._dry_run:
            self._before, self._support = _decisions(change)
            self._sets = sets_by_id(change.model)

    def end(
        self,
        change: Change,
        added: int = 0,
        removed: int = 0,
        revised: int = 0,
        found: Sequence[str] = (),
    ) -> None:
        """Call it after the model has changed."""
        model = change.model
        fitted = is_fitted(model)
        moved = None
        if self._before is not None:
            after, support = _decisions(change)
            moved = _compared(self._before, after)
            moved["support_entered"] = len(support - self._support)
            moved["support_left"] = len(self._support - support)
            moved["sets"] = _moves(self._sets, sets_by_id(model))
        self._fields = {
            "added": added,
            "removed": removed,
            "revised": revised,
            "certificate": certificate_fields(model.last_update_.certificate) if fitted else None,
            "model_seconds": float(model.last_update_.seconds) if fitted else 0.0,
            "moved": moved,
            "settled": None if self._had_columns else _columns(change),
            "found": list(found),
        }

    def outcome(self, change: Change) -> Outcome:
        """The outcome, once the change was kept or abandoned."""
        entry = change.entry
        seconds = time.perf_counter() - self._started
        _log.info(
            "%s: %d added, %d removed, %d revised, log entry %s, %.3f s (%.3f in the model)",
            self._operation, self._fields["added"], self._fields["removed"],
            self._fields["revised"], None if entry is None else entry.seq, seconds,
            self._fields["model_seconds"],
        )  # fmt: skip
        return Outcome(
            operation=self._operation,
            entry=None if entry is None else entry.seq,
            hash=None if entry is None else entry.hash,
            seconds=seconds,
            dry_run=self._dry_run,
            reference=None if entry is None else entry.body["reference"],
            **self._fields,
        )


def _columns(change: Change) -> Any:
    """The columns that were fixed, with those values that were."""
    features = change.settings.features
    if change.settings.impute is None or not isinstance(features, list):
        return features
    return [{"name": column["name"], "kind": column["kind"]} for column in features]


def _decisions(change: Change) -> tuple[dict[int, Any], set[int]]:
    """Prediction and decision values by record number, and the numbers of the support."""
    model, settings = change.model, change.settings
    if not is_fitted(model):
        return {}, set()
    held = list(records.read_all(change.connection))
    X = records.decode_features([record.features for record in held], settings.n_features)
    predictions = model.predict(X)
    values = predictions
    if hasattr(model, "decision_function"):
        values = model.decision_function(X)
    values = np.asarray(values, dtype=np.float64).reshape(len(held), -1)
    found = {
        record.number: (record.id, prediction, value)
        for record, prediction, value in zip(held, predictions.tolist(), values, strict=True)
    }
    support: set[int] = set()
    if hasattr(machine(model), "support_"):
        support = set(np.asarray(model.ids_)[machine(model).support_].tolist())
    return found, support


def _moves(before: dict[int, str], after: dict[int, str]) -> dict[str, int]:
    """Rows that are there before and after, by the sets that they leave and join."""
    both = [number for number in after if number in before]
    moves = count_moves(
        np.array([before[number] for number in both], dtype=str),
        np.array([after[number] for number in both], dtype=str),
    )
    return {f"{a} to {b}": count for (a, b), count in moves.items()}


def _compared(before: dict[int, Any], after: dict[int, Any]) -> dict[str, Any]:
    both = [number for number in after if number in before]
    changed = [after[number][0] for number in both if after[number][1] != before[number][1]]
    largest = None
    if both and all(after[n][2].shape == before[n][2].shape for n in both):
        largest = max(float(np.max(np.abs(after[n][2] - before[n][2]))) for n in both)
    return {
        "rows_compared": len(both),
        "largest_change": largest,
        "predictions_changed": len(changed),
        "for_example": changed[:LISTED],
    }
