# SPDX-License-Identifier: BSD-3-Clause
"""In which set each row and each sample is: MARGIN, ERROR or RESERVE (CP01 figure 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adiabat.engine.machine import Machine
from adiabat.estimators.kernel.model import Model

MARGIN, ERROR, RESERVE = "MARGIN", "ERROR", "RESERVE"
#: Of a sample that was not yet, or is no longer, in the model.
ABSENT: Final = "ABSENT"


def sample_sets(model: Model, machines: Iterable[Machine] | None = None) -> npt.NDArray[Any]:
    """The set of each sample in the order of learning: ERROR if it is in any machine, or MARGIN."""
    chosen = [one for _, one in model.machines] if machines is None else list(machines)
    found = np.full(model.solver.samples.n, RESERVE, dtype="<U7")
    for wanted in (MARGIN, ERROR):  # ERROR last: it outranks
        for one in chosen:
            found[one.at[row_sets(one) == wanted]] = wanted
    return np.asarray(found[model.position])


def row_sets(machine: Machine) -> npt.NDArray[Any]:
    """The set of each row; between its bounds a row is MARGIN, in the factor or not."""
    found = classify(machine.u, machine.lo, machine.hi)
    found[machine.in_margin] = MARGIN
    return found


def classify(
    u: npt.NDArray[np.float64], lo: npt.NDArray[np.float64], hi: npt.NDArray[np.float64]
) -> npt.NDArray[Any]:
    """Sets by weight alone: RESERVE at 0, MARGIN between the bounds, else ERROR."""
    between = (lo < u) & (u < hi)
    return np.where(u == 0.0, RESERVE, np.where(between, MARGIN, ERROR)).astype("<U7")


def count_moves(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> dict[tuple[str, str], int]:
    """How many samples go from one set to another, by (from, to); those that stay are left out."""
    moved = before != after
    pairs, counts = np.unique(
        np.stack([before[moved], after[moved]], axis=1), axis=0, return_counts=True
    )
    return {(str(a), str(b)): int(n) for (a, b), n in zip(pairs, counts, strict=True)}
