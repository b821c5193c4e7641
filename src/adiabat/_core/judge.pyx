# SPDX-License-Identifier: BSD-3-Clause
"""What the judge of an update computes: f = K u for all rows, and its verdict on them.

The product is what an update reads most memory for, so BLAS does it, rows in parts for threads to
share. Nothing of the engine has a hand in it but the kernel columns themselves; `certificate()`
does without these too, in NumPy (`adiabat.certificate`).
"""

from libc.math cimport NAN, fabs

import numpy as np

from adiabat._core.blas cimport gemm, gemv_t
from adiabat._core.thread_pool cimport share

cdef enum:
    PART = 1 << 17      # entries that one reads at a time
    LEAST = 16          # rows of a part
    LINE = 8            # entries in a line of the cache: what a column by itself costs in a row
    LANES = 8           # sums side by side


cdef struct Job:
    # block k: widths[k] columns, from panels[k] on, lines[k] entries from row to row; weights[k]
    # are as many lines of `machines` numbers
    size_t* panels
    size_t* weights
    long long* lines
    long long* widths
    Py_ssize_t n_blocks, n, machines, step
    double* out


cdef void some_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef Job* job = <Job*> context
    cdef Py_ssize_t first = part * job.step, k, m = job.machines
    cdef Py_ssize_t rows = min(job.step, job.n - first)
    cdef const double* panel
    for k in range(job.n_blocks):
        panel = <const double*> job.panels[k] + first * job.lines[k]
        if m == 1:
            # out += panel @ weights
            gemv_t(job.widths[k], rows, 1.0, panel, job.lines[k], <const double*> job.weights[k],
                   job.out + first)
        else:
            gemm(False, False, m, rows, job.widths[k], 1.0, <const double*> job.weights[k], m,
                 panel, job.lines[k], 1.0, job.out + first * m, m)


def weigh(panels, const double[:, ::1] weights, double[:, ::1] out):
    """out = [panels side by side][:n] @ weights, of each panel the columns with weights alone.

    Panels are float64 with contiguous rows, one at least for each of out, all as wide as the first.
    """
    cdef Py_ssize_t i, j, p, first, last, count, total = 0, blocks = 0
    cdef bint apart
    cdef Py_ssize_t n = out.shape[0], machines = out.shape[1], width
    cdef const double[:, ::1] panel
    cdef bint used
    cdef Job job
    out[:] = 0.0
    if len(panels) == 0 or n == 0 or machines == 0 or weights.shape[0] == 0:
        return
    width = panels[0].shape[1]
    if weights.shape[0] != width * len(panels) or weights.shape[1] != machines:
        raise ValueError("columns and weights do not fit")
    plan = np.empty((4, len(panels) * (1 + width // LINE)), dtype=np.int64)
    cdef long long[:, ::1] held = plan
    job.panels, job.weights = <size_t*> &held[0, 0], <size_t*> &held[1, 0]
    job.lines, job.widths = &held[2, 0], &held[3, 0]
    for p in range(len(panels)):
        panel = panels[p]
        if panel.shape[0] < n or panel.shape[1] != width:
            raise ValueError("a panel does not fit")
        first, last, count = -1, -1, 0
        for i in range(p * width, (p + 1) * width):
            used = False
            for j in range(machines):
                used = used or weights[i, j] != 0.0
            if used:
                first = i if first < 0 else first
                last = i
                count += 1
        if count == 0:
            continue
        apart = LINE * count < last + 1 - first  # one by one: fewer lines are read
        i = first
        while i <= last:
            used = not apart
            for j in range(machines):
                used = used or weights[i, j] != 0.0
            if used:
                job.panels[blocks] = <size_t> &panel[0, i - p * width]
                job.weights[blocks] = <size_t> &weights[i, 0]
                job.lines[blocks] = width
                job.widths[blocks] = 1 if apart else last - i + 1
                total += job.widths[blocks]
                i += job.widths[blocks]
                blocks += 1
            else:
                i += 1
    job.n_blocks, job.n, job.machines, job.out = blocks, n, machines, &out[0, 0]
    job.step = max(LEAST, PART // max(1, total))
    with nogil:
        share(some_rows, &job, (n + job.step - 1) // job.step)


cdef struct Sums:
    # over rows, in lanes: in one sum every addition would wait for the last
    double[LANES] worst, gap, any_r, total, carry, ur, ut


cdef inline double add(double a, double b, double* carry) noexcept nogil:
    # a + b; what rounding took from it is added to carry
    cdef double s = a + b, part = s - a
    carry[0] += (a - (s - part)) + (b - part)
    return s


cdef inline void hear(Sums* s, Py_ssize_t lane, double r, double u, double t, double lo,
                      double hi) noexcept nogil:
    cdef double low = lo - u, high = u - hi
    s.any_r[lane] += r - r  # NaN, if one r is that or infinite
    low = r if low < 0.0 else low
    high = -r if high < 0.0 else high
    low = low if low > high else high
    s.worst[lane] = low if low > s.worst[lane] else s.worst[lane]
    low, high = r * lo, r * hi
    s.gap[lane] += r * u - (low if low < high else high)
    # with compensation: rounding in this sum would be taken for a fault
    s.total[lane] = add(s.total[lane], u, &s.carry[lane])
    s.ur[lane] += u * r
    s.ut[lane] += u * t


def verdict(const double[::1] r, const double[::1] u, const double[::1] t, const double[::1] lo,
            const double[::1] hi, double d, double b):
    """(residual, gap) of one machine: as `adiabat.certificate.judge`, in one pass."""
    cdef Py_ssize_t i, j, lane, n = u.shape[0]
    cdef Sums s
    if n == 0:
        return 0.0, 0.0
    if not (r.shape[0] == t.shape[0] == lo.shape[0] == hi.shape[0] == n):
        raise ValueError("rows do not fit")
    for lane in range(LANES):
        s.worst[lane] = s.gap[lane] = s.any_r[lane] = s.ur[lane] = s.ut[lane] = 0.0
        s.total[lane] = s.carry[lane] = 0.0
    with nogil:
        for i in range(n // LANES):
            for lane in range(LANES):
                j = i * LANES + lane
                hear(&s, lane, r[j], u[j], t[j], lo[j], hi[j])
        for j in range(n - n % LANES, n):
            hear(&s, 0, r[j], u[j], t[j], lo[j], hi[j])
        for lane in range(1, LANES):
            s.worst[0] = max(s.worst[0], s.worst[lane])
            s.gap[0] += s.gap[lane]
            s.any_r[0] += s.any_r[lane]
            s.carry[0] += s.carry[lane]
            s.total[0] = add(s.total[0], s.total[lane], &s.carry[0])
            s.ur[0] += s.ur[lane]
            s.ut[0] += s.ut[lane]
    if not (s.any_r[0] == 0.0 and s.total[0] - s.total[0] == 0.0):
        return NAN, NAN
    # u'Ku = sum u (r + t) - b d, so the objective needs no second product with K
    cdef double objective = 0.5 * (s.ur[0] - b * d - s.ut[0])
    return (max(s.worst[0], fabs(s.total[0] + s.carry[0] - d)),
            max(s.gap[0], 0.0) / max(1.0, fabs(objective)))
