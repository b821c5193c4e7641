# SPDX-License-Identifier: BSD-3-Clause
"""What a round of exchange does to the rows of one machine, in place.

`engine/exchange.py` says which step comes when; here is each step, over plain arrays:

    face       solve the margin system; who leaves its box stops at its edge
    look       residuals of the watched rows brought up to date; what the objective gained
    violators  who among them violates
    propose    the violators' own box problem
    place      where each of them goes

Two arrays belong to the rounds themselves: `delta`, the change of u since the residuals r were
last brought up, and `residual`, r of MARGIN rows kept up within a round.

Rounds change r less and less, so that of the rows first watched only those are looked at again
that are near enough to r = 0 for the next change; the judge looks at all of them in the end.

Invariant: between steps, for the rows looked at, r + K delta (+ the change of b) is their residual.
"""

from libc.math cimport INFINITY, fabs, sqrt

import numpy as np

from adiabat._core.box import coordinate_descent
from adiabat._core.factor cimport Factor
from adiabat._core.gram cimport Gram
from adiabat._core.sums cimport sizes_of, sum_of

# What sum u may differ from d by rounding, as a part of the sum of |u|: bounds are rounded.
cdef double SLACK = 2.0 ** -52
SWEEPS = 60
# A curvature below minus this part of the diagonal is a fault of the kernel.
NEGATIVE = 1e-7
# If less than this part of the margin stays, its factor is made anew.
cdef double MOST_STAY = 0.75


cdef class Rounds:
    """The arrays of one machine while it is being solved."""

    cdef readonly object delta, residual
    cdef readonly double weight            # sum |u|, as of the last `measure`
    cdef readonly double missing           # d - sum u
    cdef readonly double rms_change              # root mean square of the last changes of r, scaled
    cdef readonly double strength          # sum sqrt(k) |u|, as of the last `measure`
    cdef public double b
    cdef double _delta_b                   # its change since the last look
    cdef double _largest                   # |u|, scaled
    cdef double _at_bound
    cdef double[::1] _delta, _residual
    cdef double[::1] _u, _lo, _hi, _r
    cdef const double[::1] _root, _scale, _unseen
    cdef const long long[::1] _at
    cdef unsigned char[::1] _inside
    cdef Gram _gram
    cdef Factor _factor

    def __init__(self, Gram gram, Py_ssize_t n, double at_bound):
        """A bound is reached within `at_bound` of the box, or of the largest weight: C is huge.

        Weights are compared by what they do to f and to their sum: one of an outlier is small, and
        means as much. What its own f would show is never taken for 0 (`hide`).
        """
        self._gram = gram
        self._at_bound = at_bound
        self.delta, self.residual = np.zeros(n), np.zeros(n)
        self._delta, self._residual = self.delta, self.residual
        self._unseen = np.full(n, INFINITY)

    def bind(self, Factor factor, u, lo, hi, r, at, in_margin, root, scale):
        """Work on these arrays from now on.

        `root` is sqrt k(x, x), by row; `scale` what r of a row moves by when w and b do.
        """
        self._factor = factor
        self._u, self._lo, self._hi, self._r = u, lo, hi, r
        self._at, self._inside = at, in_margin.view(np.uint8)
        self._root, self._scale = root, scale

    def set_unseen(self, const double[::1] unseen):
        """What a row's own f may change by, so that nobody sees it."""
        self._unseen = unseen

    def measure(self, double d):
        """Sum u against d, and the size of the weights; whether the sum is right."""
        cdef Py_ssize_t i, n = self._u.shape[0]
        cdef double scaled, total = 0.0, largest = 0.0
        self.missing, self.weight, self._largest, self.strength = d, 0.0, 0.0, 0.0
        if n:
            with nogil:
                # rounding in this sum would be taken for something to mend
                self.missing = d - sum_of(n, &self._u[0])
                self.weight = sizes_of(n, &self._u[0]).total
                for i in range(n):
                    total += self._root[i] * fabs(self._u[i])
                    scaled = self._scale[i] * fabs(self._u[i])
                    largest = scaled if scaled > largest else largest
            self.strength, self._largest = total, largest
        return fabs(self.missing) <= SLACK * (fabs(d) + self.weight) + 1e-300

    cdef double _room(self, Py_ssize_t row) noexcept nogil:
        cdef double room = self._hi[row] - self._lo[row], root = self._root[row]
        if self._scale[row] * room > self._largest:
            room = self._largest / self._scale[row]
        room *= self._at_bound
        # one heavy weight among outliers is largest, and theirs are all that their own f has
        if root * root * room > self._unseen[row]:
            room = self._unseen[row] / (root * root)
        return room

    def snap_to_bounds(self, rows, values):
        """Values of rows, those within rounding of a bound put there."""
        cdef const long long[::1] at = rows
        out = np.array(values, dtype=np.float64)
        cdef double[::1] new = out
        cdef Py_ssize_t i
        for i in range(at.shape[0]):
            new[i] = self._snap(at[i], new[i])
        return out

    cdef double _snap(self, Py_ssize_t row, double value) noexcept nogil:
        cdef double room = self._room(row)
        if value <= self._lo[row] + room:
            return self._lo[row]
        if value >= self._hi[row] - room:
            return self._hi[row]
        return value

    # ---- before the first round -----------------------------------------------------------------

    def enter_boxes(self):
        """Bring every u into its box.

        Returns the rows moved, how far, and the MARGIN rows that have to leave: those moved, and
        those whose box is a point.
        """
        cdef Py_ssize_t i
        outside, leaving, moves = [], [], []
        cdef double new
        for i in range(self._u.shape[0]):
            if self._lo[i] <= self._u[i] <= self._hi[i]:
                if self._inside[i] and self._lo[i] == self._hi[i]:
                    leaving.append(i)
                continue
            new = self._lo[i] if self._u[i] < self._lo[i] else self._hi[i]
            outside.append(i)
            moves.append(new - self._u[i])
            self._delta[i] += new - self._u[i]
            self._u[i] = new
            if self._inside[i]:
                leaving.append(i)
        return (
            np.array(outside, dtype=np.int64), np.array(moves), np.array(leaving, dtype=np.int64)
        )

    def start(self, double[::1] pending):
        """r of MARGIN rows, and what is still to be added to it, is what the rounds start from."""
        cdef const long long[::1] margin = self._factor.rows
        cdef Py_ssize_t i, row
        self.rms_change = INFINITY
        for i in range(margin.shape[0]):
            row = margin[i]
            self._residual[row] = self._r[row] + pending[row]
            pending[row] = 0.0

    def at_rest(self, const double[::1] accuracy):
        """Whether the margin has nothing to answer for yet."""
        cdef const long long[::1] margin = self._factor.rows
        cdef Py_ssize_t i
        cdef bint rest = margin.shape[0] > 0
        with nogil:
            for i in range(margin.shape[0] if rest else 0):
                rest = rest and fabs(self._residual[margin[i]]) <= accuracy[margin[i]]
            for i in range(self._delta.shape[0] if rest else 0):
                rest = rest and self._delta[i] == 0.0
        return rest

    # ---- 1. the face ----------------------------------------------------------------------------

    def face(self, double d, bint stops, refactor):
        """The optimum on the face of the present margin; False if no margin is left to hold b.

        Rows that meet a bound leave MARGIN, and the others answer. With `stops` all rows stop
        where the first one does, once the sum is right. Where few rows stay, `refactor(rows)`
        makes the factor anew and returns those of them that depend on the others.
        """
        cdef bint feasible, holds_b
        while self._factor.size:
            feasible, holds_b = self.measure(d), self._factor.holds_b()
            gone, short = self.solve_face(stops and feasible, not holds_b)
            if len(gone) == 0:
                return bool(holds_b)
            leaving = self._factor.rows[gone]
            self.leave_margin(gone, refactor)
            self.answer(leaving, short)
        return False

    def leave_margin(self, positions, refactor):
        """Take the rows at positions (ascending) of the factor out of MARGIN."""
        cdef const long long[::1] members = self._factor.rows, at = positions
        cdef Py_ssize_t i, s = members.shape[0]
        for i in range(at.shape[0]):
            self._inside[members[at[i]]] = False
        if s - at.shape[0] >= MOST_STAY * s:
            self._factor.drop_many(positions)
            return
        for i in refactor(np.delete(self._factor.rows, positions)):
            self._residual[i] = 0.0

    def solve_face(self, bint cut, bint held):
        """One solve of the margin system, after `measure`.

        Returns the positions in the factor of rows that met a bound, and by how much these moved
        less than the solution says. With `cut` all stop where the first one does. With `held` b
        stays, and so does sum u but for rounding.
        """
        cdef const long long[::1] margin = self._factor.rows
        cdef Py_ssize_t i, row, s = margin.shape[0], n_out = 0
        cdef double db = 0.0, part = 1.0, reach, step, new
        cdef double[::1] du = np.empty(s)
        positions, shortfall = np.empty(s, dtype=np.int64), np.empty(s)
        cdef long long[::1] out = positions
        cdef double[::1] short = shortfall
        with nogil:
            for i in range(s):
                du[i] = -self._residual[margin[i]]
            if held:
                self._factor.solve_held(&du[0])
            else:
                db = self._factor.solve_in_place(&du[0], self.missing)
            if cut:
                for i in range(s):
                    reach = self._reach(margin[i], du[i])
                    if reach < part:
                        part = reach
            for i in range(s):
                row = margin[i]
                step = part * du[i]
                new = self._snap(row, self._u[row] + step)
                self._delta[row] += new - self._u[row]
                if new == self._lo[row] or new == self._hi[row]:
                    out[n_out] = i
                    short[n_out] = new - self._u[row] - step
                    n_out += 1
                self._u[row] = new
                self._residual[row] *= 1.0 - part
        self.b += part * db
        self._delta_b += part * db
        return positions[:n_out], shortfall[:n_out]

    cdef double _reach(self, Py_ssize_t row, double du) noexcept nogil:
        """The part of du, at least 0, that takes a row to its bound."""
        cdef double part
        if du == 0.0:
            return 1.0
        part = ((self._hi[row] if du > 0.0 else self._lo[row]) - self._u[row]) / du
        return part if part > 0.0 else 0.0

    def shift_b(self, double db):
        """Note that b has changed."""
        self._delta_b += db

    def answer(self, movers, const double[::1] amounts):
        """Residuals of MARGIN rows after rows with columns moved by amounts."""
        cdef const long long[::1] margin = self._factor.rows, moved = movers
        cdef const long long[::1] slot_of = self._gram.slot_of
        cdef double[::1] coef = np.zeros(self._gram.n_slots), change = np.empty(margin.shape[0])
        cdef Py_ssize_t i
        for i in range(moved.shape[0]):
            coef[slot_of[self._at[moved[i]]]] += amounts[i]
        self._gram.multiply(coef, change, self._samples_of(margin))
        for i in range(margin.shape[0]):
            self._residual[margin[i]] += change[i]

    # ---- 2. the look ----------------------------------------------------------------------------

    def watch(self, watched, near, double reach):
        """The rows to look at, outside MARGIN: those `near` with |r| up to `reach`, scaled.

        Rows beyond are not near any more; rows that moved are, and are watched from now on.
        """
        cdef unsigned char[::1] of_old = watched.view(np.uint8), look = near.view(np.uint8)
        cdef Py_ssize_t i, count = 0
        rows = np.empty(self._u.shape[0], dtype=np.int64)
        cdef long long[::1] out = rows
        cdef const double[::1] delta = self._delta, r = self._r, scale = self._scale
        cdef const unsigned char[::1] inside = self._inside
        cdef unsigned char moved, seen
        with nogil:
            # without branches, whose outcome nobody can foresee
            for i in range(delta.shape[0]):
                moved = delta[i] != 0.0
                of_old[i] |= moved
                seen = moved | (look[i] & (fabs(r[i]) <= reach * scale[i]))
                look[i] = seen
                out[count] = i
                count += seen & (inside[i] ^ 1)
        return rows[:count]

    def look(self, rows, claim):
        """Bring r of rows up to date with the changes of u and b since the last look.

        `claim(samples)` gives columns to those that moved and have none. Returns the change of the
        objective, by the trapezoid rule on its gradient r.
        """
        cdef const long long[::1] looked = rows, movers
        cdef const long long[::1] margin = self._factor.rows
        cdef const long long[::1] slot_of
        cdef Py_ssize_t i, row
        cdef double gain = 0.0, squares = 0.0, db = self._delta_b
        cdef double[::1] coef, change
        self._delta_b = 0.0
        movers = self._moved(claim)
        if movers.shape[0] == 0 and db == 0.0:
            for i in range(margin.shape[0]):
                self._r[margin[i]] = self._residual[margin[i]]
            return 0.0
        slot_of = self._gram.slot_of
        coef, change = np.zeros(self._gram.n_slots), np.empty(looked.shape[0])
        for i in range(movers.shape[0]):
            coef[slot_of[self._at[movers[i]]]] += self._delta[movers[i]]
            gain += self._r[movers[i]] * self._delta[movers[i]]
        self._gram.multiply(coef, change, self._samples_of(looked))
        with nogil:
            for i in range(looked.shape[0]):
                row = looked[i]
                self._r[row] += change[i] + db
                if self._lo[row] < self._hi[row]:  # one that leaves changes most, and never comes
                    squares += ((change[i] + db) / self._scale[row]) ** 2
            self.rms_change = sqrt(squares / max(1, looked.shape[0]))
            for i in range(margin.shape[0]):
                self._r[margin[i]] = self._residual[margin[i]]
            for i in range(movers.shape[0]):
                gain += self._r[movers[i]] * self._delta[movers[i]]
                self._delta[movers[i]] = 0.0
        return 0.5 * gain

    def _moved(self, claim):
        """Rows whose u changed since the last look; all of them have columns."""
        cdef const long long[::1] slot_of = self._gram.slot_of
        cdef Py_ssize_t i, count = 0
        cdef bint lacking = False
        rows = np.empty(self._u.shape[0], dtype=np.int64)
        cdef long long[::1] moved = rows
        cdef const double[::1] delta = self._delta
        with nogil:
            for i in range(delta.shape[0]):
                moved[count] = i
                count += delta[i] != 0.0
            for i in range(count):
                lacking |= slot_of[self._at[moved[i]]] < 0
        if lacking:
            claim(self._samples_of(moved[:count]))
        return rows[:count]

    cdef object _samples_of(self, const long long[::1] rows):
        """The samples that rows stand for."""
        cdef Py_ssize_t i
        out = np.empty(rows.shape[0], dtype=np.int64)
        cdef long long[::1] at = out
        for i in range(rows.shape[0]):
            at[i] = self._at[rows[i]]
        return out

    # ---- 3. the violators -----------------------------------------------------------------------

    def violators(self, rows, const double[::1] accuracy):
        """Those among rows that violate by more than their accuracy, and by how much, scaled."""
        cdef const long long[::1] at = rows
        cdef Py_ssize_t i, row, count = 0
        cdef double violation
        found, amount = np.empty(at.shape[0], dtype=np.int64), np.empty(at.shape[0])
        cdef long long[::1] who = found
        cdef double[::1] much = amount
        with nogil:
            for i in range(at.shape[0]):
                row = at[i]
                violation = fabs(self._r[row])
                if violation <= accuracy[row]:
                    continue
                if self._u[row] > self._lo[row] if self._r[row] > 0.0 else (
                        self._u[row] < self._hi[row]):
                    who[count] = row
                    much[count] = violation / self._scale[row]
                    count += 1
        return found[:count], amount[:count]

    def exchange(self, rows, samples, double flat):
        """Move violators to a bound or into MARGIN.

        Returns the least curvature that was met, relative to the diagonal: S_ii / scale_i of the
        rows, and the pivots of those that joined.
        """
        margin = self._factor.rows.copy()
        cross, own, H, scale, least = self.curvature(rows, margin, samples)
        if least < -NEGATIVE:
            return least
        new, between = self.propose(rows, H, flat * scale)
        joined = self._factor.admit(between, rows[between])
        least = min(least, self._factor.least_pivot)
        between = between[joined]
        self._enter_margin(rows[between], samples)
        self.place(rows, new, between, margin, cross, own)
        return least

    def _enter_margin(self, rows, samples):
        """Rows that joined the factor are in MARGIN, and have columns."""
        cdef const long long[::1] came = rows, slot_of = self._gram.slot_of
        cdef Py_ssize_t i
        cdef bint lacking = False
        for i in range(came.shape[0]):
            self._inside[came[i]] = True
            lacking |= slot_of[self._at[came[i]]] < 0
        if lacking:
            samples.slots(self._samples_of(came))

    def curvature(self, rows, margin, samples):
        """What the objective's curvature is when rows move and MARGIN answers.

        Returns kernel values of rows with MARGIN and among themselves, H = S + p'p / z'z
        (`Factor.prepare`), the diagonal that it is compared with, and the least S_ii as a part of
        that.
        """
        cdef const long long[::1] slot_of = self._gram.slot_of
        cdef const long long[::1] at = self._samples_of(rows), stand = self._samples_of(margin)
        cdef Py_ssize_t i, j, k = at.shape[0]
        cdef double border, least = INFINITY
        cdef bint lacking = False
        columns, slots = np.empty(stand.shape[0], dtype=np.int64), np.empty(k, dtype=np.int64)
        cdef long long[::1] column = columns, slot = slots
        for j in range(stand.shape[0]):
            column[j] = slot_of[stand[j]]
        for i in range(k):
            slot[i] = slot_of[at[i]]
            lacking |= slot[i] < 0
        cross = np.empty((k, stand.shape[0]))
        samples.draw(np.asarray(at))
        self._gram.gather(np.asarray(at), columns, cross)
        if lacking:
            own = samples.among(np.asarray(at))
        else:
            own = np.empty((k, k))
            self._gram.gather(np.asarray(at), slots, own)
        S, p = self._factor.prepare(cross, own)
        H, scale = np.empty((k, k)), np.empty(k)
        cdef double[:, ::1] schur = S, full = H, among = own
        cdef double[::1] gap = p, diagonal = scale
        border = self._factor.border()
        with nogil:
            for i in range(k):
                diagonal[i] = among[i, i] + self._factor.shift
                if schur[i, i] / diagonal[i] < least:
                    least = schur[i, i] / diagonal[i]
                for j in range(k):
                    full[i, j] = schur[i, j] + gap[i] * (gap[j] / border)
        return cross, own, H, scale, least

    def propose(self, rows, H, const double[::1] flat):
        """Where the box problem of rows, min 1/2 d'Hd + r'd, takes their u.

        Returns the new u, and which of the rows end between their bounds.
        """
        cdef const long long[::1] at = rows
        cdef Py_ssize_t i, row, count = 0, k = at.shape[0]
        cdef double[::1] r = np.empty(k), below = np.empty(k), above = np.empty(k), d
        target, between = np.empty(k), np.empty(k, dtype=np.int64)
        cdef double[::1] new = target
        cdef long long[::1] inside = between
        for i in range(k):
            row = at[i]
            r[i] = self._r[row]
            below[i], above[i] = self._lo[row] - self._u[row], self._hi[row] - self._u[row]
        d = coordinate_descent(H, r, below, above, SWEEPS, flat)
        for i in range(k):
            row = at[i]
            new[i] = self._u[row] + d[i]
            if d[i] <= below[i]:
                new[i] = self._lo[row]
            elif d[i] >= above[i]:
                new[i] = self._hi[row]
            if self._lo[row] < new[i] < self._hi[row]:
                inside[count] = i
                count += 1
        return target, between[:count]

    def place(self, rows, double[::1] new, inside, margin, double[:, ::1] cross,
              double[:, ::1] own):
        """Give rows their new u, but for rows[inside], which joined MARGIN: its system places them.

        `margin` are the rows that were in MARGIN before; cross and own the kernel values of rows
        against these and among themselves.
        """
        cdef const long long[::1] at = rows, joined = inside, stood = margin
        cdef Py_ssize_t i, j, k = at.shape[0]
        cdef double step, total
        cdef double[::1] shift = np.zeros(k)
        with nogil:
            for i in range(k):
                shift[i] = new[i] - self._u[at[i]]
            for j in range(joined.shape[0]):
                shift[joined[j]] = 0.0
            for i in range(k):
                step = shift[i]
                if step == 0.0:
                    continue
                self._u[at[i]] = new[i]
                self._delta[at[i]] += step
                for j in range(stood.shape[0]):
                    self._residual[stood[j]] += cross[i, j] * step
            for j in range(joined.shape[0]):
                total = self._r[at[joined[j]]]
                for i in range(k):
                    total += own[joined[j], i] * shift[i]
                self._residual[at[joined[j]]] = total
