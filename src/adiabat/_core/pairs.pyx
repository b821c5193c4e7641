# SPDX-License-Identifier: BSD-3-Clause
"""Descent by pairs of rows that keep their sum (SMO); `pairs.h` has the problem and the step.

It stops at a modest accuracy: who ends at a bound and who ends between is what is asked for.
"""

from libc.math cimport INFINITY

import numpy as np

from adiabat._core.among cimport Among, write_columns
from adiabat._core.blas cimport axpy
from adiabat._core.face cimport Face, face_work
from adiabat._core.simd cimport pair_descent, PAIRS_BLOCK, PAIRS_PAUSE, simd

from adiabat._core.panels import UNLIMITED

cdef enum:
    KEPT = 4          # answers that are kept, whatever their size
    CHUNK = 1 << 24   # bytes for answers that are taken at a time
    LOOSE = 100       # tolerances from which on far rows are left out,
    BAND = 2          # far: so many times the span from those that can move,
    FEW_NEAR = 2      # if no more than this part of the rows is near
    MOST_AHEAD = 16   # rows of one kind asked for along with another
    LEAST_STEPS = 16  # of pairs from one step on the face to the next
    ASKED = 8         # entries of a step that a kernel value takes


cdef class Pairs:
    """Rows that move in pairs. Kernel values are asked for as they are wanted.

    They are those of an `Among`, or `write(places, out)` is to write those of some rows with all of
    them into the rows of an array, which may be wider. They are kept in so many bytes, the latest
    of them.
    """

    cdef readonly Py_ssize_t n
    cdef object _arrays, _chunks           # room for rows of kernel values, and whose they are
    cdef Py_ssize_t _chunk, _next          # where the next go
    cdef Py_ssize_t _bytes, _ahead         # room that is left
    cdef object _memory, _beside           # where it is, and what else is there
    cdef bint _whole                       # all values are asked for at once
    cdef size_t[::1] _row
    cdef pair_descent _state
    cdef Face _face
    cdef Py_ssize_t _since                 # steps that were left after the last step on the face

    def __init__(self, r, u, lo, hi, diagonal, double flat, Py_ssize_t bytes, Py_ssize_t ahead=0,
                 Py_ssize_t few=0, jump=None, memory=UNLIMITED, beside=()):
        """A curvature below `flat` of the diagonal of a pair counts as none.

        `ahead` rows of each kind are asked for along with one that is wanted, or all where there
        are `few` rows at most. Where `jump` is positive, r is higher by so much from u = 0 on, and
        given as it is below. Kernel values are in a memory, `beside` other arrays.
        """
        self._memory, self._beside = memory, beside
        self._bytes, self._ahead = bytes, min(ahead, MOST_AHEAD)
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
        self._face = Face()

    cdef int _make_room(self, Py_ssize_t n) except -1:
        """Arrays for n rows, padded by rows that cannot move."""
        cdef Py_ssize_t padded = max(1, (n + PAIRS_BLOCK - 1) // PAIRS_BLOCK) * PAIRS_BLOCK
        self.n, self._state.n = n, padded
        self._chunks, self._chunk, self._next = [], 0, 0
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
        ends = [end for end in self._ends() if -INFINITY < end < INFINITY]
        return sum(ends) / max(1, len(ends))

    cdef (double, double) _ends(self) noexcept nogil:
        """The lowest r of those that can rise, the highest of those that can fall."""
        cdef double low = INFINITY, high = -INFINITY
        cdef Py_ssize_t i
        for i in range(self._state.n):
            low = self._state.rise[i] if self._state.rise[i] < low else low
            high = self._state.fall[i] if self._state.fall[i] > high else high
        return low, high

    def descend(self, double tolerance, Py_ssize_t steps, write):
        """So many steps at most, until no two rows differ by more than the tolerance.

        On the way most rows end far from where they would move. They are left out for a while,
        unless there are few rows. Returns whether the steps were enough.
        """
        self._state.steps = steps
        if not self._whole:
            self._run(LOOSE * tolerance, write)
            self._run_near(tolerance, write)
        self._run(tolerance, write)
        return self._state.span <= tolerance

    cdef int _run(self, double tolerance, write) except -1:
        cdef Py_ssize_t wanted
        self._state.tolerance = tolerance
        self._since = self._state.steps
        self._state.pause = self._since - LEAST_STEPS
        while True:
            with nogil:
                wanted = simd.pairs_descend(&self._state)
            if wanted == PAIRS_PAUSE:
                self._step_on_face(write)
            elif wanted < 0:
                return 0
            else:
                self._ask(wanted, write)

    cdef int _step_on_face(self, write) except -1:
        """Move the rows between their ends together, if pairs have taken as long as that will."""
        cdef double due, work = <double> (self._since - self._state.steps) * self._state.n
        cdef long long place
        rows = np.flatnonzero(self._arrays[4] == self._arrays[5])
        lacking = rows[np.asarray(self._row)[rows] == 0]
        due = face_work(self._state.n, len(rows)) + <double> ASKED * len(lacking) * self._state.n
        if work >= due and 1 < len(rows) and KEPT * len(rows) * self._state.n < CHUNK:
            for place in lacking:
                if self._row[place] == 0:
                    self._ask(place, write)
            rows = rows[np.asarray(self._row)[rows] != 0]
            due = max(due, self._face.descend(&self._state, rows, work))
            self._since = self._state.steps
        self._state.pause = min(self._since - <Py_ssize_t> min(due / self._state.n, 1e15),
                                self._state.steps - LEAST_STEPS)
        return 0

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
        other._memory = self._memory
        other._beside = [*self._beside, *[chunk[0] for chunk in self._chunks]]
        other._state.flat, other._state.steps = self._state.flat, self._state.steps
        other._face = self._face
        other._arrays[:, : other.n] = self._arrays[:, near]

        def write_near(rows, out):
            if len(rows) and self._row[near[rows[0]]] == 0:
                self._ask(near[rows[0]], write)
            self._copy(place, near[rows], out)

        given = np.flatnonzero(np.asarray(self._row)[near])
        other._take(given, write_near)
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

    def write(self, places, order, const size_t[::1] tops, Py_ssize_t step):
        """k(row order[i], places[j]) to the address tops[j] + i * step numbers; all have values."""
        cdef const long long[::1] owners = np.ascontiguousarray(places, dtype=np.int64)
        cdef size_t[::1] values = np.empty(owners.shape[0], dtype=np.uintp)
        cdef Py_ssize_t i
        for i in range(owners.shape[0]):
            values[i] = self._row[owners[i]]
            if values[i] == 0:
                raise ValueError("a row has no kernel values")
        write_columns(values, self.n, order, tops, step)

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
        cdef long long[1 + 2 * MOST_AHEAD] likely
        cdef Py_ssize_t count
        if self._whole:
            places = np.arange(self.n)
        else:
            count = self._likely(wanted, likely)
            places = np.array(<long long[:count]> likely)
        return self._take(places, write)

    cdef _room_for(self, Py_ssize_t k):
        """Rows for k answers, and whose they are; where no room is left, those of the oldest."""
        cdef Py_ssize_t each = self._state.n * sizeof(double), n = 0
        cdef const long long[::1] owners
        if self._chunks and self._next + k > len(self._chunks[self._chunk][0]):
            self._chunk, self._next = self._chunk + 1, 0
        if self._chunk == len(self._chunks) >= KEPT and self._bytes < k * each:
            self._chunk = 0
        if self._chunk < len(self._chunks):
            n = len(self._chunks[self._chunk][0])
        if n < k:
            # memory that is not written to is not taken
            n = max(k, min(self.n, CHUNK // each, self._bytes // (KEPT * each)))
            held = [chunk[0] for chunk in self._chunks]
            values = self._memory.empty((n, self._state.n), held, self._beside)
            room = values, np.full(n, -1, dtype=np.int64)
            self._bytes -= room[0].nbytes
            if self._chunk == len(self._chunks):
                self._chunks.append(room)
            else:
                self._bytes += self._chunks[self._chunk][0].nbytes
                self._give_up(self._chunks[self._chunk][1])
                self._chunks[self._chunk] = room
        values, owners = self._chunks[self._chunk]
        some = slice(self._next, self._next + k)
        self._next += k
        return values[some], np.asarray(owners)[some]

    cdef int _give_up(self, const long long[::1] owners) except -1:
        """These rows have no kernel values any more."""
        cdef Py_ssize_t i
        for i in range(owners.shape[0]):
            if owners[i] >= 0:
                self._row[owners[i]] = 0

    cdef int _take(self, places, write) except -1:
        """Let values be written, and keep them."""
        cdef Py_ssize_t k
        cdef double[:, ::1] values
        cdef const long long[::1] place = places
        cdef long long[::1] owners
        cdef size_t[::1] tops
        if place.shape[0] == 0:
            return 0
        answer, owners = self._room_for(place.shape[0])
        self._give_up(owners)
        owners[:] = -1
        values = answer
        if self.n < self._state.n:
            answer[:, self.n :] = 0.0
        if isinstance(write, Among):
            tops = np.empty(place.shape[0], dtype=np.uintp)
            for k in range(place.shape[0]):
                tops[k] = <size_t> &values[k, 0]
            (<Among> write).fill(&place[0], place.shape[0], <double**> &tops[0])
        else:
            write(places, answer)
        for k in range(place.shape[0]):
            self._row[place[k]] = <size_t> &values[k, 0]
            owners[k] = place[k]
        return 0

    cdef Py_ssize_t _likely(self, Py_ssize_t wanted, long long* places) noexcept nogil:
        """A row, and others without values that will be wanted next: the first of their blocks.

        Returns how many they are.
        """
        cdef double low, high
        cdef Py_ssize_t count
        places[0] = wanted
        if self._ahead == 0:
            return 1
        low, high = self._ends()
        count = self._foremost(self._state.rise, 1.0, high - self._state.tolerance, places, 1)
        return self._foremost(self._state.fall, -1.0, -low - self._state.tolerance, places, count)

    cdef Py_ssize_t _foremost(self, const double* values, double sign, double most,
                              long long* places, Py_ssize_t count) noexcept nogil:
        """Add the rows without kernel values that are lowest in their blocks, the lowest of these.

        `sign` times the values is what counts. Returns how many places there are then.
        """
        cdef double[MOST_AHEAD] lowest
        cdef long long[MOST_AHEAD] found
        cdef Py_ssize_t block, i, j, best, k = 0, first = count
        cdef double value
        cdef bint known
        for block in range(self._state.n // PAIRS_BLOCK):
            best, value = -1, most
            for i in range(block * PAIRS_BLOCK, (block + 1) * PAIRS_BLOCK):
                if self._row[i] == 0 and sign * values[i] < value:
                    best, value = i, sign * values[i]
            if best < 0 or (k == self._ahead and value >= lowest[k - 1]):
                continue
            j = k if k < self._ahead else k - 1
            k = j + 1
            while j > 0 and lowest[j - 1] > value:
                lowest[j], found[j] = lowest[j - 1], found[j - 1]
                j -= 1
            lowest[j], found[j] = value, best
        for j in range(k):
            known = False
            for i in range(first):
                known = known or places[i] == found[j]
            if not known:
                places[count] = found[j]
                count += 1
        return count


def pairwise_descent(H, g, lo, hi, Py_ssize_t steps, double flat, double tolerance):
    """d with sum d = 0 of min 1/2 d'Hd + g'd over a box, after at most so many steps."""
    def write(places, out):
        out[:, : len(g)] = H[places]

    pairs = Pairs(g, np.zeros(len(g)), lo, hi, H.diagonal(), flat, H.nbytes, 0, len(g))
    pairs.descend(tolerance, steps, write)
    return pairs.u.copy()
