# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a motion, for the loop that follows it."""

from adiabat._core.factor cimport Factor
from adiabat._core.gram cimport Gram


cdef class Moving:
    cdef readonly double b
    cdef Gram _gram
    cdef Factor _factor
    cdef object _columns
    cdef const long long[::1] _at, _slot_of
    cdef const double[::1] _diagonal, _own, _dlo, _dhi, _dt
    cdef double[:, ::1] _room              # of what follows, by row and by place in `_watched`
    cdef long long[:, ::1] _places
    cdef double[::1] _scale                # what r of a row moves by when w and b do
    cdef double[::1] _u, _r, _t, _lo, _hi, _du
    cdef unsigned char[::1] _role, _member
    cdef double[::1] _work, _coef          # by place in the factor, by slot; _coef is kept at 0
    cdef long long[::1] _slots
    # watched rows, and what is known of them by place in `_watched`
    cdef long long[::1] _watched, _at_watched, _place
    cdef double[::1] _dr, _drive, _column
    # kernel values of MARGIN's columns at the watched rows, one after the other; whose each is
    cdef object _kept
    cdef double[:, ::1] _values
    cdef double[::1] _weights              # by column
    cdef long long[::1] _column_of, _owner  # by row, -1 for none; by column
    cdef Py_ssize_t _n_columns             # -1 where they are too many to be kept
    cdef Py_ssize_t _most_values           # that are kept
    cdef Py_ssize_t _n_watch
    cdef double _horizon, _drift           # least |r| / scale not watched; what it may have lost
    cdef double[::1] _u_then, _t_then      # when r was last right for all rows
    cdef double _b_then
    # sums over the rows that move by themselves
    cdef double _dd, _need, _moving, _most_moving, _square
    cdef double _pull, _most_pull          # the same by what they do to r: scaled
    cdef double _most_dt                   # |dt|, and relative to the scale
    cdef double _most_scaled_dt
    cdef Py_ssize_t _driven                # rows RISING, FALLING or LEAVING
    cdef bint _problem_moves, _bounds_move

    cdef int _watch(self) except -1
    cdef int _start(self) except -1
    cdef int _drive_by(self, const long long[::1] rows, const long long[::1] at) except -1
    cdef int _claim(self, const long long* rows, Py_ssize_t k) except -1
    cdef int _make_room(self) except -1
    cdef bint _is_driven(self, Py_ssize_t i) noexcept nogil
    cdef double _rate(self, Py_ssize_t i) noexcept nogil
    cdef int _become(self, Py_ssize_t row, unsigned char role) except -1 nogil
    cdef int _give_column(self, Py_ssize_t row) except -1 nogil
    cdef int _keep_columns(self) except -1
    cdef int _keep_column(self, Py_ssize_t row) except -1 nogil
    cdef int _more_columns(self) except -1
    cdef void _release_column(self, Py_ssize_t row) noexcept nogil
    cdef int _column_into(self, Py_ssize_t row, double* out) except -1 nogil
    cdef int _margin_product(self, const double* w, double* out) except -1 nogil
    cdef int _product(self, double* out) except -1 nogil
