# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's transformers of single columns, learning and unlearning rows.

A transformer whose statistics depend on the values of each column alone, and not on the order of
rows, is a function of the tallies of its columns (`tally.py`). After every change scikit-learn's
own transformer is fitted to the values that are there; what it learned is what ours has learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data

from adiabat.preprocessing.tally import Tally, count, table

_NAMES = ("n_features_in_", "feature_names_in_")


@contextmanager
def kept_if_it_fails(transformer: Any) -> Iterator[None]:
    """Give a transformer its attributes back if the block fails."""
    before = dict(transformer.__dict__)
    try:
        yield
    except BaseException:
        transformer.__dict__.clear()
        transformer.__dict__.update(before)
        raise


class Unlearning:
    """`fit`, `partial_fit` and `forget` for a subclass of one of scikit-learn's transformers.

    The class after this one in the order of bases is scikit-learn's; its parameters, `transform`
    and names of features are inherited.
    """

    #: scikit-learn's transformer.
    _plain: ClassVar[Any]
    n_features_in_: int
    _tallies: list[Tally]

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from scratch.

        Parameters
        ----------
        X : {array, data frame} of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self
        """
        return self._change(X, sign=1, afresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn further rows, as in `fit`."""
        return self._change(X, sign=1, afresh=not self.__sklearn_is_fitted__())

    def forget(self, X: Any) -> Any:
        """Unlearn rows: give them as they were given.

        Rows with a value that was not learned, or not so often, are refused (NotLearnedError).
        Without a row left the transformer is as before its first.

        Returns
        -------
        self
        """
        check_is_fitted(
            self, msg="This %(name)s instance is not fitted yet: there is nothing to forget."
        )
        return self._change(X, sign=-1, afresh=False)

    # -- within ----------------------------------------------------------------------------------

    def _change(self, X: Any, sign: int, afresh: bool) -> Any:
        with kept_if_it_fails(self):
            estimator: Any = self
            estimator._validate_params()
            X = self._checked(X, afresh)
            held = [Tally() for _ in range(X.shape[1])] if afresh else self._tallies
            self._hold(count(held, X, sign))
        return self

    def _checked(self, X: Any, reset: bool) -> npt.NDArray[Any]:
        """Rows as an array of numbers or of objects."""
        if sp.issparse(X):
            raise TypeError(
                f"X is sparse, and {type(self).__name__} counts the values of dense rows; pass "
                "X.toarray(), or use StandardScaler(with_mean=False)"
            )
        if isinstance(X, list) and any(isinstance(value, str) for row in X for value in row):
            X = np.array(X, dtype=object)  # else numbers beside text become text
        numeric = self._is_numeric()
        rows: npt.NDArray[Any] = validate_data(
            self, X, dtype=FLOAT_DTYPES if numeric else None, reset=reset,
            ensure_all_finite="allow-nan" if self._allows_nan() else True,
        )  # fmt: skip
        return rows if numeric or rows.dtype.kind == "f" else rows.astype(object)

    def _is_numeric(self) -> bool:
        """Whether the columns must be numbers."""
        return True

    def _allows_nan(self) -> bool:
        return True

    def _hold(self, tallies: list[Tally]) -> None:
        """Keep the tallies and what scikit-learn learns from their values."""
        estimator: Any = self
        parameters = estimator.get_params(deep=False)
        learned: dict[str, Any] = {}
        if tallies and tallies[0].total:
            plain = self._plain(**parameters)
            self._learn(plain, table(tallies))
            learned = {
                name: value
                for name, value in vars(plain).items()
                if name not in parameters and name not in _NAMES
            }
            learned["_learned"] = list(learned)
            learned["_tallies"] = tallies
        for name in ("_tallies", "_learned", *vars(self).get("_learned", ())):
            if name not in learned:
                self.__dict__.pop(name, None)
        self.__dict__.update(learned)

    def _learn(self, plain: Any, X: npt.NDArray[Any]) -> None:
        plain.fit(X)

    def _copy(self) -> Any:
        """An independent copy; the tallies are replaced by every change, never written to."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_tallies")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = False
        return tags

    # -- files -----------------------------------------------------------------------------------

    def _statistics(self) -> tuple[list[Any], dict[str, npt.NDArray[Any]]]:
        """The tallies as plain values and arrays."""
        fields: list[Any] = []
        arrays: dict[str, npt.NDArray[Any]] = {}
        for j, tally in enumerate(self._tallies):
            arrays[f"counts{j}"] = tally.counts
            if tally.values.dtype == object:
                fields.append([as_json(value) for value in tally.values.tolist()])
            else:
                fields.append(None)
                arrays[f"values{j}"] = tally.values
        return fields, arrays

    def _restore(self, fields: Sequence[Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take tallies back from what `_statistics` gave; ValueError if they are not sound."""
        tallies = []
        for j, values in enumerate(fields):
            counts = arrays[f"counts{j}"]
            if values is None:
                given = arrays[f"values{j}"]
            else:
                given = np.empty(len(values), dtype=object)
                given[:] = [from_json(value) for value in values]
            if counts.dtype != np.int64 or counts.ndim != 1 or counts.shape != given.shape:
                raise ValueError("the counts of a transformer are not as many as its values")
            if given.dtype not in (np.float64, object) or (len(counts) and counts.min() < 1):
                raise ValueError("the values of a transformer are not sound")
            tallies.append(Tally(given, counts))
        if len(tallies) != self.n_features_in_ or len({tally.total for tally in tallies}) != 1:
            raise ValueError("the counts of a transformer do not fit together")
        self._hold(tallies)


def as_json(value: Any) -> Any:
    """A category as JSON; NaN, which JSON has not, as an empty list."""
    if isinstance(value, float) and value != value:
        return []
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"a value of a column is a {type(value).__name__}, which a model file cannot hold; give "
        "categories as text or numbers"
    )


def from_json(value: Any) -> Any:
    """A category back from `as_json`; ValueError if it is none."""
    if value == [] and isinstance(value, list):
        return np.nan
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise ValueError("a category of a transformer is of the wrong type")
    return value
