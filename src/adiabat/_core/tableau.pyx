# SPDX-License-Identifier: BSD-3-Clause
"""Motions of one optimum by pivots of its tableau.

Number b as 0 and the rows from 1. With M = [0 1'; 1 K] and S = {0} + MARGIN, the tableau

    T = [ inv(M_SS)        -inv(M_SS) M_SN              ]
        [ M_NS inv(M_SS)    M_NN - M_NS inv(M_SS) M_SN  ]

answers every small motion: where rows of N move their weights by du_N, T_SN du_N is what b and the
margin do (CP01's beta, (10)) and T_NN du_N what r does (CP01's gamma, (11)). A row that changes
sets is one principal pivot p,

    T'_ij = T_ij - T_ip T_pj / T_pp,   T'_ip = T_ip / T_pp,   T'_pj = -T_pj / T_pp,   1 / T_pp,

of which a motion needs its own combination x of columns, and the column of the next pivot. Both
follow from those of T by the pivots made so far, so that a breakpoint costs some passes over one
column instead of a product with all columns of the margin, and T is never written.

A newcomer is one row more, x, at the last place: its column is given, and its row of T is the same
but for signs, T_xN = T_Nx' and T_xS = -T_Sx'.

A removal may *follow* the first rows only, those that can meet their conditions; what the others
do has no part in it. If the row that goes is not among those, it has the last place meanwhile.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

import numpy as np

from adiabat._core.blas cimport asum, axpy
from adiabat._core.ratio cimport _FALLING, _HIGH, _LEAVING, _LOW, _MARGIN, _PINNED, _RISING

# Rates below this part of the largest, or of the sums they come from, are rounding.
cdef double STILL = 1e-11
cdef double BALANCED = 1e-14
# Breakpoints in a row that may pass without advance.
cdef Py_ssize_t PATIENCE = 4

# How a removal ends: with no way on, at the end, at a change of sign, for want of a column.
cdef enum:
    _GIVEN_UP = 0
    _ARRIVED = 1
    _DECIDED = 2
    _MISSING = 3
ARRIVED, DECIDED, MISSING = _ARRIVED, _DECIDED, _MISSING


cdef class Pivots:
    """Motions from one optimum, one after the other; each thread has its own.

    Index 0 is b, but in the arrays that are given. z is what the tableau answers for: b, u in the
    margin, r elsewhere. A row meets its condition where z leaves (bottom, top): the box of a row
    of the margin, r = 0 of others. The last place, after the rows that are followed, is that of a
    newcomer, if there is one.
    """

    cdef const double[:, ::1] _column      # _column[_slot[j]] is column j of T, if it is there
    cdef const long long[::1] _slot
    cdef const double[::1] _u
    cdef double[::1] _lo, _hi, _least, _own_column, _own_row
    cdef const double[::1] _z_first, _bottom_first, _top_first
    cdef const unsigned char[::1] _role_first
    cdef double[::1] _z, _x, _bottom, _top, _work
    cdef unsigned char[::1] _role
    cdef double[:, ::1] _pivot_columns     # column p_k of the tableau before pivot k
    cdef Py_ssize_t[::1] _pivots
    cdef Py_ssize_t _n                     # entries of z: b, the rows that are followed, the last
    cdef bint _last_is_taken
    cdef Py_ssize_t _n_pivots
    cdef readonly double remaining         # of the motion
    cdef readonly Py_ssize_t breakpoints
    cdef readonly Py_ssize_t missing       # the row whose column is not there

    def __init__(self, columns, slot, u, r, lo, hi, role, least, Py_ssize_t most):
        """`least[i]`: a pivot of row i below it is none. `most`: pivots before giving up."""
        n = len(u) + 2
        margin = role == _MARGIN
        self._column, self._slot = columns, slot
        self._u, self._least = np.append(u, 0.0), np.append(least, 0.0)
        self._lo, self._hi = np.append(lo, 0.0), np.append(hi, 0.0)
        self._z_first = np.concatenate([[0.0], np.where(margin, u, r), [0.0]])
        floor = np.where(role == _LOW, 0.0, -np.inf)
        ceiling = np.where(role == _HIGH, 0.0, np.inf)
        self._bottom_first = np.concatenate([[-np.inf], np.where(margin, lo, floor), [-np.inf]])
        self._top_first = np.concatenate([[np.inf], np.where(margin, hi, ceiling), [np.inf]])
        self._role_first = np.concatenate([[_MARGIN], role, [_PINNED]]).astype(np.uint8)
        self._own_column, self._own_row = np.zeros(n), np.zeros(n)
        self._z, self._x, self._work = np.empty(n), np.empty(n), np.empty(n)
        self._bottom, self._top = np.empty(n), np.empty(n)
        self._role = np.empty(n, dtype=np.uint8)
        self._pivot_columns = np.empty((most, n))
        self._pivots = np.empty(most, dtype=np.intp)

    def use(self, columns, slot):
        """Go on with other columns of the same tableau: more, or longer ones."""
        self._column, self._slot = columns, slot

    # -- any motion, stretch by stretch ----------------------------------------------------------

    def set_out(self, x, double length):
        """Start from the optimum at rates x of b, of u in the margin, and of r elsewhere."""
        self._start(self._u.shape[0] - 1, length)
        self.x[:] = x
        self._x[self._n - 1] = 0.0

    def stretch(self):
        """To the next breakpoint: the row that meets its condition, or -1 at the arrival."""
        cdef double step
        cdef Py_ssize_t row
        with nogil:
            row = self._next(&step)
            axpy(self._n, step, &self._x[0], &self._z[0])
            self.remaining = self.remaining - step if row >= 0 else 0.0
        return row - 1 if row >= 0 else -1

    def meet(self, Py_ssize_t row):
        """The row changes sets; False if it depends on the margin, or a column is `missing`."""
        cdef bint met
        self.missing = -1
        with nogil:
            met = self._meet(row + 1)
        self.breakpoints += met
        return bool(met)

    @property
    def n_pivots(self):
        """Pivots made on the way."""
        return self._n_pivots

    @property
    def z(self):
        """b, less what it was, and u in the margin, r elsewhere."""
        return np.asarray(self._z)[:self._n - 1]

    @property
    def x(self):
        """Their rates."""
        return np.asarray(self._x)[:self._n - 1]

    @property
    def role(self):
        """The roles of rows."""
        return np.asarray(self._role)[1:self._n - 1]

    # -- newcomers -------------------------------------------------------------------------------

    def admit(self, const double[::1] column, const double[::1] row, double least):
        """Give the last place to a newcomer, by its column and its row of the tableau."""
        self._own_column[:] = column
        self._own_row[:] = row
        self._least[self._least.shape[0] - 1] = least

    def enter(self, double r, double lo, double hi, double way, double dd, bint stops):
        """Set out from the optimum to drive the newcomer from 0 by `way`, and sum u by dd.

        r is its residual, [lo, hi] its box; if it `stops`, then where its residual is 0. With
        way = 0 it rests at 0, and joins the margin if its residual comes to that.
        """
        self._start(self._u.shape[0] - 1, 1.0)
        cdef Py_ssize_t x = self._n - 1
        self._last_is_taken = True
        self._lo[x - 1], self._hi[x - 1] = lo, hi
        self._z[x] = r
        self._x[:] = 0.0
        if way != 0.0:
            self._become(x, _RISING if way > 0.0 else _FALLING)
            axpy(x + 1, way, &self._own_column[0], &self._x[0])
            if stops and way > 0.0:
                self._top[x] = 0.0
            elif stops:
                self._bottom[x] = 0.0
        elif lo < hi:
            self._become(x, _LOW if lo == 0.0 else _HIGH)
        if dd != 0.0:
            self._add_column(0, dd)

    def arrive(self, double u, double dd):
        """The newcomer is at r = 0 with weight u: the margin holds it there from now on."""
        cdef Py_ssize_t x = self._n - 1
        if not self._pivot(x):
            return False
        self._become(x, _MARGIN)
        self._z[x] = u
        self._x[:] = 0.0
        self._add_column(0, dd)
        return True

    @property
    def newcomer(self):
        """The role of the newcomer, and its weight in the margin, its residual elsewhere."""
        cdef Py_ssize_t x = self._n - 1
        return self._role[x], self._z[x]

    def weigh(self, double[::1] u):
        """Write the weights of the rows."""
        self._weights(u)

    # -- removals --------------------------------------------------------------------------------

    def remove(self, const long long[::1] rows, const long long[::1] first, Py_ssize_t width,
               const double[::1] own, const double[::1] dd, bint ask, const double[::1] t,
               double[:, ::1] u):
        """Drive samples out of the optimum, one after the other, while sum u moves by dd.

        Those of sample k are rows[first[k]: first[k + 1]]; own[j] is T_jj of row j. The first
        `width` rows are followed, and their weights at the end come in u[k]. With `ask` it may end
        where r + t of a sample's first row has changed its sign.

        Returns, by sample: how it ended, the change of b, the part of the motion that was left,
        the breakpoints, and the row whose column is missing.
        """
        cdef Py_ssize_t k, m = dd.shape[0]
        ends, breakpoints, missing = (np.zeros(m, dtype=np.int64) for _ in range(3))
        changes, parts = np.zeros(m), np.zeros(m)
        cdef long long[::1] end = ends, passed = breakpoints, lack = missing
        cdef double[::1] db = changes, part = parts
        with nogil:
            for k in range(m):
                self._start(width, 1.0)
                end[k] = self._remove(&rows[first[k]], first[k + 1] - first[k], own, dd[k], ask,
                                      t[k])
                self._weights(u[k])
                db[k], part[k] = self._z[0], self.remaining
                passed[k], lack[k] = self.breakpoints, self.missing
        return ends, changes, parts, breakpoints, missing

    cdef int _remove(self, const long long* rows, Py_ssize_t n_rows, const double[::1] own,
                     double dd, bint ask, double t) noexcept nogil:
        cdef Py_ssize_t i, k, row, last = -1, idle = 0, n = self._n, asked = rows[0] + 1
        cdef double step, before
        for k in range(n_rows):
            i = rows[k] + 1
            if i < n - 1 or self._u[i - 1] == 0.0:
                continue
            if last >= 0:
                return _GIVEN_UP
            last = i
            if not self._take_last_place(i, own[i - 1]):
                return _MISSING
        for k in range(n_rows):
            i = rows[k] + 1
            if i >= n - 1:
                continue
            if self._role[i] == _MARGIN:
                if not self._pivot(i):
                    return _MISSING if self.missing >= 0 else _GIVEN_UP
                self._z[i] = 0.0
            self._become(i, _LEAVING if self._u[i - 1] != 0.0 else _PINNED)
        for i in range(n):
            self._x[i] = 0.0
        if dd != 0.0:
            self._add_column(0, dd)
        for k in range(n_rows):
            i = rows[k] + 1
            if self._u[i - 1] != 0.0 and not self._add_column(
                    n - 1 if i == last else i, -self._u[i - 1]):
                return _MISSING
        if asked >= n - 1:
            ask, asked = ask and asked == last, n - 1
        while True:
            row = self._next(&step)
            before = self._z[asked] + t
            axpy(n, step, &self._x[0], &self._z[0])
            self.remaining -= step
            if row < 0:
                self.remaining = 0.0
                return _ARRIVED
            if ask and before * (self._z[asked] + t) < 0.0:
                return _DECIDED
            self.breakpoints += 1
            idle = idle + 1 if step <= 0.0 else 0
            if idle > PATIENCE or not self._meet(row):
                return _MISSING if self.missing >= 0 else _GIVEN_UP

    cdef bint _take_last_place(self, Py_ssize_t row, double own) noexcept nogil:
        """Give the last place to a row that is not followed, as it goes; T_jj of it is `own`."""
        cdef Py_ssize_t i, last = self._n - 1
        cdef const double* column
        if self._slot[row] < 0:
            self.missing = row - 1
            return False
        column = &self._column[self._slot[row], 0]
        for i in range(last):
            self._own_column[i] = column[i]
            self._own_row[i] = -column[i] if self._role_first[i] == _MARGIN else column[i]
        self._own_column[last] = own
        self._z[last] = self._z_first[row]
        self._become(last, _LEAVING)
        self._last_is_taken = True
        return True

    cdef void _start(self, Py_ssize_t width, double length) noexcept nogil:
        """Begin at the optimum, where the first `width` rows are followed."""
        cdef Py_ssize_t n = width + 1
        memcpy(&self._z[0], &self._z_first[0], n * sizeof(double))
        memcpy(&self._bottom[0], &self._bottom_first[0], n * sizeof(double))
        memcpy(&self._top[0], &self._top_first[0], n * sizeof(double))
        memcpy(&self._role[0], &self._role_first[0], n)
        self._n = n + 1
        self._z[n] = 0.0
        self._become(n, _PINNED)
        self._last_is_taken = False
        self._n_pivots, self.remaining, self.breakpoints, self.missing = 0, length, 0, -1

    cdef void _weights(self, double[::1] u) noexcept nogil:
        """Write the weights of the rows that are followed."""
        cdef Py_ssize_t i
        for i in range(1, self._n - 1):
            if self._role[i] == _MARGIN:
                u[i - 1] = self._z[i]
            elif self._role[i] == _LEAVING:
                u[i - 1] = self.remaining * self._u[i - 1]
            elif self._role[i] == _PINNED:
                u[i - 1] = 0.0
            else:
                u[i - 1] = self._lo[i - 1] if self._role[i] == _LOW else self._hi[i - 1]

    # -- stretches -------------------------------------------------------------------------------

    cdef Py_ssize_t _next(self, double* step) noexcept nogil:
        """The row whose condition ends the stretch, -1 if none does before the arrival."""
        cdef Py_ssize_t i, row
        cdef double most = 0.0, weight = 0.0, rate
        row = self._first(step, &rate, 0.0, 0.0)
        if row < 0 or rate > STILL * asum(self._n, &self._x[0]):
            return row
        for i in range(1, self._n):
            if self._role[i] == _MARGIN:
                weight += fabs(self._x[i])
            else:
                most = max(most, fabs(self._x[i]))
        return self._first(step, &rate, BALANCED * weight, STILL * (most + weight))

    cdef Py_ssize_t _first(self, double* step, double* best, double calm, double still
                           ) noexcept nogil:
        """Of the rows faster than rounding (`calm` for u, `still` for r) the first; its rate."""
        cdef Py_ssize_t i, row = -1
        cdef double eta = self.remaining, reach, rate, way, end
        best[0], reach = 0.0, eta * (1.0 + 1e-12)
        for i in range(1, self._n):
            end = self._z[i] + reach * self._x[i]
            if self._bottom[i] < end < self._top[i]:
                continue
            rate = self._x[i]
            way = self._top[i] - self._z[i] if rate > 0.0 else self._z[i] - self._bottom[i]
            rate = fabs(rate)
            # of rows that meet theirs together the fastest goes first: pivots stay large
            if way < eta * rate * (1.0 - 1e-12) or (row >= 0 and rate > best[0]):
                if rate > (calm if self._role[i] == _MARGIN else still):
                    eta, row, best[0] = min(eta, max(way, 0.0) / rate), i, rate
                    reach = eta * (1.0 + 1e-12)
        step[0] = eta
        return row

    cdef bint _meet(self, Py_ssize_t row) noexcept nogil:
        """A row changes sets; False if it cannot."""
        cdef unsigned char role = self._role[row]
        cdef bint rises = self._x[row] > 0.0
        if not self._pivot(row):
            return False
        self._reply(&self._x[0], &self._pivot_columns[self._n_pivots - 1, 0], row)
        if role == _MARGIN:
            self._z[row] = 0.0
            self._become(row, _HIGH if rises else _LOW)
        else:
            self._z[row] = self._lo[row - 1] if role == _LOW else self._hi[row - 1]
            self._become(row, _MARGIN)
        return True

    cdef void _become(self, Py_ssize_t row, unsigned char role) noexcept nogil:
        self._role[row] = role
        self._bottom[row], self._top[row] = -INFINITY, INFINITY
        if role == _MARGIN:
            self._bottom[row], self._top[row] = self._lo[row - 1], self._hi[row - 1]
        elif role == _LOW:
            self._bottom[row] = 0.0
        elif role == _HIGH:
            self._top[row] = 0.0

    # -- pivots ----------------------------------------------------------------------------------

    cdef bint _pivot(self, Py_ssize_t row) noexcept nogil:
        """Pivot on a row; False if it depends on the margin, or its column is missing."""
        if self._n_pivots == self._pivots.shape[0]:
            return False
        cdef double* column = &self._pivot_columns[self._n_pivots, 0]
        if not self._current(row, column) or column[row] <= self._least[row - 1]:
            return False
        self._pivots[self._n_pivots] = row
        self._n_pivots += 1
        return True

    cdef bint _current(self, Py_ssize_t j, double* out) noexcept nogil:
        """Column j of the tableau after the pivots made so far; False if it is missing."""
        cdef Py_ssize_t i, k, p, n = self._n
        cdef double* column
        if j == n - 1:
            memcpy(out, &self._own_column[0], n * sizeof(double))
        elif self._slot[j] < 0:
            self.missing = j - 1
            return False
        else:
            memcpy(out, &self._column[self._slot[j], 0], (n - 1) * sizeof(double))
            out[n - 1] = self._own_row[j] if self._last_is_taken else 0.0
        for k in range(self._n_pivots):
            p, column = self._pivots[k], &self._pivot_columns[k, 0]
            if p == j:
                for i in range(n):
                    out[i] = column[i] / column[p]
                out[p] = 1.0 / column[p]
            else:
                self._reply(out, column, p)
        return True

    cdef void _reply(self, double* x, const double* column, Py_ssize_t p) noexcept nogil:
        """What a combination of columns becomes by a pivot on p, none of them p's."""
        cdef double ratio = x[p] / column[p]
        axpy(self._n, -ratio, column, x)
        x[p] = -ratio

    cdef bint _add_column(self, Py_ssize_t j, double factor) noexcept nogil:
        if not self._current(j, &self._work[0]):
            return False
        axpy(self._n, factor, &self._work[0], &self._x[0])
        return True
