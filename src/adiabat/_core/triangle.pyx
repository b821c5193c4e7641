# SPDX-License-Identifier: BSD-3-Clause
"""Substitutions with a triangle L (n, n), column j at L + j * cap, its newcomers and leavers.

Newcomers and leavers go through L once for each eight of them: `forward.h` and `leave.h` say how.
Substitutions, of one or many, are shared out by the team. Leavers are not, since each eight of them
change what the next find, and a part of one pass is over before another core has been told of it.
"""

from adiabat._core.blas cimport gemm, gemv, gemv_t, trsv_lower, trsv_lower_t
from adiabat._core.team cimport share

cdef extern from "leave.h":
    enum:
        LEAVE_MOST, LEAVE_CHUNK
    void leave(double* L, Py_ssize_t cap, double* z, Py_ssize_t size, const long long* gone,
               Py_ssize_t k, double* room) noexcept nogil

cdef extern from "forward.h":
    enum:
        FORWARD_MOST
    void forward_few(Py_ssize_t k, Py_ssize_t n, const double* L, Py_ssize_t cap, double* w,
                     Py_ssize_t line) noexcept nogil

cdef enum:
    COLUMNS = 128   # of a triangle that are taken together
    LEAST = 320     # rows worth sharing
    TOGETHER = 64   # rows of the Schur complement that one takes at a time, at most


cdef struct Block:
    # columns from `start` to `end` of a triangle of n rows
    const double* L
    double* x
    Py_ssize_t n, cap, start, end


cdef void rows_forward(void* context, Py_ssize_t part) noexcept nogil:
    # x[rows] -= L[rows, columns] @ x[columns], half of the rows below
    cdef Block* b = <Block*> context
    cdef Py_ssize_t half = (b.n - b.end + 1) // 2, first = b.end + part * half
    gemv(min(half, b.n - first), b.end - b.start, -1.0, b.L + b.start * b.cap + first, b.cap,
         b.x + b.start, b.x + first)


cdef void columns_backward(void* context, Py_ssize_t part) noexcept nogil:
    # x[columns] -= L[rows, columns].T @ x[rows], half of the columns
    cdef Block* b = <Block*> context
    cdef Py_ssize_t half = (b.end - b.start + 1) // 2, first = b.start + part * half
    gemv_t(b.n - b.end, min(half, b.end - first), -1.0, b.L + first * b.cap + b.end, b.cap,
           b.x + b.end, b.x + first)


cdef void forward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x) noexcept nogil:
    """x = L^-1 x"""
    cdef Block b
    b.L, b.x, b.n, b.cap, b.start = L, x, n, cap, 0
    # leading zeros stay: rows that joined last have the only residuals of many a round
    while b.start < n and x[b.start] == 0.0:
        b.start += 1
    while b.start < n:
        b.end = min(b.start + COLUMNS, n) if n - b.start > LEAST else n
        trsv_lower(b.end - b.start, L + b.start * (cap + 1), cap, x + b.start)
        if b.end < n:
            share(rows_forward, &b, 2)
        b.start = b.end


cdef void backward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x) noexcept nogil:
    """x = L^-T x"""
    cdef Block b
    b.L, b.x, b.n, b.cap, b.end = L, x, n, cap, n
    while b.end > 0:
        b.start = max(0, b.end - COLUMNS) if b.end > COLUMNS + COLUMNS // 2 else 0
        if b.end < n:
            share(columns_backward, &b, 2)
        trsv_lower_t(b.end - b.start, L + b.start * (cap + 1), cap, x + b.start)
        b.end = b.start


cdef struct Newcomers:
    # W (k, n), a row for each of k; S (k, k)
    const double* L
    double* W
    double* S
    Py_ssize_t n, k, cap, step


cdef void substitute(void* context, Py_ssize_t part) noexcept nogil:
    # W = W L^-T
    cdef Newcomers* them = <Newcomers*> context
    cdef Py_ssize_t first = part * FORWARD_MOST
    forward_few(min(them.k - first, <Py_ssize_t> FORWARD_MOST), them.n, them.L, them.cap,
                them.W + first * them.n, them.n)


cdef void subtract_square(void* context, Py_ssize_t part) noexcept nogil:
    # S[first:last, first:] -= W[first:last] @ W[first:].T
    cdef Newcomers* them = <Newcomers*> context
    cdef Py_ssize_t first = part * them.step, k = them.k, n = them.n
    gemm(True, False, k - first, min(them.step, k - first), n, -1.0, them.W + first * n, n,
         them.W + first * n, n, 1.0, them.S + first * (k + 1), k)


cdef Py_ssize_t project_room(Py_ssize_t k) noexcept nogil:
    """Rows of W that `project` wants for k newcomers."""
    return (k + FORWARD_MOST - 1) // FORWARD_MOST * FORWARD_MOST


cdef void project(Py_ssize_t n, const double* L, Py_ssize_t cap, Py_ssize_t k, double* W,
                  double* S) noexcept nogil:
    """W[j] = L^-1 W[j] for each of the k rows of W, and S -= W W'."""
    cdef Py_ssize_t i, j
    cdef Newcomers them
    them.L, them.W, them.S, them.n, them.k, them.cap = L, W, S, n, k, cap
    if k == 1:
        forward(n, L, cap, W)
    else:
        share(substitute, &them, (k + FORWARD_MOST - 1) // FORWARD_MOST)
    them.step = max(1, min(TOGETHER, (k + 1) // 2))
    share(subtract_square, &them, (k + them.step - 1) // them.step)
    for i in range(k):
        for j in range(i):
            S[i * k + j] = S[j * k + i]


cdef Py_ssize_t leaving_room(Py_ssize_t n) noexcept nogil:
    """Numbers that `let_go` wants as room with n rows."""
    return LEAVE_MOST * (n + 1 + LEAVE_CHUNK)


cdef void let_go(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* gone,
                 Py_ssize_t k, double* room) noexcept nogil:
    """Rows gone[:k] (ascending) leave L, and the row z below it; the last ones first.

    L then has rows and columns of the identity in their places, and z zeros.
    """
    cdef Py_ssize_t first, last = k
    while last > 0:
        first = max(0, last - LEAVE_MOST)
        leave(L, cap, z, n, gone + first, last - first, room)
        last = first
