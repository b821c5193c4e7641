# SPDX-License-Identifier: BSD-3-Clause
"""What transformers would make of rows, counted before they make it.

The transformers of a model file are a stranger's. A few bytes ask for all monomials of degree 30,
for a column for every value, or for the statistics of 10**15 rows. A step is fitted, which takes no
more than the rows do, and what it would give is counted before it is asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.utils import _safe_indexing
from sklearn.utils._indexing import _get_column_indices

from adiabat.inputs import require_memory

_FLOAT_BYTES: Final = 8
_MOST_DEGREE: Final = 1_000


def require_affordable_transformers(transformer: Any, X: Any, limit: int | None) -> None:
    """Refuse transformers that would take more memory than is allowed; `limit` is in bytes."""
    _Count(limit).through(transformer, X)


def require_affordable_counts(arrays: Mapping[str, Any], limit: int | None) -> None:
    """Refuse counts of values that stand for more rows than memory holds: each is written out."""
    counts = [array for name, array in arrays.items() if name.startswith("counts")]
    for array in counts:
        rows = sum(array.ravel().tolist())
        require_memory(_FLOAT_BYTES * rows * len(counts), f"statistics of {rows} rows", limit)


class _Count:
    """Bytes that all steps together have been asked for."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._bytes = 0

    def through(self, transformer: Any, X: Any) -> Any:
        """The rows that a transformer gives."""
        if transformer is None or isinstance(transformer, str):
            return X[:, :0] if transformer == "drop" else X
        if isinstance(transformer, Pipeline):
            for _, step in transformer.steps:
                X = self.through(step, X)
            return X
        if isinstance(transformer, ColumnTransformer):
            return self._side_by_side(transformer, X)
        if isinstance(transformer, PolynomialFeatures):
            _require_degree(transformer.degree)
        fitted = clone(transformer).fit(X)
        self._add(*_outputs(fitted, X))
        return fitted.transform(X)

    def _side_by_side(self, columns: ColumnTransformer, X: Any) -> Any:
        parts = [(part, _get_column_indices(X, chosen)) for _, part, chosen in columns.transformers]
        named = {place for _, chosen in parts for place in chosen}
        parts.append((columns.remainder, [j for j in range(X.shape[1]) if j not in named]))
        blocks = [
            self.through(part, _safe_indexing(X, chosen, axis=1))
            for part, chosen in parts
            if chosen
        ]
        width = sum(block.shape[1] for block in blocks)
        filled = sum(block.nnz if sp.issparse(block) else block.size for block in blocks)
        is_sparse = any(map(sp.issparse, blocks)) and (
            filled < columns.sparse_threshold * X.shape[0] * width
        )
        self._add(X.shape[0], width, filled if is_sparse else None)
        if is_sparse:
            return sp.hstack([sp.csr_array(block) for block in blocks], "csr")
        return np.hstack([block.toarray() if sp.issparse(block) else block for block in blocks])

    def _add(self, rows: int, width: int, filled: int | None) -> None:
        self._bytes += _FLOAT_BYTES * (rows * width if filled is None else 2 * filled)
        require_memory(self._bytes, f"transformed rows of {width} features", self._limit)


def _outputs(fitted: Any, X: Any) -> tuple[int, int, int | None]:
    """Rows, columns, and entries if the rows come out sparse."""
    rows, width = X.shape
    filled = X.nnz if sp.issparse(X) else None
    if isinstance(fitted, OneHotEncoder):
        filled = rows * width if fitted.sparse_output else None
        return rows, sum(len(values) for values in fitted.categories_), filled
    if isinstance(fitted, PolynomialFeatures):
        return rows, fitted.n_output_features_, None
    return (
        rows,
        2 * width,
        None if filled is None else 2 * filled,
    )  # an imputer says where gaps were


def _require_degree(degree: Any) -> None:
    most = degree[-1] if isinstance(degree, tuple) else degree
    if most > _MOST_DEGREE:
        raise ValueError(f"monomials of degree {most}, where {_MOST_DEGREE} is the most")
