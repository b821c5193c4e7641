# SPDX-License-Identifier: BSD-3-Clause
"""Models trained apart, combined into the model of all their rows and taken out again.

Moments add: the model of two sets of rows is that of the sum of their moments, whatever the order
(LKW19's decentralised learning). Only moments travel between the parties, no row.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from adiabat.engine.report import UpdateReport
from adiabat.errors import NotLearnedError
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.least_squares.rows import Plan
from adiabat.estimators.least_squares_machine import LeastSquaresMachine
from adiabat.feature_maps import same_map
from adiabat.lssvm.auxiliary import IndefiniteMatrix
from adiabat.lssvm.evidence import require_possible
from adiabat.lssvm.machine import LeastSquares
from adiabat.lssvm.moments import NotSettled


class Merging(LeastSquaresMachine):
    """`merge`, `subtract` and `retune`."""

    def merge(self, other: Any) -> Any:
        """Take in all that another model learned, of other rows.

        Parameters
        ----------
        other : model of the same kind
            With the same rho, feature map and intercept, fitted on as many columns. It is not
            changed.

        Returns
        -------
        self
            The model of the rows of both, however they are ordered or grouped.
        """
        return self._join(other, 1.0)

    def subtract(self, other: Any) -> Any:
        """Take out what another model learned, once merged into this one.

        Parameters
        ----------
        other : model of the same kind
            As in `merge`.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If the moments show that this model never had all the rows of the other.
        """
        return self._join(other, -1.0)

    def retune(self, **params: Any) -> UpdateReport:
        """Change `rho` or `tol` of the fitted model, from the moments alone.

        Parameters
        ----------
        **params
            The new values, such as ``rho=10.0``.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        self._require_fitted("retune")
        self._require_unchanged()
        self._check_retuning(params)
        with all_or_nothing(self):
            self.set_params(**params)
            self._validate_params()
            before = self._model
            self._model = self._resolved(before, before.moments.copy(), before.combine)
            self._held_parameters = {**self._held_parameters, "rho": self.rho}
            self._report(self._model, started)
        return self.last_update_

    # -- what a subclass says --------------------------------------------------------------------

    def _joint_plan(self, other: Any, sign: float) -> tuple[Plan, list[int | None]]:
        """What becomes of the targets, and where those of the other were in its own moments."""
        raise NotImplementedError

    # -- within ----------------------------------------------------------------------------------

    def _join(self, other: Any, sign: float) -> Any:
        started = time.perf_counter()
        verb = "merge" if sign > 0.0 else "subtract"
        self._require_fitted(verb)
        self._require_unchanged()
        self._require_like(other)
        with all_or_nothing(self):
            plan, theirs = self._joint_plan(other, sign)
            before = self._model.moments.arranged(plan.columns)
            moments = before.copy()
            moments.join(other._model.moments.arranged(theirs), sign)
            if sign < 0.0:
                require_possible(before, moments, float(self.rho), plan.emptied)
            hashes = self._hashes
            if hashes is not None:
                hashes = (hashes.merged if sign > 0.0 else hashes.subtracted)(other._hashes)
            model = self._resolved(self._model, moments, plan.combine)
            self._model, self._hashes = self._adopt(model, plan), hashes
            n = len(other._model)
            self._report(self._model, started, n if sign > 0.0 else 0, n if sign < 0.0 else 0)
        return self

    def _resolved(self, before: LeastSquares, moments: Any, combine: Any) -> LeastSquares:
        try:
            return LeastSquares.solved(
                moments, float(self.rho), before.intercept, self.tol, combine
            )
        except IndefiniteMatrix as error:
            raise NotLearnedError(
                "other has rows that this model never learned: without them rho*I + Phi'Phi would "
                "not be positive definite"
            ) from error
        except NotSettled as error:
            raise self._too_singular(str(error)) from error

    def _require_like(self, other: Any) -> None:
        if type(other) is not type(self):
            raise TypeError(f"other is a {type(other).__name__}, not a {type(self).__name__}")
        if not other.__sklearn_is_fitted__():
            raise ValueError("other is not fitted: it has nothing to give")
        for name in ("rho", "fit_intercept"):
            mine, theirs = self._held_parameters[name], other._held_parameters[name]
            if mine != theirs:
                raise ValueError(
                    f"{name}={theirs!r} of other is not {name}={mine!r} of this model; models "
                    "combine only if they solve the same problem"
                )
        mine, theirs = self._held_parameters["remember"], other._held_parameters["remember"]
        if mine != theirs:
            raise ValueError(
                f"remember={theirs!r} of other is not remember={mine!r} of this model; either both "
                "remember their rows or neither does"
            )
        if not same_map(
            self._held_parameters["feature_map"], other._held_parameters["feature_map"]
        ):
            raise ValueError(
                f"feature_map={other.feature_map!r} of other is not that of this model, "
                f"{self.feature_map!r}"
            )
        if other.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"other has {other.n_features_in_} features, this model {self.n_features_in_}"
            )
        mine, theirs = (getattr(one, "feature_names_in_", None) for one in (self, other))
        if mine is not None and theirs is not None and not np.array_equal(mine, theirs):
            raise ValueError("other was fitted on columns of other names, or in another order")
