# SPDX-License-Identifier: BSD-3-Clause
"""Cross-conformal p-values: each fold is judged, and newcomers with it, by the model without it.

The p-value of a label is (1 + #(samples at least as strange as the newcomer)) / (n + 1), each
compared under the model without the sample's fold (Vovk, Cross-conformal predictors, 2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.arguments.labels import label_places
from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.confidence.folds import fold_models
from adiabat.estimators.kernel import votes
from adiabat.estimators.what_if.copies import own_targets, rows_for
from adiabat.typing import FloatArray, IntArray


def cross_p_values(estimator: Any, X: Any, folds: list[IntArray], per_class: bool) -> FloatArray:
    """P-values of every class at some rows, (n, n_classes)."""
    rows = as_csr(estimator._check_at(X))
    targets, classes = own_targets(estimator), estimator.classes_
    assert targets is not None
    rank = label_places(targets, classes)
    n, counts = len(targets), np.ones((rows.shape[0], len(classes)))
    for places, view in fold_models(estimator, folds):
        at = rows
        if estimator.kernel == "precomputed":
            at = rows[:, np.setdiff1d(np.arange(n), places)]
        scores, tie = _scores(view, at, classes)
        held, own_tie = _scores(view, rows_for(view, estimator, places), classes)
        held = held[np.arange(len(places)), rank[places]]
        for k in range(len(classes)):
            among = np.sort(held[rank[places] == k] if per_class else held)
            counts[:, k] += np.searchsorted(among, scores[:, k] + tie + own_tie, side="right")
    size = np.bincount(rank, minlength=len(classes)) if per_class else n
    found: FloatArray = counts / (size + 1)
    return found


def _scores(view: Any, X: Any, classes: npt.NDArray[Any]) -> tuple[FloatArray, float]:
    """Y f of rows for every class, the least over its pairs, and what a tie is.

    A class that the model lacks is as strange as can be.
    """
    out = np.full((X.shape[0], len(classes)), np.inf)
    present = label_places(view.classes_, classes)
    values = view._decide(X) if len(present) > 1 else np.zeros((X.shape[0], 0))
    for column, (first, second) in enumerate(votes.pairs_of(len(present))):
        for k, own in ((first, -values[:, column]), (second, values[:, column])):
            out[:, present[k]] = np.minimum(out[:, present[k]], own)
    out[out == np.inf] = -np.inf
    own_values = view._own_values(X) if len(present) > 1 else np.zeros(X.shape[0])
    noise = [
        float(np.median(machine.noise(view._model.solver.tol, own_values, 1.0)))
        for _, machine in view._model.machines
    ]
    return out, max(noise, default=0.0)
