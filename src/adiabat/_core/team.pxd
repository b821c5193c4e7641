# SPDX-License-Identifier: BSD-3-Clause
"""The team for other modules of the core: jobs shared out without the interpreter."""

ctypedef void (*team_task)(void* context, Py_ssize_t part) noexcept nogil

cdef void share(team_task task, void* context, Py_ssize_t parts) noexcept nogil
cdef Py_ssize_t hands() noexcept nogil
