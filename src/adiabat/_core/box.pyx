# SPDX-License-Identifier: BSD-3-Clause
"""The violators' own small problem.

    minimise  1/2 d'Hd + g'd    subject to   lo <= d <= hi   [, sum d = 0]

Without the equality (a margin answers for it): cyclic coordinate descent. With it (no margin yet):
the most violating pair with second-order choice of the partner, as SMO does. Both stop at a
modest accuracy: the answer only decides who goes to a bound and who joins the margin, and the
margin system makes it exact.
"""

from libc.math cimport fabs

import numpy as np

from adiabat._core.simd cimport pair_descent, PAIRS_BLOCK, PAIRS_DONE, PAIRS_LIMIT, simd

DONE, LIMIT = PAIRS_DONE, PAIRS_LIMIT


def coordinate_descent(
    double[:, ::1] H, double[::1] g, double[::1] lo, double[::1] hi, Py_ssize_t sweeps,
    const double[::1] flat,
):
    """d after at most `sweeps` sweeps; a curvature below `flat` of its row counts as none.

    On return g is the gradient at d.
    """
    cdef Py_ssize_t k = g.shape[0], i, j, sweep
    cdef double step, target, largest, first = 0.0
    out = np.zeros(k)
    cdef double[::1] d = out
    with nogil:
        for sweep in range(sweeps):
            largest = 0.0
            for i in range(k):
                if H[i, i] > flat[i]:
                    target = d[i] - g[i] / H[i, i]
                elif g[i] > 0:
                    target = lo[i]
                elif g[i] < 0:
                    target = hi[i]
                else:
                    target = d[i]
                if target < lo[i]:
                    target = lo[i]
                if target > hi[i]:
                    target = hi[i]
                step = target - d[i]
                if step != 0.0:
                    d[i] = target
                    for j in range(k):
                        g[j] += H[i, j] * step
                    if fabs(step * g[i]) + H[i, i] * step * step > largest:
                        largest = fabs(step * g[i]) + H[i, i] * step * step
            if sweep == 0:
                first = largest
            if largest <= 1e-10 * first:
                break
    return out


cdef class Pairs:
    """Descent by pairs on some rows, whose kernel values are given as they are wanted.

        while (row := pairs.descend(tolerance, steps)) >= 0:
            pairs.give([row], values)

    It ends with DONE, or with LIMIT where the steps did not suffice.
    """

    cdef readonly object u, rise, fall      # padded
    cdef readonly Py_ssize_t n
    cdef object _arrays, _values
    cdef size_t[::1] _row
    cdef pair_descent _state

    def __init__(self, r, u, lo, hi, diagonal, double flat):
        """A curvature below `flat` of the diagonal of a pair counts as none."""
        self.n = len(r)
        cdef Py_ssize_t padded = self.padded
        arrays = np.zeros((7, padded))
        arrays[0, : self.n], arrays[1, : self.n] = u, lo
        arrays[2, : self.n], arrays[3, : self.n] = hi, diagonal
        arrays[4, : self.n] = np.where(u < hi, r, np.inf)
        arrays[5, : self.n] = np.where(u > lo, r, -np.inf)
        arrays[4, self.n :], arrays[5, self.n :] = np.inf, -np.inf
        self._arrays = arrays
        self.u, self.rise, self.fall = arrays[0], arrays[4], arrays[5]
        self._values = [None] * self.n
        self._row = np.zeros(padded, dtype=np.uintp)
        cdef double[:, ::1] at = arrays
        self._state.n = padded
        self._state.row = <const double**> &self._row[0]
        self._state.u, self._state.lo, self._state.hi = &at[0, 0], &at[1, 0], &at[2, 0]
        self._state.diagonal = &at[3, 0]
        self._state.rise, self._state.fall, self._state.best = &at[4, 0], &at[5, 0], &at[6, 0]
        self._state.flat = flat

    @property
    def padded(self):
        """How long rows of kernel values must be; beyond n they may be anything finite."""
        return max(1, (self.n + PAIRS_BLOCK - 1) // PAIRS_BLOCK) * PAIRS_BLOCK

    @property
    def span(self):
        """By how much two rows differed at last."""
        return self._state.span

    def give(self, rows, double[:, ::1] values):
        """The kernel values of rows with all of them, in memory that stays."""
        cdef Py_ssize_t k
        for k in range(len(rows)):
            self._values[rows[k]] = values
            self._row[rows[k]] = <size_t> &values[k, 0]

    def candidates(self, Py_ssize_t wanted, Py_ssize_t most):
        """A row, and up to twice `most` that will be wanted next: the first of their blocks."""
        rise, fall = self.rise.reshape(-1, PAIRS_BLOCK), self.fall.reshape(-1, PAIRS_BLOCK)
        blocks = np.arange(len(rise)) * PAIRS_BLOCK
        risers, fallers = blocks + rise.argmin(axis=1), blocks + fall.argmax(axis=1)
        risers = risers[np.argsort(self.rise[risers])[:most]]
        fallers = fallers[np.argsort(-self.fall[fallers])[:most]]
        risers = risers[self.rise[risers] + self._state.tolerance < self.fall[fallers[0]]]
        fallers = fallers[self.fall[fallers] - self._state.tolerance > self.rise[risers[0]]]
        rows = np.unique(np.concatenate([[wanted], risers, fallers]))
        return rows[np.asarray(self._row)[rows] == 0]

    def descend(self, double tolerance, Py_ssize_t steps):
        """Steps until no two rows differ by more than the tolerance; a row wanted, or an end."""
        self._state.tolerance, self._state.steps = tolerance, steps
        cdef Py_ssize_t wanted
        with nogil:
            wanted = simd.pairs_descend(&self._state)
        return wanted, self._state.steps


def pairwise_descent(H, g, lo, hi, Py_ssize_t steps, double flat, double tolerance):
    """d with sum d = 0 after at most `steps` pair moves.

    A curvature below `flat` of the diagonal of a pair counts as none.
    """
    pairs = Pairs(g, np.zeros(len(g)), lo, hi, H.diagonal(), flat)
    values = np.zeros((pairs.n, pairs.padded))
    values[:, : pairs.n] = H
    pairs.give(np.arange(pairs.n), values)
    pairs.descend(tolerance, steps)
    return pairs.u[: pairs.n].copy()
