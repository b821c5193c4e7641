# SPDX-License-Identifier: BSD-3-Clause
"""The smallest sphere around most of the data, LGKM06 (23), as rows of problem (P).

A sample of weight w is one row:     t = k(x, x) / 2,  0 <= u <= C w,          d = 1

The centre is a = sum u phi(x). From K u + b = t on the margin: R^2 = 2 b + u'Ku, and for any x
R^2 - |phi(x) - a|^2 = 2 (f(x) - k(x, x) / 2) = 2 r(x): above 0 inside.

While C sum w < 1 the boxes cannot hold a sum of 1. C is then taken as 1 / sum w, the least that
can: every sample is at its bound, the centre is their weighted mean. So an incremental sphere
starts from its first sample (LGKM06, Algorithm 2, lines 1 and 2), and comes back to this when so
many samples are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from adiabat.formulations.base import Key, OneMachine, Rows, require_range
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Sphere(OneMachine):
    """The formulation with its parameters resolved: `reach` is the C in force."""

    C: float
    reach: float = 0.0

    name: ClassVar[str] = "svdd"
    shift_free: ClassVar[bool] = False

    def resolve(self, target: npt.NDArray[Any], weight: FloatArray) -> Sphere:
        """The C in force on these samples."""
        mass = float(np.sum(weight))
        return replace(self, reach=max(self.C, 1.0 / mass) if mass > 0.0 else self.C)

    def rows(self, machine: Key, target: FloatArray, weight: FloatArray, own: FloatArray) -> Rows:
        """One row for each sample."""
        n = len(weight)
        return Rows(np.arange(n), 0.5 * own, np.zeros(n), self.reach * weight)

    def total(self, machine: Key, target: FloatArray, weight: FloatArray) -> float:
        """All the mass of the centre, or none where no sample has weight."""
        return 1.0 if np.any(weight) else 0.0

    def require_sound(self, target: FloatArray) -> None:
        """Raise ValueError if a parameter read from a file makes no sense."""
        require_range("C", self.C, 0.0)
        require_range("reach", self.reach, 0.0)
