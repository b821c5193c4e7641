# SPDX-License-Identifier: BSD-3-Clause
"""Substitutions with a triangle L (n, n), column j at L + j * cap, its newcomers and leavers.

Newcomers and leavers go through L once for each eight of them, and each time the team shares it:
`substitute.h` and `leave.h` say how. L and its columns begin at lines of the cache, for speed:
what straddles two of them is written at half of it.
"""

from libc.string cimport memcpy, memset

from adiabat._core.blas cimport dot, gemm
from adiabat._core.team cimport hands, share

cdef extern from "relay.h":
    ctypedef struct relay_count:
        pass
    ctypedef struct relay:
        relay_count next, done
    void relay_begin(relay* r) noexcept nogil
    Py_ssize_t relay_take(relay_count* next) noexcept nogil
    Py_ssize_t relay_wait(relay_count* done, Py_ssize_t known) noexcept nogil
    void relay_pass(relay* r, Py_ssize_t block) noexcept nogil

cdef extern from "leave.h":
    enum:
        LEAVE_MOST, LEAVE_GROUPS, LEAVE_LINE
    ctypedef struct departure:
        double* L
        double* z
        const long long* gone
        Py_ssize_t k, size, cap
        double* room
    void leave_begin(departure* d) noexcept nogil
    void leave(departure* d) noexcept nogil

cdef extern from "substitute.h":
    enum:
        SUBSTITUTE_MOST, SUBSTITUTE_EIGHTS
    ctypedef struct substitution:
        const double* L
        double* x
        Py_ssize_t first, n, cap, line, k
        relay blocks
    void substitute_forward(substitution* s) noexcept nogil
    void substitute_backward(substitution* s) noexcept nogil

cdef enum:
    LEAST = 320     # rows worth sharing
    HANDS = LEAVE_GROUPS    # that share a relay, at most: each block waits for the last
    PARTS = 4       # of the Schur complement that are shared out
    FEWEST = 8      # rows of one of them
    CLOSED = 8      # columns that move up together
    LINES = 16      # of the cache, of each row, that one transposes at a time


cdef void join_forward(void* context, Py_ssize_t part) noexcept nogil:
    substitute_forward(<substitution*> context)


cdef void join_backward(void* context, Py_ssize_t part) noexcept nogil:
    substitute_backward(<substitution*> context)


cdef void forward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x, Py_ssize_t k,
                  Py_ssize_t line) noexcept nogil:
    """x = L^-1 x, for each of k x, at most SUBSTITUTE_MOST, a line apart."""
    cdef substitution s
    s.L, s.x, s.first, s.n, s.cap, s.line, s.k = L, x, 0, n, cap, line, k
    # leading zeros stay: rows that joined last have the only residuals of many a round
    while k == 1 and s.first < n and x[s.first] == 0.0:
        s.first += 1
    relay_begin(&s.blocks)
    share(join_forward, &s, HANDS if n - s.first > LEAST else 1)


cdef void backward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x) noexcept nogil:
    """x = L^-T x"""
    cdef substitution s
    s.L, s.x, s.first, s.n, s.cap, s.line, s.k = L, x, 0, n, cap, n, 1
    relay_begin(&s.blocks)
    share(join_backward, &s, HANDS if n > LEAST else 1)


cdef void spread(Py_ssize_t n, const long long* place, Py_ssize_t size, const double* values,
                 double shift, double* x) noexcept nogil:
    """x = values + shift, at place[:size]; 0 elsewhere."""
    cdef Py_ssize_t i
    memset(x, 0, n * sizeof(double))
    for i in range(size):
        x[place[i]] = values[i] + shift


cdef void some_newcomers(void* context, Py_ssize_t part) noexcept nogil:
    # W = (cross + shift) L^-T, and p = W z - 1
    cdef Newcomers* them = <Newcomers*> context
    cdef Py_ssize_t j, first = part * them.step, n = them.n
    cdef Py_ssize_t last = min(first + them.step, them.k)
    for j in range(first, last):
        spread(n, them.place, them.size, them.cross + j * them.size, them.shift, them.W + j * n)
    for j in range(last, min(first + them.step, project_room(them.k))):
        memset(them.W + j * n, 0, n * sizeof(double))
    forward(n, them.L, them.cap, them.W + first * n, last - first, n)
    for j in range(first, last):
        them.p[j] = dot(n, them.z, them.W + j * n) - 1.0


cdef void subtract_square(void* context, Py_ssize_t part) noexcept nogil:
    # S[first:last, first:] -= W[first:last] @ W[first:].T
    cdef Newcomers* them = <Newcomers*> context
    cdef Py_ssize_t first = part * them.step, k = them.k, n = them.n
    gemm(True, False, k - first, min(them.step, k - first), n, -1.0, them.W + first * n, n,
         them.W + first * n, n, 1.0, them.S + first * (k + 1), k)


cdef Py_ssize_t project_room(Py_ssize_t k) noexcept nogil:
    """Rows of W that `project` wants for k newcomers."""
    return (k + SUBSTITUTE_MOST - 1) // SUBSTITUTE_MOST * SUBSTITUTE_MOST


cdef void project(Newcomers* them) noexcept nogil:
    """W = (cross + shift) L^-T, p = W z - 1 and S -= W W'."""
    cdef Py_ssize_t i, j, k = them.k, eights = project_room(k) // SUBSTITUTE_MOST
    cdef Py_ssize_t parts = hands() * ((eights - 1) // (hands() * SUBSTITUTE_EIGHTS) + 1)
    # as few parts as keep all hands busy, since each reads L; whoever is free takes one, alone:
    # a job within a job is not shared
    them.step = SUBSTITUTE_MOST * ((eights - 1) // parts + 1)
    share(some_newcomers, them, (k + them.step - 1) // them.step)
    them.step = max(FEWEST, (k + PARTS - 1) // PARTS)
    share(subtract_square, them, (k + them.step - 1) // them.step)
    for i in range(k):
        for j in range(i):
            them.S[i * k + j] = them.S[j * k + i]


cdef struct Transposed:
    # rows of W (, n) that become rows of `to`, whose columns are cap apart
    const double* W
    const long long* rows
    double* to
    Py_ssize_t n, k, cap


cdef void some_columns(void* context, Py_ssize_t part) noexcept nogil:
    cdef Transposed* job = <Transposed*> context
    cdef Py_ssize_t i, j, line, last
    for line in range(part * LINES, (part + 1) * LINES):
        last = min((line + 1) * LEAVE_LINE, job.n)
        for i in range(job.k):
            for j in range(line * LEAVE_LINE, last):
                job.to[j * job.cap + i] = job.W[job.rows[i] * job.n + j]


cdef void transpose(Py_ssize_t n, const double* W, const long long* rows, Py_ssize_t k, double* to,
                    Py_ssize_t cap) noexcept nogil:
    """to[i + j * cap] = W[rows[i], j] for k rows and all n columns of W, a line after the other."""
    cdef Transposed job
    job.W, job.rows, job.to, job.n, job.k, job.cap = W, rows, to, n, k, cap
    share(some_columns, &job, (n - 1) // (LINES * LEAVE_LINE) + 1)


cdef Py_ssize_t lined(Py_ssize_t n) noexcept nogil:
    """n, or the next number of rows with which columns that follow each other begin at lines.

    It is an odd number of lines: neighbours in a row then stand in different sets of the caches,
    which in a column of 4 KB would be one.
    """
    return ((n + LEAVE_LINE - 1) // LEAVE_LINE | 1) * LEAVE_LINE


cdef Py_ssize_t leaving_room(Py_ssize_t n) noexcept nogil:
    """Numbers that `let_go` and `close_up` want as room with n rows."""
    return max(leaving_traces(n), HANDS * CLOSED * n)


cdef Py_ssize_t leaving_traces(Py_ssize_t n) noexcept nogil:
    """Numbers of it that hold something of the rows when `let_go` is done."""
    return LEAVE_GROUPS * (LEAVE_MOST + 1) * n


cdef void join_leave(void* context, Py_ssize_t part) noexcept nogil:
    leave(<departure*> context)


cdef void let_go(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* gone,
                 Py_ssize_t k, double* room) noexcept nogil:
    """Rows gone[:k] (ascending) leave L, and the row z below it; the last ones first.

    L then has rows and columns of the identity in their places, and z zeros. cap is `lined`; what
    columns hold below their n rows may change.
    """
    cdef departure d
    d.L, d.z, d.gone, d.k, d.size, d.cap, d.room = L, z, gone, k, n, cap, room
    leave_begin(&d)
    share(join_leave, &d, HANDS if n - gone[0] > LEAST else 1)


cdef struct Closing:
    # of n rows and columns those at place[:size] stay; the first that moves
    double* L
    const long long* place
    Py_ssize_t n, size, cap, first
    double* room
    relay blocks


cdef void some_columns_close(void* context, Py_ssize_t part) noexcept nogil:
    # A block of columns goes where others have been, once all blocks before it have been taken up.
    cdef Closing* c = <Closing*> context
    cdef double* own = c.room + part * CLOSED * c.size
    cdef const double* column
    cdef Py_ssize_t i, j, first, last, top, known, block = relay_take(&c.blocks.next)
    while block * CLOSED < c.size:
        first = block * CLOSED
        last = min(first + CLOSED, c.size)
        for j in range(first, last):
            column = c.L + c.place[j] * c.cap
            for i in range(max(j, c.first), c.size):
                own[(j - first) * c.size + i] = column[c.place[i]]
        known = 0
        while known < block:
            known = relay_wait(&c.blocks.done, known)
        relay_pass(&c.blocks, block)
        for j in range(first, last):
            top = max(j, c.first)
            memcpy(c.L + j * c.cap + top, own + (j - first) * c.size + top,
                   (c.size - top) * sizeof(double))
            memset(c.L + j * c.cap + c.size, 0, (c.n - c.size) * sizeof(double))
        block = relay_take(&c.blocks.next)
    memset(own, 0, CLOSED * c.size * sizeof(double))


cdef void close_up(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* place,
                   Py_ssize_t size, double* room) noexcept nogil:
    """Rows and columns at place[:size] (ascending) move up to where others were; so does z."""
    cdef Py_ssize_t j
    cdef Closing c
    c.L, c.place, c.n, c.size, c.cap, c.first, c.room = L, place, n, size, cap, 0, room
    while c.first < size and place[c.first] == c.first:
        c.first += 1
    relay_begin(&c.blocks)
    share(some_columns_close, &c, HANDS if size > LEAST else 1)
    for j in range(size):
        z[j] = z[place[j]]
    for j in range(size, n):
        memset(L + j * cap + size, 0, (n - size) * sizeof(double))
        z[j] = 0.0
