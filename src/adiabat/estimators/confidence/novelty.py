# SPDX-License-Identifier: BSD-3-Clause
"""P-values of novelty, as a method of the detectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from adiabat.estimators.confidence.guarantee import guarantee
from adiabat.estimators.confidence.p_values import p_values_of_novelty
from adiabat.estimators.confidence.results import PValues


class ConfidentDetector:
    """A detector that says how often a sample like its own would look as strange."""

    def predict_p(
        self,
        X: Any,
        smoothing: bool = False,
        random_state: Any = None,
        *,
        score: str = "margin",
        diagonal: Any = None,
    ) -> PValues:
        """P-values of rows being like the samples learned: small is novel.

        Each row is learned, ranked among all samples by that model, and unlearned again, exactly;
        the model itself is not changed. Of rows like the samples, at most a part alpha has a
        p-value up to alpha. For many rows at once, :func:`scipy.stats.false_discovery_control`
        turns p-values into a list with few false alarms; the p-values share their samples, so pass
        ``method="by"`` for a proof, or ``"bh"``, which holds well in practice.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_points, n_features)
            Rows; for ``kernel="precomputed"`` their kernel values against `ids_`.
        smoothing : bool, default=False
            Whether ties count by a random part, so that p-values are uniform; otherwise ties count
            in full.
        random_state : int, RandomState instance or None, default=None
            For `smoothing`.
        score : {"margin", "loo"}, default="margin"
            How strange a sample is: its decision value by the model with all samples, or by the
            model without that sample, which takes longer.
        diagonal : array of shape (n_points,), optional
            With ``kernel="precomputed"``, the values k(x, x) of the rows.

        Returns
        -------
        ndarray of shape (n_points,)
            With a `guarantee`.
        """
        check_is_fitted(self)
        self._require_unchanged()  # type: ignore[attr-defined]
        found = p_values_of_novelty(
            self, X, diagonal, score=score, smoothing=smoothing, random_state=random_state
        )
        model: Any = self._model  # type: ignore[attr-defined]
        return PValues.of(found, guarantee(self, "full", np.empty(0), len(model)))
