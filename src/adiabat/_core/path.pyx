# SPDX-License-Identifier: BSD-3-Clause
"""One straight motion of problem (P), breakpoint by breakpoint.

The problem moves at constant rates, bounds by dlo and dhi, targets by dt, the sum by dd, and the
rows that are driven by du. All other rows answer. A row at a bound moves with it, and MARGIN keeps
its r at 0 through its bordered system (CP01 (3)-(9), KT09 (5)-(10)):

    K_MM du + db 1 = dt_M - K_MA du_A,    1'du = dd - 1'du_A,    dr = K du + db - dt

where A are all the rows that move by themselves. K du_A is kept up from breakpoint to breakpoint
(`_drive`), so that a stretch reads the columns of MARGIN alone. It ends where a row meets its
condition (`ratio`), or at the arrival.

A RESTING row depends on MARGIN and has r = 0 by itself. Where it no longer has (a row of MARGIN
left, or the targets move apart) it joins, or is traded, at once.
"""

from libc.math cimport INFINITY, fabs

import numpy as np

from adiabat._core.ratio cimport (
    _HIGH, _LEAVING, _LOW, _MARGIN, _PINNED, _RESTING, _RISING, next_breakpoint,
)

# Rates below this part of the largest, or of the sums they come from, are rounding.
cdef double STILL = 1e-11
# A sum of rates of u below this part of their sizes is 0; so is the rate at which a weight nears
# a bound that moves with it.
cdef double BALANCED = 1e-14
# A bound is reached within this part of the box.
cdef double AT_BOUND = 1e-14


cdef class Motion:
    """A machine on one straight motion; its arrays are moved in place."""

    cdef readonly double b
    cdef readonly double remaining         # of the motion, 1 at its start
    cdef readonly double eta               # of the last stretch, as a part of what remained
    cdef readonly Py_ssize_t row           # that ended it, -1 at the arrival
    cdef readonly str event
    cdef readonly Py_ssize_t breakpoints
    cdef readonly Py_ssize_t idle          # stretches since the last advance
    cdef object _gram, _factor, _columns, _at, _in_margin
    cdef const long long[::1] at
    cdef const double[::1] diagonal
    cdef double[::1] u, r, t, lo, hi, du, dr, _drive, _scratch, _coef
    cdef const double[::1] own, dlo, dhi, dt
    cdef unsigned char[::1] role, member
    cdef object _dr, _scratch_array, _coef_array
    cdef double dd, largest
    cdef double need                       # sum of the rates that MARGIN has to bring
    cdef double moving, most_moving        # sum of the sizes of the others; the most it has been
    cdef Py_ssize_t _driven                # rows RISING, FALLING or LEAVING
    cdef bint _problem_moves
    cdef bint _slips                       # the row is RESTING, and its r does not stay 0

    def __init__(self, gram, factor, columns, at, diagonal, state, rates, role, in_margin,
                 double b, double dd):
        """`state` is (u, r, t, lo, hi), `rates` (du of driven rows, dt, dlo, dhi).

        `columns(positions)` gives slots to samples that have none.
        """
        cdef Py_ssize_t i, n = len(at)
        self._gram, self._factor, self._columns = gram, factor, columns
        self._at, self.at, self.diagonal = at, at, diagonal
        self.u, self.r, self.t, self.lo, self.hi = state
        self.own, self.dt, self.dlo, self.dhi = rates
        self.role, self._in_margin, self.member = role, in_margin, in_margin.view(np.uint8)
        self.b, self.dd = b, dd
        self.remaining, self.row, self.event = 1.0, -1, "start"
        self.largest = 0.0
        for i in range(n):
            self.largest = max(self.largest, diagonal[at[i]])
        self.du = np.zeros(n)
        self._dr, self._scratch_array = np.zeros(n), np.zeros(n)
        self.dr, self._scratch = self._dr, self._scratch_array
        self._coef_array = np.zeros(0)
        self._start()

    cdef int _start(self) except -1:
        """K du_A from the rows that move by themselves."""
        cdef Py_ssize_t i, n = self.u.shape[0]
        rates = np.zeros(n)
        cdef double[::1] rate = rates
        self.need, self.moving = self.dd, 0.0
        self._driven, self._problem_moves = 0, self.dd != 0.0
        for i in range(n):
            self._driven += self._is_driven(i)
            if self.dlo[i] != 0.0 or self.dhi[i] != 0.0 or self.dt[i] != 0.0:
                self._problem_moves = True
            rate[i] = self._rate(i)
            self.need -= rate[i]
            self.moving += fabs(rate[i])
        self.most_moving = self.moving + fabs(self.dd)
        drive = np.zeros(n)
        self._drive = drive
        rows = np.flatnonzero(rates)
        if len(rows):
            slots = self._columns(self._at[rows])
            coef = np.bincount(slots, rates[rows], minlength=self._gram.n_slots)
            self._gram.multiply(coef.astype(np.float64), drive, self._at)
        self._columns(self._at[self._factor.rows])
        return 0

    @property
    def done(self):
        """Whether nothing is left that moves: at the arrival, or before it."""
        return self.remaining <= 0.0 or not (self._driven or self._problem_moves)

    cdef bint _is_driven(self, Py_ssize_t i) noexcept nogil:
        return _RISING <= self.role[i] <= _LEAVING

    cdef double _rate(self, Py_ssize_t i) noexcept nogil:
        """How fast u of a row moves by itself."""
        cdef unsigned char role = self.role[i]
        if role == _LOW or role == _PINNED:
            return self.dlo[i]
        if role == _HIGH:
            return self.dhi[i]
        if self._is_driven(i):
            return self.own[i]
        return 0.0

    cdef int _become(self, Py_ssize_t row, unsigned char role) except -1:
        """Another role for a row; what moves by itself is kept up."""
        cdef double rate = -self._rate(row)
        cdef Py_ssize_t i
        self.moving -= fabs(rate)
        cdef long long[::1] slot
        self._driven -= self._is_driven(row)
        self.role[row] = role
        self.moving += fabs(self._rate(row))
        rate += self._rate(row)
        if rate == 0.0:
            return 0
        self.need -= rate
        self.most_moving = max(self.most_moving, self.moving + fabs(self.dd))
        slot = self._columns(self._at[row: row + 1])
        self._fit_slots()
        self._coef[slot[0]] = rate
        self._gram.multiply(self._coef_array, self._scratch_array, self._at)
        self._coef[slot[0]] = 0.0
        for i in range(self._drive.shape[0]):
            self._drive[i] += self._scratch[i]
        return 0

    cdef int _fit_slots(self) except -1:
        """Coefficients by slot, all 0, as many as there are slots now."""
        if self._coef_array.shape[0] != self._gram.n_slots:
            self._coef_array = np.zeros(self._gram.n_slots)
            self._coef = self._coef_array
        return 0

    # -- stretches -------------------------------------------------------------------------------

    def run(self, Py_ssize_t stretches, Py_ssize_t patience):
        """Go on for so many stretches, to the end, or until idle for a multiple of `patience`.

        Returns whether there is a way on: without MARGIN b may have nowhere to go.
        """
        cdef double step
        cdef Py_ssize_t row
        while stretches > 0:
            stretches -= 1
            row = -1
            step = self._stretch(&row)
            self.eta, self.row = step, row
            if row < 0 and step == INFINITY:
                return False
            self.idle = self.idle + 1 if step <= 0.0 else 0
            if row < 0:
                self.event = "arrival"
                return True
            self.breakpoints += 1
            self._meet(row)
            if self._factor.size == 0:
                self._anchor()
            if self.idle and self.idle % patience == 0 or not (
                    self._driven or self._problem_moves):
                return True
        return True

    cdef double _stretch(self, Py_ssize_t* row) except -2:
        """To the next breakpoint; the part gone of what remained (of b alone: the step)."""
        cdef double db = 0.0, step, still, weight = 0.0, most = 0.0
        cdef Py_ssize_t i, n = self.u.shape[0], s = self._factor.size
        cdef const long long[::1] margin = self._factor.rows
        cdef bint alone = s == 0 and fabs(self.need) > BALANCED * self.most_moving
        if alone:
            # b moves until a row is free: up, if weight is to be given away
            db = 1.0 if self.need < 0.0 else -1.0
            for i in range(n):
                self.dr[i] = db
            most = 1.0
        else:
            db = self._answer(margin, s)
            for i in range(n):
                self.dr[i] += self._drive[i] + db - self.dt[i]
                most = max(most, fabs(self.dr[i]))
            for i in range(s):
                self.dr[margin[i]] = 0.0
                weight += fabs(self.du[margin[i]])
            weight += self.moving
        still = STILL * (most + self.largest * weight)
        row[0] = self._slipping(still)
        self._slips = row[0] >= 0
        if self._slips:
            self._forget_answer(margin, s)
            return 0.0
        if alone:
            return self._raise_bias(db, still, row)
        step, row[0] = next_breakpoint(
            self.u, self.du, self.r, self.dr, self.lo, self.dlo, self.hi, self.dhi, self.role,
            BALANCED * (weight + self.most_moving), still, self.remaining,
        )
        self._advance(step, db)
        self._forget_answer(margin, s)
        step = step / self.remaining if self.remaining > 0.0 else 1.0
        self.remaining = 0.0 if row[0] < 0 else self.remaining * (1.0 - step)
        return step

    cdef double _answer(self, const long long[::1] margin, Py_ssize_t s) except? -1:
        """du of MARGIN, K_AM du in dr; returns db."""
        cdef Py_ssize_t i
        cdef double[::1] q, du
        cdef const long long[::1] slot_of
        cdef double db
        if s == 0:
            self.dr[:] = 0.0
            return 0.0
        rhs = np.empty(s)
        q = rhs
        for i in range(s):
            q[i] = self.dt[margin[i]] - self._drive[margin[i]]
        answer, db = self._factor.solve(rhs, self.need)
        du = answer
        self._fit_slots()
        slot_of = self._gram.slot_of
        for i in range(s):
            self._coef[slot_of[self.at[margin[i]]]] += du[i]
            self.du[margin[i]] = du[i]
        self._gram.multiply(self._coef_array, self._dr, self._at)
        for i in range(s):
            self._coef[slot_of[self.at[margin[i]]]] = 0.0
        return db

    cdef void _forget_answer(self, const long long[::1] margin, Py_ssize_t s) noexcept:
        cdef Py_ssize_t i
        for i in range(s):
            self.du[margin[i]] = 0.0

    cdef double _raise_bias(self, double db, double still, Py_ssize_t* row) except -2:
        cdef double step
        cdef Py_ssize_t i
        cdef double[::1] none = self._scratch
        none[:] = 0.0
        step, row[0] = next_breakpoint(
            self.u, none, self.r, self.dr, self.lo, none, self.hi, none, self.role, 0.0,
            still, INFINITY,
        )
        if row[0] >= 0:
            for i in range(self.r.shape[0]):
                self.r[i] += step * db
            self.b += step * db
        return step

    cdef Py_ssize_t _slipping(self, double still) noexcept nogil:
        """A RESTING row whose r does not stay 0, or -1."""
        cdef Py_ssize_t i
        for i in range(self.role.shape[0]):
            if self.role[i] == _RESTING and fabs(self.dr[i]) > still:
                return i
        return -1

    cdef void _advance(self, double step, double db) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.u.shape[0]):
            self.lo[i] += step * self.dlo[i]
            self.hi[i] += step * self.dhi[i]
            self.t[i] += step * self.dt[i]
            self.r[i] += step * self.dr[i]
            if self.role[i] == _MARGIN:
                self.u[i] += step * self.du[i]
            elif self.role[i] == _LOW or self.role[i] == _PINNED:
                self.u[i] = self.lo[i]
            elif self.role[i] == _HIGH:
                self.u[i] = self.hi[i]
            elif self.role[i] != _RESTING:
                self.u[i] += step * self.own[i]
        self.b += step * db

    # -- breakpoints -----------------------------------------------------------------------------

    cdef int _meet(self, Py_ssize_t row) except -1:
        """A row meets its condition: it changes sets."""
        cdef unsigned char role = self.role[row]
        if role == _MARGIN:
            self._drop(row)
            self._settle_at_bound(row)
            self.event = "to bound"
            return 0
        if role == _RESTING:
            if not self._slips:
                self._settle_at_bound(row)
                self.event = "to bound"
            elif self.join(row):  # the row it depended on has left
                self.event = "to margin"
            else:
                self._trade(row, -1.0 if self.dr[row] > 0.0 else 1.0)
                self.event = "traded"
            return 0
        self.r[row] = 0.0
        self.event = "to margin" if role == _LOW or role == _HIGH else "entered"
        if self.join(row):
            return 0
        if role == _LOW or role == _HIGH:
            self._trade(row, 1.0 if role == _LOW else -1.0)
            self.event = "traded"
        elif self.lo[row] < self.u[row] < self.hi[row]:
            self._become(row, _RESTING)
        else:
            self._become(row, _LOW if self.u[row] <= self.lo[row] else _HIGH)
        return 0

    cdef int _settle_at_bound(self, Py_ssize_t row) except -1:
        cdef bint low = self.u[row] - self.lo[row] <= self.hi[row] - self.u[row]
        self.u[row] = self.lo[row] if low else self.hi[row]
        self._become(row, _LOW if low else _HIGH)
        return 0

    cdef _kernel_row(self, Py_ssize_t row):
        """K between a row and MARGIN, (1, size)."""
        cross = np.empty((1, self._factor.size))
        slots = self._gram.slot_of[self._at[self._factor.rows]]
        self._gram.gather(self._at[row: row + 1], slots, cross)
        return cross

    cpdef bint join(self, Py_ssize_t row) except -1:
        """Let a row with r = 0 join MARGIN; False if it depends on it."""
        self._factor.prepare(
            self._kernel_row(row), np.array([[self.diagonal[self.at[row]]]]))
        if not self._factor.admit(_FIRST, np.array([row]))[0]:
            return False
        self._columns(self._at[row: row + 1])
        self.member[row] = 1
        self._become(row, _MARGIN)
        return True

    cdef int _drop(self, Py_ssize_t row) except -1:
        cdef const long long[::1] margin = self._factor.rows
        cdef Py_ssize_t position = 0
        while margin[position] != row:
            position += 1
        self._factor.drop(position)
        self.member[row] = 0
        return 0

    cdef int _anchor(self) except -1:
        """Let a RESTING row hold b, if there is one and MARGIN is empty."""
        cdef Py_ssize_t i
        for i in range(self.role.shape[0]):
            if self.role[i] == _RESTING:
                self.join(i)
                return 0
        return 0

    cdef int _trade(self, Py_ssize_t row, double sign) except -1:
        """A dependent row takes weight from MARGIN (sign -1: gives), f unchanged, up to a bound."""
        cdef Py_ssize_t i, m
        cdef double part, room, u
        rows = self._factor.rows.copy()
        cdef const long long[::1] margin = rows
        cdef double step = self.hi[row] - self.u[row] if sign > 0.0 else self.u[row] - self.lo[row]
        answer, _ = self._factor.solve(-sign * self._kernel_row(row)[0], -sign)
        cdef double[::1] du = answer
        part = 1.0
        for i in range(len(rows)):
            m = margin[i]
            room = self.hi[m] - self.u[m] if du[i] > 0.0 else self.u[m] - self.lo[m]
            if room < part * step * fabs(du[i]):
                part = max(0.0, room) / (step * fabs(du[i]))
        self.u[row] += sign * step * part
        for i in range(len(rows)):
            m = margin[i]
            u = self.u[m] + part * step * du[i]
            room = AT_BOUND * (self.hi[m] - self.lo[m])
            self.u[m] = u
            if u <= self.lo[m] + room or u >= self.hi[m] - room:
                self._drop(m)
                self._settle_at_bound(m)
        if part >= 1.0:
            self._become(row, _HIGH if sign > 0.0 else _LOW)
            self.u[row] = self.hi[row] if sign > 0.0 else self.lo[row]
        elif not self.join(row):
            self._become(row, _RESTING)
        return 0


_FIRST = np.zeros(1, dtype=np.int64)
