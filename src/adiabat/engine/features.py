# SPDX-License-Identifier: BSD-3-Clause
"""Where the samples' own data are kept, by position: features, dense or sparse, or kernel values.

For a kernel of the user's own, features may be any objects.

When samples leave, others from the end take their positions, and what they held is overwritten.
Dense rows of which many entries are zero (images, counts, one-hot columns) are kept by their
nonzero entries as well: products with other rows then read and multiply only these.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from adiabat._core.rows import are_equal
from adiabat._core.sparse_rows import SparseRows
from adiabat.kernels import SPARSE_PART, Kernel
from adiabat.typing import FloatArray, IntArray

# Room beyond what is there: the first rows after a fit should not have to wait for it.
SPARE = 8
# With so many dense features or fewer, a linear kernel is read from them: no columns are formed.
FEW_FEATURES = 256
# Rows that are read sooner than it is known which of them are equal.
FEW_ROWS = 256

_NOBODY: IntArray = np.empty(0, dtype=np.int64)


class DenseFeatures:
    """Rows of features in a buffer with room to grow, and perhaps their nonzero entries."""

    def __init__(self, n_features: int, by_products: bool, dtype: Any = np.float64) -> None:
        self.n = 0
        self.nonzeros: SparseRows | None = None
        self._by_products = by_products
        self._rows = np.empty((0, n_features), dtype=dtype)

    @property
    def data(self) -> FloatArray:
        """All rows (a view)."""
        return self._rows[: self.n]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return int(self.data.nbytes) + (0 if self.nonzeros is None else self.nonzeros.nbytes)

    def rows(self, positions: Any) -> Any:
        """Rows at positions."""
        return self.data[positions]

    def add(self, X: Any) -> None:
        """Add rows at the end."""
        dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=self._rows.dtype)
        n, after = self.n, self.n + len(dense)
        grows = after > len(self._rows)
        if grows:
            # zeros: what memory held before, perhaps rows that are gone, is not kept as room
            room = max(after + after // SPARE, n + n // 2)
            grown = np.zeros((room, self._rows.shape[1]), dtype=self._rows.dtype)
            grown[:n] = self._rows[:n]
            self._rows = grown
        self._rows[n:after] = dense
        self.n = after
        if grows:  # a time to look at all of them again
            self.nonzeros = self._sparse_copy()
        elif self.nonzeros is not None:
            self.nonzeros.append(dense)

    def _sparse_copy(self) -> SparseRows | None:
        data = self.data
        if not self._by_products or np.count_nonzero(data) > SPARSE_PART * data.size:
            return None
        copy = SparseRows(data.shape[1])
        copy.append(data)
        return copy

    def move(self, tail: IntArray, hole: IntArray, left: int) -> None:
        """Rows at `hole` go, those at `tail` take their positions, and `left` rows stay."""
        self._rows[hole] = self._rows[tail]
        self._rows[left : self.n] = 0.0
        if self.nonzeros is not None:
            self.nonzeros.move(tail, hole, left)
        self.n = left

    def truncate(self, n: int) -> None:
        """Take back rows added after there were n, whatever of them had been stored."""
        self._rows[n:] = 0.0
        self.n = n
        if self.nonzeros is not None:
            self.nonzeros.move(_NOBODY, _NOBODY, min(n, self.nonzeros.n))

    def alike(self, positions: IntArray, norms: FloatArray) -> tuple[IntArray, IntArray]:
        """Rows of which all others at positions are copies, and whose copy each is.

        Equal rows have equal norms. Where rows are few, or most norms differ, nobody is compared.
        """
        if len(positions) <= FEW_ROWS:
            return positions, np.arange(len(positions))
        _, first, which = np.unique(norms, return_index=True, return_inverse=True)
        if len(first) > len(positions) // 2:
            return positions, np.arange(len(positions))
        others = np.flatnonzero(~are_equal(self._rows, positions, positions[first[which]]))
        which[others] = len(first) + np.arange(len(others))
        return np.concatenate([positions[first], positions[others]]), which


class LinearFeatures(DenseFeatures):
    """Rows of few features, from which a linear kernel is read (`_core/linear_gram.pyx`)."""

    def __init__(self, n_features: int, kernel: Kernel) -> None:
        super().__init__(n_features, by_products=False)
        self._kernel = kernel
        self.measured = self._rows  # the rows as the kernel measures them, in a buffer as large

    def add(self, X: Any) -> None:
        """Add rows at the end."""
        first = self.n
        super().add(X)
        if self._kernel.origin is None:
            self.measured = self._rows
            return
        if len(self.measured) < len(self._rows):
            self.measured, first = np.zeros(self._rows.shape), 0
        self.measured[first : self.n] = self._kernel.features(self._rows[first : self.n])

    def move(self, tail: IntArray, hole: IntArray, left: int) -> None:
        """Rows at `hole` go, those at `tail` take their positions, and `left` rows stay."""
        before = self.n
        super().move(tail, hole, left)
        if self.measured is not self._rows:
            self.measured[hole] = self.measured[tail]
            self.measured[left:before] = 0.0

    def truncate(self, n: int) -> None:
        """Take back rows added after there were n, whatever of them had been stored."""
        super().truncate(n)
        self.measured[n:] = 0.0


class SparseFeatures:
    """Rows of features by their nonzero entries alone."""

    def __init__(self, n_features: int) -> None:
        if n_features > np.iinfo(np.int32).max:
            raise ValueError(f"X has {n_features} features; at most 2**31 - 1 can be kept")
        self.nonzeros = SparseRows(n_features)

    @property
    def data(self) -> Any:
        """All rows, in CSR (a copy)."""
        return self.rows(slice(None))

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self.nonzeros.nbytes

    def rows(self, positions: Any) -> Any:
        """Rows at positions, in CSR."""
        chosen = np.arange(self.nonzeros.n)[positions]
        shape = (len(chosen), self.nonzeros.n_features)
        values, features, bounds = self.nonzeros.entries(chosen)
        if len(values) <= np.iinfo(np.int32).max:  # both of one type, and others take no larger
            bounds = bounds.astype(np.int32)
        return sp.csr_array((values, features, bounds), shape=shape)

    def add(self, X: Any) -> None:
        """Add rows at the end."""
        rows = sp.csr_array(X)
        if not rows.has_canonical_format:  # an entry given in parts is their sum
            rows = rows.copy()
            rows.sum_duplicates()
        self.nonzeros.append_entries(rows.data, rows.indices, rows.indptr)

    def move(self, tail: IntArray, hole: IntArray, left: int) -> None:
        """Rows at `hole` go, those at `tail` take their positions, and `left` rows stay."""
        self.nonzeros.move(tail, hole, left)

    def truncate(self, n: int) -> None:
        """Take back rows added after there were n, whatever of them had been stored."""
        self.nonzeros.move(_NOBODY, _NOBODY, min(n, self.nonzeros.n))


class GivenKernel:
    """A kernel matrix that was given, in a buffer with room to grow."""

    def __init__(self) -> None:
        self.n = 0
        self.nonzeros = None
        self._values = np.empty((0, 0))

    @property
    def data(self) -> FloatArray:
        """The matrix (a view)."""
        return self._values[: self.n, : self.n]

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return int(self.data.nbytes)

    def rows(self, positions: Any) -> Any:
        """Rows of the matrix."""
        return self.data[positions]

    def add(self, X: Any) -> None:
        """Add samples at the end: values against the samples by position, then among the new."""
        K = np.asarray(X, dtype=np.float64)
        n, after = self.n, self.n + K.shape[0]
        if after > len(self._values):
            room = max(after + after // SPARE, n + n // 2)
            grown = np.zeros((room, room))
            grown[:n, :n] = self._values[:n, :n]
            self._values = grown
        self._values[n:after, :after] = K
        self._values[:n, n:after] = K[:, :n].T
        self.n = after

    def move(self, tail: IntArray, hole: IntArray, left: int) -> None:
        """Samples at `hole` go, those at `tail` take their positions, and `left` stay."""
        self._values[hole] = self._values[tail]
        self._values[:, hole] = self._values[:, tail]
        self.truncate(left)

    def truncate(self, n: int) -> None:
        """Take back samples added after there were n, whatever of them had been stored."""
        self._values[n:] = 0.0
        self._values[:, n:] = 0.0
        self.n = n


Features: TypeAlias = DenseFeatures | SparseFeatures | GivenKernel


def make_features(kernel: Kernel, X: Any) -> Features:
    """An empty store for samples such as X."""
    if kernel.name == "precomputed":
        return GivenKernel()
    if sp.issparse(X):
        return SparseFeatures(X.shape[1])
    if kernel.name == "linear" and X.shape[1] <= FEW_FEATURES:
        return LinearFeatures(X.shape[1], kernel)
    return DenseFeatures(X.shape[1], kernel.takes_products, X.dtype)
