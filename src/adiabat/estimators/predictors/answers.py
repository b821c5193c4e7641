# SPDX-License-Identifier: BSD-3-Clause
"""Answers from decision values: classes, numbers, inside or outside.

One predictor for each kind of machine, with the methods of its estimator that decide, and by the
same code. Rows are float64, dense or sparse, as many features wide as the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from adiabat.estimators.kernel import rounding, votes
from adiabat.estimators.predictors.decider import Decider
from adiabat.formulations import CSVC, EpsilonSVR, Sphere
from adiabat.inputs import as_csr
from adiabat.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class KernelPredictor:
    """What the predictors of kernel machines have.

    Attributes
    ----------
    decider : Decider
    scale : callable or None
        From rows as given to rows as the machine takes them; None where these are the same.
    """

    decider: Decider
    scale: Callable[[Any], Any] | None = None

    def rows(self, X: Any) -> Any:
        """Rows as the machine takes them."""
        X = X if self.scale is None else self.scale(X)
        return as_csr(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)

    def answer(self, X: Any) -> tuple[npt.NDArray[Any], FloatArray | None]:
        """What `predict` says, and decision values, if the machine has any, from one look at X."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class NumberPredictor(KernelPredictor):
    """What an SVR predicts with."""

    def answer(self, X: Any) -> tuple[npt.NDArray[Any], FloatArray | None]:  # noqa: D102
        return self.predict(X), None

    def predict(self, X: Any) -> FloatArray:
        """Numbers."""
        return self.decider.decide(self.rows(X))[:, 0]


@dataclass(frozen=True, kw_only=True)
class ClassPredictor(KernelPredictor):
    """What an SVC predicts with.

    Attributes
    ----------
    classes_ : ndarray
        Labels, in the order of the decider's machines.
    one_against_one : bool
        Whether decision values are those of pairs.
    """

    classes_: npt.NDArray[Any]
    one_against_one: bool

    def answer(self, X: Any) -> tuple[npt.NDArray[Any], FloatArray | None]:  # noqa: D102
        pairs, n_classes = self._pairs(X), len(self.classes_)
        labels: npt.NDArray[Any] = self.classes_[votes.winners(pairs, n_classes)]
        return labels, votes.shaped(pairs, n_classes, self.one_against_one)

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values, shaped as the estimator does."""
        return votes.shaped(self._pairs(X), len(self.classes_), self.one_against_one)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels."""
        return self.answer(X)[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, of a model with a calibration."""
        assert self.decider.calibration is not None
        return self.decider.calibration.probabilities(self.decider.decide(self.rows(X)))

    def _pairs(self, X: Any) -> FloatArray:
        rows = self.rows(X)
        own = self.decider.kernel.diagonal(rows)
        return rounding.pairs_without(self.decider, self.decider.decide(rows), rows, own)


@dataclass(frozen=True, kw_only=True)
class NoveltyPredictor(KernelPredictor):
    """What a OneClassSVM predicts with; with `sphere`, an SVDD."""

    sphere: bool

    def decision_function(self, X: Any) -> FloatArray:
        """Above 0 inside, below 0 outside."""
        rows = self.rows(X)
        values, own = self.decider.decide(rows)[:, 0], self.decider.kernel.diagonal(rows)
        if not self.sphere:
            return rounding.novelty_without(self.decider, values, own, rows)
        return rounding.novelty_without(self.decider, 2.0 * values - own, own, rows, 0.5 * own)

    def answer(self, X: Any) -> tuple[npt.NDArray[Any], FloatArray | None]:  # noqa: D102
        values = self.decision_function(X)
        return np.where(values >= 0.0, 1, -1), values

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """+1 for samples like those learned, -1 for others."""
        return self.answer(X)[0]


def kernel_predictor(
    decider: Decider,
    target: npt.NDArray[Any],
    one_against_one: bool = False,
    scale: Callable[[Any], Any] | None = None,
) -> KernelPredictor:
    """The predictor of a kernel machine, by its formulation and the targets of its samples."""
    formulation: Any = decider.formulation
    if formulation.name == CSVC.name:
        return ClassPredictor(
            decider=decider, scale=scale, classes_=formulation.classes(target),
            one_against_one=one_against_one,
        )  # fmt: skip
    if formulation.name == EpsilonSVR.name:
        return NumberPredictor(decider=decider, scale=scale)
    sphere = formulation.name == Sphere.name
    return NoveltyPredictor(decider=decider, scale=scale, sphere=sphere)


def confidence(predictor: Any, X: Any, labels: npt.NDArray[Any]) -> FloatArray | None:
    """Probabilities of the labels that a predictor gave rows; None if it has no curves."""
    if not isinstance(predictor, KernelPredictor) or predictor.decider.calibration is None:
        return None
    assert isinstance(predictor, ClassPredictor)
    place = {label: k for k, label in enumerate(predictor.classes_.tolist())}
    chosen = [place[label] for label in labels.tolist()]
    found: FloatArray = predictor.predict_proba(X)[np.arange(len(chosen)), chosen]
    return found
