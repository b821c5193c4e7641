# SPDX-License-Identifier: BSD-3-Clause
"""Samples removed from one optimum in turn, by pivots of its tableau, many at a time.

Nothing is believed: for many removals at once r is computed afresh from the kernel, of all rows
that the motion can have brought to r = 0 (`Tableau.drift` bounds how far the others have come). A
removal that a row spoils which was not followed is made again with more rows. What is not optimal
then is left to `trial`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adiabat._core.tableau import ARRIVED, DECIDED, MISSING, Pivots
from adiabat.engine.machine import Machine
from adiabat.engine.tableau import MOST_PIVOTS, Tableau, balanced
from adiabat.engine.trial import Removal
from adiabat.typing import BoolArray, FloatArray, IntArray

# Numbers in a batch of removals, and how many of them are driven out, and checked, at a time.
TOGETHER = 1 << 19
MOST_AT_ONCE = 256
MOST_CHECKED = 128
# Rows outside the margin that are followed to begin with: at least so many, and one of so many.
FOLLOWED = 128
FOLLOWED_PART = 8
# If more than one of so many removals needs further rows, these are followed from then on.
SHORT_PART = 8


def removal_tableau(machine: Machine, tol: float) -> Tableau | None:
    """A tableau to remove samples with, or None where there is none."""
    others = machine.n - len(machine.margin)
    return Tableau.of(machine, tol, max(FOLLOWED, others // FOLLOWED_PART))


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
        self._width = tableau.width
        self.at_once = max(8, min(MOST_AT_ONCE, TOGETHER // tableau.width))

    def removals(
        self, samples: Sequence[IntArray], totals: Sequence[float], ask: bool
    ) -> list[Removal | None]:
        """Remove the rows of each sample; None where that has to be done in another way.

        `totals` are the sums of weights without each. With `ask`, only as far as signs are certain.
        """
        tableau = self._tableau
        counts = np.array([len(rows) for rows in samples])
        places = tableau.place[np.concatenate(samples)]
        loss = tableau.machine.d - np.asarray(totals, dtype=np.float64)
        found: list[Removal | None] = [None] * len(samples)
        left, width = np.arange(len(samples)), self._width
        while len(left):
            batch = _Batch(tableau, places, counts, loss, width)
            self._pivots.use(*tableau.current())
            lacking = batch.drive(self._pivots, ask)
            batch.check()
            elsewhere = None if self._points is None else batch.elsewhere(self._points)
            for j in np.flatnonzero(batch.good).tolist():
                found[left[j]] = Removal(
                    float(batch.f[j]), int(batch.breakpoints[j]), bool(batch.end[j] == DECIDED),
                    None if elsewhere is None else elsewhere[j],
                )  # fmt: skip
            short = batch.farthest >= 0
            again = short | (lacking if tableau.fill(np.unique(batch.missing[lacking])) else False)
            if short.any():
                width = tableau.widen(max(int(batch.farthest.max()) + 1, width + width // 2))
                if SHORT_PART * np.count_nonzero(short) > len(samples):
                    self._width = width
            places, counts = places[np.repeat(again, counts)], counts[again]
            left, loss = left[again], loss[again]
        return found


class _Batch:
    """Some removals on their way; the first `width` rows are followed."""

    def __init__(
        self, tableau: Tableau, places: IntArray, counts: IntArray, loss: FloatArray, width: int
    ) -> None:
        """`places` of the samples' rows, one sample after the other, `counts` of them each."""
        self._tableau, self._places, self._loss, self._width = tableau, places, loss, width
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._sample = np.repeat(np.arange(len(counts)), counts)
        # of each sample one row, that with weight if there is one
        order = np.lexsort((-np.abs(tableau.u[places]), self._sample))
        self._own = places[order[self._first[:-1]]]
        self._t = tableau.machine.t[tableau.rows[self._own]]

    def drive(self, pivots: Pivots, ask: bool) -> BoolArray:
        """Drive all samples out; which of them lack a column."""
        tableau = self._tableau
        self._U = np.empty((len(self._own), self._width))
        self.end, self._db, self._part, self.breakpoints, self.missing = pivots.remove(
            self._places, self._first, self._width, tableau.own, -self._loss, ask, self._t, self._U
        )
        return np.asarray(self.end == MISSING)

    def check(self) -> None:
        """Find out which ends are optimal, by r of the rows followed and all within their reach.

        good: whether it is, f: at the sample that goes, farthest: the last row that violates and
        was not followed, or -1.
        """
        tableau, width, own, db = self._tableau, self._width, self._own, self._db
        self._change = change = self._U - tableau.u[:width]
        # a row that is not followed loses its weight as well
        weight = np.where(own >= width, tableau.u[own], 0.0)
        self._away = away = (self._part - 1.0) * weight
        r = self._residuals(slice(None), 0, width)
        gone = self._loss * (1.0 - self._part)
        inner = self._places < width
        self.good = tableau.optimal(self._U, r, self._sample[inner], self._places[inner])
        total = np.abs(self._U).sum(axis=1) + np.abs(tableau.u[width:]).sum() - np.abs(weight)
        self.good &= balanced(change.sum(axis=1) + away, gone, total)
        self.good &= (self.end == ARRIVED) | (self.end == DECIDED)
        r -= tableau.r[:width]
        r -= db[:, None]
        own_change = self._own_change(r)
        self.f = tableau.r[own] + own_change + db + self._t
        self.farthest = np.full(len(own), -1)
        if width < tableau.machine.n and self.good.any():
            self._check_far(tableau.drift(change, r, away * own_change, gone, db))

    def _check_far(self, drift: FloatArray) -> None:
        """Of those that are good so far: no row violates that was not followed."""
        tableau, width = self._tableau, self._width
        order = np.argsort(np.where(self.good, drift, -np.inf))
        order = order[np.count_nonzero(~self.good) :]
        outer, which = self._places >= width, np.full(len(drift), -1)
        step = max(8, min(MOST_CHECKED, TOGETHER // tableau.machine.n))
        for start in range(0, len(order), step):
            some = order[start : start + step]
            last = int(np.searchsorted(tableau.far, drift[some].max(), side="right"))
            if last <= width:
                continue
            r = self._residuals(some, width, last)
            which[some] = np.arange(len(some))
            mine = np.flatnonzero(outer & (which[self._sample] >= 0) & (self._places < last))
            r[which[self._sample[mine]], self._places[mine] - width] = 0.0
            which[some] = -1
            self.farthest[some] = tableau.last_violating(r, width)
        self.good &= self.farthest < 0

    def _residuals(self, some: Any, first: int, last: int) -> FloatArray:
        """Residuals of the rows from `first` to `last` at the ends of some removals."""
        tableau, away = self._tableau, self._away[some]
        r = tableau.residuals(self._change[some], self._db[some], first, last)
        outer = np.flatnonzero(away)
        slots = tableau.slot[1 + self._own[some][outer]]
        r[outer] += away[outer, None] * tableau.kernel[slots, first:last]
        return r

    def _own_change(self, dr: FloatArray) -> FloatArray:
        """The change of K u at each sample that goes; `dr` is that of the rows followed."""
        tableau, own, change = self._tableau, self._own, self._change
        inner = np.flatnonzero(own < self._width)
        found = np.empty(len(own))
        found[inner] = dr[inner, own[inner]]
        outer = np.flatnonzero(own >= self._width)
        known = tableau.slot[1 + own[outer]] >= 0
        rest, outer = outer[~known], outer[known]
        slots = tableau.slot[1 + own[outer]]
        kernel = tableau.kernel[slots, : self._width]
        found[outer] = np.einsum("kc,kc->k", change[outer], kernel)
        found[outer] += self._away[outer] * tableau.kernel[slots, own[outer]]
        if len(rest):
            moved = np.flatnonzero(change[rest].any(axis=0))
            kernel = tableau.kernel[tableau.slot[moved + 1][:, None], own[rest]]
            found[rest] = np.einsum("kc,ck->k", change[np.ix_(rest, moved)], kernel)
        return found

    def elsewhere(self, points: FloatArray) -> FloatArray:
        """How f has changed at points, given by their kernel values by place."""
        found = self._change @ points[: self._width] + self._db[:, None]
        outer = np.flatnonzero(self._away)
        found[outer] += self._away[outer, None] * points[self._own[outer]]
        return np.asarray(found)
