# SPDX-License-Identifier: BSD-3-Clause
"""Sums over all rows, in lanes: in one sum every addition would wait for the last."""

from libc.math cimport fabs
from libc.string cimport memset

cdef enum:
    LANES = 8


cdef struct Weights:
    double total        # sum u, to twice the precision
    double size         # sum |u|
    double largest      # max |u|


cdef inline double two_sum(double a, double b, double* rest) noexcept nogil:
    # a + b; what rounding took from it is added to rest
    cdef double s = a + b, part = s - a
    rest[0] += (a - (s - part)) + (b - part)
    return s


cdef struct Lanes:
    double[LANES] total, rest, size, largest


cdef inline void weigh_one(Lanes* s, Py_ssize_t lane, double u) noexcept nogil:
    cdef double value = fabs(u)
    s.total[lane] = two_sum(s.total[lane], u, &s.rest[lane])
    s.size[lane] += value
    s.largest[lane] = value if value > s.largest[lane] else s.largest[lane]


cdef inline Weights weigh_up(Py_ssize_t n, const double* u) noexcept nogil:
    cdef Py_ssize_t i, lane
    cdef double rest = 0.0
    cdef Weights w
    cdef Lanes s
    memset(&s, 0, sizeof(s))
    for i in range(n // LANES):
        for lane in range(LANES):
            weigh_one(&s, lane, u[i * LANES + lane])
    for i in range(n - n % LANES, n):
        weigh_one(&s, 0, u[i])
    w.total = w.size = w.largest = 0.0
    for lane in range(LANES):
        w.total = two_sum(w.total, s.total[lane], &rest)
        rest += s.rest[lane]
        w.size += s.size[lane]
        w.largest = max(w.largest, s.largest[lane])
    w.total += rest
    return w
