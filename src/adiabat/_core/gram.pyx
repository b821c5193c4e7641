# SPDX-License-Identifier: BSD-3-Clause
"""Kernel columns of the samples that carry weight, against all samples.

The n x n kernel is never formed. A sample that carries weight (or lately did) owns a *slot*: the
column K[:, sample]. Slots live in panels of WIDTH columns, row-major, so that

    f = sum_slot coef[slot] * K[:, slot]          one GEMV a panel
    f[rows]                                       reads only those rows, and of each the lines of
                                                  the cache in which a coefficient is not 0

A new slot never moves old ones, and more samples grow each panel by itself, so nothing needs a
copy of everything. Memory is 8 * capacity * WIDTH * panels bytes, with capacity <= 1.5 n; beyond a
limit it is that of a file (`engine/mapped`). A row of a panel is a *line*; here sample i has line i
(`line_gram` keeps lines for some samples only).

Samples may have a *group*, as the classes of a problem of many machines: columns of one group share
lines of the cache with none of another, so that a machine of two classes reads theirs alone.

Invariant: for an occupied slot s and a sample i < n, panel[i, s] = k(x_i, x_owner[s]).
"""

from libc.stdlib cimport free, malloc, realloc

import numpy as np

from adiabat._core.columns cimport (
    Columns,
    Moves,
    clear_rows,
    in_columns,
    move_rows,
    read_rows,
    swap_rows,
    write_rows,
)
from adiabat._core.simd cimport simd
from adiabat._core.thread_pool cimport pool_task, share

from adiabat._core.panels import UNLIMITED
from adiabat._core.places import (
    enlarged, fillers, idle, misplaced, room_for, vacant, vacant_near,
)

cdef enum:
    STRIP = 8     # columns in a line of the cache: a product reads all of them or none
    STRIPS = WIDTH // STRIP
    FILLED = 1 << 17   # entries of new columns on their way at a time: they stay in the cache
    LEAST = 32    # rows at a time, however many columns
    PART = 1 << 15     # entries of a product that one takes at a time
    LEAST_ROWS = 8

NO_SLOT = -1
PANEL_WIDTH = WIDTH


cdef struct Product:
    # K[rows, slots] @ coef on its way, by runs of columns: where each begins, its first slot, and
    # how many there are
    double** data
    const double* coef
    const long long* rows
    double* out
    const double** top
    Py_ssize_t* first
    Py_ssize_t* length
    Py_ssize_t n_rows, n_runs, step


cdef void some_rows(void* context, Py_ssize_t part) noexcept nogil:
    """The part of a product that belongs to `step` of its rows."""
    cdef Product* job = <Product*> context
    cdef Py_ssize_t first = part * job.step, last = min(first + job.step, job.n_rows)
    simd.multiply_runs(job.top, job.first, job.length, job.n_runs, WIDTH, job.rows + first,
                       last - first, job.coef, job.out + first)


cdef class Gram:
    """Slots of kernel columns: `slot_of[sample]` and `owner[slot]` are each other's inverse."""

    def __init__(self, memory=UNLIMITED):
        self.n = self.n_lines = self.capacity = 0
        self.panels = []
        self.slot_of, self.owner, self.stamp, self._group = np.empty((4, 0), dtype=np.int64)
        self._clock, self.lost = 0, None
        self.use(memory)

    def use(self, memory):
        """Take memory for panels from there, from now on."""
        self.memory = memory
        memory.register(self)

    def abandon(self):
        """Have no columns, without a write to the panels of another; `lost` are whose they were."""
        lost = np.flatnonzero(self.slot_of[: self.n] >= 0)
        self.lost = lost[np.argsort(self.slot_of[lost])]
        self.panels.clear()
        self._n_panels = 0
        self.slot_of[:] = NO_SLOT
        self.owner, self.stamp, self._group = self.owner[:0], self.stamp[:0], self._group[:0]

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

    cpdef int place(self, Py_ssize_t p, panel) except -1:
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
        """Room for n samples."""
        self.slot_of = enlarged(self.slot_of, self.n, n, NO_SLOT)

    def _reserve_lines(self, Py_ssize_t n):
        """Room for n lines: panels grow one at a time, by half, so the peak is one panel."""
        if n <= self.capacity:
            return
        # memory that is not written to is not taken
        capacity = room_for(n, self.capacity)
        for p in range(self._n_panels):
            grown = self.memory.zeros((capacity, WIDTH), self.panels)
            grown[: self.n_lines] = self.panels[p][: self.n_lines]
            self.place(p, grown)
        self.capacity = capacity

    def _add_panel(self):
        panel = self.memory.zeros((max(self.capacity, 1), WIDTH), self.panels)
        owner = np.concatenate([self.owner, np.full(WIDTH, -1, dtype=np.int64)])
        stamp = np.concatenate([self.stamp, np.zeros(WIDTH, dtype=np.int64)])
        group = np.concatenate([self._group, np.zeros(STRIPS, dtype=np.int64)])
        cdef double** table = <double**> realloc(
            self._data, (self._n_panels + 1) * sizeof(double*))
        if table == NULL:
            raise MemoryError()
        self._data = table
        self.place(self._n_panels, panel)
        self.owner = owner
        self.stamp = stamp
        self._group = group

    def append(self, Py_ssize_t k, slots=(), double[:, ::1] block=None):
        """Add k samples at the end; block[i, j] = k(new_i, owner of slots[j])."""
        self._reserve_lines(self.n + k)
        self._reserve_samples(self.n + k)
        self.slot_of[self.n: self.n + k] = NO_SLOT
        self.n = self.n_lines = self.n + k
        if len(slots):
            self.write(np.arange(self.n - k, self.n), slots, block)

    def write(self, rows, slots, double[:, :] block):
        """K[rows, slots] = block."""
        cdef const long long[::1] at = np.ascontiguousarray(self.lines(rows), dtype=np.int64)
        cdef const size_t[::1] tops = self._tops(slots)
        if at.shape[0] and tops.shape[0]:
            self._transfer(write_rows, tops, &at[0], 0, block)

    cdef int _transfer(self, pool_task task, const size_t[::1] tops, const long long* rows,
                       Py_ssize_t first, double[:, :] block) except -1:
        """Between block and the columns at tops, in these rows or all from the first on."""
        cdef Columns job
        job.a, job.k, job.n = &tops[0], tops.shape[0], block.shape[0]
        job.rows, job.first = rows, first
        job.block = &block[0, 0]
        job.di, job.dj = block.strides[0] // sizeof(double), block.strides[1] // sizeof(double)
        with nogil:
            in_columns(task, &job)
        return 0

    def claim(self, samples, columns, groups=None):
        """Give samples slots; columns(rows)[i, j] = k(x_rows[i], samples[j]) for some rows."""
        step = max(FILLED // max(1, len(samples)), LEAST)

        def write(const size_t[::1] tops, Py_ssize_t width):
            for start in range(0, self.n_lines, step):
                rows = slice(start, min(start + step, self.n_lines))
                self._transfer(write_rows, tops, NULL, start, columns(self.members(rows)))

        self.claim_by(samples, write, groups)

    def claim_by(self, samples, write, groups=None):
        """Give samples slots, near others of their groups; write(tops, step) fills them.

        It writes k(x_i, samples[j]) to the address tops[j] + i * step numbers, for all lines i.
        A slot is filled first and owned afterwards: one with an owner is always complete, and one
        without holds nothing, also if `write` raises.
        """
        cdef Py_ssize_t k = len(samples)
        if k == 0:
            return
        slots = self._vacant(k, groups)
        try:
            write(self._tops(slots), WIDTH)
        except BaseException:
            self._clear(slots)
            raise
        self._clock += 1
        self.stamp[slots] = self._clock
        self.owner[slots] = samples
        self.slot_of[samples] = slots

    def _vacant(self, Py_ssize_t k, groups):
        """k slots without an owner, in panels that are there or new ones."""
        while True:
            if groups is None:
                slots = vacant(self.owner, k)
            else:
                slots = vacant_near(groups, self.owner, self._group, STRIP)
            if slots is not None and len(slots) == k:
                return slots
            self._add_panel()

    def _tops(self, slots):
        """Addresses of the first entries of slots, the next of each being WIDTH further on."""
        cdef const long long[::1] at = np.ascontiguousarray(slots, dtype=np.int64)
        out = np.empty(at.shape[0], dtype=np.uintp)
        cdef size_t[::1] tops = out
        cdef Py_ssize_t j
        for j in range(at.shape[0]):
            tops[j] = <size_t> (self._data[at[j] // WIDTH] + at[j] % WIDTH)
        return out

    def release(self, keep, Py_ssize_t spare):
        """Free the slots of samples not in `keep` (bool, n), but for the `spare` latest ones.

        A spare column costs memory and saves a kernel evaluation when its sample comes back,
        as those near the margin do.
        """
        self._clock += 1
        gone = idle(self.owner, keep.view(np.uint8), self.stamp, self._clock, spare)
        if len(gone):
            self._vacate(gone)

    def gather_front(self, keep, Py_ssize_t tolerated, Py_ssize_t most):
        """Bring columns of samples in `keep` to the front panels, `most` at a time.

        A product reads whole panels, so columns in use should share as few as they can; but so
        many as are tolerated elsewhere, read by themselves, cost less than to move them.
        """
        given = self.owner, keep.view(np.uint8), WIDTH, tolerated, most
        vacated, behind = misplaced(*given)
        if len(behind):
            self._exchange(vacated, behind)

    def _exchange(self, first, second):
        """Let the owners of slots first[j] and second[j] trade places."""
        cdef const size_t[::1] a = self._tops(first), b = self._tops(second)
        self._alter(swap_rows, a, b)
        for values in (self.owner, self.stamp):
            values[first], values[second] = values[second], values[first]
        for slots in (first, second):
            owned = slots[self.owner[slots] >= 0]
            self.slot_of[self.owner[owned]] = owned

    def _vacate(self, slots):
        """Free slots and overwrite what they held: a forgotten sample leaves no kernel values."""
        self.slot_of[self.owner[slots]] = NO_SLOT
        self.owner[slots] = -1
        self._clear(slots)

    def _clear(self, slots):
        cdef const size_t[::1] tops = self._tops(slots)
        self._alter(clear_rows, tops, tops)

    cdef int _alter(self, pool_task task, const size_t[::1] a, const size_t[::1] b) except -1:
        """Do something to all rows of the columns at a, and those at b."""
        cdef Columns job
        if a.shape[0] and self.n_lines:
            job.a, job.b, job.k, job.n = &a[0], &b[0], a.shape[0], self.n_lines
            with nogil:
                in_columns(task, &job)
        return 0

    def remove(self, samples):
        """Remove samples; survivors from the end fill the holes. Returns (from, to) arrays."""
        cdef long long[::1] slot_of = self.slot_of, owner = self.owner
        cdef const long long[::1] come, to, gone
        cdef Py_ssize_t i, left
        cdef bint owns = False
        samples = np.array(samples) if len(samples) < 2 else np.unique(samples)
        left = self.n - len(samples)
        tail, hole = fillers(samples, self.n)
        gone = samples
        for i in range(gone.shape[0]):
            owns = owns or slot_of[gone[i]] >= 0
        if owns:
            slots = self.slot_of[samples]
            self._vacate(slots[slots >= 0])
        self._remove_lines(samples, tail, hole)
        come, to = tail, hole
        for i in range(to.shape[0]):
            slot_of[to[i]] = slot_of[come[i]]
            if slot_of[to[i]] >= 0:
                owner[slot_of[to[i]]] = to[i]
        self.slot_of[left: self.n] = NO_SLOT
        self.n = left
        return tail, hole

    def _remove_lines(self, samples, tail, hole):
        """Remove the lines of samples, which those at the tail then follow into the holes."""
        self._close(tail, hole, self.n_lines - len(samples))

    def _close(self, tail, hole, Py_ssize_t left):
        """Move lines from the tail into the holes, so that `left` stay; the rest is overwritten."""
        cdef const long long[::1] to = hole, come = tail
        cdef Moves job
        job.data, job.k, job.left, job.n = self._data, to.shape[0], left, self.n_lines
        if job.k:
            job.to, job.come = &to[0], &come[0]
        with nogil:
            share(move_rows, &job, self._n_panels)
        self.n_lines = left

    def lines(self, samples):
        """Lines of samples."""
        return samples

    def members(self, lines):
        """Samples that some of the lines are of."""
        return lines

    def multiply(self, const double[::1] coef, double[::1] out, rows=None):
        """out = K[rows, slots] @ coef  (all samples if rows is None), shared out by rows."""
        cdef const long long[::1] at = np.arange(self.n) if rows is None else rows
        cdef int status
        if at.shape[0] == 0 or self._n_panels == 0:
            out[:] = 0.0
            return
        with nogil:
            status = self.product(&coef[0], &at[0], at.shape[0], &out[0])
        if status < 0:
            raise MemoryError()

    def collect(self, const double[::1] values, const long long[::1] samples):
        """values summed by slot of their sample; None if one that is not 0 has no slot."""
        cdef const long long[::1] slot_of = self.slot_of
        cdef Py_ssize_t i
        cdef bint whole = True
        out = np.zeros(self.n_slots)
        cdef double[::1] sums = out
        with nogil:
            for i in range(values.shape[0]):
                if values[i] == 0.0:
                    continue
                if slot_of[samples[i]] < 0:
                    whole = False
                    break
                sums[slot_of[samples[i]]] += values[i]
        return out if whole else None

    cdef int product(self, const double* coef, const long long* rows, Py_ssize_t n_rows,
                     double* out) noexcept nogil:
        """out = K[rows, slots] @ coef; -1 if there is no memory for it."""
        cdef Py_ssize_t p, j, k, used, last = -1, total = 0, most = self._n_panels * STRIPS
        cdef Product job
        cdef void* room = malloc(max(1, most) * (sizeof(double*) + 2 * sizeof(Py_ssize_t)))
        if room == NULL:
            return -1
        job.data, job.coef, job.rows, job.n_rows, job.out = self._data, coef, rows, n_rows, out
        job.top = <const double**> room
        job.first = <Py_ssize_t*> (job.top + most)
        job.length = job.first + most
        job.n_runs = 0
        for p in range(most):
            used = 0
            for j in range(p * STRIP, (p + 1) * STRIP):
                used |= coef[j] != 0.0
            if not used:
                continue
            total += STRIP
            if p == last + 1 and p % STRIPS:
                job.length[job.n_runs - 1] += STRIP
            else:
                k = job.n_runs
                job.first[k], job.length[k] = p * STRIP, STRIP
                job.top[k] = self._data[p // STRIPS] + p % STRIPS * STRIP
                job.n_runs += 1
            last = p
        job.step = max(LEAST_ROWS, PART // (1 + total))
        share(some_rows, &job, (n_rows + job.step - 1) // job.step)
        free(room)
        return 0

    cdef int gather_into(self, const long long* samples, Py_ssize_t k, const long long* slots,
                         Py_ssize_t m, double* out, Py_ssize_t di, Py_ssize_t dj) except -1 nogil:
        """out[i * di + j * dj] = K[samples[i], slots[j]]"""
        cdef Columns job
        cdef size_t* tops
        cdef Py_ssize_t j
        if k == 0 or m == 0:
            return 0
        tops = <size_t*> malloc(m * sizeof(size_t))
        if tops == NULL:
            with gil:
                raise MemoryError()
        for j in range(m):
            tops[j] = <size_t> (self._data[slots[j] // WIDTH] + slots[j] % WIDTH)
        job.a, job.k, job.n, job.rows, job.first = tops, m, k, samples, 0
        job.block, job.di, job.dj = out, di, dj
        in_columns(read_rows, &job)
        free(tops)
        return 0

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
        cdef Gram other = type(self)(self.memory)
        other.n, other.n_lines, other.capacity = self.n, self.n_lines, self.capacity
        other._clock = self._clock
        other._data = <double**> malloc(max(1, self._n_panels) * sizeof(double*))
        if other._data == NULL:
            raise MemoryError()
        for panel in self.panels:
            other.place(other._n_panels, panel)
        other.slot_of, other.stamp = self.slot_of.copy(), self.stamp.copy()
        other._group = self._group.copy()
        other.owner = np.maximum(self.owner, 0)
        return other

    def gather(self, rows, slots, double[:, :] out):
        """out[i, j] = K[rows[i], slots[j]]."""
        cdef const long long[::1] at = self.lines(rows)
        cdef const size_t[::1] tops = self._tops(slots)
        if at.shape[0] and tops.shape[0]:
            self._transfer(read_rows, tops, &at[0], 0, out)
