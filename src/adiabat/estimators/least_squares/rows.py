# SPDX-License-Identifier: BSD-3-Clause
"""Rows on their way into or out of a least-squares machine, and what they do to its targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adiabat.engine.memory import require_matrices
from adiabat.estimators.files.reading import OF_MOMENTS
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Rows:
    """Checked rows: features as given, targets as a subclass reads them, weights or None."""

    X: Any
    y: Any
    weights: FloatArray | None

    def __len__(self) -> int:
        return int(self.X.shape[0])


@dataclass(frozen=True)
class TargetPlan:
    """What an update does to the targets.

    `columns` says where each target was before, None for a new one; `combine` what each output
    aims at; `emptied` which targets no row will have; `state` is the subclass's own.
    """

    columns: list[int | None]
    combine: FloatArray
    emptied: list[int]
    state: Any = None


def added_none(like: Rows) -> Rows:
    """No rows, as wide as others."""
    return Rows(like.X[:0], like.y[:0], None)


def require_moments(width: int) -> None:
    """MemoryError if the second moments of so many features do not fit."""
    what = f"Holding the second moments of {width} features"
    remedy = "fewer features, KernelLSSVC or KernelLSSVR, or more memory"
    require_matrices(width, OF_MOMENTS, what, remedy)
