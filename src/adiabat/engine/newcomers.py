# SPDX-License-Identifier: BSD-3-Clause
"""One machine with one row more, again and again, by pivots of one tableau.

Each newcomer starts from the same optimum at u = 0. It is driven outwards until its residual is 0
or its weight at the bound (CP01 Algorithm 1), or, to read off the optimum for every target that it
could have, to both ends of its box. The machine is only read.

As with removals, every result is checked: r of all rows is computed afresh from the kernel. What is
not optimal, or cannot be done by pivots, is None, and left to a solver that takes the newcomer in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adiabat._core.ratio import FALLING, HIGH, LOW, MARGIN, RISING
from adiabat._core.tableau import Pivots
from adiabat.engine.machine import DEPENDENT
from adiabat.engine.tableau import MOST_PIVOTS, Tableau, balanced
from adiabat.engine.trial import INSIDE
from adiabat.typing import FloatArray, IntArray

# Stretches without advance before a newcomer is given up.
MOST_IDLE = 4
NONE: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Entry:
    """A row to come, of the newcomer with this number: (t, lo, hi), and what it adds to sum u."""

    number: int
    t: float
    lo: float
    hi: float
    total: float = 0.0


@dataclass(frozen=True)
class Arrival:
    """The optimum with a newcomer: residuals of the rows and its own, and its weight."""

    r: FloatArray
    own: float
    u: float


@dataclass(frozen=True)
class Stations:
    """The optimum at each breakpoint while a newcomer is driven through its box.

    Attributes
    ----------
    u : ndarray of shape (m,)
        Its weight, ascending from the low end to the high one; 0 is among them.
    f : ndarray of shape (m,)
        f at the newcomer; between stations all is linear.
    r : ndarray of shape (m, rows)
        Residuals of the rows.
    """

    u: FloatArray
    f: FloatArray
    r: FloatArray


class Newcomers:
    """Some newcomers to one machine, by their kernel values.

    Parameters
    ----------
    tableau : Tableau
        Of the machine at its optimum.
    kernel : ndarray of shape (k, positions)
        Kernel values of the newcomers with the samples by position.
    own : ndarray of shape (k,)
        Those with themselves.
    f : ndarray of shape (k,)
        What the machine says of them.
    """

    def __init__(
        self, tableau: Tableau, kernel: FloatArray, own: FloatArray, f: FloatArray
    ) -> None:
        self._tableau, self._machine = tableau, tableau.machine
        self._kernel = kernel[:, tableau.at] + tableau.shift
        self._own, self._f = own + tableau.shift, f
        self._columns, self._rows = tableau.newcomers(self._kernel, self._own)
        self._least = DEPENDENT * np.minimum(self._own, 1.0 / self._own)
        self._pivots = Pivots(
            tableau.columns, tableau.slot, tableau.u, tableau.r, tableau.lo, tableau.hi,
            tableau.role, tableau.least, MOST_PIVOTS,
        )  # fmt: skip
        room = INSIDE * (tableau.hi - tableau.lo)
        inside = (tableau.u > tableau.lo + room) & (tableau.u < tableau.hi - room)
        self._b_is_held = bool(inside.any())

    # -- one target ------------------------------------------------------------------------------

    def join(self, entries: Sequence[Entry], noise: FloatArray) -> list[Arrival | None]:
        """The optimum with each row; a violation below its `noise` is none.

        None where that has to be done in another way.
        """
        found: list[Arrival | None] = [None] * len(entries)
        moving = []
        for k, entry in enumerate(entries):
            r = self._f[entry.number] - entry.t
            pulled = entry.hi > 0.0 if r < 0.0 else entry.lo < 0.0
            if (pulled and abs(r) > noise[k]) or entry.total != 0.0:
                moving.append(k)
            elif self._b_is_held:
                found[k] = Arrival(self._machine.r, float(r), 0.0)
        for k, arrival in zip(moving, self._moved([entries[k] for k in moving]), strict=True):
            if arrival is not None and self._is_optimal(entries[k], arrival, float(noise[k])):
                found[k] = arrival
        return found

    def _moved(self, entries: list[Entry]) -> list[Arrival | None]:
        tableau, m = self._tableau, len(entries)
        U, db, u = np.empty((m, self._machine.n)), np.zeros(m), np.zeros(m)
        arrived, missing = np.zeros(m, dtype=bool), np.full(m, -1)
        left = list(range(m))
        while left:
            for k in left:
                end = self._drive(entries[k])
                arrived[k], missing[k] = end is not None, self._pivots.missing
                if end is not None:
                    u[k], db[k] = end, self._pivots.z[0]
                    self._pivots.weigh(U[k])
            left = [k for k in left if not arrived[k] and missing[k] >= 0]
            if not tableau.fill(np.unique(missing[left])):
                break
        kept = np.flatnonzero(arrived)
        number = np.array([entries[k].number for k in kept], dtype=np.int64)
        total = np.array([entries[k].total for k in kept])
        good, r, f = self._checked(U[kept], db[kept], u[kept], number, total)
        found: list[Arrival | None] = [None] * m
        for j, k in enumerate(kept.tolist()):
            if good[j]:
                own = float(f[j]) - entries[k].t
                found[k] = Arrival(r[j, tableau.place], own, float(u[k]))
        return found

    def _drive(self, entry: Entry) -> float | None:
        """Drive one newcomer in; its weight, or None where pivots do not lead there."""
        pivots, r = self._pivots, self._f[entry.number] - entry.t
        self._admit(entry.number)
        way = entry.hi if r < 0.0 else entry.lo
        pivots.enter(r, entry.lo, entry.hi, way, entry.total, True)
        idle = 0
        while idle <= MOST_IDLE:
            before = pivots.remaining
            row = pivots.stretch()
            role, value = pivots.newcomer
            driven = role in (RISING, FALLING)
            if row < 0:
                ends = {MARGIN: value, LOW: entry.lo, HIGH: entry.hi}
                return way if driven else float(ends.get(role, 0.0))
            idle = idle + 1 if pivots.remaining >= before else 0
            if row == self._machine.n and driven:
                u = way * (1.0 - pivots.remaining)
                if entry.total == 0.0:
                    return u
                if not pivots.arrive(u, entry.total):
                    return None
            elif not pivots.meet(row):
                return None
        return None

    def _is_optimal(self, entry: Entry, arrival: Arrival, noise: float) -> bool:
        """Whether the newcomer's own condition holds at the end."""
        reach = INSIDE * (entry.hi - entry.lo)
        below = arrival.u > entry.lo + reach and arrival.own > noise
        above = arrival.u < entry.hi - reach and arrival.own < -noise
        return not (below or above)

    # -- every target ----------------------------------------------------------------------------

    def range_over(self, number: int, low: float, high: float) -> Stations | None:
        """The optimum for every weight of a newcomer between two bounds, or None."""
        n, U, u, db = self._machine.n, [self._tableau.u], [0.0], [0.0]
        self._admit(number)
        for way in (low, high):
            if not self._pass(way, U, u, db):
                return None
            if way == low:
                U, u, db = U[::-1], u[::-1], db[::-1]
        weights, m = np.array(U).reshape(-1, n), len(u)
        chosen = np.full(m, number)
        good, r, f = self._checked(weights, np.array(db), np.array(u), chosen, np.zeros(m))
        return Stations(np.array(u), f, r[:, self._tableau.place]) if good.all() else None

    def _pass(self, way: float, U: list[FloatArray], u: list[float], db: list[float]) -> bool:
        """Drive the newcomer from 0 to one end, and note every station; False if it stops short."""
        pivots, idle = self._pivots, 0
        pivots.enter(0.0, 0.0, 0.0, way, 0.0, False)
        while idle <= MOST_IDLE:
            before = pivots.remaining
            row = pivots.stretch()
            idle = idle + 1 if pivots.remaining >= before else 0
            weights = np.empty(self._machine.n)
            pivots.weigh(weights)
            U.append(weights)
            u.append(way * (1.0 - pivots.remaining))
            db.append(float(pivots.z[0]))
            if row < 0:
                return True
            while not pivots.meet(row):
                missing = pivots.missing
                if missing < 0 or not self._tableau.fill(np.array([missing])):
                    return False
        return False

    # -- both ------------------------------------------------------------------------------------

    def _admit(self, number: int) -> None:
        self._pivots.admit(self._columns[number], self._rows[number], self._least[number])

    def _checked(
        self, U: FloatArray, db: FloatArray, u: FloatArray, number: IntArray, total: FloatArray
    ) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray]:
        """Whether each state is optimal for the rows, r of the rows, and f at the newcomer."""
        tableau, kernel = self._tableau, self._kernel[number]
        change = U - tableau.u
        r = tableau.residuals(change, db, 0, self._machine.n)
        r += u[:, None] * kernel
        good = tableau.optimal(U, r, NONE, NONE)
        good &= balanced(change.sum(axis=1), u - total, np.abs(U).sum(axis=1))
        f = self._f[number] + np.einsum("ij,ij->i", change, kernel)
        return good, r, f + u * self._own[number] + db
