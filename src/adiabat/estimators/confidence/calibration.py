# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities from decision values, fitted on exact leave-one-out.

For each pair of classes a curve from decision values to probabilities of the second class: Platt's
sigmoid, an isotonic curve, or Venn-Abers (Vovk and Petej 2014), which fits an isotonic curve with
the newcomer in either class. Of many classes the pairs are coupled (Wu, Lin and Weng 2004, their
second method).

A curve depends on its samples as the model does: it is discarded with every change, and fitted
again when next asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit
from sklearn.isotonic import isotonic_regression

from adiabat.estimators.confidence.pair_values import pair_values
from adiabat.estimators.kernel import votes
from adiabat.estimators.kernel.model import Model
from adiabat.typing import BoolArray, FloatArray

CALIBRATIONS = ("sigmoid", "isotonic", "venn_abers")
# Probabilities that are coupled stay so far away from 0 and 1.
LEAST = 1e-7
# Steps of Newton's method for a sigmoid, halvings of one, and the part of the loss that the last of
# them promises to gain: what is left is its square.
MOST_STEPS = 100
MOST_HALVINGS = 40
LAST_GAIN = 1e-10


class Sigmoid:
    """Platt's: 1 / (1 + exp(-(a f + c))), most likely for targets drawn in a little."""

    def __init__(self, values: FloatArray, second: BoolArray, weight: FloatArray) -> None:
        many, few = float(weight[second].sum()), float(weight[~second].sum())
        target = np.where(second, (many + 1.0) / (many + 2.0), 1.0 / (few + 2.0))
        self._scale = float(np.abs(values).max(initial=0.0)) or 1.0
        x = values / self._scale

        start = np.array([0.0, np.log((many + 1.0) / (few + 1.0))])
        self._line = _most_likely_line(x, target, weight, start)

    def __call__(self, f: FloatArray) -> FloatArray:
        """Probabilities of the second class."""
        return np.asarray(expit(self._line[0] * f / self._scale + self._line[1]))


def _most_likely_line(
    x: FloatArray, target: FloatArray, weight: FloatArray, line: FloatArray
) -> FloatArray:
    """(a, c) of the sigmoid of a x + c that is most likely, by Newton's method from a first line.

    The loss is convex, and strictly so unless all x are equal: then the nearest one is taken.
    """
    columns = np.column_stack([x, np.ones(len(x))])

    def loss(line: FloatArray) -> float:
        z = columns @ line
        return -float(weight @ (target * log_expit(z) + (1.0 - target) * log_expit(-z)))

    best = loss(line)
    for _ in range(MOST_STEPS):
        p = expit(columns @ line)
        slope = columns.T @ (weight * (p - target))
        curvature = columns.T @ ((weight * p * (1.0 - p))[:, None] * columns)
        step = -np.linalg.lstsq(curvature, slope, rcond=None)[0]
        if -(slope @ step) <= LAST_GAIN * best:
            return np.asarray(line + step)
        for halving in range(MOST_HALVINGS):
            tried = line + step * 0.5**halving
            found = loss(tried)
            if found < best:
                break
        else:
            break
        line, best = tried, found
    return line


class Isotonic:
    """The curve that rises with f and is nearest to the labels; level beyond its ends."""

    def __init__(self, values: FloatArray, second: BoolArray, weight: FloatArray) -> None:
        self._at, mean, mass = _gathered(values, second, weight)
        self._height = isotonic_regression(mean, sample_weight=mass, y_min=0.0, y_max=1.0)

    def __call__(self, f: FloatArray) -> FloatArray:
        """Probabilities of the second class."""
        return np.asarray(np.interp(f, self._at, self._height))


class VennAbers:
    """Isotonic curves with the newcomer in the first class, and in the second."""

    def __init__(self, values: FloatArray, second: BoolArray, weight: FloatArray) -> None:
        self._at, self._mean, self._mass = _gathered(values, second, weight)

    def two_answers(self, f: FloatArray) -> FloatArray:
        """P0 and p1, (n, 2)."""
        # a newcomer counts by where it stands among the samples: between two, or at one
        left, right = np.searchsorted(self._at, f), np.searchsorted(self._at, f, side="right")
        spots, which = np.unique(np.stack([left, right]), axis=1, return_inverse=True)
        found = np.empty((spots.shape[1], 2))
        for k, (first, last) in enumerate(spots.T.tolist()):
            for label in (0.0, 1.0):
                if last > first:
                    mean, mass = self._mean.copy(), self._mass.copy()
                    mean[first] = (mass[first] * mean[first] + label) / (mass[first] + 1.0)
                    mass[first] += 1.0
                else:
                    mean = np.insert(self._mean, first, label)
                    mass = np.insert(self._mass, first, 1.0)
                curve = isotonic_regression(mean, sample_weight=mass, y_min=0.0, y_max=1.0)
                found[k, int(label)] = curve[first]
        return found[which.ravel()]

    def __call__(self, f: FloatArray) -> FloatArray:
        """Probabilities of the second class: p1 / (1 - p0 + p1), between both."""
        p0, p1 = self.two_answers(f).T
        return np.asarray(p1 / (1.0 - p0 + p1))


def _gathered(
    values: FloatArray, second: BoolArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct values, the part of the second class at each, and their weights."""
    kept = weight > 0.0
    at, which = np.unique(values[kept], return_inverse=True)
    mass = np.bincount(which, weight[kept]).astype(np.float64)
    return at, np.bincount(which, weight[kept] * second[kept]) / mass, mass


_CURVES: dict[str, Any] = {"sigmoid": Sigmoid, "isotonic": Isotonic, "venn_abers": VennAbers}


@dataclass(frozen=True)
class Calibration:
    """A curve for each pair of classes."""

    kind: str
    n_classes: int
    curves: list[Any]

    def probabilities(self, pairs: FloatArray) -> FloatArray:
        """Probabilities of the classes from decision values of the pairs, (n, n_classes)."""
        if self.n_classes == 1:
            return np.ones((len(pairs), 1))
        by_pair = np.column_stack([curve(pairs[:, k]) for k, curve in enumerate(self.curves)])
        if self.n_classes == 2:
            return np.column_stack([1.0 - by_pair[:, 0], by_pair[:, 0]])
        return coupled(np.clip(by_pair, LEAST, 1.0 - LEAST), self.n_classes)

    def two_answers(self, pairs: FloatArray) -> FloatArray:
        """P0 and p1 of the second of two classes."""
        if self.n_classes != 2:
            raise ValueError(
                f"predict_proba_interval is for two classes, and the model has {self.n_classes}: "
                "one of p0 and p1 is calibrated for a pair, and coupling pairs keeps nothing of "
                "that; use predict_proba or predict_set"
            )
        answers: FloatArray = self.curves[0].two_answers(pairs[:, 0])
        return answers


def calibrated(estimator: Any, model: Model) -> Calibration:
    """The curves of a model, fitted if it has changed since."""
    held = model.calibration
    if held is None or held.kind != estimator.calibration:
        held = model.calibration = _fitted(estimator, model)
    found: Calibration = held
    return found


def curves_of(estimator: Any) -> Calibration | None:
    """The curves of a fitted estimator that has a `calibration`; None where it cannot have them."""
    if getattr(estimator, "calibration", None) is None or len(estimator.classes_) < 2:
        return None
    if _alone(estimator._model):
        return None
    return calibrated(estimator, estimator._model)


def _alone(model: Model) -> list[Any]:
    """Classes of which there is one sample, among others."""
    formulation: Any = model.formulation
    codes = formulation.codes(model.target)
    counts = [np.count_nonzero((model.target == code) & (model.weight > 0.0)) for code in codes]
    few = [code for code, count in zip(codes, counts, strict=True) if count < 2 <= len(codes)]
    return [formulation.label[code] for code in few]


def _fitted(estimator: Any, model: Model) -> Calibration:
    formulation: Any = model.formulation
    codes = formulation.codes(model.target)
    alone = _alone(model)
    if alone:
        raise ValueError(
            f"calibration={estimator.calibration!r} needs two samples of each class, and "
            f"{alone[0]!r} has one; learn more, or forget that one"
        )
    values = pair_values(estimator)
    curves = []
    for column, (first, second) in enumerate(votes.pairs_of(len(codes))):
        own = (model.target == codes[first]) | (model.target == codes[second])
        of_second = model.target[own] == codes[second]
        make = _CURVES[estimator.calibration]
        curves.append(make(values[own, column], of_second, model.weight[own]))
    return Calibration(estimator.calibration, len(codes), curves)


def coupled(by_pair: FloatArray, n_classes: int) -> FloatArray:
    """Probabilities of classes that agree best with those of pairs (Wu, Lin and Weng 2004, (21)).

    by_pair[:, k] is that of the second class of pair k. The quadratic form sum (r_ji p_i - r_ij
    p_j)^2 is least, subject to sum p = 1; all are positive.
    """
    n = len(by_pair)
    Q = np.zeros((n, n_classes, n_classes))
    for k, (first, second) in enumerate(votes.pairs_of(n_classes)):
        p = by_pair[:, k]
        Q[:, first, first] += p * p
        Q[:, second, second] += (1.0 - p) ** 2
        Q[:, first, second] = Q[:, second, first] = -p * (1.0 - p)
    border = np.zeros((n, n_classes + 1, n_classes + 1))
    border[:, :-1, :-1], border[:, :-1, -1], border[:, -1, :-1] = Q, 1.0, 1.0
    aim = np.zeros((n, n_classes + 1, 1))
    aim[:, -1] = 1.0
    found = np.maximum(np.linalg.solve(border, aim)[:, :-1, 0], 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
