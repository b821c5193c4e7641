# SPDX-License-Identifier: BSD-3-Clause
"""One machine: the rows of problem (P), its solution, and the factor of its margin.

    minimise 1/2 u'Ku - t'u   subject to   lo <= u <= hi,  sum u = d;     r = Ku + b - t

A row points at a sample (`at`); a sample may have any number of rows in any number of machines.
Every change of the problem is a change of rows: a new row comes with u = 0, a leaving row gets the
box [0, 0], a new weight is a new box. What then has to be solved is the same in all cases: u back
into its box, and no violator left.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from adiabat._core.conditions import (
    aims,
    aims_by_bound,
    are_fine,
    common_size,
    imbalance,
    outside,
    roundings,
    strength_of,
    typical_size,
)
from adiabat._core.factor import Factor
from adiabat._core.judge import verdict
from adiabat._core.looks import Looks
from adiabat._core.room import Room
from adiabat._core.rows import ascending, nonzeros
from adiabat.certificate import Verdict
from adiabat.engine.landmarks import Landmarks
from adiabat.engine.noise import (
    AIM,
    EPSILON,
    FEWEST,
    ROUNDINGS,
    absolute_sums,
    holders_of,
    noise,
    usual_diagonal,
)
from adiabat.engine.row_change import NO_ROWS, NO_VALUES, RowChange
from adiabat.engine.samples import Samples
from adiabat.engine.snapshot import UNMOVED, Before, Snapshot
from adiabat.engine.straight import Straight
from adiabat.typing import BoolArray, FloatArray, IntArray

# A row whose pivot on the margin is below this part of its diagonal depends on the margin. With
# pivots above it the factor keeps its digits; see docs/numerics.md.
DEPENDENT = 1e-9

# A bound is reached within this part of the box.
AT_BOUND = 1e-14
# Rows joined or left, for each row of the factor, after which it is made anew.
REFRESH = 8
# The part of the weights that their sum may be off.
BALANCE = 8.0 * EPSILON
# What the judge of an update allows: half of what `certificate()` does, whose sums round otherwise.
JUDGED = 32.0
# A residual, in units of the row's target, below which f needs no more digits.
FINE = 1e-10

NO_KERNEL: FloatArray = np.empty((0, 0))
#: Arrays with an entry for each row: a machine's, those that are always its own, the judge's.
BY_ROW = ("at", "t", "lo", "hi", "u", "held_r", "root", "in_margin")
OF_ITS_OWN = tuple(name for name in BY_ROW if name != "held_r")
LOOKED = ("r", "off")
#: Those told of a new row; those that change where a snapshot holds them, u alone if no box moves.
NEW = ("at", "t", "lo", "hi", "u", "root", "in_margin")
CHANGING = ("t", "lo", "hi", "u")
SINGLE = ("b", "verdict", "typical", "common", "judged_by_sizes", "strength_seen", "small_shift")


class Machine:
    """Rows, weights, residuals and margin of one problem (P)."""

    def __init__(self, samples: Samples, d: float = 0.0) -> None:
        self.samples = samples
        self.at = np.empty(0, dtype=np.int64)
        self.t, self.lo, self.hi, self.u, self.held_r = (np.empty(0) for _ in range(5))
        self.root = np.empty(0)  # sqrt k(x, x)
        self.looks: Looks | None = None  # what the judge computed of r, where it may bound the rest
        self.landmarks: Landmarks | None = None  # which rows r of others follows, if any
        self.is_bounded = False  # some r were not computed since u changed
        self.in_part = False  # whoever reads r now knows that
        self.typical = 0.0  # size of a target
        self.common = -1.0  # the same, if all targets are of one size; else -1
        self.in_margin: BoolArray = np.empty(0, dtype=bool)
        self.b = 0.0
        self.d = d
        self.factor: Factor | Any = None  # until the first `begin`
        self.small_shift = False  # for rows whose k(x, x) is far below the others'
        self.verdict = Verdict()
        self.judged_by_sizes = False  # whether the judge had to be told the sizes of f
        self.strength_seen = np.inf  # sum sqrt(k) |u| when b was last centred
        self.before: Before | None = None
        self.weighty: IntArray | None = None  # rows, all with weight among them, if they are known
        self.straight = Straight()
        self._room = Room()

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.u)

    @property
    def has_pairs(self) -> bool:
        """Whether some sample may have two rows."""
        return len(self.u) > self.samples.n

    @property
    def _roots(self) -> FloatArray:
        """`root` of all rows of the problem."""
        return self.root

    @property
    def margin(self) -> IntArray:
        """MARGIN rows, in the factor's order."""
        return self.factor.rows if self.factor is not None else NO_ROWS

    @property
    def n_margin(self) -> int:
        """How many these are."""
        return self.factor.size if self.factor is not None else 0

    @property
    def r(self) -> FloatArray:
        """Residuals Ku + b - t; where an update only bounded some, they are computed now."""
        if self.is_bounded and not self.in_part:
            self.compute_bounded()
        return self.held_r

    @r.setter
    def r(self, r: FloatArray) -> None:
        self.held_r, self.is_bounded = r, False

    def compute_bounded(self) -> None:
        """Compute the residuals that are only bounded so far."""
        if self.is_bounded:
            self.r = self.samples.judged(self.coefficients(), self.at) + (self.b - self.t)
            self.looks = Looks(self.held_r, self.u, self.b)

    # -- all or nothing --------------------------------------------------------------------------

    def snapshot(self, remove: IntArray = NO_ROWS) -> Snapshot:
        """The state to come back to after a change that removes these rows."""
        return Snapshot.of(self, remove)

    def restore(self, saved: Snapshot) -> None:
        """Come back to a saved state."""
        self.at, self.t = saved.at.copy(), saved.t.copy()
        self.lo, self.hi = saved.boxes()
        self.u, self.r = saved.u.copy(), saved.r.copy()
        self.b, self.d, self.verdict = saved.b, saved.d, saved.verdict
        self.small_shift, self.landmarks = saved.small_shift, saved.landmarks
        self.looks, self.is_bounded, self.in_part = saved.looks, saved.is_bounded, False
        self.root = np.sqrt(self.samples.diagonal[self.at])
        self._measure_targets()
        self.strength_seen, self.weighty, self.straight = np.inf, None, Straight()
        self.straight.come(0, self.at)
        self.in_margin = np.zeros(len(self.u), dtype=bool)
        self.refactor(saved.margin)

    def copied(self, samples: Samples) -> Machine:
        """A copy on other samples at the same positions."""
        other = Machine(samples, self.d)
        self.compute_bounded()
        for name in (*BY_ROW, *SINGLE):
            setattr(other, name, copy(getattr(self, name)))
        other.straight.holds = False  # the samples stay where they are
        if self.factor is not None:  # s^2 numbers copied, where making it anew costs s^3
            other.factor = Factor(self.factor.shift, DEPENDENT)
            other.factor.copy_from(self.factor)
        return other

    def refactor(self, rows: IntArray) -> IntArray:
        """Refactor over these rows; returns those that turned out dependent."""
        if self.factor is None:
            self.factor = Factor(1.0, DEPENDENT)
        usual = usual_diagonal(self._roots)
        shift = self._least() if self.small_shift and self.is_uneven() else usual
        if len(rows) == 0 and self.factor.size == 0:
            self.factor.rebuild(NO_KERNEL, rows, shift, usual)
            return rows
        rows = rows.copy()
        joined = self.factor.rebuild(self.kernel(rows, rows), rows, shift, usual)
        self.in_margin[:] = False
        self.in_margin[rows[joined]] = True
        return rows[~joined]

    def _least(self) -> float:
        """The least k(x, x) above 0: the small shift of the factor."""
        return float(np.min(self._roots[self._roots > 0.0], initial=np.inf)) ** 2

    def is_uneven(self) -> bool:
        """Whether some k(x, x) is so small that the usual shift hides it.

        Of such rows MARGIN could hold one: beside it, the others would count as dependent.
        """
        return self._least() < DEPENDENT * usual_diagonal(self._roots)

    def refresh_on_schedule(self) -> None:
        """Make the factor anew once enough rows have joined and left since the last time."""
        if self.factor is not None and self.factor.changes > REFRESH * (self.n_margin + 100):
            self.refactor(self.margin)

    # -- change of rows --------------------------------------------------------------------------

    def begin(
        self, change: RowChange, carry: bool = False, small_shift: bool | None = None
    ) -> None:
        """Change the problem; u may then lie outside its box and rows may violate.

        With `carry`, rows at a bound stay at it when it moves. `small_shift` is chosen here, or
        left as it is.
        """
        first, rows, moving = len(self.u), change.rebound, len(change.rebound) > 0
        self.before = UNMOVED
        if moving:
            self.before = Before(rows, self.t[rows], self.lo[rows], self.hi[rows])
        if moving or change.add_u is not None:  # other rows may get weight
            self.weighty = None
        self._append(change, None, copied=True)
        if len(change.remove):
            self.lo[change.remove] = self.hi[change.remove] = 0.0
        if moving:
            at_low, at_high = self.u[rows] <= self.lo[rows], self.u[rows] >= self.hi[rows]
            self.lo[rows], self.hi[rows] = change.rebound_lo, change.rebound_hi
            self.r[rows] += self.t[rows] - change.rebound_t
            self.t[rows] = change.rebound_t
            self.looks = None
        if moving or (len(change.add_at) and not self._is_common(change.add_t)):
            self._measure_targets()
        if change.d is not None:
            self.d = change.d
        was_small = self.small_shift
        self.small_shift = was_small if small_shift is None else small_shift
        if self.factor is None:
            self.refactor(first + change.add_margin)
        elif self.small_shift != was_small:
            self.refactor(self.margin)
        if carry and moving:
            bound = np.where(at_low, change.rebound_lo, change.rebound_hi)
            self._move(rows, np.where(at_low | at_high, bound, self.u[rows]))

    def residuals_of(self, change: RowChange) -> FloatArray:
        """Residuals of the rows that come with a change, before those that start with a weight."""
        f = np.zeros(len(change.add_at))
        if len(f) and self.n:
            f = self.samples.weigh(self.coefficients(), change.add_at)
        return f + self.b - change.add_t

    def _append(self, change: RowChange, r: FloatArray | None, copied: bool) -> None:
        """Add the rows of a change at the end, in new arrays or where the others are."""
        added, looked = len(change.add_at), self._is_looked_at()
        moved = CHANGING if len(change.rebound) else CHANGING[-1:]
        changing: tuple[str, ...] = moved if copied else ()
        residuals = () if looked else ("held_r",)
        if added:
            self.straight.come(len(self.u), change.add_at)
            start = np.zeros(added) if change.add_u is None else change.add_u
            root = np.sqrt(self.samples.diagonal[change.add_at])
            r = self.residuals_of(change) if r is None else r
            inside = np.zeros(added, dtype=bool)
            new = change.add_at, change.add_t, change.add_lo, change.add_hi, start, root, inside, r
            names, changing = NEW + residuals, changing + residuals * copied
            self._room.extend_all(self, names, new[: len(names)], changing)
            if change.add_u is not None:  # f has terms of new rows as well
                r = self.samples.weigh(self.coefficients(), change.add_at) + self.b - change.add_t
                self.held_r[-added:] = r
        else:
            r = root = NO_VALUES
            changing += residuals * copied
            self._room.extend_all(self, changing, (NO_VALUES,) * len(changing), changing)
        if self.looks is not None:
            self.looks = self.looks.copy()  # what the judge has not computed, it does at the next
            self.looks.computed = None
            known = r, np.full(added, np.inf)
            self._room.extend_all(self.looks, LOOKED, known, LOOKED if copied else ())
            self.held_r = self.looks.r if looked else self.held_r
        if self.landmarks is not None and added:
            self.landmarks = self.landmarks.extended(self._room, root)

    def _is_looked_at(self) -> bool:
        """Whether residuals are the judge's own, in the same array."""
        return self.looks is not None and self.held_r is self.looks.r

    def accept(self, change: RowChange, r: FloatArray) -> None:
        """Rows without weight come, with these residuals, and go; nothing else changes."""
        if len(change.add_at):
            self._append(change, r, copied=False)
        self.finish(change.remove)

    def _is_common(self, t: FloatArray) -> bool:
        """Whether these targets have the size that all others have."""
        return 0.0 <= self.common == common_size(t)

    def _measure_targets(self) -> None:
        """The size of a target, and whether all have it."""
        self.common = common_size(self.t)
        self.typical = typical_size(self.t) if self.common < 0.0 else self.common

    def start_over(self) -> None:
        """Weights of 0, and no margin."""
        self.u, self.b, self.looks, self.weighty = np.zeros(self.n), 0.0, None, None
        self.r = -self.t
        self.refactor(NO_ROWS)

    def _move(self, rows: IntArray, u: FloatArray) -> None:
        """Set the weights of rows, and update all residuals."""
        change = np.zeros(self.n)
        change[rows] = u - self.u[rows]
        if change.any():
            self.r += self.samples.weigh(self.coefficients(change), self.at)
            self.u[rows], self.weighty = u, None

    def finish(self, gone: IntArray) -> None:
        """Take out rows whose u was brought to 0."""
        self.before, self.weighty = None, self.rows_with_weight()
        if len(gone):
            leaving = self.straight.leave(ascending(gone), len(self.u))
            for rows in (self.factor.rows, self.weighty):
                leaving.renumber(rows)
            if self.verdict.worst >= 0:
                self.verdict = self.verdict._replace(worst=leaving.place_of(self.verdict.worst))
            self.factor.wipe_removed()
            if self.landmarks is not None:
                self.landmarks.remove(leaving, self.looks, self.root)
            looked = self._is_looked_at()
            leaving.close(self, OF_ITS_OWN if looked else BY_ROW)
            if self.looks is not None:
                leaving.close(self.looks, LOOKED)
                self.looks.renumber(leaving)
                self.looks.computed = None
                self.held_r = self.looks.r if looked else self.held_r
            if self.common < 0.0 or len(self.u) == 0:
                self._measure_targets()

    # -- kernel and weights ----------------------------------------------------------------------

    def kernel(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Kernel values between rows, columns through their slots."""
        return self.samples.between(self.at[rows], self.at[columns])

    def coefficients(self, values: FloatArray | None = None) -> FloatArray:
        """Weights (or other values by row) summed by slot of their sample."""
        values = self.u if values is None else values
        rows = self.weighty if values is self.u else None
        at = self.at if rows is None else self.at[rows]
        values = values if rows is None else values[rows]
        sums = self.samples.gram.collect(values, at)
        if sums is None:
            self.samples.slots(at[values != 0.0])
            sums = self.samples.gram.collect(values, at)
        assert sums is not None
        return sums

    def rows_with_weight(self) -> IntArray:
        """The rows that carry weight."""
        rows = self.weighty
        return nonzeros(self.u) if rows is None else rows[self.u[rows] != 0.0]

    def sizes(self, rows: IntArray | None = None) -> FloatArray:
        """Sums |k(x, z) u| of the terms of f, at all rows or some."""
        at = self.at if rows is None else self.at[rows]
        if self.samples.kernel.is_nonnegative:
            return self.samples.weigh(self.coefficients(np.abs(self.u)), at)
        weighty = self.rows_with_weight()
        return absolute_sums(self.samples.values, at, self.at[weighty], self.u[weighty])

    def units(self, rows: IntArray | None = None) -> FloatArray:
        """The size of a row's target, or a typical one if that is larger; of all rows or some."""
        t = self.t if rows is None else self.t[rows]
        units: FloatArray = np.maximum(np.abs(t), self.typical or abs(self.b))
        return units

    def rounding(self, tol: float) -> FloatArray:
        """One rounding of f, row by row: bounded, or where that is too coarse for `tol`, exact."""
        out = np.empty(self.n)
        given = self.u, self.t, self.root, self.b, self.typical, self._usual_root
        if roundings(*given, AIM * tol / FEWEST, out):
            roundings(*given, AIM * tol / FEWEST, out, self.sizes())
        return out

    def aims(
        self, tol: float, most: float = ROUNDINGS, rounding: FloatArray | None = None
    ) -> FloatArray:
        """The violation to aim at, row by row: within `tol`, but not below rounding."""
        few, part = min(FEWEST, most), AIM * tol
        if rounding is None:
            given = self.u, self.t, self.root, self.b, self.typical, self._usual_root
            found = aims_by_bound(*given, part / FEWEST, part, most, few)
            if found is not None:
                return found
            rounding = self.rounding(tol)
        return aims(rounding, self.t, self.typical or abs(self.b), part, most, few)

    def noise(
        self, tol: float, own: FloatArray, t: Any = 0.0, sizes: FloatArray | None = None
    ) -> FloatArray:
        """What f - t is known to at points with these k(x, x): `aims` for them.

        `sizes` are sum |k u| there; without them a bound stands for it.
        """
        if sizes is None:
            strength, least = self.strength()
            sizes = np.sqrt(own) * strength
        else:
            least = self.least_size()
        return noise(tol, sizes, least, self.b, self.typical, t)

    def strength(self) -> tuple[float, float]:
        """A bound on sum |k u| where k(x, x) = 1; and the least size that rounding goes by."""
        strength = strength_of(self.root, self.u, self.weighty)
        return strength, self._usual_root * strength

    @property
    def _usual_root(self) -> float:
        """Square root of a typical k(x, x)."""
        return math.sqrt(self.factor.usual)

    def least_size(self) -> float:
        """The size of the terms whose rounding b carries: those of the rows that hold it."""
        return float(np.median(self.sizes(holders_of(self.margin, self.n)))) if self.n else 0.0

    def is_fine(self, tol: float) -> bool:
        """Whether u is feasible and no row violates, but for what `aims` and `fineness` allow."""
        given = self.r, self.u, self.t, self.lo, self.hi, self.root, self.b, self.typical
        aim = AIM * tol / FEWEST, AIM * tol, ROUNDINGS, FEWEST, FINE
        return are_fine(*given, self._usual_root, *aim, self.d, BALANCE)

    def fineness(self, rows: IntArray | None = None) -> FloatArray:
        """How far r of each row, or of some, may be from 0 without an effect on f."""
        return FINE * self.units(rows)

    def infeasibility(self) -> float:
        """How far u is from its box and its sum from d, beyond rounding."""
        return max(outside(self.u, self.lo, self.hi), imbalance(self.u, self.d, BALANCE))

    def update_verdict(self, tol: float) -> None:
        """A verdict on u and b, from residuals just computed afresh."""
        self.verdict = self.judged(tol)
        if self.is_bounded and self.looks is not None:
            n_bounded, moved = self.looks.n_bounded, self.looks.furthest
            self.verdict = self.verdict._replace(n_bounded=n_bounded, moved=moved)

    def judged(self, tol: float) -> Verdict:
        """The verdict at another tolerance."""
        given = self.held_r, self.u, self.t, self.lo, self.hi, self.d, self.b, tol, JUDGED
        rows = self.computed()
        common = -1.0 if rows is None or self.looks is None else self.looks.common
        found = Verdict(*verdict(*given, rows=rows, common=common))
        # with the sizes of the terms of f more may be allowed, but not what no rounding is
        self.judged_by_sizes = not found.ok and self._is_excusable(found, tol)
        if self.judged_by_sizes:
            found = Verdict(*verdict(*given, self.sizes()))
        return found

    def computed(self) -> IntArray | None:
        """Rows that the judge did not bound in the look just made; None if all are to be read."""
        return self.looks.computed if self.is_bounded and self.looks is not None else None

    def _is_excusable(self, found: Verdict, tol: float) -> bool:
        """Whether the worst violation may be rounding, as large as the sizes of f can be."""
        t, most = abs(float(self.t[found.worst])), float(self.root.max()) * self.strength()[0]
        rounding = 2.0 * JUDGED * EPSILON * (most + abs(self.b) + t)
        return found.residual <= rounding + 2.0 * tol * max(t, self.typical or abs(self.b))
