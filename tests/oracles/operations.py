# SPDX-License-Identifier: BSD-3-Clause
"""Random streams of what happens to a model: rows come, rows go, both at once, labels change.

An operation is a small record; the model under test applies it by its own verbs, and a ``Roster``
applies it to plain arrays, from which the oracle then solves afresh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .problems import Problem

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Add:
    """``partial_fit(X, y, ids=ids, sample_weight=sample_weight)``."""

    X: Floats
    y: Labels
    ids: Ids
    sample_weight: Floats


@dataclass(frozen=True)
class Remove:
    """``forget(ids)``."""

    ids: Ids


@dataclass(frozen=True)
class Revise:
    """``revise(ids, y=y)``."""

    ids: Ids
    y: Labels


@dataclass(frozen=True)
class Update:
    """``update(X, y, ids=ids, sample_weight=sample_weight, remove=remove)``: both in one step."""

    X: Floats
    y: Labels
    ids: Ids
    sample_weight: Floats
    remove: Ids


Operation = Add | Remove | Revise | Update


@dataclass
class Roster:
    """The rows that a model should hold after the operations so far, kept the plainest way."""

    X: Floats
    y: Labels
    sample_weight: Floats
    ids: Ids
    next_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.next_id = int(self.ids.max()) + 1

    @classmethod
    def of(cls, problem: Problem) -> Roster:
        """The rows of a problem under the ids 0, 1, 2, ..."""
        return cls(
            problem.X.copy(),
            problem.y.copy(),
            problem.sample_weight.copy(),
            np.arange(len(problem.y), dtype=np.int64),
        )

    def apply(self, operation: Operation) -> None:
        """Carry out one operation; removals come before additions."""
        if isinstance(operation, Revise):
            position = {int(i): row for row, i in enumerate(self.ids)}
            for i, label in zip(operation.ids, operation.y, strict=True):
                self.y[position[int(i)]] = label
        if isinstance(operation, Remove | Update):
            gone = operation.ids if isinstance(operation, Remove) else operation.remove
            keep = ~np.isin(self.ids, gone)
            self.X, self.y = self.X[keep], self.y[keep]
            self.sample_weight, self.ids = self.sample_weight[keep], self.ids[keep]
        if isinstance(operation, Add | Update):
            self.X = np.vstack([self.X, operation.X])
            self.y = np.concatenate([self.y, operation.y])
            self.sample_weight = np.concatenate([self.sample_weight, operation.sample_weight])
            self.ids = np.concatenate([self.ids, operation.ids])
            self.next_id = max(self.next_id, int(operation.ids.max()) + 1)


def random_operations(
    problem: Problem,
    rng: Rng,
    steps: int,
    *,
    largest: int = 8,
    max_rows: int = 120,
    keep_classes: bool = False,
) -> Iterator[Operation]:
    """A random stream of operations on a model that was fitted to ``problem`` with ids 0 .. n-1.

    Half of the operations touch a single row, the others up to ``largest``. At least one row always
    stays, and no more than ``max_rows`` gather; with ``keep_classes`` an operation that would leave
    one class without rows is replaced by an addition of that class's labels to fresh rows.
    """
    roster = Roster.of(problem)
    for _ in range(steps):
        operation = _random_operation(problem, roster, rng, largest, max_rows)
        if keep_classes:
            trial = replace(roster)
            trial.y = roster.y.copy()
            trial.apply(operation)
            if len(np.unique(trial.y)) < 2:
                operation = _draw_rows(problem, roster, rng, 2)
                operation = replace(operation, y=np.array([-1, 1], dtype=np.int64))
        roster.apply(operation)
        yield operation


def _draw_rows(problem: Problem, roster: Roster, rng: Rng, count: int) -> Add:
    fresh = problem.draw(rng, count)
    ids = np.arange(roster.next_id, roster.next_id + count, dtype=np.int64)
    return Add(fresh.X, fresh.y, ids, fresh.sample_weight)


def _random_operation(
    problem: Problem, roster: Roster, rng: Rng, largest: int, max_rows: int
) -> Operation:
    n = len(roster.ids)
    count = 1 if rng.random() < 0.5 else int(rng.integers(2, largest + 1))
    fewer = min(count, n - 1)
    verbs = ["revise"]
    verbs += ["add"] if n + count <= max_rows else []
    verbs += ["remove"] if fewer > 0 else []
    verbs += ["update"] if fewer > 0 and n + count - fewer <= max_rows else []
    verb = str(rng.choice(verbs))
    if verb == "revise":
        ids = rng.choice(roster.ids, size=min(count, n), replace=False)
        return Revise(ids, rng.choice(np.array([-1, 1], dtype=np.int64), size=len(ids)))
    if verb == "remove":
        return Remove(rng.choice(roster.ids, size=fewer, replace=False))
    added = _draw_rows(problem, roster, rng, count)
    if verb == "add":
        return added
    gone = rng.choice(roster.ids, size=fewer, replace=False)
    return Update(added.X, added.y, added.ids, added.sample_weight, gone)
