# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values for other modules of the core."""

from adiabat._core.simd cimport kernel_job, kernel_name, kernel_rows


cdef class Rows:
    cdef readonly Py_ssize_t n, n_features, nnz
    cdef public object norms
    cdef kernel_rows _rows
    cdef object _held    # arrays whose memory is pointed to
    cdef object _roots   # of the norms

    cdef const double* measured(self, kernel_name kernel) except NULL


cdef class Formula:
    cdef kernel_name _kernel
    cdef double _gamma, _degree, _coef0
    cdef str _name

    cdef int _evaluate(self, Rows rows, Rows columns, double* top, Py_ssize_t apart,
                       const size_t* tops, Py_ssize_t step) except -1
    cdef int _require_finite(self, const kernel_job* job) except -1


cdef kernel_rows some_of(const kernel_rows* rows, Py_ssize_t first, Py_ssize_t k) noexcept
