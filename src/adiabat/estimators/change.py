# SPDX-License-Identifier: BSD-3-Clause
"""One update of the samples, before anything of it is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.engine.machine import no_rows, no_values

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Change:
    """One update of the samples, by place in the order of learning.

    `X`, `target`, `weight` describe the samples that come in; the first `len(replaced)` of them
    take the places of samples whose features change, the others come at the end under `ids`. What
    is `passing` was given, but is not even learned (`retain`).
    """

    ids: list[Any]
    X: Any = None
    target: npt.NDArray[Any] = field(default_factory=no_values)
    weight: FloatArray = field(default_factory=no_values)
    removed: IntArray = field(default_factory=no_rows)
    replaced: IntArray = field(default_factory=no_rows)
    retargeted: IntArray = field(default_factory=no_rows)
    new_target: npt.NDArray[Any] = field(default_factory=no_values)
    reweighed: IntArray = field(default_factory=no_rows)
    new_weight: FloatArray = field(default_factory=no_values)
    passing: list[Any] = field(default_factory=list)

    @property
    def revises(self) -> bool:
        """Whether samples that stay are corrected."""
        return len(self.replaced) + len(self.reweighed) + len(self.retargeted) > 0
