# SPDX-License-Identifier: BSD-3-Clause
"""The thread pool of this process; `thread_pool.h` says how it shares the parts of a job.

    resize(n_threads)        how many may work, the caller included; one to begin with
    wake()                   jobs are about to come
    in_slices(task, n, e)    task(slice) on slices that together are range(n), where e entries are
                             read for all of them
    share(...)               the same for other modules of the core, without the interpreter
"""

# Slices of a large job, so that a thread that comes late takes fewer; and the entries of the
# matrices read that make a slice worth its calls of Python. Neither depends on the number of
# threads, and so no result does.
SLICES = 16
LEAST_ENTRIES = 400_000

cdef extern from "thread_pool.h":
    enum:
        POOL_MOST
    ctypedef struct thread_pool:
        pass
    thread_pool* pool_new() noexcept nogil
    void pool_resize(thread_pool* p, int n_threads) noexcept nogil
    void pool_wake(thread_pool* p) noexcept nogil
    int pool_size(thread_pool* p) noexcept nogil
    void pool_share(thread_pool* p, pool_task task, void* context, Py_ssize_t parts) noexcept nogil
    void pool_stalled(thread_pool* p, long long nanoseconds) noexcept nogil

MOST_THREADS = POOL_MOST

cdef thread_pool* _pool = pool_new()


def reset():
    """Take a new pool, after a fork: no thread of the old one has come along."""
    global _pool
    _pool = pool_new()


def resize(int n_threads):
    """Let so many threads work on a job, the caller included."""
    pool_resize(_pool, n_threads)


def wake():
    """Tell the threads that jobs are about to come."""
    pool_wake(_pool)


def size():
    """How many threads may work on a job."""
    return n_threads()


cdef void share(pool_task task, void* context, Py_ssize_t parts) noexcept nogil:
    """task(context, part) for each part; all are done on return, in any order."""
    pool_share(_pool, task, context, parts)


cdef Py_ssize_t n_threads() noexcept nogil:
    """How many threads may work on a job."""
    return pool_size(_pool)


cdef void stalled(long long nanoseconds) noexcept nogil:
    """In the midst of a job, a thread has waited so long for another."""
    pool_stalled(_pool, nanoseconds)


cdef class _Slices:
    """A job in Python: what to call, on how much, and what went wrong."""

    cdef object task, error
    cdef Py_ssize_t n, parts


cdef void _one_slice(void* context, Py_ssize_t part) noexcept with gil:
    cdef _Slices job = <_Slices> context
    if job.error is not None:
        return
    try:
        job.task(slice(job.n * part // job.parts, job.n * (part + 1) // job.parts))
    except BaseException as error:
        job.error = error


def in_slices(task, Py_ssize_t n, Py_ssize_t entries):
    """Call task on slices that together are range(n), as many as what is read is worth.

    The first error is raised at the end.
    """
    in_parts(task, n, min(SLICES, entries // LEAST_ENTRIES))


def in_parts(task, Py_ssize_t n, Py_ssize_t parts):
    """Call task on so many slices that together are range(n)."""
    if parts <= 1:
        task(slice(0, n))
        return
    cdef _Slices job = _Slices()
    job.task, job.n, job.parts, job.error = task, n, parts, None
    cdef void* context = <void*> job
    with nogil:
        share(<pool_task> _one_slice, context, parts)
    if job.error is not None:
        raise job.error
