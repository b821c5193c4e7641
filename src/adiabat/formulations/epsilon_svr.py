# SPDX-License-Identifier: BSD-3-Clause
"""Epsilon-insensitive regression as rows of problem (P): two rows a sample.

A sample of weight w and target y is

    t = y - epsilon,  0 <= u <= C w          t = y + epsilon,  -C w <= u <= 0          d = 0

The first row pulls f up where it is below the tube, the second down where it is above. Both point
at the same sample, so that they share its kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from adiabat.formulations.base import Key, OneMachine, Rows, require_range
from adiabat.formulations.price import FIRST_BOUND, price_fields, reach, require_price
from adiabat.typing import FloatArray, IntArray


@dataclass(frozen=True)
class EpsilonSVR(OneMachine):
    """The formulation with its parameters resolved; `bound` stands in for an infinite C."""

    C: float
    epsilon: float
    bound: float = FIRST_BOUND

    name: ClassVar[str] = "epsilon_svr"
    shift_free: ClassVar[bool] = True

    def rows(self, machine: Key, target: FloatArray, weight: FloatArray, own: FloatArray) -> Rows:
        """Two rows for each sample, the lower edge of the tube first."""
        n = len(target)
        lower = np.tile([True, False], n)
        most = np.repeat(reach(self.C, self.bound, weight), 2)
        return Rows(
            sample=np.repeat(np.arange(n), 2),
            t=np.repeat(target, 2) + np.where(lower, -self.epsilon, self.epsilon),
            lo=np.where(lower, 0.0, -most),
            hi=np.where(lower, most, 0.0),
        )

    def total(self, machine: Key, target: FloatArray, weight: FloatArray) -> float:
        """What is pulled up is balanced by what is pulled down."""
        return 0.0

    def stays(self, target: FloatArray, gone: IntArray) -> bool:
        """Nothing is taken from the samples."""
        return len(gone) < len(target)

    def raised(self) -> EpsilonSVR | None:
        """With the next bound that may stand in for an infinite C; None if C is finite."""
        return replace(self, bound=self.bound * FIRST_BOUND) if self.C == np.inf else None

    def require_sound(self, target: FloatArray) -> None:
        """Raise ValueError if parameters or targets read from a file make no sense."""
        require_price(self.C, self.bound)
        require_range("epsilon", self.epsilon, 0.0, closed=True)
        if not np.isfinite(target).all():
            raise ValueError("a target is not finite")

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain JSON values."""
        return {**price_fields(self.C, self.bound), "epsilon": self.epsilon}
