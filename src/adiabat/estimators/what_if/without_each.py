# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of the estimators with one machine: regression, one class, the sphere.

Each sample is removed from the optimum along its own path (CP01 Algorithm 2), all its rows at once,
and the sum of weights moves with it where it depends on the samples (one class).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.removals import (
    Progress,
    Unit,
    machine_values,
    remove_each,
    weighty_units,
)

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LeaveOneOutRegression:
    """What the models without each sample predict for it, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    target : ndarray
        Their targets.
    prediction : ndarray
        Predicted by the model that never had the sample.
    n_removals : int
        How many removals it took; samples without weight need none.
    f_error : ndarray or None
        How far the predictions may be off, where that is known.
    """

    ids: npt.NDArray[Any]
    target: FloatArray
    prediction: FloatArray
    n_removals: int
    f_error: FloatArray | None = None

    @property
    def decision(self) -> FloatArray:
        """The predictions, by the name that classifiers have for them."""
        return self.prediction

    @property
    def residual(self) -> FloatArray:
        """Prediction less target."""
        return self.prediction - self.target

    @property
    def mean_absolute_error(self) -> float:
        """The leave-one-out estimate of the mean absolute error."""
        return float(np.mean(np.abs(self.residual)))

    def __str__(self) -> str:
        return (
            f"mean absolute error {self.mean_absolute_error:.4g} over {len(self.ids)} samples by "
            f"the models without them; {self.n_removals} removals"
        )


@dataclass(frozen=True)
class LeaveOneOutNovelty:
    """What the models without each sample say of it, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    decision : ndarray
        Decision values of the model that never had the sample: above 0 inside.
    n_removals : int
        How many removals it took.
    """

    ids: npt.NDArray[Any]
    decision: FloatArray
    n_removals: int

    @property
    def prediction(self) -> npt.NDArray[np.int64]:
        """+1 for samples that the model without them takes for its own, -1 for others."""
        return np.where(self.decision >= 0.0, 1, -1)

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is taken in by the model that never had it."""
        return np.asarray(self.decision >= 0.0)

    @property
    def error_rate(self) -> float:
        """The part that is not: the leave-one-out estimate of false alarms."""
        return 1.0 - float(np.mean(self.correct))

    def __str__(self) -> str:
        return (
            f"{int(np.sum(~self.correct))} of {len(self.ids)} samples are outside for the models "
            f"without them ({100.0 * self.error_rate:.2f} %); {self.n_removals} removals"
        )


def values_without(
    estimator: Any, n_jobs: int | None, progress: Progress | None
) -> tuple[FloatArray, int]:
    """F at each sample by the machine without it, and how many had to be removed for it."""
    model: Model = estimator._model
    values = machine_values(model)[:, 0]
    units: list[Unit] = []
    settled: list[Unit] = []
    for unit in _all_units(model):
        (settled if _settles(model, unit[1]) else units).append(unit)
    for (_, place), removal in zip(
        units, remove_each(estimator, units, n_jobs, progress), strict=True
    ):
        values[place] = removal.f
    for _, place in settled:
        values[place] = _value_after_forgetting(estimator, place)
    return values, len(units) + len(settled)


def _all_units(model: Model) -> list[Unit]:
    """Samples whose removal changes the machine: those with weight, or all if the sum moves."""
    ((key, machine),) = model.machines
    others = np.ones(len(model), dtype=bool)
    others[0] = False
    total = model.formulation.total(key, model.target[others], model.weight[others])
    if total != machine.d:
        return [(0, place) for place in range(len(model))]
    return weighty_units(model)


def _settles(model: Model, place: int) -> bool:
    """Whether the formulation is another one without a sample, or there is none left."""
    others = np.arange(len(model)) != place
    if not np.any(model.weight[others]):
        return True
    without = model.formulation.settle(model.target[others], model.weight[others])
    return without.reshapes(model.formulation)


def _value_after_forgetting(estimator: Any, place: int) -> float:
    """F at a sample by a copy that has forgotten it; of an empty model, 0."""
    model: Model = estimator._model
    row = model.given_kernel() if model.kernel.name == "precomputed" else None
    held = copy.deepcopy(estimator)
    held.forget([model.ledger.ids[place]])
    if len(held._model) == 0:
        return 0.0
    if row is not None:
        return float(held._model.decide(np.delete(row[[place]], place, axis=1))[0, 0])
    return float(held._model.decide(model.features(np.array([place])))[0, 0])
