# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of one machine, prepared for motions by pivots: every sample left out in turn.

`_core.tableau` says what the tableau is. Its columns are made once and by products of whole
matrices: those of rows with weight at the start, others when a removal asks for them. With
K + c 11' in place of K, which alters nothing but b (docs/numerics.md), and L L' = K_SS,

    V = inv(L) K_SN,   T_NN = K_NN - V'V,   T_SN = -inv(L') V,   T_SS = inv(K_SS),

and then b, a pivot like any other.

Pivots may lose digits, and a removal may meet what they cannot do: rows that depend on the margin,
no margin at all. So every result is checked: for many removals at once r of all rows is computed
afresh from the kernel, and what is not optimal is left to `trial`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl

from adiabat._core.ratio import HIGH, LOW, MARGIN, PINNED
from adiabat._core.tableau import ARRIVED, DECIDED, MISSING, Pivots
from adiabat._core.thread_pool import in_slices
from adiabat.engine.machine import DEPENDENT, Machine
from adiabat.engine.noise import AIM, EPSILON, ROUNDINGS
from adiabat.engine.trial import INSIDE, Removal
from adiabat.typing import BoolArray, FloatArray, IntArray

# Numbers in a tableau at most (512 MB, and as much for the kernel).
MOST_ENTRIES = 1 << 26
# Numbers checked together.
TOGETHER = 1 << 18
# For so many rows of the margin, one more of those nearest to r = 0 gets its column at the start.
NEAREST = 4
# Pivots before a removal is given up.
MOST_PIVOTS = 64
# A violation to be content with, in units of the row's target, if `tol` allows it; `trial` and the
# solver reach less.
CONTENT = 1e-10


class Tableau:
    """The optimum of one machine, prepared for removals, which share it.

    Rows have places of their own here: those of the margin come last.
    """

    def __init__(self, machine: Machine, role: npt.NDArray[np.uint8], tol: float) -> None:
        self.machine = machine
        self.rows = np.argsort(role == MARGIN, kind="stable")
        self.place = np.empty(machine.n, dtype=np.int64)
        self.place[self.rows] = np.arange(machine.n)
        self.u, self.r, self.role = machine.u[self.rows], machine.r[self.rows], role[self.rows]
        self.lo, self.hi = machine.lo[self.rows], machine.hi[self.rows]
        content = min(CONTENT, AIM * tol) * machine.units()
        self.enough = np.maximum(machine.aims(tol), content)  # a violation, by row
        self._enough = self.enough[self.rows]
        self._room = INSIDE * (self.hi - self.lo)
        self.at = machine.at[self.rows]
        self.shift = float(machine.factor.shift)
        self._samples = machine.samples.fork()
        self._lock = threading.Lock()
        n, self._s = machine.n, len(machine.margin)
        capacity = min(n, MOST_ENTRIES // n)
        self._kernel = np.empty((capacity, n))
        self.columns = np.empty((capacity + 1, n + 1))  # of the tableau, one a row; b is the last
        self.slot = np.full(n + 1, -1)
        self._used = 0
        self._start()

    @staticmethod
    def of(machine: Machine, tol: float) -> Tableau | None:
        """The tableau of a machine at its optimum, or None where there is none."""
        role = _roles(machine)
        n_carrying = np.count_nonzero((machine.u != 0.0) | machine.in_margin)
        if role is None or n_carrying * machine.n > MOST_ENTRIES:
            return None
        return Tableau(machine, role, tol)

    @property
    def least(self) -> FloatArray:
        """Pivots of rows below these are none."""
        own = self._samples.diagonal[self.at] + self.shift
        return np.asarray(DEPENDENT * np.minimum(own, 1.0 / own))

    # -- columns ---------------------------------------------------------------------------------

    def _start(self) -> None:
        """Columns of b, of the margin, of all other rows with weight, and of some near by."""
        s, n = self._s, self.machine.n - self._s
        kernel = self._kernel_of(np.arange(n, n + s))
        self._lower = lower = sl.cholesky(kernel[:, n:], lower=True)
        self._V, B = np.empty((s, n)), np.empty((s, n))

        def solve(part: slice) -> None:
            self._V[:, part] = sl.solve_triangular(lower, kernel[:, part][:, :n], lower=True)
            B[:, part] = sl.solve_triangular(lower, self._V[:, part], lower=True, trans=1)

        in_slices(solve, n, s * n)
        inverse = sl.cho_solve((lower, True), np.eye(s))
        # b before its own pivot, of size -1' inv(K_SS) 1: its column is (q, -a), its row (q, a)
        a, self._q = inverse.sum(axis=0), 1.0 - B.sum(axis=0)
        self._a, self._size = a, float(a.sum())
        T = self.columns
        T[-1, 0] = -1.0 / self._size
        T[-1, 1 : n + 1], T[-1, n + 1 :] = -self._q / self._size, a / self._size
        T[:s, 0] = a / self._size
        self._B = np.add(B, np.multiply.outer(a, self._q / self._size), out=T[:s, 1 : n + 1])
        T[:s, n + 1 :] = inverse - np.multiply.outer(a, a / self._size)
        self.slot[0] = len(T) - 1
        self._file(np.arange(n, n + s))
        nearness = np.where(self.u[:n] != 0.0, 0.0, np.abs(self.r[:n]))
        first = np.argsort(nearness)[: np.count_nonzero(nearness == 0.0) + s // NEAREST]
        self.fill(np.sort(first[: len(self._kernel) - s]))

    def answer(self, t: FloatArray) -> FloatArray:
        """What b, u in the margin and r elsewhere do where targets move by t, by place."""
        n, t = self.machine.n - self._s, t[self.rows]
        x: FloatArray = t[n:] @ self.columns[: self._s]
        x[1 : n + 1] -= t[:n]
        return x

    def newcomers(self, kernel: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Columns of rows that are not there, and what other columns have for them, one a row.

        `kernel` has their values with the rows by place and `own` those with themselves, both with
        the shift.
        """
        n = self.machine.n - self._s
        V = sl.solve_triangular(self._lower, kernel[:, n:].T, lower=True)
        B = sl.solve_triangular(self._lower, V, lower=True, trans=1)
        q = 1.0 - B.sum(axis=0)
        T = np.empty((len(kernel), self.machine.n + 2))
        T[:, 0] = q / self._size
        T[:, 1 : n + 1] = kernel[:, :n] - V.T @ self._V
        T[:, 1 : n + 1] += np.multiply.outer(q / self._size, self._q)
        T[:, n + 1 : -1] = -(B + np.multiply.outer(self._a, q / self._size)).T
        T[:, -1] = own - np.einsum("ij,ij->j", V, V) + q * q / self._size
        others = T.copy()
        others[:, 0] *= -1.0
        others[:, n + 1 : -1] *= -1.0
        return T, others

    def fill(self, places: IntArray) -> bool:
        """Make the columns of rows outside the margin; False if there is no room."""
        with self._lock:
            places = places[self.slot[places + 1] < 0]
            if self._used + len(places) > len(self._kernel):
                return False
            if len(places):
                self._fill(places)
            return True

    def _fill(self, places: IntArray) -> None:
        n = self.machine.n - self._s
        kernel = self._kernel_of(places)
        T = self.columns[self._used : self._used + len(places)]
        T[:, 0] = self._q[places] / self._size
        T[:, n + 1 :] = -self._B[:, places].T
        left = np.vstack([self._V[:, places], self._q[places]]).T
        lift = -self._q / self._size

        def make(part: slice) -> None:
            right = np.vstack([self._V[:, part], lift[part]])
            np.subtract(kernel[:, :n][:, part], left @ right, out=T[:, 1 : n + 1][:, part])

        in_slices(make, n, len(places) * n)
        self._file(places)

    def _kernel_of(self, places: IntArray) -> FloatArray:
        """Kernel values of rows against all, where they stay."""
        kernel = self._kernel[self._used : self._used + len(places)]
        at = self.at[places]
        if self._samples.gram.slot_of[at].min(initial=0) >= 0:
            kernel[:] = self._samples.between(self.at, at).T
        else:
            kernel[:] = self._samples.block(at, self.at)
        kernel += self.shift
        return kernel

    def _file(self, places: IntArray) -> None:
        """From now on others may read them."""
        self.slot[places + 1] = np.arange(self._used, self._used + len(places))
        self._used += len(places)

    # -- the check -------------------------------------------------------------------------------

    def optimal(
        self,
        U: FloatArray,
        db: FloatArray,
        removed: IntArray,
        gone: FloatArray,
        brought: FloatArray | None = None,
    ) -> tuple[BoolArray, FloatArray]:
        """Which rows of U are optimal without some rows, and r of all rows there.

        `removed` has pairs (row of U, place) that may hold any weight, `gone` what sum u has lost,
        `brought` what newcomers add to r.
        """
        n = self.machine.n - self._s
        change = U - self.u
        moved = np.flatnonzero(change[:, :n].any(axis=0))
        r = change[:, n:] @ self._kernel[: self._s]
        r += change[:, moved] @ self._kernel[self.slot[moved + 1]]
        r += self.r
        r += db[:, None]
        if brought is not None:
            r += brought
        violation = np.maximum(np.where(U > self.lo, r, 0.0), np.where(U < self.hi, -r, 0.0))
        violation[removed[:, 0], removed[:, 1]] = 0.0
        outside = np.maximum(self.lo - U, U - self.hi) > self._room
        outside[removed[:, 0], removed[:, 1]] = False
        inside = (U > self.lo + self._room) & (U < self.hi - self._room)
        inside[removed[:, 0], removed[:, 1]] = False
        off = np.abs(change.sum(axis=1) + gone)
        good = (
            (violation <= self._enough).all(axis=1)
            & ~outside.any(axis=1)
            & inside.any(axis=1)
            & (off <= ROUNDINGS * EPSILON * np.abs(U).sum(axis=1))
        )
        return good, r


class Remover:
    """Removals from a tableau, of many samples at once; each thread has its own."""

    def __init__(self, tableau: Tableau, points: FloatArray | None = None) -> None:
        """`points`: kernel values by position of points at which f is asked for as well."""
        self._tableau = tableau
        self._points = None if points is None else points[:, tableau.at].T + tableau.shift
        self._pivots = Pivots(
            tableau.columns, tableau.slot, tableau.u, tableau.r, tableau.lo, tableau.hi,
            tableau.role, tableau.least, MOST_PIVOTS,
        )  # fmt: skip
        self.at_once = max(8, min(64, TOGETHER // tableau.machine.n))

    def removals(
        self, samples: Sequence[IntArray], totals: Sequence[float], ask: bool
    ) -> list[Removal | None]:
        """Remove the rows of each sample; None where that has to be done in another way.

        `totals` are the sums of weights without each. With `ask`, only as far as signs are certain.
        """
        tableau, machine = self._tableau, self._tableau.machine
        places = [tableau.place[rows] for rows in samples]
        U, db, gone = np.tile(tableau.u, (len(samples), 1)), *np.zeros((2, len(samples)))
        end, breakpoints, missing = np.zeros((3, len(samples)), dtype=np.int64)
        left = list(range(len(samples)))
        while left:
            for k in left:
                loss = machine.d - totals[k]
                end[k], db[k], part = self._pivots.remove(
                    places[k], -loss, U[k], ask, machine.t[samples[k][0]]
                )
                breakpoints[k] = self._pivots.breakpoints
                missing[k] = self._pivots.missing
                gone[k] = loss * (1.0 - part)
            left = [k for k in left if end[k] == MISSING]
            if not tableau.fill(np.unique(missing[left])):
                break
        removed = [(k, place) for k, own in enumerate(places) for place in own]
        good, r = tableau.optimal(U, db, np.array(removed, dtype=np.int64), gone)
        good &= (end == ARRIVED) | (end == DECIDED)
        elsewhere = None
        if self._points is not None:
            elsewhere = (U - tableau.u) @ self._points + db[:, None]
        found: list[Removal | None] = [None] * len(samples)
        for k in np.flatnonzero(good).tolist():
            f = r[k, places[k][0]] + machine.t[samples[k][0]]
            found[k] = Removal(
                float(f), int(breakpoints[k]), bool(end[k] == DECIDED),
                None if elsewhere is None else elsewhere[k],
            )  # fmt: skip
        return found


def _roles(machine: Machine) -> npt.NDArray[np.uint8] | None:
    """Where the rows are; None without a margin, or if one is inside its box but not in it."""
    low, high = machine.u <= machine.lo, machine.u >= machine.hi
    resting = ~(low | high | machine.in_margin)
    if len(machine.margin) == 0 or np.any(resting) or np.any(low & high & machine.in_margin):
        return None
    role = np.where(low & high, PINNED, np.where(low, LOW, HIGH))
    return np.where(machine.in_margin, MARGIN, role).astype(np.uint8)
