# SPDX-License-Identifier: BSD-3-Clause
"""Decision values from arrays: support vectors, their weights, biases.

It decides as the model did, by the same kernel values in the same order. Nothing that is done to
the model later reaches it, so any number of threads may ask it at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adiabat._core.kernel_values import multiply
from adiabat.engine.noise import noise
from adiabat.engine.threads import pool_for
from adiabat.estimators.kernel.model import BLOCK_ENTRIES, Model
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel
from adiabat.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:  # it imports scikit-learn
    from adiabat.estimators.confidence.calibration import Calibration


@dataclass(frozen=True)
class Decider:
    """A `Model` that can only decide."""

    kernel: Kernel
    formulation: Formulation
    tol: float
    n_samples: int
    places: IntArray  # of the support vectors, in the order of learning
    vectors: Any
    weights: FloatArray  # (support vectors, machines)
    biases: FloatArray
    #: By machine, what `Machine.noise` takes from it: strength and least, least size, typical t.
    known: tuple[tuple[float, float, float, float], ...]
    calibration: Calibration | None = None

    @classmethod
    def of(cls, model: Model, calibration: Calibration | None = None) -> Decider:
        """The arrays of a model, copied."""
        places = model.support()
        machines = [machine for _, machine in model.machines]
        return cls(
            kernel=model.kernel,
            formulation=model.formulation,
            tol=model.solver.tol,
            n_samples=len(model),
            places=places,
            vectors=model.features(places).copy(),
            weights=model.weights(places),
            biases=model.biases(),
            known=tuple((*m.strength(), m.least_size(), m.typical) for m in machines),
            calibration=calibration,
        )

    def __len__(self) -> int:
        return self.n_samples

    def decide(self, X: Any) -> FloatArray:
        """Decision values at new rows, (len(X), machines)."""
        return self.sums(X) + self.biases

    def values(self, X: Any) -> FloatArray:
        """Kernel values of new rows against the support vectors."""
        return self.kernel.block(X, self.vectors)

    def zero_but_for_rounding(
        self, column: int, values: FloatArray, X: Any, own: FloatArray, t: Any = 0.0, few: int = 1
    ) -> BoolArray:
        """As `Model.zero_but_for_rounding`."""
        strength, least, least_size, typical = self.known[column]
        b = float(self.biases[column])
        bound = noise(self.tol, np.sqrt(own) * strength, least, b, typical, t)
        zero: BoolArray = np.abs(values) <= few * bound
        doubtful = np.flatnonzero(zero)
        if len(doubtful):
            sizes = self.sums(X[doubtful], sizes=True)[:, column]
            targets = t if np.ndim(t) == 0 else t[doubtful]
            known = noise(self.tol, sizes, least_size, b, typical, targets)
            zero[doubtful] = np.abs(values[doubtful]) <= few * known
        return zero

    def sums(self, X: Any, sizes: bool = False) -> FloatArray:
        """Decision values less b; with `sizes` those of their terms, |K||u|."""
        weights = np.abs(self.weights) if sizes else self.weights
        n, support = X.shape[0], len(weights)
        out = np.zeros((n, weights.shape[1]))
        step = max(1, BLOCK_ENTRIES // max(1, support))
        with pool_for(n * support * X.shape[1]):
            for start in range(0, n if support else 0, step):
                values = self.values(X[start : start + step])
                out[start : start + step] = multiply(np.abs(values) if sizes else values, weights)
        return out
