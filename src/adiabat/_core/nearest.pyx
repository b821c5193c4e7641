# SPDX-License-Identifier: BSD-3-Clause
"""The nearest of some rows to others, by kernel values."""

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
