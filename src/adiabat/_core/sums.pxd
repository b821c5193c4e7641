# SPDX-License-Identifier: BSD-3-Clause
"""Sums over all rows, in lanes: in one sum every addition would wait for the last."""

from libc.math cimport fabs

cdef enum:
    LANES = 8


cdef struct Sizes:
    double total        # sum |u|
    double largest      # max |u|


cdef inline Sizes sizes_of(Py_ssize_t n, const double* u) noexcept nogil:
    cdef double[LANES] total, largest
    cdef double value
    cdef Py_ssize_t i, lane
    cdef Sizes sizes
    sizes.total = sizes.largest = 0.0
    for lane in range(LANES):
        total[lane] = largest[lane] = 0.0
    for i in range(n // LANES):
        for lane in range(LANES):
            value = fabs(u[i * LANES + lane])
            total[lane] += value
            largest[lane] = value if value > largest[lane] else largest[lane]
    for i in range(n - n % LANES, n):
        sizes.total += fabs(u[i])
        sizes.largest = max(sizes.largest, fabs(u[i]))
    for lane in range(LANES):
        sizes.total += total[lane]
        sizes.largest = max(sizes.largest, largest[lane])
    return sizes


cdef inline double strength_in(Py_ssize_t n, const double* root, const double* u) noexcept nogil:
    # sum root |u|
    cdef double[LANES] total
    cdef double strength = 0.0
    cdef Py_ssize_t i, lane
    for lane in range(LANES):
        total[lane] = 0.0
    for i in range(n // LANES):
        for lane in range(LANES):
            total[lane] += root[i * LANES + lane] * fabs(u[i * LANES + lane])
    for i in range(n - n % LANES, n):
        strength += root[i] * fabs(u[i])
    for lane in range(LANES):
        strength += total[lane]
    return strength


cdef inline double two_sum(double a, double b, double* rest) noexcept nogil:
    # a + b; what rounding took from it is added to rest
    cdef double s = a + b, part = s - a
    rest[0] += (a - (s - part)) + (b - part)
    return s


cdef inline double sum_of(Py_ssize_t n, const double* u) noexcept nogil:
    # sum u, to twice the precision
    cdef double[LANES] total, rest
    cdef Py_ssize_t i, lane
    for lane in range(LANES):
        total[lane] = rest[lane] = 0.0
    for i in range(n // LANES):
        for lane in range(LANES):
            total[lane] = two_sum(total[lane], u[i * LANES + lane], &rest[lane])
    for i in range(n - n % LANES, n):
        total[0] = two_sum(total[0], u[i], &rest[0])
    for lane in range(1, LANES):
        total[0] = two_sum(total[0], total[lane], &rest[0])
        rest[0] += rest[lane]
    return total[0] + rest[0]
