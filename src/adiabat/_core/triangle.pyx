# SPDX-License-Identifier: BSD-3-Clause
"""Triangular solves with L (n, n), column j at L + j * cap; rows that join it or are removed.

Rows join and are removed eight by eight. Each eight goes through L once, on several threads:
`triangular_solve.h` and `downdate.h` say how. L and its columns begin at cache lines: what
straddles two of them is written at half the speed.
"""

from libc.string cimport memcpy, memset

from adiabat._core.blas cimport dot, gemm
from adiabat._core.simd cimport (
    downdate, DOWNDATE_BLOCK, DOWNDATE_GROUPS, DOWNDATE_KEPT, DOWNDATE_LINE, DOWNDATE_SMALL,
    simd, SOLVE_MOST, SOLVE_STEP, triangular_solve, wavefront, wavefront_begin, wavefront_pass,
    wavefront_take, wavefront_wait, word_load, word_store,
)
from adiabat._core.thread_pool cimport n_threads, share, stalled

cdef enum:
    LEAST = DOWNDATE_SMALL  # rows; more are worth sharing
    THREADS = DOWNDATE_GROUPS   # of a wavefront, at most: each block waits for the last
    PARTS = 4       # of the Schur complement that are shared out
    FEWEST = 8      # rows of one of them
    MOVED = 8       # columns that move up together
    LINES = 16      # cache lines of each row that are transposed at a time


cdef void report_stalls(wavefront* w) noexcept nogil:
    if word_load(&w.stalled):
        stalled(word_load(&w.stalled))


cdef void join_forward(void* context, Py_ssize_t part) noexcept nogil:
    simd.solve_forward(<triangular_solve*> context)
    report_stalls(&(<triangular_solve*> context).blocks)


cdef void join_backward(void* context, Py_ssize_t part) noexcept nogil:
    simd.solve_backward(<triangular_solve*> context)
    report_stalls(&(<triangular_solve*> context).blocks)


cdef void join_downdate(void* context, Py_ssize_t part) noexcept nogil:
    simd.downdate_join(<downdate*> context)
    report_stalls(&(<downdate*> context).blocks)


cdef void forward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x, Py_ssize_t k,
                  Py_ssize_t line) noexcept nogil:
    """x = L^-1 x, for each of k x, at most SOLVE_MOST, a line apart."""
    cdef triangular_solve s
    s.L, s.x, s.first, s.n, s.cap, s.line, s.k = L, x, 0, n, cap, line, k
    # leading zeros stay: in many rounds only the rows that joined last have residuals
    while k == 1 and s.first < n and x[s.first] == 0.0:
        s.first += 1
    wavefront_begin(&s.blocks)
    share(join_forward, &s, THREADS if n - s.first > LEAST else 1)


cdef void backward(Py_ssize_t n, const double* L, Py_ssize_t cap, double* x) noexcept nogil:
    """x = L^-T x"""
    cdef triangular_solve s
    s.L, s.x, s.first, s.n, s.cap, s.line, s.k = L, x, 0, n, cap, n, 1
    wavefront_begin(&s.blocks)
    share(join_backward, &s, THREADS if n > LEAST else 1)


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
    return (k + SOLVE_STEP - 1) // SOLVE_STEP * SOLVE_STEP


cdef void project(Newcomers* them) noexcept nogil:
    """W = (cross + shift) L^-T, p = W z - 1 and S -= W W'."""
    cdef Py_ssize_t i, j, k = them.k, eights = project_room(k) // SOLVE_STEP
    cdef Py_ssize_t most = n_threads() * SOLVE_MOST // SOLVE_STEP
    cdef Py_ssize_t parts = n_threads() * ((eights - 1) // most + 1)
    # as few parts as keep all threads busy, since each reads L; a part is one thread's: a job
    # within a job is not shared
    them.step = SOLVE_STEP * ((eights - 1) // parts + 1)
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
        last = min((line + 1) * DOWNDATE_LINE, job.n)
        for i in range(job.k):
            for j in range(line * DOWNDATE_LINE, last):
                job.to[j * job.cap + i] = job.W[job.rows[i] * job.n + j]


cdef void transpose(Py_ssize_t n, const double* W, const long long* rows, Py_ssize_t k, double* to,
                    Py_ssize_t cap) noexcept nogil:
    """to[i + j * cap] = W[rows[i], j] for k rows and all n columns of W, by cache lines."""
    cdef Transposed job
    job.W, job.rows, job.to, job.n, job.k, job.cap = W, rows, to, n, k, cap
    share(some_columns, &job, (n - 1) // (LINES * DOWNDATE_LINE) + 1)


cdef Py_ssize_t aligned(Py_ssize_t n) noexcept nogil:
    """n, or the next number of rows with which columns that follow each other begin at cache lines.

    It is an odd number of lines: neighbours in a row then stand in different sets of the caches,
    which in a column of 4 KB would be one.
    """
    return ((n + DOWNDATE_LINE - 1) // DOWNDATE_LINE | 1) * DOWNDATE_LINE


cdef Py_ssize_t removal_room(Py_ssize_t n) noexcept nogil:
    """Numbers that `remove` and `compact` want as room with n rows."""
    return max(removal_traces(n), THREADS * MOVED * n)


cdef Py_ssize_t removal_traces(Py_ssize_t n) noexcept nogil:
    """Numbers of it that hold something of the rows when `remove` is done."""
    return DOWNDATE_GROUPS * DOWNDATE_KEPT * (
        (n + DOWNDATE_BLOCK - 1) // DOWNDATE_BLOCK * DOWNDATE_BLOCK)


cdef void remove(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* removed,
                 Py_ssize_t k, double* room) noexcept nogil:
    """Remove rows removed[:k] (ascending) from L, and from the row z below it; the last ones first.

    L then has rows and columns of the identity in their places, and z zeros. cap is `aligned`; what
    columns hold below their n rows may change.
    """
    cdef downdate d
    cdef Py_ssize_t g
    d.L, d.z, d.removed, d.k, d.size, d.cap, d.room = L, z, removed, k, n, cap, room
    wavefront_begin(&d.blocks)
    for g in range(DOWNDATE_GROUPS):
        word_store(&d.done[g], 0)
    share(join_downdate, &d, THREADS if n - removed[0] > LEAST else 1)


cdef struct Moves:
    # of n rows and columns those at place[:size] stay; the first that moves
    double* L
    const long long* place
    Py_ssize_t n, size, cap, first
    double* room
    wavefront blocks


cdef void move_columns(void* context, Py_ssize_t part) noexcept nogil:
    # A block of columns goes where others have been, once all blocks before it have been copied.
    cdef Moves* c = <Moves*> context
    cdef double* own = c.room + part * MOVED * c.size
    cdef const double* column
    cdef Py_ssize_t i, j, first, last, top, known, block = wavefront_take(&c.blocks)
    while block * MOVED < c.size:
        first = block * MOVED
        last = min(first + MOVED, c.size)
        for j in range(first, last):
            column = c.L + c.place[j] * c.cap
            for i in range(max(j, c.first), c.size):
                own[(j - first) * c.size + i] = column[c.place[i]]
        known = 0
        while known < block:
            known = wavefront_wait(&c.blocks, known)
        wavefront_pass(&c.blocks, block)
        for j in range(first, last):
            top = max(j, c.first)
            memcpy(c.L + j * c.cap + top, own + (j - first) * c.size + top,
                   (c.size - top) * sizeof(double))
            memset(c.L + j * c.cap + c.size, 0, (c.n - c.size) * sizeof(double))
        block = wavefront_take(&c.blocks)
    memset(own, 0, MOVED * c.size * sizeof(double))
    report_stalls(&c.blocks)


cdef void compact(Py_ssize_t n, double* L, Py_ssize_t cap, double* z, const long long* place,
                  Py_ssize_t size, double* room) noexcept nogil:
    """Rows and columns at place[:size] (ascending) move up to where others were; so does z."""
    cdef Py_ssize_t j
    cdef Moves c
    c.L, c.place, c.n, c.size, c.cap, c.first, c.room = L, place, n, size, cap, 0, room
    while c.first < size and place[c.first] == c.first:
        c.first += 1
    wavefront_begin(&c.blocks)
    share(move_columns, &c, THREADS if size > LEAST else 1)
    for j in range(size):
        z[j] = z[place[j]]
    for j in range(size, n):
        memset(L + j * cap + size, 0, (n - size) * sizeof(double))
        z[j] = 0.0
