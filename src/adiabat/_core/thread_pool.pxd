# SPDX-License-Identifier: BSD-3-Clause
"""The thread pool for other modules of the core: jobs shared without the interpreter."""

ctypedef void (*pool_task)(void* context, Py_ssize_t part) noexcept nogil

cdef void share(pool_task task, void* context, Py_ssize_t parts) noexcept nogil
cdef Py_ssize_t n_threads() noexcept nogil
cdef void stalled(long long nanoseconds) noexcept nogil
