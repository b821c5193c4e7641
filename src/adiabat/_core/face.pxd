# SPDX-License-Identifier: BSD-3-Clause
"""Steps on the face, for the descent by pairs."""

from adiabat._core.factor cimport Factor
from adiabat._core.simd cimport pair_descent


cdef class Face:
    cdef Factor _factor

    cdef double descend(self, pair_descent* p, const long long[::1] rows, double work) except -1
    cdef double _approach(self, Py_ssize_t m, double* g, double* u, const double* low,
                          const double* high, double* w, double left) noexcept nogil


cdef double face_work(Py_ssize_t n, Py_ssize_t m) noexcept nogil
