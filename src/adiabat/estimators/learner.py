# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators that learn and unlearn have in common, whatever solves their problem.

`Learner` holds a model and the parameters that shaped it. `SampleKeeper` keeps its samples, knows
them by id, and has a kernel, perhaps a given one.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted

from adiabat.engine.report import UpdateReport
from adiabat.estimators.arguments.objects import as_objects, check_objects
from adiabat.estimators.arguments.validation import (
    check_rows,
    n_rows,
    remember_checked,
    same_parameter,
    were_checked,
)
from adiabat.estimators.files.pickles import Pickled

M = TypeVar("M", bound=Sized)

#: Parameters of the kernel.
OF_THE_KERNEL = ("kernel", "degree", "gamma", "coef0")
#: Kernels that have a gamma.
WITH_GAMMA = ("rbf", "poly", "laplacian", "chi2")


class Learner(Pickled, BaseEstimator, Generic[M]):
    """An estimator that changes its model instead of fitting it anew."""

    _model: M
    _held_parameters: dict[str, Any]
    last_update_: UpdateReport
    n_features_in_: int
    #: Whether samples have targets; else `y` is there for the convention only.
    _supervised: ClassVar[bool] = True
    #: Held parameters that only a new fit can change.
    _fixed_at_fit: ClassVar[tuple[str, ...]] = ()

    def _validate_params(self) -> None:
        if not were_checked(self):  # scikit-learn takes as long for it as a small fit does
            super()._validate_params()
            remember_checked(self)

    def __sklearn_is_fitted__(self) -> bool:
        return len(getattr(self, "_model", ())) > 0

    def _fitted(self, name: str) -> M:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{name} exists once the model has learned a sample; call fit")
        return self._model

    def _require_fitted(self, verb: str) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(
                self,
                msg=f"This %(name)s instance is not fitted yet: there is nothing to {verb}. "
                "Call 'fit' or 'partial_fit' first.",
            )

    def _require_unchanged(self) -> None:
        """Refuse a changed parameter that shapes the model."""
        for name, before in self._held_parameters.items():
            now = getattr(self, name)
            if now is not before and not self._same_parameter(name, before, now):
                remedy = "" if name in self._fixed_at_fit else f" and call retune({name}={now!r})"
                raise ValueError(
                    f"{name}={now!r} was {before!r} when the model was fitted, and changes of the "
                    f"data hold it. Set it back{remedy}, or call fit."
                )

    def _require_askable(self) -> None:
        """Refuse what-if questions that have no answer."""
        check_is_fitted(self)
        self._require_unchanged()

    def _same_parameter(self, name: str, before: Any, now: Any) -> bool:
        return same_parameter(before, now)

    def _check_retuning(self, params: dict[str, Any]) -> None:
        """Refuse to retune what is no parameter, or one that only a new fit can change."""
        known = self.get_params(deep=False)
        free = sorted(set(known) - set(self._fixed_at_fit))
        for name in params:
            if name not in free:
                what = "cannot be retuned" if name in known else "is not a parameter"
                raise ValueError(
                    f"{name} {what} of {type(self).__name__}; retune takes {', '.join(free)}"
                )

    def _as_given(self, y: Any) -> Any:
        """Targets before scikit-learn's checks; a classifier sees to it that no digit is lost."""
        return y

    def _check_empty(self, X: Any, y: Any) -> None:
        """Check a batch of no rows all the same."""
        if self._supervised and n_rows(y):
            raise ValueError(f"y has {n_rows(y)} targets, X has 0 rows")
        shape: tuple[int, ...] = getattr(X, "shape", (0,))
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )


class SampleKeeper(Learner[M]):
    """A learner with a kernel that keeps its samples and knows them by id."""

    gamma_: float

    @property
    def ids_(self) -> npt.NDArray[Any]:
        """Ids of the samples held, in the order in which they were learned."""
        model: Any = self._fitted("ids_")
        ids: npt.NDArray[Any] = model.ledger.ids
        return ids

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel == "chi2"
        return tags

    def _check_retuning(self, params: dict[str, Any]) -> None:
        super()._check_retuning(params)
        given = self.kernel == "precomputed" or params.get("kernel") == "precomputed"
        for name in OF_THE_KERNEL if given else ():
            if name in params and not same_parameter(getattr(self, name), params[name]):
                raise ValueError(
                    f"{name}={params[name]!r} cannot be retuned to or from kernel='precomputed', "
                    "whose values are given; call fit with another matrix"
                )

    def _check_rows(
        self, X: Any, y: Any = "no_validation", reset: bool = False, multi_output: bool = False
    ) -> Any:
        """Rows (and targets, if given) as scikit-learn checks them, the argument named."""
        objects = as_objects(X) if callable(self.kernel) else None
        if objects is not None:
            return check_objects(self, objects, y, reset)
        sparse = self.kernel != "precomputed"
        return check_rows(self, X, y, sparse=sparse, reset=reset, multi_output=multi_output)

    def _check_empty(self, X: Any, y: Any) -> None:
        super()._check_empty(None if self.kernel == "precomputed" else X, y)

    def _check_at(self, X: Any) -> Any:
        """Rows to decide on; of a given kernel, their values against the samples held."""
        check_is_fitted(self)
        if self.kernel != "precomputed":
            return self._check_rows(X)
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != len(self._model):
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{len(self._model)} features as input: with kernel='precomputed', the kernel "
                "values against the samples of ids_, in that order"
            )
        return X

    def _refuse_new_rows(self) -> None:
        """With a given kernel, samples cannot be given other features in place."""
        if self.kernel == "precomputed":
            raise ValueError(
                "X cannot be revised with kernel='precomputed'; forget the samples and learn "
                "them again"
            )

    def _kernel_held(self) -> dict[str, Any]:
        """What retraining has to hold of the kernel to give this model."""
        model: Any = self._model
        return {"gamma": model.kernel.gamma} if model.kernel.name in WITH_GAMMA else {}
