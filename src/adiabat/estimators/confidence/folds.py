# SPDX-License-Identifier: BSD-3-Clause
"""Folds of the samples of a model, each left out of it in one step."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, check_cv

from adiabat.estimators.kernel_machine import KernelMachine
from adiabat.estimators.what_if.copies import copy_removing
from adiabat.typing import IntArray

# Folds where cv is not given, as in scikit-learn.
USUAL = 5


def folds_of(n: int, cv: Any) -> list[IntArray]:
    """Places of each fold: all samples, each in one; drawn without a look at the data.

    A number of folds is drawn by a fixed seed, since samples may have come in an order.
    """
    cv = USUAL if cv is None else cv
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, (bool, np.bool_)):
        if not 2 <= cv <= n:
            raise ValueError(f"cv={cv!r} must be between 2 and the number of samples, {n}")
        cv = KFold(int(cv), shuffle=True, random_state=0)
    folds = [np.sort(np.asarray(test)) for _, test in check_cv(cv).split(np.zeros((n, 1)))]
    together = np.sort(np.concatenate(folds))
    if not np.array_equal(together, np.arange(n)):
        raise ValueError(f"cv={cv!r} must put each of the {n} samples into one fold")
    if len(folds) < 2:
        raise ValueError(f"cv={cv!r} has one fold, and nothing would be left without it")
    return folds


def fold_models(estimator: Any, folds: list[IntArray]) -> Iterator[tuple[IntArray, Any]]:
    """Each fold, and the model that never had it."""
    for places in folds:
        if isinstance(estimator, KernelMachine):
            yield places, copy_removing(estimator, places)
        else:
            twin = deepcopy(estimator)
            twin.__dict__.pop("feature_names_in_", None)
            yield places, twin.forget(estimator.ids_[places])
