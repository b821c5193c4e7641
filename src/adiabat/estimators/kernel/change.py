# SPDX-License-Identifier: BSD-3-Clause
"""One update of the samples, before anything of it is carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from adiabat.engine.row_change import no_rows, no_values
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel
from adiabat.typing import FloatArray, IntArray


@dataclass(frozen=True)
class SampleChange:
    """One update of the samples, by place in the order of learning.

    `X`, `target`, `weight` describe the samples that come in; the first `len(replaced)` of them
    take the places of samples whose features change, the others come at the end under `ids`. The
    samples `passing` were given, but are not learned (`retain`). A `formulation` replaces the one
    in force. With another `kernel` all machines are solved anew on `rows`, the features of all
    samples after the change.
    """

    ids: list[Any] = field(default_factory=list)
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
    formulation: Formulation | None = None
    kernel: Kernel | None = None
    rows: Any = None

    @property
    def revises(self) -> bool:
        """Whether samples that stay are corrected."""
        return len(self.replaced) + len(self.reweighed) + len(self.retargeted) > 0
