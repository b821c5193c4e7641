# SPDX-License-Identifier: BSD-3-Clause
"""All that a least-squares machine needs of some rows, and the machine of all of them.

Sums have no rounding: whichever partitions there are and whichever meet first, their total has the
same bits, and so has the model. One solve at the end.
"""

from __future__ import annotations

import time
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from adiabat.engine.threads import blas_held
from adiabat.errors import NotLearnedError
from adiabat.estimators.arguments.labels import label_places
from adiabat.estimators.least_squares.rows import TargetPlan
from adiabat.estimators.least_squares.solving import too_singular
from adiabat.estimators.least_squares_machine import LeastSquaresMachine
from adiabat.estimators.lssvc import one_against_rest
from adiabat.feature_maps import FeatureMap
from adiabat.formulations.labels import label_array
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.evidence import require_possible
from adiabat.lssvm.exact_moments import ExactMoments
from adiabat.lssvm.exact_products import BLOCK_ROWS
from adiabat.lssvm.machine import LeastSquares
from adiabat.lssvm.moments import Moments, NotConverged


class RowSums:
    """Exact sums over rows, for the model of which `of` was told.

    ``a + b`` are the sums over the rows of both, ``a - b`` those without the rows of b.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import LSSVC
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> there = RowSums.of(LSSVC(rho=0.1), X[:3], y[:3])
    >>> here = RowSums.of(LSSVC(rho=0.1), X[3:], y[3:])
    >>> (there + here).model(LSSVC(rho=0.1)).predict([[2.5]])
    array([1])
    """

    def __init__(
        self, n_features: int, names: Any, flat: bool, counts: dict[Any, int], sums: ExactMoments
    ) -> None:
        self.n_features, self.names, self.flat = n_features, names, flat
        #: Rows of each label, in the order of the targets; empty for numbers.
        self.counts, self.sums = counts, sums

    @classmethod
    def of(cls, model: LeastSquaresMachine, X: Any, y: Any, sample_weight: Any = None) -> RowSums:
        """The sums over some rows; `model` says which (rho is not looked at)."""
        require_fixed_map(model)
        twin = clone(model)
        rows = twin._rows(X, y, sample_weight, reset=True)
        twin._map = None if model.feature_map is None else twin._fitted_map(rows.X)
        counts: dict[Any, int] = {}
        if is_classifier(model):
            labels, numbers = np.unique(rows.y, return_counts=True)
            counts = dict(zip(labels.tolist(), numbers.tolist(), strict=True))
            t = np.asarray(label_places(rows.y, labels)[:, None] == np.arange(len(labels)), float)
        else:
            t = np.asarray(rows.y, float).reshape(len(rows), -1)
        width = twin._features(rows.X[:1]).shape[1]
        sums = ExactMoments(width, t.shape[1])
        with blas_held():
            for start in range(0, len(rows), BLOCK_ROWS):
                part = slice(start, start + BLOCK_ROWS)
                weights = None if rows.weights is None else rows.weights[part]
                sums.add(twin._features(rows.X[part]), t[part], weights)
        names = getattr(twin, "feature_names_in_", None)
        return cls(twin.n_features_in_, names, np.ndim(rows.y) == 1, counts, sums)

    def __len__(self) -> int:
        return self.sums.n

    def __add__(self, other: RowSums) -> RowSums:
        return self._joined(other, 1)

    def __sub__(self, other: RowSums) -> RowSums:
        return self._joined(other, -1)

    def model(self, like: LeastSquaresMachine, before: RowSums | None = None) -> Any:
        """The fitted machine of all these rows, with the parameters of `like`.

        `before` are the sums before some rows were taken off; it is checked that they were there.
        """
        started = time.perf_counter()
        require_fixed_map(like)
        made = clone(like)
        made._validate_params()
        if made.remember is not None:
            raise ValueError(
                f"remember={made.remember!r} keeps hashes of single rows, and sums have none; use "
                "remember=None"
            )
        made.n_features_in_ = self.n_features
        if self.names is not None:
            made.feature_names_in_ = self.names
        if made.feature_map is not None:
            made._map = made._fitted_map(np.zeros((1, self.n_features)))
        else:
            made._map = None
        made._hold()
        made._hashes = None
        rho = float(made.rho)
        with blas_held():
            moments = self.sums.rounded(rho)
            if before is not None:
                self._require_possible(before, moments, rho)
            made._model = made._adopt(self._solved(made, moments, rho), self._plan(made))
        made._report(made._model, started, n_added=len(self))
        return made

    # -- within ----------------------------------------------------------------------------------

    def _joined(self, other: RowSums, sign: int) -> RowSums:
        self._require_like(other)
        counts, labels = dict(self.counts), self.counts.keys() | other.counts.keys()
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError(
                "y has labels that are text and labels that are numbers; use one type of label"
            )
        for label, number in other.counts.items():
            counts[label] = counts.get(label, 0) + sign * number
            if counts[label] < 0:
                raise NotLearnedError(
                    f"y has the label {label!r} {number} times, and the model has "
                    f"{self.counts.get(label, 0)} rows of it; pass rows as they were learned"
                )
        if labels:
            order = np.unique(label_array(list(counts))).tolist()
            counts = {label: counts[label] for label in order}
        sums = self._arranged(self, counts)
        sums.join(self._arranged(other, counts), sign)
        if sums.n < 0:
            raise NotLearnedError(
                f"X has {len(other)} rows, more than the {len(self)} that were learned"
            )
        names = self.names if self.names is not None else other.names
        return RowSums(self.n_features, names, self.flat, counts, sums)

    @staticmethod
    def _arranged(one: RowSums, counts: dict[Any, int]) -> ExactMoments:
        if not counts:
            return one.sums.copy()
        place = {label: k for k, label in enumerate(one.counts)}
        return one.sums.arranged([place.get(label) for label in counts])

    def present(self) -> RowSums:
        """The same without labels that no row has any more."""
        if all(self.counts.values()):
            return self
        counts = {label: number for label, number in self.counts.items() if number}
        fixed = self.sums.width + 1
        for place, (label, number) in enumerate(self.counts.items()):
            if number == 0 and self.sums.digits[:, fixed + place].any():
                raise NotLearnedError(
                    f"X has rows of the label {label!r} that were never learned: its last rows "
                    "go, and their sums do not vanish. Pass the rows as they were learned"
                )
        twin = copy(self)
        twin.counts, twin.sums = counts, self._arranged(self, counts)
        return twin

    def _require_like(self, other: RowSums) -> None:
        mine, theirs = (self.n_features, self.sums.width), (other.n_features, other.sums.width)
        if mine != theirs:
            raise ValueError(
                f"X has {other.n_features} features ({other.sums.width} of the map), and the "
                f"rows before it {self.n_features} ({self.sums.width}); partitions must agree"
            )
        if not (self.counts or other.counts) and (
            self.flat != other.flat or self.sums.n_targets != other.sums.n_targets
        ):
            raise ValueError(
                f"y has {other.sums.n_targets} values for each row, and the rows before it "
                f"{self.sums.n_targets}; partitions must agree"
            )
        named = self.names is not None and other.names is not None
        if named and not np.array_equal(self.names, other.names):
            raise ValueError("X has columns of other names, or in another order, than before")

    def _plan(self, made: Any) -> TargetPlan:
        n = self.sums.n_targets
        if is_classifier(made):
            labels = label_array(list(self.counts))
            state = (labels, list(self.counts.values()))
            return TargetPlan(list(range(n)), one_against_rest(n), [], state)
        made._flat = self.flat
        return TargetPlan(list(range(n)), np.vstack([np.zeros(n), np.eye(n)]), [])

    def _solved(self, made: Any, moments: Moments, rho: float) -> LeastSquares:
        try:
            return LeastSquares.solved(
                moments, rho, bool(made.fit_intercept), made.tol, self._plan(made).combine
            )
        except IndefiniteMatrix as error:
            raise NotLearnedError(
                "X has rows that were never learned: without them rho*I + Phi'Phi would not be "
                "positive definite. Pass the rows as they were learned, with their weights"
            ) from error
        except NotConverged as error:
            raise too_singular(made, str(error)) from error

    def _require_possible(self, before: RowSums, moments: Moments, rho: float) -> None:
        kept = self._arranged(before, self.counts) if self.counts else before.sums
        require_possible(kept.rounded(rho), moments, rho)


def require_fixed_map(model: Any) -> None:
    """Refuse a map that would be another one in every partition."""
    if model.feature_map is not None and not isinstance(model.feature_map, FeatureMap):
        raise ValueError(
            f"feature_map={model.feature_map!r} is fitted on the rows that it sees first, and "
            "would be another one in every partition; use a map of adiabat.feature_maps, none of "
            "which looks at rows, or scale the rows beforehand (adiabat.dask.StandardScaler)"
        )
