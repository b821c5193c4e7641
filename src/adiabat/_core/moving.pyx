# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a motion: those that move by themselves, and those that are looked at.

Rows that move by themselves, A, are the driven ones and those at a bound that moves. K du_A and
the sums over A are kept up from breakpoint to breakpoint, by one column for each change of sets.

Only *watched* rows are looked at. In feature space |dr_i| <= |dw| sqrt(k_ii) + |db| + |dt_i|, and
|dw|^2 = du'K du falls out of the margin's answer: rows at a bound that are farther from r = 0 than
all of the drift so far cannot have changed sets. Before the drift reaches the nearest of them,
their r is brought up to date and more are watched. Rows are compared by `scale`, sqrt(k_ii + c),
so that one far from all others does not decide for them: |dr_i| <= scale_i |(dw, db / sqrt c)|.

A stretch multiplies the columns of MARGIN at the watched rows. In the panels of the Gram each value
there is a line of the cache; they are copied once, to where a product reads nothing else.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy

import numpy as np

from adiabat._core.blas cimport axpy, gemv
from adiabat._core.factor cimport Factor
from adiabat._core.gram cimport Gram
from adiabat._core.ratio cimport _HIGH, _LEAVING, _LOW, _PINNED, _RISING
from adiabat._core.thread_pool cimport share

# Kernel values that are copied, at most (32 MB).
KEPT = 1 << 22

cdef enum:
    PART = 1 << 15      # of a product that one takes at a time
    LEAST_ROWS = 64     # of a product that one takes at a time, at least


cdef struct Product:
    # n rows of columns that are `line` numbers apart, times weights
    const double* values
    const double* weights
    double* out
    Py_ssize_t n, columns, line, step


cdef void some_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef Product* job = <Product*> context
    cdef Py_ssize_t first = part * job.step
    # out[first: ...] = values[:, first: ...].T @ weights
    gemv(min(job.step, job.n - first), job.columns, job.values + first, job.line, job.weights,
         job.out + first)


cdef class Moving:
    """A machine whose problem moves at constant rates; its arrays are moved in place."""

    def __init__(self, Gram gram, Factor factor, columns, at, diagonal, state, rates, role,
                 in_margin, double b, double dd, Py_ssize_t watch, Py_ssize_t kept=KEPT):
        """`state` is (u, r, t, lo, hi), `rates` (du of driven rows, dt, dlo, dhi).

        `columns(positions)` gives slots to samples that have none. `watch` is the number of rows
        at a bound that are watched from the start, `kept` of the kernel values that are copied.
        """
        cdef Py_ssize_t i, n = len(at)
        self._gram, self._factor, self._columns = gram, factor, columns
        self._at, self._diagonal, self._slot_of = at, diagonal, gram.slot_of
        self._u, self._r, self._t, self._lo, self._hi = state
        self._own, self._dt, self._dlo, self._dhi = rates
        self._role, self._member = role, in_margin.view(np.uint8)
        self.b, self._dd, self._n_watch, self._most_values = b, dd, watch, kept
        self._room, self._places = np.zeros((7, n)), np.empty((4, n), dtype=np.int64)
        self._du, self._scale = self._room[0], self._room[1]
        self._u_then, self._t_then = self._room[2], self._room[3]
        self._place, self._column_of = self._places[0], self._places[1]
        self._coef, self._work = np.zeros(0), np.zeros(0)
        self._most_dt, self._most_scaled_dt, self._bounds_move = 0.0, 0.0, False
        for i in range(n):
            self._scale[i] = sqrt(self._diagonal[self._at[i]] + factor.shift)
            self._most_dt = max(self._most_dt, fabs(self._dt[i]))
            self._most_scaled_dt = max(self._most_scaled_dt, fabs(self._dt[i]) / self._scale[i])
            if self._dlo[i] != 0.0 or self._dhi[i] != 0.0:
                self._bounds_move = True
        self._problem_moves = self._bounds_move or self._most_dt > 0.0 or dd != 0.0
        self._most_moving = self._most_pull = 0.0
        self._watch()

    @property
    def watched(self):
        """Rows whose r is up to date; the others have not changed sets."""
        return np.array(self._watched)

    cdef int _watch(self) except -1:
        """Choose the rows to look at; K du_A for them."""
        cdef Py_ssize_t i, m, n = self._role.shape[0]
        cdef const long long[::1] chosen
        self._horizon = INFINITY
        chosen = np.arange(n) if self._n_watch >= n else self._nearest()
        m = chosen.shape[0]
        self._watched, self._at_watched = self._places[2, :m], self._places[3, :m]
        for i in range(m):
            self._watched[i], self._at_watched[i] = chosen[i], self._at[chosen[i]]
            self._place[chosen[i]] = i
        self._dr, self._column, self._drive = (
            self._room[4, :m], self._room[5, :m], self._room[6, :m])
        self._drift = 0.0
        self._du[:] = 0.0
        self._u_then[:], self._t_then[:], self._b_then = self._u, self._t, self.b
        return self._start()

    def _nearest(self):
        """So many rows at a bound as are to be watched, the nearest, and all that are between."""
        role = np.asarray(self._role)
        resting = np.flatnonzero((role == _LOW) | (role == _HIGH))
        others = np.flatnonzero((role != _LOW) & (role != _HIGH) & (role != _PINNED))
        if self._n_watch < len(resting):
            far = np.abs(np.asarray(self._r)[resting]) / np.asarray(self._scale)[resting]
            order = np.argpartition(far, self._n_watch)
            self._horizon = far[order[self._n_watch]]
            resting = resting[order[: self._n_watch]]
        return np.concatenate([resting, others])

    cdef int _start(self) except -1:
        """K du_A and its sums, from the rows that move by themselves."""
        cdef Py_ssize_t i, k = 0, n = self._u.shape[0]
        cdef double rate
        self._need, self._moving, self._pull, self._driven = self._dd, 0.0, 0.0, 0
        self._drive[:], self._square = 0.0, 0.0
        cdef long long[:, ::1] rows = np.empty((2, n), dtype=np.int64)
        for i in range(n):
            self._driven += self._is_driven(i)
            rate = self._rate(i)
            self._need -= rate
            self._moving += fabs(rate)
            self._pull += self._scale[i] * fabs(rate)
            if rate != 0.0:
                rows[0, k], rows[1, k] = i, self._at[i]
                k += 1
        self._most_moving = max(self._most_moving, self._moving + fabs(self._dd))
        self._most_pull = max(self._most_pull, self._pull)
        self._claim(self._factor._members, self._factor.size)
        if k:
            self._claim(&rows[0, 0], k)
        self._make_room()
        if k:
            self._drive_by(rows[0, :k], rows[1, :k])
        return self._keep_columns()

    cdef int _drive_by(self, const long long[::1] rows, const long long[::1] at) except -1:
        """K du_A at the watched rows, and du_A'K du_A."""
        cdef Py_ssize_t i, m = self._watched.shape[0], k = rows.shape[0]
        cdef double[::1] own = np.empty(k)
        for i in range(k):
            self._coef[self._slot_of[at[i]]] += self._rate(rows[i])
        if (m and self._gram.product(&self._coef[0], &self._at_watched[0], m, &self._drive[0]) < 0
                or self._gram.product(&self._coef[0], &at[0], k, &own[0]) < 0):
            raise MemoryError()
        for i in range(k):
            self._square += self._rate(rows[i]) * own[i]
            self._coef[self._slot_of[at[i]]] = 0.0
        return 0

    cdef int _claim(self, const long long* rows, Py_ssize_t k) except -1:
        """Give the samples of rows slots where they have none."""
        cdef Py_ssize_t i
        cdef bint lacking = False
        for i in range(k):
            lacking |= self._slot_of[self._at[rows[i]]] < 0
        if lacking:
            self._columns(np.array([self._at[rows[i]] for i in range(k)]))
            self._slot_of = self._gram.slot_of
        return 0

    cdef int _make_room(self) except -1:
        """Buffers as long as the factor may grow by one row, and as there are slots."""
        self._factor._reserve(1)
        if self._coef.shape[0] != self._gram.n_slots:
            self._coef = np.zeros(self._gram.n_slots)
        if self._work.shape[0] < self._factor._capacity:
            self._work = np.empty(self._factor._capacity)
            self._slots = np.empty(self._factor._capacity, dtype=np.int64)
        self._slot_of = self._gram.slot_of
        return 0

    def catch_up(self):
        """Bring r up to date where it is not watched."""
        stale = np.ones(self._u.shape[0], dtype=bool)
        stale[np.asarray(self._watched)] = False
        rows = np.flatnonzero(stale)
        if len(rows) == 0:
            return
        at = np.asarray(self._at)
        moved = np.asarray(self._u) - np.asarray(self._u_then)
        changed = np.flatnonzero(moved)
        change = np.zeros(len(rows))
        if len(changed):
            slots = self._columns(at[changed])
            coef = np.bincount(slots, moved[changed], self._gram.n_slots).astype(np.float64)
            self._gram.multiply(coef, change, at[rows])
        r, t = np.asarray(self._r), np.asarray(self._t) - np.asarray(self._t_then)
        r[rows] += change + (self.b - self._b_then) - t[rows]

    cdef bint _is_driven(self, Py_ssize_t i) noexcept nogil:
        return _RISING <= self._role[i] <= _LEAVING

    cdef double _rate(self, Py_ssize_t i) noexcept nogil:
        """How fast u of a row moves by itself."""
        cdef unsigned char role = self._role[i]
        if role == _LOW or role == _PINNED:
            return self._dlo[i]
        if role == _HIGH:
            return self._dhi[i]
        if self._is_driven(i):
            return self._own[i]
        return 0.0

    cdef int _become(self, Py_ssize_t row, unsigned char role) except -1 nogil:
        """Another role for a row; what moves by itself is kept up."""
        cdef double rate = -self._rate(row)
        self._moving -= fabs(rate)
        self._pull -= self._scale[row] * fabs(rate)
        self._driven -= self._is_driven(row)
        self._role[row] = role
        self._moving += fabs(self._rate(row))
        self._pull += self._scale[row] * fabs(self._rate(row))
        rate += self._rate(row)
        if rate == 0.0:
            return 0
        self._need -= rate
        self._most_moving = max(self._most_moving, self._moving + fabs(self._dd))
        self._most_pull = max(self._most_pull, self._pull)
        self._square += rate * (
            2.0 * self._drive[self._place[row]] + rate * self._diagonal[self._at[row]])
        self._column_into(row, &self._column[0])
        axpy(self._watched.shape[0], rate, &self._column[0], &self._drive[0])
        return 0

    cdef int _give_column(self, Py_ssize_t row) except -1 nogil:
        """A slot for a row that never carried weight, and buffers as long as there are slots."""
        with gil:
            self._columns(np.array([self._at[row]]))
            self._make_room()
        return 0

    # -- columns of MARGIN at the watched rows ---------------------------------------------------

    cdef int _keep_columns(self) except -1:
        """Copy those of MARGIN, unless they are too many."""
        cdef Py_ssize_t i, s = self._factor.size, m = self._watched.shape[0]
        self._n_columns = -1
        if m == 0 or (s + 1) * m > self._most_values:
            return 0
        for i in range(s):
            self._slots[i] = self._slot_of[self._at[self._factor._members[i]]]
        kept = np.empty((s + s // 4 + 8, m))
        self._kept = self._values = kept
        self._column_of[:] = -1
        with nogil:
            self._gram.gather_into(
                &self._at_watched[0], m, &self._slots[0], s, &self._values[0, 0], 1, m)
        self._weights = np.empty(len(self._kept))
        self._owner = np.empty(len(self._kept), dtype=np.int64)
        for i in range(s):
            self._owner[i] = self._factor._members[i]
            self._column_of[self._owner[i]] = i
        self._n_columns = s
        return 0

    cdef int _keep_column(self, Py_ssize_t row) except -1 nogil:
        """Copy the column of a row that has joined."""
        if self._n_columns < 0:
            return 0
        if self._n_columns == self._values.shape[0]:
            with gil:
                self._more_columns()
            if self._n_columns < 0:
                return 0
        self._column_into(row, &self._values[self._n_columns, 0])
        self._owner[self._n_columns] = row
        self._column_of[row] = self._n_columns
        self._n_columns += 1
        return 0

    cdef int _more_columns(self) except -1:
        """Room for half as many more, or none for any if they are too many."""
        cdef Py_ssize_t s = self._n_columns, m = self._watched.shape[0]
        if (s + s // 2 + 8) * m > self._most_values:
            self._n_columns = -1
            return 0
        grown = np.empty((s + s // 2 + 8, m))
        grown[:s] = self._kept
        self._kept = self._values = grown
        self._weights = np.empty(len(grown))
        owner = np.empty(len(grown), dtype=np.int64)
        owner[:s] = self._owner
        self._owner = owner
        return 0

    cdef void _release_column(self, Py_ssize_t row) noexcept nogil:
        """Release the column of a row that has left: the last takes its place."""
        cdef Py_ssize_t place, last = self._n_columns - 1
        if self._n_columns < 0:
            return
        place = self._column_of[row]
        if place < last:
            memcpy(&self._values[place, 0], &self._values[last, 0],
                   self._watched.shape[0] * sizeof(double))
            self._owner[place] = self._owner[last]
            self._column_of[self._owner[place]] = place
        self._column_of[row] = -1
        self._n_columns = last

    cdef int _column_into(self, Py_ssize_t row, double* out) except -1 nogil:
        """out = K[watched, row]"""
        cdef Py_ssize_t slot
        if self._n_columns >= 0 and self._column_of[row] >= 0:
            memcpy(out, &self._values[self._column_of[row], 0],
                   self._watched.shape[0] * sizeof(double))
            return 0
        if self._slot_of[self._at[row]] < 0:
            self._give_column(row)
        slot = self._slot_of[self._at[row]]
        self._coef[slot] = 1.0
        self._product(out)
        self._coef[slot] = 0.0
        return 0

    cdef int _margin_product(self, const double* w, double* out) except -1 nogil:
        """out = K[watched, MARGIN] @ w"""
        cdef Py_ssize_t i, s = self._factor.size
        cdef long long* margin = self._factor._members
        cdef Product job
        if self._n_columns < 0:
            for i in range(s):
                self._coef[self._slot_of[self._at[margin[i]]]] += w[i]
            self._product(out)
            for i in range(s):
                self._coef[self._slot_of[self._at[margin[i]]]] = 0.0
            return 0
        for i in range(s):
            self._weights[self._column_of[margin[i]]] = w[i]
        job.values, job.weights, job.out = &self._values[0, 0], &self._weights[0], out
        job.n, job.columns, job.line = self._watched.shape[0], s, self._watched.shape[0]
        job.step = max(LEAST_ROWS, PART // s)
        share(some_rows, &job, (job.n + job.step - 1) // job.step)
        return 0

    cdef int _product(self, double* out) except -1 nogil:
        """K[watched, slots] @ coef"""
        if self._watched.shape[0] == 0:
            return 0
        if self._gram.product(
                &self._coef[0], &self._at_watched[0], self._watched.shape[0], out) < 0:
            with gil:
                raise MemoryError()
        return 0
