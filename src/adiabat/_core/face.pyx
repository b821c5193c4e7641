# SPDX-License-Identifier: BSD-3-Clause
"""Steps on the face: rows between their bounds, moved together.

Steps by pairs converge slowly where rows nearly depend on each other and bounds are wide. On the
rows F between their ends (bounds, or the kink) the optimum that keeps the sum is one linear system,

    K_FF du + db 1 = -r_F,    1'du = 0.

u goes there until the first row meets an end. This row leaves F, and so on, until the optimum on
what is left of F is reached: the objective falls at each step (a primal active set method). Rows
that depend on the others stay where they are.
"""

import numpy as np

from adiabat._core.factor cimport Factor
from adiabat._core.simd cimport pair_descent, simd

# A row whose pivot is below this part of the typical diagonal depends on the others.
cdef double DEPENDENT = 1e-9
# An end is reached within this part of the way between the two.
cdef double AT_END = 1e-14

cdef enum:
    PRODUCTS = 32    # of the factor for one entry of a pair's step, which takes as long
    ADDED = 4        # entries of columns that are added
    FIXED = 20_000   # entries' time, whatever the face
    SOLVED = 2       # for each entry of the factor, in one solve and one removal


cdef double face_work(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    """What m rows take until the first of them meets an end, in entries of steps of n rows."""
    cdef double s = m
    return FIXED + s * s * s / PRODUCTS + SOLVED * s * s + s * n / ADDED


cdef class Face:
    """Rows between their ends, and the factor over them."""

    def __init__(self):
        self._factor = Factor(1.0, DEPENDENT)

    cdef double descend(self, pair_descent* p, const long long[::1] rows, double work) except -1:
        """Move rows, all of which have kernel values; returns the work done, in entries.

        `work` is what it should take at most.
        """
        cdef Py_ssize_t i, j, m = rows.shape[0]
        cdef const double* values
        cdef double spent, typical
        kernel, room = np.empty((m, m)), np.empty((5, m))
        cdef double[:, ::1] K = kernel, at = room
        with nogil:
            for i in range(m):
                values = p.row[rows[i]]
                for j in range(m):
                    K[i, j] = values[rows[j]]
        typical = float(np.median(kernel.diagonal()))
        self._factor.rebuild(kernel, np.arange(m), typical if typical > 0.0 else 1.0)
        with nogil:
            for i in range(m):
                j = rows[i]
                at[0, i], at[1, i] = p.rise[j], p.u[j]
                at[2, i] = p.kink[j] if p.u[j] > p.kink[j] else p.lo[j]
                at[3, i] = p.kink[j] if p.u[j] < p.kink[j] else p.hi[j]
            spent = face_work(p.n, m)
            spent += self._approach(m, &at[0, 0], &at[1, 0], &at[2, 0], &at[3, 0], &at[4, 0],
                                    work - spent)
            simd.pairs_move_together(p, &rows[0], &at[1, 0], m)
        return spent

    cdef double _approach(self, Py_ssize_t m, double* g, double* u, const double* low,
                          const double* high, double* w, double left) noexcept nogil:
        """Steps to the optimum on the face, or as many as fit; returns what they took."""
        cdef Py_ssize_t i, j, hit, s
        cdef double db, part, room, spent = 0.0
        cdef bint up
        cdef long long* members = self._factor._members
        while self._factor.size > 1:
            s = self._factor.size
            for i in range(s):
                w[i] = -g[members[i]]
            db = self._factor.solve_in_place(w, 0.0)
            part, hit, up = 1.0, -1, False
            for i in range(s):
                j = members[i]
                room = high[j] - u[j] if w[i] > 0.0 else u[j] - low[j]
                if room < part * (w[i] if w[i] > 0.0 else -w[i]):
                    part, hit, up = room / (w[i] if w[i] > 0.0 else -w[i]), i, w[i] > 0.0
            for i in range(s):
                j = members[i]
                u[j] += part * w[i]
                g[j] += part * (-g[j] - db)
            if hit < 0:
                break
            u[members[hit]] = high[members[hit]] if up else low[members[hit]]
            for i in range(s - 1, -1, -1):
                j = members[i]
                room = AT_END * (high[j] - low[j])
                if i == hit or u[j] <= low[j] + room or u[j] >= high[j] - room:
                    u[j] = high[j] if high[j] - u[j] < u[j] - low[j] else low[j]
                    self._factor.drop_at(i)
            spent += SOLVED * s * s
            if spent > left:
                break
        return spent
