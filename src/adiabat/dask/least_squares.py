# SPDX-License-Identifier: BSD-3-Clause
"""Least squares on a cluster: each partition gives its exact sums, which are added up in a tree."""

from __future__ import annotations

import operator
from typing import Any

import dask

from adiabat.certificate import Certificate
from adiabat.dask.cluster import compute_sum
from adiabat.dask.collections import parts_of
from adiabat.dask.estimator import ClusterModel
from adiabat.estimators.least_squares.merge import require_like
from adiabat.estimators.lssvc import LSSVC as LocalLSSVC
from adiabat.estimators.lssvr import LSSVR as LocalLSSVR
from adiabat.partitions.looks import Part, length, named, require_pairs
from adiabat.partitions.row_sums import RowSums, require_fixed_map


class _LeastSquares(ClusterModel):
    """What classes and numbers share."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Rows; chunks of unknown size are welcome. Plain arrays are one partition.
        y : Dask array or series
            Labels, or values, cut in the same places.
        sample_weight : Dask array or series, optional
            Factors >= 0 on the squared errors.

        Returns
        -------
        self
        """
        like = self._like()
        sums = self._sums(like, X, y, sample_weight)
        self._adopt(sums, sums.model(like))
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn further rows."""
        if self._local() is None:
            return self.fit(X, y, sample_weight)
        like = self._unchanged()
        sums = self._row_sums + self._sums(like, X, y, sample_weight)
        self._adopt(sums, sums.model(like))
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Unlearn rows: the model then has the bits of one that never had them.

        Parameters
        ----------
        X, y, sample_weight
            The rows, with the targets and weights that they were learned with.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If the sums show that some of these rows were never learned.
        """
        self._fitted()
        like = self._unchanged()
        before = self._row_sums
        after = (before - self._sums(like, X, y, sample_weight)).present()
        if len(after) == 0:
            raise ValueError(
                f"X has all {len(before)} rows of the model, and no row would be left; a model "
                "needs one row"
            )
        self._adopt(after, after.model(like, before))
        return self

    def merge(self, other: Any) -> Any:
        """Take in all that another model on a cluster learned, of other rows."""
        self._fitted()
        if type(other) is not type(self):
            raise TypeError(f"other is a {type(other).__name__}, not a {type(self).__name__}")
        require_like(self._fitted(), other._fitted())
        like = self._unchanged()
        sums = self._row_sums + other._row_sums
        self._adopt(sums, sums.model(like))
        return self

    def certificate(self) -> Certificate:
        """Is this the solution? See the certificate of the estimator of one machine."""
        found: Certificate = self._fitted().certificate()
        return found

    @property
    def coef_(self) -> Any:
        """The weights w of the features, a row for each output."""
        return self._attribute("coef_")

    @property
    def intercept_(self) -> Any:
        """The bias b of each output."""
        return self._attribute("intercept_")

    @property
    def n_samples_(self) -> int:
        """Rows in the model."""
        return int(self._attribute("n_samples_"))

    # -- within ----------------------------------------------------------------------------------

    def _local(self) -> Any:
        return self.__dict__.get("_model")

    def _adopt(self, sums: RowSums, model: Any) -> None:
        self._row_sums, self._model = sums, model

    def _unchanged(self) -> Any:
        """The parameters, if they are those that the model was fitted with."""
        like = self._like()
        model = self._fitted()
        like._held_parameters = model._held_parameters
        like._require_unchanged()
        return self._like()

    def _sums(self, like: Any, X: Any, y: Any, sample_weight: Any) -> RowSums:
        require_fixed_map(like)
        parts = parts_of(X, y, sample_weight)
        one = dask.delayed(_sums_of, pure=True)
        found = compute_sum([one(part, like) for part in parts], operator.add, self._client())
        if found is None:
            raise ValueError(f"X has 0 rows in its {len(parts)} partitions; one or more is needed")
        sums: RowSums = found
        if sums.sums.n_heavy == 0:
            raise ValueError("sample_weight is zero for all rows; give one row a positive weight")
        return sums


class LSSVC(_LeastSquares):
    """Least-squares support vector classification of rows on a Dask cluster.

    The same bits for any number of partitions and workers, in any order, and after rows came and
    went: those of the rows that are there.

    Parameters
    ----------
    rho, feature_map, fit_intercept, tol
        As in :class:`adiabat.LSSVC`; `feature_map` one of :mod:`adiabat.feature_maps` or None.
    client : distributed.Client or None, default=None
        The cluster; None for the client that is there, or threads of this process if none is.

    Examples
    --------
    >>> import dask.array as da
    >>> from adiabat.dask import LSSVC
    >>> X = da.arange(8.0, chunks=3).reshape(-1, 1)
    >>> model = LSSVC(rho=0.1).fit(X, (X[:, 0] > 3).astype(int))
    >>> model.predict(X).compute()
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """

    _kind = LocalLSSVC

    def __init__(
        self,
        rho: float = 1.0,
        feature_map: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        client: Any = None,
    ) -> None:
        self.rho = rho
        self.feature_map = feature_map
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.client = client

    @property
    def classes_(self) -> Any:
        """Labels of the classes present, sorted."""
        return self._attribute("classes_")

    def decision_function(self, X: Any) -> Any:
        """Decision values of the rows of a Dask collection, when they are computed."""
        return self._decided(X)


class LSSVR(_LeastSquares):
    """Least-squares support vector regression of rows on a Dask cluster.

    Parameters
    ----------
    rho, feature_map, fit_intercept, tol
        As in :class:`adiabat.LSSVR`; `feature_map` one of :mod:`adiabat.feature_maps` or None.
    client : distributed.Client or None, default=None
        As in :class:`adiabat.dask.LSSVC`.
    """

    _kind = LocalLSSVR

    def __init__(
        self,
        rho: float = 1.0,
        feature_map: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-10,
        client: Any = None,
    ) -> None:
        self.rho = rho
        self.feature_map = feature_map
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.client = client


def _sums_of(part: Part, like: Any) -> RowSums | None:
    with named(part):
        if length(part.X) == 0:
            return None
        require_pairs(part)
        return RowSums.of(like, part.X, part.y, part.sample_weight)
