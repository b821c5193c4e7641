# SPDX-License-Identifier: BSD-3-Clause
"""One machine: the rows of problem (P), its solution, and the factor of its margin.

    minimise 1/2 u'Ku - t'u   subject to   lo <= u <= hi,  sum u = d;     r = Ku + b - t

A row points at a sample (`at`); a sample may have any number of rows in any number of machines.
Every change of the problem is a change of rows: a new row comes with u = 0, a leaving row gets the
box [0, 0], a new weight is a new box. What then has to be solved is the same in all cases: u back
into its box, and no violator left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat._core.factor import Factor
from adiabat._core.judge import verdict
from adiabat._core.rows import reach, sizes, without
from adiabat.certificate import Verdict
from adiabat.engine.samples import Samples

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# A row whose pivot on the margin is below this part of its diagonal depends on the margin. With
# pivots above it the factor keeps its digits; see docs/numerics.md.
DEPENDENT = 1e-9

# A bound is reached within this part of the box.
AT_BOUND = 1e-14
# Rows joined or left, for each row of the factor, after which it is made anew.
REFRESH = 8
# A residual is zero within this many roundings.
ROUNDINGS = 64.0
# A residual, as a part of the targets' size, below which f needs no more digits.
FINE = 1e-10
EPSILON = float(np.finfo(np.float64).eps)

NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


def no_rows() -> IntArray:
    """No rows, or places, as the default of a field."""
    return NO_ROWS


def no_values() -> FloatArray:
    """No values, as the default of a field."""
    return np.empty(0)


@dataclass(frozen=True)
class RowChange:
    """What happens to the rows of one machine in one update."""

    remove: IntArray = field(default_factory=no_rows)
    add_at: IntArray = field(default_factory=no_rows)
    add_t: FloatArray = field(default_factory=no_values)
    add_lo: FloatArray = field(default_factory=no_values)
    add_hi: FloatArray = field(default_factory=no_values)
    add_u: FloatArray | None = None  # where they start; at 0 by default
    add_margin: IntArray = field(default_factory=no_rows)  # which of them start in MARGIN
    rebound: IntArray = field(default_factory=no_rows)
    rebound_t: FloatArray = field(default_factory=no_values)
    rebound_lo: FloatArray = field(default_factory=no_values)
    rebound_hi: FloatArray = field(default_factory=no_values)
    d: float | None = None

    @property
    def size(self) -> int:
        """Number of rows touched."""
        return len(self.remove) + len(self.add_at) + len(self.rebound)


@dataclass(frozen=True)
class Before:
    """What rows that stay had before a change of the problem: the path starts from there."""

    rows: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True)
class Snapshot:
    """All of a machine's state, in plain arrays; the factor by the rows it holds."""

    at: IntArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray
    u: FloatArray
    r: FloatArray
    margin: IntArray
    b: float
    d: float
    verdict: Verdict


class Machine:
    """Rows, weights, residuals and margin of one problem (P)."""

    def __init__(self, samples: Samples, d: float = 0.0) -> None:
        self.samples = samples
        self.at = np.empty(0, dtype=np.int64)
        self.t = np.empty(0)
        self.lo = np.empty(0)
        self.hi = np.empty(0)
        self.u = np.empty(0)
        self.r = np.empty(0)
        self.in_margin: BoolArray = np.empty(0, dtype=bool)
        self.b = 0.0
        self.d = d
        self.factor: Factor | Any = None  # from the first `begin` on it is there
        self.verdict = Verdict(0.0, 0.0)
        self.before: Before | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.u)

    @property
    def margin(self) -> IntArray:
        """MARGIN rows, in the factor's order."""
        return self.factor.rows if self.factor is not None else NO_ROWS

    # -- all or nothing --------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The state to come back to, in the machine's own arrays: `begin` replaces all of them."""
        return Snapshot(
            self.at, self.t, self.lo, self.hi, self.u, self.r, self.margin.copy(), self.b, self.d,
            self.verdict,
        )  # fmt: skip

    def restore(self, saved: Snapshot) -> None:
        """Come back to a saved state."""
        self.at, self.t = saved.at.copy(), saved.t.copy()
        self.lo, self.hi = saved.lo.copy(), saved.hi.copy()
        self.u, self.r = saved.u.copy(), saved.r.copy()
        self.b, self.d, self.verdict = saved.b, saved.d, saved.verdict
        self.in_margin = np.zeros(len(self.u), dtype=bool)
        self.refactor(saved.margin)

    def refactor(self, rows: IntArray) -> IntArray:
        """Make the factor anew over rows; returns those that turned out dependent."""
        if self.factor is None:
            diagonal = self.samples.diagonal[self.at]
            shift = float(diagonal.mean()) if len(diagonal) else 1.0
            self.factor = Factor(shift if shift > 0.0 else 1.0, DEPENDENT)
        rows = rows.copy()
        joined = self.factor.rebuild(self.kernel(rows, rows), rows)
        self.in_margin[:] = False
        self.in_margin[rows[joined]] = True
        return rows[~joined]

    def refresh_on_schedule(self) -> None:
        """Make the factor anew once enough rows have joined and left since the last time."""
        if self.factor is not None and self.factor.changes > REFRESH * (len(self.margin) + 100):
            self.refactor(self.margin)

    # -- change of rows --------------------------------------------------------------------------

    def begin(self, change: RowChange, carry: bool = False) -> None:
        """Change the problem; u may then lie outside its box and rows may violate.

        With `carry`, rows at a bound that moves go with it.
        """
        added, first, rows = len(change.add_at), self.n, change.rebound
        at_low, at_high = self.u[rows] <= self.lo[rows], self.u[rows] >= self.hi[rows]
        self.before = Before(rows, self.t[rows], self.lo[rows], self.hi[rows])
        start = np.zeros(added) if change.add_u is None else change.add_u
        self.at = np.concatenate([self.at, change.add_at])
        self.t = np.concatenate([self.t, change.add_t])
        self.lo = np.concatenate([self.lo, change.add_lo])
        self.hi = np.concatenate([self.hi, change.add_hi])
        self.u = np.concatenate([self.u, start])
        new_f = np.zeros(added)
        if added and (first or change.add_u is not None):
            self.samples.gram.multiply(self.coefficients(), new_f, change.add_at)
        self.r = np.concatenate([self.r, new_f + self.b - change.add_t])
        self.in_margin = np.concatenate([self.in_margin, np.zeros(added, dtype=bool)])
        self.lo[change.remove] = self.hi[change.remove] = 0.0
        if len(rows):
            self.lo[rows], self.hi[rows] = change.rebound_lo, change.rebound_hi
            self.r[rows] += self.t[rows] - change.rebound_t
            self.t[rows] = change.rebound_t
        if change.d is not None:
            self.d = change.d
        if self.factor is None:
            self.refactor(first + change.add_margin)
        if carry and len(rows):
            bound = np.where(at_low, change.rebound_lo, change.rebound_hi)
            self._move(rows, np.where(at_low | at_high, bound, self.u[rows]))

    def _move(self, rows: IntArray, u: FloatArray) -> None:
        """Give rows other weights, and all residuals what follows from it."""
        change = np.zeros(self.n)
        change[rows] = u - self.u[rows]
        if change.any():
            f = np.empty(self.n)
            self.samples.gram.multiply(self.coefficients(change), f, self.at)
            self.u[rows] = u
            self.r += f

    def finish(self, removed: IntArray) -> None:
        """Take out rows whose u was brought to 0."""
        self.before = None
        if len(removed) == 0:
            return
        assert self.factor is not None
        removed = np.sort(removed)
        self.factor.close_ranks(removed)
        self.factor.tidy()
        for name in ("at", "t", "lo", "hi", "u", "r", "in_margin"):
            setattr(self, name, without(getattr(self, name), removed))

    def rows_at(self, positions: IntArray) -> IntArray:
        """Rows that stand for samples at positions; k times the same, its first k rows."""
        order = np.argsort(self.at, kind="stable")
        place = np.arange(len(positions))
        starts = np.ones(len(positions), dtype=bool)
        starts[1:] = positions[1:] != positions[:-1]
        repeat = place - np.maximum.accumulate(np.where(starts, place, 0))
        rows: IntArray = order[np.searchsorted(self.at[order], positions) + repeat]
        return rows

    # -- kernel and weights ----------------------------------------------------------------------

    def kernel(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values between rows, columns through their slots."""
        return self.samples.between(self.at[rows], self.at[columns])

    def coefficients(self, values: FloatArray | None = None) -> FloatArray:
        """Weights (or other values by row) summed by slot of their sample."""
        values = self.u if values is None else values
        sums = self.samples.gram.collect(values, self.at)
        if sums is None:
            self.samples.slots(self.at[values != 0.0])
            sums = self.samples.gram.collect(values, self.at)
        assert sums is not None
        return sums

    def reach(self) -> float:
        """How far boxes extend from 0 at most."""
        return reach(self.lo, self.hi)

    def accuracy(self, tolerance: float) -> float:
        """The violation to aim at: a few roundings of f, and always well within the tolerance."""
        largest = self.samples.largest
        return attainable(tolerance, largest, sizes(self.u, self.t)[0], self.b)

    def fineness(self) -> float:
        """What r may differ from 0 by, so that f shows nothing of it."""
        return FINE * max(1.0, sizes(self.u, self.t)[1])

    def infeasibility(self) -> float:
        """How far u is from its box and its sum from d, beyond rounding."""
        outside = np.maximum(self.lo - self.u, self.u - self.hi)
        return max(float(outside.max(initial=0.0)), self.imbalance(self.u))

    def imbalance(self, u: FloatArray) -> float:
        """How far a sum of weights is from d, beyond rounding."""
        balance = abs(float(u.sum()) - self.d)
        return 0.0 if balance <= 8.0 * EPSILON * float(np.abs(u).sum()) else balance

    def hear_the_judge(self) -> None:
        """A verdict on u and b, from residuals just computed afresh."""
        self.verdict = Verdict(*verdict(self.r, self.u, self.t, self.lo, self.hi, self.d, self.b))

    def centre_bias(self) -> None:
        """Without a row strictly inside its box b has an interval: take its middle (LIBSVM's).

        r >= -db where u < hi and r <= -db where u > lo; an open side leaves the other end. The
        interval is that of the problem, whichever optimal u was found, so that b depends on the
        data alone. MARGIN rows that only touch r = 0 at a bound have no say in it.
        """
        # What rows took up of the rounding of the sum, or were left with on the way from larger
        # weights, is no weight of its own: it is below the rounding of u, or moves f by less than
        # the rounding of f.
        rounding, size = sizes(self.u, self.t)
        largest = self.samples.largest
        if largest > 0.0:
            rounding += (abs(self.b) + size) / largest
        rounding *= ROUNDINGS * EPSILON
        for row in self.margin[:1]:  # mostly this one is inside, and says it all
            if min(self.u[row] - self.lo[row], self.hi[row] - self.u[row]) > rounding:
                return
        room = np.minimum(rounding, 0.5 * (self.hi - self.lo))
        low = (self.u >= self.lo) & (self.u <= self.lo + room)
        high = (self.u <= self.hi) & (self.u >= self.hi - room)
        if np.all(low | high):
            corner = np.where(low, self.lo, self.hi)
            if self.imbalance(corner) == 0.0:
                self.u = corner
                self.refactor(NO_ROWS)
        if len(self.margin):
            return
        least = float(np.max(-self.r[self.u < self.hi], initial=-np.inf))
        most = float(np.min(-self.r[self.u > self.lo], initial=np.inf))
        shift: float
        if np.isfinite(least) and np.isfinite(most):
            shift = 0.5 * (least + most)
        elif np.isfinite(least) or np.isfinite(most):
            shift = least if np.isfinite(least) else most
        else:
            shift = -self.b  # no row has any force: b = 0
        self.b += shift
        self.r += shift


def attainable(
    tolerance: float, largest: float, weight: float, b: float, roundings: float = ROUNDINGS
) -> float:
    """The violation to aim at, where k(x, x) is at most `largest` and sum |u| is `weight`."""
    rounding = EPSILON * (largest * weight + abs(b) + 1.0)
    return min(0.1 * tolerance, roundings * rounding)
