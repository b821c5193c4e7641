# SPDX-License-Identifier: BSD-3-Clause
"""One update of the samples, before anything of it is carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from adiabat.engine.row_change import NO_ROWS, NO_VALUES
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel
from adiabat.typing import FloatArray, IntArray


class SampleChange(NamedTuple):
    """One update of the samples, by place in the order of learning.

    `X`, `target`, `weight` describe the samples that come in; the first `len(replaced)` of them
    take the places of samples whose features change, the others come at the end under `ids`. The
    samples `passing` were given, but are not learned (`retain`). A `formulation` replaces the one
    in force. With another `kernel` all machines are solved anew on `rows`, the features of all
    samples after the change.
    """

    ids: Sequence[Any] = ()
    X: Any = None
    target: npt.NDArray[Any] = NO_VALUES
    weight: FloatArray = NO_VALUES
    removed: IntArray = NO_ROWS
    replaced: IntArray = NO_ROWS
    retargeted: IntArray = NO_ROWS
    new_target: npt.NDArray[Any] = NO_VALUES
    reweighed: IntArray = NO_ROWS
    new_weight: FloatArray = NO_VALUES
    passing: Sequence[Any] = ()
    formulation: Formulation | None = None
    kernel: Kernel | None = None
    rows: Any = None

    @property
    def revises(self) -> bool:
        """Whether samples that stay are corrected."""
        return len(self.replaced) + len(self.reweighed) + len(self.retargeted) > 0
