# SPDX-License-Identifier: BSD-3-Clause
"""The rows of one machine while it is being solved, for the second half of a round."""

from adiabat._core.factor cimport Factor
from adiabat._core.gram cimport Gram

cdef void* taken(void* room) except NULL

cdef class Survey:
    cdef readonly double weight            # sum |u|, as of the last `measure`
    cdef readonly double missing           # d - sum u
    cdef readonly double rms_change        # root mean square of the last changes of r, scaled
    cdef readonly double strength          # sum sqrt(k) |u|, as of the last `measure`
    cdef readonly double gain              # of the objective, as of the last `survey`
    cdef readonly double least             # curvature met by the last step, by the diagonal
    cdef public double b
    cdef public double delta_b             # its change since the last look
    cdef double _largest                   # |u|, scaled
    cdef double _at_bound
    cdef double[::1] _delta, _residual, _pending, _scale, _unseen
    cdef double[::1] _u, _lo, _hi, _r
    cdef const double[::1] _root
    cdef const long long[::1] _at, _slot_of
    cdef unsigned char[::1] _inside
    cdef object _samples, _refactor
    cdef long long[::1] _rows, _found      # that are looked at; others for a moment
    cdef double[::1] _amount
    cdef Py_ssize_t _n_rows
    cdef Gram _gram
    cdef Factor _factor

    cdef bint _measure(self, double d) noexcept nogil
    cdef double _room(self, Py_ssize_t row) noexcept nogil
    cdef double _snap(self, Py_ssize_t row, double value) noexcept nogil
    cdef int _leave_boxes(self) except -1
    cpdef bint survey(self, watched, near, double d, bint rested, bint singly,
                      bint everyone) except -1
    cpdef int face(self, double d, bint stops) except -1
    cdef int _leave(self, long long* positions, Py_ssize_t count) except -1
    cdef Py_ssize_t _solve_face(self, bint cut, bint held, double* du, long long* out,
                                double* short_by) noexcept nogil
    cdef double _reach(self, Py_ssize_t row, double du) noexcept nogil
    cdef int _answer(self, const long long* moved, const double* amounts, Py_ssize_t count,
                     double* residual) except -1
    cpdef int watch(self, watched, near, double reach) except -1
    cdef double _look(self) except? -1
    cdef int _take(self, const long long[::1] rows) except -1
    cdef Py_ssize_t _list_moved(self, long long* movers) noexcept nogil
    cdef int _claim(self, const long long* rows, Py_ssize_t count) except -1
