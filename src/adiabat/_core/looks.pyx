# SPDX-License-Identifier: BSD-3-Clause
"""What the judge of an update need not compute: rows that it can bound, from look to look."""

from libc.math cimport NAN, fabs

import numpy as np

from adiabat._core.thread_pool cimport share

from adiabat._core.judge import weigh_rows

cdef enum:
    FOLLOWED = 1 << 14  # rows that one follows at a time
    BLENDED = 1 << 12   # rows that follow several landmarks, of which one is many

cdef double EPSILON = 2.0 ** -52
cdef double LOOK_ROUNDINGS = 64.0  # of f that a residual may be off when it is computed
cdef double UP = 1.0 + 16.0 * EPSILON  # more than sums of a few numbers round


class Looks:
    """Residuals as the judge last computed them, and how far they may have moved since.

    f(x_i) = <w, phi(x_i)> + b, so that |change of r_i - change of b| <= sqrt k(x_i, x_i) |change of
    w|, and |change of w|^2 = d'Kd for the change d of u. `drift` sums these lengths from look to
    look. The same holds between two rows: r_i follows a landmark c whose f is computed in every
    look, and phi(x_i) - phi(x_c) stands for phi(x_i): `apart` is its length. So r_i may be off by
    off_i + apart_i drift, where off_i is - apart_i times the drift when r_i was computed.
    A row without weight, whose r is farther from 0 than it can be off, on the side that its bound
    asks for, has no violation and no part in any sum of a verdict: it is bounded, and need not be
    computed. All others are.

    All of it is the judge's own: weights as it knew them, residuals as it computed them.
    """

    def __init__(self, r, u, double b):
        self.r, self.off, self.b = r.copy(), np.zeros(len(r)), b
        self.rows = nonzeros(u)  # with weight, ascending
        self.weights = u[self.rows]
        self.drift = self.step = self.size = 0.0
        self.n_looks = 0
        self.computed = None  # rows that were not bounded in the last look, until rows change
        self.n_bounded, self.furthest = 0, 0.0
        self.common = -1.0  # |t| in the last look, if all targets were of one size

    def copy(self):
        """The same looks, to go on from; arrays are shared until they are replaced."""
        other = Looks(self.r[:0], self.r[:0], self.b)
        other.__dict__.update(self.__dict__)
        return other

    def renumber(self, leaving):
        """Give rows the numbers that they have once others, none with weight, have left."""
        self.rows = self.rows.copy()
        leaving.renumber(self.rows)
        order = np.argsort(self.rows)
        self.rows, self.weights = self.rows[order], self.weights[order]

    def changed(self, u):
        """Rows with weight now or in the last look, ascending, and how it has changed."""
        now = nonzeros(u)
        rows = merged(now, self.rows)
        change = u[rows]
        change[np.searchsorted(rows, self.rows)] -= self.weights
        return rows, change

    def look(self, panels, moved, lines, rows, change, f, u, t, lo, hi, root, double b, marks=None):
        """Look at weights u and b: the rows whose residual is to be computed, not being bounded.

        `rows` and `change` are what `changed(u)` gave, `f` their f - b, just computed, `lines` are
        where they are in the panels, and `moved` the changes by column. They are not among those
        returned. `marks` are landmarks, if there are any: by row the `number` of its own, 0 for
        none, how far it is `apart`, and its own number if it `stands` as one; the `names` of the
        landmarks, their `lines` in the panels, and the largest sqrt k(x, x) of one; the rows
        `blended` (-1: none), which follow several and have the number 0, and by row the numbers of
        these (`parts`) and their `shares`.
        """
        cdef double square, rounding, scale, added, most_b = max(fabs(self.b), fabs(b))
        apart = root if marks is None else marks.apart
        # entries of these rows stand here and there: each array is read once
        weights, roots, targets, distances = u[rows], root[rows], t[rows], apart[rows]
        sizes = np.abs(change)
        self.size = max(self.size, float(roots @ np.abs(weights)))
        # how f of these rows has changed: from residuals, or where those are not known by itself
        df = f - (self.r[rows] + (targets - self.b))
        known = self.off[rows] + distances * self.drift <= 0.0
        unknown = np.flatnonzero((change != 0.0) & ~known)
        if len(unknown):
            own = np.empty(len(unknown))
            weigh_rows(panels, moved, lines[unknown], own)
            df[unknown] = own
        terms = roots * self.size + most_b + np.abs(targets)
        # the rounding of residuals, and of the sum, is no more than this
        rounding = 4.0 * LOOK_ROUNDINGS * EPSILON * float(sizes @ terms)
        rounding += 4.0 * (len(rows) + 64.0) * EPSILON * float(sizes @ np.abs(df))
        square = max(0.0, float(change @ df)) + rounding
        self.step = (1.0 + 1e-9) * square ** 0.5
        self.drift = UP * (self.drift + self.step)
        self.n_looks += 1
        # in each look a step is added: a product of weights no larger than twice the largest
        added = 4.0 if marks is None else 4.0 + 2.0 * LOOK_ROUNDINGS
        scale = (LOOK_ROUNDINGS + added * self.n_looks) * EPSILON
        steps = np.zeros(1)
        if marks is not None:
            steps = self._steps(marks, panels, moved, rows, df)
            blur = float(terms.max(initial=0.0)) + marks.most_root * self.size
            add_blends(self.r, self.off, marks.blended, marks.parts, marks.shares, steps,
                       4.0 * LOOK_ROUNDINGS * EPSILON * blur)
        steps += b - self.b
        self.b, self.rows, self.weights = b, rows[weights != 0.0], weights[weights != 0.0]
        self.off[rows] = NAN  # so that none of these is bounded
        found, self.furthest, self.common = unbounded(
            self.r, t, lo, hi, root, apart, self.off, self.drift, self.size, b, scale, steps,
            None if marks is None else marks.number)
        doubtful = found[~np.isnan(self.off[found])]
        self.r[rows], self.off[rows] = f + (b - targets), -(distances * self.drift)
        return doubtful

    def _steps(self, marks, panels, moved, rows, df):
        """How f has changed at landmarks, by number; `df` says it of rows that are given."""
        steps = np.zeros(1 + int(marks.names.max(initial=0)))
        names = marks.stands[rows]
        asked = np.ones(len(steps), dtype=bool)
        steps[names], asked[names] = df, False
        steps[0] = 0.0  # of those that are no landmarks
        others = np.flatnonzero(asked[marks.names])
        own = np.empty(len(others))
        weigh_rows(panels, moved, marks.lines[others], own)
        steps[marks.names[others]] = own
        return steps

    def adopt(self, f, t, rows, apart):
        """Residuals of rows whose f - b was computed for the weights and the b of the last look."""
        self.r[rows] = f + (self.b - t[rows])
        self.off[rows] = -(apart[rows] * self.drift)
        return self.r[rows]

    def conclude(self, computed):
        """Note which rows were computed in this look, so that all others are bounded."""
        self.computed, self.n_bounded = computed, len(self.r) - len(computed)

    def follow_others(self, rows, before, now):
        """Rows that were `before` from the landmark that they followed follow another, `now` away.
        """
        self.off[rows] += (before - now) * self.drift

    def stale(self, rows, apart):
        """Those of the rows that were not computed in the last look."""
        return rows[~(self.off[rows] + apart[rows] * self.drift <= 0.0)]


cdef struct Blend:
    # rows whose r follows `n_parts` landmarks each
    double* r
    double* off
    const long long* rows
    const short* parts
    const double* shares
    const double* steps
    double blur
    Py_ssize_t n, n_parts, n_rows, n_steps
    unsigned char* unsound


cdef void some_blends(void* context, Py_ssize_t part) noexcept nogil:
    cdef Blend* job = <Blend*> context
    cdef Py_ssize_t i, k, last = min((part + 1) * BLENDED, job.n), width = job.n_parts
    cdef const short* parts
    cdef const double* shares
    cdef double step, total
    for i in range(part * BLENDED, last):
        if job.rows[i] < 0:
            continue
        parts, shares = job.parts + i * width, job.shares + i * width
        step = total = 0.0
        for k in range(width):
            if not 0 <= parts[k] < job.n_steps:
                job.unsound[part] = 1
                return
            step += shares[k] * job.steps[parts[k]]
            total += fabs(shares[k])
        if job.rows[i] >= job.n_rows:
            job.unsound[part] = 1
            return
        job.r[job.rows[i]] += step
        job.off[job.rows[i]] += job.blur * total


def add_blends(double[::1] r, double[::1] off, const long long[::1] rows,
               const short[:, ::1] parts, const double[:, ::1] shares, const double[::1] steps,
               double blur):
    """r of rows (-1: none) takes the steps of several landmarks, by their shares.

    Each share adds `blur` of itself to what r may be off by.
    """
    cdef Blend job
    cdef Py_ssize_t n = rows.shape[0], n_jobs = (n + BLENDED - 1) // BLENDED
    if not (r.shape[0] == off.shape[0] and parts.shape[0] == shares.shape[0] == n
            and parts.shape[1] == shares.shape[1]):
        raise ValueError("blends do not fit")
    if n == 0 or parts.shape[1] == 0 or steps.shape[0] == 0 or r.shape[0] == 0:
        return
    found = np.zeros(n_jobs, dtype=np.uint8)
    cdef unsigned char[::1] unsound = found
    job.r, job.off, job.rows, job.parts = &r[0], &off[0], &rows[0], &parts[0, 0]
    job.shares, job.steps, job.blur = &shares[0, 0], &steps[0], blur
    job.n, job.n_parts, job.n_rows, job.n_steps = n, parts.shape[1], r.shape[0], steps.shape[0]
    job.unsound = &unsound[0]
    with nogil:
        share(some_blends, &job, n_jobs)
    if found.any():
        raise ValueError("a row or a landmark of a blend is not there")


cdef struct Listing:
    # numbers in parts of FOLLOWED, whose findings stand where the numbers do
    const double* u
    Py_ssize_t n
    long long* rows
    long long* counts


cdef void some_nonzeros(void* context, Py_ssize_t part) noexcept nogil:
    cdef Listing* job = <Listing*> context
    cdef Py_ssize_t i, k = part * FOLLOWED, last = min((part + 1) * FOLLOWED, job.n)
    cdef long long* rows = job.rows
    for i in range(part * FOLLOWED, last):
        if job.u[i] != 0.0:
            rows[k] = i
            k += 1
    job.counts[part] = k - part * FOLLOWED


def nonzeros(const double[::1] u):
    """Where u is not 0, ascending."""
    cdef Py_ssize_t n = u.shape[0], parts = (n + FOLLOWED - 1) // FOLLOWED
    cdef Listing job
    out, found = np.empty(n, dtype=np.int64), np.zeros(parts, dtype=np.int64)
    cdef long long[::1] rows = out, counts = found
    if n == 0:
        return out
    job.u, job.n, job.rows, job.counts = &u[0], n, &rows[0], &counts[0]
    with nogil:
        share(some_nonzeros, &job, parts)
    return together(out, found)


def merged(const long long[::1] one, const long long[::1] other):
    """Rows that are in one or the other or both, which ascend, as they do."""
    cdef Py_ssize_t i = 0, j = 0, k = 0, n = one.shape[0], m = other.shape[0]
    out = np.empty(n + m, dtype=np.int64)
    cdef long long[::1] rows = out
    while i < n or j < m:
        if j == m or i < n and one[i] <= other[j]:
            rows[k] = one[i]
            if j < m and one[i] == other[j]:
                j += 1
            i += 1
        else:
            rows[k] = other[j]
            j += 1
        k += 1
    return out[:k].copy()


def together(rows, counts):
    """The first counts[i] of the i-th FOLLOWED rows, for each i."""
    return np.concatenate(
        [rows[i * FOLLOWED: i * FOLLOWED + counts[i]] for i in range(len(counts))])


cdef struct Follow:
    # rows of a look: in parts of FOLLOWED, whose findings stand where the rows do
    double* r
    const double* t
    const double* lo
    const double* hi
    const double* root
    const double* apart
    const double* off
    const short* number
    const double* steps
    double drift, size, b, scale, target
    Py_ssize_t n, n_steps
    long long* rows
    long long* counts
    long long* uncommon  # how many targets are of another size than `target`
    double* furthest


cdef void some_follow(void* context, Py_ssize_t part) noexcept nogil:
    cdef Follow* job = <Follow*> context
    cdef Py_ssize_t i, k = part * FOLLOWED, last = min((part + 1) * FOLLOWED, job.n)
    cdef Py_ssize_t mark = 0
    cdef long long uncommon = 0
    cdef double r, reach, size, furthest = 0.0
    for i in range(part * FOLLOWED, last):
        if job.number != NULL:
            mark = job.number[i]
            if not 0 <= mark < job.n_steps:
                job.counts[part] = -1
                return
        r = job.r[i] + job.steps[mark]
        job.r[i], size = r, fabs(job.t[i])
        uncommon += 1 if size != job.target else 0
        reach = job.off[i] + job.apart[i] * job.drift + job.scale * (
            (job.root[i] + job.apart[i]) * job.size + fabs(job.b) + size + fabs(r))
        if (job.lo[i] == 0.0 <= job.hi[i] and r > reach
                or job.hi[i] == 0.0 >= job.lo[i] and r < -reach):
            furthest = reach if reach > furthest else furthest
        else:
            job.rows[k] = i
            k += 1
    job.counts[part], job.furthest[part] = k - part * FOLLOWED, furthest
    job.uncommon[part] = uncommon


def unbounded(double[::1] r, const double[::1] t, const double[::1] lo, const double[::1] hi,
              const double[::1] root, const double[::1] apart, const double[::1] off, double drift,
              double size, double b, double scale, const double[::1] steps,
              const short[::1] number=None):
    """Of rows without weight those whose residual is to be computed, the most that another can be
    off by, and |t| if all targets are of one size, else -1.

    r takes the step of its landmark first, by `number`, or the first one. `scale` are roundings,
    relative to the sizes of the terms of f; `apart` is to a landmark. Rows whose `off` is NaN are
    returned as well.
    """
    cdef Py_ssize_t n = r.shape[0], parts = (n + FOLLOWED - 1) // FOLLOWED
    cdef Follow job
    if not (t.shape[0] == lo.shape[0] == hi.shape[0] == root.shape[0] == apart.shape[0]
            == off.shape[0] == n):
        raise ValueError("rows do not fit")
    if steps.shape[0] == 0 or number is not None and number.shape[0] != n:
        raise ValueError("landmarks do not fit")
    if n == 0:
        return np.empty(0, dtype=np.int64), 0.0, -1.0
    out, found = np.empty(n, dtype=np.int64), np.empty(parts, dtype=np.int64)
    most, other = np.zeros(parts), np.zeros(parts, dtype=np.int64)
    cdef long long[::1] rows = out, counts = found, uncommon = other
    cdef double[::1] furthest = most
    job.r, job.t, job.lo, job.hi, job.root = &r[0], &t[0], &lo[0], &hi[0], &root[0]
    job.apart, job.off, job.steps, job.n_steps = &apart[0], &off[0], &steps[0], steps.shape[0]
    job.number = &number[0] if number is not None else NULL
    job.drift, job.size, job.b, job.scale, job.n = UP * drift, size, b, scale, n
    job.rows, job.counts, job.furthest = &rows[0], &counts[0], &furthest[0]
    job.uncommon, job.target = &uncommon[0], fabs(t[0])
    with nogil:
        share(some_follow, &job, parts)
    if found.min() < 0:
        raise ValueError("a landmark is not there")
    return together(out, found), float(most.max()), -1.0 if other.any() else job.target
