# SPDX-License-Identifier: BSD-3-Clause
"""Kernel columns for other modules of the core, without the interpreter."""

from adiabat._core.thread_pool cimport pool_task


cdef enum:
    WIDTH = 128


cdef class Gram:
    cdef readonly Py_ssize_t n
    cdef readonly Py_ssize_t n_lines  # of the panels that are in use
    cdef readonly Py_ssize_t capacity
    cdef object __weakref__
    cdef readonly object memory       # where panels are
    cdef public object lost           # samples whose columns are to be made anew, or None
    cdef readonly list panels
    cdef readonly object slot_of      # by sample, int64, NO_SLOT where it has none
    cdef readonly object owner        # (n_slots,) int64, -1 where the slot is free
    cdef readonly object stamp        # (n_slots,) int64, when the slot was last filled or kept
    cdef object _group                # (n_slots / STRIP,) int64, of the strips that are in use
    cdef Py_ssize_t _clock
    cdef double** _data
    cdef Py_ssize_t _n_panels

    cdef int _alter(self, pool_task task, const size_t[::1] a, const size_t[::1] b) except -1
    cdef int _transfer(self, pool_task task, const size_t[::1] tops, const long long* rows,
                       Py_ssize_t first, double[:, :] block) except -1
    cpdef int place(self, Py_ssize_t p, panel) except -1
    cdef int product(self, const double* coef, const long long* rows, Py_ssize_t n_rows,
                     double* out) noexcept nogil
    cdef int gather_into(self, const long long* samples, Py_ssize_t k, const long long* slots,
                         Py_ssize_t m, double* out, Py_ssize_t di, Py_ssize_t dj) except -1 nogil
    cdef void row_into(self, long long sample, const long long* slots, Py_ssize_t k,
                       double* out) noexcept nogil
