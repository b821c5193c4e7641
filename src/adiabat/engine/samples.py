# SPDX-License-Identifier: BSD-3-Clause
"""The samples now in the model and their kernel columns, shared by all machines.

A sample has a *position* for as long as it stays; when others are removed, samples from the end
move into the holes, and `remove` says which. Kernel columns exist only for the samples that carry
weight, and for a few that lately did (`Gram`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from adiabat._core.gram import Gram
from adiabat._core.sparse_rows import SparseRows
from adiabat._core.thin import Thin
from adiabat.engine.stores import Store, ThinStore, make_store
from adiabat.errors import IndefiniteKernelError
from adiabat.kernels import Kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Kernel values are computed for at most this many at a time (64 MB).
BLOCK_ENTRIES = 8_000_000
# New samples in batches up to this size get their whole kernel column at once: the product that
# fills their row against the slots already reads every sample.
EAGER_BATCH = 256
# Columns that are one table of products (`SparseRows`).
FEW_COLUMNS = 24
# Features up to which rows are laid side by side for products with nonzero entries: 16 of them,
# which is 2 MB, should stay in the cache.
MOST_FEATURES = 1 << 14
# Samples among which a user's own kernel is inspected, and the negative part of its spectrum that
# may be rounding: a matrix that was once float32 has 1e-8.
INSPECTED = 200
NEGATIVE = 1e-6


class Samples:
    """Rows of features (dense or CSR), or rows of a given kernel matrix."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.gram = Gram()
        self.n = 0
        self.diagonal = np.empty(0)
        self._largest, self._largest_of = 0.0, self.diagonal
        self._store: Store | Any = None  # from the first `add` on it is there
        self._norms: FloatArray | None = None
        self._normed: SparseRows | None = None  # whose norms these are

    # -- what is there ---------------------------------------------------------------------------

    @property
    def precomputed(self) -> bool:
        """Whether the samples are rows of a given kernel matrix."""
        return self.kernel.name == "precomputed"

    @property
    def data(self) -> Any:
        """Feature rows by position (or the kernel matrix, if that was given)."""
        return None if self._store is None else self._store.data

    @property
    def _nonzeros(self) -> SparseRows | None:
        """The rows by their nonzero entries, if products are made of these."""
        nonzeros: SparseRows | None = self._store.nonzeros
        if nonzeros is None or not self.kernel.takes_products:
            return None
        return nonzeros if nonzeros.n_features <= MOST_FEATURES else None

    @property
    def largest(self) -> float:
        """The largest k(x, x), at least 0."""
        if self._largest_of is not self.diagonal:  # which is replaced when it has changed
            self._largest, self._largest_of = float(self.diagonal.max(initial=0.0)), self.diagonal
        return self._largest

    @property
    def thin(self) -> bool:
        """Whether K = XX' is read from X itself, whose features are few."""
        return isinstance(self.gram, Thin)

    @property
    def features(self) -> FloatArray:
        """Where thin: X such that K = XX', by position."""
        assert isinstance(self._store, ThinStore)
        return self._store.measured[: self.n]

    def rows(self, positions: Any) -> Any:
        """Feature rows at positions."""
        return self._store.rows(positions)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values between samples, from the data themselves."""
        if self.precomputed:
            return np.ascontiguousarray(self.data[np.ix_(rows, columns)])
        norms = self._norms
        return self.kernel.block(
            self.rows(rows),
            self.rows(columns),
            None if norms is None else norms[rows],
            None if norms is None else norms[columns],
        )

    def _claim(self, positions: IntArray) -> None:
        """Give samples their kernel columns, by one product against all samples."""
        self.gram.claim(positions, *self._columns(positions))

    def _columns(self, columns: IntArray) -> tuple[Callable[[slice], FloatArray], int]:
        """Kernel values of a slice of all samples against some, and what is read for all."""
        kernel, norms = self.kernel, self._norms
        if self.precomputed:
            values = self.data
            return lambda rows: values[rows, columns], 0
        other_norms = None if norms is None else norms[columns]
        nonzeros, k = self._nonzeros, len(columns)
        if nonzeros is not None:
            tables = nonzeros.in_lanes(columns)

            def by_nonzeros(rows: slice) -> FloatArray:
                products = np.empty((rows.stop - rows.start, k))
                nonzeros.multiply(tables, rows.start, products)
                return kernel.from_products(
                    products, None if norms is None else norms[rows], other_norms
                )

            # the product of a few is shared out by itself; many go through the cache slice by slice
            return by_nonzeros, 2 * nonzeros.nnz * (1 + k // 8) if k > FEW_COLUMNS else 0
        others, data = self.rows(columns), self.data
        if kernel.function is not None or sp.issparse(data):
            whole = kernel.block(others, data, other_norms, norms)
            return lambda rows: whole[:, rows].T, 0

        def by_blas(rows: slice) -> FloatArray:
            own_norms = None if norms is None else norms[rows]
            return kernel.block(others, data[rows], other_norms, own_norms).T

        return by_blas, data.size * (1 + k // 8)

    def slots(self, positions: IntArray) -> IntArray:
        """Slots of samples, their columns computed where there were none."""
        slots: IntArray = self.gram.slot_of[positions]
        if len(slots) and slots.min() < 0:
            self._fill(np.unique(positions[slots < 0]))
            slots = self.gram.slot_of[positions]
        return slots

    def _fill(self, positions: IntArray) -> None:
        step = max(1, BLOCK_ENTRIES // max(1, self.n))
        for start in range(0, len(positions), step):
            part = positions[start : start + step]
            self._claim(part)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values K[rows, columns], read from slots of the columns."""
        slots = self.slots(columns)
        out = np.empty((len(rows), len(columns)))
        self.gram.gather(rows, slots, out)
        return out

    def among(self, positions: IntArray) -> FloatArray:
        """Kernel values among samples, without asking for columns that are not there."""
        has = self.gram.slot_of[positions] >= 0
        if has.all():
            return self.between(positions, positions)
        with_column, without = np.flatnonzero(has), np.flatnonzero(~has)
        lacking = positions[without]
        out = np.empty((len(positions), len(positions)))
        out[:, with_column] = self.between(positions, positions[with_column])
        out[np.ix_(with_column, without)] = out[np.ix_(without, with_column)].T
        out[np.ix_(without, without)] = self.block(lacking, lacking)
        return out

    def fork(self) -> Samples:
        """The same samples, to be read only; kernel columns are shared, new ones are its own."""
        other = Samples(self.kernel)
        other.gram, other.n, other.diagonal = self.gram.fork(), self.n, self.diagonal
        other._store, other._norms, other._normed = self._store, self._norms, self._normed
        return other

    # -- change ----------------------------------------------------------------------------------

    def add(self, X: Any) -> IntArray:
        """Add rows at the end and return their positions.

        X is (k, features), or for a given kernel (k, n + k): against the samples by position,
        then among the new ones.
        """
        k = X.shape[0]
        first = self.n
        self._store_rows(X)
        positions = np.arange(first, first + k)
        occupied = np.flatnonzero(self.gram.owner >= 0)
        owners = self.gram.owner[occupied]
        if self.thin:
            self.gram.append(k, occupied[:0], np.empty((k, 0)))
            self._check_diagonal(positions, self._own(first))
        elif k <= EAGER_BATCH:
            self.gram.append(k, occupied[:0], np.empty((k, 0)))
            self._claim(positions)
            self.gram.write(positions, occupied, self.between(owners, positions).T)
            self._check_diagonal(positions, self._own(first))
        else:
            self.gram.append(k, occupied, np.zeros((k, len(occupied))))
            self._check_diagonal(positions, self._own(first))
            step = max(1, BLOCK_ENTRIES // max(1, len(owners)))
            for start in range(0, k if len(owners) else 0, step):
                part = positions[start : start + step]
                self.gram.write(part, occupied, self.block(part, owners))
        self._refuse_indefinite(positions)
        return positions

    def _own(self, first: int) -> FloatArray:
        """k(x, x) of the samples from the first on."""
        if self.precomputed:
            return np.array(self.data.diagonal()[first:])
        return self.kernel.diagonal(self.rows(slice(first, self.n)))

    def _refuse_indefinite(self, positions: IntArray) -> None:
        """Look for negative curvature among some samples, the new ones first.

        Kernels with a name are semidefinite by their formula; one that was given may not be.
        """
        if self.kernel.name not in ("precomputed", "callable") or len(positions) == 0:
            return
        rng = np.random.default_rng(self.n)
        new = rng.permutation(positions)[:INSPECTED]
        old = rng.permutation(positions[0])[: INSPECTED - len(new)]
        chosen = np.sort(np.concatenate([new, old]))
        spectrum = np.linalg.eigvalsh(self.block(chosen, chosen))
        if spectrum[0] < -NEGATIVE * max(spectrum[-1], -spectrum[0]):
            raise IndefiniteKernelError(
                f"kernel={self.kernel.name!r} is not positive semidefinite: among "
                f"{len(chosen)} samples of X its eigenvalues run from {spectrum[0]:.3g} to "
                f"{spectrum[-1]:.3g}, so the problem has no unique optimum. Pass similarities, "
                "not distances, or use a positive semidefinite kernel."
            )

    def _check_diagonal(self, positions: IntArray, own: FloatArray) -> None:
        if len(own) and own.min() < 0.0:
            raise IndefiniteKernelError(
                f"kernel={self.kernel.name!r} is not positive semidefinite: k(x, x) = "
                f"{own.min():.3g} for a row of X. Use a positive semidefinite kernel."
            )
        self.diagonal = np.concatenate([self.diagonal[: positions[0] if len(own) else None], own])

    def _store_rows(self, X: Any) -> None:
        if self._store is None:
            self._store = make_store(self.kernel, X)
        self._store.add(X)
        if isinstance(self._store, ThinStore):
            if not isinstance(self.gram, Thin):
                self.gram = Thin()
            self.gram.hold(self._store.measured)
        self._store_norms(X)
        self.n += X.shape[0]

    def _store_norms(self, X: Any) -> None:
        """Norms of rows that came into the store, by their entries if products are."""
        nonzeros, first = self._nonzeros, self.n
        if nonzeros is not None:
            if self._normed is not nonzeros:  # all: they must go with the products
                self._normed, first = nonzeros, 0
            norms = self.kernel.norms(X, nonzeros.norms(first))
        else:
            norms = self.kernel.norms(X)
        if norms is not None:
            kept = np.empty(0) if self._norms is None else self._norms[:first]
            self._norms = np.concatenate([kept, norms])

    def remove(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Remove samples; returns (from, to): where samples from the end moved."""
        tail, hole = self.gram.remove(positions)
        left = self.gram.n
        if left == self.n:
            return tail, hole
        self._store.move(tail, hole, left)
        for values in (self.diagonal, self._norms):
            if values is not None:
                values[hole] = values[tail]
        self._shorten(left)
        self.n = left
        return tail, hole

    def _shorten(self, n: int) -> None:
        # copies: a view would keep the values of samples that are gone
        self.diagonal = self.diagonal[:n].copy()
        self._norms = None if self._norms is None else self._norms[:n].copy()

    def truncate(self, n: int) -> None:
        """Take back samples added after there were n, whatever of them had been stored."""
        if self.gram.n > n:
            self.gram.remove(np.arange(n, self.gram.n))
        if self._store is not None:
            self._store.truncate(n)
        self._shorten(n)
        self.n = n
