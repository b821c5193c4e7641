# SPDX-License-Identifier: BSD-3-Clause
"""A model for every C between two values, from one run along the path.

It lives beside the estimators, not above them, since `regularization_path` is one of their methods;
the work is that of `engine.regularization`, one track for each machine. What is kept needs neither
the estimator nor its samples afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from adiabat._core.kernel_values import multiply
from adiabat.engine.regularization import Track
from adiabat.engine.threads import blas_held
from adiabat.estimators.kernel.model import Model
from adiabat.typing import FloatArray

Shape = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class RegularizationPoint:
    """The model at one C.

    Attributes
    ----------
    C : float
        Where.
    coefficients : ndarray of shape (n_samples,) or (n_samples, n_machines)
        Signed weights of the samples, y alpha, in the order of the `ids` of the path.
    intercept : float or ndarray of shape (n_machines,)
        Bias.
    decision : ndarray
        Decision values at the samples themselves, shaped as by `decision_function`.
    """

    C: float
    coefficients: FloatArray
    intercept: Any
    decision: FloatArray


class RegularizationPath:
    """The exact path of a model's coefficients between two values of C.

    Between neighbouring breakpoints every coefficient is linear in C. Where no sample is strictly
    between its bounds, several intercepts are optimal; it is the middle of them, as after `fit`.

    Attributes
    ----------
    C : ndarray
        Breakpoints of all machines, ascending, the two ends included.
    ids : ndarray
        Ids of the samples.
    n_breakpoints : int
        Changes of sets on the way, in all machines.
    residual : float
        The largest violation of the optimality conditions found by the checks on the way.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> path = model.regularization_path(0.1, 10.0)
    >>> path.decision_function([[0.0]], [1.0]).shape[0]
    1
    """

    def __init__(self, model: Model, tracks: list[Track], shape: Shape) -> None:
        self.ids = model.ledger.ids
        self.C = np.unique(np.concatenate([track.C for track in tracks]))
        self.n_breakpoints = sum(track.breakpoints for track in tracks)
        self.residual = max(track.residual for track in tracks)
        self._tracks, self._shape = tracks, shape
        place = np.full(model.solver.samples.n, -1)
        place[model.position] = np.arange(len(model))
        self._places = [place[track.at] for track in tracks]
        self._kernel, self._n = model.kernel, len(model)
        carries = np.zeros(len(model), dtype=bool)
        for track, places in zip(tracks, self._places, strict=True):
            ever = np.zeros(len(places), dtype=bool)
            for node in track.nodes:
                ever[node.rows] = True
                ever |= np.where(node.side < 0, track.unit_lo, track.unit_hi) * node.side != 0.0
            carries[places[ever]] = True
        self._support = np.flatnonzero(carries)
        given = self._kernel.name == "precomputed"
        self._vectors = None if given else model.features(self._support)
        self._own: FloatArray = model.solver.samples.block(
            model.position, model.position[self._support]
        )

    def at(self, C: float) -> RegularizationPoint:
        """The model at any C of the path, without solving.

        Parameters
        ----------
        C : float
            Between the ends.

        Returns
        -------
        RegularizationPoint
        """
        weights, b = self._weights(self._check(C))
        values = multiply(self._own, weights[self._support]) + b
        b = self._from_zero(weights, b)
        single = len(self._tracks) == 1
        return RegularizationPoint(
            C=float(C),
            coefficients=weights[:, 0] if single else weights,
            intercept=float(b[0]) if single else b,
            decision=self._shape(values),
        )

    def decision_function(self, X: Any, C: Any) -> FloatArray:
        """Decision values of new rows at one or many C.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Rows; for a precomputed kernel their kernel values against the samples of `ids`.
        C : float or sequence of float
            Between the ends.

        Returns
        -------
        ndarray
            As from `decision_function` of the model; for a sequence one of them for each C.
        """
        many = [self._weights(self._check(value)) for value in np.atleast_1d(C)]
        if self._vectors is None:
            K = np.asarray(X, dtype=np.float64)[:, self._support]
        else:
            K = self._kernel.block(np.asarray(X, dtype=np.float64), self._vectors)
        stacked = np.hstack([weights[self._support] for weights, _ in many])
        values = multiply(K, stacked).reshape(len(K), len(many), -1)
        shaped = [self._shape(values[:, k] + b) for k, (_, b) in enumerate(many)]
        return shaped[0] if np.ndim(C) == 0 else np.stack(shaped)

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients at the breakpoints, (n_breakpoints, n_samples[, n_machines])."""
        weights = np.stack([self._weights(C)[0] for C in self.C])
        return weights[..., 0] if len(self._tracks) == 1 else weights

    @property
    def intercepts(self) -> FloatArray:
        """Biases at the breakpoints, (n_breakpoints[, n_machines])."""
        biases = np.stack([self._from_zero(*self._weights(C)) for C in self.C])
        return biases[..., 0] if len(self._tracks) == 1 else biases

    def __repr__(self) -> str:
        return (
            f"RegularizationPath(C={self.C[0]:g} to {self.C[-1]:g}, "
            f"{self.n_breakpoints} breakpoints, residual {self.residual:.1e})"
        )

    def _check(self, C: Any) -> float:
        if not isinstance(C, Real) or not self.C[0] <= float(C) <= self.C[-1]:
            raise ValueError(
                f"C={C!r} is not on the path, which goes from {self.C[0]:g} to {self.C[-1]:g}; "
                "follow a longer one"
            )
        return float(C)

    def _from_zero(self, weights: FloatArray, b: FloatArray) -> FloatArray:
        """Biases as `intercept_` has them: a linear kernel may measure from another origin."""
        origin = self._kernel.origin if self._kernel.name == "linear" else None
        if origin is None or self._vectors is None:
            return b
        w = self._vectors.T @ weights[self._support]
        return np.asarray(b - origin @ np.asarray(w))

    def _weights(self, C: float) -> tuple[FloatArray, FloatArray]:
        """(coefficients, biases) of all machines at C."""
        weights, b = np.zeros((self._n, len(self._tracks))), np.empty(len(self._tracks))
        for column, (track, places) in enumerate(zip(self._tracks, self._places, strict=True)):
            u, b[column] = track.weights(C)
            corner = track.corner(C, u, b[column])
            np.add.at(weights[:, column], places, u if corner is None else corner)
            if corner is not None:
                products = self._own @ weights[self._support, column]
                b[column] = track.centred(C, corner, products[places])
        return weights, b


def regularization_path(
    estimator: Any, C_min: float, C_max: float, shape: Shape
) -> RegularizationPath:
    """Follow every machine of a fitted estimator from C_min to C_max."""
    ends: dict[str, Any] = {"C_min": C_min, "C_max": C_max}
    for name, value in ends.items():
        if not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
            raise ValueError(f"{name}={value!r} must be a finite number above 0")
    if not C_min < C_max:
        raise ValueError(f"C_min={C_min!r} must be below C_max={C_max!r}")
    model: Model = estimator._model
    formulation: Any = model.formulation  # one that has a C
    if not model.machines:
        raise ValueError("the model has one class only, and no path; learn a second class first")
    with blas_held():
        tracks = [
            Track(model.solver, key, formulation.C, float(C_min), float(C_max))
            for key, _ in model.machines
        ]
        return RegularizationPath(model, tracks, shape)


class AlongC:
    """What estimators with a C share: the model for every value of it."""

    def _shape(self) -> Shape:
        """Decision values from those of the machines; it must not hold the estimator."""
        raise NotImplementedError

    def regularization_path(self, C_min: float, C_max: float) -> RegularizationPath:
        """The exact models for all C between two values, from one run along the path.

        The model is not changed.

        Parameters
        ----------
        C_min, C_max : float
            The ends; `C` itself need not be between them.

        Returns
        -------
        RegularizationPath
        """
        estimator: Any = self
        estimator._require_askable()
        return regularization_path(estimator, C_min, C_max, self._shape())
