# SPDX-License-Identifier: BSD-3-Clause
"""One straight motion of problem (P), breakpoint by breakpoint.

The problem moves at constant rates, bounds by dlo and dhi, targets by dt, the sum by dd, and the
rows that are driven by du. All other rows answer. A row at a bound moves with it, and MARGIN keeps
its r at 0 through its bordered system (CP01 (3)-(9), KT09 (5)-(10)):

    K_MM du + db 1 = dt_M - K_MA du_A,    1'du = dd - 1'du_A,    dr = K du + db - dt

where A are all the rows that move by themselves. K du_A is kept up from breakpoint to breakpoint
(`moving`), so that a stretch reads the columns of MARGIN alone. It ends where a row meets its
condition (`ratio`), or at the arrival.

A RESTING row depends on MARGIN and has r = 0 by itself. Where it no longer has (a row of MARGIN
left, or the targets move apart) it joins, or is traded, at once.
"""

from libc.math cimport INFINITY, fabs, sqrt

import numpy as np

from adiabat._core.moving cimport Moving
from adiabat._core.ratio cimport (
    _HIGH, _LOW, _MARGIN, _PINNED, _RESTING, next_breakpoint,
)

# Rates of r below this part of the largest, or of the sums they come from, are rounding; all are
# compared relative to the scale of their row.
cdef double STILL = 1e-11
# A sum of rates of u below this part of their sizes is 0; so is the rate at which a weight nears
# a bound that moves with it.
cdef double BALANCED = 1e-14
# A bound is reached within this part of the box, or of the largest weight.
cdef double AT_BOUND = 1e-14
# Rounding of |dw|^2, relative to the terms it is the sum of.
cdef double ROUNDING = 1e-12
# Less than this part of a motion is no way to go: weights would move by less than they round.
cdef double ARRIVED = 1e-15

EVENTS = ("start", "arrival", "to bound", "to margin", "entered", "traded", "decided", "look")
cdef enum:
    _START = 0
    _ARRIVAL = 1
    _TO_BOUND = 2
    _TO_MARGIN = 3
    _ENTERED = 4
    _TRADED = 5
    _DECIDED = 6
    _LOOK = 7


cdef class Motion(Moving):
    """A machine on one straight motion."""

    cdef readonly double remaining         # of the motion, 1 at its start
    cdef readonly double eta               # of the last stretch, as a part of what remained
    cdef readonly double db                # of the last stretch
    cdef readonly Py_ssize_t row           # that ended it, -1 at the arrival
    cdef readonly Py_ssize_t breakpoints
    cdef readonly Py_ssize_t idle          # stretches since the last advance
    cdef int _event
    cdef Py_ssize_t _asked                 # a row of which only the sign of f is asked, or -1

    def __init__(self, *rows):
        super().__init__(*rows)
        self.remaining, self.row, self._event, self._asked = 1.0, -1, _START, -1

    @property
    def event(self):
        """What ended the last stretch."""
        return EVENTS[self._event]

    @property
    def done(self):
        """Whether nothing is left that moves: at the arrival, or before it."""
        return self.remaining <= ARRIVED or not (self._driven or self._problem_moves)

    @property
    def du(self):
        """How fast u of MARGIN moved in the last stretch; 0 for all other rows."""
        return np.asarray(self._du)

    def ask(self, Py_ssize_t row):
        """Stop where f of a driven row changes its sign."""
        self._asked = row

    # -- stretches -------------------------------------------------------------------------------

    def run(self, Py_ssize_t stretches, Py_ssize_t patience):
        """Go on for so many stretches, to the end, or until idle for a multiple of `patience`.

        Returns whether there is a way on: without MARGIN b may have nowhere to go.
        """
        cdef int way
        with nogil:
            way = self._run(stretches, patience)
        return bool(way)

    cdef int _run(self, Py_ssize_t stretches, Py_ssize_t patience) except -1 nogil:
        while stretches > 0:
            stretches -= 1
            self.eta = self._stretch()
            if self.eta == INFINITY:
                return 0
            if self._event == _LOOK:
                with gil:
                    self.catch_up()
                    self._n_watch *= 2
                    self._watch()
                stretches += 1
                continue
            self.idle = self.idle + 1 if self.eta <= 0.0 else 0
            if self.row < 0 or self._event == _DECIDED:
                return 1
            self.breakpoints += 1
            self._meet(self.row)
            if self._factor.size == 0:
                self._anchor()
            if self.idle and self.idle % patience == 0 or not (
                    self._driven or self._problem_moves):
                return 1
        return 1

    cdef double _stretch(self) except -2 nogil:
        """To the next breakpoint; the part gone of what remained (of b alone: the step)."""
        cdef double db = 0.0, speed = 1.0, pull = 0.0, most = 0.0, step, still, limit, horizon
        cdef Py_ssize_t i, k, s = self._factor.size, m = self._watched.shape[0]
        cdef long long* margin = self._factor._members
        cdef bint alone = s == 0 and fabs(self._need) > BALANCED * self._most_moving
        for k in range(m):
            self._du[self._watched[k]] = 0.0
        if alone:
            # b moves until a row is free: up, if weight is to be given away
            db = 1.0 if self._need < 0.0 else -1.0
            for k in range(m):
                self._dr[k] = db
            speed = 1.0 / sqrt(self._factor.shift)
        else:
            db = self._answer(s, &speed)
            for k in range(m):
                self._dr[k] += self._drive[k] + db - self._dt[self._watched[k]]
            for i in range(s):
                self._dr[self._place[margin[i]]] = 0.0
                pull += self._scale[margin[i]] * fabs(self._du[margin[i]])
            pull += self._pull
        for k in range(m):
            most = max(most, fabs(self._dr[k]) / self._scale[self._watched[k]])
        still = STILL * (most + pull)
        self.row = self._slipping(still)
        self._event = _TRADED
        step = 0.0
        if self.row < 0:
            limit = INFINITY if alone else self.remaining
            horizon = (self._horizon - self._drift) / speed
            step, self.row = next_breakpoint(
                self._watched, self._dr, self._u, self._du, self._r, self._lo, self._dlo,
                self._hi, self._dhi, self._role, self._scale,
                INFINITY if alone else BALANCED * (pull + self._most_pull), still,
                min(limit, horizon),
            )
            self._event = _ARRIVAL
            if self.row < 0 and horizon <= limit and self._horizon < INFINITY:
                self._event = _LOOK
            elif self.row < 0 and alone:
                return INFINITY
            if self._asked >= 0:
                step = self._decide(step)
            self._advance(step, db, alone)
            self._drift += step * speed
        self.db = db
        if alone:
            return step
        step = step / self.remaining if self.remaining > 0.0 else 1.0
        self.remaining = 0.0 if self._event == _ARRIVAL and self.row < 0 else (
            self.remaining * (1.0 - step))
        return step

    cdef double _answer(self, Py_ssize_t s, double* speed) except? -1 nogil:
        """du of MARGIN, K_M du in dr; returns db. `speed` bounds the rates of r / scale."""
        cdef Py_ssize_t i, k, row
        cdef double db, square = self._square, sizes = fabs(self._square)
        cdef double* w = &self._work[0]
        cdef long long* margin = self._factor._members
        if s == 0:
            for k in range(self._watched.shape[0]):
                self._dr[k] = 0.0
            db = 0.0
        else:
            for i in range(s):
                w[i] = self._dt[margin[i]] - self._drive[self._place[margin[i]]]
            db = self._factor.solve_in_place(w, self._need)
            for i in range(s):
                row = margin[i]
                self._du[row] = w[i]
                # du'K du = du_A'K du_A + du_A'K du_M + du_M'(dt_M - db)
                square += w[i] * (self._drive[self._place[row]] + self._dt[row] - db)
                sizes += fabs(w[i]) * (
                    fabs(self._drive[self._place[row]]) + fabs(self._dt[row]) + fabs(db))
            self._margin_product(w, &self._dr[0])
        square = max(square, 0.0) + ROUNDING * sizes
        speed[0] = sqrt(square + db * db / self._factor.shift) + self._most_scaled_dt
        return db

    cdef double _decide(self, double step) noexcept nogil:
        """The step, cut where f of the row asked for changes its sign."""
        cdef double f = self._r[self._asked] + self._t[self._asked]
        cdef double rate = self._dr[self._place[self._asked]] + self._dt[self._asked]
        if f * rate < 0.0 and fabs(f) < step * fabs(rate):
            self._event = _DECIDED
            return fabs(f) / fabs(rate)
        return step

    cdef Py_ssize_t _slipping(self, double still) noexcept nogil:
        """A RESTING row whose r does not stay 0, or -1."""
        cdef Py_ssize_t k, row
        for k in range(self._watched.shape[0]):
            row = self._watched[k]
            if self._role[row] == _RESTING and fabs(self._dr[k]) > still * self._scale[row]:
                return row
        return -1

    cdef void _advance(self, double step, double db, bint alone) noexcept nogil:
        cdef Py_ssize_t i, k
        self.b += step * db
        for k in range(self._watched.shape[0]):
            self._r[self._watched[k]] += step * self._dr[k]
        if alone:
            return
        if self._most_dt > 0.0:
            for i in range(self._t.shape[0]):
                self._t[i] += step * self._dt[i]
        for k in range(self._watched.shape[0]):
            i = self._watched[k]
            if self._role[i] == _MARGIN:
                self._u[i] += step * self._du[i]
            elif self._is_driven(i):
                self._u[i] += step * self._own[i]
        if not self._bounds_move:
            return
        for i in range(self._u.shape[0]):
            self._lo[i] += step * self._dlo[i]
            self._hi[i] += step * self._dhi[i]
            if self._role[i] == _LOW or self._role[i] == _PINNED:
                self._u[i] = self._lo[i]
            elif self._role[i] == _HIGH:
                self._u[i] = self._hi[i]

    # -- breakpoints -----------------------------------------------------------------------------

    cdef int _meet(self, Py_ssize_t row) except -1 nogil:
        """A row meets its condition: it changes sets."""
        cdef unsigned char role = self._role[row]
        cdef bint slips = self._event == _TRADED
        self._event = _TO_BOUND
        if role == _MARGIN:
            self._drop(row)
            return self._snap_to_bound(row)
        if role == _RESTING and not slips:
            return self._snap_to_bound(row)
        self._event = _TO_MARGIN if role == _LOW or role == _HIGH or role == _RESTING else _ENTERED
        if role != _RESTING:
            self._r[row] = 0.0
        if self._join(row):
            return 0
        if role == _RESTING:
            self._event = _TRADED
            return self._trade(row, -1.0 if self._dr[self._place[row]] > 0.0 else 1.0)
        if role == _LOW or role == _HIGH:
            self._event = _TRADED
            return self._trade(row, 1.0 if role == _LOW else -1.0)
        if self._lo[row] < self._u[row] < self._hi[row]:
            return self._become(row, _RESTING)
        return self._become(row, _LOW if self._u[row] <= self._lo[row] else _HIGH)

    cdef int _snap_to_bound(self, Py_ssize_t row) except -1 nogil:
        cdef bint low = self._u[row] - self._lo[row] <= self._hi[row] - self._u[row]
        self._u[row] = self._lo[row] if low else self._hi[row]
        return self._become(row, _LOW if low else _HIGH)

    cdef int _kernel_row(self, Py_ssize_t row) noexcept nogil:
        """K between a row and MARGIN, in `_work`."""
        cdef Py_ssize_t i
        for i in range(self._factor.size):
            self._slots[i] = self._slot_of[self._at[self._factor._members[i]]]
        self._gram.row_into(
            self._at[row], &self._slots[0], self._factor.size, &self._work[0])
        return 0

    def join(self, Py_ssize_t row):
        """Let a row with r = 0 join MARGIN; False if it depends on it."""
        return bool(self._join(row))

    cdef int _join(self, Py_ssize_t row) except -1 nogil:
        self._kernel_row(row)
        if not self._factor.push(row, &self._work[0], self._diagonal[self._at[row]]):
            return 0
        self._member[row] = 1
        if self._factor._extent >= self._factor._capacity or self._slot_of[self._at[row]] < 0:
            self._give_column(row)
        self._keep_column(row)
        self._become(row, _MARGIN)
        return 1

    cdef void _drop(self, Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t position = 0
        while self._factor._members[position] != row:
            position += 1
        self._factor.drop_at(position)
        self._release_column(row)
        self._member[row] = 0

    cdef int _anchor(self) except -1 nogil:
        """Let a RESTING row hold b, if there is one and MARGIN is empty."""
        cdef Py_ssize_t i
        for i in range(self._role.shape[0]):
            if self._role[i] == _RESTING:
                self._join(i)
                return 0
        return 0

    cdef int _trade(self, Py_ssize_t row, double sign) except -1 nogil:
        """A dependent row takes weight from MARGIN (sign -1: gives), f unchanged, up to a bound."""
        cdef Py_ssize_t i, m, s = self._factor.size
        cdef double part = 1.0, room, largest = 0.0
        cdef double* du = &self._work[0]
        cdef double step = (
            self._hi[row] - self._u[row] if sign > 0.0 else self._u[row] - self._lo[row])
        self._kernel_row(row)
        for i in range(s):
            du[i] *= -sign
        self._factor.solve_in_place(du, -sign)
        for i in range(s):
            m = self._factor._members[i]
            room = self._hi[m] - self._u[m] if du[i] > 0.0 else self._u[m] - self._lo[m]
            if room < part * step * fabs(du[i]):
                part = max(0.0, room) / (step * fabs(du[i]))
        self._u[row] += sign * step * part
        for i in range(s):
            m = self._factor._members[i]
            self._u[m] += part * step * du[i]
            largest = max(largest, self._scale[m] * fabs(self._u[m]))
        # the work space is used again below: from here on the bounds alone say who met them
        for i in range(s - 1, -1, -1):
            m = self._factor._members[i]
            room = AT_BOUND * min(self._hi[m] - self._lo[m], largest / self._scale[m])
            if self._u[m] <= self._lo[m] + room or self._u[m] >= self._hi[m] - room:
                self._drop(m)
                self._snap_to_bound(m)
        if part >= 1.0:
            self._u[row] = self._hi[row] if sign > 0.0 else self._lo[row]
            return self._become(row, _HIGH if sign > 0.0 else _LOW)
        if not self._join(row):
            return self._become(row, _RESTING)
        return 0
