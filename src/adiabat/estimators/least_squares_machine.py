# SPDX-License-Identifier: BSD-3-Clause
"""The verbs of the least-squares machines that keep no rows: learn, unlearn, combine, certify.

A subclass says what its targets are: `_encode` turns labels or values into columns of numbers,
`_outputs` says what each output aims at. Everything else is the same for classes and values.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.engine.threads import blas_held
from adiabat.estimators.arguments.validation import (
    check_rows,
    check_weights,
    n_rows,
    read_only,
    require_force,
    same_parameter,
)
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.files.content import Arrays, Manifest, save
from adiabat.estimators.learner import Learner
from adiabat.estimators.least_squares.analysis import (
    CrossValidation,
    RhoPath,
    cross_validate,
    leave_one_out,
    own_rows,
    rho_path,
)
from adiabat.estimators.least_squares.files import content, estimator_from
from adiabat.estimators.least_squares.following import Following
from adiabat.estimators.least_squares.merge import joined_moments, require_like
from adiabat.estimators.least_squares.row_hashes import Content, RowHashes
from adiabat.estimators.least_squares.rows import Rows, TargetPlan, added_none
from adiabat.estimators.least_squares.solving import followed, resolved, solved
from adiabat.estimators.pipeline.mixed_rows import check_mixed_rows
from adiabat.estimators.what_if.results import LeaveOneOut, LeaveOneOutRegression
from adiabat.feature_maps import description, mapped, same_map
from adiabat.lssvm.evidence import certify
from adiabat.lssvm.machine import Batch, LeastSquares
from adiabat.preprocessing.basis import is_linear, require_linear
from adiabat.preprocessing.composition import at_positions
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.typing import FloatArray

_HELD = ("rho", "feature_map", "fit_intercept", "remember")


class LeastSquaresMachine(Learner[LeastSquares]):
    """Base of the estimators that keep the moments of their rows and no row."""

    _map: Any
    #: The moments of the rows as given, if the map follows them.
    _following: Following | None = None
    #: Hashes of the rows in the model, or None if it does not remember them.
    _hashes: RowHashes | None
    _fixed_at_fit = ("feature_map", "fit_intercept", "remember")

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    # -- what a subclass says --------------------------------------------------------------------

    def _check_targets(self, y: Any) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _plan(self, added: Rows, removed: Rows) -> TargetPlan:
        """What becomes of the targets when these rows come and go."""
        raise NotImplementedError

    def _columns(self, y: Any, plan: TargetPlan) -> FloatArray:
        """Targets as numbers, one column each."""
        raise NotImplementedError

    def _adopt(self, model: LeastSquares, plan: TargetPlan) -> LeastSquares:
        """The machine without targets that left; sets the subclass's attributes."""
        raise NotImplementedError

    def _joint_plan(self, other: Any, sign: float) -> tuple[TargetPlan, list[int | None]]:
        """What becomes of the targets, and where those of the other were in its own moments."""
        raise NotImplementedError

    def _last_of_its_kind(self, y: Any) -> npt.NDArray[np.bool_]:
        """Rows without which a target would be gone."""
        raise NotImplementedError

    def _concluded(self, outputs: FloatArray) -> tuple[FloatArray, npt.NDArray[Any]]:
        """Outputs in the form of `decision_function`, and what they predict."""
        raise NotImplementedError

    def _leave_one_out_outputs(self, rows: Rows, row: int) -> FloatArray:
        """The outputs at a row of the model that unlearned it."""
        raise NotImplementedError

    # -- learn and unlearn -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_samples, n_features)
            Rows.
        y : array of shape (n_samples,)
            Labels, or values.
        sample_weight : array of shape (n_samples,), optional
            Factors >= 0 on the squared errors.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        with all_or_nothing(self):
            self._start(X, y, sample_weight, started)
        return self

    def forget(
        self, X: Any, y: Any, sample_weight: Any = None, *, approximate: bool = False
    ) -> Any:
        """Unlearn rows: the model is then as if they had never been there.

        The model holds no rows, so it takes the rows themselves.

        Parameters
        ----------
        X, y, sample_weight
            The rows to unlearn, with the targets and weights that they were learned with.
        approximate : bool, default=False
            Whether the rows are known only roughly. The result is then only near the exact one,
            and is accepted even where the moments show that these were not the rows learned.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If the moments show that some of these rows were never learned; with
            ``remember="hashes"``, if any of them was not, or was unlearned already.
        """
        self._require_fitted("forget")
        self.update(
            remove_X=X, remove_y=y, remove_sample_weight=sample_weight, approximate=approximate
        )
        return self

    def revise(
        self,
        X_old: Any,
        y_old: Any,
        X_new: Any,
        y_new: Any,
        *,
        sample_weight_old: Any = None,
        sample_weight_new: Any = None,
    ) -> Any:
        """Replace rows by their corrections, in one step.

        Parameters
        ----------
        X_old, y_old, sample_weight_old
            The rows as they were learned.
        X_new, y_new, sample_weight_new
            The rows as they should have been, one for each.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        self._require_fitted("revise")
        if n_rows(X_old) != n_rows(X_new):
            raise ValueError(
                f"X_new has {n_rows(X_new)} rows, X_old has {n_rows(X_old)}; pass one for each"
            )
        with all_or_nothing(self):
            self._require_unchanged()
            added = self._rows(X_new, y_new, sample_weight_new)
            removed = self._rows(X_old, y_old, sample_weight_old)
            self._apply(added, removed, started, n_revised=len(added))
        return self

    def update(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        remove_X: Any = None,
        remove_y: Any = None,
        remove_sample_weight: Any = None,
        approximate: bool = False,
    ) -> UpdateReport:
        """Learn some rows and unlearn others in one step (LKW19 (5), (6)).

        Parameters
        ----------
        X, y, sample_weight
            Rows to learn; none by default.
        remove_X, remove_y, remove_sample_weight
            Rows to unlearn, as in `forget`; none by default.
        approximate : bool, default=False
            As in `forget`.

        Returns
        -------
        UpdateReport
        """
        started = time.perf_counter()
        for rows, targets, name in ((X, y, "X and y"), (remove_X, remove_y, "remove_X, remove_y")):
            if (rows is None) != (targets is None):
                raise ValueError(f"update needs {name} together: pass both, or neither")
        with all_or_nothing(self):
            if not self.__sklearn_is_fitted__():
                if remove_X is not None:
                    self._require_fitted("remove")
                self._start(X, y, sample_weight, started)
                return self.last_update_
            self._require_unchanged()
            added = self._rows(X, y, sample_weight)
            removed = self._rows(remove_X, remove_y, remove_sample_weight)
            self._apply(
                added, removed, started, approximate=approximate,
                n_added=len(added), n_removed=len(removed),
            )  # fmt: skip
        return self.last_update_

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
            following = self._following
            moments = following.moments(float(self.rho)) if following else before.moments.copy()
            self._model = resolved(self, moments, before.combine)
            self._held_parameters = {**self._held_parameters, "rho": self.rho}
            self._report(self._model, started)
        return self.last_update_

    # -- without some rows, with another rho -----------------------------------------------------

    def cross_validate(
        self,
        X: Any,
        y: Any,
        cv: Any = None,
        *,
        groups: Any = None,
        scoring: Any = None,
        sample_weight: Any = None,
    ) -> CrossValidation:
        """Exact cross-validation: one fold at a time is unlearned from the full model.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the model was trained on, all of them.
        cv : int, splitter or iterable of (train, test), default=None
            As in scikit-learn. Rows that are not in the training set of a split are unlearned for
            it, with their weights; if those are more than half, the training set is learned anew.
            Scores count every row alike, as in scikit-learn.
        groups : array, optional
            For splitters that need them.
        scoring : str or callable, optional
            A scorer; by default accuracy or R^2.

        Returns
        -------
        CrossValidation
        """
        started = time.perf_counter()
        rows = own_rows(self, X, y, sample_weight)
        return cross_validate(self, rows, cv, groups, scoring, started)

    def leave_one_out(
        self, X: Any, y: Any, sample_weight: Any = None, *, hold_scaling: bool = False
    ) -> LeaveOneOut | LeaveOneOutRegression:
        """What each row would get from the model without it, in closed form.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the model was trained on, all of them.
        hold_scaling : bool, default=False
            With a `feature_map` that follows the rows, each row is also taken out of the map, and
            the model is solved once for each. True keeps the map of all rows: the closed form,
            fast, and a little optimistic.

        Returns
        -------
        LeaveOneOut or LeaveOneOutRegression
            As of :class:`SVC` and :class:`SVR`; its ids are the places in X. Removals are counted
            for rows that decide so much alone that the closed form would lose digits.
        """
        return leave_one_out(self, own_rows(self, X, y, sample_weight), hold_scaling)

    def rho_path(
        self, rho: Any, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> RhoPath:
        """Solutions for several rho, from one eigendecomposition.

        Parameters
        ----------
        rho : array of shape (n,)
            Values above 0.
        X, y, sample_weight : optional
            The rows that the model was trained on, for the leave-one-out error of each rho, with
            the feature map of all rows.

        Returns
        -------
        RhoPath
        """
        check_is_fitted(self)
        rows = None if X is None else own_rows(self, X, y, sample_weight)
        return rho_path(self, rho, rows)

    # -- evidence and files ----------------------------------------------------------------------

    def certificate(self) -> Certificate:
        """Is this the solution? The residual recomputed from the moments, without rounding.

        Returns
        -------
        Certificate
            Its residual is how far w and b are off, relative to their size.
        """
        check_is_fitted(self)
        return self._certify(self._model, afresh=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which holds no training row.

        :func:`adiabat.load` reads it back without running code.
        """
        save(self, path)

    def _to_file(self) -> tuple[Manifest, Arrays]:
        """Manifest and arrays for a model file."""
        return content(self)

    @classmethod
    def _from_file(cls, manifest: Manifest, arrays: Arrays) -> Any:
        """The estimator of a model file; ValueError if the file makes no sense."""
        return estimator_from(manifest, arrays, cls)

    # -- learned attributes ----------------------------------------------------------------------

    @property
    def coef_(self) -> FloatArray:
        """The weights w of the features of the map, a row for each output."""
        rows = self._fitted("coef_").coefficients.T
        return read_only(rows[0].copy() if getattr(self, "_flat", False) else rows.copy())

    @property
    def intercept_(self) -> Any:
        """The bias b of each output; 0 without `fit_intercept`."""
        biases = self._fitted("intercept_").biases
        return float(biases[0]) if getattr(self, "_flat", False) else read_only(biases.copy())

    @property
    def C_(self) -> FloatArray:
        """The auxiliary matrix of LKW19 (4)."""
        model = self._fitted("C_")
        upper = np.triu(model.matrix.inverse)
        P = upper + np.triu(upper, 1).T
        return np.eye(len(P)) - model.rho * P

    @property
    def n_samples_(self) -> int:
        """Rows in the model."""
        return len(self._fitted("n_samples_"))

    # -- within ----------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self._has_following_map():
            given = get_tags(self.feature_map).input_tags
            for name in ("allow_nan", "string", "categorical"):
                setattr(tags.input_tags, name, getattr(given, name))
            tags.input_tags.allow_nan &= not isinstance(self.feature_map, StandardScaler)
        return tags

    def _same_parameter(self, name: str, before: Any, now: Any) -> bool:
        return (same_map if name == "feature_map" else same_parameter)(before, now)

    def _start(self, X: Any, y: Any, sample_weight: Any, started: float) -> None:
        """A new model from a first batch."""
        self._validate_params()
        added = self._rows(X, y, sample_weight, reset=True)
        if added.weights is not None:
            require_force(added.weights)
        self._following = None
        if self._has_following_map():
            require_linear(self.feature_map)
            self._map = at_positions(self.feature_map, X)  # fitted with the rows
            if self.remember is not None and added.X.dtype == object:
                raise ValueError(
                    f"remember={self.remember!r} hashes numbers, and X has text; encode it as "
                    "numbers first, or use remember=None"
                )
        else:
            self._map = None if self.feature_map is None else self._fitted_map(added.X)
        self._hold()
        self.__dict__.pop("_model", None)
        self._hashes = RowHashes.empty() if self.remember == "hashes" else None
        self._apply(added, added_none(added), started, n_added=len(added))

    def _hold(self) -> None:
        """Remember the parameters that shape the model."""
        self._held_parameters = {name: clone(getattr(self, name), safe=False) for name in _HELD}

    def _fitted_map(self, X: Any) -> Any:
        """The feature map for rows like these."""
        return clone(self.feature_map).fit(X)

    def _features(self, X: Any) -> FloatArray:
        """Features of checked rows, dense."""
        return mapped(self._map, X)

    def _has_following_map(self) -> bool:
        """Whether the map is of transformers that learn and unlearn with the rows."""
        return is_linear(self.feature_map)

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> Rows:
        """Rows as scikit-learn checks them; none if X is None or has none."""
        if n_rows(X) == 0 and not reset:
            self._check_empty(X, y)
            return Rows(np.empty((0, self.n_features_in_)), np.empty(0), None)
        X, y = self._check_rows(X, self._as_given(y), reset=reset)
        y = self._check_targets(y)
        weights = None if sample_weight is None else check_weights(sample_weight, X.shape[0])
        return Rows(X, y, weights)

    def _check_rows(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        # targets are checked by the subclass: here only that there is one for each row
        if self._has_following_map() and not isinstance(self.feature_map, StandardScaler):
            return check_mixed_rows(self, X, y, reset=reset, multi_output=True)
        return check_rows(self, X, y, reset=reset, multi_output=True)

    def _apply(
        self,
        added: Rows,
        removed: Rows,
        started: float,
        approximate: bool = False,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        """Carry out a checked change and report it."""
        before = getattr(self, "_model", None)
        if len(added) + len(removed) == 0 and before is not None:
            self._report(replace(before, effort=replace(before.effort, way="none", rounds=0)),
                         started)  # fmt: skip
            return
        plan = self._plan(added, removed)
        hashes = self._hashes_after(added, removed, approximate)
        with blas_held():
            if self._has_following_map():
                model, following = followed(self, before, plan, added, removed, approximate)
                self._map, self._following = following.transformer, following
            else:
                model = solved(self, before, plan, self._batches(added, removed, plan), approximate)
        self._model, self._hashes = self._adopt(model, plan), hashes
        self._report(self._model, started, n_added, n_removed, n_revised)

    def _batches(self, added: Rows, removed: Rows, plan: TargetPlan) -> list[Batch]:
        features = partial(mapped, self._map)
        return [
            Batch(rows.X, self._columns(rows.y, plan), rows.weights, sign, features)
            for rows, sign in ((added, 1.0), (removed, -1.0))
            if len(rows)
        ]

    def _hashes_after(self, added: Rows, removed: Rows, approximate: bool) -> RowHashes | None:
        """The hashes of the rows once some have come and gone; refuses what is not there."""
        if self._hashes is None:
            return None
        if approximate and len(removed):
            raise ValueError(
                "approximate=True unlearns rows that are known only roughly, and "
                "remember='hashes' only those known to the last bit; fit with remember=None"
            )
        # rows that come in the same step were not there to be unlearned
        kept = self._hashes.unlearned(self._content(removed), "remove_X")
        return kept.learned(self._content(added))

    def _content(self, rows: Rows) -> Content:
        """What is hashed of rows."""
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        if is_classifier(self):
            return Content(rows.X, rows.y, weights[:, None])
        return Content(rows.X, None, np.column_stack([weights, rows.y]))

    def _report(
        self,
        model: LeastSquares,
        started: float,
        n_added: int = 0,
        n_removed: int = 0,
        n_revised: int = 0,
    ) -> None:
        self.last_update_ = UpdateReport(
            n_added=n_added,
            n_removed=n_removed,
            n_revised=n_revised,
            solver=model.effort.way,
            rounds=model.effort.rounds,
            breakpoints=0,
            fallbacks=model.effort.refreshes,
            seconds=time.perf_counter() - started,
            certificate=self._certify(model, afresh=False),
        )

    def _certify(self, model: LeastSquares, afresh: bool) -> Certificate:
        return certify(model, self._held_fixed(), afresh, remembers=self._hashes is not None)

    def _held_fixed(self) -> dict[str, Any]:
        """What retraining has to hold fixed to give this model."""
        return {} if self._following is not None else description(self._map)

    def _decide(self, X: Any) -> FloatArray:
        """Outputs at new rows, a block at a time."""
        check_is_fitted(self)
        X = self._check_rows(X)
        batch = Batch(X, np.empty((X.shape[0], 0)), None, 1.0, partial(mapped, self._map))
        blocks = batch.blocks(0, len(batch))
        return np.concatenate([self._model.decide(phi) for phi, _, _ in blocks])

    def _join(self, other: Any, sign: float) -> Any:
        started = time.perf_counter()
        verb = "merge" if sign > 0.0 else "subtract"
        self._require_fitted(verb)
        self._require_unchanged()
        require_like(self, other)
        with all_or_nothing(self):
            plan, theirs = self._joint_plan(other, sign)
            moments = joined_moments(self, other, plan, theirs, sign)
            hashes = self._hashes
            if hashes is not None:
                hashes = (hashes.merged if sign > 0.0 else hashes.subtracted)(other._hashes)
            model = resolved(self, moments, plan.combine)
            self._model, self._hashes = self._adopt(model, plan), hashes
            n = len(other._model)
            self._report(self._model, started, n if sign > 0.0 else 0, n if sign < 0.0 else 0)
        return self
