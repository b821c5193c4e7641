# SPDX-License-Identifier: BSD-3-Clause
"""Roles of rows on the path, and its ratio test."""

cdef enum:
    _LOW = 0
    _HIGH = 1
    _MARGIN = 2
    _RISING = 3
    _FALLING = 4
    _LEAVING = 5
    _RESTING = 6
    _PINNED = 7

cpdef (double, Py_ssize_t) next_breakpoint(
    const long long[::1] rows, const double[::1] dr,
    const double[::1] u, const double[::1] du, const double[::1] r,
    const double[::1] lo, const double[::1] dlo, const double[::1] hi, const double[::1] dhi,
    const unsigned char[::1] role, const double[::1] scale, double calm, double still,
    double limit,
) noexcept nogil
