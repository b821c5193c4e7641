# SPDX-License-Identifier: BSD-3-Clause
"""The margin's factor for other modules of the core: one row at a time, without the interpreter."""


cdef class Factor:
    cdef readonly Py_ssize_t size
    cdef readonly double shift
    cdef readonly double dependent
    cdef readonly Py_ssize_t changes       # rows joined or left since the last rebuild
    cdef readonly double least_pivot       # of the last `admit`, relative to the diagonal
    cdef object _share
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _reached               # largest size since `tidy`
    cdef object _rows                      # (capacity,) int64
    cdef object _lower                     # (capacity, capacity), L[i, j] at [j, i]
    cdef object _z
    cdef long long* _members               # of _rows
    cdef double* _L
    cdef double* _zp
    cdef object _scratch_w                 # W of the last `prepare`, (k, size)
    cdef object _scratch_s                 # its Schur complement, (k, k)

    cdef void _resize(self, Py_ssize_t size) noexcept nogil
    cdef double solve_in_place(self, double* w, double s) noexcept nogil
    cdef bint push(self, long long row, double* cross, double own) noexcept nogil
    cdef void drop_at(self, Py_ssize_t position) noexcept nogil
    cdef int _reserve(self, Py_ssize_t size) except -1
