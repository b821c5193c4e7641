# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows: entries that come, go and move; codes that are found."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcmp, memcpy

import numpy as np

from adiabat._core.simd cimport simd


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


def ascending(values):
    """Integers in ascending order, without gaps in memory: the same array if it is, else a copy."""
    cdef const long long[:] given = values
    cdef Py_ssize_t i
    cdef bint sound = given.shape[0] < 2 or given.strides[0] == sizeof(long long)
    for i in range(1, given.shape[0]):
        sound = sound and given[i - 1] <= given[i]
    return values if sound else np.sort(values)


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
    if left == 1:
        with nogil:
            for i in range(n - 1, -1, -1):
                if positions[i] == first:
                    positions[i] = new[0]
                    if once:
                        break
        return
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


def are_equal(const double[:, ::1] X, const long long[::1] rows, const long long[::1] others):
    """Whether row rows[i] of X is others[i], bit by bit."""
    cdef Py_ssize_t i, n = rows.shape[0]
    cdef size_t width = X.shape[1] * sizeof(double)
    out = np.ones(n, dtype=bool)
    cdef unsigned char[::1] same = out.view(np.uint8)
    if others.shape[0] != n:
        raise ValueError(f"{n} rows, {others.shape[0]} others")
    for i in range(n):
        if not (0 <= rows[i] < X.shape[0] and 0 <= others[i] < X.shape[0]):
            raise IndexError(f"there is no row {rows[i]} or {others[i]} of {X.shape[0]}")
    with nogil:
        for i in range(n if width else 0):
            if rows[i] != others[i]:
                same[i] = memcmp(&X[rows[i], 0], &X[others[i], 0], width) == 0
    return out


def are_finite(const double[:, ::1] X):
    """Whether all entries are finite."""
    cdef Py_ssize_t i, n = X.shape[0] * X.shape[1]
    cdef const double* x = &X[0, 0] if n else NULL
    cdef long long strange = 0
    with nogil:
        for i in range(n):
            strange += x[i] - x[i] != 0.0
    return strange == 0


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


def place_at(const long long[::1] at, long long position):
    """A row at a position, the nearest to the row of that number; -1 if there is none.

    Rows stand where they came, or as much before that as rows have left.
    """
    cdef Py_ssize_t n = at.shape[0]
    cdef Py_ssize_t before = min(max(position, 0), n - 1), after = before + 1
    while before >= 0 or after < n:
        if before >= 0 and at[before] == position:
            return before
        if after < n and at[after] == position:
            return after
        before, after = before - 1, after + 1
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
    return simd.count_nonzeros(values.shape[0], &values[0]) if values.shape[0] else 0


def nonzeros(const double[::1] values):
    """Where values are not 0, ascending."""
    cdef Py_ssize_t i, k = 0, n = values.shape[0]
    if n:
        k = simd.count_nonzeros(n, &values[0])
    out = np.empty(k + 1, dtype=np.int64)  # room for a place that is passed over
    k = 0
    cdef long long[::1] found = out
    with nogil:
        for i in range(n):
            found[k] = i
            k += values[i] != 0.0
    return out[:k]
