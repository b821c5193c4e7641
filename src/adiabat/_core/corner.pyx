# SPDX-License-Identifier: BSD-3-Clause
"""The corner of a factor: which of the rows that would join are independent, and their Cholesky.

Independent rows are factored together. If some depend on the margin or on each other, pivots go in
order of their size relative to the diagonal, and what falls below `dependent` stays out.
"""

from libc.math cimport sqrt
from libc.string cimport memcpy, memset

from adiabat._core.blas cimport axpy, potrf


cdef Py_ssize_t factor_corner(Corner* c) noexcept nogil:
    """Returns how many join: their numbers are in `order`, and C[a, b], b >= a, is entry (b, a)."""
    cdef Py_ssize_t i, k = c.k
    memcpy(c.C, c.S, k * k * sizeof(double))
    c.least_pivot = 0.0
    if potrf(k, c.C, k) != 0:
        return with_pivots(c)
    for i in range(k):
        if not c.C[i * k + i] * c.C[i * k + i] > c.dependent * c.scale[i]:
            return with_pivots(c)
        c.order[i] = i
    return k


cdef Py_ssize_t with_pivots(Corner* c) noexcept nogil:
    """Pivoted Cholesky of S, which is overwritten, until pivots fall below `dependent`."""
    cdef Py_ssize_t i, a, best, k = c.k, taken = 0
    cdef double pivot, ratio, best_ratio
    cdef double* S = c.S
    cdef double* column  # its entry i is (i, taken)
    memset(c.done, 0, k)
    while taken < k:
        best = -1
        best_ratio = c.dependent
        for i in range(k):
            if not c.done[i] and c.scale[i] > 0.0 and S[i * k + i] > best_ratio * c.scale[i]:
                best_ratio = S[i * k + i] / c.scale[i]
                best = i
        if best < 0:
            break
        c.done[best] = 1
        pivot = sqrt(S[best * k + best])
        column = c.columns + taken * k
        for i in range(k):
            column[i] = 0.0 if c.done[i] else S[i * k + best] / pivot
        column[best] = pivot
        for i in range(k):
            if not c.done[i]:
                axpy(k, -column[i], column, S + i * k)
        c.order[taken] = best
        taken += 1
    for i in range(k):
        ratio = S[i * k + i] / c.scale[i] if c.scale[i] > 0.0 else 0.0
        if not c.done[i] and ratio < c.least_pivot:
            c.least_pivot = ratio
    for a in range(taken):
        for i in range(a, taken):
            c.C[a * k + i] = c.columns[a * k + c.order[i]]
    return taken
