# SPDX-License-Identifier: BSD-3-Clause
"""The encoder of categories that learns and unlearns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn.preprocessing

from adiabat.preprocessing.unlearning import Unlearning


class OneHotEncoder(Unlearning, sklearn.preprocessing.OneHotEncoder):
    """A column of zeros and ones for each category, with rows that come and go.

    As :class:`sklearn.preprocessing.OneHotEncoder`, and `partial_fit` and `forget`: a category
    comes with its first row and goes with its last.

    Parameters
    ----------
    categories, drop, sparse_output, dtype, handle_unknown, min_frequency, max_categories
        As in scikit-learn.
    feature_name_combiner
        As in scikit-learn.

    Attributes
    ----------
    categories_, drop_idx_
        As in scikit-learn, of the rows that are there.

    Examples
    --------
    >>> from adiabat import OneHotEncoder
    >>> encoder = OneHotEncoder(sparse_output=False).fit([["red"], ["blue"], ["red"]])
    >>> encoder.partial_fit([["green"]]).forget([["blue"]]).transform([["red"]])
    array([[0., 1.]])
    """

    _plain = sklearn.preprocessing.OneHotEncoder

    def transform(self, X: Any) -> Any:
        """Zeros and ones of rows."""
        numbers = isinstance(X, np.ndarray) and X.dtype != object
        if numbers and any(found.dtype == object for found in getattr(self, "categories_", ())):
            X = X.astype(object)  # a column of text without any value is numbers to NumPy
        return super().transform(X)

    def _is_numeric(self) -> bool:
        return False

    def _learn(self, plain: Any, X: npt.NDArray[Any]) -> None:
        plain.fit(X)
        plain.categories_ = [_natural(values) for values in plain.categories_]


def _natural(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Categories of one column as an array of their own kind, as from a column of a frame."""
    numbers = [v for v in values.tolist() if isinstance(v, (int, float))]
    if values.dtype != object or len(numbers) < len(values) or all(v != v for v in numbers):
        return values
    return np.array(numbers)
