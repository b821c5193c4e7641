# SPDX-License-Identifier: BSD-3-Clause
"""What a round of exchange does to the rows of one machine, in place.

`engine/exchange.py` says which step comes when; here is each step, over plain arrays:

    settle     rounds as long as nothing stands in the way; each is
    survey     the face of the present margin, and residuals there (`survey`)
    exchange   violators: who among them violates
               propose: their own box problem
               place: where each of them goes
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc

import numpy as np

from adiabat._core.box cimport descend_in_box
from adiabat._core.survey cimport Survey, taken

cdef enum:
    SWEEPS = 60
    CLAIMED = 1 << 15   # values of new columns that cost no more than to ask for a few of them
# A curvature below minus this part of the diagonal is a fault of the kernel.
NEGATIVE = 1e-7
cdef double FAULT = -NEGATIVE


cdef struct Block:
    # k rows that are to move, and MARGIN, s rows, as it stands: samples and slots of these, kernel
    # values of the rows with MARGIN (k, s) and among themselves (k, k), H, its reference by row
    Py_ssize_t k, s
    long long* at
    long long* slot
    long long* margin
    long long* column
    double* cross
    double* own
    double* H
    double* scale
    void* room


cdef class Rounds(Survey):
    """Rounds of exchange on the arrays of one machine."""

    cdef double[:, ::1] _kept  # u, r, and the change of u
    cdef double _kept_b, _kept_delta_b
    cdef readonly Py_ssize_t made  # rounds, by the last `settle`
    cdef readonly bint is_open     # the last of them was surveyed, and no violator has moved yet
    cdef readonly bint anchored    # a margin holds b, as of its survey

    def settle(self, watched, near, const double[::1] accuracy, double d, bint rested,
               Py_ssize_t most, Py_ssize_t fewest, Py_ssize_t widest, double flat):
        """Rounds in blocks, `most` of them, as long as each goes as it should.

        Returns True once no row violates. It ends before the violators of a round move if nobody
        holds b, the objective has risen, or weights have doubled: then r may be less accurate; and
        after they have if a curvature below 0 was met. A round takes half as many violators as
        there are rows in MARGIN, but not fewer than `fewest`, nor more than the `widest`.
        """
        cdef double strength = 2.0 * self.strength
        self.made, self.least, self.is_open = 0, 0.0, False
        while self.made < most and self.least >= FAULT:
            PyErr_CheckSignals()
            self.is_open, self.made = True, self.made + 1
            self.anchored = self.survey(watched, near, d, rested, False, False)
            if not self.anchored or self.made > 1 and self.gain > 0.0 or (
                    not rested and self.strength > strength):
                return False
            rested, self.is_open = False, False
            if not self._exchange_most(
                    accuracy, min(widest, max(fewest, self._factor.size // 2)), flat):
                return True
        return False

    def keep(self, double b):
        """Keep u, r and this b, and the changes since the last look."""
        cdef Py_ssize_t n = self._u.shape[0]
        self._kept, self._kept_b, self._kept_delta_b = np.empty((3, n)), b, self.delta_b
        self._kept[0], self._kept[1], self._kept[2] = self._u, self._r, self._delta

    def come_back(self):
        """Go back to what was kept; returns b."""
        self._u[:], self._r[:], self._delta[:] = self._kept[0], self._kept[1], self._kept[2]
        self.delta_b = self._kept_delta_b
        return self._kept_b

    def violators(self, rows, const double[::1] accuracy):
        """Those among rows that violate by more than their accuracy, and by how much, scaled."""
        cdef Py_ssize_t count
        self._take(rows)
        count = self._violators(accuracy)
        return np.array(self._found[:count]), np.array(self._amount[:count])

    cdef Py_ssize_t _violators(self, const double[::1] accuracy) noexcept:
        """List those among the rows looked at; returns how many."""
        cdef Py_ssize_t i, row, count = 0
        cdef double violation
        with nogil:
            for i in range(self._n_rows):
                row = self._rows[i]
                violation = fabs(self._r[row])
                if violation <= accuracy[row]:
                    continue
                if self._u[row] > self._lo[row] if self._r[row] > 0.0 else (
                        self._u[row] < self._hi[row]):
                    self._found[count] = row
                    self._amount[count] = violation / self._scale[row]
                    count += 1
        return count

    def exchange(self, const double[::1] accuracy, Py_ssize_t width, double flat):
        """Move those that violate most, `width` of them, to a bound or into MARGIN.

        Returns whether any row violates. `least` is the least curvature that was met, relative to
        the diagonal: S_ii / scale_i of the rows, and the pivots of those that joined.
        """
        return bool(self._exchange_most(accuracy, width, flat))

    cdef bint _exchange_most(self, const double[::1] accuracy, Py_ssize_t width, double flat
                             ) except -1:
        cdef Py_ssize_t count = self._violators(accuracy)
        self.least = 0.0
        if count == 0:
            return False
        if count > width:
            most = np.argpartition(-np.asarray(self._amount[:count]), width - 1)[:width]
            np.asarray(self._found)[:width] = np.asarray(self._found)[most]
            count = width
        self._exchange(&self._found[0], count, flat)
        return True

    cdef int _exchange(self, const long long* rows, Py_ssize_t k, double flat) except -1:
        cdef Block b
        cdef Py_ssize_t i, count, n_joined
        cdef double* new
        cdef double* shift
        cdef long long* between
        cdef long long* joined
        cdef unsigned char* did
        cdef void* room = taken(malloc(k * 2 * (sizeof(double) + sizeof(long long)) + k))
        new, shift = <double*> room, <double*> room + k
        between = <long long*> (new + 2 * k)
        joined, did = between + k, <unsigned char*> (between + 2 * k)
        b.room = NULL
        try:
            self._open(&b, rows, k)
            if self.least < FAULT:
                return 0
            count = self._propose(&b, rows, flat, new, between)
            for i in range(count):
                joined[i] = rows[between[i]]
            self._factor._admit(between, joined, count, did)
            self.least = min(self.least, self._factor.least_pivot)
            n_joined = 0
            for i in range(count):
                if did[i]:
                    joined[n_joined], between[n_joined] = joined[i], between[i]
                    n_joined += 1
            self._enter(joined, n_joined)
            with nogil:
                self._place(&b, rows, new, between, n_joined, shift)
        finally:
            free(b.room)
            free(room)
        return 0

    cdef int _enter(self, const long long* rows, Py_ssize_t count) except -1:
        """Rows that joined the factor are in MARGIN, and have columns."""
        cdef Py_ssize_t i
        for i in range(count):
            self._inside[rows[i]] = True
        return self._claim(rows, count)

    cdef int _open(self, Block* b, const long long* rows, Py_ssize_t k) except -1:
        """What the objective's curvature is when rows move and MARGIN answers.

        H = S + p'p / z'z (`Factor.prepare`), the diagonal that it is compared with, and in `least`
        the least S_ii as a part of that.
        """
        cdef Py_ssize_t i, j, lacking = 0, s = self._factor.size
        cdef double border
        cdef double[:, ::1] own
        b.room = taken(malloc(
            (k * s + 2 * k * k + k) * sizeof(double) + 2 * (k + s) * sizeof(long long)))
        b.k, b.s = k, s
        b.cross = <double*> b.room
        b.own, b.H, b.scale = b.cross + k * s, b.cross + k * s + k * k, b.cross + k * s + 2 * k * k
        b.at = <long long*> (b.scale + k)
        b.slot, b.margin, b.column = b.at + k, b.at + 2 * k, b.at + 2 * k + s
        for i in range(k):
            b.at[i] = self._at[rows[i]]
            lacking += self._slot_of[b.at[i]] < 0
        if lacking and lacking * self._gram.n_lines <= CLAIMED:
            self._claim(rows, k)
            lacking = 0
        for i in range(k):
            b.slot[i] = self._slot_of[b.at[i]]
        for j in range(s):
            b.margin[j] = self._factor._members[j]
            b.column[j] = self._slot_of[self._at[b.margin[j]]]
        if self._samples.in_lines or lacking:
            at = np.array(<long long[:k]> b.at)
            self._samples.draw(at)
            if lacking:
                own = self._samples.among(at)
                for i in range(k):
                    for j in range(k):
                        b.own[i * k + j] = own[i, j]
        with nogil:
            self._gram.gather_into(b.at, k, b.column, s, b.cross, s, 1)
            if lacking == 0:
                self._gram.gather_into(b.at, k, b.slot, k, b.own, k, 1)
        self._factor._prepare(b.cross, b.own, k)
        border = self._factor._border()
        self.least = INFINITY
        for i in range(k):
            b.scale[i] = b.own[i * k + i] + self._factor.shift
            self.least = min(self.least, self._factor._S[i * k + i] / b.scale[i])
        with nogil:
            for i in range(k):
                for j in range(k):
                    b.H[i * k + j] = self._factor._S[i * k + j]
                    if s:
                        b.H[i * k + j] += self._factor._p[i] * (self._factor._p[j] / border)
        return 0

    cdef Py_ssize_t _propose(self, Block* b, const long long* rows, double flat, double* new,
                             long long* between) except -1:
        """Where the box problem of rows, min 1/2 d'Hd + r'd, takes their u.

        Notes the new u, and which of the rows end between their bounds; returns how many do.
        """
        cdef Py_ssize_t i, row, count = 0, k = b.k
        cdef double* r
        cdef double* below
        cdef double* above
        cdef double* least
        cdef void* room = taken(malloc(4 * k * sizeof(double)))
        r = <double*> room
        below, above, least = r + k, r + 2 * k, r + 3 * k
        with nogil:
            for i in range(k):
                row = rows[i]
                r[i], least[i] = self._r[row], flat * b.scale[i]
                below[i], above[i] = self._lo[row] - self._u[row], self._hi[row] - self._u[row]
            descend_in_box(k, b.H, r, below, above, SWEEPS, least, new)
            for i in range(k):
                row = rows[i]
                if new[i] <= below[i]:
                    new[i] = self._lo[row]
                elif new[i] >= above[i]:
                    new[i] = self._hi[row]
                else:
                    new[i] += self._u[row]
                if self._lo[row] < new[i] < self._hi[row]:
                    between[count] = i
                    count += 1
        free(room)
        return count

    cdef void _place(self, const Block* b, const long long* rows, const double* new,
                     const long long* joined, Py_ssize_t n_joined, double* shift) noexcept nogil:
        """Give rows their new u, but for rows[joined], which are in MARGIN: its system places them.

        `shift` is room for how far each of them moves.
        """
        cdef Py_ssize_t i, j, k = b.k, s = b.s
        cdef double total
        for i in range(k):
            shift[i] = new[i] - self._u[rows[i]]
        for j in range(n_joined):
            shift[joined[j]] = 0.0
        for i in range(k):
            if shift[i] == 0.0:
                continue
            self._u[rows[i]] = new[i]
            self._delta[rows[i]] += shift[i]
            for j in range(s):
                self._residual[b.margin[j]] += b.cross[i * s + j] * shift[i]
        for j in range(n_joined):
            total = self._r[rows[joined[j]]]
            for i in range(k):
                total += b.own[joined[j] * k + i] * shift[i]
            self._residual[rows[joined[j]]] = total

    # ---- one at a time --------------------------------------------------------------------------

    def step_aside(self, const double[::1] accuracy, double flat):
        """Move the row that violates most into MARGIN or, if it depends on MARGIN, with it to the
        first bound. Returns whether any row violates; `least` is the curvature that was met.

        In the second case f hardly changes on the way (CP01's kappa is about 0): the row and the
        margin rows exchange weight until one of them meets a bound.
        """
        cdef Py_ssize_t i, best = 0, count = self._violators(accuracy)
        cdef Block b
        cdef long long row, first = 0
        cdef unsigned char did
        self.least = 0.0
        if count == 0:
            return False
        for i in range(1, count):
            if self._amount[i] > self._amount[best]:
                best = i
        row = self._found[best]
        b.room = NULL
        try:
            self._open(&b, &row, 1)
            if self.least < FAULT:
                return True
            if self.least > self._factor.dependent:
                self._factor._admit(&first, &row, 1, &did)
                self.least = self._factor.least_pivot
                if did:
                    self._enter(&row, 1)
                self._residual[row] = self._r[row]
            else:
                self._trade(&b, row, flat)
        finally:
            free(b.room)
        return True

    cdef int _trade(self, Block* b, Py_ssize_t row, double flat) except -1:
        """A row that depends on MARGIN moves, and MARGIN answers, up to the first bound."""
        cdef Py_ssize_t i, m, count = 0, s = b.s
        cdef double sign = -1.0 if self._r[row] > 0.0 else 1.0
        cdef double step, db, part = 1.0, new
        cdef double* du = b.cross  # which is not needed again
        step = self._hi[row] - self._u[row] if sign > 0.0 else self._u[row] - self._lo[row]
        if b.H[0] > flat * b.scale[0]:
            step = min(step, fabs(self._r[row]) / b.H[0])
        for i in range(s):
            du[i] *= -sign
        with nogil:
            db = self._factor.solve_in_place(du, -sign)
        for i in range(s):
            part = min(part, self._reach(b.margin[i], step * du[i]))
        step *= part
        new = self._snap(row, self._u[row] + sign * step)
        self._delta[row] += new - self._u[row]
        self._u[row] = new
        for i in range(s):
            m = b.margin[i]
            new = self._snap(m, self._u[m] + step * du[i])
            self._delta[m] += new - self._u[m]
            self._u[m] = new
            if new == self._lo[m] or new == self._hi[m]:
                b.column[count] = i  # nor are the slots
                count += 1
        self.b += step * db
        self.delta_b += step * db
        return self._leave(b.column, count)
