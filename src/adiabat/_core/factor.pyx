# SPDX-License-Identifier: BSD-3-Clause
"""The margin system and its factor.

Over the MARGIN rows, in the order in which they joined,

    L L' = K_MM + c 11',      z = L^-1 1,

and the bordered system [[0, 1'], [1, K_MM]] of CP01 (5), (7) is solved through them:

    w = L^-1 q,   db~ = (z'w - s) / z'z,   du = L^-T (w - db~ z),   db = db~ + c s

solves  K_MM du + db 1 = q,  1'du = s.  The shift c changes nothing, as 1'du is known, but makes
the matrix definite exactly where the bordered one is regular: with a linear kernel in d features
the margin may hold d + 1 rows and K_MM itself is then singular.

A row joins by a forward substitution, leaves by Givens rotations; blocks do the same with TRSM and
POTRF. A row whose pivot is below `dependent` of its diagonal is refused.

Invariant: after every public call ||L L' - (K_MM + c 11')|| is of rounding size.
"""

from libc.math cimport sqrt
from libc.string cimport memcpy

import numpy as np

from adiabat._core.blas cimport (
    axpy, dot, gemm, potrf, rot, rotg, tpmqrt, tpqrt, trsm_lower, trsv_lower, trsv_lower_t,
)

from adiabat._core.gram import alone


cdef enum:
    FEW = 2          # right-hand sides solved one by one
    PANEL = 32       # columns made triangular together
    FLOPS = 24       # of a product, in the time in which one entry is read from memory
    ROTATED = 8      # rows up to which rotations, row by row, are the faster way out


cdef class Factor:
    """Cholesky factor of the shifted margin matrix, with the rows it stands for."""

    def __init__(self, double shift, double dependent, share=alone):
        """`share` is that of `Gram`: it calls a task on slices, on as many threads as there are."""
        self._share = share
        self.shift = shift
        self.dependent = dependent
        self.size = 0
        self.changes = 0
        self._capacity = 0
        self._rows = np.empty(0, dtype=np.int64)
        self._lower = np.zeros((0, 0))
        self._z = np.empty(0)
        self._reached = 0
        self.least_pivot = 0.0

    @property
    def rows(self):
        """The MARGIN rows, in the factor's order (a view: copy before changing the factor)."""
        return self._rows[: self.size]

    def lower(self):
        """L as a plain matrix."""
        return np.tril(self._lower[: self.size, : self.size].T)

    def relabel(self, new_index):
        """Follow a renumbering of the rows."""
        self._rows[: self.size] = new_index[self._rows[: self.size]]

    cdef int _reserve(self, Py_ssize_t size) except -1:
        cdef double[:, ::1] lower
        cdef double[::1] z
        cdef long long[::1] members
        if size <= self._capacity:
            return 0
        capacity = max(size, self._capacity + self._capacity // 2, 32)
        grown = np.zeros((capacity, capacity))
        grown[: self.size, : self.size] = self._lower[: self.size, : self.size]
        rows = np.zeros(capacity, dtype=np.int64)
        rows[: self.size] = self._rows[: self.size]
        zs = np.zeros(capacity)
        zs[: self.size] = self._z[: self.size]
        self._lower, self._rows, self._z = grown, rows, zs
        self._capacity = capacity
        lower, z, members = grown, zs, rows
        self._L = &lower[0, 0]
        self._zp = &z[0]
        self._members = &members[0]
        return 0

    cdef void _resize(self, Py_ssize_t size) noexcept nogil:
        self.size = size
        if size > self._reached:
            self._reached = size

    def tidy(self):
        """Overwrite what is left of rows that are gone."""
        self._lower[:, self.size: self._reached] = 0.0
        self._lower[self.size: self._reached] = 0.0
        self._z[self.size: self._reached] = 0.0
        self._scratch_w = self._scratch_s = None
        self._reached = self.size

    def prepare(self, double[:, ::1] cross, double[:, ::1] own):
        """Schur complement of k further rows on the margin, kept for `admit`.

        cross[j, m] = K[row_j, margin_m], own = K[rows, rows]. Returns (S, p) with
        S = own + c 11' - W'W and p = z'W - 1', W = L^-1 (cross + c)'. The curvature of the
        objective when row j moves and the margin answers is S + p'p / z'z (CP01 (12)).
        """
        cdef Py_ssize_t k = own.shape[0]
        cdef Py_ssize_t s = self.size
        cdef double[:, ::1] W, S
        cdef double[::1] p
        work = np.add(cross, self.shift)
        schur = np.add(own, self.shift)
        gap = np.full(k, -1.0)
        if s and k:
            W, S, p = work, schur, gap
            self._substitute(W)
            with nogil:
                # S = own + c - W'W
                gemm(True, False, k, k, s, -1.0, &W[0, 0], s, &W[0, 0], s, 1.0, &S[0, 0], k)
                for j in range(k):
                    p[j] += dot(s, self._zp, &W[j, 0])
        self._scratch_w, self._scratch_s = work, schur
        return schur, gap

    def _substitute(self, double[:, ::1] W):
        """W[j] = L^-1 W[j] for every row; a few are faster one by one, many are shared out."""
        cdef Py_ssize_t j, k = W.shape[0], s = self.size

        def solve(part):
            cdef Py_ssize_t start = part.start, stop = part.stop
            with nogil:
                trsm_lower(s, stop - start, self._L, self._capacity, &W[start, 0], s)

        if k > FEW:
            self._share(solve, k, s * s * k // FLOPS)
            return
        with nogil:
            for j in range(k):
                trsv_lower(s, self._L, self._capacity, &W[j, 0])

    def admit(self, chosen, rows):
        """Let rows[i], the chosen[i]-th of the last `prepare`, join; returns which did (bool).

        Independent rows join together, by one factorisation. If some depend on the margin or on
        each other, pivots go in order of their size relative to the diagonal, and what falls below
        `dependent` stays out.
        """
        cdef Py_ssize_t k = len(chosen)
        cdef Py_ssize_t s = self.size
        cdef Py_ssize_t i, j, taken = k
        cdef double value
        self.least_pivot = 0.0
        if k == 0:
            return np.zeros(0, dtype=bool)
        chosen = np.asarray(chosen, dtype=np.int64)
        self._reserve(s + k)
        schur = self._scratch_s.take(chosen, 0).take(chosen, 1)
        corner = schur.copy()
        cdef double[:, ::1] S = schur
        cdef double[:, ::1] C = corner
        cdef double[:, ::1] W = self._scratch_w
        cdef long long[::1] pick = chosen
        cdef double[::1] scale = np.empty(k)
        cdef bint sound
        with nogil:
            for i in range(k):
                # the diagonal of K + c
                scale[i] = S[i, i] + dot(s, &W[pick[i], 0], &W[pick[i], 0]) if s else S[i, i]
            sound = potrf(k, &C[0, 0], k) == 0
            for i in range(k):
                sound = sound and C[i, i] * C[i, i] > self.dependent * scale[i]
        order = np.arange(k)
        if not sound:
            order = self._pivot(S, scale, C)
            taken = len(order)
        cdef long long[::1] place = order
        cdef Py_ssize_t cap = self._capacity
        with nogil:
            # the new rows of L: [W', corner]
            for j in range(s):
                for i in range(taken):
                    self._L[j * cap + s + i] = W[pick[place[i]], j]
            for j in range(taken):
                for i in range(j, taken):
                    self._L[(s + j) * cap + s + i] = C[j, i]
            # z = L^-1 1
            for i in range(taken):
                value = dot(s, &W[pick[place[i]], 0], self._zp) if s else 0.0
                self._zp[s + i] = 1.0 - value
            trsv_lower(taken, self._L + s * cap + s, cap, self._zp + s)
        self._rows[s: s + taken] = np.asarray(rows, dtype=np.int64)[order]
        self._resize(s + taken)
        self.changes += taken
        joined = np.zeros(k, dtype=bool)
        joined[order] = True
        return joined

    def _pivot(self, double[:, ::1] S, double[::1] scale, double[:, ::1] C):
        """Pivoted Cholesky of S until pivots fall below `dependent`; returns the rows taken.

        On return C[a, b], b >= a, is entry (b, a) of the factor over the rows taken, in order.
        """
        cdef Py_ssize_t k = S.shape[0], i, a, best, taken = 0
        cdef double pivot, ratio, best_ratio
        cdef unsigned char[::1] done = np.zeros(k, dtype=np.uint8)
        cdef double[:, ::1] column = np.zeros((k, k))     # column[a, i]: entry (i, a)
        taken_rows = np.empty(k, dtype=np.int64)
        cdef long long[::1] order = taken_rows
        with nogil:
            while taken < k:
                best = -1
                best_ratio = self.dependent
                for i in range(k):
                    if not done[i] and scale[i] > 0.0 and S[i, i] > best_ratio * scale[i]:
                        best_ratio = S[i, i] / scale[i]
                        best = i
                if best < 0:
                    break
                done[best] = 1
                pivot = sqrt(S[best, best])
                for i in range(k):
                    column[taken, i] = 0.0 if done[i] else S[i, best] / pivot
                column[taken, best] = pivot
                for i in range(k):
                    if not done[i]:
                        axpy(k, -column[taken, i], &column[taken, 0], &S[i, 0])
                order[taken] = best
                taken += 1
            for i in range(k):
                ratio = S[i, i] / scale[i] if scale[i] > 0.0 else 0.0
                if not done[i] and ratio < self.least_pivot:
                    self.least_pivot = ratio
            for a in range(taken):
                for i in range(a, taken):
                    C[a, i] = column[a, order[i]]
        return taken_rows[:taken]

    cdef bint push(self, long long row, double* cross, double own) noexcept nogil:
        """Let one row join, if it is independent: `prepare` and `admit` in one.

        cross[m] = K[row, margin_m] is overwritten; there must be room.
        """
        cdef Py_ssize_t j, s = self.size, cap = self._capacity
        cdef double pivot
        for j in range(s):
            cross[j] += self.shift
        trsv_lower(s, self._L, cap, cross)
        pivot = own + self.shift - dot(s, cross, cross)
        if pivot <= self.dependent * (own + self.shift):
            return False
        pivot = sqrt(pivot)
        for j in range(s):
            self._L[j * cap + s] = cross[j]
        self._L[s * cap + s] = pivot
        self._zp[s] = (1.0 - dot(s, cross, self._zp)) / pivot
        self._members[s] = row
        self._resize(s + 1)
        self.changes += 1
        return True

    def drop(self, Py_ssize_t position):
        """Let the row at a position of the factor leave, by Givens rotations."""
        with nogil:
            self.drop_at(position)

    cdef void drop_at(self, Py_ssize_t position) noexcept nogil:
        cdef Py_ssize_t j, k, s = self.size, cap = self._capacity
        cdef double cos, sin
        cdef double* column
        # delete row `position` of L: columns 0..position keep their form
        for j in range(position + 1):
            column = self._L + j * cap
            for k in range(position, s - 1):
                column[k] = column[k + 1]
        for j in range(position + 1, s):
            column = self._L + j * cap
            for k in range(j - 1, s - 1):
                column[k] = column[k + 1]
        # columns position.. now have one entry above the diagonal: rotate it away
        for j in range(position, s - 1):
            rotg(&self._L[j * cap + j], &self._L[(j + 1) * cap + j], &cos, &sin)
            self._L[(j + 1) * cap + j] = 0.0
            rot(s - 2 - j, &self._L[j * cap + j + 1], &self._L[(j + 1) * cap + j + 1], cos, sin)
            rot(1, &self._zp[j], &self._zp[j + 1], cos, sin)
            if self._L[j * cap + j] < 0.0:
                for k in range(j, s - 1):
                    self._L[j * cap + k] = -self._L[j * cap + k]
                self._zp[j] = -self._zp[j]
        for k in range(position, s - 1):
            self._members[k] = self._members[k + 1]
        self._resize(s - 1)
        self.changes += 1

    def drop_many(self, positions):
        """Let the rows at positions (ascending) of the factor leave: many by reflections in panels.

        Of the rows that stay, L has the columns of those that stay, L_a, and of those that go, W:
        L_a L_a' + W W' is their matrix, and [L_a, W] Q = [L_new, 0] is what is wanted. z' is one
        more row of it, since [L_a, W] z = 1.
        """
        cdef const long long[::1] gone = np.ascontiguousarray(positions, dtype=np.int64)
        cdef Py_ssize_t k = gone.shape[0], s = self.size - k, cap = self._capacity
        cdef Py_ssize_t i, j, p, width, active, below, first
        if k <= ROTATED:
            for j in range(k):
                self.drop_at(gone[k - 1 - j])
            return
        stays = np.ones(self.size, dtype=bool)
        stays[positions] = False
        self._rows[:s] = self._rows[: self.size][stays]
        cdef const long long[::1] stay = stays.nonzero()[0]
        cdef double[:, ::1] W = np.empty((k, s + 1))           # W[j, i]: row i, column j
        cdef double[::1, :] V = np.empty((k, PANEL), order="F")
        cdef double[::1, :] R = np.zeros((PANEL, PANEL), order="F")
        cdef double[::1, :] T = np.empty((PANEL, PANEL), order="F")
        cdef double[::1] work = np.empty(PANEL * (s + PANEL + 1))
        cdef double* L = self._L
        with nogil:
            for j in range(k):
                for i in range(s):
                    W[j, i] = L[gone[j] * cap + stay[i]] if stay[i] > gone[j] else 0.0
                W[j, s] = self._zp[gone[j]]
            for j in range(s):
                for i in range(j, s):
                    L[j * cap + i] = L[stay[j] * cap + stay[i]]
                L[j * cap + s] = self._zp[stay[j]]
            p = first = gone[0]
            active = 0
            while p < s:
                width = PANEL if p + PANEL < s else s - p
                while active < k and gone[active] < stay[p + width - 1]:
                    active += 1
                # the triangle and what is beside it, transposed: [R; V] = Q [R_new; 0]
                for j in range(width):
                    for i in range(j, width):
                        R[j, i] = L[(p + j) * cap + p + i]
                    for i in range(active):
                        V[i, j] = W[i, p + j]
                tpqrt(active, width, &R[0, 0], PANEL, &V[0, 0], k, &T[0, 0], &work[0])
                below = s + 1 - (p + width)
                tpmqrt(below, active, width, &V[0, 0], k, &T[0, 0], &L[p * cap + p + width], cap,
                       &W[0, p + width], s + 1, &work[0])
                for j in range(width):
                    for i in range(j, width):
                        L[(p + j) * cap + p + i] = R[j, i]
                p += width
            for j in range(first, s):
                if L[j * cap + j] < 0.0:
                    for i in range(j, s + 1):
                        L[j * cap + i] = -L[j * cap + i]
            for j in range(s):
                self._zp[j] = L[j * cap + s]
                L[j * cap + s] = 0.0
        self._resize(s)
        self.changes += k

    def copy_from(self, Factor other):
        """Become the same as another factor."""
        cdef Py_ssize_t j, s = other.size
        self.shift, self.dependent, self.changes = other.shift, other.dependent, other.changes
        self._reserve(s)
        with nogil:
            for j in range(s):
                memcpy(self._L + j * self._capacity + j, other._L + j * other._capacity + j,
                       (s - j) * sizeof(double))
            memcpy(self._zp, other._zp, s * sizeof(double))
            memcpy(self._members, other._members, s * sizeof(long long))
        self._resize(s)

    def rebuild(self, double[:, ::1] K, rows):
        """Factor K = K_MM over rows afresh; returns which rows joined (all, if independent)."""
        cdef Py_ssize_t s = len(rows), i, j
        cdef double least
        cdef int info
        cdef bint sound = True
        self._reserve(s)
        self.size = 0
        self.changes = 0
        if s == 0:
            return np.zeros(0, dtype=bool)
        cdef Py_ssize_t cap = self._capacity
        with nogil:
            for j in range(s):
                for i in range(j, s):
                    self._L[j * cap + i] = K[j, i] + self.shift
            info = potrf(s, self._L, cap)
            if info == 0:
                for j in range(s):
                    least = self._L[j * cap + j]
                    if least * least <= self.dependent * (K[j, j] + self.shift):
                        sound = False
                for j in range(s):
                    self._zp[j] = 1.0
                trsv_lower(s, self._L, cap, self._zp)
        if info == 0 and sound:
            self._rows[:s] = rows
            self._resize(s)
            return np.ones(s, dtype=bool)
        self.prepare(np.empty((s, 0)), np.asarray(K))
        joined = self.admit(np.arange(s), rows)
        self.changes = 0
        return joined

    def solve(self, q, double s):
        """(du, db) with K_MM du + db 1 = q and 1'du = s."""
        cdef double db
        du = np.array(q, dtype=np.float64)
        cdef double[::1] w = du
        with nogil:
            db = self.solve_in_place(&w[0], s)
        return du, db

    cdef double solve_in_place(self, double* w, double s) noexcept nogil:
        """The same, du in place of q; returns db."""
        cdef Py_ssize_t n = self.size, first = 0
        cdef double db
        # forward substitution leaves leading zeros as they are: rows that joined last have the
        # only residuals of many a round
        while first < n and w[first] == 0.0:
            first += 1
        trsv_lower(n - first, self._L + first * (self._capacity + 1), self._capacity, w + first)
        db = (dot(n, self._zp, w) - s) / dot(n, self._zp, self._zp)
        axpy(n, -db, self._zp, w)
        trsv_lower_t(n, self._L, self._capacity, w)
        return db + self.shift * s

    def border(self):
        """z'z, the weight of the border in the curvature."""
        return dot(self.size, self._zp, self._zp)
