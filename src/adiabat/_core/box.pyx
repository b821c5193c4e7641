# SPDX-License-Identifier: BSD-3-Clause
"""The violators' own small problem.

    minimise  1/2 d'Hd + g'd    subject to   lo <= d <= hi   [, sum d = 0]

Without the equality (a margin answers for it): cyclic coordinate descent. With it (no margin yet):
the most violating pair with second-order choice of the partner, as SMO does. Both stop at a
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


def pairwise_descent(
    double[:, ::1] H, double[::1] g, double[::1] lo, double[::1] hi, Py_ssize_t steps,
    double flat, double tolerance,
):
    """d with sum d = 0 after at most `steps` pair moves; on return g is the gradient at d.

    A curvature below `flat` of the diagonal of a pair counts as none.
    """
    cdef Py_ssize_t k = g.shape[0], i, j, up, down, _
    cdef double best, gain, curvature, none, move, diff
    out = np.zeros(k)
    cdef double[::1] d = out
    with nogil:
        for _ in range(steps):
            # the row that most wants to rise ...
            up = -1
            best = 0.0
            for i in range(k):
                if d[i] < hi[i] and (up < 0 or g[i] < best):
                    up = i
                    best = g[i]
            if up < 0:
                break
            # ... and the partner that falls with the largest gain
            down = -1
            best = 0.0
            for j in range(k):
                diff = g[j] - g[up]
                if d[j] > lo[j] and diff > tolerance:
                    curvature = H[up, up] + H[j, j] - 2.0 * H[up, j]
                    none = flat * (H[up, up] + H[j, j]) + 1e-300
                    if curvature < none:
                        curvature = none
                    gain = diff * diff / curvature
                    if gain > best:
                        best = gain
                        down = j
            if down < 0:
                break
            curvature = H[up, up] + H[down, down] - 2.0 * H[up, down]
            diff = g[down] - g[up]
            move = hi[up] - d[up]
            if d[down] - lo[down] < move:
                move = d[down] - lo[down]
            none = flat * (H[up, up] + H[down, down]) + 1e-300
            if curvature > none and diff / curvature < move:
                move = diff / curvature
                d[up] += move
                d[down] -= move
            else:
                # land on the bound exactly, not within rounding of it
                if hi[up] - d[up] <= d[down] - lo[down]:
                    d[down] -= move
                    d[up] = hi[up]
                else:
                    d[up] += move
                    d[down] = lo[down]
            for j in range(k):
                g[j] += (H[up, j] - H[down, j]) * move
    return out
