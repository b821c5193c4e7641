# SPDX-License-Identifier: BSD-3-Clause
"""How many threads BLAS has, by the functions of the libraries that are loaded.

    use(functions)          which these are; the first call counts
    number(limit, n_cpus)   how many threads an update has
    Hold                    BLAS at one thread, and the thread pool ready, for as long as it lasts

Signals and other threads of Python come in between instructions of the interpreter. So nothing
here is cut in two, and there is no lock.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc

from adiabat._core.thread_pool import MOST_THREADS, resize

ctypedef int (*Getter)() noexcept nogil
ctypedef void (*Setter)(int) noexcept nogil


cdef struct Library:
    Getter get
    Setter set
    int before  # how many threads it had when the first hold began


cdef Library* _libraries = NULL
cdef Py_ssize_t _n_libraries = 0
cdef Py_ssize_t _n_holds = 0
cdef Py_ssize_t _forks = 0  # holds that began before the last fork of the process do not count


def use(list functions):
    """Hold the libraries whose number of threads these are, addresses of (get, set)."""
    global _libraries, _n_libraries
    cdef Py_ssize_t i
    cdef Library* found
    if _libraries != NULL:
        return
    found = <Library*> calloc(len(functions) + 1, sizeof(Library))
    if found == NULL:
        raise MemoryError()
    for i in range(len(functions)):
        found[i].get = <Getter> <uintptr_t> functions[i][0]
        found[i].set = <Setter> <uintptr_t> functions[i][1]
    _libraries, _n_libraries = found, len(functions)


def number(int limit, int n_cpus):
    """How many threads an update has, or would have if it began now.

    That is the limit, if there is one (not 0); else as many as there are CPUs, and no more than a
    library had before it was held.
    """
    return _number(limit, n_cpus)


cdef int _number(int limit, int n_cpus) noexcept:
    cdef Py_ssize_t i
    cdef int n, most = 0
    for i in range(_n_libraries):
        n = _libraries[i].before if _n_holds else _libraries[i].get()
        most = max(most, n)
    if limit == 0:
        limit = min(n_cpus, most) if _n_libraries else n_cpus
    return max(1, min(limit, <int> MOST_THREADS))


def n_holds():
    """How many hold BLAS."""
    return _n_holds


def reset():
    """After a fork of the process: those who held BLAS are in the parent only."""
    global _n_holds, _forks
    _n_holds = 0
    _forks += 1


cdef class Hold:
    """BLAS at one thread from `begin` to `end`; the last to end gives it its threads back.

    It may also end if it never began.
    """

    cdef bint _lasts
    cdef Py_ssize_t _fork

    def begin(self, int limit, int n_cpus):
        """Hold BLAS, and let the thread pool have as many threads as `number` says."""
        global _n_holds
        cdef Py_ssize_t i
        cdef int n_threads
        if self._lasts and self._fork == _forks:
            return
        if _n_holds == 0:
            n_threads = _number(limit, n_cpus)
            for i in range(_n_libraries):
                _libraries[i].before = max(1, _libraries[i].get())
                _libraries[i].set(1)
            resize(n_threads)
        _n_holds += 1
        self._lasts, self._fork = True, _forks

    def end(self):
        """Let BLAS have its threads again, unless another holds it."""
        global _n_holds
        cdef Py_ssize_t i
        if not self._lasts:
            return
        self._lasts = False
        if self._fork != _forks:
            return
        _n_holds -= 1
        if _n_holds == 0:
            for i in range(_n_libraries):
                _libraries[i].set(_libraries[i].before)
            resize(1)
