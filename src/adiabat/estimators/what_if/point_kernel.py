# SPDX-License-Identifier: BSD-3-Clause
"""Points that are decided again and again: kernel values with each sample are computed once."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from adiabat.estimators.kernel.model import Model
from adiabat.typing import FloatArray, IntArray


class PointKernel:
    """Kernel values between points and the samples of a model, a column for each that carries
    weight in the model or in a branch of it.

    Parameters
    ----------
    model : Model
        Its branches have their samples at the same positions.
    X : array or sparse array
        The points; with a given kernel, its values against the samples in the order of learning.
    """

    def __init__(self, model: Model, X: Any) -> None:
        self._points, self._kernel = X, model.kernel
        self._lock = threading.Lock()
        self._column = np.full(model.solver.samples.n, -1)  # by position
        self._n = 0
        self._values = np.empty((X.shape[0], 0), order="F")
        if model.kernel.name == "precomputed":
            self._values, self._n = X, X.shape[1]
            self._column[model.position] = np.arange(self._n)

    def decide(self, model: Model) -> FloatArray:
        """Decision values of every machine at the points, (n_points, machines)."""
        places = model.support()
        at = model.position[places]
        with self._lock:
            self._complete(model, places[self._column[at] < 0])
            values = self._values[:, : self._n]
        own = model.weights(places)
        weights = np.zeros((values.shape[1], own.shape[1]))
        weights[self._column[at]] = own
        return np.asarray(values @ weights + model.biases())

    def by_position(self, model: Model) -> FloatArray:
        """Kernel values with all samples of the model, by their positions."""
        with self._lock:
            self._complete(model, np.flatnonzero(self._column[model.position] < 0))
        out = np.zeros((self._values.shape[0], len(self._column)))
        out[:, model.position] = self._values[:, self._column[model.position]]
        return out

    def _complete(self, model: Model, missing: IntArray) -> None:
        """Columns for further samples; arrays handed out before stay as they are."""
        if not len(missing):
            return
        n = self._n + len(missing)
        if n > self._values.shape[1]:
            grown = np.empty((self._values.shape[0], max(n, 3 * self._n // 2)), order="F")
            grown[:, : self._n] = self._values[:, : self._n]
            self._values = grown
        self._values[:, self._n : n] = self._kernel.block(self._points, model.features(missing))
        self._column[model.position[missing]] = np.arange(self._n, n)
        self._n = n
