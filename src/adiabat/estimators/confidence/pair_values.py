# SPDX-License-Identifier: BSD-3-Clause
"""What each pair of classes says of each sample, by the model that never had the sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.removals import machine_values, remove_each, weighty_units
from adiabat.typing import FloatArray


def pair_values(estimator: Any, n_jobs: int | None = None) -> FloatArray:
    """F of every machine at every sample without it, (n_samples, n_machines).

    Without the last sample of a class the class is gone: what speaks for it is then infinitely far.
    """
    model: Model = estimator._model
    codes, members = np.unique(model.target, return_counts=True)
    alone = np.isin(model.target, codes[members == 1])
    values = machine_values(model)
    units = [unit for unit in weighty_units(model) if not alone[unit[1]]]
    for (column, place), removal in zip(
        units, remove_each(estimator, units, n_jobs, None), strict=True
    ):
        values[place, column] = removal.f
    for column, (key, _) in enumerate(model.machines):
        values[alone & (model.target == key[0]), column] = np.inf
        values[alone & (model.target == key[1]), column] = -np.inf
    return values
