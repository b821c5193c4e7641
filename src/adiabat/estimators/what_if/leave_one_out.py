# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out: for each sample the model that never had it, and what it says of it.

Samples without weight need no work: the optimum does not know them. Every other one is driven out
of each machine that holds it (CP01 Algorithm 2), by pivots (`engine.tableau`) or on a copy
(`engine.trial`). Where only right or wrong is asked, two rules of CP01 save some of it: g of the
sample that goes can only fall, so one that is wrong stays wrong, and the path may stop where f
changes its sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.arguments.labels import label_array
from adiabat.estimators.kernel import votes
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.what_if.removals import Progress, machine_values, remove_each, weighty_units

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LeaveOneOut:
    """What the models without each sample say of it, in the order of `ids_`.

    Attributes
    ----------
    ids : ndarray
        The samples.
    target : ndarray
        Their labels.
    decision : ndarray or None
        Decision values, shaped as by `decision_function`; None with ``decisions=False``. Without
        the last sample of a class the class is gone: of more than two, its value is -inf.
    prediction : ndarray
        Labels predicted.
    n_removals : int
        How many removals it took; samples without weight need none.
    f_error : ndarray or None
        How far the decision values may be off, shaped alike, where that is known.
    """

    ids: npt.NDArray[Any]
    target: npt.NDArray[Any]
    decision: FloatArray | None
    prediction: npt.NDArray[Any]
    n_removals: int
    f_error: FloatArray | None = None

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is recognised by the model that never had it."""
        return np.asarray(self.prediction == self.target)

    @property
    def error_rate(self) -> float:
        """The part that is not: the leave-one-out estimate of the error."""
        return 1.0 - float(np.mean(self.correct))

    def __str__(self) -> str:
        wrong = int(np.sum(~self.correct))
        return (
            f"{wrong} of {len(self.ids)} samples are misclassified by the models without them "
            f"({100.0 * self.error_rate:.2f} %); {self.n_removals} removals"
        )


def leave_one_out(
    estimator: Any, decisions: bool, n_jobs: int | None, progress: Progress | None
) -> LeaveOneOut:
    """Leave every sample of a classifier out in turn; see `SVC.leave_one_out`."""
    model: Model = estimator._model
    formulation: Any = model.formulation
    codes = formulation.codes(model.target)
    rank = np.searchsorted(np.sort(codes), model.target)
    rank = np.argsort(codes)[rank]  # codes are in the order of their labels
    members = np.bincount(rank, minlength=len(codes))
    values = machine_values(model)
    pairs = votes.pairs_of(len(codes))
    verdicts_only = not decisions and len(codes) == 2
    units = [
        (column, place)
        for column, place in weighty_units(model)
        if members[rank[place]] > 1
        and not (verdicts_only and (values[place, 0] > 0.0) != (rank[place] == 1))
    ]
    removals = remove_each(estimator, units, n_jobs, progress, ask=verdicts_only)
    for (column, place), removal in zip(units, removals, strict=True):
        values[place, column] = -values[place, column] if removal.decided else removal.f
    scores, chosen = _decide(values, len(codes))
    if len(codes) > 2 and estimator.decision_function_shape == "ovo":
        scores = -values
    for place in np.flatnonzero(members[rank] == 1).tolist():
        left = [k for k, pair in enumerate(pairs) if rank[place] not in pair]
        others = np.delete(np.arange(len(codes)), rank[place])
        own = votes.scores(values[place : place + 1, left], len(others))[0]
        chosen[place] = others[np.argmax(own)] if len(others) else 0
        if len(codes) <= 2:
            scores[place] = 0.0
        elif estimator.decision_function_shape == "ovr":
            scores[place, rank[place]] = -np.inf
            scores[place, others] = own
        else:
            scores[place, [k for k, pair in enumerate(pairs) if rank[place] in pair]] = -np.inf
    labels = label_array([formulation.label[code] for code in codes])
    return LeaveOneOut(
        ids=model.ledger.ids,
        target=labels[rank],
        decision=scores if decisions else None,
        prediction=labels[chosen],
        n_removals=len(units),
    )


def _decide(values: FloatArray, n_classes: int) -> tuple[FloatArray, IntArray]:
    """Decision values and chosen classes from those of the pairs, as `SVC` has them."""
    if n_classes == 2:
        return values[:, 0].copy(), (values[:, 0] > 0.0).astype(np.int64)
    scores = votes.scores(values, n_classes)
    return scores, np.argmax(scores, axis=1) if n_classes else np.zeros(len(values), dtype=np.int64)
