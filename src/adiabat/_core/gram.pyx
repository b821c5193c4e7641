# SPDX-License-Identifier: BSD-3-Clause
"""Kernel columns of the samples that carry weight, against all samples.

The n x n kernel is never formed. A sample that carries weight (or lately did) owns a *slot*: the
column K[:, sample]. Slots live in panels of WIDTH columns, row-major, so that

    f = sum_slot coef[slot] * K[:, slot]          one GEMV a panel
    f[rows]                                       reads only those rows, contiguously

A new slot never moves old ones, and more samples grow each panel by itself, so nothing needs a
copy of everything. Memory is 8 * capacity * WIDTH * panels bytes, with capacity <= 1.5 n.

Invariant: for an occupied slot s and a sample i < n, panel[i, s] = k(x_i, x_owner[s]).
"""

from libc.stdlib cimport free, malloc, realloc

import numpy as np

from adiabat._core.blas cimport dot, gemv

cdef enum:
    WIDTH = 128
    BLOCK = 32    # rows filled together: more would compete for the same cache sets
    FEW = 12      # coefficients in a panel up to which its columns are read one by one

NO_SLOT = -1
PANEL_WIDTH = WIDTH


cdef class Gram:
    """Slots of kernel columns: `slot_of[sample]` and `owner[slot]` are each other's inverse."""

    def __cinit__(self):
        self._data = NULL
        self._n_panels = 0

    def __init__(self):
        self.n = 0
        self.capacity = 0
        self.panels = []
        self.slot_of = np.empty(0, dtype=np.int64)
        self.owner = np.empty(0, dtype=np.int64)
        self.stamp = np.empty(0, dtype=np.int64)
        self._clock = 0

    def __dealloc__(self):
        free(self._data)

    @property
    def n_slots(self):
        """Number of slots there is room for, free ones included."""
        return self._n_panels * WIDTH

    @property
    def nbytes(self):
        """Bytes held by the panels."""
        return sum(panel.nbytes for panel in self.panels)

    cdef int _place(self, Py_ssize_t p, panel) except -1:
        """Put a panel at place p, address and all; nothing in between can be interrupted."""
        cdef double[:, ::1] view = panel
        if p == self._n_panels:
            self.panels.append(panel)
            self._n_panels += 1
        else:
            self.panels[p] = panel
        self._data[p] = &view[0, 0]
        return 0

    def _reserve_samples(self, Py_ssize_t n):
        """Room for n samples: panels grow one at a time, by half, so the peak is one panel."""
        if n <= self.capacity:
            return
        capacity = max(n, self.capacity + self.capacity // 2, 64)
        slot_of = np.full(capacity, NO_SLOT, dtype=np.int64)
        slot_of[: self.n] = self.slot_of[: self.n]
        for p in range(self._n_panels):
            grown = np.zeros((capacity, WIDTH))
            grown[: self.n] = self.panels[p][: self.n]
            self._place(p, grown)
        self.slot_of = slot_of
        self.capacity = capacity

    def _add_panel(self):
        panel = np.zeros((max(self.capacity, 1), WIDTH))
        owner = np.concatenate([self.owner, np.full(WIDTH, -1, dtype=np.int64)])
        stamp = np.concatenate([self.stamp, np.zeros(WIDTH, dtype=np.int64)])
        cdef double** table = <double**> realloc(
            self._data, (self._n_panels + 1) * sizeof(double*))
        if table == NULL:
            raise MemoryError()
        self._data = table
        self._place(self._n_panels, panel)
        self.owner = owner
        self.stamp = stamp

    def append(self, Py_ssize_t k, slots, double[:, ::1] block):
        """Add k samples at the end; block[i, j] = k(new_i, owner of slots[j])."""
        self._reserve_samples(self.n + k)
        self.slot_of[self.n: self.n + k] = NO_SLOT
        self.n += k
        self.write(np.arange(self.n - k, self.n), slots, block)

    def write(self, rows, slots, double[:, ::1] block):
        """K[rows, slots] = block."""
        cdef Py_ssize_t i, j, row
        cdef const long long[::1] at = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const long long[::1] into = np.ascontiguousarray(slots, dtype=np.int64)
        for i in range(at.shape[0]):
            row = at[i] * WIDTH
            for j in range(into.shape[0]):
                self._data[into[j] // WIDTH][row + into[j] % WIDTH] = block[i, j]

    def claim(self, samples, double[:, ::1] columns):
        """Give samples slots and fill them; columns[j, i] = k(samples[j], x_i), i < n."""
        cdef Py_ssize_t i, j, start, stop, k = len(samples)
        if k == 0:
            return
        vacant = np.flatnonzero(self.owner < 0)
        while len(vacant) < k:
            self._add_panel()
            vacant = np.flatnonzero(self.owner < 0)
        cdef long long[::1] taken = vacant[:k].copy()
        vacant = vacant[:k]
        samples = np.asarray(samples)
        cdef Py_ssize_t n = self.n
        cdef double** into = <double**> malloc(k * sizeof(double*))
        if into == NULL:
            raise MemoryError()
        with nogil:
            for j in range(k):
                into[j] = self._data[taken[j] // WIDTH] + taken[j] % WIDTH
            start = 0
            while start < n:
                stop = start + BLOCK if start + BLOCK < n else n
                for j in range(k):
                    for i in range(start, stop):
                        into[j][i * WIDTH] = columns[j, i]
                start = stop
            free(into)
        # filled first, owned afterwards: a slot with an owner is always complete
        self._clock += 1
        self.stamp[vacant] = self._clock
        self.owner[vacant] = samples
        self.slot_of[samples] = vacant

    def release(self, keep, Py_ssize_t spare):
        """Free the slots of samples not in `keep` (bool, n), but for the `spare` latest ones.

        A spare column costs memory and saves a kernel evaluation when its sample comes back,
        as those near the margin do.
        """
        occupied = (self.owner >= 0).nonzero()[0]
        kept = keep[self.owner[occupied]]
        self._clock += 1
        self.stamp[occupied[kept]] = self._clock
        idle = occupied[~kept]
        if len(idle) > spare:
            order = np.argsort(self.stamp[idle], kind="stable")
            self._vacate(idle[order[: len(idle) - spare]])

    def gather_front(self, keep, Py_ssize_t most):
        """Bring columns of samples in `keep` to the front slots, by at most `most` exchanges.

        A product reads whole panels, so columns in use should share as few as they can.
        """
        used = np.zeros(self.n_slots, dtype=bool)
        occupied = (self.owner >= 0).nonzero()[0]
        used[occupied] = keep[self.owner[occupied]]
        cdef Py_ssize_t front = int(used.sum())
        behind = front + used[front:].nonzero()[0]
        if len(behind) == 0:
            return
        ahead = (~used[:front]).nonzero()[0]
        for a, b in zip(ahead[:most], behind[:most]):
            self._exchange(a, b)

    cdef int _exchange(self, Py_ssize_t a, Py_ssize_t b) except -1:
        cdef double* first = self._data[a // WIDTH] + a % WIDTH
        cdef double* second = self._data[b // WIDTH] + b % WIDTH
        cdef Py_ssize_t i
        cdef double value
        with nogil:
            for i in range(self.n):
                value = first[i * WIDTH]
                first[i * WIDTH] = second[i * WIDTH]
                second[i * WIDTH] = value
        for values in (self.owner, self.stamp):
            kept = values[a]
            values[a] = values[b]
            values[b] = kept
        if self.owner[a] >= 0:
            self.slot_of[self.owner[a]] = a
        if self.owner[b] >= 0:
            self.slot_of[self.owner[b]] = b
        return 0

    def _vacate(self, slots):
        """Free slots and overwrite what they held: a forgotten sample leaves no kernel values."""
        cdef Py_ssize_t i, j, n = self.n
        cdef const long long[::1] at = np.ascontiguousarray(slots, dtype=np.int64)
        self.slot_of[self.owner[slots]] = NO_SLOT
        self.owner[slots] = -1
        with nogil:
            for i in range(n):
                for j in range(at.shape[0]):
                    self._data[at[j] // WIDTH][i * WIDTH + at[j] % WIDTH] = 0.0

    def remove(self, samples):
        """Remove samples; survivors from the end fill the holes. Returns (from, to) arrays."""
        if len(samples) == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        gone = np.zeros(self.n, dtype=bool)
        gone[samples] = True
        samples = gone.nonzero()[0]
        slots = self.slot_of[samples]
        self._vacate(slots[slots >= 0])
        cdef Py_ssize_t left = self.n - len(samples)
        hole = samples[samples < left]
        tail = left + (~gone[left:]).nonzero()[0]
        for panel in self.panels:
            panel[hole] = panel[tail]
            panel[left: self.n] = 0.0
        self.slot_of[hole] = self.slot_of[tail]
        self.slot_of[left: self.n] = NO_SLOT
        moved = self.slot_of[hole]
        self.owner[moved[moved >= 0]] = hole[moved >= 0]
        self.n = left
        return tail, hole

    def multiply(self, const double[::1] coef, double[::1] out, rows=None):
        """out = K[rows, slots] @ coef  (all samples if rows is None); unused panels are skipped."""
        cdef Py_ssize_t p, j, i, n = self.n
        cdef const long long[::1] at
        if rows is not None:
            at = rows
            if at.shape[0] and self._n_panels:
                with nogil:
                    j = self.product(&coef[0], &at[0], at.shape[0], &out[0])
                if j < 0:
                    raise MemoryError()
            else:
                out[:] = 0.0
            return
        with nogil:
            for i in range(n):
                out[i] = 0.0
            for p in range(self._n_panels):
                for j in range(WIDTH):
                    if coef[p * WIDTH + j] != 0.0:
                        # out += panel @ coef[panel]
                        gemv(n, WIDTH, 1.0, self._data[p], WIDTH, &coef[p * WIDTH], 1.0, &out[0])
                        break

    cdef int product(self, const double* coef, const long long* rows, Py_ssize_t n_rows,
                     double* out) noexcept nogil:
        """out = K[rows, slots] @ coef; -1 if there is no memory for it."""
        cdef Py_ssize_t p, i, j, row, n_active = 0, n_single
        cdef double total
        cdef Py_ssize_t* active = <Py_ssize_t*> malloc(
            max(1, self._n_panels) * (1 + FEW) * sizeof(Py_ssize_t))
        if active == NULL:
            return -1
        cdef Py_ssize_t* single = active + self._n_panels
        for p in range(self._n_panels):
            for j in range(WIDTH):
                if coef[p * WIDTH + j] != 0.0:
                    active[n_active] = p
                    n_active += 1
                    break
        n_single = self._single_out(coef, active, &n_active, single)
        for i in range(n_rows):
            row = rows[i] * WIDTH
            total = 0.0
            for j in range(n_active):
                p = active[j]
                # total += panel[row] @ coef[panel]
                total += dot(WIDTH, self._data[p] + row, coef + p * WIDTH)
            for j in range(n_single):
                p = single[j]
                total += self._data[p // WIDTH][row + p % WIDTH] * coef[p]
            out[i] = total
        free(active)
        return 0

    cdef Py_ssize_t _single_out(
        self, const double* coef, Py_ssize_t* active, Py_ssize_t* n_active, Py_ssize_t* single,
    ) noexcept nogil:
        """Panels with few coefficients are read column by column: moves them from active."""
        cdef Py_ssize_t j, k, p, count, kept = 0, n_single = 0
        for j in range(n_active[0]):
            p = active[j]
            count = 0
            for k in range(WIDTH):
                count += coef[p * WIDTH + k] != 0.0
            if count > FEW:
                active[kept] = p
                kept += 1
                continue
            for k in range(WIDTH):
                if coef[p * WIDTH + k] != 0.0:
                    single[n_single] = p * WIDTH + k
                    n_single += 1
        n_active[0] = kept
        return n_single

    cdef void row_into(self, long long sample, const long long* slots, Py_ssize_t k,
                       double* out) noexcept nogil:
        """out[j] = K[sample, slots[j]]."""
        cdef Py_ssize_t j
        for j in range(k):
            out[j] = self._data[slots[j] // WIDTH][sample * WIDTH + slots[j] % WIDTH]

    def fork(self):
        """A Gram with the same columns, shared; further ones are its own.

        Vacant slots among the shared count as taken. To be read and given columns, no more.
        """
        cdef Gram other = Gram()
        other.n, other.capacity, other._clock = self.n, self.capacity, self._clock
        other._data = <double**> malloc(max(1, self._n_panels) * sizeof(double*))
        if other._data == NULL:
            raise MemoryError()
        for panel in self.panels:
            other._place(other._n_panels, panel)
        other.slot_of, other.stamp = self.slot_of.copy(), self.stamp.copy()
        other.owner = np.maximum(self.owner, 0)
        return other

    def gather(self, const long long[::1] rows, const long long[::1] slots, double[:, ::1] out):
        """out[i, j] = K[rows[i], slots[j]]."""
        cdef Py_ssize_t i, j, row
        cdef Py_ssize_t k = slots.shape[0]
        cdef double** column = <double**> malloc(max(1, k) * sizeof(double*))
        if column == NULL:
            raise MemoryError()
        with nogil:
            for j in range(k):
                column[j] = self._data[slots[j] // WIDTH] + slots[j] % WIDTH
            for i in range(rows.shape[0]):
                row = rows[i] * WIDTH
                for j in range(k):
                    out[i, j] = column[j][row]
            free(column)
