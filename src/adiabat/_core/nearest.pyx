# SPDX-License-Identifier: BSD-3-Clause
"""The nearest of some rows to others, by kernel values; who follows them."""

import numpy as np

cdef double EPSILON = 2.0 ** -52


def approach(const double[:, ::1] values, const double[::1] sizes, const double[::1] others,
             double roundings, const long long[::1] rows, const short[::1] names,
             double[::1] square, short[::1] number):
    """Let rows follow landmarks that are nearer than theirs.

    `values` are k(x, c) of the rows with some landmarks, which have these `names`; `sizes` and
    `others` are their k(x, x) and k(c, c). `square` and `number` are by row, the squared distance
    from its landmark and its name.
    """
    cdef Py_ssize_t i, j, best, n = rows.shape[0], m = names.shape[0]
    cdef double size, found, least, relative = roundings * EPSILON
    if not (values.shape[0] == sizes.shape[0] == n and values.shape[1] == others.shape[0] == m):
        raise ValueError("landmarks do not fit")
    if square.shape[0] != number.shape[0]:
        raise ValueError("rows do not fit")
    for i in range(n):
        if not 0 <= rows[i] < square.shape[0]:
            raise ValueError("a row is not there")
    with nogil:
        for i in range(n):
            best, least = -1, square[rows[i]]
            for j in range(m):
                size = sizes[i] + others[j]
                found = size - 2.0 * values[i, j]
                found = (found if found > 0.0 else 0.0) + relative * size
                if found < least:
                    best, least = j, found
            if best >= 0:
                square[rows[i]], number[rows[i]] = least, names[best]


def among(const long long[::1] rows, const short[:, ::1] parts, const short[::1] names):
    """Places of rows (-1: none) that have one of the names among their parts."""
    cdef Py_ssize_t i, k, n = rows.shape[0], found = 0
    cdef bint here
    if parts.shape[0] != n:
        raise ValueError("parts do not fit")
    marked, out = np.zeros(1 << 15, dtype=np.uint8), np.empty(n, dtype=np.int64)
    cdef unsigned char[::1] asked = marked
    cdef long long[::1] places = out
    for i in range(names.shape[0]):
        if names[i] >= 0:
            asked[names[i]] = 1
    with nogil:
        for i in range(n):
            here = False
            for k in range(parts.shape[1]):
                if parts[i, k] >= 0 and asked[parts[i, k]]:
                    here = True
            if here and rows[i] >= 0:
                places[found] = i
                found += 1
    return out[:found].copy()


def places_of(const long long[::1] rows, const long long[::1] sought):
    """Places in rows, which need not ascend, of those sought, which do."""
    cdef Py_ssize_t i, found = 0
    out = np.empty(min(rows.shape[0], sought.shape[0]), dtype=np.int64)
    cdef long long[::1] places = out
    for i in range(rows.shape[0]):
        if _is_in(sought, rows[i]):
            if found == places.shape[0]:
                raise ValueError("a row is there twice")
            places[found] = i
            found += 1
    return out[:found]


def take_out(long long[::1] rows, const long long[::1] gone):
    """Where a row is one of those gone, which ascend, it becomes -1."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if _is_in(gone, rows[i]):
            rows[i] = -1


cdef inline bint _is_in(const long long[::1] sought, long long row) noexcept:
    """Whether a row is among those sought, which ascend."""
    cdef Py_ssize_t low = 0, high = sought.shape[0], middle
    if high == 0 or not sought[0] <= row <= sought[high - 1]:
        return False
    while low < high:
        middle = (low + high) // 2
        if sought[middle] < row:
            low = middle + 1
        else:
            high = middle
    return sought[low] == row
