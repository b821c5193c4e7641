# SPDX-License-Identifier: BSD-3-Clause
"""The ratio test of the path: how far to the next breakpoint?

Rows move along u + eta du, r + eta dr, their bounds along lo + eta dlo and hi + eta dhi. The first
of these ends the stretch:

    MARGIN, RESTING    u meets lo or hi                               (CP01 Algorithm 1, KT09 (11))
    LOW, HIGH          r of a row at lo falls to 0, at hi rises to 0   (KT09 (12))
    RISING, FALLING    r of a driven row reaches 0                     (KT09 (13))

Rows LEAVING or PINNED (lo = hi all along) meet nothing.
"""

from libc.math cimport fabs

import numpy as np

from adiabat._core.sums cimport sizes_of, sum_of

# The roles a row can have; an ENTERING row is RISING or FALLING, by the side it started on: at a
# tie its r may be 0 before it has moved, and its sign says nothing.
LOW, HIGH, MARGIN, RISING, FALLING, LEAVING, RESTING, PINNED = (
    _LOW, _HIGH, _MARGIN, _RISING, _FALLING, _LEAVING, _RESTING, _PINNED)


def assign_roles(const double[::1] u, const double[::1] r, const double[::1] lo,
                 const double[::1] hi, const double[::1] goal_lo, const double[::1] goal_hi,
                 const double[::1] accuracy, const unsigned char[::1] in_margin,
                 unsigned char[::1] role, double[::1] target):
    """Roles at the start of a motion, and where the rows that are driven go.

    Who is outside its box leaves it, who violates by more than its accuracy enters. Returns the
    MARGIN rows that are no longer: outside their box, or with a box that is a point.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef bint point, above, below, falls, rises
    if not (r.shape[0] == lo.shape[0] == hi.shape[0] == goal_lo.shape[0] == goal_hi.shape[0] ==
            accuracy.shape[0] == in_margin.shape[0] == role.shape[0] == target.shape[0] == n):
        raise ValueError("rows do not fit")
    gone = []
    for i in range(n):
        point = lo[i] == hi[i]
        above, below = u[i] > lo[i], u[i] < hi[i]
        falls, rises = above and r[i] > accuracy[i], below and r[i] < -accuracy[i]
        if u[i] < lo[i] or u[i] > hi[i]:
            role[i] = _LEAVING
        elif in_margin[i] and not point:
            role[i] = _MARGIN
        elif point and goal_lo[i] == goal_hi[i]:
            role[i] = _PINNED
        elif falls:
            role[i] = _FALLING
        elif rises:
            role[i] = _RISING
        elif above and below:
            role[i] = _RESTING
        else:  # where the box is about to open, r says at which end of it a row is
            role[i] = _LOW if below or (point and r[i] >= 0.0) else _HIGH
        if in_margin[i] and role[i] != _MARGIN:
            gone.append(i)
        if falls:
            target[i] = goal_lo[i]
        elif rises:
            target[i] = goal_hi[i]
        elif role[i] == _LEAVING:
            target[i] = u[i] if u[i] > goal_lo[i] else goal_lo[i]
            target[i] = target[i] if target[i] < goal_hi[i] else goal_hi[i]
    return gone


def rates(const double[::1] u, const double[::1] t, const double[::1] lo, const double[::1] hi,
          goal, const unsigned char[::1] role, const double[::1] target, double d, double balance):
    """How the problem and the rows that are driven move from here to the goal, (t, lo, hi).

    Returns the rates (du, dt, dlo, dhi), that of sum u, and whether anything moves. The sum is d if
    it differs by no more than `balance` of the weights.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef const double[::1] goal_t = goal[0], goal_lo = goal[1], goal_hi = goal[2]
    cdef double size = 0.0, dd
    cdef bint moves = False
    if not (t.shape[0] == lo.shape[0] == hi.shape[0] == goal_t.shape[0] == goal_lo.shape[0] ==
            goal_hi.shape[0] == role.shape[0] == target.shape[0] == n):
        raise ValueError("rows do not fit")
    found = np.zeros((4, n))
    cdef double[:, ::1] rate = found
    for i in range(n):
        if _RISING <= role[i] <= _LEAVING:
            rate[0, i] = target[i] - u[i]
            moves = True
        rate[1, i] = goal_t[i] - t[i]
        rate[2, i], rate[3, i] = goal_lo[i] - lo[i], goal_hi[i] - hi[i]
        moves |= rate[1, i] != 0.0 or rate[2, i] != 0.0 or rate[3, i] != 0.0
    if n:
        dd = d - sum_of(n, &u[0])
        size = sizes_of(n, &u[0]).total
    else:
        dd = d
    if fabs(dd) <= balance * (size + fabs(d)):
        dd = 0.0
    return (found[0], found[1], found[2], found[3]), dd, moves or dd != 0.0


def arrive(double[::1] u, double[::1] t, double[::1] lo, double[::1] hi, goal,
           const unsigned char[::1] role, const unsigned char[::1] in_margin,
           const double[::1] target):
    """Set the problem, and rows at moving bounds, to their goal to the last bit.

    A weight that met its bound just there may have passed it by rounding: it is put back.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef const double[::1] goal_t, goal_lo, goal_hi
    goal_t, goal_lo, goal_hi = goal
    if not (t.shape[0] == lo.shape[0] == hi.shape[0] == role.shape[0] == in_margin.shape[0] ==
            target.shape[0] == goal_t.shape[0] == goal_lo.shape[0] == goal_hi.shape[0] == n):
        raise ValueError("rows do not fit")
    with nogil:
        for i in range(n):
            t[i], lo[i], hi[i] = goal_t[i], goal_lo[i], goal_hi[i]
            if _RISING <= role[i] <= _LEAVING:
                u[i] = target[i]
            elif role[i] == _LOW or role[i] == _PINNED:
                u[i] = lo[i]
            elif role[i] == _HIGH:
                u[i] = hi[i]
            if in_margin[i] or role[i] == _RESTING:
                u[i] = lo[i] if u[i] < lo[i] else hi[i] if u[i] > hi[i] else u[i]


cdef inline void consider(Py_ssize_t i, double way, double rate, double pace, double* eta,
                          Py_ssize_t* row, double* best) noexcept nogil:
    # row i meets its condition at way / rate: is it the first? Of equals that of the largest pace.
    if way < 0.0:
        way = 0.0
    if way < eta[0] * rate * (1.0 - 1e-12) or (
            way <= eta[0] * rate * (1.0 + 1e-12) and pace > best[0] and row[0] >= 0):
        if way < eta[0] * rate:
            eta[0] = way / rate
        row[0] = i
        best[0] = pace


cpdef (double, Py_ssize_t) next_breakpoint(
    const long long[::1] rows, const double[::1] dr,
    const double[::1] u, const double[::1] du, const double[::1] r,
    const double[::1] lo, const double[::1] dlo, const double[::1] hi, const double[::1] dhi,
    const unsigned char[::1] role, const double[::1] scale, double calm, double still,
    double limit,
) noexcept nogil:
    """(eta, row): the least eta <= limit at which a row meets its condition; row -1 if none does.

    Only `rows` are looked at; dr[k] is the rate of rows[k]. Rates of u times the scale of their
    row below `calm`, and of r relative to it below `still`, are rounding and meet nothing. Among
    rows that meet it together the one with the largest such rate goes first, which keeps the
    pivots of the margin large.
    """
    cdef Py_ssize_t i, k, row = -1
    cdef double eta = limit, best = 0.0, rate, pace
    for k in range(rows.shape[0]):
        i = rows[k]
        if role[i] == _MARGIN or role[i] == _RESTING:
            rate = du[i] - dhi[i]
            if rate * scale[i] > calm:
                consider(i, hi[i] - u[i], rate, rate * scale[i], &eta, &row, &best)
            rate = dlo[i] - du[i]
            if rate * scale[i] > calm:
                consider(i, u[i] - lo[i], rate, rate * scale[i], &eta, &row, &best)
        elif role[i] == _LOW or role[i] == _FALLING:
            pace = -dr[k] / scale[i]
            if pace > still:
                consider(i, r[i], -dr[k], pace, &eta, &row, &best)
        elif role[i] == _HIGH or role[i] == _RISING:
            pace = dr[k] / scale[i]
            if pace > still:
                consider(i, -r[i], dr[k], pace, &eta, &row, &best)
    return eta, row
