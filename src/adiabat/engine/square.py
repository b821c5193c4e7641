# SPDX-License-Identifier: BSD-3-Clause
"""All kernel values of a model of several machines, each computed once, for as long as a fit takes.

One against one, a sample is in the machines of its class with each other. Where samples are few,
what these ask for and the columns of who ends with weight are more values than there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adiabat._core.among import AmongKnown, whole_matrix
from adiabat.typing import IntArray

if TYPE_CHECKING:
    from adiabat.engine.samples import Samples

# Samples up to which all kernel values are computed.
FEW = 2_500


class Square:
    """Kernel values of all samples with all; those of one group stand together."""

    def __init__(self, samples: Samples) -> None:
        n, group = samples.n, samples.group
        order = np.arange(n) if group is None else np.argsort(group, kind="stable")
        self.place: IntArray = np.empty(n, dtype=np.int64)
        self.place[order] = np.arange(n)
        rows = samples.view(order, 1, copied=True)
        self._values = whole_matrix(samples.kernel.formula, rows)

    def among(self, positions: Any) -> AmongKnown:
        """Kernel values of some samples among each other, or of those with all."""
        return AmongKnown(self._values, self.place[positions])

    def sorted(self, rows: IntArray, at: IntArray) -> IntArray:
        """Rows of samples at these positions, as their kernel values stand."""
        ordered: IntArray = rows[np.argsort(self.place[at], kind="stable")]
        return ordered


class all_known:
    """In a block, kernel values of all samples are there, if wanted and if these are few."""

    def __init__(self, samples: Samples, wanted: bool) -> None:
        self._samples = samples
        wanted = wanted and 0 < samples.n <= FEW
        self._wanted = wanted and samples.viewed and not samples.by_features

    def __enter__(self) -> None:
        if self._wanted:
            self._samples.square = Square(self._samples)

    def __exit__(self, *error: object) -> None:
        self._samples.square = None
