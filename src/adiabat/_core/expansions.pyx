# SPDX-License-Identifier: BSD-3-Clause
"""Linear algebra in floating-point expansions: numbers of as many parts as the caller asks for.

A vector of m numbers has the shape (m, parts). A symmetric matrix has its first two parts in hi and
lo and the others, if there are any, in rest, one matrix each; entries on and above its diagonal
are read. `expansion.h` has the arithmetic. Products of parts below `cutoff` are left out.
"""

import numpy as np

cdef enum:
    MOST = 16  # parts of a number
    SPARE = 2  # parts of a sum beyond those of its terms

cdef extern from "expansion.h" nogil:
    void expansion_add(double* e, int parts, double x) noexcept
    void expansion_normalise(double* e, int parts) noexcept
    void expansion_add_product(double* e, int parts, const double* a, int a_parts, const double* b,
                               int b_parts, double sign, double cutoff) noexcept

#: How many parts a number can have.
MOST_PARTS = MOST - SPARE


cdef inline void clear(double* e) noexcept nogil:
    cdef int k
    for k in range(MOST):
        e[k] = 0.0


cdef inline void load(
    double* e, const double[:, ::1] hi, const double[:, ::1] lo, const double[:, :, ::1] rest,
    int extra, Py_ssize_t i, Py_ssize_t j,
) noexcept nogil:
    """e = M[i, j]"""
    cdef int k
    if i > j:
        i, j = j, i
    clear(e)
    e[0] = hi[i, j]
    e[1] = lo[i, j]
    for k in range(extra):
        e[2 + k] = rest[k, i, j]


cdef inline void store(double* e, double* out, int parts) noexcept nogil:
    cdef int k
    expansion_normalise(e, parts + SPARE)
    for k in range(parts):
        out[k] = e[k]


cdef int extra_parts(const double[:, :, ::1] rest) except -1:
    if rest is None:
        return 0
    if rest.shape[0] + 2 > MOST:
        raise ValueError(f"a number has at most {MOST} parts, not {rest.shape[0] + 2}")
    return <int>rest.shape[0]


cdef int parts_of(const double[:, ::1] x) except -1:
    if not 1 <= x.shape[1] <= MOST - SPARE:
        raise ValueError(f"a number has 1 to {MOST - SPARE} parts, not {x.shape[1]}")
    return <int>x.shape[1]


def column(
    const double[:, ::1] hi, const double[:, ::1] lo, const double[:, :, ::1] rest,
    Py_ssize_t m, Py_ssize_t p, int parts,
):
    """M[:m, p]"""
    cdef int extra = extra_parts(rest)
    cdef Py_ssize_t i
    cdef double[MOST] e
    answer = np.empty((m, parts))
    cdef double[:, ::1] out = answer
    parts_of(out)
    for i in range(m):
        load(&e[0], hi, lo, rest, extra, i, p)
        expansion_normalise(&e[0], MOST)
        store(&e[0], &out[i, 0], parts)
    return answer


def add_scaled(double[:, ::1] y, const double[:, ::1] x, const double[::1] a, double sign,
               double cutoff=0.0):
    """y += sign * a * x, a being one number"""
    cdef Py_ssize_t i
    cdef int k, parts = parts_of(y), x_parts = parts_of(x), a_parts = <int>a.shape[0]
    cdef double[MOST] e
    with nogil:
        for i in range(y.shape[0]):
            clear(&e[0])
            for k in range(parts):
                e[k] = y[i, k]
            expansion_add_product(&e[0], parts + SPARE, &x[i, 0], x_parts, &a[0], a_parts, sign,
                                  cutoff)
            store(&e[0], &y[i, 0], parts)


def add_products(double[:, ::1] y, const double[:, ::1] a, const double[:, ::1] b, double sign):
    """y += sign * a * b, number by number"""
    cdef Py_ssize_t i
    cdef int k, parts = parts_of(y), a_parts = parts_of(a), b_parts = parts_of(b)
    cdef double[MOST] e
    with nogil:
        for i in range(y.shape[0]):
            clear(&e[0])
            for k in range(parts):
                e[k] = y[i, k]
            expansion_add_product(&e[0], parts + SPARE, &a[i, 0], a_parts, &b[i, 0], b_parts, sign,
                                  0.0)
            store(&e[0], &y[i, 0], parts)


def divide(const double[:, ::1] y, const double[::1] d):
    """y / d, d being one number: long division, a part at a time"""
    cdef Py_ssize_t i
    cdef int k, parts = parts_of(y), d_parts = <int>d.shape[0]
    cdef double[MOST] left
    cdef double[MOST] q
    answer = np.empty((y.shape[0], parts))
    cdef double[:, ::1] out = answer
    with nogil:
        for i in range(y.shape[0]):
            clear(&left[0])
            clear(&q[0])
            for k in range(parts):
                left[k] = y[i, k]
            for k in range(parts + 1):
                q[k] = left[0] / d[0]
                expansion_add_product(&left[0], parts + SPARE, &q[k], 1, &d[0], d_parts, -1.0, 0.0)
                expansion_normalise(&left[0], parts + SPARE)
            store(&q[0], &out[i, 0], parts)
    return answer


def dot(const double[:, ::1] a, const double[:, ::1] b, const double[::1] start, int parts):
    """start + a'b"""
    cdef Py_ssize_t i
    cdef int k, a_parts = parts_of(a), b_parts = parts_of(b)
    cdef double[MOST] e
    answer = np.zeros((1, parts))
    cdef double[:, ::1] out = answer
    parts_of(out)
    with nogil:
        clear(&e[0])
        for k in range(min(parts, <int>start.shape[0])):
            e[k] = start[k]
        for i in range(a.shape[0]):
            expansion_add_product(&e[0], parts + SPARE, &a[i, 0], a_parts, &b[i, 0], b_parts, 1.0,
                                  0.0)
        store(&e[0], &out[0, 0], parts)
    return answer[0]


def dots(const double[:, ::1] A, const double[:, ::1] x, const double[::1] start):
    """start + A x, rounded once; A has numbers of one part"""
    cdef Py_ssize_t i, j
    cdef int k, parts = parts_of(x), first = <int>start.shape[0]
    cdef double[MOST] e
    answer = np.empty(A.shape[0])
    cdef double[::1] out = answer
    with nogil:
        for i in range(A.shape[0]):
            clear(&e[0])
            for k in range(min(parts, first)):
                e[k] = start[k]
            for j in range(A.shape[1]):
                expansion_add_product(&e[0], parts + SPARE, &A[i, j], 1, &x[j, 0], parts, 1.0, 0.0)
            expansion_normalise(&e[0], parts + SPARE)
            out[i] = e[0]
    return answer


def residual(
    const double[:, ::1] hi, const double[:, ::1] lo, const double[:, :, ::1] rest,
    const double[::1] ridge, const double[:, ::1] x, const double[:, ::1] b, double cutoff,
):
    """b - (M + diag(ridge)) x, M being the leading block"""
    cdef Py_ssize_t m = x.shape[0], i, j
    cdef int k, extra = extra_parts(rest), parts = parts_of(b), x_parts = parts_of(x)
    cdef double[MOST] e
    cdef double[MOST] entry
    answer = np.empty((m, parts))
    cdef double[:, ::1] out = answer
    with nogil:
        for i in range(m):
            clear(&e[0])
            for k in range(parts):
                e[k] = b[i, k]
            expansion_add_product(&e[0], parts + SPARE, &ridge[i], 1, &x[i, 0], x_parts, -1.0, 0.0)
            for j in range(m):
                load(&entry[0], hi, lo, rest, extra, i, j)
                expansion_add_product(&e[0], parts + SPARE, &entry[0], 2 + extra, &x[j, 0],
                                      x_parts, -1.0, cutoff)
            store(&e[0], &out[i, 0], parts)
    return answer


def remainder(
    const double[:, ::1] hi, const double[:, ::1] lo, const double[:, :, ::1] rest,
    const double[::1] ridge, const double[:, :, ::1] L, const double[:, :, ::1] U,
    const Py_ssize_t[::1] places, double cutoff,
):
    """M + diag(ridge) - sum_q L_q U_q' at some places, rounded once; the upper triangle of it."""
    cdef Py_ssize_t m = places.shape[0], a, b, i, j, q
    cdef int extra = extra_parts(rest), parts = <int>L.shape[2]
    cdef double[MOST] e
    answer = np.zeros((m, m))
    cdef double[:, ::1] out = answer
    if not 1 <= parts <= MOST - SPARE:
        raise ValueError(f"a number has 1 to {MOST - SPARE} parts, not {parts}")
    with nogil:
        for a in range(m):
            i = places[a]
            for b in range(a, m):
                j = places[b]
                load(&e[0], hi, lo, rest, extra, i, j)
                if i == j:
                    expansion_add(&e[0], parts + SPARE, ridge[i])
                for q in range(L.shape[0]):
                    expansion_add_product(&e[0], parts + SPARE, &L[q, i, 0], parts, &U[q, j, 0],
                                          parts, -1.0, cutoff)
                expansion_normalise(&e[0], parts + SPARE)
                out[a, b] = e[0]
    return answer
