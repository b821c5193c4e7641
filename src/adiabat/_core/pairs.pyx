# SPDX-License-Identifier: BSD-3-Clause
"""Descent by pairs of rows that keep their sum (SMO); `pairs.h` has the problem and the step.

It stops at a modest accuracy: who ends at a bound and who ends between is what is asked for.
"""

from libc.math cimport INFINITY

import numpy as np

from adiabat._core.blas cimport axpy
from adiabat._core.simd cimport pair_descent, PAIRS_BLOCK, simd

cdef enum:
    KEPT = 4         # answers that are kept, whatever their size
    LOOSE = 100      # tolerances from which on far rows are left out,
    BAND = 2         # far: so many times the span from those that can move,
    FEW_NEAR = 2     # if no more than this part of the rows is near


cdef class Pairs:
    """Rows that move in pairs. Kernel values are asked for as they are wanted.

    `write(places, out)` is to write those of some rows with all of them into the rows of an array,
    which may be wider. They are kept in so many bytes, the latest of them.
    """

    cdef readonly Py_ssize_t n
    cdef object _arrays, _answers
    cdef Py_ssize_t _bytes, _ahead         # room that is left
    cdef bint _whole                       # all values are asked for at once
    cdef size_t[::1] _row
    cdef pair_descent _state

    def __init__(self, r, u, lo, hi, diagonal, double flat, Py_ssize_t bytes, Py_ssize_t ahead=0,
                 Py_ssize_t few=0, jump=None):
        """A curvature below `flat` of the diagonal of a pair counts as none.

        `ahead` rows of each kind are asked for along with one that is wanted, or all where there
        are `few` rows at most. Where `jump` is positive, r is higher by so much from u = 0 on, and
        given as it is below.
        """
        self._bytes, self._ahead = bytes, ahead
        self._make_room(len(r))
        self._whole = self.n <= few
        arrays = self._arrays[:, : self.n]
        arrays[:4] = u, lo, hi, diagonal
        arrays[7], above = lo, r
        if jump is not None:
            arrays[7][jump > 0.0] = 0.0
            arrays[8] = jump
            above = r + jump
        kink = arrays[7]
        arrays[4] = np.where(u < kink, r, above)
        arrays[5] = np.where(u > kink, above, r)
        arrays[4][u >= hi], arrays[5][u <= lo] = np.inf, -np.inf
        self._state.flat = flat

    cdef int _make_room(self, Py_ssize_t n) except -1:
        """Arrays for n rows, padded by rows that cannot move."""
        cdef Py_ssize_t padded = max(1, (n + PAIRS_BLOCK - 1) // PAIRS_BLOCK) * PAIRS_BLOCK
        self.n, self._state.n = n, padded
        self._answers = []
        self._row = np.zeros(padded, dtype=np.uintp)
        self._arrays = np.zeros((9, padded))
        self._arrays[4, n:], self._arrays[5, n:] = np.inf, -np.inf
        cdef double[:, ::1] at = self._arrays
        self._state.row = <const double**> &self._row[0]
        self._state.u, self._state.lo, self._state.hi = &at[0, 0], &at[1, 0], &at[2, 0]
        self._state.diagonal, self._state.kink = &at[3, 0], &at[7, 0]
        self._state.rise, self._state.fall, self._state.best = &at[4, 0], &at[5, 0], &at[6, 0]
        self._state.jump = &at[8, 0]
        return 0

    @property
    def u(self):
        """The weights."""
        return self._arrays[0, : self.n]

    @property
    def middle(self):
        """Half way from the lowest r of those that can rise to the highest that can fall.

        Where none can rise, or none can fall, it is the other; where no row moves at all, 0.
        """
        ends = [end for end in self._ends() if np.isfinite(end)]
        return sum(ends) / max(1, len(ends))

    def _ends(self):
        """The lowest r of those that can rise, the highest of those that can fall."""
        return self._arrays[4].min(), self._arrays[5].max()

    def descend(self, double tolerance, Py_ssize_t steps, write):
        """So many steps at most, until no two rows differ by more than the tolerance.

        On the way most rows end far from where they would move. They are left out for a while,
        unless there are few rows.
        """
        self._state.steps = steps
        if not self._whole:
            self._run(LOOSE * tolerance, write)
            self._run_near(tolerance, write)
        self._run(tolerance, write)

    cdef int _run(self, double tolerance, write) except -1:
        cdef Py_ssize_t wanted
        self._state.tolerance = tolerance
        while True:
            with nogil:
                wanted = simd.pairs_descend(&self._state)
            if wanted < 0:
                return 0
            self._ask(wanted, write)

    cdef int _run_near(self, double tolerance, write) except -1:
        """The same without far rows; r of these follows afterwards."""
        cdef Py_ssize_t i, row
        cdef Pairs other
        low, high = self._ends()
        if not tolerance < high - low < INFINITY:
            return 0
        reach = BAND * (high - low)
        near = np.flatnonzero((self._arrays[4] < low + reach) | (self._arrays[5] > high - reach))
        if FEW_NEAR * len(near) > self.n or 8 * len(near) ** 2 > self._bytes:
            return 0
        cdef const long long[::1] place = near
        other = Pairs.__new__(Pairs)
        other._make_room(len(near))
        other._bytes, other._whole = self._bytes, False
        other._state.flat, other._state.steps = self._state.flat, self._state.steps
        other._arrays[:, : other.n] = self._arrays[:, near]

        def write_near(rows, out):
            if len(rows) and self._row[near[rows[0]]] == 0:
                self._ask(near[rows[0]], write)
            self._copy(place, near[rows], out)

        given = np.flatnonzero(np.asarray(self._row)[near])
        other._take(given, np.zeros((len(given), other._state.n)), write_near)
        other._run(tolerance, write_near)
        self._state.steps = other._state.steps
        change = np.zeros(self._state.n)
        cdef double[::1] moved = other.u - self._arrays[0, near], total = change
        for i in range(place.shape[0]):
            row = place[i]
            if moved[i] != 0.0:
                if self._row[row] == 0:  # it was given up meanwhile
                    self._ask(row, write)
                axpy(self._state.n, moved[i], <const double*> self._row[row], &total[0])
        self._arrays[4:6] += change
        self._arrays[:, near] = other._arrays[:, : other.n]
        return 0

    def given(self, places):
        """Which of some rows have their kernel values."""
        return np.asarray(self._row)[places] != 0

    def values(self, places, columns):
        """Kernel values of rows that have them, with some of the others."""
        if not self.given(places).all():
            raise ValueError("a row has no kernel values")
        out = np.empty((len(places), len(columns)))
        self._copy(columns, places, out)
        return out

    cdef int _copy(self, const long long[::1] columns, const long long[::1] rows,
                   double[:, ::1] out) except -1:
        """Kernel values of rows that have them, with some of the others."""
        cdef Py_ssize_t i, j
        cdef const double* values
        for i in range(rows.shape[0]):
            values = <const double*> self._row[rows[i]]
            for j in range(columns.shape[0]):
                out[i, j] = values[columns[j]]
        return 0

    cdef int _ask(self, Py_ssize_t wanted, write) except -1:
        if self._whole:
            places = np.arange(self.n)
        else:
            places = self._likely(wanted) if self._ahead else np.array([wanted])
        answer = np.empty((len(places), self._state.n))
        answer[:, self.n :] = 0.0
        return self._take(places, answer, write)

    cdef int _take(self, places, answer, write) except -1:
        """Let values be written, and keep them."""
        cdef Py_ssize_t k
        cdef double[:, ::1] values = answer
        write(places, answer)
        for k in range(len(places)):
            self._row[places[k]] = <size_t> &values[k, 0]
        self._answers.append((places, answer))
        self._bytes -= answer.nbytes
        while len(self._answers) > KEPT and self._bytes < 0:
            gone, answer = self._answers.pop(0)
            self._bytes += answer.nbytes
            for k in range(len(gone)):
                self._row[gone[k]] = 0
        return 0

    cdef object _likely(self, Py_ssize_t wanted):
        """A row, and others without values that will be wanted next: the first of their blocks."""
        cdef double low, high
        low, high = self._ends()
        places = {wanted}
        places.update(self._foremost(self._arrays[4], high - self._state.tolerance))
        places.update(self._foremost(-self._arrays[5], -low - self._state.tolerance))
        return np.array(sorted(places))

    cdef list _foremost(self, const double[::1] values, double most):
        """The rows without kernel values that are lowest in their blocks, the lowest of these."""
        cdef Py_ssize_t block, i, best
        found = []
        for block in range(0, self._state.n, PAIRS_BLOCK):
            best = -1
            for i in range(block, block + PAIRS_BLOCK):
                if self._row[i] == 0 and values[i] < (most if best < 0 else values[best]):
                    best = i
            if best >= 0:
                found.append((values[best], best))
        return [place for _, place in sorted(found)[: self._ahead]]


def pairwise_descent(H, g, lo, hi, Py_ssize_t steps, double flat, double tolerance):
    """d with sum d = 0 of min 1/2 d'Hd + g'd over a box, after at most so many steps."""
    def write(places, out):
        out[:, : len(g)] = H[places]

    pairs = Pairs(g, np.zeros(len(g)), lo, hi, H.diagonal(), flat, H.nbytes, 0, len(g))
    pairs.descend(tolerance, steps, write)
    return pairs.u.copy()
