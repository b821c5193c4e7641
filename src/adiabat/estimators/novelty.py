# SPDX-License-Identifier: BSD-3-Clause
"""What estimators of one class share: samples without targets, verdicts of +1 and -1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.confidence.novelty import ConfidentDetector
from adiabat.estimators.kernel import rounding
from adiabat.estimators.single_machine import SingleMachine
from adiabat.estimators.what_if.leave_one_out import leave_one_out_values
from adiabat.estimators.what_if.results import LeaveOneOutNovelty
from adiabat.typing import FloatArray


class NoveltyDetector(ConfidentDetector, OutlierMixin, SingleMachine):
    """An estimator that says of a sample whether it is like those it has learned."""

    _supervised: ClassVar[bool] = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, ids: Any = None) -> Self:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` their kernel matrix (n_samples, n_samples).
        y : ignored
            There by convention.
        sample_weight : array of shape (n_samples,), optional
            Weights >= 0; 0 keeps a sample without force.
        ids : sequence of int or str, optional
            Names of the samples. By default the index of a data frame, or a running count.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight, ids)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, ids: Any = None
    ) -> Self:
        """Learn further samples.

        Parameters
        ----------
        X, sample_weight, ids
            As in `fit`. With ``kernel="precomputed"`` X has the new rows' kernel values against
            the samples of `ids_` in order, then against the new rows themselves.
        y : ignored
            There by convention.

        Returns
        -------
        self
        """
        self.update(X, ids=ids, sample_weight=sample_weight)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Above 0 inside, below 0 outside."""
        raise NotImplementedError

    def _decision_from(self, values: FloatArray) -> FloatArray:
        """Decision values of the samples held, from f at them."""
        return self._without_rounding(values, self._held_values(), self._held_points())

    def leave_one_out(
        self, n_jobs: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> LeaveOneOutNovelty:
        """What the model would say of each sample, had it never learned that sample.

        Exact for every sample, without a refit; the model is not changed.

        Parameters
        ----------
        n_jobs : int or None, default=None
            Samples removed at a time, as in joblib (-1: as many as there are cores). Threads,
            unless :func:`joblib.parallel_config` says otherwise.
        progress : callable, optional
            Called with (removals done, removals in all).

        Returns
        -------
        LeaveOneOutNovelty
        """
        check_is_fitted(self)
        self._require_unchanged()
        values, removals = leave_one_out_values(self, n_jobs, progress)
        return LeaveOneOutNovelty(self.ids_, self._decision_from(values), removals)

    def _held_values(self) -> FloatArray:
        """k(x, x) of the samples held, in the order of learning."""
        model = self._model
        own: FloatArray = model.solver.samples.diagonal[model.position]
        return own

    def _held_points(self) -> Any:
        """The samples held, as rows to decide on."""
        return self._model.given_kernel() if self.kernel == "precomputed" else self._held_rows()

    def _without_rounding(
        self, values: FloatArray, own: FloatArray, X: Any, targets: Any = 0.0
    ) -> FloatArray:
        """Decision values at rows X, 0 where they are 0 but for rounding; `own` are k(x, x)."""
        return rounding.novelty_without(self._model, values, own, X, targets)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """+1 for samples like those learned, -1 for others."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)
