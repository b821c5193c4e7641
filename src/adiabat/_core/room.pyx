# SPDX-License-Identifier: BSD-3-Clause
"""Arrays with an entry for each row or sample that grow and shrink where they are.

An array has room behind its last entry, so that one row more or less does not copy all others.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy, memmove, memset

import numpy as np

from adiabat._core.thread_pool cimport share

from adiabat._core.places import fillers
from adiabat._core.rows import rename

cdef enum:
    SPARE = 8  # room for one more in so many
    PIECE = 1 << 18  # bytes that one copies at a time


cdef struct Copy:
    char* to
    const char* source
    Py_ssize_t n


cdef void copy_piece(void* context, Py_ssize_t part) noexcept nogil:
    cdef Copy* job = <Copy*> context
    cdef Py_ssize_t first = part * PIECE
    memcpy(job.to + first, job.source + first, min(<Py_ssize_t> PIECE, job.n - first))


cdef class Room:
    """The buffers behind the arrays of one owner, by name.

    An array that was replaced by another is no longer its buffer's, and is copied when it grows.
    """

    cdef dict _buffers

    def __init__(self):
        self._buffers = {}

    cpdef extended(self, name, array, values, bint copied=False):
        """The array with values at its end, in the same buffer unless it is full.

        With `copied` it is in a new one, and `array` stays as it is.
        """
        cdef tuple grown
        buffer = self._buffers.get(name)
        if buffer is not None and array.base is not buffer:
            buffer = None
        if copied and buffer is not None and buffer.nbytes <= PIECE:
            buffer = buffer.copy()  # with the zeros behind the last entry
        elif copied:
            buffer = None
        grown = _extended(array, values, SPARE, buffer)
        self._buffers[name] = grown[0]
        return grown[1]

    def extend_all(self, owner, tuple names, tuple values, tuple copied=()):
        """Put values at the end of the arrays with these names that an owner has.

        Those with names in `copied` are in new ones afterwards.
        """
        cdef Py_ssize_t i
        cdef bint new
        if len(names) != len(values):
            raise ValueError(f"{len(names)} arrays, values for {len(values)}")
        for i in range(len(names)):
            name, new = names[i], names[i] in copied
            if new or len(values[i]):
                key = type(owner), name
                setattr(owner, name, self.extended(key, getattr(owner, name), values[i], new))


cdef class Leaving:
    """Rows (ascending) that go, of n, and how others close up: all behind them move up, or, if
    they are to be `filled`, some from the end take the places, those at `tail` the places `hole`.
    """

    cdef readonly object gone, tail, hole
    cdef readonly bint filled
    cdef const long long[::1] _gone, _tail, _hole

    def __init__(self, gone, Py_ssize_t n, bint filled):
        self.gone, self.filled = gone, filled
        self._gone = self._tail = self._hole = gone
        self.tail = self.hole = None
        if filled:
            self.tail, self.hole = fillers(gone, n)
            self._tail, self._hole = self.tail, self.hole

    def close(self, owner, names):
        """Take the rows out of the arrays with these names that an owner has."""
        cdef Py_ssize_t left
        for name in names:
            array = getattr(owner, name)
            if self.filled:
                left = len(array) - self._gone.shape[0]
                _fill(array, self._tail, self._hole, left)
            else:
                left = _remove(array, self._gone)
            setattr(owner, name, array[:left])

    def renumber(self, long long[::1] rows):
        """Give rows, none of which goes, the numbers that they have afterwards."""
        cdef Py_ssize_t i
        if self.filled:
            rename(rows, self.tail, self.hole)
            return
        for i in range(rows.shape[0]):
            rows[i] -= self._gone_before(rows[i])

    def place_of(self, long long row):
        """The number that one of them has afterwards."""
        cdef Py_ssize_t i
        if not self.filled:
            return row - self._gone_before(row)
        for i in range(self._tail.shape[0]):
            if self._tail[i] == row:
                return self._hole[i]
        return row

    cdef Py_ssize_t _gone_before(self, long long row) noexcept:
        """How many go before a row."""
        cdef Py_ssize_t first = 0, last = self._gone.shape[0], middle
        while first < last:
            middle = (first + last) // 2
            if self._gone[middle] < row:
                first = middle + 1
            else:
                last = middle
        return first


def removed(array, gone):
    """The array without the entries at `gone` (ascending), which are overwritten."""
    return array[: _remove(array, gone)]


def moved(array, tail, hole, Py_ssize_t left):
    """The first `left` entries, once those at `tail` have taken the places `hole`."""
    _fill(array, tail, hole, left)
    return array[:left]


def extended(array, values, Py_ssize_t spare, buffer=None):
    """(buffer, array): a 1-D array of a plain type with values at its end.

    They are put into its own buffer if that is given and long enough; else into a new one, with
    room for one more in `spare`, and `array` stays as it is.
    """
    return _extended(array, values, spare, buffer)


cdef tuple _extended(array, values, Py_ssize_t spare, buffer):
    cdef Py_ssize_t n = len(array), k = len(values), after = n + k
    cdef Py_buffer old, new
    cdef Copy job
    if buffer is not None and after <= len(buffer):
        if k:
            buffer[n:after] = values
        return buffer, buffer[:after]
    out = np.empty(after + after // spare, dtype=array.dtype)
    PyObject_GetBuffer(array, &old, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &new, PyBUF_SIMPLE | PyBUF_WRITABLE)
        job.to, job.source, job.n = <char*> new.buf, <const char*> old.buf, n * old.itemsize
        with nogil:
            share(copy_piece, &job, (job.n + PIECE - 1) // PIECE)
        # zeros: what memory held before, perhaps rows that are gone, is not kept
        memset(<char*> new.buf + n * old.itemsize, 0, new.len - n * old.itemsize)
        PyBuffer_Release(&new)
    finally:
        PyBuffer_Release(&old)
    if k:
        out[n:after] = values
    return out, out[:after]


cdef int _fill(array, const long long[::1] tail, const long long[::1] hole,
               Py_ssize_t left) except -1:
    """Entries of a 1-D array of a plain type move from `tail` to `hole`; `left` are not zeroed."""
    cdef Py_ssize_t i, n = len(array), width
    cdef Py_buffer held
    cdef char* data
    for i in range(tail.shape[0]):
        if not (0 <= tail[i] < n and 0 <= hole[i] < n):
            raise IndexError(f"there is no entry {tail[i]} or {hole[i]} of {n}")
    PyObject_GetBuffer(array, &held, PyBUF_SIMPLE | PyBUF_WRITABLE)
    data, width = <char*> held.buf, held.itemsize
    for i in range(tail.shape[0]):
        memcpy(data + hole[i] * width, data + tail[i] * width, width)
    if left < n:
        memset(data + left * width, 0, (n - left) * width)
    PyBuffer_Release(&held)
    return 0


def remove_entries(array, gone):
    """Delete the entries at `gone` (ascending) of a 1-D array of a plain type, where they are.

    Those behind move up, and zeros take the room at the end. Returns how many are left.
    """
    return _remove(array, gone)


cdef Py_ssize_t _remove(array, const long long[::1] gone) except -1:
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
