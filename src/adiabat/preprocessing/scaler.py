# SPDX-License-Identifier: BSD-3-Clause
"""The standard scaler that learns and unlearns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.sparsefuncs import inplace_column_scale
from sklearn.utils.validation import (
    FLOAT_DTYPES,
    check_is_fitted,
    validate_data,
)

from adiabat.inputs import require_csr
from adiabat.preprocessing.moments import Moments
from adiabat.preprocessing.standardization import scale_of
from adiabat.preprocessing.unlearning import kept_if_it_fails
from adiabat.preprocessing.weights import check_weights
from adiabat.typing import FloatArray

_LEARNED = ("mean_", "var_", "scale_", "n_samples_seen_")


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Zero mean and unit variance for every feature, with rows that come and go.

    As :class:`sklearn.preprocessing.StandardScaler`, and `forget`: after any calls the scaler is,
    to the last bit, the one fitted to the rows that remain. Sums are kept without rounding, so
    that neither an offset nor an outlier that has been forgotten leaves a trace.

    Parameters
    ----------
    copy : bool, default=True
        Whether `transform` leaves its argument alone.
    with_mean : bool, default=True
        Whether to subtract the mean; not possible for sparse rows.
    with_std : bool, default=True
        Whether to divide by the standard deviation.

    Attributes
    ----------
    mean_ : ndarray or None
        Mean of every feature; None with neither mean nor deviation.
    var_ : ndarray or None
        Variance of every feature; None without `with_std`.
    scale_ : ndarray or None
        What features are divided by: the root of `var_`, or 1 for a constant feature.
    n_samples_seen_ : int, float or ndarray
        Rows held, or their total weight; by feature if some values are missing (NaN).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from adiabat import StandardScaler
    >>> scaler = StandardScaler().fit([[0.0], [2.0], [1e12]])
    >>> scaler.forget([[1e12]]).mean_, scaler.scale_
    (array([1.]), array([1.]))
    >>> scaler.transform([[4.0]])
    array([[3.]])
    """

    n_features_in_: int
    mean_: FloatArray | None
    var_: FloatArray | None
    scale_: FloatArray | None
    n_samples_seen_: Any
    _moments: Moments
    _weighted: bool
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "copy": ["boolean"],
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
    }

    def __init__(self, *, copy: bool = True, with_mean: bool = True, with_std: bool = True) -> None:
        self.copy = copy
        self.with_mean = with_mean
        self.with_std = with_std

    # -- learn and unlearn -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StandardScaler:
        """Learn from scratch.

        Parameters
        ----------
        X : {array, data frame, sparse} of shape (n_samples, n_features)
            Rows; NaN is a missing value.
        y : None
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            Weights >= 0; a weight of 2 is two equal rows.

        Returns
        -------
        self
        """
        return self._change(X, sample_weight, sign=1, afresh=True)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> StandardScaler:
        """Learn further rows, as in `fit`."""
        return self._change(X, sample_weight, sign=1, afresh=not self.__sklearn_is_fitted__())

    def forget(self, X: Any, sample_weight: Any = None) -> StandardScaler:
        """Unlearn rows that were learned: give them as they were given, with their weights.

        Rows cannot be told from their sums; what no rows at all could leave behind, a negative
        weight or variance, is an error. Without a row left the scaler is as before its first.

        Returns
        -------
        self
        """
        check_is_fitted(
            self, msg="This %(name)s instance is not fitted yet: there is nothing to forget."
        )
        return self._change(X, sample_weight, sign=-1, afresh=False)

    def merge(self, other: StandardScaler) -> StandardScaler:
        """Take in all that another scaler learned, of other rows.

        Sums add without rounding: the scaler has the bits of one that learned the rows of both,
        however they were grouped. So rows in many places can be learned apart.

        Parameters
        ----------
        other : StandardScaler
            With the same parameters, fitted on as many columns. It is not changed.

        Returns
        -------
        self
        """
        return self._join(other, 1)

    def subtract(self, other: StandardScaler) -> StandardScaler:
        """Take out what another scaler learned, of rows that this one has learned, too.

        Parameters
        ----------
        other : StandardScaler
            As in `merge`.

        Returns
        -------
        self
        """
        return self._join(other, -1)

    # -- use -------------------------------------------------------------------------------------

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Rows less `mean_`, divided by `scale_`."""
        check_is_fitted(self)
        X = self._usable(X, copy)
        if sp.issparse(X):
            if self.scale_ is not None:
                inplace_column_scale(X, 1.0 / self.scale_)
            return X
        if self.with_mean:
            X -= self.mean_
        if self.scale_ is not None:
            X /= self.scale_
        return X

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """Rows times `scale_`, plus `mean_`."""
        check_is_fitted(self)
        X = self._usable(X, copy)
        if sp.issparse(X):
            if self.scale_ is not None:
                inplace_column_scale(X, self.scale_)
            return X
        if self.scale_ is not None:
            X *= self.scale_
        if self.with_mean:
            X += self.mean_
        return X

    # -- within ----------------------------------------------------------------------------------

    def _change(self, X: Any, sample_weight: Any, sign: int, afresh: bool) -> StandardScaler:
        """Rows in or out: all of it, or an exception and nothing."""
        with kept_if_it_fails(self):
            self._validate_params()
            X = validate_data(
                self, _sound(X), accept_sparse="csr", dtype=FLOAT_DTYPES, reset=afresh,
                ensure_all_finite="allow-nan",
            )  # fmt: skip
            self._require_centrable(X)
            weight = None
            if sample_weight is not None:
                weight = check_weights(sample_weight, X.shape[0])
            moments = Moments(self.n_features_in_) if afresh else self._moments.copy()
            moments.change(X, weight, sign)
            self._take(moments, weight is not None or (not afresh and self._weighted), "X", sign)
        return self

    def _join(self, other: Any, sign: int) -> StandardScaler:
        """The rows of another scaler in or out: all of it, or an exception and nothing."""
        check_is_fitted(self)
        self._require_like(other)
        with kept_if_it_fails(self):
            moments = self._moments.joined(other._moments, sign)
            self._take(moments, self._weighted or other._weighted, "other", sign)
            if not hasattr(self, "feature_names_in_") and hasattr(other, "feature_names_in_"):
                self.feature_names_in_ = other.feature_names_in_
        return self

    def _require_like(self, other: Any) -> None:
        """Refuse a scaler that does something else, or has learned nothing."""
        if not isinstance(other, StandardScaler):
            kind = f"{type(other).__name__} of {type(other).__module__.split('.')[0]}"
            raise TypeError(f"other is a {kind}; pass a fitted adiabat.StandardScaler")
        check_is_fitted(other, msg="other is not fitted: it has nothing to give; call its fit")
        for name in ("with_mean", "with_std"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"{name}={theirs!r} of other is not {name}={mine!r} of this scaler; scalers "
                    "combine only if they do the same"
                )
        if other.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"other has {other.n_features_in_} features, this scaler {self.n_features_in_}; "
                "fit both on the same columns"
            )
        mine, theirs = (getattr(one, "feature_names_in_", None) for one in (self, other))
        if mine is not None and theirs is not None and not np.array_equal(mine, theirs):
            raise ValueError(
                "other was fitted on columns of other names, or in another order; fit both on the "
                "same columns"
            )

    def _take(self, moments: Moments, weighted: bool, name: str, sign: int) -> None:
        """Hold sums that rows of the argument `name` came to or left, if rows can have them."""
        column = moments.fault() if sign < 0 else None
        if column is not None:
            raise ValueError(
                f"{name} has rows that were not learned with these weights: without them feature "
                f"{column} would have a negative weight or variance; forget rows as they were "
                "given"
            )
        if any(moments.weights.totals):
            self._hold(moments, weighted)
        elif sign > 0:
            raise ValueError(
                "sample_weight is zero for all rows, so that there is no mean; give at least "
                "one row a positive weight"
            )
        else:
            for learned in (*_LEARNED, "_moments", "_weighted"):
                del self.__dict__[learned]

    def _hold(self, moments: Moments, weighted: bool) -> None:
        """Keep the sums and what follows from them."""
        seen = moments.seen()
        counted = seen if weighted else seen.astype(np.int64)
        learned: dict[str, Any] = {"mean_": None, "var_": None, "scale_": None}
        if self.with_mean or self.with_std:
            learned["mean_"] = mean = moments.mean()
        if self.with_std:
            learned["var_"] = var = moments.variance()
            learned["scale_"] = scale_of(seen, mean, var)
        learned["n_samples_seen_"] = counted[0] if np.ptp(counted) == 0 else counted
        self.__dict__.update(learned, _moments=moments, _weighted=weighted)

    def _usable(self, X: Any, copy: bool | None) -> Any:
        X = validate_data(
            self, _sound(X), accept_sparse="csr", dtype=FLOAT_DTYPES, reset=False,
            force_writeable=True, copy=self.copy if copy is None else copy,
            ensure_all_finite="allow-nan",
        )  # fmt: skip
        self._require_centrable(X)
        return X

    def _require_centrable(self, X: Any) -> None:
        if self.with_mean and sp.issparse(X):
            raise ValueError("Cannot center sparse matrices: pass with_mean=False instead")

    def _copy(self) -> StandardScaler:
        """An independent copy; the sums are replaced by every change, never written to."""
        twin = StandardScaler()
        twin.__dict__.update(self.__dict__)
        return twin

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_moments")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- files -----------------------------------------------------------------------------------

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """(fields, arrays) for a model file."""
        weighted, arrays = self._statistics()
        return {"parameters": self.get_params(), "weighted": weighted}, arrays

    def _statistics(self) -> tuple[bool, dict[str, npt.NDArray[Any]]]:
        """What it holds, as `Unlearning._statistics`."""
        return self._weighted, self._moments.to_arrays()

    def _restore(self, weighted: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take sums back from what `_statistics` gave; ValueError if they are not sound."""
        moments = Moments.from_arrays(arrays, self.n_features_in_)
        if not any(moments.weights.totals):
            raise ValueError("the scaler has no rows")
        self._hold(moments, bool(weighted))

    @classmethod
    def _from_file(
        cls, fields: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], n_features: int
    ) -> StandardScaler:
        scaler = cls(**fields["parameters"])
        scaler._validate_params()
        scaler.n_features_in_ = n_features
        scaler._restore(fields["weighted"], arrays)
        return scaler


def _sound(X: Any) -> Any:
    return require_csr(X) if sp.issparse(X) else X
