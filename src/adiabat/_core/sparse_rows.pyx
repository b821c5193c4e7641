# SPDX-License-Identifier: BSD-3-Clause
"""Rows of features by their nonzero entries.

The entries of a row stand together in a pool (`_feature`, `_value`), anywhere; `_start` and
`_length` say where. A row that moves to another position moves no entry, a new row goes to the end
of the pool, and when that is full the pool is compacted.

Invariant: entries in the pool that belong to no row are zero, so that what is forgotten is gone.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memmove

import numpy as np

from adiabat._core.simd cimport simd
from adiabat._core.thread_pool cimport share

from adiabat._core.kernel_values import Rows

cdef enum:
    TAKEN = 16   # dense rows taken in at a time


cdef struct Entries:
    # dense rows, and the entries of each that are not zero: length[i] from start[i] on
    const double* rows
    int64_t* length
    const int64_t* start
    int32_t* feature
    double* value
    Py_ssize_t n, n_features


cdef void count_entries(void* context, Py_ssize_t part) noexcept nogil:
    cdef Entries* job = <Entries*> context
    cdef Py_ssize_t i
    for i in range(part * TAKEN, min((part + 1) * TAKEN, job.n)):
        job.length[i] = simd.count_nonzeros(job.n_features, job.rows + i * job.n_features)


cdef void take_entries(void* context, Py_ssize_t part) noexcept nogil:
    cdef Entries* job = <Entries*> context
    cdef const double* row
    cdef Py_ssize_t i, j, p, end
    for i in range(part * TAKEN, min((part + 1) * TAKEN, job.n)):
        row = job.rows + i * job.n_features
        p = job.start[i]
        end = p + job.length[i]
        j = 0
        while p < end:
            # no branch, which could not be predicted: a zero is overwritten by the next
            job.feature[p] = <int32_t> j
            job.value[p] = row[j]
            p += row[j] != 0.0
            j += 1


cdef class SparseRows:
    """Rows by position, as `Samples` keeps them; `n` of them, with `nnz` entries in all."""

    cdef readonly Py_ssize_t n, n_features, nnz
    cdef readonly object _start, _length, _feature, _value
    cdef Py_ssize_t _end  # of the pool's part in use

    def __init__(self, Py_ssize_t n_features):
        self.n, self.n_features, self.nnz, self._end = 0, n_features, 0, 0
        self._start = np.empty(0, dtype=np.int64)
        self._length = np.empty(0, dtype=np.int64)
        self._feature = np.empty(0, dtype=np.int32)
        self._value = np.empty(0)

    @property
    def nbytes(self):
        """Bytes of all that is held."""
        held = self._start, self._length, self._feature, self._value
        return sum([part.nbytes for part in held])

    def append(self, dense):
        """Add dense rows at the end."""
        cdef const double[:, ::1] rows = np.ascontiguousarray(dense)
        cdef Entries job
        job.n, job.n_features = rows.shape[0], rows.shape[1]
        lengths = np.zeros(job.n, dtype=np.int64)
        cdef int64_t[::1] length = lengths, start
        cdef int32_t[::1] feature
        cdef double[::1] value
        cdef Py_ssize_t first = self.n, parts = (job.n + TAKEN - 1) // TAKEN
        if rows.shape[0] and rows.shape[1]:
            job.rows, job.length = &rows[0, 0], &length[0]
            with nogil:
                share(count_entries, &job, parts)
        self._admit(lengths)
        if lengths.any():
            start, feature, value = self._start, self._feature, self._value
            job.start, job.feature, job.value = &start[first], &feature[0], &value[0]
            with nogil:
                share(take_entries, &job, parts)

    def append_entries(self, values, features, bounds):
        """Add rows at the end, given as in CSR: row i has entries bounds[i] to bounds[i + 1]."""
        cdef Py_ssize_t p = self._admit(np.diff(np.asarray(bounds, dtype=np.int64)))
        own = slice(bounds[0], bounds[len(bounds) - 1])
        self._value[p: self._end] = values[own]
        self._feature[p: self._end] = features[own]

    def _admit(self, lengths):
        """Room for rows of these lengths at the end of the pool; where it begins."""
        cdef Py_ssize_t k = len(lengths), more = int(lengths.sum()), first
        if self._end + more > len(self._value):
            self._renew(self.nnz + more)
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
        """Let rows follow each other from the beginning of the pool, or of a larger one."""
        if needed + needed // 8 <= len(self._value):
            self._compact()
            return
        values, features, bounds = self.entries(np.arange(self.n))
        room = needed + needed // 2  # memory that is not written to is not taken
        value, feature = np.zeros(room), np.zeros(room, dtype=np.int32)
        value[: self.nnz], feature[: self.nnz] = values, features
        # nothing can fail any more: both or neither
        self._value, self._feature, self._end = value, feature, self.nnz
        self._start[: self.n] = bounds[: self.n]

    def _compact(self):
        """Rows move up, in the order in which they stand, to where others were."""
        cdef int64_t[::1] start = self._start
        cdef const int64_t[::1] length = self._length
        cdef int32_t[::1] feature = self._feature
        cdef double[::1] value = self._value
        cdef const int64_t[::1] order = np.argsort(self._start[: self.n], kind="stable")
        cdef Py_ssize_t i, p = 0, old
        cdef size_t n
        with nogil:
            for i in range(order.shape[0]):
                n, old = length[order[i]], start[order[i]]
                if n and old > p:
                    memmove(&value[p], &value[old], n * sizeof(double))
                    memmove(&feature[p], &feature[old], n * sizeof(int32_t))
                start[order[i]] = p
                p += n
        for array in (self._value, self._feature):
            array[p: self._end] = 0
        self._end = p

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

    def view(self, positions=slice(None)):
        """Rows at positions, for kernel values; entries are not copied."""
        start, length = self._start[: self.n][positions], self._length[: self.n][positions]
        return Rows.by_entries(self._value, self._feature, start, length, self.n_features)
