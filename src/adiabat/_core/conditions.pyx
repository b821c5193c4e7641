# SPDX-License-Identifier: BSD-3-Clause
"""Where rows stand by their optimality conditions, and what rounding excuses.

A row at a bound has r on the side that the bound asks for, others have r = 0; f is known to some
roundings of its terms, and so is r.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc

import numpy as np

from adiabat._core.simd cimport simd
from adiabat._core.sums cimport sizes_of, strength_in, sum_of

cdef enum:
    BLOCK = 128  # rows of which none may carry weight

cdef double EPSILON = 2.0 ** -52
# A size of f at x below this part of 1 is that: its square would be 0.
cdef double TINY = 1e-150


def residuals_at(const double[:, ::1] f, Py_ssize_t column, const long long[::1] lines, double b,
                 const double[::1] t):
    """f[lines, column] + (b - t): r of the rows of a machine, from f of all machines."""
    cdef Py_ssize_t i, n = lines.shape[0]
    out = np.empty(n)
    cdef double[::1] r = out
    if t.shape[0] != n or not 0 <= column < f.shape[1]:
        raise ValueError("rows do not fit")
    for i in range(n):
        if not 0 <= lines[i] < f.shape[0]:
            raise IndexError(f"there is no line {lines[i]} of {f.shape[0]}")
        r[i] = f[lines[i], column] + (b - t[i])
    return out


def common_size(const double[::1] t):
    """|t| where all are of one size; -1 where they are not, or there is none."""
    cdef Py_ssize_t i, n = t.shape[0]
    cdef double size = fabs(t[0]) if n else -1.0
    for i in range(n):
        if fabs(t[i]) != size:
            return -1.0
    return size


def typical_size(const double[::1] t):
    """The median of |t|, which no outlier moves; 0 if there is none."""
    cdef Py_ssize_t i
    cdef double size = fabs(t[0]) if t.shape[0] else 0.0
    for i in range(t.shape[0]):
        if fabs(t[i]) != size:
            return float(np.median(np.abs(t)))
    return size


cdef inline double _rounding(double size, double least, double b, double t) noexcept nogil:
    return EPSILON * ((size if size > least else least) + fabs(b) + fabs(t))


cdef inline double _unit(double t, double typical) noexcept nogil:
    return fabs(t) if fabs(t) > typical else typical


cdef inline double _aim(double rounding, double unit, double part, double most, double few
                        ) noexcept nogil:
    cdef double aim = part * unit
    aim = aim if aim < most * rounding else most * rounding
    return aim if aim > few * rounding else few * rounding


cdef inline double _violation(double r, double u, double lo, double hi) noexcept nogil:
    cdef double low = r if u > lo else 0.0, high = -r if u < hi else 0.0
    low = low if low > high else high
    return low if low > 0.0 else 0.0


def roundings(const double[::1] u, const double[::1] t, const double[::1] root, double b,
              double typical, double usual, double enough, double[::1] out, sizes=None):
    """out[i] = a rounding of f at row i: eps (size + |b| + |t|).

    size is sum |k u| as given, or its bound sqrt(k(x, x)) sum sqrt(k) |u|, and at least that of a
    row with the `usual` sqrt k(x, x), whose rounding b carries to all rows. Returns whether some
    rounding is more than `enough` of the row's target, or of a `typical` one: then the bound may
    be too coarse.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef double total = 0.0, least = 0.0
    cdef bint coarse = False
    cdef const double[::1] known
    cdef const double* given = NULL
    if not (t.shape[0] == root.shape[0] == out.shape[0] == n):
        raise ValueError("rows do not fit")
    if n == 0:
        return False
    if sizes is not None:
        known = sizes
        given = &known[0]
        least = float(np.median(sizes))
    typical = typical if typical > 0.0 else fabs(b)
    with nogil:
        total = strength_in(n, &root[0], &u[0])
        if given == NULL:
            least = usual * total
        for i in range(n):
            out[i] = _rounding(given[i] if given != NULL else root[i] * total, least, b, t[i])
            coarse |= out[i] > enough * _unit(t[i], typical)
    return coarse


def aims(const double[::1] rounding, const double[::1] t, double typical, double part,
         double most, double few):
    """The violation to aim at, by row: `part` of its target or of a `typical` one.

    But not more than `most` roundings of f, and not less than `few` of them.
    """
    cdef Py_ssize_t i
    if t.shape[0] != rounding.shape[0]:
        raise ValueError("rows do not fit")
    out = np.empty(rounding.shape[0])
    cdef double[::1] aim = out
    with nogil:
        for i in range(rounding.shape[0]):
            aim[i] = _aim(rounding[i], _unit(t[i], typical), part, most, few)
    return out


def aims_by_bound(const double[::1] u, const double[::1] t, const double[::1] root, double b,
                  double typical, double usual, double enough, double part, double most,
                  double few):
    """`aims` for the bound that `roundings` takes for the terms of f; None if that is too coarse.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef double total = 0.0, rounding, unit
    cdef bint coarse = False
    if not (t.shape[0] == root.shape[0] == n):
        raise ValueError("rows do not fit")
    out = np.empty(n)
    cdef double[::1] aim = out
    typical = typical if typical > 0.0 else fabs(b)
    with nogil:
        total = strength_in(n, &root[0], &u[0]) if n else 0.0
        for i in range(n):
            unit = _unit(t[i], typical)
            rounding = _rounding(root[i] * total, usual * total, b, t[i])
            coarse |= rounding > enough * unit
            aim[i] = _aim(rounding, unit, part, most, few)
    return None if coarse else out


def are_fine(const double[::1] r, const double[::1] u, const double[::1] t, const double[::1] lo,
             const double[::1] hi, const double[::1] root, double b, double typical, double usual,
             double enough, double part, double most, double few, double fine, double d,
             double slack):
    """Whether no row violates by more than `aims` of `roundings` say, nor, beyond a rounding, by
    more than `fine` of its unit, all weights are in their boxes, and their sum is d but for
    `slack`, a part of them; False also if that is unclear.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef double total = 0.0, rounding, unit, violation
    cdef bint good = True
    if not (r.shape[0] == t.shape[0] == lo.shape[0] == hi.shape[0] == root.shape[0] == n):
        raise ValueError("rows do not fit")
    typical = typical if typical > 0.0 else fabs(b)
    with nogil:
        total = strength_in(n, &root[0], &u[0]) if n else 0.0
        for i in range(n):
            unit = _unit(t[i], typical)
            rounding = _rounding(root[i] * total, usual * total, b, t[i])
            violation = _violation(r[i], u[i], lo[i], hi[i])
            good &= rounding <= enough * unit
            good &= (lo[i] <= u[i]) & (u[i] <= hi[i])
            if violation != 0.0:  # few do, and by rounding: those in MARGIN
                good &= violation <= _aim(rounding, unit, part, most, few)
                good &= violation <= rounding or violation <= fine * unit
    return bool(good) and imbalance(u, d, slack) == 0.0


def imbalance(const double[::1] u, double d, double slack):
    """How far sum u is from d, if by more than `slack`, a part of sum |u|; else 0."""
    cdef Py_ssize_t n = u.shape[0]
    cdef double off = fabs((sum_of(n, &u[0]) if n else 0.0) - d)
    if n and off <= slack * sizes_of(n, &u[0]).total:
        return 0.0
    return off


def strength_of(const double[::1] root, const double[::1] u, rows=None):
    """sum sqrt(k) |u|: the size of the terms of f is at most so much, for k(x, x) = 1.

    Over all rows, or over those that are said to have all the weight.
    """
    cdef Py_ssize_t i, part, first, last, weighty, n = u.shape[0]
    cdef double total = 0.0
    cdef const long long[::1] some
    if root.shape[0] != u.shape[0]:
        raise ValueError("rows do not fit")
    if rows is not None:
        some = rows
        for i in range(some.shape[0]):
            if not 0 <= some[i] < n:
                raise IndexError(f"there is no row {some[i]} of {n}")
            total += root[some[i]] * fabs(u[some[i]])
        return total
    with nogil:
        # most rows of a large model carry no weight: of these, u alone is read
        for part in range((n + BLOCK - 1) // BLOCK):
            first, last = part * BLOCK, min((part + 1) * BLOCK, n)
            weighty = simd.count_nonzeros(last - first, &u[first])
            for i in range(first, last if weighty > 0 else first):
                total += root[i] * fabs(u[i])
    return total


def has_room(double u, double t, double lo, double hi, double root, double b, double strength,
             double roundings):
    """Whether a row is inside its box, by more than f shows: `no_weight` in `engine/bias.py`."""
    cdef double low = u - lo, high = hi - u
    cdef double own = root if root > TINY else TINY
    cdef double seen = roundings * EPSILON * (strength + (fabs(b) + fabs(t)) / own) / own
    return (low if low < high else high) > seen


def within(const double[::1] r, const double[::1] t, const long long[::1] rows, double typical,
           double fine):
    """Whether |r| of rows is at most `fine` of their targets, or of a `typical` one."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if not fabs(r[rows[i]]) <= fine * _unit(t[rows[i]], typical):
            return False
    return True


def largest_ratio(const double[::1] found, const double[::1] allowed):
    """The largest violation, each relative to what is allowed there; infinite where none is."""
    cdef Py_ssize_t i
    cdef double worst = 0.0, ratio
    if allowed.shape[0] != found.shape[0]:
        raise ValueError("rows do not fit")
    for i in range(found.shape[0]):
        if found[i] > 0.0:
            ratio = found[i] / allowed[i] if allowed[i] != 0.0 else INFINITY
            worst = ratio if ratio > worst or ratio != ratio else worst
    return worst


def outside(const double[::1] u, const double[::1] lo, const double[::1] hi):
    """How far the farthest u is outside of its box; 0 if all are inside."""
    cdef Py_ssize_t i
    cdef double most = 0.0, by
    if not (lo.shape[0] == hi.shape[0] == u.shape[0]):
        raise ValueError("rows do not fit")
    for i in range(u.shape[0]):
        by = lo[i] - u[i] if lo[i] - u[i] > u[i] - hi[i] else u[i] - hi[i]
        most = by if by > most else most
    return most


def violations(const double[::1] r, const double[::1] u, const double[::1] lo,
               const double[::1] hi):
    """How far each row is from its optimality condition; 0 where it holds."""
    cdef Py_ssize_t i
    out = np.empty(r.shape[0])
    cdef double[::1] found = out
    with nogil:
        for i in range(r.shape[0]):
            found[i] = _violation(r[i], u[i], lo[i], hi[i])
    return out


cdef inline bint _is_wrong(double u, double r, double lo, double hi, double room, double enough
                           ) noexcept nogil:
    # what is not a number is wrong as well
    cdef bint holds = (r if u > lo else 0.0) <= enough
    holds &= (-r if u < hi else 0.0) <= enough
    return not holds | (lo - u > room) | (u - hi > room)


cdef inline bint _is_inside(double u, double lo, double hi, double room) noexcept nogil:
    return (u > lo + room) & (u < hi - room)


def optima(const double[:, ::1] U, const double[:, ::1] r, const double[::1] lo,
           const double[::1] hi, const double[::1] room, const double[::1] enough,
           const long long[::1] owner, const long long[::1] removed):
    """Which rows of U are weights inside their boxes that violate by no more than `enough`.

    One of them at least is to be inside its box, and so holds b. Entries (owner[j], removed[j]) of
    U may have any weight. `room` is the rounding of a box.
    """
    cdef Py_ssize_t i, j, k, m = U.shape[0], n = U.shape[1]
    cdef long long wrong, inside
    wrongs, insides = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    cdef long long[::1] n_wrong = wrongs, n_inside = insides
    with nogil:
        for k in range(m):
            wrong, inside = 0, 0
            for i in range(n):
                wrong += _is_wrong(U[k, i], r[k, i], lo[i], hi[i], room[i], enough[i])
                inside += _is_inside(U[k, i], lo[i], hi[i], room[i])
            n_wrong[k], n_inside[k] = wrong, inside
        for j in range(removed.shape[0]):
            k, i = owner[j], removed[j]
            n_wrong[k] -= _is_wrong(U[k, i], r[k, i], lo[i], hi[i], room[i], enough[i])
            n_inside[k] -= _is_inside(U[k, i], lo[i], hi[i], room[i])
    return (wrongs == 0) & (insides > 0)


def last_outside(const double[:, ::1] r, const double[::1] floor, const double[::1] ceiling):
    """For each row of r the last entry that is not between floor and ceiling, or -1."""
    cdef Py_ssize_t i, k, n = r.shape[1]
    cdef long long outside
    out = np.full(r.shape[0], -1, dtype=np.int64)
    cdef long long[::1] last = out
    with nogil:
        for k in range(r.shape[0]):
            outside = 0
            for i in range(n):
                outside += not ((r[k, i] >= floor[i]) & (r[k, i] <= ceiling[i]))
            i = n
            while outside > 0:
                i -= 1
                if not (r[k, i] >= floor[i] and r[k, i] <= ceiling[i]):
                    last[k], outside = i, 0
    return out


cdef double nth_least(double* x, Py_ssize_t n, Py_ssize_t nth) noexcept nogil:
    """The entry that would be at a place if they were in order; they are moved about."""
    cdef Py_ssize_t i, j, first = 0, last = n - 1
    cdef double pivot
    while first < last:
        pivot = x[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if nth <= j:
            last = j
        elif nth >= i:
            first = i
        else:
            break
    return x[nth]


def watch_nearest(const double[::1] r, const unsigned char[::1] passed, Py_ssize_t step,
                  Py_ssize_t size, unsigned char[::1] watched):
    """Mark about `size` rows whose |r| is least, of those not `passed`.

    How far they are is guessed from every `step`-th row.
    """
    cdef Py_ssize_t i, k = 0, n = r.shape[0]
    cdef double most
    if not (passed.shape[0] == watched.shape[0] == n and step > 0 and 0 <= size < n):
        raise ValueError("rows do not fit")
    cdef double* distance = <double*> malloc((n // step + 1) * sizeof(double))
    if distance == NULL:
        raise MemoryError()
    with nogil:
        while k * step < n:
            distance[k] = INFINITY if passed[k * step] else fabs(r[k * step])
            k += 1
        most = nth_least(distance, k, k * size // n)
        for i in range(n):
            watched[i] = (fabs(r[i]) <= most) & (passed[i] == 0)
    free(distance)
