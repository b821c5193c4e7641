# SPDX-License-Identifier: BSD-3-Clause
"""Learned attributes of estimators with one machine, laid out as scikit-learn does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.arguments.validation import read_only
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.typing import FloatArray


class SingleMachine(KernelMachine):
    """One decision function over all samples."""

    @property
    def support_(self) -> npt.NDArray[np.int32]:
        """Places in `ids_` of the samples that carry weight."""
        return read_only(self._fitted("support_").support().astype(np.int32))

    @property
    def support_vectors_(self) -> Any:
        """Features of the samples that carry weight (none with a precomputed kernel)."""
        model = self._fitted("support_vectors_")
        if model.kernel.name == "precomputed":
            return read_only(np.empty((0, 0)))
        return read_only(model.features(self.support_))

    @property
    def n_support_(self) -> npt.NDArray[np.int32]:
        """How many samples carry weight, as an array of one."""
        return read_only(np.array([len(self.support_)], dtype=np.int32))

    @property
    def dual_coef_(self) -> FloatArray:
        """Signed weights of the support vectors, (1, n)."""
        return read_only(self._fitted("dual_coef_").weights(self.support_).T)

    @property
    def intercept_(self) -> FloatArray:
        """The constant of the decision function, as an array of one."""
        return read_only(self._fitted("intercept_").intercepts())

    @property
    def class_weight_(self) -> FloatArray:
        """Empty: there are no classes."""
        self._fitted("class_weight_")
        return read_only(np.empty(0))

    @property
    def coef_(self) -> FloatArray:
        """Weights of the features, (1, n_features); linear kernel only."""
        model = self._fitted("coef_")
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ exists for kernel='linear' only, and kernel={self.kernel!r}"
            )
        places = model.support()
        return read_only(np.asarray(model.features(places).T @ model.weights(places)).T)
