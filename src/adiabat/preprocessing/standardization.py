# SPDX-License-Identifier: BSD-3-Clause
"""Columns less their mean, divided by their standard deviation: what `StandardScaler` does to rows.

NumPy and SciPy only, so that rows can be scaled where scikit-learn is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from adiabat.preprocessing.moments import Moments
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Standardization:
    """Means to subtract, and what to divide by; None for neither."""

    mean: FloatArray | None
    scale: FloatArray | None

    @classmethod
    def from_file(
        cls, fields: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], n_features: int
    ) -> Standardization:
        """That of the scaler of a model file; ValueError if its sums are not sound."""
        moments = Moments.from_arrays(arrays, n_features)
        if not any(moments.weights.totals):
            raise ValueError("the scaler has no rows")
        given = fields["parameters"]
        mean, scale = None, None
        if given["with_std"]:
            scale = scale_of(moments.seen(), moments.mean(), moments.variance())
        if given["with_mean"]:
            mean = moments.mean()
        return cls(mean, scale)

    def __call__(self, X: Any) -> Any:
        """Rows scaled, float64, in an array of their own."""
        if sp.issparse(X):
            if self.mean is not None:
                raise ValueError("Cannot center sparse matrices: pass with_mean=False instead")
            X = sp.csr_array(X, dtype=np.float64, copy=True)
            if self.scale is not None:
                X.data *= (1.0 / self.scale).take(X.indices, mode="clip")
            return X
        X = np.array(X, dtype=np.float64, order="C")
        if self.mean is not None:
            X -= self.mean
        if self.scale is not None:
            X /= self.scale
        return X


def scale_of(seen: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Standard deviations, and 1 for what scikit-learn takes for constant.

    That is a variance within the rounding of its own two-pass sums.
    """
    if np.isinf(variance).any():
        raise ValueError(
            f"X has a feature ({int(np.argmax(np.isinf(variance)))}) whose variance exceeds "
            "float64; divide it by a power of ten first"
        )
    rounding = np.finfo(np.float64).eps
    constant = variance <= seen * rounding * variance + (seen * mean * rounding) ** 2
    return np.where(constant, 1.0, np.sqrt(variance))
