# SPDX-License-Identifier: BSD-3-Clause
"""Triangular solves, and rows that join or are removed, without the interpreter."""

cdef struct Newcomers:
    # k rows come to a triangle L of n places, of which those at place[:size] are taken; their
    # kernel values with these, cross (k, size), and what `project` makes of them: W (k, n), in
    # room for some more, p (k) and S (k, k)
    const double* L
    const double* z
    const double* cross
    const long long* place
    Py_ssize_t n, cap, size, k, step
    double shift
    double* W
    double* p
    double* S


cdef void forward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x, Py_ssize_t k,
                  Py_ssize_t line) noexcept nogil
cdef void backward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x) noexcept nogil
cdef void spread(Py_ssize_t n, const long long* place, Py_ssize_t size, const double* values,
                 double shift, double* x) noexcept nogil
cdef void project(Newcomers* them) noexcept nogil
cdef void transpose(Py_ssize_t n, const double* W, const long long* rows, Py_ssize_t k, double* to,
                    Py_ssize_t cap) noexcept nogil
cdef Py_ssize_t project_room(Py_ssize_t k) noexcept nogil
cdef void remove(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* removed,
                 Py_ssize_t k, double* room) noexcept nogil
cdef Py_ssize_t removal_room(Py_ssize_t n) noexcept nogil
cdef Py_ssize_t removal_traces(Py_ssize_t n) noexcept nogil
cdef Py_ssize_t aligned(Py_ssize_t n) noexcept nogil
cdef void compact(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* place,
                  Py_ssize_t size, double* room) noexcept nogil
