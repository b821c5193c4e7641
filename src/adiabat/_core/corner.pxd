# SPDX-License-Identifier: BSD-3-Clause
"""The corner of a factor for other modules of the core, without the interpreter."""

cdef struct Corner:
    # of k rows that would join: their Schur complement S (k, k) and the diagonal of K + c; its
    # factor C, and room for the columns of one with pivots; who joins, in which order
    Py_ssize_t k
    double dependent
    double least_pivot      # of those that stay out, relative to the diagonal, if below 0
    double* S
    double* C
    double* columns
    double* scale
    long long* order
    unsigned char* done


cdef Py_ssize_t factor_corner(Corner* c) noexcept nogil
