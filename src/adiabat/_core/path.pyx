# SPDX-License-Identifier: BSD-3-Clause
"""The path's two inner loops: how far to the next breakpoint, and the step there.

All rows move along u + eta du, r + eta dr. A breakpoint is where the first of these happens:

    MARGIN    u meets lo or hi                              (CP01 Algorithm 1, KT09 (11))
    BOUND     r of a row at lo falls to 0, at hi rises to 0  (KT09 (12))
    ENTERING  r of a driven row reaches 0                    (KT09 (13))
    eta = 1   the driven rows arrive

Rows LEAVING or RESTING (dependent on the margin, r = 0 by themselves) meet nothing.
"""

from libc.math cimport fabs

cdef enum:
    _BOUND = 0
    _MARGIN = 1
    _RISING = 2
    _FALLING = 3
    _LEAVING = 4
    _RESTING = 5

# The roles a row can have; an ENTERING row is RISING or FALLING, by the side it started on: at a
# tie its r may be 0 before it has moved, and its sign says nothing.
BOUND, MARGIN, RISING, FALLING, LEAVING, RESTING = (
    _BOUND, _MARGIN, _RISING, _FALLING, _LEAVING, _RESTING)


def next_breakpoint(
    const double[::1] u, const double[::1] du, const double[::1] r, const double[::1] dr,
    const double[::1] lo, const double[::1] hi, const unsigned char[::1] role,
    double still, double limit,
):
    """(eta, row): the least eta <= limit at which a row meets its condition; row -1 if none does.

    Rates below `still` are rounding and meet nothing. Among rows that meet it together the one
    with the largest rate goes first, which keeps the pivots of the margin large.
    """
    cdef Py_ssize_t i, n = u.shape[0], row = -1
    cdef double eta = limit, way, rate, best_rate = 0.0
    with nogil:
        for i in range(n):
            if role[i] == _MARGIN:
                rate = du[i]
                if rate > 0.0:
                    way = hi[i] - u[i]
                elif rate < 0.0:
                    way = u[i] - lo[i]
                    rate = -rate
                else:
                    continue
                if rate < 1e-300:
                    continue
            elif role[i] == _BOUND:
                rate = dr[i]
                if lo[i] == hi[i]:
                    continue
                if u[i] <= lo[i] and rate < -still:
                    way = r[i]
                    rate = -rate
                elif u[i] >= hi[i] and rate > still:
                    way = -r[i]
                else:
                    continue
            elif role[i] == _RISING and dr[i] > still:
                rate = dr[i]
                way = -r[i]
            elif role[i] == _FALLING and dr[i] < -still:
                rate = -dr[i]
                way = r[i]
            else:
                continue
            if way < 0.0:
                way = 0.0
            if way < eta * rate * (1.0 - 1e-12) or (
                    way <= eta * rate * (1.0 + 1e-12) and rate > best_rate and row >= 0):
                if way < eta * rate:
                    eta = way / rate
                row = i
                best_rate = rate
    return eta, row


def advance(double[::1] u, const double[::1] du, double[::1] r, const double[::1] dr, double eta):
    """u += eta * du; r += eta * dr."""
    cdef Py_ssize_t i, n = u.shape[0]
    with nogil:
        for i in range(n):
            u[i] += eta * du[i]
            r[i] += eta * dr[i]


def largest_rate(const double[::1] dr):
    """np.max(np.abs(dr))"""
    cdef Py_ssize_t i
    cdef double most = 0.0
    for i in range(dr.shape[0]):
        if fabs(dr[i]) > most:
            most = fabs(dr[i])
    return most
