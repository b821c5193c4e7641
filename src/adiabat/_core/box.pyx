# SPDX-License-Identifier: BSD-3-Clause
"""The violators' own small problem.

    minimise  1/2 d'Hd + g'd    subject to   lo <= d <= hi

by cyclic coordinate descent (a margin answers for the sum; without one, `pairs`). It stops at a
modest accuracy: the answer only decides who goes to a bound and who joins the margin, and the
margin system makes it exact.
"""

from libc.math cimport fabs

import numpy as np


def coordinate_descent(
    double[:, ::1] H, double[::1] g, double[::1] lo, double[::1] hi, Py_ssize_t sweeps,
    const double[::1] flat,
):
    """d after at most `sweeps` sweeps; a curvature below `flat` of its row counts as none.

    On return g is the gradient at d.
    """
    cdef Py_ssize_t k = g.shape[0], i, j, sweep
    cdef double step, target, largest, first = 0.0
    out = np.zeros(k)
    cdef double[::1] d = out
    with nogil:
        for sweep in range(sweeps):
            largest = 0.0
            for i in range(k):
                if H[i, i] > flat[i]:
                    target = d[i] - g[i] / H[i, i]
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
                    for j in range(k):
                        g[j] += H[i, j] * step
                    if fabs(step * g[i]) + H[i, i] * step * step > largest:
                        largest = fabs(step * g[i]) + H[i, i] * step * step
            if sweep == 0:
                first = largest
            if largest <= 1e-10 * first:
                break
    return out
