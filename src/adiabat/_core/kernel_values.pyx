# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values of every row of A against every row of B, right to the last few bits.

An entry is a function of its two rows alone: it has the same bits alone or in a block, as k(a, b)
or as k(b, a), from dense rows or from nonzero entries, and with any number of threads
(`kernel_sums_simd.h` says in which order terms are added, `kernel_values_simd.h` how values are
made of sums). k(x, x) = 1 exactly for rbf, laplacian and chi2.

One of A and B, mostly the smaller, is packed into a table of *columns*, a group at a time; the
other's rows go through the table. Where both have so many features and so few entries that most
of these meet nothing, columns are kept in lists by feature instead.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from adiabat._core.simd cimport (
    KERNEL_CHI2,
    KERNEL_FEW_FEATURES,
    KERNEL_LAPLACIAN,
    KERNEL_LINEAR,
    KERNEL_LIST_COLUMNS,
    KERNEL_PATCH_ROWS,
    KERNEL_POLY,
    KERNEL_RBF,
    kernel_job,
    kernel_lists,
    kernel_name,
    kernel_rows,
    kernel_slot,
    simd,
)
from adiabat._core.thread_pool cimport share

cdef enum:
    TABLE = 1 << 17      # numbers in a table: 1 MB, which stays in the cache
    GROUP = 48           # columns, of which the panels of a table at any level have a part
    PART = 1 << 18       # terms in a part
    EXPONENTIAL = 16     # terms that take as long as what is done after a sum
    NORMED = 64          # rows whose norms make a part
    MOST_FEATURES = 1 << 14  # of rows by entries for which there is a table
    # Rows by entries are listed, or merged, where features are so many times the entries.
    LISTED_FROM = 32
    MERGED_FROM = 50
    LINE = 8             # numbers in a cache line
    # What a term costs: by entries, in a dense row; and to put a number into the table.
    ENTRY_COST = 9
    DENSE_COST = 4
    PACKED_COST = 60

cdef dict NAMES = {
    "linear": KERNEL_LINEAR, "poly": KERNEL_POLY, "rbf": KERNEL_RBF,
    "laplacian": KERNEL_LAPLACIAN, "chi2": KERNEL_CHI2,
}


def _starts(positions, Py_ssize_t n, Py_ssize_t n_features):
    """Where rows of so many features begin, at positions however they are given.

    Of integers no pass over all n is made.
    """
    if not isinstance(positions, np.ndarray) or positions.dtype != np.int64:
        positions = np.arange(n, dtype=np.int64)[positions]
    cdef const int64_t[:] places = positions
    cdef Py_ssize_t i
    starts = np.empty(places.shape[0], dtype=np.int64)
    cdef int64_t[::1] start = starts
    for i in range(places.shape[0]):
        if not 0 <= places[i] < n:
            raise IndexError(f"there is no row {places[i]} of {n}")
        start[i] = places[i] * n_features
    return starts


cdef class Rows:
    """Rows of features, dense or by their nonzero entries; nothing is copied.

    `norms` may be set to the squared norms of the rows, as `squared_norms` gave them.
    """

    @staticmethod
    def dense(X, positions=None):
        """Rows of a dense array in C order, or some of them."""
        cdef const double[:, ::1] rows = X
        cdef const int64_t[::1] start
        cdef Rows self = Rows.__new__(Rows)
        self._held = (X, None)
        self.n, self.n_features = rows.shape[0], rows.shape[1]
        if positions is not None:
            starts = _starts(positions, self.n, self.n_features)
            self._held, self.n, start = (X, starts), len(starts), starts
            self._rows.start = &start[0] if self.n else NULL
        self.nnz = self.n * self.n_features
        self._rows.value = &rows[0, 0] if rows.shape[0] and rows.shape[1] else NULL
        self._rows.n, self._rows.n_features = self.n, self.n_features
        return self

    @staticmethod
    def by_entries(value, feature, start, length, Py_ssize_t n_features):
        """Rows by entries: length[i] of them from start[i] on, features ascending."""
        cdef const double[::1] values = value
        cdef const int32_t[::1] features = feature
        cdef const int64_t[::1] starts = np.ascontiguousarray(start, dtype=np.int64)
        cdef const int64_t[::1] lengths = np.ascontiguousarray(length, dtype=np.int64)
        cdef Rows self = Rows.__new__(Rows)
        cdef Py_ssize_t i
        self._held = (value, feature, starts, lengths)
        self.n, self.n_features = starts.shape[0], n_features
        for i in range(self.n):
            self.nnz += lengths[i]
        self._rows.n, self._rows.n_features = self.n, n_features
        # never NULL, which would say that rows are dense
        self._rows.feature = &features[0] if features.shape[0] else &NO_FEATURE
        self._rows.value = &values[0] if values.shape[0] else NULL
        if self.n:
            self._rows.start, self._rows.length = &starts[0], &lengths[0]
        return self

    @property
    def shape(self):
        """(rows, features)"""
        return self.n, self.n_features

    @property
    def sparse(self):
        """Whether rows are given by their entries."""
        return self._rows.feature != NULL

    cdef const double* measured(self, kernel_name kernel) except NULL:
        """What a kernel needs of the norms, as it needs it."""
        cdef const double[::1] values
        norms = self._squares()
        if kernel == KERNEL_POLY and self._roots is None:
            self._roots = np.sqrt(norms)
        values = self._roots if kernel == KERNEL_POLY else norms
        return &values[0]

    def _squares(self):
        """Squared norms, computed where they were not given."""
        norms = squared_norms(self) if self.norms is None else self.norms
        if len(norms) != self.n:
            raise ValueError(f"{len(norms)} norms for {self.n} rows")
        self.norms = np.ascontiguousarray(norms)
        return self.norms


cdef int32_t NO_FEATURE = -1


cdef struct Norms:
    const kernel_rows* rows
    double* out


cdef void some_norms(void* context, Py_ssize_t part) noexcept nogil:
    cdef Norms* job = <Norms*> context
    cdef Py_ssize_t first = part * NORMED
    simd.kernel_norms(job.rows, first, min(NORMED, job.rows.n - first), job.out + first)


def squared_norms(Rows rows):
    """sum_j x_ij^2 for every row i, the bits of <x, x>; infinite where that overflows."""
    out = np.zeros(rows.n)
    cdef double[::1] norms = out
    cdef Norms job
    if rows.n and rows.n_features:
        job.rows, job.out = &rows._rows, &norms[0]
        with nogil:
            share(some_norms, &job, (rows.n + NORMED - 1) // NORMED)
    return out


cdef void some_values(void* context, Py_ssize_t part) noexcept nogil:
    simd.kernel_values(<kernel_job*> context, part)


cdef void some_values_by_lists(void* context, Py_ssize_t part) noexcept nogil:
    simd.kernel_values_by_lists(<kernel_job*> context, part)


cdef Py_ssize_t padded(Py_ssize_t n) noexcept nogil:
    """Lanes of a table of n columns."""
    return (n + simd.vec - 1) // simd.vec * simd.vec


cdef Py_ssize_t columns_for(Py_ssize_t n_features) noexcept nogil:
    """Columns of a table: whole panels, or as many vectors as it has room for."""
    cdef Py_ssize_t n = TABLE // max(1, n_features)
    return n // GROUP * GROUP if n >= GROUP else max(n // simd.vec, 1) * simd.vec


cdef double cost(Rows rows, Rows columns) noexcept:
    """What it takes to let these rows go through a table of these columns."""
    cdef double term = ENTRY_COST if rows._rows.feature != NULL else DENSE_COST
    cdef double numbers = <double> columns.n * columns.n_features
    return <double> rows.nnz * padded(columns.n) * term + numbers * PACKED_COST


cdef bint without_table(kernel_name kernel, Rows A, Rows B) noexcept:
    """Whether entries are so few that columns are kept in lists."""
    cdef Py_ssize_t p = A.n_features
    if A._rows.feature == NULL or B._rows.feature == NULL:
        return False
    if p > MOST_FEATURES:
        return True
    if kernel == KERNEL_LAPLACIAN or kernel == KERNEL_CHI2:
        return A.nnz * B.n + B.nnz * A.n <= A.n * B.n * (p // MERGED_FROM)
    return p > KERNEL_FEW_FEATURES and (
        max(A.nnz * B.n, B.nnz * A.n) <= A.n * B.n * (p // LISTED_FROM))


cdef kernel_rows some_of(const kernel_rows* rows, Py_ssize_t first, Py_ssize_t k) noexcept:
    """k of the rows, from the first on."""
    cdef kernel_rows some = rows[0]
    some.n = k
    if rows.start == NULL:
        some.value += first * rows.n_features
    else:
        some.start += first
    if rows.length != NULL:
        some.length += first
    if rows.norm != NULL:
        some.norm += first
    return some


cdef class Room:
    """What a group of columns needs: addresses, norms, and a table at a cache line."""

    cdef double** out
    cdef double* norms
    cdef double* table
    cdef void* _memory

    cdef int make(self, Py_ssize_t lanes, Py_ssize_t n_features) except -1:
        cdef Py_ssize_t ahead = (2 * lanes + LINE - 1) // LINE * LINE
        self._memory = malloc((ahead + lanes * n_features + LINE) * sizeof(double))
        if self._memory == NULL:
            raise MemoryError()
        cdef size_t at = <size_t> self._memory + LINE * sizeof(double) - 1
        self.norms = <double*> (at - at % (LINE * sizeof(double)))
        self.out = <double**> (self.norms + lanes)
        self.table = self.norms + ahead
        return 0

    def __dealloc__(self):
        free(self._memory)


cdef class Lists:
    """Columns by feature: which of them have it, and their values."""

    cdef kernel_lists lists
    cdef object _held

    cdef int make(self, const kernel_rows* columns) except -1:
        cdef Py_ssize_t i, p, q = 0, slot
        for i in range(columns.n):
            q += columns.length[i]
        features, owners = np.empty(q, dtype=np.int32), np.empty(q, dtype=np.int32)
        values = np.empty(q)
        cdef int32_t[::1] feature = features, owner = owners, slot_feature, slot_list
        cdef double[::1] value = values
        q = 0
        for i in range(columns.n):
            for p in range(columns.start[i], columns.start[i] + columns.length[i]):
                feature[q], owner[q] = columns.feature[p], <int32_t> i
                value[q] = columns.value[p]
                q += 1
        order = np.argsort(features, kind="stable")
        feature, owner, value = features[order], owners[order], values[order]
        bounds = np.flatnonzero(np.diff(features[order], prepend=-1, append=-1))
        cdef const int64_t[::1] bound = bounds.astype(np.int64) if q else np.zeros(1, np.int64)
        self.lists.bits = 1 + int(bound.shape[0]).bit_length()
        self.lists.mask = (1 << self.lists.bits) - 1
        slot_feature = np.full(1 << self.lists.bits, -1, dtype=np.int32)
        slot_list = np.zeros(1 << self.lists.bits, dtype=np.int32)
        for i in range(bound.shape[0] - 1):
            slot = kernel_slot(&self.lists, feature[bound[i]])
            while slot_feature[slot] >= 0:
                slot = (slot + 1) & self.lists.mask
            slot_feature[slot], slot_list[slot] = feature[bound[i]], <int32_t> i
        self._held = (slot_feature, slot_list, bound, owner, value)
        self.lists.feature, self.lists.list = &slot_feature[0], &slot_list[0]
        self.lists.bound = &bound[0]
        if q:
            self.lists.column, self.lists.value = &owner[0], &value[0]
        return 0


cdef class Formula:
    """A kernel with its parameters, by a name in NAMES."""

    def __init__(self, str name, double gamma=0.0, double degree=3.0, double coef0=0.0):
        self._kernel, self._name = NAMES[name], name
        self._gamma, self._degree, self._coef0 = gamma, degree, coef0

    def block(self, Rows A, Rows B):
        """k(a, b) for every row a of A and b of B, as a new array in C order."""
        out = np.empty((A.n, B.n))
        cdef double[:, ::1] values = out
        if A.n and B.n:
            if cost(A, B) <= cost(B, A):
                self._evaluate(A, B, &values[0, 0], 1, NULL, B.n)
            else:
                self._evaluate(B, A, &values[0, 0], B.n, NULL, 1)
        return out

    def diagonal(self, Rows rows):
        """k(x, x) for every row x."""
        cdef kernel_job job
        cdef const double[::1] norms
        cdef double[::1] values
        out = np.ones(rows.n)
        if self._kernel in (KERNEL_LINEAR, KERNEL_POLY) and rows.n:
            job.kernel, job.degree = self._kernel, self._degree
            job.gamma, job.coef0, job.strange = self._gamma, self._coef0, False
            values = out
            norms = rows._squares()
            simd.kernel_diagonal(&job, rows.n, &norms[0], &values[0])
            self._require_finite(&job)
        return out

    cdef int _require_finite(self, const kernel_job* job) except -1:
        if job.strange and self._degree != int(self._degree):
            raise ValueError(
                f"degree={self._degree:g} asks for powers of gamma <x, z> + coef0, which is below "
                "0 for some rows; use a whole degree, or a larger coef0")
        if job.strange:
            raise ValueError(
                f"kernel={self._name} gave values that are not finite; scale the features")
        return 0

    def write(self, Rows rows, Rows columns, const size_t[::1] tops, Py_ssize_t step):
        """k(row i, column j) to the address tops[j] + i * step numbers."""
        if tops.shape[0] != columns.n:
            raise ValueError(f"{tops.shape[0]} addresses for {columns.n} columns")
        if rows.n and columns.n:
            self._evaluate(rows, columns, NULL, 0, &tops[0], step)

    cdef int _evaluate(self, Rows rows, Rows columns, double* top, Py_ssize_t apart,
                       const size_t* tops, Py_ssize_t step) except -1:
        """Entry (i, j) to place i * step from tops[j], or from j * apart after top."""
        cdef Py_ssize_t p = rows.n_features, first, j, k, group, parts
        cdef bint listed = without_table(self._kernel, rows, columns)
        cdef bint normed = self._kernel == KERNEL_POLY or (
            self._kernel == KERNEL_RBF and p > KERNEL_FEW_FEATURES)
        cdef kernel_job job
        cdef Lists lists
        cdef Room room = Room.__new__(Room)
        if columns.n_features != p:
            raise ValueError(f"rows of {p} features and columns of {columns.n_features}")
        group = min(columns.n, KERNEL_LIST_COLUMNS if listed else columns_for(p))
        room.make(padded(group), 0 if listed else p)
        job.kernel, job.degree = self._kernel, self._degree
        job.gamma, job.coef0, job.step = self._gamma, self._coef0, step
        job.rows, job.table, job.column_norm = rows._rows, room.table, room.norms
        job.out = room.out
        job.strange = job.no_memory = False
        job.rows.norm = rows.measured(self._kernel) if normed else NULL
        job.part_rows = KERNEL_PATCH_ROWS * max(
            1, PART // (KERNEL_PATCH_ROWS * group * (EXPONENTIAL + rows.nnz // rows.n)))
        parts = (rows.n + job.part_rows - 1) // job.part_rows
        cdef const double* norms = columns.measured(self._kernel) if normed else NULL
        for first in range(0, columns.n, group):
            k = min(group, columns.n - first)
            job.columns = some_of(&columns._rows, first, k)
            memset(room.norms, 0, padded(group) * sizeof(double))
            for j in range(k):
                room.out[j] = top + (first + j) * apart if tops == NULL else (
                    <double*> tops[first + j])
                if normed:
                    room.norms[j] = norms[first + j]
            if listed:
                lists = Lists.__new__(Lists)
                lists.make(&job.columns)
                job.lists = &lists.lists
            with nogil:
                if listed:
                    share(some_values_by_lists, &job, parts)
                else:
                    simd.kernel_pack(&job.columns, rows._rows.feature == NULL, room.table)
                    share(some_values, &job, parts)
        if job.no_memory:
            raise MemoryError()
        return self._require_finite(&job)


def multiply(A, W):
    """A @ W for dense A and W, each entry a function of its row and its column alone."""
    columns = np.ascontiguousarray(np.asarray(W, dtype=np.float64).T)
    single = columns.ndim == 1
    rows = Rows.dense(np.ascontiguousarray(A, dtype=np.float64))
    others = Rows.dense(columns[None] if single else columns)
    out = np.empty((rows.n, others.n))
    cdef double[:, ::1] view = out
    cdef Formula formula = LINEAR
    if out.size:
        formula._evaluate(rows, others, &view[0, 0], 1, NULL, others.n)
    return out[:, 0] if single else out


LINEAR = Formula("linear")
