# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values of some rows with all of them.

Where all are asked for at once, those of two rows are computed once: in strips of columns, from the
diagonal on, and each strip is then copied to the other side of it.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from adiabat._core.kernel_values cimport Formula, Rows, some_of
from adiabat._core.simd cimport kernel_rows
from adiabat._core.thread_pool cimport share

from adiabat._core.pages import take_large_pages

cdef enum:
    STRIP = 192    # columns of a strip
    COPIED = 64    # rows that one copies at a time
    LINE = 8       # numbers in a cache line


cdef struct Strip:
    # columns first .. first + k of a square, which have values from row `first` on
    double* out
    Py_ssize_t first, k, n, step


cdef void mirror(void* context, Py_ssize_t part) noexcept nogil:
    """Some rows behind the strip: out[j, i] = out[i, j]."""
    cdef Strip* job = <Strip*> context
    cdef Py_ssize_t i, j, some, line, end = job.first + job.k
    cdef Py_ssize_t top = end + part * COPIED, last = min(top + COPIED, job.n)
    cdef double* to
    for some in range((last - top + LINE - 1) // LINE):
        line = top + some * LINE
        for j in range(job.first, end):
            to = job.out + j * job.step
            for i in range(line, min(line + LINE, last)):
                to[i] = job.out[i * job.step + j]


cdef Rows stretch(Rows rows, Py_ssize_t first, Py_ssize_t k):
    """k of the rows, from the first on."""
    cdef Rows some = Rows.__new__(Rows)
    cdef Py_ssize_t i
    some.n, some.n_features, some._held = k, rows.n_features, rows
    some._rows = some_of(&rows._rows, first, k)
    some.nnz = k * rows.n_features
    if rows._rows.length != NULL:
        some.nnz = 0
        for i in range(first, first + k):
            some.nnz += rows._rows.length[i]
    some.norms = rows._squares()[first : first + k]
    return some


cdef int write_square(Formula formula, Rows rows, double* out, Py_ssize_t step) except -1:
    """k(row i, row j) to out[i * step + j]."""
    cdef Py_ssize_t strip, corner
    cdef Strip job
    job.out, job.step, job.n = out, step, rows.n
    for strip in range((rows.n + STRIP - 1) // STRIP):
        job.first, job.k = strip * STRIP, min(STRIP, rows.n - strip * STRIP)
        corner = job.first * (step + 1)
        formula._evaluate(stretch(rows, job.first, rows.n - job.first),
                          stretch(rows, job.first, job.k), out + corner, 1, NULL, step)
        with nogil:
            share(mirror, &job, (job.n - job.first - job.k + COPIED - 1) // COPIED)
    return 0


def whole_matrix(Formula formula, Rows rows):
    """k(row i, row j) for all rows."""
    out = np.empty((rows.n, rows.n))
    cdef double[:, ::1] values = out
    take_large_pages(out)
    if rows.n:
        write_square(formula, rows, &values[0, 0], rows.n)
    return out


cdef struct Columns:
    # kernel values of k rows that become columns: entry (i, j) is values[j][order[i]], and goes to
    # tops[j][i * step]
    const double** values
    double** tops
    const long long* order
    Py_ssize_t n, k, step


cdef void a_line(const double** a, const long long* order, Py_ssize_t n, double* to,
                 Py_ssize_t step) noexcept nogil:
    """A line of the cache of each row: eight columns that stand beside each other."""
    cdef const double *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3]
    cdef const double *a4 = a[4], *a5 = a[5], *a6 = a[6], *a7 = a[7]
    cdef Py_ssize_t i
    cdef long long at
    for i in range(n):
        at = order[i]
        to[0], to[1], to[2], to[3] = a0[at], a1[at], a2[at], a3[at]
        to[4], to[5], to[6], to[7] = a4[at], a5[at], a6[at], a7[at]
        to += step


cdef bint in_line(double** tops) noexcept nogil:
    """Whether the first eight of these columns stand beside each other."""
    cdef Py_ssize_t j
    for j in range(1, LINE):
        if tops[j] != tops[0] + j:
            return False
    return True


cdef void some_columns(void* context, Py_ssize_t part) noexcept nogil:
    cdef Columns* job = <Columns*> context
    cdef Py_ssize_t i, j, first = part * LINE
    if first + LINE <= job.k and in_line(job.tops + first):
        a_line(job.values + first, job.order, job.n, job.tops[first], job.step)
        return
    for i in range(job.n):
        for j in range(first, min(first + LINE, job.k)):
            job.tops[j][i * job.step] = job.values[j][job.order[i]]


cdef int write_columns(const size_t[::1] values, Py_ssize_t n, order, const size_t[::1] tops,
                       Py_ssize_t step) except -1:
    """values[j][order[i]] to the address tops[j] + i * step numbers; there are n of each."""
    cdef const long long[::1] rows = np.ascontiguousarray(order, dtype=np.int64)
    cdef Py_ssize_t i
    cdef Columns job
    if tops.shape[0] != values.shape[0]:
        raise ValueError(f"{tops.shape[0]} addresses for {values.shape[0]} columns")
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < n:
            raise IndexError(f"there is no row {rows[i]} of {n}")
    if rows.shape[0] and tops.shape[0]:
        by_address = np.argsort(tops)
        values, tops = np.asarray(values)[by_address], np.asarray(tops)[by_address]
        job.values, job.tops, job.order = <const double**> &values[0], <double**> &tops[0], &rows[0]
        job.n, job.k, job.step = rows.shape[0], tops.shape[0], step
        with nogil:
            share(some_columns, &job, (job.k + LINE - 1) // LINE)
    return 0


cdef bint is_even(double** out, Py_ssize_t k) noexcept nogil:
    """Whether rows are as far from each other."""
    cdef Py_ssize_t i
    for i in range(2, k):
        if out[i] - out[i - 1] != out[1] - out[0]:
            return False
    return True


cdef class Among:
    """Kernel values of some rows with all of them."""

    def __init__(self, Formula formula, Rows rows):
        self._formula, self._rows, self.n = formula, rows, rows.n

    def values(self, places):
        """k(row places[i], row j), as a new array."""
        cdef const long long[::1] wanted = np.ascontiguousarray(places, dtype=np.int64)
        out = np.empty((wanted.shape[0], self.n))
        cdef double[:, ::1] view = out
        cdef size_t[::1] tops = np.empty(wanted.shape[0], dtype=np.uintp)
        cdef Py_ssize_t i
        for i in range(wanted.shape[0] if self.n else 0):
            if not 0 <= wanted[i] < self.n:
                raise IndexError(f"there is no row {wanted[i]} of {self.n}")
            tops[i] = <size_t> &view[i, 0]
        if out.size:
            self.fill(&wanted[0], wanted.shape[0], <double**> &tops[0])
        return out

    cdef int fill(self, const long long* places, Py_ssize_t k, double** out) except -1:
        """k(row places[i], row j) to out[i][j]"""
        cdef Rows some = Rows.__new__(Rows)
        cdef const kernel_rows* rows = &self._rows._rows
        cdef int64_t[::1] start
        cdef Py_ssize_t i = 0
        while i < k and places[i] == i:
            i += 1
        if i == self.n and is_even(out, k):
            return write_square(self._formula, self._rows, out[0], out[1] - out[0] if k > 1 else 1)
        start = np.empty(2 * k, dtype=np.int64)
        some.n, some.n_features, some._held = k, self._rows.n_features, (self._rows, start)
        some._rows = rows[0]
        some._rows.n, some._rows.start = k, &start[0]
        for i in range(k):
            start[i] = places[i] * some.n_features if rows.start == NULL else rows.start[places[i]]
            some.nnz += some.n_features if rows.length == NULL else rows.length[places[i]]
        if rows.length != NULL:
            some._rows.length = &start[k]
            for i in range(k):
                start[k + i] = rows.length[places[i]]
        if self._rows.norms is not None:
            some.norms = self._rows.norms[np.asarray(<long long[:k]> places)]
        return self._formula._evaluate(self._rows, some, NULL, 0, <const size_t*> out, 1)


cdef class AmongKnown(Among):
    """The same out of a symmetric matrix, of the rows at some of its places."""

    def __init__(self, matrix, places):
        cdef Py_ssize_t i
        self._matrix, self._places = matrix, places
        self.n = self._places.shape[0]
        self._ends = np.empty(self.n, dtype=np.int64)
        for i in range(self.n - 1, -1, -1):
            if not 0 <= self._places[i] < self._matrix.shape[0]:
                raise IndexError(f"there is no row {self._places[i]} of {len(matrix)}")
            follows = i + 1 < self.n and self._places[i + 1] == self._places[i] + 1
            self._ends[i] = self._ends[i + 1] if follows else i + 1

    cdef int fill(self, const long long* places, Py_ssize_t k, double** out) except -1:
        """k(row places[i], row j) to out[i][j]"""
        cdef const double* row
        cdef Py_ssize_t i, j
        for i in range(k):
            row = &self._matrix[self._places[places[i]], 0]
            j = 0
            while j < self.n:
                memcpy(out[i] + j, row + self._places[j], (self._ends[j] - j) * sizeof(double))
                j = self._ends[j]
        return 0

    def write(self, const long long[::1] columns, const size_t[::1] tops, Py_ssize_t step):
        """k(row i, row columns[j]) to the address tops[j] + i * step numbers."""
        cdef size_t[::1] values = np.empty(columns.shape[0], dtype=np.uintp)
        cdef Py_ssize_t j
        for j in range(columns.shape[0]):
            if not 0 <= columns[j] < self.n:
                raise IndexError(f"there is no row {columns[j]} of {self.n}")
            values[j] = <size_t> &self._matrix[self._places[columns[j]], 0]
        write_columns(values, self._matrix.shape[1], self._places, tops, step)
