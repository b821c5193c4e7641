# SPDX-License-Identifier: BSD-3-Clause
"""What is done to the rows of kernel columns in panels: read, write, swap, clear, move; shared out.

A column is the address of its first entry, the next being WIDTH further on.
"""

from libc.string cimport memcpy, memset

from adiabat._core.gram cimport WIDTH
from adiabat._core.thread_pool cimport pool_task, share


cdef enum:
    COLUMNS_PART = 1 << 15  # entries that one takes at a time
    SHARED = 8              # a column among others costs as much as so many entries in a row


cdef struct Columns:
    # k columns at the addresses a, and perhaps b, and what is to be read or written: n rows, those
    # in `rows` or all from `first` on, the entry of row i and column j at block[i * di + j * dj]
    const size_t* a
    const size_t* b
    const long long* rows
    double* block
    Py_ssize_t k, n, step, first, di, dj


cdef inline void clear_rows(void* context, Py_ssize_t part) noexcept nogil:
    # from the last row up: the judge has just read all of them, and the last are still in the cache
    cdef Columns* job = <Columns*> context
    cdef Py_ssize_t i, j, end = job.n - part * job.step
    for i in range(max(0, end - job.step), end):
        for j in range(job.k):
            (<double*> job.a[j])[i * WIDTH] = 0.0


cdef inline void swap_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef Columns* job = <Columns*> context
    cdef Py_ssize_t i, j
    cdef double* x
    cdef double* y
    for i in range(part * job.step, min((part + 1) * job.step, job.n)):
        for j in range(job.k):
            x = <double*> job.a[j] + i * WIDTH
            y = <double*> job.b[j] + i * WIDTH
            x[0], y[0] = y[0], x[0]


cdef inline void write_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef Columns* job = <Columns*> context
    cdef Py_ssize_t i, j, row
    for i in range(part * job.step, min((part + 1) * job.step, job.n)):
        row = job.first + i if job.rows == NULL else job.rows[i]
        for j in range(job.k):
            (<double*> job.a[j])[row * WIDTH] = job.block[i * job.di + j * job.dj]


cdef inline void read_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef Columns* job = <Columns*> context
    cdef Py_ssize_t i, j
    for i in range(part * job.step, min((part + 1) * job.step, job.n)):
        for j in range(job.k):
            job.block[i * job.di + j * job.dj] = (<double*> job.a[j])[job.rows[i] * WIDTH]


cdef struct Moves:
    # of all panels: rows `come` go where `to` says, and of n rows the first `left` stay
    double** data
    const long long* come
    const long long* to
    Py_ssize_t k, left, n


cdef inline void move_rows(void* context, Py_ssize_t panel) noexcept nogil:
    cdef Moves* job = <Moves*> context
    cdef Py_ssize_t i
    cdef double* data = job.data[panel]
    for i in range(job.k):
        memcpy(data + job.to[i] * WIDTH, data + job.come[i] * WIDTH,
               WIDTH * sizeof(double))
    memset(data + job.left * WIDTH, 0, (job.n - job.left) * WIDTH * sizeof(double))


cdef inline void in_columns(pool_task task, Columns* job) noexcept nogil:
    """Do something to the rows of columns, shared out."""
    job.step = max(1, COLUMNS_PART // (SHARED * job.k))
    share(task, job, (job.n + job.step - 1) // job.step)
