# SPDX-License-Identifier: BSD-3-Clause
"""Descent by pairs of rows that keep their sum (SMO); `pairs.h` has the problem and the step.

It stops at a modest accuracy: who ends at a bound and who ends between is what is asked for.
"""

import numpy as np

from adiabat._core.simd cimport pair_descent, PAIRS_BLOCK, simd

cdef enum:
    FEW_ROWS = 1500  # all their kernel values are asked for at once
    KEPT = 4         # answers that are kept, whatever their size


cdef class Pairs:
    """Rows that move in pairs. Kernel values are asked for as they are wanted.

    `write(places, out)` is to write those of some rows with all of them into the rows of an array,
    which may be wider. They are kept in so many bytes, the latest of them.
    """

    cdef readonly Py_ssize_t n
    cdef object _arrays, _answers
    cdef Py_ssize_t _bytes, _ahead         # room that is left
    cdef size_t[::1] _row
    cdef object _first, _alike             # by row: of those with the same values the first, all
    cdef pair_descent _state

    def __init__(self, r, u, lo, hi, diagonal, double flat, Py_ssize_t bytes, Py_ssize_t ahead=0,
                 samples=None):
        """A curvature below `flat` of the diagonal of a pair counts as none.

        `ahead` rows of each kind are asked for along with one that is wanted. Rows of one sample,
        by the numbers in `samples`, have the same kernel values, which are asked for once.
        """
        self.n, self._bytes, self._ahead = len(r), bytes, ahead
        cdef Py_ssize_t padded = max(1, (self.n + PAIRS_BLOCK - 1) // PAIRS_BLOCK) * PAIRS_BLOCK
        self._arrays = np.zeros((7, padded))
        self._answers = []
        self._row = np.zeros(padded, dtype=np.uintp)
        self._group(samples)
        cdef double[:, ::1] at = self._arrays
        self._arrays[:4, : self.n] = u, lo, hi, diagonal
        self._arrays[4], self._arrays[5] = np.inf, -np.inf
        self._arrays[4, : self.n][u < hi] = r[u < hi]
        self._arrays[5, : self.n][u > lo] = r[u > lo]
        self._state.n, self._state.flat = padded, flat
        self._state.row = <const double**> &self._row[0]
        self._state.u, self._state.lo, self._state.hi = &at[0, 0], &at[1, 0], &at[2, 0]
        self._state.diagonal = &at[3, 0]
        self._state.rise, self._state.fall, self._state.best = &at[4, 0], &at[5, 0], &at[6, 0]

    def _group(self, samples):
        """Which rows have the same values; None if no two do."""
        self._first = self._alike = None
        if samples is None:
            return
        _, first, group = np.unique(samples, return_index=True, return_inverse=True)
        if len(first) < self.n:
            self._first = first[group]
            order = np.argsort(group, kind="stable")
            self._alike = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
            self._alike = dict(zip(first.tolist(), self._alike, strict=True))

    @property
    def u(self):
        """The weights."""
        return self._arrays[0, : self.n]

    @property
    def middle(self):
        """Half way from the lowest r of those that can rise to the highest that can fall.

        Where none can rise, or none can fall, it is the other; where no row moves at all, 0.
        """
        ends = self._arrays[4].min(), self._arrays[5].max()
        ends = [end for end in ends if np.isfinite(end)]
        return sum(ends) / max(1, len(ends))

    def descend(self, double tolerance, Py_ssize_t steps, write):
        """So many steps at most, until no two rows differ by more than the tolerance."""
        cdef Py_ssize_t wanted
        self._state.tolerance, self._state.steps = tolerance, steps
        while True:
            with nogil:
                wanted = simd.pairs_descend(&self._state)
            if wanted < 0:
                return
            self._ask(wanted, write)

    cdef int _ask(self, Py_ssize_t wanted, write) except -1:
        cdef Py_ssize_t k
        cdef double[:, ::1] values
        if self.n <= FEW_ROWS:
            places = np.arange(self.n)
        else:
            places = self._likely(wanted) if self._ahead else np.array([wanted])
        if self._first is not None:
            places = np.unique(self._first[places])
        answer = np.empty((len(places), self._state.n))
        answer[:, self.n :] = 0.0
        write(places, answer)
        values = answer
        for k in range(len(places)):
            self._point(places[k], <size_t> &values[k, 0])
        self._answers.append((places, answer))
        self._bytes -= answer.nbytes
        while len(self._answers) > KEPT and self._bytes < 0:
            gone, answer = self._answers.pop(0)
            self._bytes += answer.nbytes
            for k in range(len(gone)):
                self._point(gone[k], 0)
        return 0

    cdef int _point(self, Py_ssize_t place, size_t values) except -1:
        """Let a row, and those like it, have their values there."""
        self._row[place] = values
        if self._alike is not None:
            for row in self._alike[place]:
                self._row[row] = values
        return 0

    def _likely(self, wanted):
        """A row, and others without values that will be wanted next: the first of their blocks."""
        given = np.asarray(self._row) != 0
        rise = np.where(given, np.inf, self._arrays[4]).reshape(-1, PAIRS_BLOCK)
        fall = np.where(given, -np.inf, self._arrays[5]).reshape(-1, PAIRS_BLOCK)
        lowest, highest = rise.min(axis=1), fall.max(axis=1)
        low = self._arrays[4].min() + self._state.tolerance
        high = self._arrays[5].max() - self._state.tolerance
        risers, fallers = np.argsort(lowest)[: self._ahead], np.argsort(-highest)[: self._ahead]
        risers, fallers = risers[lowest[risers] < high], fallers[highest[fallers] > low]
        return np.unique(np.concatenate([
            [wanted],
            risers * PAIRS_BLOCK + rise[risers].argmin(axis=1),
            fallers * PAIRS_BLOCK + fall[fallers].argmax(axis=1),
        ]))


def pairwise_descent(H, g, lo, hi, Py_ssize_t steps, double flat, double tolerance):
    """d with sum d = 0 of min 1/2 d'Hd + g'd over a box, after at most so many steps."""
    def write(places, out):
        out[:, : len(g)] = H[places]

    pairs = Pairs(g, np.zeros(len(g)), lo, hi, H.diagonal(), flat, H.nbytes)
    pairs.descend(tolerance, steps, write)
    return pairs.u.copy()
