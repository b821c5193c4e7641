# SPDX-License-Identifier: BSD-3-Clause
"""The imputer of missing values that learns and unlearns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn.impute

from adiabat.preprocessing.unlearning import Unlearning


class SimpleImputer(Unlearning, sklearn.impute.SimpleImputer):
    """Missing values filled with a statistic of their column, with rows that come and go.

    As :class:`sklearn.impute.SimpleImputer`, and `partial_fit` and `forget`: what is filled in is
    always the statistic of the rows that are there.

    Parameters
    ----------
    missing_values, strategy, fill_value, copy, add_indicator, keep_empty_features
        As in scikit-learn; `strategy` is ``"mean"``, ``"median"``, ``"most_frequent"``,
        ``"constant"`` or a function of the values of a column that does not look at their order.

    Attributes
    ----------
    statistics_, indicator_
        As in scikit-learn, of the rows that are there.

    Notes
    -----
    The mean adds values in sorted order, so that it does not depend on what came and went. It
    differs from scikit-learn's by rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from adiabat import SimpleImputer
    >>> imputer = SimpleImputer().fit([[1.0], [3.0], [80.0], [np.nan]])
    >>> imputer.forget([[80.0]]).transform([[np.nan]])
    array([[2.]])
    """

    _plain = sklearn.impute.SimpleImputer

    def _is_numeric(self) -> bool:
        return self.strategy not in ("most_frequent", "constant")

    def _allows_nan(self) -> bool:
        missing = self.missing_values
        return missing is None or bool(np.ndim(missing) == 0 and missing != missing)

    def _learn(self, plain: Any, X: npt.NDArray[Any]) -> None:
        # The type of the rows decides what a constant may be; counts are kept as float64.
        fill = self.fill_value
        if self.strategy == "constant" and X.dtype == np.float64 and isinstance(fill, int):
            plain.set_params(fill_value=float(fill))
        plain.fit(X)
