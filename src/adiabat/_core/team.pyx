# SPDX-License-Identifier: BSD-3-Clause
"""The team of this process: a job's parts, done by whoever is free (`team.h` says how).

    resize(threads)          how many may work, the caller included; one to begin with
    call()                   jobs are about to come
    in_slices(task, n, e)    task(slice) on slices that together are range(n), where e entries are
                             read for all of them
    share(...)               the same for other modules of the core, without the interpreter
"""

# Slices for each thread, so that one that comes late takes fewer; and the entries of the matrices
# read that make a slice worth its calls of Python.
SLICES = 2
LEAST_ENTRIES = 200_000

cdef extern from "team.h":
    ctypedef struct team:
        pass
    team* team_new() noexcept nogil
    void team_resize(team* t, int threads) noexcept nogil
    void team_call(team* t) noexcept nogil
    int team_size(team* t) noexcept nogil
    void team_share(team* t, team_task task, void* context, Py_ssize_t parts) noexcept nogil


cdef team* _team = team_new()


def begin_anew():
    """A new team, after a fork: helpers do not come along, nor does whoever held a lock."""
    global _team
    _team = team_new()


def resize(int threads):
    """Let so many threads work on a job, the caller included."""
    team_resize(_team, threads)


def call():
    """Tell helpers that jobs are about to come."""
    team_call(_team)


def size():
    """How many threads may work on a job."""
    return hands()


cdef void share(team_task task, void* context, Py_ssize_t parts) noexcept nogil:
    """task(context, part) for each part; all are done on return, in any order."""
    team_share(_team, task, context, parts)


cdef Py_ssize_t hands() noexcept nogil:
    """How many threads may work on a job."""
    return team_size(_team)


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
    in_parts(task, n, min(SLICES * team_size(_team), entries // LEAST_ENTRIES))


def in_parts(task, Py_ssize_t n, Py_ssize_t parts):
    """Call task on so many slices that together are range(n)."""
    if parts <= 1 or team_size(_team) <= 1:
        task(slice(0, n))
        return
    cdef _Slices job = _Slices()
    job.task, job.n, job.parts, job.error = task, n, parts, None
    cdef void* context = <void*> job
    with nogil:
        share(<team_task> _one_slice, context, parts)
    if job.error is not None:
        raise job.error
