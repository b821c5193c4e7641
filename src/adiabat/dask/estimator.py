# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators on a cluster share: a client, a fitted model here, answers when asked for."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from adiabat.dask.cluster import client_for
from adiabat.dask.collections import lazily
from adiabat.estimators.what_if.copies import nameless


class ClusterEstimator(BaseEstimator):
    """Base of them; `_kind` is the estimator of one machine that has the parameters."""

    _kind: ClassVar[Any]
    #: Parameters of the cluster, not of the model.
    _own: ClassVar[tuple[str, ...]] = ("client",)
    client: Any

    def to_local(self) -> Any:
        """The model as an estimator of one machine, independent of this one."""
        return deepcopy(self._fitted())

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        return int(self._attribute("n_features_in_"))

    # -- what a subclass says --------------------------------------------------------------------

    def _local(self) -> Any:
        """The fitted model, None if there is none."""
        raise NotImplementedError

    # -- within ----------------------------------------------------------------------------------

    def _like(self) -> Any:
        """An estimator of one machine with the same parameters."""
        params = self.get_params(deep=False)
        for name in self._own:
            params.pop(name)
        like = self._kind(**{k: clone(v, safe=False) for k, v in params.items()})
        like._validate_params()
        return like

    def _client(self) -> Any:
        return client_for(self.client)

    def _fitted(self) -> Any:
        model = self._local()
        if model is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first."
            )
        return model

    def _attribute(self, name: str) -> Any:
        model = self._local()
        if model is None:
            raise AttributeError(f"{name} exists once the model has learned a row; call fit")
        return getattr(model, name)

    def __sklearn_is_fitted__(self) -> bool:
        return self._local() is not None

    def __sklearn_clone__(self) -> Any:
        # a client is a connection, and cannot be copied
        params = self.get_params(deep=False)
        return type(self)(
            **{
                name: value if name == "client" else clone(value, safe=False)
                for name, value in params.items()
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "client": None}

    def __sklearn_tags__(self) -> Any:
        return self._like().__sklearn_tags__()


class ClusterModel(ClusterEstimator):
    """What machines add: predictions."""

    def predict(self, X: Any) -> Any:
        """Labels or numbers for the rows of a Dask collection, as one, when it is computed."""
        return lazily(_predict, self._fitted(), X, self._answer_like(_predict))

    @property
    def last_update_(self) -> Any:
        """What the last change of the model did."""
        return self._attribute("last_update_")

    def _decided(self, X: Any) -> Any:
        """Decision values of the rows of a collection, when they are computed."""
        return lazily(_decision, self._fitted(), X, self._answer_like(_decision))

    def _answer_like(self, ask: Callable[[Any, Any], Any]) -> Any:
        """The answer for no rows."""
        model = nameless(self._fitted())
        return ask(model, np.zeros((1, model.n_features_in_)))[:0]


def _predict(model: Any, X: Any) -> Any:
    return model.predict(rows_for(model, X))


def _decision(model: Any, X: Any) -> Any:
    return model.decision_function(rows_for(model, X))


def rows_for(model: Any, X: Any) -> Any:
    """Rows with names of columns only if the model knows names."""
    named = hasattr(model, "feature_names_in_")
    return X if named or not hasattr(X, "to_numpy") else X.to_numpy()
