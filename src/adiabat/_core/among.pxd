# SPDX-License-Identifier: BSD-3-Clause
"""Rows of kernel values among some rows, for other modules of the core."""

from adiabat._core.kernel_values cimport Formula, Rows

cdef int write_columns(const size_t[::1] values, Py_ssize_t n, order, const size_t[::1] tops,
                       Py_ssize_t step) except -1


cdef class Among:
    cdef readonly Py_ssize_t n
    cdef Formula _formula
    cdef Rows _rows

    cdef int fill(self, const long long* places, Py_ssize_t k, double** out) except -1


cdef class AmongKnown(Among):
    cdef const double[:, ::1] _matrix
    cdef const long long[::1] _places
    cdef long long[::1] _ends    # where places that follow each other from one on end
