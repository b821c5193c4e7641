# SPDX-License-Identifier: BSD-3-Clause
"""Kernel machines on a cluster: rows stay in partitions, the client holds the few that matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dask

from adiabat.certificate import Certificate
from adiabat.dask.cluster import compute, persist
from adiabat.dask.collections import parts_of
from adiabat.dask.estimator import ClusterModel
from adiabat.estimators.svc import SVC as LocalSVC
from adiabat.estimators.svr import SVR as LocalSVR
from adiabat.partitions.working import Round, Working


class _KernelMachine(ClusterModel):
    """What classes and numbers share."""

    _own = ("client", "memory_limit")
    memory_limit: float | None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from scratch; what was learned before is gone.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Rows; chunks of unknown size are welcome. A row is known by its number in X.
        y : Dask array or series
            Labels, or numbers, cut in the same places.
        sample_weight : Dask array or series, optional
            Factors >= 0 on C.

        Returns
        -------
        self
        """
        like, client = self._like(), self._client()
        parts = persist(parts_of(X, y, sample_weight), client)
        working = Working(like, _asker(parts, client), self.memory_limit).fit(len(parts))
        self._parts, self._working = parts, working
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the rows of further partitions; their numbers follow those before."""
        if self._local() is None:
            return self.fit(X, y, sample_weight)
        client = self._client()
        fresh = persist(parts_of(X, y, sample_weight, first=len(self._parts)), client)
        parts = self._parts + fresh
        working = self._working.copy(_asker(parts, client)).extend(len(parts))
        self._parts, self._working = parts, working
        return self

    def forget(self, ids: Any) -> Any:
        """Unlearn rows, by their numbers in the order in which they were learned.

        The partitions are the caller's, and stay as they are; the rows are not looked at again.

        Parameters
        ----------
        ids : int or sequence of int
            The rows.

        Returns
        -------
        self
        """
        self._fitted()
        asker = _asker(self._parts, self._client())
        self._working = self._working.copy(asker).forget(ids)
        return self

    def certificate(self) -> Certificate:
        """Is this the optimum on all rows? Every row is asked anew, wherever it is.

        Returns
        -------
        Certificate
        """
        self._fitted()
        return self._working.copy(_asker(self._parts, self._client())).certificate()

    def to_local(self) -> Any:
        """A copy of the model as an estimator of one machine, of the rows that the client holds.

        It decides as this one does. Updates of it know nothing of the rows in the partitions.
        """
        self._fitted()
        return self._working.local()

    @property
    def rounds_(self) -> list[Round]:
        """The looks at all rows that the model took: violators, rows held, bytes moved."""
        self._attribute("n_features_in_")
        return list(self._working.rounds)

    @property
    def n_samples_(self) -> int:
        """Rows in the model, in the partitions and at the client."""
        self._attribute("n_features_in_")
        return self._working.n_samples

    # -- within ----------------------------------------------------------------------------------

    def _local(self) -> Any:
        working = self.__dict__.get("_working")
        return None if working is None else working.named_model()


def _asker(parts: Sequence[Any], client: Any) -> Any:
    def ask(function: Callable[..., Any], shared: Any, own: Sequence[Any]) -> list[Any]:
        # one task holds what all share, so that each worker gets it once
        held = dask.delayed(_same, pure=False)(dask.delayed(shared, traverse=False, pure=False))
        run = dask.delayed(function, pure=False)
        tasks = [run(part, held, each) for part, each in zip(parts, own, strict=True)]
        return compute(tasks, client)

    return ask


def _same(value: Any) -> Any:
    return value


class SVC(_KernelMachine):
    """Support vector classification of rows on a Dask cluster, to the optimum of all of them.

    The client learns some rows; the partitions say which of theirs violate the optimality
    conditions, and the client learns the worst of those by an update, until there are none.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, tol, class_weight, decision_function_shape, break_ties
        As in :class:`adiabat.SVC`; not ``kernel="precomputed"``.
    memory_limit : float or None, default=None
        Bytes that the rows held at the client may take with their kernel columns (support vectors
        × rows held); beyond it, MemoryError beforehand. None for what is free.
    client : distributed.Client or None, default=None
        The cluster; None for the client that is there, or threads of this process if none is.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes present, sorted.
    rounds_ : list of Round
        The looks at all rows so far.

    Examples
    --------
    >>> import dask.array as da
    >>> from adiabat.dask import SVC
    >>> X = da.arange(8.0, chunks=3).reshape(-1, 1)
    >>> model = SVC(C=10.0).fit(X, (X[:, 0] > 3).astype(int))
    >>> model.forget([3]).certificate().ok
    True
    """

    _kind = LocalSVC

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        class_weight: Mapping[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        memory_limit: float | None = None,
        client: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.memory_limit = memory_limit
        self.client = client

    @property
    def classes_(self) -> Any:
        """Labels of the classes present, sorted."""
        return self._attribute("classes_")

    def decision_function(self, X: Any) -> Any:
        """Decision values of the rows of a Dask collection, when they are computed."""
        return self._decided(X)


class SVR(_KernelMachine):
    """Support vector regression of rows on a Dask cluster, to the optimum of all of them.

    Parameters
    ----------
    C, epsilon, kernel, degree, gamma, coef0, tol
        As in :class:`adiabat.SVR`; not ``kernel="precomputed"``.
    memory_limit, client
        As in :class:`adiabat.dask.SVC`.
    """

    _kind = LocalSVR

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        memory_limit: float | None = None,
        client: Any = None,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.memory_limit = memory_limit
        self.client = client
