# SPDX-License-Identifier: BSD-3-Clause
"""What the judge of an update computes: f = K u for all rows, and its verdict on them.

The product is what an update reads most memory for, so BLAS does it, rows in parts for threads to
share. Nothing of the engine has a hand in it but the kernel columns themselves; `certificate()`
does without these too, in NumPy (`adiabat.certificate`).
"""

from libc.math cimport NAN, fabs

import numpy as np

from adiabat._core.blas cimport dot, gemm, gemv_t
from adiabat._core.thread_pool cimport share

cdef extern from "prefetch.h":
    void prefetch_doubles(const double*, Py_ssize_t) noexcept nogil

cdef enum:
    PART = 1 << 17      # entries that one reads at a time
    AHEAD = 1 << 9      # entries that are asked for ahead, of rows that stand here and there
    LEAST = 16          # rows of a part
    LINE = 8            # entries in a line of the cache: what a column by itself costs in a row
    LANES = 8           # sums side by side

cdef double EPSILON = 2.0 ** -52
cdef double SUM_ROUNDINGS = 8.0    # of the weights that their sum may be off


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


cdef struct RowJob:
    # f of n rows by runs of columns, `line` numbers from row to row
    size_t* tops
    size_t* weights
    long long* lengths
    const long long* rows
    Py_ssize_t n_runs, n, line, step
    double* out


cdef void some_single_rows(void* context, Py_ssize_t part) noexcept nogil:
    cdef RowJob* job = <RowJob*> context
    cdef Py_ssize_t i, k, ahead, last = min((part + 1) * job.step, job.n)
    cdef const double* top
    # run by run: rows that stand together share pages of memory
    for k in range(job.n_runs):
        top, ahead = <const double*> job.tops[k], max(2, AHEAD // job.lengths[k])
        for i in range(part * job.step, last):
            if i + ahead < last:
                prefetch_doubles(top + job.rows[i + ahead] * job.line, job.lengths[k])
            job.out[i] += dot(job.lengths[k], top + job.rows[i] * job.line,
                              <const double*> job.weights[k])


def weigh_rows(panels, const double[::1] weights, const long long[::1] rows, double[::1] out):
    """out = [panels side by side][rows] @ weights: for one machine among many, of other rows.

    Of a row the lines of the cache are read that have a weight.
    """
    cdef Py_ssize_t p, j, k = 0, width, total = 0, lines = weights.shape[0] // LINE
    cdef Py_ssize_t shortest
    cdef const double[:, ::1] panel
    cdef bint used, before = False
    cdef RowJob job
    out[:] = 0.0
    if lines == 0 or rows.shape[0] == 0:
        return
    width = panels[0].shape[1]
    if weights.shape[0] != width * len(panels) or width % LINE or out.shape[0] != rows.shape[0]:
        raise ValueError("columns, rows and weights do not fit")
    shortest = len(panels[0])
    for panel in panels:
        shortest = min(shortest, panel.shape[0])
    for j in range(rows.shape[0]):
        if not 0 <= rows[j] < shortest:
            raise ValueError("a row is not there")
    plan = np.empty((3, lines), dtype=np.int64)
    cdef long long[:, ::1] held = plan
    job.tops, job.weights = <size_t*> &held[0, 0], <size_t*> &held[1, 0]
    job.lengths = &held[2, 0]
    for p in range(lines):
        used = False
        for j in range(p * LINE, (p + 1) * LINE):
            used = used or weights[j] != 0.0
        if used and before and p * LINE % width:
            job.lengths[k - 1] += LINE
        elif used:
            panel = panels[p * LINE // width]
            job.tops[k] = <size_t> &panel[0, p * LINE % width]
            job.weights[k] = <size_t> &weights[p * LINE]
            job.lengths[k] = LINE
            k += 1
        total += LINE if used else 0
        before = used
    job.n_runs, job.n, job.line, job.rows, job.out = k, rows.shape[0], width, &rows[0], &out[0]
    job.step = max(LEAST, PART // max(1, total))
    with nogil:
        share(some_single_rows, &job, (job.n + job.step - 1) // job.step)


cdef struct Sums:
    # over rows, in lanes: in one sum every addition would wait for the last
    # (worst violation, farthest u from its box: whether there is any)
    double[LANES] worst, gap, spread, any_r, total, carry, weight, ur, ut, noise, outside


cdef struct Scales:
    # what a row is measured by: tol, roundings of f, a typical target and a typical size of f
    double tol, rounding, typical, size, b


cdef inline double add(double a, double b, double* carry) noexcept nogil:
    # a + b; what rounding took from it is added to carry
    cdef double s = a + b, part = s - a
    carry[0] += (a - (s - part)) + (b - part)
    return s


cdef inline double rounding_of(const Scales* by, double r, double t, double size) noexcept nogil:
    # 0 <= size: sum |k u|, which is at least |f - b|, also where nothing is known of it
    cdef double least = fabs(r + t - by.b)
    least = least if least > by.size else by.size
    return by.rounding * ((size if size > least else least) + fabs(by.b) + fabs(t))


cdef inline double allowed_of(const Scales* by, double t, double rounding) noexcept nogil:
    cdef double size = fabs(t)
    return by.tol * (size if size > by.typical else by.typical) + rounding


cdef inline double violation_of(double r, double u, double lo, double hi) noexcept nogil:
    cdef double low = r if u > lo else 0.0, high = -r if u < hi else 0.0
    low = low if low > high else high
    return low if low > 0.0 else 0.0


cdef inline double outside_of(double u, double lo, double hi) noexcept nogil:
    cdef double below = lo - u, above = u - hi
    return below if below > above else above


cdef inline void add_row(Sums* s, Py_ssize_t lane, const Scales* by, double r, double u, double t,
                         double lo, double hi, double size) noexcept nogil:
    cdef double down = u - lo, up = hi - u, room
    cdef double rounding = rounding_of(by, r, t, size)
    cdef double violation = violation_of(r, u, lo, hi), out = outside_of(u, lo, hi)
    s.any_r[lane] += r - r  # NaN, if one r is that or infinite
    s.worst[lane] = violation if violation > s.worst[lane] else s.worst[lane]
    room = down if r > 0.0 else up
    room = 0.0 if r == 0.0 else room
    s.gap[lane] += fabs(r) * room
    s.spread[lane] += rounding * room
    s.outside[lane] = out if out > s.outside[lane] else s.outside[lane]
    # with compensation: rounding in this sum would be taken for a fault
    s.total[lane] = add(s.total[lane], u, &s.carry[lane])
    s.weight[lane] += fabs(u)
    s.ur[lane] += u * r
    s.ut[lane] += u * t
    s.noise[lane] += fabs(u) * rounding


def typical_target(const double[::1] t, double b):
    """The median of |t|, or |b| where that is 0."""
    cdef Py_ssize_t i, n = t.shape[0], others = 0
    cdef double size = fabs(t[0]) if n else 0.0
    for i in range(n):
        others += 1 if fabs(t[i]) != size else 0
    if others:
        size = float(np.median(np.abs(t)))
    return size if size > 0.0 else fabs(b)


def adds_nothing(const double[::1] r, const double[::1] u, const double[::1] t,
                 const double[::1] lo, const double[::1] hi, double size):
    """Whether a verdict is the same with and without these rows, if all targets have this size.

    They carry no weight, and their conditions hold exactly: such a row is at the bound that r asks
    for, so that it has no room in the gap, and no part in any other sum.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    if not (r.shape[0] == t.shape[0] == lo.shape[0] == hi.shape[0] == n):
        raise ValueError("rows do not fit")
    for i in range(n):
        if not (u[i] == 0.0 and lo[i] <= 0.0 <= hi[i] and fabs(t[i]) == size and r[i] - r[i] == 0.0
                and violation_of(r[i], u[i], lo[i], hi[i]) == 0.0):
            return False
    return True


def verdict(const double[::1] r, const double[::1] u, const double[::1] t, const double[::1] lo,
            const double[::1] hi, double d, double b, double tol, double roundings, sizes=None,
            rows=None, double common=-1.0):
    """What `adiabat.certificate.judge` finds, in two passes: the fields of its `Verdict`.

    `sizes` are sum |k u|, row by row. Without them |f - b| stands for it, which is less: a model
    that passes, passes with them too. With `rows`, the others are bounded, and add nothing.
    `common` is |t| of all rows, if a look (`Looks`) has found that.
    """
    cdef Py_ssize_t i, j, lane, worst = -1, n = u.shape[0]
    cdef double found, scale, most, rounding = 0.0, allowed = 0.0, residual = 0.0, outside = 0.0
    cdef Sums s
    cdef Scales by
    cdef const double[::1] size
    cdef const double* known = NULL
    if n == 0:
        return 0.0, 0.0, 0.0, -1, 0.0, 0.0, 0.0, True
    if not (r.shape[0] == t.shape[0] == lo.shape[0] == hi.shape[0] == n):
        raise ValueError("rows do not fit")
    if sizes is not None:
        size = sizes
        if size.shape[0] != n or rows is not None:
            raise ValueError("rows do not fit")
        known = &size[0]
    by.tol, by.rounding, by.b = tol, roundings * EPSILON, b
    by.typical = common if common > 0.0 else typical_target(t, b)
    by.size = 0.0 if sizes is None else float(np.median(sizes))
    if rows is not None:
        r, u, t = np.asarray(r)[rows], np.asarray(u)[rows], np.asarray(t)[rows]
        lo, hi = np.asarray(lo)[rows], np.asarray(hi)[rows]
        n = u.shape[0]
    for lane in range(LANES):
        s.worst[lane] = s.gap[lane] = s.spread[lane] = s.any_r[lane] = s.outside[lane] = 0.0
        s.total[lane] = s.carry[lane] = s.weight[lane] = s.ur[lane] = s.ut[lane] = 0.0
        s.noise[lane] = 0.0
    with nogil:
        for i in range(n // LANES):
            for lane in range(LANES):
                j = i * LANES + lane
                add_row(&s, lane, &by, r[j], u[j], t[j], lo[j], hi[j],
                        known[j] if known != NULL else 0.0)
        for j in range(n - n % LANES, n):
            add_row(&s, 0, &by, r[j], u[j], t[j], lo[j], hi[j], known[j] if known != NULL else 0.0)
        for lane in range(1, LANES):
            s.worst[0] = max(s.worst[0], s.worst[lane])
            s.outside[0] = max(s.outside[0], s.outside[lane])
            s.gap[0] += s.gap[lane]
            s.spread[0] += s.spread[lane]
            s.any_r[0] += s.any_r[lane]
            s.carry[0] += s.carry[lane]
            s.total[0] = add(s.total[0], s.total[lane], &s.carry[0])
            s.weight[0] += s.weight[lane]
            s.ur[0] += s.ur[lane]
            s.ut[0] += s.ut[lane]
            s.noise[0] += s.noise[lane]
        most = 0.0
        for j in range(n if s.worst[0] > 0.0 else 0):
            found = violation_of(r[j], u[j], lo[j], hi[j])
            if found == 0.0:
                continue
            scale = rounding_of(&by, r[j], t[j], known[j] if known != NULL else 0.0)
            if found > most * allowed_of(&by, t[j], scale):
                residual, rounding, worst = found, scale, j
                allowed = allowed_of(&by, t[j], scale)
                most = found / allowed
        for j in range(n if s.outside[0] > 0.0 else 0):
            found = outside_of(u[j], lo[j], hi[j])
            scale = -lo[j] if -lo[j] > hi[j] else hi[j]
            found = found / scale if found > 0.0 else 0.0
            outside = found if found > outside else outside
    if not (s.any_r[0] == 0.0 and s.total[0] - s.total[0] == 0.0):
        return NAN, 0.0, 0.0, -1, NAN, 0.0, NAN, False
    # u'Ku = sum u (r + t) - b d, so the objective needs no second product with K
    scale = 0.5 * fabs(s.ur[0] + s.ut[0] - b * d) + fabs(s.ut[0])
    scale += 0.5 * s.noise[0]  # which an objective of 0 is known to
    cdef double gap = 0.0 if s.gap[0] == 0.0 else s.gap[0] / scale
    cdef double gap_allowed = tol + (s.spread[0] / scale if scale > 0.0 else 0.0)
    cdef double off = fabs(s.total[0] + s.carry[0] - d)
    if rows is not None and worst >= 0:
        worst = rows[worst]
    cdef double balance = max(
        0.0 if off == 0.0 else off / max(s.weight[0], fabs(d)), outside)
    return (residual, allowed, rounding, worst, gap, gap_allowed, balance,
            most <= 1.0 and gap <= gap_allowed and balance <= tol + SUM_ROUNDINGS * EPSILON)
