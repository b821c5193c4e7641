# SPDX-License-Identifier: BSD-3-Clause
"""What a store decides with as of one entry of its log: arrays that nothing changes any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adiabat.errors import StoreError
from adiabat.estimators.predictors.answers import KernelPredictor
from adiabat.store.log import Entry
from adiabat.store.settings import Settings
from adiabat.store.tasks import is_fitted
from adiabat.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Predictor:
    """The predictor of a store as of one entry.

    Threads may share it. Later changes of the store leave it as it is.

    Attributes
    ----------
    entry : int
        Number of the entry.
    hash : str
        Its hash.
    settings : Settings
        As of that entry.
    decider : object or None
        With `predict` and, if the task has it, `decision_function`; None before the first rows.
    support : ndarray
        Numbers of the rows that carry weight, in the order of the decider's arrays.
    """

    entry: int
    hash: str
    settings: Settings
    decider: Any
    support: IntArray

    @classmethod
    def of(cls, head: Entry, settings: Settings, model: Any) -> Predictor:
        """What a model decides with after an entry."""
        decider, support = None, np.empty(0, dtype=np.int64)
        if is_fitted(model):
            from adiabat.estimators.predictors.making import make_predictor

            decider = make_predictor(model)
            if isinstance(decider, KernelPredictor):
                support = np.asarray(model.ids_)[decider.decider.places].copy()
        return cls(head.seq, head.hash, settings, decider, support)

    def require_fitted(self, name: str) -> Any:
        """The decider; StoreError if nothing was learned yet."""
        if self.settings.features is None or self.decider is None:
            raise StoreError(f"{name!r} has learned nothing yet; learn some rows first")
        return self.decider

    def contributions(self, X: Any) -> tuple[FloatArray, FloatArray] | None:
        """For one encoded row, k(x, z) and u k(x, z) of every support vector z.

        The second has a column for each machine. None for a task without support vectors.
        """
        if not isinstance(self.decider, KernelPredictor):
            return None
        held = self.decider.decider
        values = held.values(self.decider.rows(X))[0]
        return values, values[:, None] * held.weights
