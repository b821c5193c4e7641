# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of one machine, prepared for motions by pivots: every sample left out in turn.

`_core.tableau` says what the tableau is. Its columns are made once and by products of whole
matrices: those of rows with weight at the start, others when a removal asks for them. With
K + c 11' in place of K, which alters nothing but b (docs/numerics.md), and L L' = K_SS,

    V = inv(L) K_SN,   T_NN = K_NN - V'V,   T_SN = -inv(L') V,   T_SS = inv(K_SS),

and then b, a pivot like any other.

Rows are ordered by how far they are from r = 0, in units of sqrt(k_ii + c), those of the margin
first. What is far takes no part in a removal, so that columns have only as many rows as removals
follow, the `width`; it grows where one needs more.

Pivots may lose digits, and a removal may meet what they cannot do: rows that depend on the margin,
no margin at all. So every result is checked (`engine.removals`).
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from adiabat._core.conditions import last_outside, optima
from adiabat._core.ratio import HIGH, LOW, MARGIN, PINNED
from adiabat._core.thread_pool import in_slices
from adiabat.engine.machine import DEPENDENT, Machine
from adiabat.engine.noise import AIM, EPSILON, ROUNDINGS
from adiabat.engine.trial import INSIDE
from adiabat.typing import BoolArray, FloatArray, IntArray

# Numbers in a tableau at most (512 MB, and as much for the kernel).
MOST_ENTRIES = 1 << 26
# For so many rows of the margin, one more of those nearest to r = 0 gets its column at the start;
# for removals, for so many rows with weight, and at least so many.
NEAREST = 4
LEAST_NEAREST = 16
# Pivots before a removal is given up.
MOST_PIVOTS = 64
# A violation to be content with, in units of the row's target, if `tol` allows it; `trial` and the
# solver reach less.
CONTENT = 1e-10


class Tableau:
    """The optimum of one machine, prepared for motions, which share it.

    Rows have places of their own here: those of the margin come first, then the nearest to r = 0.
    The first `width` of them are the rows of the columns.
    """

    def __init__(
        self, machine: Machine, role: npt.NDArray[np.uint8], tol: float, n_followed: int | None
    ) -> None:
        self.machine = machine
        self._samples = machine.samples.fork()
        self.shift = float(machine.factor.shift)
        self._scale = np.sqrt(self._samples.diagonal[machine.at] + self.shift)
        far = np.where(role == PINNED, np.inf, np.abs(machine.r) / self._scale)
        far[role == MARGIN] = -1.0
        self.rows = np.argsort(far, kind="stable")
        self.far = far[self.rows]
        self.place = np.empty(machine.n, dtype=np.int64)
        self.place[self.rows] = np.arange(machine.n)
        self.u, self.r, self.role = machine.u[self.rows], machine.r[self.rows], role[self.rows]
        self.lo, self.hi = machine.lo[self.rows], machine.hi[self.rows]
        content = min(CONTENT, AIM * tol) * machine.units()
        self.enough = np.maximum(machine.aims(tol), content)  # a violation, by row
        self._enough = self.enough[self.rows]
        self._room = INSIDE * (self.hi - self.lo)
        self._floor = np.where(self.role == LOW, -self._enough, -np.inf)
        self._ceiling = np.where(self.role == HIGH, self._enough, np.inf)
        self.at = machine.at[self.rows]
        self._lock = threading.Lock()
        n, self._s = machine.n, len(machine.margin)
        self.width = n if n_followed is None else min(n, self._s + n_followed)
        capacity = min(n, MOST_ENTRIES // n)
        self.kernel = np.empty((capacity, n))
        # columns of the tableau, one a row, b's the last; T_jj of the rows that have one
        self.columns, self.own = np.empty((capacity + 1, self.width + 1)), np.zeros(n)
        self.slot = np.full(n + 1, -1)
        self._filed = np.empty(capacity, dtype=np.int64)  # places by slot
        self._used = 0
        self._start(n_followed is None)

    @staticmethod
    def of(machine: Machine, tol: float, n_followed: int | None = None) -> Tableau | None:
        """The tableau of a machine at its optimum, or None where there is none.

        `n_followed`: so many rows outside the margin are followed to begin with, if not all.
        """
        role = _roles(machine)
        n_carrying = np.count_nonzero((machine.u != 0.0) | machine.in_margin)
        if role is None or n_carrying * machine.n > MOST_ENTRIES:
            return None
        return Tableau(machine, role, tol, n_followed)

    @property
    def least(self) -> FloatArray:
        """Pivots of rows below these are none."""
        own = self._samples.diagonal[self.at] + self.shift
        return np.asarray(DEPENDENT * np.minimum(own, 1.0 / own))

    # -- columns ---------------------------------------------------------------------------------

    def _start(self, few: bool) -> None:
        """Columns of b, the margin, all other rows with weight, and some (or a few) near by."""
        s, n = self._s, self.machine.n
        kernel = self._kernel_of(np.arange(s))
        self._lower = sl.cholesky(kernel[:, :s], lower=True, check_finite=False)
        inverse = sl.lapack.dpotri(self._lower, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        # b before its own pivot, of size -1' inv(K_SS) 1: its column is (q, -a), its row (q, a)
        self._a = a = inverse.sum(axis=0)
        self._size = float(a.sum())
        self._V, self._q = np.empty((n, s)), np.empty(n)  # by place
        self._solved = np.arange(n) < s
        T = self.columns
        T[-1, 0] = -1.0 / self._size
        T[-1, 1 : s + 1] = T[:s, 0] = a / self._size
        T[:s, 1 : s + 1] = inverse - np.multiply.outer(a, a / self._size)
        self.slot[0] = len(T) - 1
        self._file(np.arange(s))
        self._solve(np.arange(s, self.width))
        carrying, resting = np.flatnonzero(self.u[s:]), np.flatnonzero(self.u[s:] == 0.0)
        near = s // NEAREST
        if not few:
            followed = int(np.searchsorted(resting, self.width - s))
            near = min(followed, max(LEAST_NEAREST, (s + len(carrying)) // NEAREST))
        first = s + np.concatenate([carrying, resting[:near]])[: len(self.kernel) - s]
        self.fill(np.sort(first))

    def _solve(self, places: IntArray) -> None:
        """V and q of rows that are followed, and what columns of b and the margin have there.

        Those that are solved already stay as they are.
        """
        places = places[~self._solved[places]]

        def solve(part: slice) -> None:
            some = places[part]
            self.columns[: self._s, 1 + some] = self._reduce(some)
            self.columns[-1, 1 + some] = -self._q[some] / self._size

        in_slices(solve, len(places), self._s * len(places))

    def _reduce(self, places: IntArray) -> FloatArray:
        """V and q of rows outside the margin; returns their rows in the columns of the margin."""
        s, lower = self._s, self._lower
        V = sl.solve_triangular(lower, self.kernel[:s, places], lower=True, check_finite=False)
        self._V[places] = V.T
        B: FloatArray = sl.solve_triangular(lower, V, lower=True, trans=1, check_finite=False)
        self._q[places] = q = 1.0 - B.sum(axis=0)
        self._solved[places] = True
        B += np.multiply.outer(self._a, q / self._size)
        return B

    def answer(self, t: FloatArray) -> FloatArray:
        """What b, u in the margin and r elsewhere do where targets move by t, by place."""
        s, t = self._s, t[self.rows]
        x: FloatArray = t[:s] @ self.columns[:s]
        x[s + 1 :] -= t[s:]
        return x

    def newcomers(self, kernel: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Columns of rows that are not there, and what other columns have for them, one a row.

        `kernel` has their values with the rows by place and `own` those with themselves, both with
        the shift. All rows are to be followed.
        """
        s = self._s
        V = sl.solve_triangular(self._lower, kernel[:, :s].T, lower=True, check_finite=False)
        B = sl.solve_triangular(self._lower, V, lower=True, trans=1, check_finite=False)
        q = 1.0 - B.sum(axis=0)
        T = np.empty((len(kernel), self.machine.n + 2))
        T[:, 0] = q / self._size
        T[:, 1 : s + 1] = -(B + np.multiply.outer(self._a, q / self._size)).T
        T[:, s + 1 : -1] = kernel[:, s:] - V.T @ self._V[s:].T
        T[:, s + 1 : -1] += np.multiply.outer(q / self._size, self._q[s:])
        T[:, -1] = own - np.einsum("ij,ij->j", V, V) + q * q / self._size
        others = T.copy()
        others[:, : s + 1] *= -1.0
        return T, others

    def fill(self, places: IntArray) -> bool:
        """Make the columns of rows outside the margin; False if there is no room."""
        with self._lock:
            places = places[self.slot[places + 1] < 0]
            if self._used + len(places) > len(self.kernel):
                return False
            if len(places):
                self._fill(places)
            return True

    def _fill(self, places: IntArray) -> None:
        kernel, s = self._kernel_of(places), self._s
        T = self.columns[self._used : self._used + len(places)]
        followed = np.flatnonzero(places < self.width)
        T[followed, 1 : s + 1] = -self.columns[:s, 1 + places[followed]].T
        outer = np.flatnonzero(places >= self.width)

        def solve(part: slice) -> None:
            T[outer[part], 1 : s + 1] = -self._reduce(places[outer[part]]).T

        in_slices(solve, len(outer), s * len(outer))
        T[:, 0] = self._q[places] / self._size
        V, q = self._V[places], self._q[places]
        itself = kernel[np.arange(len(places)), places]
        self.own[places] = itself - np.einsum("ij,ij->i", V, V) + q * q / self._size
        self._meet(T, kernel, places, s, self.width)
        self._file(places)

    def current(self) -> tuple[FloatArray, IntArray]:
        """The columns and their slots, which belong together."""
        with self._lock:
            return self.columns, self.slot

    def widen(self, width: int) -> int:
        """Give all columns as many rows, at least; how many they have now."""
        with self._lock:
            width = min(self.machine.n, width)
            if width > self.width:
                s, first, slots = self._s, self.width, slice(self._s, self._used)
                # whoever reads the old ones goes on doing so
                T = np.empty((len(self.columns), width + 1))
                T[: self._used, : first + 1] = self.columns[: self._used]
                T[-1, : first + 1] = self.columns[-1]
                self.columns, self.slot, self.width = T, self.slot.copy(), width
                filed = self._filed[slots]
                known = np.flatnonzero((filed >= first) & (filed < width))
                T[:s, 1 + filed[known]] = -T[s + known, 1 : s + 1].T
                T[-1, 1 + filed[known]] = -self._q[filed[known]] / self._size
                self._solve(np.arange(first, width))
                self._meet(T[slots], self.kernel[slots], filed, first, width)
            return self.width

    def _meet(
        self, T: FloatArray, kernel: FloatArray, places: IntArray, first: int, last: int
    ) -> None:
        """Columns T of rows at places, where they meet the rows from `first` to `last`."""
        left = np.column_stack([self._V[places], self._q[places]])
        lift = -self._q[first:last] / self._size

        def make(part: slice) -> None:
            right = np.column_stack([self._V[first:last][part], lift[part]])
            out = T[:, 1 + first : 1 + last][:, part]
            np.subtract(kernel[:, first:last][:, part], left @ right.T, out=out)

        in_slices(make, last - first, len(places) * (last - first))

    def _kernel_of(self, places: IntArray) -> FloatArray:
        """Kernel values of rows against all, where they stay."""
        kernel = self.kernel[self._used : self._used + len(places)]
        at = self.at[places]
        if self._samples.gram.slot_of[at].min(initial=0) >= 0:
            self._samples.gram.gather(self.at, self._samples.slots(at), kernel.T)
        else:
            kernel[:] = self._samples.block(at, self.at)
        kernel += self.shift
        return kernel

    def _file(self, places: IntArray) -> None:
        """From now on others may read them."""
        slots = np.arange(self._used, self._used + len(places))
        self._filed[slots], self.slot[places + 1] = places, slots
        self._used += len(places)

    # -- the check -------------------------------------------------------------------------------

    def residuals(self, change: FloatArray, db: FloatArray, first: int, last: int) -> FloatArray:
        """Residuals of rows from `first` to `last` where the first weights and b have changed."""
        s = self._s
        r: FloatArray = change[:, :s] @ self.kernel[:s, first:last]
        moved = s + np.flatnonzero(change[:, s:].any(axis=0))
        if len(moved):
            r += change[:, moved] @ self.kernel[self.slot[moved + 1], first:last]
        r += self.r[first:last]
        r += db[:, None]
        return r

    def optimal(
        self, U: FloatArray, r: FloatArray, owner: IntArray, removed: IntArray
    ) -> BoolArray:
        """Whether the first rows are, with weights U and these residuals, and b is determined.

        Row removed[j] may hold any weight in U[owner[j]].
        """
        n = U.shape[1]
        return optima(
            U, r, self.lo[:n], self.hi[:n], self._room[:n], self._enough[:n], owner, removed
        )

    def last_violating(self, r: FloatArray, first: int) -> IntArray:
        """The last row from `first` on that violates, its weight as it was; -1 if none does."""
        some = slice(first, first + r.shape[1])
        last = last_outside(r, self._floor[some], self._ceiling[some])
        return np.where(last >= 0, first + last, -1)

    def drift(
        self, change: FloatArray, dr: FloatArray, more: FloatArray, gone: FloatArray, db: FloatArray
    ) -> FloatArray:
        """How far r of any row can have moved, in units of its scale, by what others have changed.

        (`_core.moving`): the norm of (dw, db / sqrt c), where |dw|^2 = du'K du. `dr` is K du with
        the shift, `more` what rows that are not followed add to du'K du, `gone` what sum u lost.
        """
        terms = change * dr
        squared = terms.sum(axis=1) + more - self.shift * gone * gone
        np.abs(terms, out=terms)
        squared += ROUNDINGS * EPSILON * (terms.sum(axis=1) + np.abs(more))
        db = db - self.shift * gone
        return np.asarray(np.sqrt(np.maximum(squared, 0.0) + db * db / self.shift))


def balanced(change: FloatArray, gone: FloatArray, total: FloatArray) -> BoolArray:
    """Whether sums of weights, `total` in size, have changed by what is gone."""
    return np.asarray(np.abs(change + gone) <= ROUNDINGS * EPSILON * total)


def _roles(machine: Machine) -> npt.NDArray[np.uint8] | None:
    """Where the rows are; None without a margin, or if one is inside its box but not in it."""
    low, high = machine.u <= machine.lo, machine.u >= machine.hi
    resting = ~(low | high | machine.in_margin)
    if len(machine.margin) == 0 or np.any(resting) or np.any(low & high & machine.in_margin):
        return None
    role = np.where(low & high, PINNED, np.where(low, LOW, HIGH))
    return np.where(machine.in_margin, MARGIN, role).astype(np.uint8)
