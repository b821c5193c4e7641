# SPDX-License-Identifier: BSD-3-Clause
"""Other transformers for other columns, learning and unlearning rows together."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.compose
from sklearn.utils import _safe_indexing
from sklearn.utils._indexing import _get_column_indices
from sklearn.utils.validation import check_is_fitted

from adiabat.preprocessing.composition import (
    can_forget,
    copied,
    fit_to,
    followed,
    is_fitted,
    require_unlearnable,
)
from adiabat.preprocessing.unlearning import kept_if_it_fails

_LEARNED = (
    "transformers_", "sparse_output_", "output_indices_", "n_features_in_", "feature_names_in_",
)  # fmt: skip


class ColumnTransformer(sklearn.compose.ColumnTransformer):
    """Transformers for columns of a table, with rows that come and go.

    As :class:`sklearn.compose.ColumnTransformer`, and `partial_fit` and `forget`. Its parts are
    transformers of adiabat, scikit-learn's that take nothing from the rows, ``"passthrough"``,
    ``"drop"``, or a :class:`sklearn.pipeline.Pipeline` of them.

    Parameters
    ----------
    transformers, remainder, sparse_threshold, n_jobs, transformer_weights, verbose
        As in scikit-learn.
    verbose_feature_names_out
        As in scikit-learn.

    Attributes
    ----------
    transformers_, output_indices_, sparse_output_
        As in scikit-learn, of the rows that are there. Whether rows come out sparse is decided by
        `fit`.

    Notes
    -----
    What a step of a `Pipeline` learns follows from what the steps before it have learned from all
    rows, so that rows cannot be taken out of it alone: a `ColumnTransformer` with one learns and
    forgets in an :class:`adiabat.IncrementalPipeline`, which has the rows.

    Examples
    --------
    >>> from adiabat import ColumnTransformer, OneHotEncoder, StandardScaler
    >>> rows = [[1.0, "a"], [3.0, "a"], [80.0, "b"]]
    >>> columns = ColumnTransformer([("x", StandardScaler(), [0]), ("kind", OneHotEncoder(), [1])])
    >>> columns.fit(rows).forget(rows[2:]).transform(rows[:2])
    array([[-1.,  1.],
           [ 1.,  1.]])
    """

    transformers_: list[tuple[str, Any, Any]]
    output_indices_: dict[str, slice]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ColumnTransformer:
        """Learn from scratch.

        Parameters
        ----------
        X : {array, data frame} of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            For those parts that take weights.

        Returns
        -------
        self
        """
        self.fit_transform(X, y, sample_weight=sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from scratch, and transform the same rows."""
        with kept_if_it_fails(self):
            require_unlearnable(self)
            X = _with_columns(X)
            rows = super().fit_transform(X, y)
            if sample_weight is None:
                return rows
            self.transformers_ = [
                (name, part, columns)
                if _holds_nothing(part, columns)
                else (
                    name,
                    fit_to(part, _safe_indexing(X, columns, axis=1), sample_weight),
                    columns,
                )
                for name, part, columns in self.transformers_
            ]
            return self.transform(X)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ColumnTransformer:
        """Learn further rows, as in `fit`."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X, sample_weight=sample_weight)
        return self._change(X, sample_weight, "partial_fit")

    def forget(self, X: Any, sample_weight: Any = None) -> ColumnTransformer:
        """Unlearn rows: give them as they were given, with their weights.

        Returns
        -------
        self
        """
        check_is_fitted(
            self, msg="This %(name)s instance is not fitted yet: there is nothing to forget."
        )
        return self._change(X, sample_weight, "forget")

    # -- within ----------------------------------------------------------------------------------

    def _change(self, X: Any, sample_weight: Any, verb: str) -> ColumnTransformer:
        if not can_forget(self):
            raise TypeError(
                f"{verb} is not for a ColumnTransformer with a Pipeline in it, whose steps follow "
                "from all rows; put it into an IncrementalPipeline, which has them"
            )
        X = _with_columns(X)
        nothing = X[:0]
        given = (X, sample_weight, nothing, None)
        if verb == "forget":
            given = (nothing, None, X, sample_weight)
        with kept_if_it_fails(self):
            changed = []
            for name, part, columns in self.transformers_:
                if not _holds_nothing(part, columns):
                    rows = [
                        _safe_indexing(item, columns, axis=1) if place in (0, 2) else item
                        for place, item in enumerate(given)
                    ]
                    part = followed(part, *rows)
                changed.append((name, part, columns))
            if all(is_fitted(part) for _, part, _ in changed):
                self.transformers_ = changed
                self._place_outputs()
            else:  # no row is left
                for learned in _LEARNED:
                    self.__dict__.pop(learned, None)
        return self

    def _place_outputs(self) -> None:
        """Say anew which columns come from which part."""
        start, before, found = 0, self.output_indices_, {}
        for name, part, columns in self.transformers_:
            width = before[name].stop - before[name].start
            if not _holds_nothing(part, columns) and hasattr(part, "forget"):
                width = len(part.get_feature_names_out())
            found[name] = slice(start, start + width)
            start += width
        self.output_indices_ = {**dict.fromkeys(before, slice(0, 0)), **found}

    def _at_positions(self, X: Any) -> ColumnTransformer:
        """The same for rows without names: columns of X by their numbers."""
        X = _with_columns(X)
        twin = ColumnTransformer(**self.get_params(deep=False))
        twin.transformers = [
            (name, part, _get_column_indices(X, columns(X) if callable(columns) else columns))
            for name, part, columns in self.transformers
        ]
        return twin

    def _copy(self) -> ColumnTransformer:
        twin: ColumnTransformer = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.transformers_ = [
            (name, part if _holds_nothing(part, columns) else copied(part), columns)
            for name, part, columns in self.transformers_
        ]
        return twin

    def __sklearn_is_fitted__(self) -> bool:
        return "transformers_" in self.__dict__


def _holds_nothing(part: Any, columns: Any) -> bool:
    """Whether it is left out, or has no columns."""
    return isinstance(part, str) or (hasattr(columns, "__len__") and len(columns) == 0)


def _with_columns(X: Any) -> Any:
    """A list of rows as an array."""
    return X if hasattr(X, "shape") else np.array(X, dtype=object)
