# SPDX-License-Identifier: BSD-3-Clause
"""The margin system and its factor.

Over the MARGIN rows, in the order in which they joined,

    L L' = K_MM + c 11',      z = L^-1 1,

and the bordered system [[0, 1'], [1, K_MM]] of CP01 (5), (7) is solved through them:

    w = L^-1 q,   db~ = (z'w - s) / z'z,   du = L^-T (w - db~ z),   db = db~ + c s

solves  K_MM du + db 1 = q,  1'du = s.  The shift c changes nothing, as 1'du is known, but makes
the matrix definite exactly where the bordered one is regular: with a linear kernel in d features
the margin may hold d + 1 rows and K_MM itself is then singular.

A row joins by a forward solve, a block by several and POTRF; rows leave by reflections, up to
eight in one pass (`downdate.h`). Their places stay vacant, with rows of the identity, until many
are. A row whose pivot is below `dependent` of its diagonal is refused.

Invariant: after every public call ||L L' - (K_MM + c 11')|| is of rounding size.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

import numpy as np

from adiabat._core.blas cimport axpy, dot, potrf, trsv_lower
from adiabat._core.corner cimport Corner, factor_corner
from adiabat._core.triangle cimport (
    aligned, backward, compact, forward, Newcomers, project, project_room, removal_room,
    removal_traces, remove, spread, transpose,
)

from adiabat._core.aligned import aligned_zeros

cdef enum:
    VACANT = 16     # the part of the places that may be vacant
    PASSES = 3      # passes over all rows saved that are worth compacting

# The part of a usual row's weight in z'z, below which rows do not hold b.
cdef double WEAK = 1e-8


cdef class Factor:
    """Cholesky factor of the shifted margin matrix, with the rows it stands for."""

    def __dealloc__(self):
        self._free_room()

    cdef void _free_room(self) noexcept:
        """Give back what the last `prepare` filled."""
        free(self._W)
        free(self._S)
        self._W = self._S = self._p = NULL
        self._k = self._room_w = self._room_s = 0

    def __init__(self, double shift, double dependent):
        self.shift = self.usual = shift
        self.dependent = dependent
        self.size = self.changes = self._extent = self._idle = self._capacity = self._reached = 0
        self._rows = self._places = np.empty(0, dtype=np.int64)
        self._lower = np.zeros((0, 0))
        self._z = self._x = self._room = np.empty(0)
        self.least_pivot = 0.0

    @property
    def rows(self):
        """The MARGIN rows, in the factor's order (a view: copy before changing the factor)."""
        return self._rows[: self.size]

    def lower(self):
        """L as a plain matrix, over the rows that are there."""
        places = self._places[: self.size]
        return np.tril(self._lower.T[np.ix_(places, places)])

    cdef int _reserve(self, Py_ssize_t more) except -1:
        """Places for so many more rows."""
        cdef double[:, ::1] lower
        cdef double[::1] z, x, room
        cdef long long[::1] members, places
        cdef Py_ssize_t n
        if self._extent + more <= self._capacity:
            return 0
        self._compact()
        n = self.size
        if n + more <= self._capacity:
            return 0
        capacity = aligned(max(n + more, self._capacity + self._capacity // 2, 32))
        self._lower = _grown(self._lower, (capacity, capacity), n)
        self._rows = _grown(self._rows, capacity, n)
        self._places = _grown(self._places, capacity, n)
        self._z, self._x = _grown(self._z, capacity, n), np.zeros(capacity)
        self._room = np.zeros(removal_room(capacity))
        self._capacity = capacity
        lower, z, x, room = self._lower, self._z, self._x, self._room
        members, places = self._rows, self._places
        self._L, self._zp, self._xp, self._roomp = &lower[0, 0], &z[0], &x[0], &room[0]
        self._members, self._place = &members[0], &places[0]
        return 0

    cdef void _compact(self) noexcept nogil:
        """Move the rows together, over the places of rows that are gone."""
        cdef Py_ssize_t j
        if self._extent == self.size:
            return
        compact(self._extent, self._L, self._capacity, self._zp, self._place, self.size,
                self._roomp)
        for j in range(self.size):
            self._place[j] = j
        self._extent, self._idle = self.size, 0

    cdef void _append(self, const long long* rows, const long long* order,
                      Py_ssize_t k) noexcept nogil:
        """Note that rows have joined, at the end."""
        cdef Py_ssize_t i
        for i in range(k):
            self._members[self.size + i] = rows[order[i]] if order != NULL else rows[i]
            self._place[self.size + i] = self._extent + i
        self.size += k
        self._extent += k
        if self._extent > self._reached:
            self._reached = self._extent

    def wipe_removed(self):
        """Overwrite what is left of rows that are gone."""
        cdef Py_ssize_t j, n = self._extent, more = self._reached - self._extent
        self._free_room()
        with nogil:
            for j in range(self._reached if more else 0):
                memset(self._L + j * self._capacity + n, 0, more * sizeof(double))
            if self._capacity:
                memset(self._zp + n, 0, more * sizeof(double))
                memset(self._xp, 0, self._capacity * sizeof(double))
                memset(self._roomp, 0, removal_traces(self._reached) * sizeof(double))
        self._reached = n

    def prepare(self, double[:, ::1] cross, double[:, ::1] own):
        """Schur complement of k further rows on the margin, kept for `admit`.

        cross[j, m] = K[row_j, margin_m], own = K[rows, rows]. Returns (S, p) with
        S = own + c 11' - W'W and p = z'W - 1', W = L^-1 (cross + c)'. The curvature of the
        objective when row j moves and the margin answers is S + p'p / z'z (CP01 (12)).
        """
        cdef Py_ssize_t k = own.shape[0]
        schur, gap = np.empty((k, k)), np.empty(k)
        cdef double[:, ::1] S = schur
        cdef double[::1] p = gap
        self._prepare(&cross[0, 0] if k and cross.shape[1] else NULL, &own[0, 0] if k else NULL, k)
        if k:
            memcpy(&S[0, 0], self._S, k * k * sizeof(double))
            memcpy(&p[0], self._p, k * sizeof(double))
        return schur, gap

    cdef int _prepare(self, const double* cross, const double* own, Py_ssize_t k) except -1:
        """The same of k rows whose kernel values follow each other."""
        cdef Py_ssize_t i, n
        cdef Newcomers them
        self._reserve(k)
        n = self._extent
        self._idle += n - self.size
        self._make_room(project_room(k) * n, k)
        self._k = k
        for i in range(k * k):
            self._S[i] = own[i] + self.shift
        for i in range(k):
            self._p[i] = -1.0
        if n and k:
            them.L, them.z, them.cross, them.place = self._L, self._zp, cross, self._place
            them.n, them.cap, them.size, them.k = n, self._capacity, self.size, k
            them.shift, them.W, them.p, them.S = self.shift, self._W, self._p, self._S
            with nogil:
                project(&them)
        return 0

    cdef int _make_room(self, Py_ssize_t for_w, Py_ssize_t k) except -1:
        """Room for so many numbers of W, and for S and p of k rows; what was there may be lost."""
        if for_w > self._room_w:
            self._W = larger(self._W, for_w)
            self._room_w = for_w
        if k * (k + 1) > self._room_s:
            self._S = larger(self._S, k * (k + 1))
            self._room_s = k * (k + 1)
        self._p = self._S + k * k
        return 0

    def admit(self, chosen, rows):
        """Let rows[i], the chosen[i]-th of the last `prepare`, join; returns which did (bool).

        Those that depend on the margin or on each other stay out (`corner`).
        """
        cdef const long long[::1] pick = np.ascontiguousarray(chosen, dtype=np.int64)
        cdef const long long[::1] labels = np.ascontiguousarray(rows, dtype=np.int64)
        joined = np.zeros(pick.shape[0], dtype=bool)
        cdef unsigned char[::1] did = joined.view(np.uint8)
        if pick.shape[0] != labels.shape[0]:
            raise ValueError("rows do not fit")
        if pick.shape[0]:
            self._admit(&pick[0], &labels[0], pick.shape[0], &did[0])
        else:
            self.least_pivot = 0.0
        return joined

    cdef Py_ssize_t _admit(self, const long long* chosen, const long long* rows, Py_ssize_t k,
                           unsigned char* joined) except -1:
        """The same; notes which of them did, and returns how many."""
        cdef Py_ssize_t i, j, n = self._extent, taken
        cdef const double* w
        cdef Corner c
        self.least_pivot = 0.0
        if k == 0:
            return 0
        cdef void* room = malloc((3 * k * k + k) * sizeof(double) + k * (sizeof(long long) + 1))
        if room == NULL:
            raise MemoryError()
        c.k, c.dependent, c.S = k, self.dependent, <double*> room
        c.C, c.columns, c.scale = c.S + k * k, c.S + 2 * k * k, c.S + 3 * k * k
        c.order = <long long*> (c.scale + k)
        c.done = <unsigned char*> (c.order + k)
        with nogil:
            for i in range(k):
                w = self._W + chosen[i] * n
                for j in range(k):
                    c.S[i * k + j] = self._S[chosen[i] * self._k + chosen[j]]
                c.scale[i] = c.S[i * k + i] + (dot(n, w, w) if n else 0.0)
                joined[i] = False
            taken = factor_corner(&c)
            for i in range(taken):
                joined[c.order[i]] = True
            if taken:
                self._extend(chosen, rows, c.order, taken, c.C, k)
        self.least_pivot = c.least_pivot
        free(room)
        self.changes += taken
        return taken

    cdef void _extend(self, const long long* chosen, const long long* rows, long long* order,
                      Py_ssize_t taken, const double* C, Py_ssize_t k) noexcept nogil:
        """The new rows of L: [W', corner]. `order` ends as the numbers of their rows of W."""
        cdef Py_ssize_t i, j, n = self._extent, cap = self._capacity
        self._append(rows, order, taken)
        for i in range(taken):
            order[i] = chosen[order[i]]
        if n:
            transpose(n, self._W, order, taken, self._L + n, cap)
        for j in range(taken):
            for i in range(j, taken):
                self._L[(n + j) * cap + n + i] = C[j * k + i]
        # z = L^-1 1
        for i in range(taken):
            self._zp[n + i] = 1.0 - (dot(n, self._W + order[i] * n, self._zp) if n else 0.0)
        trsv_lower(taken, self._L + n * cap + n, cap, self._zp + n)

    cdef bint push(self, long long row, const double* cross, double own) noexcept nogil:
        """Let one row join, if it is independent: `prepare` and `admit` in one.

        cross[m] = K[row, margin_m]; there must be room.
        """
        cdef Py_ssize_t j, n = self._extent, cap = self._capacity
        cdef double pivot
        cdef double* x = self._xp
        spread(n, self._place, self.size, cross, self.shift, x)
        forward(n, self._L, cap, x, 1, n)
        pivot = own + self.shift - dot(n, x, x)
        if pivot <= self.dependent * (own + self.shift):
            return False
        pivot = sqrt(pivot)
        for j in range(n):
            self._L[j * cap + n] = x[j]
        self._L[n * cap + n] = pivot
        self._zp[n] = (1.0 - dot(n, x, self._zp)) / pivot
        self._append(&row, NULL, 1)
        self.changes += 1
        return True

    def drop(self, Py_ssize_t position):
        """Let the row at a position among `rows` leave."""
        with nogil:
            self.drop_at(position)

    cdef void drop_at(self, Py_ssize_t position) noexcept nogil:
        cdef long long gone = position
        self._drop(&gone, 1)

    def drop_many(self, positions):
        """Let the rows at positions (ascending) among `rows` leave.

        Of the rows that stay, L has the columns of those that stay and, W, of those that go:
        [L, W] Q = [L_new, 0] is wanted. z' is one more row of it, since [L, W] z = 1.
        """
        positions = np.array(positions, dtype=np.int64)
        cdef long long[::1] gone = positions
        if gone.shape[0]:
            with nogil:
                self._drop(&gone[0], gone.shape[0])

    cdef void _drop(self, long long* gone, Py_ssize_t k) noexcept nogil:
        """Positions (ascending) among `rows` leave; `gone` is overwritten."""
        cdef Py_ssize_t i, c, between
        for c in range(k):
            i = gone[c]
            gone[c] = self._place[i]
            between = (gone[c + 1] if c + 1 < k else self.size) - i - 1
            memmove(self._members + i - c, self._members + i + 1, between * sizeof(long long))
            memmove(self._place + i - c, self._place + i + 1, between * sizeof(long long))
        remove(self._extent, self._L, self._capacity, self._zp, gone, k, self._roomp)
        self.size -= k
        self.changes += k
        self._idle += self._extent - self.size
        if self._extent - self.size > self._extent // VACANT or self._idle > PASSES * self.size:
            self._compact()

    def copy_from(self, Factor other):
        """Become the same as another factor."""
        cdef Py_ssize_t j, n = other._extent
        self.shift, self.dependent, self.changes = other.shift, other.dependent, other.changes
        self.usual = other.usual
        self.size = self._extent = 0
        self._reserve(n)
        with nogil:
            for j in range(n):
                memcpy(self._L + j * self._capacity + j, other._L + j * other._capacity + j,
                       (n - j) * sizeof(double))
            memcpy(self._zp, other._zp, n * sizeof(double))
            memcpy(self._members, other._members, other.size * sizeof(long long))
            memcpy(self._place, other._place, other.size * sizeof(long long))
        self.size, self._extent = other.size, n
        self._reached = max(self._reached, n)

    def rebuild(self, double[:, ::1] K, rows, shift=None, usual=None):
        """Factor K = K_MM over rows afresh; returns which rows joined (all, if independent).

        The shift may be another from now on. `usual` is a typical k(x, x), by default the shift.
        """
        cdef Py_ssize_t s = len(rows), i, j
        cdef double least
        cdef int info
        cdef bint sound = True
        cdef const long long[::1] labels = np.array(rows, dtype=np.int64)
        self.size = self._extent = 0
        self.changes = 0
        if shift is not None:
            self.shift = shift
            self.usual = shift if usual is None else usual
        self._reserve(s)
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
            self._append(&labels[0], NULL, s)
            return np.ones(s, dtype=bool)
        self._prepare(NULL, &K[0, 0], s)
        joined = self.admit(np.arange(s), labels)
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
        cdef Py_ssize_t i, n = self._extent
        cdef double db
        cdef double* x = self._xp
        self._idle += n - self.size
        spread(n, self._place, self.size, w, 0.0, x)
        forward(n, self._L, self._capacity, x, 1, n)
        db = (dot(n, self._zp, x) - s) / dot(n, self._zp, self._zp)
        axpy(n, -db, self._zp, x)
        backward(n, self._L, self._capacity, x)
        for i in range(self.size):
            w[i] = x[self._place[i]]
        return db + self.shift * s

    cdef void solve_held(self, double* w) noexcept nogil:
        """(K_MM + c 11')^-1 q in place of q: what du is where b is held and sum du is next to 0."""
        cdef Py_ssize_t i, n = self._extent
        cdef double* x = self._xp
        self._idle += n - self.size
        spread(n, self._place, self.size, w, 0.0, x)
        forward(n, self._L, self._capacity, x, 1, n)
        backward(n, self._L, self._capacity, x)
        for i in range(self.size):
            w[i] = x[self._place[i]]

    def holds_b(self):
        """Whether b is determined by these rows: not if all are far outliers.

        r of an outlier is matched by the least of its weights. To match it by b would cost all
        other rows their digits.
        """
        return bool(self._holds_b())

    cdef bint _holds_b(self) noexcept nogil:
        return self.size > 0 and self._border() * self.usual >= WEAK

    def border(self):
        """z'z, the weight of the border in the curvature."""
        return self._border()

    cdef double _border(self) noexcept nogil:
        return dot(self._extent, self._zp, self._zp)

    def weakest(self):
        """The least squared pivot, in units of the shift: small where rows nearly depend."""
        cdef Py_ssize_t i, place
        cdef double least = INFINITY
        for i in range(self.size):
            place = self._place[i]
            least = min(least, self._L[place * self._capacity + place])
        return least * least / self.shift


cdef double* larger(double* room, Py_ssize_t n) except NULL:
    """Memory for n numbers in the place of other memory."""
    cdef void* grown = realloc(room, n * sizeof(double))
    if grown == NULL:
        raise MemoryError()
    return <double*> grown


def _grown(array, shape, n):
    """A larger array with the first n entries of an old one, in each direction."""
    out = aligned_zeros(shape, array.dtype)
    first = (slice(n),) * array.ndim
    out[first] = array[first]
    return out
