# SPDX-License-Identifier: BSD-3-Clause
"""The violators' own small problem.

    minimise  1/2 d'Hd + g'd    subject to   lo <= d <= hi

by cyclic coordinate descent (a margin answers for the sum; without one, `pairs`). It stops at a
modest accuracy: the answer only decides who goes to a bound and who joins the margin, and the
margin system makes it exact.
"""

from libc.math cimport fabs

import numpy as np

from adiabat._core.blas cimport axpy


def coordinate_descent(
    const double[:, ::1] H, double[::1] g, const double[::1] lo, const double[::1] hi,
    Py_ssize_t sweeps, const double[::1] flat,
):
    """d after at most `sweeps` sweeps; a curvature below `flat` of its row counts as none.

    On return g is the gradient at d.
    """
    cdef Py_ssize_t k = g.shape[0]
    out = np.zeros(k)
    cdef double[::1] d = out
    if not (H.shape[0] == H.shape[1] == lo.shape[0] == hi.shape[0] == flat.shape[0] == k):
        raise ValueError("rows do not fit")
    if k:
        with nogil:
            descend_in_box(k, &H[0, 0], &g[0], &lo[0], &hi[0], sweeps, &flat[0], &d[0])
    return out


cdef void descend_in_box(
    Py_ssize_t k, const double* H, double* g, const double* lo, const double* hi,
    Py_ssize_t sweeps, const double* flat, double* d,
) noexcept nogil:
    """The same; d need not be set before."""
    cdef Py_ssize_t i, sweep
    cdef double step, target, own, largest, first = 0.0
    for i in range(k):
        d[i] = 0.0
    for sweep in range(sweeps):
        largest = 0.0
        for i in range(k):
            own = H[i * k + i]
            if own > flat[i]:
                target = d[i] - g[i] / own
            elif g[i] > 0:
                target = lo[i]
            elif g[i] < 0:
                target = hi[i]
            else:
                target = d[i]
            if target < lo[i]:
                target = lo[i]
            if target > hi[i]:
                target = hi[i]
            step = target - d[i]
            if step != 0.0:
                d[i] = target
                axpy(k, step, H + i * k, g)
                if fabs(step * g[i]) + own * step * step > largest:
                    largest = fabs(step * g[i]) + own * step * step
        if sweep == 0:
            first = largest
        if largest <= 1e-10 * first:
            break
