# SPDX-License-Identifier: BSD-3-Clause
"""C-SVC as rows of problem (P), one machine for each pair of classes.

A sample of weight w in the machine of classes (first, second) is one row:

    second:  t = +1,  0 <= u <= C w          first:  t = -1,  -C w <= u <= 0          d = 0

so that u = y alpha of CP01 (1) with y = +1 for the second class, and f > 0 speaks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Rows of one machine: which of the given samples they stand for, and (t, lo, hi)."""

    sample: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True)
class CSVC:
    """The formulation with its parameters settled.

    Classes are known here by code; `label` says which label a code stands for, and pairs are
    ordered by label, so that they do not change when other classes come and go.
    """

    C: float
    label: dict[int, Any] = field(default_factory=dict)
    class_weight: Mapping[int, float] = field(default_factory=dict)
    d: float = 0.0

    def codes(self, target: IntArray) -> list[int]:
        """Codes of the classes present, in the order of their labels."""
        present = np.flatnonzero(np.bincount(target)).tolist() if len(target) else []
        return sorted(present, key=lambda code: self.label[code])

    def machines(self, target: IntArray) -> list[Pair]:
        """One machine for each pair of classes present."""
        codes = self.codes(target)
        return [(a, b) for i, a in enumerate(codes) for b in codes[i + 1 :]]

    def concerns(self, machine: Pair, targets: set[int]) -> bool:
        """Whether samples of these classes have rows in a machine."""
        return machine[0] in targets or machine[1] in targets

    def rows(self, machine: Pair, target: IntArray, weight: FloatArray) -> Rows:
        """Rows of samples with these targets and weights in a machine."""
        first, second = machine
        sample = np.flatnonzero((target == first) | (target == second))
        positive = target[sample] == second
        per_class = np.where(
            positive, self.class_weight.get(second, 1.0), self.class_weight.get(first, 1.0)
        )
        reach = self.C * weight[sample] * per_class
        return Rows(
            sample=sample,
            t=np.where(positive, 1.0, -1.0),
            lo=np.where(positive, 0.0, -reach),
            hi=np.where(positive, reach, 0.0),
        )
