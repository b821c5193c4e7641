# SPDX-License-Identifier: BSD-3-Clause
"""Intervals and regions of least squares, in closed form.

With a newcomer x of target z the residuals of the samples are linear in its own one, t:

    y_i - f_i = e_i - c_i t,      z = f(x) + h t,      for e_i and f(x) of the model without it.

In the dual, with (K + D) w + 1 v = k(x), 1'w = 1, and D = diag(rho / s): c_i = w_i / s_i and
h = (k(x, x) + rho - k(x)'w - v) / rho. In the primal c_i = phi_i' A^-1 phi(x), h = 1 + phi(x)' A^-1
phi(x). Without sample i, whose residual is then e'_i, f(x) is less by s_i c_i e'_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adiabat.estimators.arguments.validation import as_csr
from adiabat.estimators.confidence.folds import fold_models
from adiabat.estimators.confidence.intervals import Elsewhere, left_out, points_for
from adiabat.estimators.confidence.piecewise import Segments
from adiabat.estimators.confidence.visits import given_diagonal
from adiabat.estimators.least_squares.analysis import trained_on
from adiabat.lssvm.elimination import PivotedMatrix, factored
from adiabat.typing import FloatArray, IntArray

# Residuals are compared to this part of their size.
TIE = 1e-11


@dataclass(frozen=True)
class Smoothed:
    """What a least-squares model says of its samples and of newcomers.

    Attributes
    ----------
    prediction : ndarray of shape (q,)
        f(x) of the newcomers.
    residual, loo_residual : ndarray of shape (n,)
        e of the samples, and their residuals by the models without them.
    weight : ndarray of shape (n,)
        s.
    pull : ndarray of shape (n, q)
        c.
    stretch : ndarray of shape (q,)
        h.
    """

    prediction: FloatArray
    residual: FloatArray
    loo_residual: FloatArray
    weight: FloatArray
    pull: FloatArray
    stretch: FloatArray

    def __len__(self) -> int:
        return len(self.residual)

    def leave_one_out(self) -> Elsewhere:
        """What the models without each sample say."""
        moved = self.pull * (self.weight * self.loo_residual)[:, None]
        return Elsewhere(np.abs(self.loo_residual), self.prediction - moved)

    def regions(self, ranks: list[int]) -> list[list[FloatArray]]:
        """For each newcomer and each rank the intervals that make up its region."""
        tie = TIE * (np.abs(self.residual) + float(np.median(np.abs(self.residual))))
        out = []
        for k, (f, h) in enumerate(zip(self.prediction, self.stretch, strict=True)):
            line = Segments(
                low=np.array([-np.inf]), high=np.array([np.inf]), at=np.array([f]),
                residual=self.residual[None, :], slope=-self.pull[None, :, k] / h,
                own=np.zeros(1), own_slope=np.array([1.0 / h]),
            )  # fmt: skip
            out.append([line.region(rank, tie) for rank in ranks])
        return out


class KernelSmoothed:
    """Of a machine in the dual, which holds its samples."""

    def __init__(self, estimator: Any, X: Any, diagonal: Any) -> None:
        self._estimator, self._rows = estimator, as_csr(estimator._check_at(X))
        self._diagonal = diagonal
        model = estimator._model
        if model.y.ndim != 1:
            raise ValueError(
                f"intervals are for one target a sample, and the model learned {model.y.shape[1]}"
            )
        self.targets: FloatArray = model.y
        self.prediction: FloatArray = model.decide(self._rows)[:, 0]

    def __len__(self) -> int:
        return len(self.targets)

    def leave_one_out(self) -> Elsewhere:
        """What the models without each sample say."""
        return self._smoothed(np.ones(self._rows.shape[0])).leave_one_out()

    def leave_folds_out(self, folds: list[IntArray]) -> Elsewhere:
        """What the models without each fold say."""
        estimator, model = self._estimator, self._estimator._model
        parts = []
        for places, view in fold_models(estimator, folds):
            rows = points_for(estimator, model.X[places], places)
            parts.append((places, view.predict(rows), view.predict(
                points_for(estimator, self._rows, places)
            )))  # fmt: skip
        return left_out(self.targets, parts)

    def regions(self, ranks: list[int]) -> list[list[FloatArray]]:
        """The region of each newcomer, for each rank."""
        model = self._estimator._model
        if model.kernel.name != "precomputed":
            own = np.asarray(model.kernel.diagonal(self._rows))
        else:
            own = given_diagonal(self._diagonal, np.diagonal(model.X), len(self.prediction))
        return self._smoothed(own).regions(ranks)

    def _smoothed(self, own: FloatArray) -> Smoothed:
        model = self._estimator._model
        machine, heavy, rho = model.machine, model.heavy, float(self._estimator.rho)
        given = model.kernel.name == "precomputed"
        kernel = self._rows if given else model.kernel.block(self._rows, model.X)
        k = np.ascontiguousarray(np.asarray(kernel)[:, heavy].T)
        w, v = machine.solve(k, np.ones(k.shape[1]))
        pull = np.empty((len(model), k.shape[1]))
        pull[heavy] = w / model.weight[heavy][:, None]
        light = np.flatnonzero(model.weight == 0.0)
        if len(light):
            between = model.X[np.ix_(light, heavy)] if given else model.kernel.block(
                model.X[light], model.X[heavy]
            )  # fmt: skip
            pull[light] = (np.asarray(kernel)[:, light].T - between @ w - v) / rho
        stretch = (own + rho - np.einsum("ij,ij->j", k, w) - v) / rho
        said = model.decide(model.X)[:, 0]
        return Smoothed(
            self.prediction, model.y - said, model.y - model.left_out().outputs[:, 0],
            model.weight, pull, stretch,
        )  # fmt: skip


def require_held_map(estimator: Any) -> None:
    """Refuse a map that a newcomer would change: the closed form keeps the features of all rows."""
    if getattr(estimator, "_following", None) is not None:
        raise ValueError(
            f"feature_map={estimator.feature_map!r} follows the rows, and a newcomer would change "
            "the features of all of them; scale X beforehand, or use IncrementalPipeline(SVR())"
        )


class RowsSmoothed:
    """Of a machine in the primal, which holds no rows: they are passed."""

    def __init__(self, estimator: Any, X: Any, rows: Any) -> None:
        self._estimator, self._held = estimator, rows
        if np.ndim(rows.y) != 1:
            raise ValueError(
                f"intervals are for one target a row, and the model learned {rows.y.shape[1]}"
            )
        self.targets: FloatArray = np.asarray(rows.y)
        self._X = estimator._check_rows(X)
        self.prediction = estimator._model.decide(estimator._features(self._X))[:, 0]

    def __len__(self) -> int:
        return len(self.targets)

    def leave_one_out(self) -> Elsewhere:
        """What the models without each row say."""
        return self._smoothed().leave_one_out()

    def leave_folds_out(self, folds: list[IntArray]) -> Elsewhere:
        """What the models without each fold say."""
        everyone = np.arange(len(self))
        parts = []
        for places in folds:
            twin = trained_on(self._estimator, self._held, np.setdiff1d(everyone, places))
            said = twin._decide(self._held.X[places])[:, 0]
            parts.append((places, said, twin._decide(self._X)[:, 0]))
        return left_out(self.targets, parts)

    def regions(self, ranks: list[int]) -> list[list[FloatArray]]:
        """The region of each newcomer, for each rank."""
        return self._smoothed().regions(ranks)

    def _smoothed(self) -> Smoothed:
        estimator, rows = self._estimator, self._held
        model = estimator._model
        matrix = model.matrix
        if not isinstance(matrix, PivotedMatrix):  # an updated inverse is for corrections only
            matrix = factored(model.moments, model.rho, model.intercept)
        own = self._bordered(rows.X)
        new = self._bordered(self._X)
        solved = matrix.solve(np.ascontiguousarray(new.T))
        left = estimator.leave_one_out(rows.X, rows.y, rows.weights)
        weight = np.ones(len(rows)) if rows.weights is None else rows.weights
        said = model.decide(estimator._features(rows.X))[:, 0]
        stretch = 1.0 + np.einsum("ij,ji->i", new, solved)
        return Smoothed(
            self.prediction, self.targets - said, self.targets - left.prediction, weight,
            own @ solved, stretch,
        )  # fmt: skip

    def _bordered(self, X: Any) -> FloatArray:
        """Features, and the constant if there is one."""
        phi = self._estimator._features(X)
        if not self._estimator._model.intercept:
            return np.asarray(phi)
        return np.hstack([phi, np.ones((len(phi), 1))])
