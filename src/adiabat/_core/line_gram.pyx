# SPDX-License-Identifier: BSD-3-Clause
"""A Gram whose columns have values for some samples only: those that have a *line*.

Of a large model most samples are far from the margin, and nobody reads their kernel values. A
sample gets a line when it comes near (`draw`), and loses it when others have been read since
(`drop`). Slots are as in `Gram`, by sample; only rows of the panels are not.

Invariant: line_of and sample_of are each other's inverse, line_of is NO_LINE where a sample has
none; for an occupied slot s and a line i < n_lines, panel[i, s] = k(x_sample_of[i], x_owner[s]).
"""

from libc.stdlib cimport free, malloc

import numpy as np

from adiabat._core.columns cimport write_rows
from adiabat._core.gram cimport Gram

from adiabat._core.places import enlarged, fillers, owned

NO_LINE = -1


cdef class LineGram(Gram):
    """Slots of kernel columns, against the samples that have a line."""

    cdef readonly object line_of      # by sample, int64, NO_LINE where it has none
    cdef readonly object sample_of    # by line, int64
    cdef readonly object read_at      # by line, int64: when it was last asked for
    cdef long long[::1] _line_of
    cdef long long _turn

    def __init__(self, *memory):
        super().__init__(*memory)
        self._hold(np.empty(0, dtype=np.int64))
        self.sample_of = np.empty(0, dtype=np.int64)
        self.read_at = np.empty(0, dtype=np.int64)
        self._turn = 0

    def append(self, Py_ssize_t k):
        """Add k samples at the end, without lines."""
        self._reserve_samples(self.n + k)
        self._hold(enlarged(self.line_of, self.n, self.n + k, NO_LINE))
        for held in (self.slot_of, self.line_of):
            held[self.n: self.n + k] = NO_LINE
        self.n += k

    def _hold(self, line_of):
        self.line_of = self._line_of = line_of

    def lines(self, samples):
        """Lines of samples, which all of them must have."""
        out = self.line_of[samples]
        if len(out) and out.min() < 0:
            raise RuntimeError("a kernel value was asked for of a sample that has no line")
        return out

    def members(self, lines):
        """Samples that some of the lines are of."""
        return self.sample_of[lines]

    def lacking(self, samples):
        """Those of the samples that have no line, once each; the others count as read now."""
        lines = self.line_of[samples]
        self._turn += 1
        self.read_at[lines[lines >= 0]] = self._turn
        return np.unique(samples[lines < 0])

    def draw(self, samples, values):
        """Give samples lines, who have none; values(slots) are their rows of kernel values.

        Lines are filled first and owned afterwards, as slots are.
        """
        cdef Py_ssize_t k = len(samples), first = self.n_lines
        self._reserve_lines(first + k)
        self.sample_of = enlarged(self.sample_of, first, self.capacity, 0)
        self.read_at = enlarged(self.read_at, first, self.capacity, 0)
        occupied = owned(self.owner)
        cdef const size_t[::1] tops = self._tops(occupied)
        if k and len(occupied):
            self._transfer(write_rows, tops, NULL, first, values(occupied))
        self.n_lines = first + k
        lines = np.arange(first, first + k)
        self.sample_of[lines], self.read_at[lines] = samples, self._turn
        self.line_of[samples] = lines

    def drop(self, lines):
        """Take lines (ascending) from their samples; others from the end fill the holes."""
        tail, hole = fillers(lines, self.n_lines)
        left = self.n_lines - len(lines)
        self.line_of[self.sample_of[lines]] = NO_LINE
        self._close(tail, hole, left)
        for held in (self.sample_of, self.read_at):
            held[hole] = held[tail]
            held[left:] = 0
        self.line_of[self.sample_of[hole]] = hole

    def _remove_lines(self, samples, tail, hole):
        """Remove the lines of samples, which those at the tail then follow into the holes."""
        lines = self.line_of[samples]
        lines = np.sort(lines[lines >= 0])
        if len(lines):
            self.drop(lines)
        self.line_of[hole] = self.line_of[tail]
        self.line_of[self.n - len(samples): self.n] = NO_LINE
        moved = self.line_of[hole]
        self.sample_of[moved[moved >= 0]] = hole[moved >= 0]

    def fork(self):
        """A Gram with the same columns, shared; further ones are its own, but no further lines."""
        other = super().fork()
        other._take_lines(self)
        return other

    def _take_lines(self, LineGram other):
        self._hold(other.line_of.copy())
        self.sample_of = other.sample_of.copy()
        self.read_at = other.read_at.copy()

    def multiply(self, const double[::1] coef, double[::1] out, rows=None):
        """out = K[rows, slots] @ coef  (all samples if rows is None), shared out by rows."""
        cdef const long long[::1] lines = self.lines(slice(self.n) if rows is None else rows)
        cdef int status
        if lines.shape[0] == 0 or self._n_panels == 0:
            out[:] = 0.0
            return
        with nogil:
            status = Gram.product(self, &coef[0], &lines[0], lines.shape[0], &out[0])
        if status < 0:
            raise MemoryError()

    cdef int product(self, const double* coef, const long long* rows, Py_ssize_t n_rows,
                     double* out) noexcept nogil:
        """out = K[rows, slots] @ coef; -1 if there is no memory for it, or a row has no line."""
        cdef Py_ssize_t i
        cdef int status = 0
        cdef long long* lines = <long long*> malloc(max(1, n_rows) * sizeof(long long))
        if lines == NULL:
            return -1
        for i in range(n_rows):
            lines[i] = self._line_of[rows[i]]
            status = -1 if lines[i] < 0 else status
        if status == 0:
            status = Gram.product(self, coef, lines, n_rows, out)
        free(lines)
        return status

    cdef int gather_into(self, const long long* samples, Py_ssize_t k, const long long* slots,
                         Py_ssize_t m, double* out, Py_ssize_t di, Py_ssize_t dj) except -1 nogil:
        """out[i * di + j * dj] = K[samples[i], slots[j]], of samples that have a line."""
        cdef Py_ssize_t i
        cdef bint lacking = False
        cdef long long* lines = <long long*> malloc(max(1, k) * sizeof(long long))
        for i in range(k if lines != NULL else 0):
            lines[i] = self._line_of[samples[i]]
            lacking |= lines[i] < 0
        if lines == NULL or lacking:
            free(lines)
            with gil:
                if lacking:
                    raise RuntimeError(
                        "a kernel value was asked for of a sample that has no line")
                raise MemoryError()
        try:
            Gram.gather_into(self, lines, k, slots, m, out, di, dj)
        finally:
            free(lines)
        return 0

    cdef void row_into(self, long long sample, const long long* slots, Py_ssize_t k,
                       double* out) noexcept nogil:
        """out[j] = K[sample, slots[j]], of a sample that has a line."""
        Gram.row_into(self, self._line_of[sample], slots, k, out)
