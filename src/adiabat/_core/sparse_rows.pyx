# SPDX-License-Identifier: BSD-3-Clause
"""Rows of features by their nonzero entries, and their products with other rows.

The entries of a row stand together in a pool (`_feature`, `_value`), anywhere; `_start` and
`_length` say where. A row that moves to another position moves no entry, a new row goes to the end
of the pool, and when that is full the rows left are written to a new one.

Invariant: entries in the pool that belong to no row are zero, so that what is forgotten is gone.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from adiabat._core.team cimport share

ctypedef void (*Product)(
    Py_ssize_t n_rows, const int64_t* start, const int64_t* length, const int32_t* feature,
    const double* value, const double* table, double* out, Py_ssize_t stride, Py_ssize_t lanes,
) noexcept nogil

cdef extern from "lanes.h" nogil:
    void in_1_lane(Py_ssize_t, const int64_t*, const int64_t*, const int32_t*, const double*,
                   const double*, double*, Py_ssize_t, Py_ssize_t) noexcept
    void in_8_lanes(Py_ssize_t, const int64_t*, const int64_t*, const int32_t*, const double*,
                    const double*, double*, Py_ssize_t, Py_ssize_t) noexcept
    void in_16_lanes(Py_ssize_t, const int64_t*, const int64_t*, const int32_t*, const double*,
                     const double*, double*, Py_ssize_t, Py_ssize_t) noexcept
    void squared_norms(Py_ssize_t, const int64_t*, const int64_t*, const double*,
                       double*) noexcept

cdef enum:
    LINE = 8     # doubles in a line of the cache
    BATCH = 64  # rows worked on for one table before the next one's turn


def in_lanes(const double[:, :] rows):
    """Rows side by side for `SparseRows.multiply`: (tables, features, lanes), zeros after the last.

    Tables start at a line of the cache, so that no entry of 8 lanes spans two.
    """
    cdef Py_ssize_t k = rows.shape[0], d = rows.shape[1], i, j
    cdef Py_ssize_t lanes = 1 if k == 1 else 8 if k <= 8 else 16
    cdef Py_ssize_t n_tables = (k + lanes - 1) // lanes, first
    room = np.zeros(n_tables * d * lanes + LINE)
    first = LINE - (room.ctypes.data // sizeof(double)) % LINE
    out = room[first: first + n_tables * d * lanes].reshape(n_tables, d, lanes)
    cdef double[:, :, ::1] table = out
    with nogil:
        for i in range(k):
            for j in range(d):
                table[i // lanes, j, i % lanes] = rows[i, j]
    return out


cdef struct Job:
    # rows from `start` on, by their entries, times those in the tables
    Product product
    const int64_t* start
    const int64_t* length
    const int32_t* feature
    const double* value
    const double* tables
    double* out
    Py_ssize_t m, k, lanes, n_tables, table_size


cdef void some_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef Job* job = <Job*> context
    cdef Py_ssize_t i = part * BATCH, t, rows = min(BATCH, job.m - i)
    for t in range(job.n_tables):
        job.product(rows, job.start + i, job.length + i, job.feature, job.value,
                    job.tables + t * job.table_size, job.out + i * job.k + job.lanes * t, job.k,
                    min(job.lanes, job.k - job.lanes * t))


cdef class SparseRows:
    """Rows by position, as `Samples` keeps them; `n` of them, with `nnz` entries in all."""

    cdef readonly Py_ssize_t n, n_features, nnz
    cdef readonly object _start, _length, _feature, _value
    cdef Py_ssize_t _end          # of the pool's part in use

    def __init__(self, Py_ssize_t n_features):
        self.n, self.n_features, self.nnz, self._end = 0, n_features, 0, 0
        self._start = np.empty(0, dtype=np.int64)
        self._length = np.empty(0, dtype=np.int64)
        self._feature = np.empty(0, dtype=np.int32)
        self._value = np.empty(0)

    def append(self, dense):
        """Add dense rows at the end."""
        cdef const double[:, ::1] rows = np.ascontiguousarray(dense)
        cdef Py_ssize_t i, j, p, n, k = rows.shape[0]
        lengths = np.zeros(k, dtype=np.int64)
        cdef int64_t[::1] count = lengths
        with nogil:
            for i in range(k):
                n = 0
                for j in range(rows.shape[1]):
                    n += rows[i, j] != 0.0
                count[i] = n
        p = self._admit(lengths)
        cdef int32_t[::1] feature = self._feature
        cdef double[::1] value = self._value
        with nogil:
            for i in range(k):
                for j in range(rows.shape[1]):
                    # no branch, whose outcome nobody can foresee: a zero is overwritten by the next
                    feature[p] = <int32_t> j
                    value[p] = rows[i, j]
                    p += rows[i, j] != 0.0

    def append_entries(self, values, features, bounds):
        """Add rows at the end, given as in CSR: row i has entries bounds[i] to bounds[i + 1]."""
        cdef Py_ssize_t p = self._admit(np.diff(np.asarray(bounds, dtype=np.int64)))
        own = slice(bounds[0], bounds[len(bounds) - 1])
        self._value[p: self._end] = values[own]
        self._feature[p: self._end] = features[own]

    def _admit(self, lengths):
        """Room for rows of these lengths, and an entry, at the end of the pool; where it begins."""
        cdef Py_ssize_t k = len(lengths), more = int(lengths.sum()), first
        if self._end + more >= len(self._value):
            self._renew(self.nnz + more + 1)
        if self.n + k > len(self._start):
            room = max(self.n + k + (self.n + k) // 8, self.n + self.n // 2) - self.n
            self._start = np.concatenate([self._start[: self.n], np.zeros(room, dtype=np.int64)])
            self._length = np.concatenate([self._length[: self.n], np.zeros(room, dtype=np.int64)])
        first = self._end
        self._length[self.n: self.n + k] = lengths
        self._start[self.n: self.n + k] = first + np.cumsum(lengths) - lengths
        self.n, self.nnz, self._end = self.n + k, self.nnz + more, first + more
        return first

    def _renew(self, Py_ssize_t needed):
        """A new pool, with room for half as much again, in which rows follow each other."""
        values, features, bounds = self.entries(np.arange(self.n))
        room = max(needed + needed // 8, self.nnz + self.nnz // 2)
        value, feature = np.zeros(room), np.zeros(room, dtype=np.int32)
        value[: self.nnz], feature[: self.nnz] = values, features
        self._value, self._feature, self._end = value, feature, self.nnz
        self._start[: self.n] = bounds[: self.n]

    def entries(self, positions):
        """Values, features and bounds of rows, as in CSR; copies."""
        cdef const int64_t[::1] start = self._start, length = self._length
        cdef const int64_t[::1] at = np.ascontiguousarray(positions, dtype=np.int64)
        bounds = np.zeros(at.shape[0] + 1, dtype=np.int64)
        np.cumsum(self._length[: self.n][positions], out=bounds[1:])
        values = np.empty(bounds[at.shape[0]])
        features = np.empty(bounds[at.shape[0]], dtype=np.int32)
        cdef double[::1] value = values
        cdef int32_t[::1] feature = features
        cdef const double[::1] all_values = self._value
        cdef const int32_t[::1] all_features = self._feature
        cdef Py_ssize_t i, j, p = 0
        with nogil:
            for i in range(at.shape[0]):
                for j in range(start[at[i]], start[at[i]] + length[at[i]]):
                    value[p] = all_values[j]
                    feature[p] = all_features[j]
                    p += 1
        return values, features, bounds

    def move(self, tail, hole, Py_ssize_t left):
        """Rows at `hole` go, those at `tail` take their positions, and `left` rows stay."""
        self._clear(hole)
        self._start[hole], self._length[hole] = self._start[tail], self._length[tail]
        self._length[tail] = 0
        self._clear(np.arange(left, self.n))
        self.n = left

    def _clear(self, rows):
        cdef int64_t[::1] start = self._start, length = self._length
        cdef int32_t[::1] feature = self._feature
        cdef double[::1] value = self._value
        cdef const int64_t[::1] at = rows
        cdef Py_ssize_t i, p
        with nogil:
            for i in range(at.shape[0]):
                for p in range(start[at[i]], start[at[i]] + length[at[i]]):
                    feature[p] = 0
                    value[p] = 0.0
                self.nnz -= length[at[i]]
                length[at[i]] = 0

    def norms(self, Py_ssize_t first):
        """Squared norms of the rows from `first` on: the bits of their products with themselves."""
        cdef const int64_t[::1] start = self._start, length = self._length
        cdef const double[::1] value = self._value
        if first < 0 or first > self.n:
            raise ValueError("rows out of range")
        out = np.zeros(self.n - first)
        cdef double[::1] norm = out
        if self.n > first and self.nnz:
            with nogil:
                squared_norms(self.n - first, &start[first], &length[first], &value[0], &norm[0])
        return out

    def multiply(self, const double[:, :, ::1] tables, Py_ssize_t first, double[:, ::1] out):
        """out[i, j] = row first + i times the j-th of the rows in `tables` (`in_lanes`)."""
        cdef const int64_t[::1] start = self._start, length = self._length
        cdef const int32_t[::1] feature = self._feature
        cdef const double[::1] value = self._value
        cdef Py_ssize_t m = out.shape[0], k = out.shape[1], lanes = tables.shape[2]
        if first < 0 or first + m > self.n or tables.shape[1] != self.n_features or (
                k > tables.shape[0] * lanes):
            raise ValueError("rows or tables out of range")
        if self.nnz == 0 or k == 0 or m == 0:
            out[:] = 0.0
            return
        cdef Job job
        job.product = in_16_lanes
        if lanes < 16:
            job.product = in_8_lanes if lanes == 8 else in_1_lane
        job.start, job.length, job.feature = &start[first], &length[first], &feature[0]
        job.value, job.tables, job.out = &value[0], &tables[0, 0, 0], &out[0, 0]
        job.m, job.k, job.lanes, job.n_tables = m, k, lanes, tables.shape[0]
        job.table_size = tables.shape[1] * lanes
        with nogil:
            share(some_rows, &job, (m + BATCH - 1) // BATCH)
