# SPDX-License-Identifier: BSD-3-Clause
"""Results that know what is proven of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from adiabat.estimators.confidence.guarantee import Guarantee


class PValues(np.ndarray):
    """An array of p-values, with the `guarantee` of all sets that are made of them."""

    guarantee: Guarantee | None = None

    @classmethod
    def of(cls, values: npt.NDArray[np.float64], guarantee: Guarantee) -> PValues:
        """Values with their guarantee."""
        found = values.view(cls)
        found.guarantee = guarantee
        return found


class _Pair(NamedTuple):
    prediction: npt.NDArray[Any]
    confidence: Any


class Prediction(_Pair):
    """Predictions, and sets, intervals or regions around them: a tuple of two.

    Attributes
    ----------
    guarantee : Guarantee
        How often they hold.
    """

    guarantee: Guarantee

    @classmethod
    def of(cls, prediction: npt.NDArray[Any], confidence: Any, guarantee: Guarantee) -> Prediction:
        """Both, with their guarantee."""
        found = cls(prediction, confidence)
        found.guarantee = guarantee
        return found
