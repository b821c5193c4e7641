# SPDX-License-Identifier: BSD-3-Clause
"""The one-class machine of Schoelkopf et al. as rows of problem (P).

A sample of weight w is one row:          t = 0,  0 <= u <= w,          d = nu sum w

so that adding a sample adds a box and raises d in the same step. f = Ku + b with b = -rho: the
hyperplane furthest from the origin that leaves at most a part nu of the weight on the wrong side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adiabat.formulations.base import Key, OneMachine, Rows, require_range
from adiabat.typing import FloatArray, IntArray


@dataclass(frozen=True)
class OneClass(OneMachine):
    """The formulation with its parameters resolved."""

    nu: float

    name: ClassVar[str] = "one_class"
    shift_free: ClassVar[bool] = False

    def rows(self, machine: Key, target: FloatArray, weight: FloatArray, own: FloatArray) -> Rows:
        """One row for each sample."""
        n = len(weight)
        return Rows(np.arange(n), np.zeros(n), np.zeros(n), weight.copy())

    def total(self, machine: Key, target: FloatArray, weight: FloatArray) -> float:
        """The part nu of the weight of all samples."""
        return self.nu * float(np.add.reduce(weight))

    def stays(self, target: FloatArray, gone: IntArray) -> bool:
        """Nothing but the sum of weights is taken from the samples."""
        return len(gone) < len(target)

    def require_sound(self, target: FloatArray) -> None:
        """Raise ValueError if a parameter read from a file makes no sense."""
        require_range("nu", self.nu, 0.0, 1.0)
