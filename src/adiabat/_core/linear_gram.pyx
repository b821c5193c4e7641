# SPDX-License-Identifier: BSD-3-Clause
"""A Gram whose columns are never formed: K = XX' with few features.

Under a linear kernel a product with K goes through the features, one vector w for all columns:

    f[rows] = X[rows] (X' coef)          n d numbers read, however many samples carry weight

while columns would be n numbers for each of them, thousands where most weights are at a bound.
Every sample has a slot, its own position, at no cost: nothing is claimed, kept or released.

Invariant: X[i] are the features of sample i < n; slot_of[i] = i and owner[i] = i.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from adiabat._core.blas cimport axpy, dot
from adiabat._core.gram cimport Gram
from adiabat._core.simd cimport simd

from adiabat._core.kernel_values import LINEAR, Rows
from adiabat._core.thread_pool import in_slices

cdef enum:
    FEW = 1 << 12   # kernel values that are not worth a table of columns


cdef class LinearGram(Gram):
    """Kernel values from features that are held elsewhere."""

    cdef const double[:, ::1] _X

    @property
    def n_slots(self):
        """Number of slots: one for each sample."""
        return self.n

    def hold(self, X):
        """Take kernel values from the rows of X, now and when it has been written to."""
        self._X = X

    def append(self, Py_ssize_t k):
        """Add k samples at the end, which X already holds."""
        self._number(self.n + k)

    def _number(self, Py_ssize_t n):
        if n > self.capacity:
            self.capacity = max(n, self.capacity + self.capacity // 2, 64)
            self.slot_of = np.arange(self.capacity)
        self.owner = self.slot_of[:n]
        self.n = self.n_lines = n

    def claim_by(self, samples, write):
        """Nothing to do: every sample has a slot."""

    def release(self, keep, Py_ssize_t spare):
        """Nothing to do: a slot holds nothing."""

    def gather_front(self, keep, Py_ssize_t tolerated, Py_ssize_t most):
        """Nothing to do: slots stay where their samples are."""

    def remove(self, samples):
        """Remove samples; survivors from the end fill the holes. Returns (from, to) arrays.

        It is for the holder of X to move its rows.
        """
        gone = np.zeros(self.n, dtype=bool)
        gone[samples] = True
        left = self.n - int(gone.sum())
        self._number(left)
        return left + (~gone[left:]).nonzero()[0], gone[:left].nonzero()[0]

    def fork(self):
        """The same samples, to be read only."""
        cdef LinearGram other = LinearGram()
        other._X = self._X
        other._number(self.n)
        return other

    def multiply(self, const double[::1] coef, double[::1] out, rows=None):
        """out = K[rows] @ coef  (all samples if rows is None), shared out by rows."""
        cdef const long long[::1] at = self.owner if rows is None else rows
        cdef double[::1] w = np.zeros(self._X.shape[1])
        if at.shape[0] == 0:
            return
        with nogil:
            self._weigh(&coef[0], &w[0])

        def multiply(part):
            cdef Py_ssize_t start = part.start, stop = part.stop
            with nogil:
                self._values(&w[0], &at[start], stop - start, &out[start])

        in_slices(multiply, at.shape[0], at.shape[0] * w.shape[0])

    cdef void _weigh(self, const double* coef, double* w) noexcept nogil:
        """w += X' coef"""
        cdef Py_ssize_t i
        for i in range(self.n):
            if coef[i] != 0.0:
                axpy(self._X.shape[1], coef[i], &self._X[i, 0], w)

    cdef void _values(self, const double* w, const long long* rows, Py_ssize_t n_rows,
                      double* out) noexcept nogil:
        """out = X[rows] w"""
        cdef Py_ssize_t i
        for i in range(n_rows):
            out[i] = dot(self._X.shape[1], &self._X[rows[i], 0], w)

    cdef int product(self, const double* coef, const long long* rows, Py_ssize_t n_rows,
                     double* out) noexcept nogil:
        """out = K[rows, slots] @ coef; -1 if there is no memory for it."""
        cdef double* w = <double*> malloc(self._X.shape[1] * sizeof(double))
        if w == NULL:
            return -1
        memset(w, 0, self._X.shape[1] * sizeof(double))
        self._weigh(coef, w)
        self._values(w, rows, n_rows, out)
        free(w)
        return 0

    cdef int gather_into(self, const long long* samples, Py_ssize_t k, const long long* slots,
                         Py_ssize_t m, double* out, Py_ssize_t di, Py_ssize_t dj) except -1 nogil:
        """out[i * di + j * dj] = K[samples[i], slots[j]]; di or dj is 1."""
        cdef Py_ssize_t i
        if k * m <= FEW and dj == 1:
            for i in range(k):
                self.row_into(samples[i], slots, m, out + i * di)
            return 0
        if k == 0 or m == 0:
            return 0
        with gil:
            rows, columns = np.array(<long long[:k]> samples), np.array(<long long[:m]> slots)
            if dj == 1:
                np.asarray(<double[:k, :di]> out)[:, :m] = self._block(rows, columns)
            else:
                np.asarray(<double[:m, :dj]> out)[:, :k] = self._block(rows, columns).T
        return 0

    def _block(self, rows, columns):
        X = np.asarray(self._X)
        return LINEAR.block(Rows.dense(X, rows), Rows.dense(X, columns))

    cdef void row_into(self, long long sample, const long long* slots, Py_ssize_t k,
                       double* out) noexcept nogil:
        """out[j] = K[sample, slots[j]]."""
        if k:
            simd.kernel_row_products(
                self._X.shape[1], &self._X[0, 0], sample, slots, k, out)

    def gather(self, const long long[::1] rows, slots, double[:, :] out):
        """out[i, j] = K[rows[i], slots[j]]."""
        np.asarray(out)[:] = self._block(np.asarray(rows), slots)
