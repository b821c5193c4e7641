# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows: without some entries, which codes they hold."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

import numpy as np


def without(array, const long long[::1] gone):
    """A copy of a 1-D array, of a plain type, without the entries at `gone` (ascending)."""
    cdef Py_ssize_t k = gone.shape[0], n = len(array), i, start = 0, width, last = -1
    cdef Py_buffer old, new
    cdef const char* source
    cdef char* to
    for i in range(k):
        if gone[i] <= last or gone[i] >= n:
            raise IndexError(f"positions must ascend from 0 to {n - 1}")
        last = gone[i]
    out = np.empty(n - k, dtype=array.dtype)
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
    return out


def codes_in(const long long[::1] target):
    """The different codes, none below 0, in an array: a list in ascending order."""
    cdef Py_ssize_t i
    cdef long long most = -1, last = -1
    for i in range(target.shape[0]):
        if target[i] < 0:
            raise ValueError("a code is below 0")
        if target[i] > most:
            most = target[i]
    cdef unsigned char[::1] there = np.zeros(most + 1, dtype=np.uint8)
    for i in range(target.shape[0]):
        if target[i] != last:
            last = target[i]
            there[last] = 1
    return [i for i in range(most + 1) if there[i]]


def sizes(const double[::1] u, const double[::1] t):
    """(sum |u|, max |t|), at least 0."""
    cdef Py_ssize_t i
    cdef double total = 0.0, most = 0.0, value
    for i in range(u.shape[0]):
        value = t[i] if t[i] >= 0.0 else -t[i]
        most = value if value > most else most
        total += u[i] if u[i] >= 0.0 else -u[i]
    return total, most


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
