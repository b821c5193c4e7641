# SPDX-License-Identifier: BSD-3-Clause
"""The violators' own small problem for other modules of the core, without the interpreter."""

cdef void descend_in_box(
    Py_ssize_t k, const double* H, double* g, const double* lo, const double* hi,
    Py_ssize_t sweeps, const double* flat, double* d,
) noexcept nogil
