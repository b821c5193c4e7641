# SPDX-License-Identifier: BSD-3-Clause
"""A triangle's newcomers and leavers for the factor, without the interpreter."""

cdef void forward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x, Py_ssize_t k,
                  Py_ssize_t line) noexcept nogil
cdef void backward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x) noexcept nogil
cdef void project(Py_ssize_t n, const double* L, Py_ssize_t cap, Py_ssize_t k, double* W,
                  double* S) noexcept nogil
cdef Py_ssize_t project_room(Py_ssize_t k) noexcept nogil
cdef void let_go(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* gone,
                 Py_ssize_t k, double* room) noexcept nogil
cdef Py_ssize_t leaving_room(Py_ssize_t n) noexcept nogil
cdef Py_ssize_t leaving_traces(Py_ssize_t n) noexcept nogil
cdef Py_ssize_t lined(Py_ssize_t n) noexcept nogil
cdef void close_up(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* place,
                   Py_ssize_t size, double* room) noexcept nogil
