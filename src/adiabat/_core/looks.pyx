# SPDX-License-Identifier: BSD-3-Clause
"""What the judge of an update need not compute: rows that it can bound, from look to look."""

from libc.math cimport fabs

import numpy as np

from adiabat._core.thread_pool cimport share

from adiabat._core.judge import weigh_rows

cdef enum:
    FOLLOWED = 1 << 14  # rows that one follows at a time

cdef double EPSILON = 2.0 ** -52
cdef double LOOK_ROUNDINGS = 64.0  # of f that a residual may be off when it is computed


class Looks:
    """Residuals as the judge last computed them, and how far they may have moved since.

    f(x_i) = <w, phi(x_i)> + b, so that |change of r_i - change of b| <= sqrt k(x_i, x_i) |change of
    w|, and |change of w|^2 = d'Kd for the change d of u. `drift` sums these lengths from look to
    look, `seen` is what it was when r_i was computed. The same holds between two rows: r_i follows
    a landmark c whose f is computed in every look, and phi(x_i) - phi(x_c) stands for phi(x_i).
    A row without weight, whose r is farther from 0 than it can have moved, on the side that its
    bound asks for, has no violation and no part in any sum of a verdict: it is bounded, and need
    not be computed. All others are.

    All of it is the judge's own: weights as it knew them, residuals as it computed them.
    """

    def __init__(self, r, u, double b):
        self.r, self.u, self.b = r.copy(), u.copy(), b
        self.seen, self.slack = np.zeros(len(r)), np.zeros(len(r))
        self.drift = self.before = self.size = 0.0
        self.n_looks = 0
        self.computed = None  # rows that were not bounded in the last look, until rows change
        self.n_bounded, self.furthest = 0, 0.0

    def copy(self):
        """The same looks, to go on from; arrays are shared until they are replaced."""
        other = Looks(self.r[:0], self.u[:0], self.b)
        other.__dict__.update(self.__dict__)
        return other

    def changed(self, u):
        """Rows whose weights differ from those of the last look, and by how much."""
        rows = np.flatnonzero(u != self.u)
        return rows, u[rows] - self.u[rows]

    def look(self, panels, moved, lines, rows, u, t, lo, hi, root, double b, marks=None):
        """Look at weights u and b: the rows whose residual is to be computed, not being bounded.

        `rows` are those that `changed(u)` gave, `lines` where they are in the panels, and `moved`
        their changes by column. `marks` are: by row the number of its landmark, 0 for none, and
        how far that is; the numbers of the landmarks, and where these are in the panels.
        """
        change = u[rows] - self.u[rows]
        f = np.empty(len(rows))
        weigh_rows(panels, moved, lines, f)
        sizes = float(root[rows] @ np.abs(change))
        # the rounding of the product, and of its sums, is no more than this
        square = max(0.0, float(change @ f)) + (len(rows) + 64.0) * 4.0 * EPSILON * sizes * sizes
        self.before = self.drift
        self.drift += (1.0 + 1e-9) * square ** 0.5
        self.u[rows] = u[rows]
        self.size = max(self.size, float(root @ np.abs(u)))
        self.n_looks += 1
        scale, apart, db = (LOOK_ROUNDINGS + 2.0 * self.n_looks) * EPSILON, root, b - self.b
        number, steps = None, np.full(1, db)
        if marks is not None:
            number, apart, numbers, places = marks
            f, steps = np.empty(len(numbers)), np.full(1 + int(numbers.max(initial=0)), db)
            weigh_rows(panels, moved, places, f)
            steps[numbers] += f
            # each step has the roundings of a product of weights no larger than twice the largest
            scale += 2.0 * self.n_looks * LOOK_ROUNDINGS * EPSILON
        self.b = b
        self.computed, self.furthest = unbounded(
            self.r, self.u, t, lo, hi, root, apart, self.seen, self.slack, self.drift, self.size, b,
            scale, steps, number)
        self.n_bounded = len(u) - len(self.computed)
        return self.computed

    def adopt(self, f, t, rows):
        """Residuals of rows whose f - b was computed for the weights and the b of the last look."""
        self.r[rows] = f + (self.b - t[rows])
        self.seen[rows], self.slack[rows] = self.drift, 0.0
        return self.r[rows]

    def write_down(self, apart, rows):
        """Write down what rows may have moved by, before they follow other landmarks."""
        rows = rows[np.isfinite(self.seen[rows])]
        self.slack[rows] += apart[rows] * (self.drift - self.seen[rows])
        self.seen[rows] = self.drift

    def stale(self, rows):
        """Those of the rows that were not computed in the last look."""
        return rows[(self.seen[rows] < self.drift) | (self.slack[rows] > 0.0)]


cdef struct Follow:
    # rows of a look: in parts of `step`, whose findings stand where the rows do
    double* r
    const double* u
    const double* t
    const double* lo
    const double* hi
    const double* root
    const double* apart
    const double* seen
    const double* slack
    const short* number
    const double* steps
    double drift, size, b, scale
    Py_ssize_t n, step
    long long* rows
    long long* counts
    double* furthest


cdef void some_follow(void* context, Py_ssize_t part) noexcept nogil:
    cdef Follow* job = <Follow*> context
    cdef Py_ssize_t i, k = part * job.step, last = min((part + 1) * job.step, job.n)
    cdef double r, reach, furthest = 0.0
    for i in range(part * job.step, last):
        r = job.r[i] + job.steps[job.number[i] if job.number != NULL else 0]
        job.r[i] = r
        reach = job.slack[i] + job.apart[i] * (job.drift - job.seen[i]) + job.scale * (
            (job.root[i] + job.apart[i]) * job.size + fabs(job.b) + fabs(job.t[i]) + fabs(r))
        if job.u[i] == 0.0 and (job.lo[i] == 0.0 <= job.hi[i] and r > reach
                                or job.hi[i] == 0.0 >= job.lo[i] and r < -reach):
            furthest = reach if reach > furthest else furthest
        else:
            job.rows[k] = i
            k += 1
    job.counts[part], job.furthest[part] = k - part * job.step, furthest


def unbounded(double[::1] r, const double[::1] u, const double[::1] t, const double[::1] lo,
              const double[::1] hi, const double[::1] root, const double[::1] apart,
              const double[::1] seen, const double[::1] slack, double drift, double size, double b,
              double scale, const double[::1] steps, const short[::1] number=None):
    """Rows whose residual is to be computed, and the most that another can have moved by.

    r takes the step of its landmark first, by `number`, or the first one. `scale` are roundings,
    relative to the sizes of the terms of f; `apart` is to a landmark.
    """
    cdef Py_ssize_t i, n = r.shape[0], parts = (n + FOLLOWED - 1) // FOLLOWED
    cdef Follow job
    if not (u.shape[0] == t.shape[0] == lo.shape[0] == hi.shape[0] == root.shape[0]
            == apart.shape[0] == seen.shape[0] == slack.shape[0] == n):
        raise ValueError("rows do not fit")
    if steps.shape[0] == 0 or number is not None and number.shape[0] != n:
        raise ValueError("landmarks do not fit")
    for i in range(n if number is not None else 0):
        if not 0 <= number[i] < steps.shape[0]:
            raise ValueError("a landmark is not there")
    if n == 0:
        return np.empty(0, dtype=np.int64), 0.0
    out, found = np.empty(n, dtype=np.int64), np.empty(parts, dtype=np.int64)
    most = np.empty(parts)
    cdef long long[::1] rows = out, counts = found
    cdef double[::1] furthest = most
    job.r, job.u, job.t, job.lo, job.hi, job.root = &r[0], &u[0], &t[0], &lo[0], &hi[0], &root[0]
    job.apart, job.seen, job.slack, job.steps = &apart[0], &seen[0], &slack[0], &steps[0]
    job.number = &number[0] if number is not None else NULL
    job.drift, job.size, job.b, job.scale, job.n, job.step = drift, size, b, scale, n, FOLLOWED
    job.rows, job.counts, job.furthest = &rows[0], &counts[0], &furthest[0]
    with nogil:
        share(some_follow, &job, parts)
    there = [out[i * FOLLOWED: i * FOLLOWED + found[i]] for i in range(parts)]
    return np.concatenate(there), float(most.max())
