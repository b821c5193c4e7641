# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows: entries deleted, codes found, roundings summed, optima."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memmove, memset

import numpy as np

cdef double EPSILON = 2.0 ** -52


def delete_entries(array, const long long[::1] gone, more=None):
    """A copy of a 1-D array, of a plain type, without the entries at `gone` (ascending).

    `more` follow at the end.
    """
    cdef Py_ssize_t k = gone.shape[0], n = len(array), i, start = 0, width, last = -1
    cdef Py_buffer old, new
    cdef const char* source
    cdef char* to
    for i in range(k):
        if gone[i] <= last or gone[i] >= n:
            raise IndexError(f"positions must ascend from 0 to {n - 1}")
        last = gone[i]
    out = np.empty(n - k + (0 if more is None else len(more)), dtype=array.dtype)
    PyObject_GetBuffer(array, &old, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &new, PyBUF_SIMPLE | PyBUF_WRITABLE)
        source, to = <const char*> old.buf, <char*> new.buf
        width = old.itemsize
        for i in range(k + 1):
            last = gone[i] if i < k else n
            memcpy(to + (start - i) * width, source + start * width, (last - start) * width)
            start = last + 1
        PyBuffer_Release(&new)
    finally:
        PyBuffer_Release(&old)
    if more is not None:
        out[n - k:] = more
    return out


def remove_entries(array, const long long[::1] gone):
    """Delete the entries at `gone` (ascending) of a 1-D array of a plain type, where they are.

    Those behind move up, and zeros take the room at the end. Returns how many are left.
    """
    cdef Py_ssize_t k = gone.shape[0], n = len(array), i, start, width, last = -1
    cdef Py_buffer held
    cdef char* data
    for i in range(k):
        if gone[i] <= last or gone[i] >= n:
            raise IndexError(f"positions must ascend from 0 to {n - 1}")
        last = gone[i]
    PyObject_GetBuffer(array, &held, PyBUF_SIMPLE | PyBUF_WRITABLE)
    data, width = <char*> held.buf, held.itemsize
    for i in range(k):
        start, last = gone[i] + 1, gone[i + 1] if i + 1 < k else n
        memmove(data + (start - 1 - i) * width, data + start * width, (last - start) * width)
    memset(data + (n - k) * width, 0, k * width)
    PyBuffer_Release(&held)
    return n - k


def rename(long long[::1] positions, const long long[::1] old, const long long[::1] new,
           bint once=False):
    """Where a position is old[j], ascending, it becomes new[j].

    If each is there `once`, they are sought from the end, and no further than to the last of them:
    who came last is mostly at the last position, and near the end of any order.
    """
    cdef Py_ssize_t i, n = positions.shape[0], left = old.shape[0]
    cdef long long first, last
    if old.shape[0] == 0:
        return
    first, last = old[0], old[old.shape[0] - 1]
    found = np.arange(first, last + 1)
    cdef long long[::1] name = found
    for i in range(old.shape[0]):
        name[old[i] - first] = new[i]
    with nogil:
        for i in range(n - 1, -1, -1):
            if first <= positions[i] <= last and name[positions[i] - first] != positions[i]:
                positions[i] = name[positions[i] - first]
                left -= 1
                if once and left == 0:
                    break


def rows_at(const long long[::1] at, const unsigned char[::1] marked):
    """Rows i, ascending, with marked[at[i]]."""
    cdef Py_ssize_t i, k = 0, n = at.shape[0]
    out = np.empty(n, dtype=np.int64)  # memory that is not written to is not taken
    cdef long long[::1] rows = out
    with nogil:
        for i in range(n):
            if marked[at[i]]:
                rows[k] = i
                k += 1
    return out[:k].copy()


def first_at(const long long[::1] at, long long position):
    """The first row at a position; -1 if there is none."""
    cdef Py_ssize_t i
    for i in range(at.shape[0]):
        if at[i] == position:
            return i
    return -1


def has_codes(const long long[::1] target, codes, gone=()):
    """Whether each of the codes, none below 0, is somewhere in an array, but for some places."""
    cdef Py_ssize_t i, missing = len(codes)
    cdef set passed = {int(place) for place in gone}
    cdef long long most = max(codes, default=-1)
    there = np.ones(most + 1, dtype=np.uint8)
    there[list(codes)] = 0
    cdef unsigned char[::1] seen = there
    for i in range(target.shape[0]):
        if missing == 0:
            break
        if 0 <= target[i] <= most and not seen[target[i]] and i not in passed:
            seen[target[i]] = 1
            missing -= 1
    return missing == 0


def codes_in(const long long[::1] target):
    """The different codes, none below 0, in an array: a list in ascending order."""
    cdef Py_ssize_t i
    cdef long long most = -1, least = 0
    cdef unsigned long long below_64 = 0
    for i in range(target.shape[0]):
        most = target[i] if target[i] > most else most
        least = target[i] if target[i] < least else least
        below_64 |= <unsigned long long> 1 << (target[i] & 63)
    if least < 0:
        raise ValueError("a code is below 0")
    if most < 64:
        return [i for i in range(most + 1) if below_64 >> i & 1]
    cdef unsigned char[::1] there = np.zeros(most + 1, dtype=np.uint8)
    for i in range(target.shape[0]):
        there[target[i]] = 1
    return [i for i in range(most + 1) if there[i]]


def nonzero(const double[::1] values):
    """How many are not 0."""
    cdef Py_ssize_t i, count = 0
    for i in range(values.shape[0]):
        count += values[i] != 0.0
    return count


def mark(unsigned char[::1] marked, const long long[::1] at, const double[::1] u):
    """marked[at[i]] = 1 where u[i] is not 0."""
    cdef Py_ssize_t i
    for i in range(at.shape[0]):
        if u[i] != 0.0:
            marked[at[i]] = 1


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
        for i in range(n):
            total += root[i] * fabs(u[i])
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


def are_fine(const double[::1] r, const double[::1] u, const double[::1] t, const double[::1] lo,
             const double[::1] hi, const double[::1] root, double b, double typical, double usual,
             double enough, double part, double most, double few, double fine):
    """Whether no row violates by more than `aims` of `roundings` say, nor, beyond a rounding, by
    more than `fine` of its unit, and all weights are in their boxes; False also if that is unclear.
    """
    cdef Py_ssize_t i, n = u.shape[0]
    cdef double total = 0.0, rounding, unit, violation
    cdef bint good = True
    if not (r.shape[0] == t.shape[0] == lo.shape[0] == hi.shape[0] == root.shape[0] == n):
        raise ValueError("rows do not fit")
    typical = typical if typical > 0.0 else fabs(b)
    with nogil:
        for i in range(n):
            total += root[i] * fabs(u[i])
        for i in range(n):
            unit = _unit(t[i], typical)
            rounding = _rounding(root[i] * total, usual * total, b, t[i])
            violation = _violation(r[i], u[i], lo[i], hi[i])
            good &= rounding <= enough * unit
            good &= violation <= _aim(rounding, unit, part, most, few)
            good &= violation <= rounding or violation <= fine * unit
            good &= lo[i] <= u[i] <= hi[i]
    return good


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
