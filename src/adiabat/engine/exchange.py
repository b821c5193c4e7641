# SPDX-License-Identifier: BSD-3-Clause
"""Exchange: to the new optimum by rounds in which many rows change sets at once.

A round (a primal-dual active set step, in blocks):

1. *face*: solve the margin system, so that r = 0 on MARGIN and sum u = d. Rows that leave their box
   stop at its edge and leave MARGIN; solve again until none does.
2. *look*: residuals of the watched rows; who violates?
3. *violators' own problem*: their Schur complement on the margin, H = S + p'p/z'z, and the box
   problem min 1/2 d'Hd + r'd over them. Who ends at a bound goes there, who ends between joins
   MARGIN, unless it depends on MARGIN: then it rests where it is, and r = 0 holds it there.

Without a margin the rows' own problem keeps sum u = d by itself (pairs, as in SMO).

Only *watched* rows are looked at; the judge looks at all of them afterwards and its findings are
watched next. That is how `fit` grows a subset, and why an update reads a small part of the kernel.

Rounds in blocks have no guarantee: on data of low rank they may cycle. After a few rises of the
objective, or too many rounds, they are undone (`overshoots`), and the caller goes on by a coarse
step of pairs of rows (`descend`) or, near the optimum, in *single file*: one violator at a time,
each step cut where the first row meets its bound. The objective then falls at every step, so that
no set of MARGIN rows comes back, even if rows are dependent (the primal active set method). It is
also the last resort where rounds after a coarse step do not converge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat._core.pairs import Pairs, pairwise_descent
from adiabat._core.rounds import NEGATIVE, Rounds
from adiabat.engine.machine import AT_BOUND, BALANCE, Machine
from adiabat.engine.merged import Merged
from adiabat.engine.noise import ROUNDINGS
from adiabat.engine.progress import RunProgress
from adiabat.engine.row_change import NO_VALUES
from adiabat.errors import IndefiniteKernelError
from adiabat.typing import BoolArray, FloatArray, IntArray

# Curvature below this part of the diagonal counts as none; below minus NEGATIVE it is a fault.
FLAT = 1e-12
# Violators taken into one round, at least and at most; in between, half the margin.
FEWEST, MOST = 128, 1024
# Pair moves for each row of a group, and rounds in trouble before single file.
PAIRS = 20
REGROUPS = 30
# Steps in single file for each row, at most.
MOST_STEPS = 50
# Rises of the objective, and rounds in blocks, before the rest is done in single file.
PATIENCE = 3
BLOCK_ROUNDS = 40
# The coarse step ends where rows differ by this part of the spread of targets, or after so many
# steps for each row. Kernel values are kept in so many bytes; those of a row that is wanted come
# with a few others, the more the more features there are to be read for them.
COARSE, MOST_PAIRS, CACHE = 1e-5, 100, 1 << 29
EACH_AHEAD, LEAST_AHEAD, MOST_AHEAD = 6, 4, 8
# Rows whose kernel values are asked for all at once; those of a user's function, which may be slow
# to call.
FEW_AT_ONCE, FEW_CALLED = 200, 1_500


class Stuck(Exception):
    """The bound on work was met; the state is to be restored."""


class Exchange:
    """Rounds on one machine."""

    def __init__(self, machine: Machine, tol: float, progress: RunProgress | None = None) -> None:
        self.tol = tol
        self._progress = progress
        self.rounds = 0
        self.single_file = False
        self.fell_back = False
        self.roundings = ROUNDINGS  # so many roundings of f are accepted
        self.overshoots = False  # blocks do not converge: a coarse step is wanted
        self._landed: tuple[IntArray, float] | None = None  # rows and b after a coarse step
        self._rises = 0
        self._width = MOST
        self.turn_to(machine)

    def turn_to(self, machine: Machine) -> None:
        """Go on with a machine, or other rows of it, whose residuals are up to date."""
        self.machine = machine
        self._rounds = Rounds(machine.samples, machine.n, AT_BOUND, machine.refactor)
        self.accuracy = NO_VALUES  # the violation accepted, by row
        self._bound: tuple[FloatArray | None, ...] = None, None
        self._bind()
        self._rounds.enter_boxes()

    def _bind(self) -> None:
        """Bind the machine's arrays, which may have been replaced since the last turn."""
        m = self.machine
        u, r = m.u, m.r
        if u is self._bound[0] and r is self._bound[1]:
            return
        self._bound = u, r
        self._rounds.bind(m.factor, u, m.lo, m.hi, r, m.at, m.in_margin, m.root)

    # -- the loop --------------------------------------------------------------------------------

    def solve(self, watched: BoolArray, nearly_there: bool = False) -> None:
        """Rounds until no watched row violates; raises `Stuck`. Rows that move are watched too.

        `nearly_there` says that the optimum is near: it starts in single file.
        """
        machine, rounds = self.machine, self._rounds
        self._bind()
        self.overshoots = False
        descended = self._take_stock()
        if not descended:  # to come back to if blocks lead away from the optimum
            rounds.keep(machine.b)
        rounds.start()
        feasible = False
        trouble = 0
        self.single_file = nearly_there
        near = watched.copy()
        rested = rounds.measure(machine.d)
        self._set_accuracy()
        # at rest: new rows only came in with u = 0, and the margin system is solved as it is
        rested = rested and rounds.at_rest(self.accuracy)
        first, surveyed = 0, False
        if not nearly_there and self._rises <= PATIENCE and self._progress is None:
            if self._settle(watched, near, rested):
                return
            first, surveyed = rounds.made - rounds.is_open, rounds.is_open
            feasible, rested = rounds.made > 1, rested and rounds.made < 2
        for turn in range(first, BLOCK_ROUNDS + MOST_STEPS * (machine.n + 10)):
            self.rounds += not surveyed
            if self._progress is not None:
                self._progress.tell_round(machine, watched, self.rounds)
            troubled = turn >= BLOCK_ROUNDS or self._rises > PATIENCE
            trouble += troubled
            if trouble > REGROUPS:
                self.single_file = self.fell_back = True
            if surveyed:
                anchored = rounds.anchored
            else:
                anchored = self._survey(watched, near, rested, troubled or self.single_file)
            if not rested:
                self._raise_accuracy()
            rested = surveyed = False
            if troubled and not (descended or self.single_file):
                self._return()
                self.overshoots = True
                return
            if feasible and rounds.gain > 0.0:
                self._rises += 1
                self._width = max(1, self._width // 2)
            feasible = feasible or anchored
            if not anchored:
                moved = self._seed()
            elif troubled and not self.single_file:
                moved = self._regroup()
            else:
                moved = self._exchange()
            if not moved:
                return
        raise Stuck

    def _return(self) -> None:
        """Go back, with nobody in MARGIN: r of the rows that rounds left aside is known again."""
        machine = self.machine
        machine.b = self._rounds.come_back()
        machine.refactor(machine.margin[:0])
        self._rises, self._width = 0, MOST

    def _set_accuracy(self) -> None:
        """Set the violations accepted, from the present weights."""
        self.accuracy = self.machine.aims(self.tol, self.roundings)
        self._rounds.set_unseen(self.accuracy)
        self._strength = self._rounds.strength

    def _raise_accuracy(self) -> None:
        """Allow for rounding in r from the largest weights since it was last recomputed."""
        if self._rounds.strength > 2.0 * self._strength:
            before = self.accuracy
            self._set_accuracy()
            np.maximum(self.accuracy, before, out=self.accuracy)

    def _settle(self, watched: BoolArray, near: BoolArray, rested: bool) -> bool:
        """Rounds in blocks, up to one that calls for a decision; True if no row violates."""
        machine, rounds = self.machine, self._rounds
        rounds.b = machine.b
        done = rounds.settle(
            watched, near, self.accuracy, machine.d, rested, BLOCK_ROUNDS, FEWEST, self._width, FLAT
        )
        machine.b = rounds.b
        self.rounds += rounds.made
        self._refuse_negative(rounds.least)
        return done

    def _survey(self, watched: BoolArray, near: BoolArray, rested: bool, everyone: bool) -> bool:
        """The optimum on the face of MARGIN, and residuals there; False if nobody holds b."""
        machine, rounds = self.machine, self._rounds
        rounds.b = machine.b
        anchored = rounds.survey(watched, near, machine.d, rested, self.single_file, everyone)
        machine.b = rounds.b
        return anchored

    # -- violators -------------------------------------------------------------------------------

    def _exchange(self) -> bool:
        """Move violators to a bound or into MARGIN; False if there are none."""
        machine, rounds = self.machine, self._rounds
        if self.single_file:
            rounds.b = machine.b
            found = rounds.step_aside(self.accuracy, FLAT)
            machine.b = rounds.b
        else:
            width = min(self._width, max(FEWEST, machine.factor.size // 2))
            found = rounds.exchange(self.accuracy, width, FLAT)
        self._refuse_negative(rounds.least)
        return found

    def _join(self, chosen: IntArray, rows: IntArray) -> BoolArray:
        machine = self.machine
        joined: BoolArray = machine.factor.admit(chosen, rows[chosen])
        self._refuse_negative(machine.factor.least_pivot)
        came = rows[chosen[joined]]
        machine.in_margin[came] = True
        machine.samples.slots(machine.at[came])
        return joined

    def _refuse_negative(self, curvature: float) -> None:
        if curvature < -NEGATIVE:
            raise IndefiniteKernelError(
                f"kernel={self.machine.samples.kernel.name!r} is not positive semidefinite on "
                f"this data: a direction of curvature {curvature:.3g} (relative to "
                "k(x, x)) was met, so the problem has no unique optimum. Use a positive "
                "semidefinite kernel."
            )

    # -- no margin yet ---------------------------------------------------------------------------

    def _seed(self) -> bool:
        """Find a margin that holds b: balance sum u, then move pairs; False if none violates."""
        machine, rows = self.machine, self._rounds.rows
        if not self._rounds.measure(machine.d):
            self._balance(self._rounds.missing)
            return True
        r, accuracy = machine.r[rows], self.accuracy[rows]
        can_rise, can_fall = machine.u[rows] < machine.hi[rows], machine.u[rows] > machine.lo[rows]
        rising, falling = r + accuracy, r - accuracy  # r is known to `accuracy`
        lowest = float(np.min(rising[can_rise], initial=np.inf))
        highest = float(np.max(falling[can_fall], initial=-np.inf))
        if not lowest < highest:
            return False
        middle = 0.5 * (lowest + highest)
        risers = rows[can_rise & (rising < middle)]
        fallers = rows[can_fall & (falling >= middle)]
        half = MOST // 2
        rows = np.concatenate(
            [
                most_of(risers, -machine.r[risers], half),
                most_of(fallers, machine.r[fallers], half),
            ]
        )
        self._pair_up(rows, machine.r[rows].copy(), highest - lowest)
        return True

    def _regroup(self) -> bool:
        """Violators and the whole margin in pairs; False if none violates.

        For data of low rank, where the margin is small and most rows end at a bound.
        """
        machine = self.machine
        rows, violation = self._rounds.violators(self._rounds.rows, self.accuracy)
        if len(rows) == 0:
            return False
        margin = machine.margin.copy()
        rows = most_of(rows, violation, MOST)
        gradient = np.concatenate([self._rounds.residual[margin], machine.r[rows]])
        machine.refactor(margin[:0])
        self._pair_up(np.concatenate([margin, rows]), gradient, float(np.abs(gradient).max()))
        return True

    def _pair_up(self, rows: IntArray, gradient: FloatArray, span: float) -> None:
        """The rows' own problem with sum u kept, by pairs; who ends between forms the margin."""
        machine = self.machine
        margin = machine.margin.copy()
        own = machine.samples.among(machine.at[rows])
        cross = machine.samples.between(machine.at[rows], machine.at[margin])
        lo, hi, u = machine.lo[rows], machine.hi[rows], machine.u[rows]
        diagonals = own.diagonal()[:, None] + own.diagonal()
        curvature = (diagonals - 2.0 * own) / (diagonals + machine.factor.shift)
        self._refuse_negative(float(curvature.min(initial=0.0)))
        # the curvature once outliers in MARGIN are eliminated
        schur, _ = machine.factor.prepare(cross, own)
        steps = PAIRS * len(rows) + 100
        d = pairwise_descent(
            schur.copy(), gradient.copy(), lo - u, hi - u, steps, FLAT, 1e-3 * span
        )
        new = np.where(d <= lo - u, lo, np.where(d >= hi - u, hi, u + d))
        machine.u[rows] = new
        self._rounds.delta[rows] += new - u
        if len(margin):
            self._rounds.residual[margin] += (new - u) @ cross
        between = np.flatnonzero((new > lo) & (new < hi))
        joined = self._join(between, rows)
        inside = between[joined]
        self._rounds.residual[rows[inside]] = gradient[inside] + own[inside] @ (new - u)

    def descend(self, rows: IntArray, crowded: bool = False, steps: int | None = None) -> None:
        """The coarse step: rows in pairs, as SMO does, until few are left to move.

        Each step moves two rows and reads their kernel values alone, so that thousands find their
        bound in little time. Who ends between bounds forms the margin, and rounds do the rest:
        `solve` goes on from there, unless so many steps were not enough. Until then no row has
        been given a column. Where it is `crowded`, most rows will get weight.
        """
        machine, rounds = self.machine, self._rounds
        self._rises, self._width = 0, MOST
        self._bind()
        rounds.start()
        if machine.factor.size:
            machine.refactor(machine.margin[:0])
        if not rounds.measure(machine.d):
            self._balance(rounds.missing)
        self._rounds.look(rows)
        square = machine.samples.square
        if square is not None:
            rows = square.sorted(rows, machine.at[rows])
        before = machine.u[rows]
        merged = Merged(machine, rows)
        at = machine.at[merged.rows]
        own = machine.samples.diagonal[at]
        n_features = machine.samples.n_features
        ahead = min(max(LEAST_AHEAD, n_features // EACH_AHEAD), MOST_AHEAD)
        few = FEW_CALLED if machine.samples.kernel.function is not None else FEW_AT_ONCE
        if crowded and 8 * len(at) ** 2 <= CACHE:
            few = len(at)
        pairs = Pairs(
            merged.r, merged.u, merged.lo, merged.hi, own, FLAT, CACHE, ahead, few, merged.jump,
            machine.samples.gram.memory, machine.samples.gram.panels,
        )  # fmt: skip
        spread = float(np.ptp(machine.t[rows])) or float(np.ptp(machine.r[rows]))
        most = MOST_PAIRS * len(rows) if steps is None else steps
        done = pairs.descend(COARSE * spread, most, machine.samples.values_among(at))
        self._keep_columns(pairs, at, (pairs.u > merged.lo) & (pairs.u < merged.hi))
        merged.split(pairs.u)
        self._rounds.delta[rows] += machine.u[rows] - before
        self._landed = (rows, pairs.middle) if done or steps is None else None

    @property
    def has_landed(self) -> bool:
        """Whether rounds go on where a coarse step ended."""
        return self._landed is not None

    def _take_stock(self) -> bool:
        """Residuals after a coarse step, and the margin that it found; False if there was none."""
        if self._landed is None:
            return False
        machine, (rows, middle), self._landed = self.machine, self._landed, None
        self._rounds.look(rows)
        machine.b -= middle
        machine.r[rows] -= middle
        u = machine.u[rows]
        machine.refactor(rows[(u > machine.lo[rows]) & (u < machine.hi[rows])])
        return True

    def _keep_columns(self, pairs: Pairs, at: IntArray, between: BoolArray) -> None:
        """Keep kernel values of rows that end with weight as columns, if all samples took part.

        Those of rows that end between their bounds first: they stand in front of the others.
        """
        samples = self.machine.samples
        if len(at) != samples.n or samples.by_features:
            return
        places = np.flatnonzero(pairs.u)
        places = places[(samples.gram.slot_of[at[places]] < 0) & pairs.given(places)]
        places = np.concatenate([places[between[places]], places[~between[places]]])
        order = np.argsort(at, kind="stable")

        def write(some: slice, everyone: IntArray, tops: Any, step: int) -> None:
            pairs.write(places[some], order[everyone], tops, step)

        samples.keep(at[places], write)

    def _balance(self, missing: float) -> None:
        """Bring sum u to d by the rows that raise the objective least."""
        machine = self.machine
        room = machine.hi - machine.u if missing > 0 else machine.u - machine.lo
        slope = machine.r if missing > 0 else -machine.r
        rise = 0.5 * machine.root**2 * np.minimum(room, abs(missing))
        order = np.argsort(slope + rise, kind="stable")
        order = order[room[order] > 0.0]
        reach = np.cumsum(room[order])
        rounding = BALANCE * (self._rounds.weight + abs(machine.d))
        if len(order) == 0 or reach[-1] < abs(missing) - rounding:
            raise Stuck
        last = int(np.searchsorted(reach, abs(missing)))
        last = min(last, len(order) - 1)
        move = room[order[: last + 1]].copy()
        move[-1] = min(move[-1], abs(missing) - (reach[last - 1] if last else 0.0))
        rows = order[: last + 1]
        signed = move if missing > 0 else -move
        machine.u[rows] = np.where(
            move >= room[rows], (machine.hi if missing > 0 else machine.lo)[rows],
            machine.u[rows] + signed,
        )  # fmt: skip
        self._rounds.delta[rows] += signed
        margin = machine.margin
        if len(margin):
            self._rounds.residual[margin] += machine.kernel(margin, rows) @ signed


def most_of(rows: IntArray, amount: FloatArray, most: int) -> IntArray:
    """The rows with the largest amounts, at most so many."""
    if len(rows) <= most:
        return rows
    return rows[np.argpartition(-amount, most - 1)[:most]]
