# SPDX-License-Identifier: BSD-3-Clause
"""The margin's factor for other modules of the core: one row at a time, without the interpreter."""


cdef class Factor:
    cdef readonly Py_ssize_t size
    cdef readonly double shift
    cdef readonly double usual             # a typical k(x, x); mostly the shift
    cdef readonly double dependent
    cdef readonly Py_ssize_t changes       # rows joined or left since the last rebuild
    cdef readonly double least_pivot       # of the last `admit`, relative to the diagonal
    cdef Py_ssize_t _extent                # places of L in use or vacant
    cdef Py_ssize_t _idle                  # vacant places that passes went through, since closed up
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _reached               # largest extent since `tidy`
    cdef object _rows                      # (capacity,) int64
    cdef object _places                    # (capacity,) int64: where in L each of the rows is
    cdef object _lower                     # (capacity, capacity), L[i, j] at [j, i]
    cdef object _z, _x, _room
    cdef long long* _members               # of _rows
    cdef long long* _place
    cdef double* _L
    cdef double* _zp
    cdef double* _xp                       # one vector by place
    cdef double* _roomp
    # of the last `prepare`, of k rows: W (k, extent), the Schur complement (k, k), and p (k)
    cdef double* _W
    cdef double* _S
    cdef double* _p
    cdef Py_ssize_t _k, _room_w, _room_s   # numbers there is room for

    cdef void solve_held(self, double* w) noexcept nogil
    cdef double solve_in_place(self, double* w, double s) noexcept nogil
    cdef bint push(self, long long row, const double* cross, double own) noexcept nogil
    cdef void drop_at(self, Py_ssize_t position) noexcept nogil
    cdef void _drop(self, long long* gone, Py_ssize_t k) noexcept nogil
    cdef int _reserve(self, Py_ssize_t more) except -1
    cdef int _prepare(self, const double* cross, const double* own, Py_ssize_t k) except -1
    cdef Py_ssize_t _admit(self, const long long* chosen, const long long* rows, Py_ssize_t k,
                           unsigned char* joined) except -1
    cdef void _free_room(self) noexcept
    cdef int _make_room(self, Py_ssize_t for_w, Py_ssize_t k) except -1
    cdef void _extend(self, const long long* chosen, const long long* rows, long long* order,
                      Py_ssize_t taken, const double* C, Py_ssize_t k) noexcept nogil
    cdef double _border(self) noexcept nogil
    cdef bint _holds_b(self) noexcept nogil
    cdef void _compact(self) noexcept nogil
    cdef void _append(self, const long long* rows, const long long* order,
                      Py_ssize_t k) noexcept nogil
