# SPDX-License-Identifier: BSD-3-Clause
"""The first half of a round: where the rows of one machine stand, in place.

    face     solve the margin system; who leaves its box stops at its edge
    watch    who is to be looked at
    look     their residuals brought up to date; what the objective gained

Two arrays belong to the rounds themselves: `delta`, the change of u since the residuals r were
last brought up, and `residual`, r of MARGIN rows kept up within a round.

Rounds change r less and less, so that of the rows first watched only those are looked at again
that are near enough to r = 0 for the next change; the judge looks at all of them in the end.

Invariant: between steps, for the rows looked at, r + K delta (+ the change of b) is their residual.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from adiabat._core.factor cimport Factor
from adiabat._core.sums cimport sizes_of, strength_in, sum_of

# What sum u may differ from d by rounding, as a part of the sum of |u|: bounds are rounded.
cdef double SLACK = 2.0 ** -52
# If less than this part of the margin stays, its factor is made anew.
cdef double MOST_STAY = 0.75
# Rows are looked at again up to so many times the last changes of r from r = 0; the next changes
# are smaller, mostly by far.
cdef double REACH = 4.0


cdef void* taken(void* room) except NULL:
    """Memory that was asked for, if it was given."""
    if room == NULL:
        raise MemoryError()
    return room


cdef class Survey:
    """The arrays of one machine while it is being solved."""

    def __init__(self, samples, Py_ssize_t n, double at_bound, refactor):
        """A bound is reached within `at_bound` of the box, or of the largest weight: C is huge.

        Weights are compared by what they do to f and to their sum: one of an outlier is small, and
        means as much. What its own f would show is never taken for 0 (`_room`).

        `samples` have the kernel columns; `refactor(rows)` makes the factor anew over rows, and
        returns those that depend on the others.
        """
        self._samples, self._gram, self._refactor = samples, samples.gram, refactor
        self._at_bound = at_bound
        cdef double[:, ::1] doubles = np.zeros((6, n))
        cdef long long[:, ::1] places = np.empty((2, n), dtype=np.int64)
        self._delta, self._residual, self._pending = doubles[0], doubles[1], doubles[2]
        self._amount, self._unseen, self._scale = doubles[3], doubles[4], doubles[5]
        self._rows, self._found = places[0], places[1]
        self._unseen[:] = INFINITY
        self.rms_change = INFINITY

    @property
    def delta(self):
        """The change of u since the last look."""
        return np.asarray(self._delta)

    @property
    def residual(self):
        """r of MARGIN rows."""
        return np.asarray(self._residual)

    def bind(self, Factor factor, u, lo, hi, r, at, in_margin, root):
        """Work on these arrays from now on; `root` is sqrt k(x, x), by row."""
        cdef Py_ssize_t i
        self._factor = factor
        self._u, self._lo, self._hi, self._r = u, lo, hi, r
        self._at, self._inside, self._root = at, in_margin.view(np.uint8), root
        self._slot_of = self._gram.slot_of
        for i in range(self._root.shape[0]):  # what r of a row moves by when w and b do
            self._scale[i] = sqrt(self._root[i] * self._root[i] + factor.shift)

    def set_unseen(self, double[::1] unseen):
        """What a row's own f may change by, so that nobody sees it."""
        self._unseen = unseen

    def measure(self, double d):
        """Sum u against d, and the size of the weights; whether the sum is right."""
        return bool(self._measure(d))

    cdef bint _measure(self, double d) noexcept nogil:
        cdef Py_ssize_t i, n = self._u.shape[0]
        cdef double scaled, largest = 0.0
        self.missing, self.weight, self._largest, self.strength = d, 0.0, 0.0, 0.0
        if n:
            # rounding in this sum would be taken for something to mend
            self.missing = d - sum_of(n, &self._u[0])
            self.weight = sizes_of(n, &self._u[0]).total
            for i in range(n):
                scaled = self._scale[i] * fabs(self._u[i])
                largest = scaled if scaled > largest else largest
            self.strength, self._largest = strength_in(n, &self._root[0], &self._u[0]), largest
        return fabs(self.missing) <= SLACK * (fabs(d) + self.weight) + 1e-300

    cdef double _room(self, Py_ssize_t row) noexcept nogil:
        cdef double room = self._hi[row] - self._lo[row], root = self._root[row]
        if self._scale[row] * room > self._largest:
            room = self._largest / self._scale[row]
        room *= self._at_bound
        # one heavy weight among outliers is largest, and theirs are all that their own f has
        if root * root * room > self._unseen[row]:
            room = self._unseen[row] / (root * root)
        return room

    def snap_to_bounds(self, const long long[::1] rows, const double[::1] values):
        """Values of rows, those within rounding of a bound put there."""
        cdef Py_ssize_t i
        out = np.empty(rows.shape[0])
        cdef double[::1] new = out
        for i in range(rows.shape[0]):
            new[i] = self._snap(rows[i], values[i])
        return out

    cdef double _snap(self, Py_ssize_t row, double value) noexcept nogil:
        cdef double room = self._room(row)
        if value <= self._lo[row] + room:
            return self._lo[row]
        if value >= self._hi[row] - room:
            return self._hi[row]
        return value

    # ---- before the first round -----------------------------------------------------------------

    def enter_boxes(self):
        """Bring every u into its box. Rows moved by it, and those whose box is a point, leave
        MARGIN; the others are told at the start of the rounds.
        """
        cdef Py_ssize_t i, n_moved = 0, n_leaving = 0
        cdef double new
        cdef long long* moved = &self._found[0] if self._u.shape[0] else NULL
        cdef double* amount = &self._amount[0] if self._u.shape[0] else NULL
        for i in range(self._u.shape[0]):
            if self._lo[i] <= self._u[i] <= self._hi[i]:
                n_leaving += self._inside[i] if self._lo[i] == self._hi[i] else 0
                continue
            new = self._lo[i] if self._u[i] < self._lo[i] else self._hi[i]
            moved[n_moved], amount[n_moved] = i, new - self._u[i]
            self._delta[i] += amount[n_moved]
            self._u[i] = new
            n_leaving += self._inside[i]
            n_moved += 1
        if n_leaving:
            self._leave_boxes()
        if n_moved and self._factor.size:
            self._claim(moved, n_moved)
            self._answer(moved, amount, n_moved, &self._pending[0])

    cdef int _leave_boxes(self) except -1:
        """MARGIN rows that have just been moved into their box, or whose box is a point, leave."""
        cdef long long* members = self._factor._members
        cdef Py_ssize_t i, count = 0, s = self._factor.size
        cdef long long* gone = <long long*> taken(malloc(s * sizeof(long long)))
        try:
            for i in range(s):
                if self._delta[members[i]] != 0.0 or self._lo[members[i]] == self._hi[members[i]]:
                    gone[count] = i
                    count += 1
            self._leave(gone, count)
        finally:
            free(gone)
        return 0

    def start(self):
        """r of MARGIN rows, and what is still to be added to it, is what the rounds start from."""
        cdef const long long* margin = self._factor._members
        cdef Py_ssize_t i, row
        self.rms_change = INFINITY
        for i in range(self._factor.size):
            row = margin[i]
            self._residual[row] = self._r[row] + self._pending[row]
            self._pending[row] = 0.0

    def at_rest(self, const double[::1] accuracy):
        """Whether the margin has nothing to answer for yet."""
        cdef const long long* margin = self._factor._members
        cdef Py_ssize_t i, s = self._factor.size
        cdef bint rest = s > 0
        for i in range(s if rest else 0):
            rest = rest and fabs(self._residual[margin[i]]) <= accuracy[margin[i]]
        for i in range(self._delta.shape[0] if rest else 0):
            rest = rest and self._delta[i] == 0.0
        return bool(rest)

    cpdef bint survey(self, watched, near, double d, bint rested, bint singly,
                      bint everyone) except -1:
        """The optimum on the face of the present margin, and residuals of watched rows there.

        Returns False if no margin is left to hold b. Where it has `rested` nothing has moved.
        `singly` all rows stop where the first one meets its bound. Of the rows watched those that
        are `near` are looked at, or if so said everyone.
        """
        cdef bint holds_b
        if rested:
            holds_b = self._factor._holds_b()
        else:
            holds_b = self.face(d, singly)
        self.watch(watched, near, INFINITY if everyone else REACH * self.rms_change)
        self.gain = 0.0 if rested else self._look()
        return holds_b

    # ---- 1. the face ----------------------------------------------------------------------------

    cpdef int face(self, double d, bint stops) except -1:
        """The optimum on the face of the present margin; 0 if no margin is left to hold b.

        Rows that meet a bound leave MARGIN, and the others answer. With `stops` all rows stop
        where the first one does, once the sum is right.
        """
        cdef bint feasible, holds_b = False
        cdef Py_ssize_t i, count, s = self._factor.size
        cdef long long* gone
        cdef long long* leaving
        cdef double* du
        cdef double* short_by
        if s == 0:
            return 0
        cdef void* room = taken(malloc(s * 2 * (sizeof(long long) + sizeof(double))))
        gone, du = <long long*> room, <double*> (<long long*> room + 2 * s)
        leaving, short_by = gone + s, du + s
        try:
            while self._factor.size:
                feasible, holds_b = self._measure(d), self._factor._holds_b()
                with nogil:
                    count = self._solve_face(stops and feasible, not holds_b, du, gone, short_by)
                if count == 0:
                    return holds_b
                for i in range(count):
                    leaving[i] = self._factor._members[gone[i]]
                self._leave(gone, count)
                self._answer(leaving, short_by, count, &self._residual[0])
        finally:
            free(room)
        return 0

    def leave_margin(self, const long long[::1] positions):
        """Take the rows at positions (ascending) of the factor out of MARGIN."""
        cdef long long[::1] places = np.array(positions)
        if places.shape[0]:
            self._leave(&places[0], places.shape[0])

    cdef int _leave(self, long long* positions, Py_ssize_t count) except -1:
        """The same; where few rows stay, the factor is made anew. `positions` are overwritten."""
        cdef const long long* members = self._factor._members
        cdef Py_ssize_t i, s = self._factor.size
        for i in range(count):
            self._inside[members[positions[i]]] = False
        if s - count >= MOST_STAY * s:
            if count:
                with nogil:
                    self._factor._drop(positions, count)
            return 0
        gone = np.asarray(<long long[:count]> positions)
        for i in self._refactor(np.delete(self._factor.rows, gone)):
            self._residual[i] = 0.0
        return 0

    cdef Py_ssize_t _solve_face(self, bint cut, bint held, double* du, long long* out,
                                double* short_by) noexcept nogil:
        """One solve of the margin system, after `measure`.

        Notes the positions in the factor of rows that met a bound, and by how much these moved
        less than the solution says. With `cut` all stop where the first one does. With `held` b
        stays, and so does sum u but for rounding.
        """
        cdef const long long* margin = self._factor._members
        cdef Py_ssize_t i, row, s = self._factor.size, n_out = 0
        cdef double db = 0.0, part = 1.0, reach, step, new
        for i in range(s):
            du[i] = -self._residual[margin[i]]
        if held:
            self._factor.solve_held(du)
        else:
            db = self._factor.solve_in_place(du, self.missing)
        if cut:
            for i in range(s):
                reach = self._reach(margin[i], du[i])
                if reach < part:
                    part = reach
        for i in range(s):
            row = margin[i]
            step = part * du[i]
            new = self._snap(row, self._u[row] + step)
            self._delta[row] += new - self._u[row]
            if new == self._lo[row] or new == self._hi[row]:
                out[n_out] = i
                short_by[n_out] = new - self._u[row] - step
                n_out += 1
            self._u[row] = new
            self._residual[row] *= 1.0 - part
        self.b += part * db
        self.delta_b += part * db
        return n_out

    cdef double _reach(self, Py_ssize_t row, double du) noexcept nogil:
        """The part of du, at least 0, that takes a row to its bound."""
        cdef double part
        if du == 0.0:
            return 1.0
        part = ((self._hi[row] if du > 0.0 else self._lo[row]) - self._u[row]) / du
        return part if part > 0.0 else 0.0

    cdef int _answer(self, const long long* moved, const double* amounts, Py_ssize_t count,
                     double* residual) except -1:
        """residual += K du at MARGIN rows, of rows with columns that moved by amounts."""
        cdef const long long* margin = self._factor._members
        cdef Py_ssize_t i, s = self._factor.size, n_slots = self._gram.n_slots
        cdef double* coef
        cdef double* change
        cdef long long* at
        cdef int status
        if s == 0:
            return 0
        coef = <double*> taken(calloc(n_slots + s, sizeof(double)))
        change = coef + n_slots
        at = <long long*> malloc(s * sizeof(long long))
        status = -1
        with nogil:
            if at != NULL:
                for i in range(count):
                    coef[self._slot_of[self._at[moved[i]]]] += amounts[i]
                for i in range(s):
                    at[i] = self._at[margin[i]]
                status = self._gram.product(coef, at, s, change)
                for i in range(s if status == 0 else 0):
                    residual[margin[i]] += change[i]
        free(at)
        free(coef)
        if status < 0:
            raise MemoryError()
        return 0

    # ---- 2. the look ----------------------------------------------------------------------------

    @property
    def rows(self):
        """The rows that were looked at."""
        return np.array(self._rows[: self._n_rows])

    cpdef int watch(self, watched, near, double reach) except -1:
        """Choose the rows to look at, outside MARGIN: those `near` with |r| up to `reach`, scaled.

        Rows beyond are not near any more; rows that moved are, and are watched from now on.
        """
        cdef unsigned char[::1] of_old = watched.view(np.uint8), look = near.view(np.uint8)
        cdef Py_ssize_t i, count = 0
        cdef long long[::1] out = self._rows
        cdef const double[::1] delta = self._delta, r = self._r, scale = self._scale
        cdef const unsigned char[::1] inside = self._inside
        cdef unsigned char moved, seen
        with nogil:
            # without branches, whose outcome nobody can foresee
            for i in range(delta.shape[0]):
                moved = delta[i] != 0.0
                of_old[i] |= moved
                seen = moved | (look[i] & (fabs(r[i]) <= reach * scale[i]))
                look[i] = seen
                out[count] = i
                count += seen & (inside[i] ^ 1)
        self._n_rows = count
        return 0

    def look(self, rows):
        """Bring r of rows up to date with the changes of u and b since the last look.

        Rows that moved are given columns. Returns the change of the objective, by the trapezoid
        rule on its gradient r.
        """
        self._take(rows)
        return self._look()

    cdef int _take(self, const long long[::1] rows) except -1:
        """Look at these rows."""
        self._n_rows = rows.shape[0]
        self._rows[: self._n_rows] = rows
        return 0

    cdef double _look(self) except? -1:
        cdef const long long* margin = self._factor._members
        cdef long long* movers = &self._found[0] if self._found.shape[0] else NULL
        cdef Py_ssize_t i, row, n_movers, count = self._n_rows, n_slots
        cdef double gain = 0.0, squares = 0.0, db = self.delta_b
        cdef double* coef
        cdef double* change
        cdef long long* at
        cdef int status = -1
        self.delta_b = 0.0
        n_movers = self._list_moved(movers)
        if n_movers == 0 and db == 0.0:
            for i in range(self._factor.size):
                self._r[margin[i]] = self._residual[margin[i]]
            return 0.0
        self._claim(movers, n_movers)
        n_slots = self._gram.n_slots
        coef = <double*> taken(calloc(n_slots + count, sizeof(double)))
        at = <long long*> malloc(max(1, count) * sizeof(long long))
        change = coef + n_slots
        with nogil:
            if at != NULL:
                for i in range(n_movers):
                    coef[self._slot_of[self._at[movers[i]]]] += self._delta[movers[i]]
                    gain += self._r[movers[i]] * self._delta[movers[i]]
                for i in range(count):
                    at[i] = self._at[self._rows[i]]
                status = self._gram.product(coef, at, count, change)
            if status == 0:
                for i in range(count):
                    row = self._rows[i]
                    self._r[row] += change[i] + db
                    if self._lo[row] < self._hi[row]:  # one that leaves changes most, never comes
                        squares += ((change[i] + db) / self._scale[row]) ** 2
                self.rms_change = sqrt(squares / max(1, count))
                for i in range(self._factor.size):
                    self._r[margin[i]] = self._residual[margin[i]]
                for i in range(n_movers):
                    gain += self._r[movers[i]] * self._delta[movers[i]]
                    self._delta[movers[i]] = 0.0
        free(at)
        free(coef)
        if status < 0:
            raise MemoryError()
        return 0.5 * gain

    cdef Py_ssize_t _list_moved(self, long long* movers) noexcept nogil:
        """List the rows whose u changed since the last look."""
        cdef Py_ssize_t i, count = 0
        for i in range(self._delta.shape[0]):
            movers[count] = i
            count += self._delta[i] != 0.0
        return count

    cdef int _claim(self, const long long* rows, Py_ssize_t count) except -1:
        """Give the samples of rows columns where they have none."""
        cdef Py_ssize_t i, lacking = 0
        for i in range(count):
            lacking += self._slot_of[self._at[rows[i]]] < 0
        if lacking:
            self._samples.slots(np.asarray(self._at)[np.asarray(<long long[:count]> rows)])
            self._slot_of = self._gram.slot_of
        return 0
