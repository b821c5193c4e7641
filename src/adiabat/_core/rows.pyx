# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows: without some entries, which codes they hold."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

import numpy as np

from adiabat._core.sums cimport sizes_of


def without(array, const long long[::1] gone, more=None):
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


def reach(const double[::1] lo, const double[::1] hi):
    """How far boxes extend from 0 at most: max(-lo, hi), which for lo <= hi is max(|lo|, |hi|)."""
    if lo.shape[0] == 0:
        return 0.0
    return max(sizes_of(lo.shape[0], &lo[0]).largest, sizes_of(hi.shape[0], &hi[0]).largest)


def sizes(const double[::1] u, const double[::1] t):
    """(sum |u|, max |t|), at least 0."""
    if u.shape[0] == 0:
        return 0.0, 0.0
    return sizes_of(u.shape[0], &u[0]).total, sizes_of(t.shape[0], &t[0]).largest


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
