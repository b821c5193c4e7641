# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator decides with, apart from the estimator.

A predictor is the estimator's own shell with arrays of its own in place of the model: support
vectors, their weights, biases. Nothing that is done to the estimator later reaches it, so any
number of threads may ask it at any time. It decides as the estimator did, by the same code, and can
do nothing else.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.kernel_values import multiply
from adiabat.engine.noise import noise
from adiabat.engine.threads import pool_for
from adiabat.estimators.confidence.calibration import Calibration, curves_of
from adiabat.estimators.incremental_pipeline import IncrementalPipeline
from adiabat.estimators.kernel.model import BLOCK_ENTRIES, Model
from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.formulations import Formulation
from adiabat.kernels import Kernel
from adiabat.typing import BoolArray, FloatArray, IntArray

# What an estimator's shell has that deciding does not need, and that changes or holds rows.
_LEFT_BEHIND = ("_raw", "last_update_", "_hashes")


def make_predictor(model: Any) -> Any:
    """The predictor of a fitted estimator: `predict`, and what it has of the following.

    `decision_function`; `predict_proba`, whose curves are fitted now, to exact leave-one-out.
    """
    # Not copy.copy, which goes by the state that is pickled and so solves the machine anew.
    shell = object.__new__(type(model))
    kept = {name: held for name, held in vars(model).items() if name not in _LEFT_BEHIND}
    shell.__dict__.update(kept)
    if isinstance(model, IncrementalPipeline):
        shell.estimator_ = make_predictor(model.estimator_)
        shell.scaler_ = copy.deepcopy(model.scaler_)
    elif isinstance(model, KernelMachine):
        shell._model = Decider.of(model._model, curves_of(model))
    # Machines of least squares are never written to: the shell keeps the one of now.
    return shell


def confidence(predictor: Any, X: Any, labels: npt.NDArray[Any]) -> FloatArray | None:
    """Probabilities of the labels that a predictor gave rows; None if it has no curves."""
    inner = getattr(predictor, "estimator_", predictor)
    if getattr(getattr(inner, "_model", None), "calibration", None) is None:
        return None
    place = {label: k for k, label in enumerate(predictor.classes_.tolist())}
    chosen = [place[label] for label in labels.tolist()]
    found: FloatArray = predictor.predict_proba(X)[np.arange(len(chosen)), chosen]
    return found


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
        return self._weigh(X) + self.biases

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
            sizes = self._weigh(X[doubtful], sizes=True)[:, column]
            targets = t if np.ndim(t) == 0 else t[doubtful]
            known = noise(self.tol, sizes, least_size, b, typical, targets)
            zero[doubtful] = np.abs(values[doubtful]) <= few * known
        return zero

    def _weigh(self, X: Any, sizes: bool = False) -> FloatArray:
        weights = np.abs(self.weights) if sizes else self.weights
        n, support = X.shape[0], len(weights)
        out = np.zeros((n, weights.shape[1]))
        step = max(1, BLOCK_ENTRIES // max(1, support))
        with pool_for(n * support * X.shape[1]):
            for start in range(0, n if support else 0, step):
                values = self.values(X[start : start + step])
                out[start : start + step] = multiply(np.abs(values) if sizes else values, weights)
        return out
