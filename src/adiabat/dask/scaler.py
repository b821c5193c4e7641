# SPDX-License-Identifier: BSD-3-Clause
"""The standard scaler on a cluster: exact sums of the partitions, added up in a tree."""

from __future__ import annotations

from copy import copy
from typing import Any

import dask
import numpy as np

from adiabat.dask.cluster import compute_sum
from adiabat.dask.collections import lazily, parts_of
from adiabat.dask.estimator import ClusterEstimator, rows_for
from adiabat.partitions.looks import Part, length, named
from adiabat.preprocessing.scaler import StandardScaler as LocalScaler
from adiabat.preprocessing.weights import check_weights


class StandardScaler(ClusterEstimator):
    """Zero mean and unit variance for every feature of rows on a Dask cluster.

    The same bits for any number of partitions and workers, in any order, and after rows came and
    went: those of :class:`adiabat.StandardScaler` on the rows that are there.

    Parameters
    ----------
    with_mean, with_std
        As in :class:`adiabat.StandardScaler`.
    client : distributed.Client or None, default=None
        The cluster; None for the client that is there, or threads of this process if none is.

    Attributes
    ----------
    mean_, var_, scale_, n_samples_seen_
        As in :class:`adiabat.StandardScaler`.

    Examples
    --------
    >>> import dask.array as da
    >>> from adiabat.dask import StandardScaler
    >>> X = da.arange(8.0, chunks=3).reshape(-1, 1)
    >>> scaler = StandardScaler().fit(X)
    >>> scaler.mean_
    array([3.5])
    >>> scaler.transform(X).mean().compute()
    np.float64(0.0)
    """

    _kind = LocalScaler
    _scaler: LocalScaler | None

    def __init__(self, with_mean: bool = True, with_std: bool = True, client: Any = None) -> None:
        self.with_mean = with_mean
        self.with_std = with_std
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Rows; NaN is a missing value. Plain arrays are one partition.
        y : None
            Ignored.
        sample_weight : Dask array or series, optional
            Weights >= 0, cut in the same places.

        Returns
        -------
        self
        """
        self._scaler = self._learned(X, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn further rows."""
        if self._local() is None:
            return self.fit(X, y, sample_weight)
        self._scaler = _merged(self._fitted(), self._learned(X, sample_weight))
        return self

    def forget(self, X: Any, sample_weight: Any = None) -> Any:
        """Unlearn rows that were learned: give them as they were given, with their weights."""
        before = self._fitted()
        gone = self._learned(X, sample_weight)
        _require_same_columns(before, gone)
        after = copy(before).subtract(gone)
        self._scaler = after if after.__sklearn_is_fitted__() else None
        return self

    def transform(self, X: Any) -> Any:
        """Rows less `mean_`, divided by `scale_`, as a collection, when it is computed."""
        return lazily(_transformed, self._fitted(), X, self._none_of(X))

    def inverse_transform(self, X: Any) -> Any:
        """Rows times `scale_`, plus `mean_`, as a collection, when it is computed."""
        return lazily(_restored, self._fitted(), X, self._none_of(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit`, then `transform` the same rows."""
        return self.fit(X, y, sample_weight).transform(X)

    @property
    def mean_(self) -> Any:
        """Mean of every feature."""
        return self._attribute("mean_")

    @property
    def var_(self) -> Any:
        """Variance of every feature."""
        return self._attribute("var_")

    @property
    def scale_(self) -> Any:
        """What features are divided by."""
        return self._attribute("scale_")

    @property
    def n_samples_seen_(self) -> Any:
        """Rows held, or their total weight; by feature if some values are missing."""
        return self._attribute("n_samples_seen_")

    # -- within ----------------------------------------------------------------------------------

    def _local(self) -> Any:
        return self.__dict__.get("_scaler")

    def _learned(self, X: Any, sample_weight: Any) -> LocalScaler:
        parts = parts_of(X, sample_weight=sample_weight)
        one = dask.delayed(_learned_of, pure=True)
        like = self._like()
        found = compute_sum([one(part, like) for part in parts], _merged, self._client())
        if found is None:
            raise ValueError(
                f"X has 0 rows of positive weight in its {len(parts)} partitions; one or more is "
                "needed"
            )
        scaler: LocalScaler = found
        return scaler

    def _none_of(self, X: Any) -> Any:
        """What the answer for no rows looks like."""
        if hasattr(X, "map_partitions"):
            return X._meta.astype(np.float64)
        kind = getattr(X, "dtype", np.dtype(np.float64))
        return np.empty((0, self.n_features_in_), kind if kind.kind == "f" else np.float64)


def _learned_of(part: Part, like: LocalScaler) -> LocalScaler | None:
    with named(part):
        if length(part.X) == 0:
            return None
        if part.sample_weight is not None:
            weight = check_weights(part.sample_weight, length(part.X))
            if not weight.any():  # such rows count for nothing
                return None
        return copy(like).fit(part.X, sample_weight=part.sample_weight)


def _merged(one: LocalScaler, other: LocalScaler) -> LocalScaler:
    _require_same_columns(one, other)
    return copy(one).merge(other)


def _require_same_columns(one: LocalScaler, other: LocalScaler) -> None:
    if one.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"X has {other.n_features_in_} features, and the rows before it "
            f"{one.n_features_in_}; partitions must agree"
        )
    before, after = (getattr(each, "feature_names_in_", None) for each in (one, other))
    if before is not None and after is not None and not np.array_equal(before, after):
        raise ValueError("X has columns of other names, or in another order, than before")


def _transformed(scaler: LocalScaler, X: Any) -> Any:
    return _like_given(scaler.transform(rows_for(scaler, X)), X)


def _restored(scaler: LocalScaler, X: Any) -> Any:
    return _like_given(scaler.inverse_transform(rows_for(scaler, X)), X)


def _like_given(values: Any, X: Any) -> Any:
    """A data frame for a data frame."""
    if not hasattr(X, "columns"):
        return values
    return type(X)(values, index=X.index, columns=X.columns)
