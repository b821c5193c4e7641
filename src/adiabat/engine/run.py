# SPDX-License-Identifier: BSD-3-Clause
"""One machine on its way to the new optimum: which rows it watches, and whether it has arrived.

Rows are watched near r = 0, and where something changed; what the judge finds besides is watched
from then on. A batch that makes the machine anew starts from a random part of it, or, where the
kernel has few features, from inside of all bounds (`interior`).
"""

from __future__ import annotations

import numpy as np

from adiabat._core.conditions import largest_ratio, violations, watch_nearest
from adiabat._core.rows import nonzero
from adiabat.engine.exchange import Exchange, Stuck
from adiabat.engine.landmarks import TINY
from adiabat.engine.machine import Machine
from adiabat.engine.noise import FEWEST
from adiabat.engine.part import Part
from adiabat.engine.progress import RunProgress
from adiabat.engine.screening import compute_watched
from adiabat.logs import Progress
from adiabat.typing import BoolArray, FloatArray, IntArray

# A machine that is new begins with a coarse step of all rows where these are so few, and their
# kernel matrix takes so few products; else with one of a part, and takes one of all once a part
# has shown that weights at a bound outnumber the margin.
FEW_ROWS, FEW_PRODUCTS = 1_500, 64_000_000
# Products that a coarse step of all rows may take; an exponential is so many of them.
MOST_PRODUCTS, EACH_VALUE = 5e9, 16
# Where more than this part of the rows will get weight, it asks for all kernel values at once, and
# each is then computed once for two rows.
CROWDED = 0.5
# Rows watched from the start: all, up to WATCH_ALL; else a part, those nearest to r = 0, and some
# more for each row that changes. One too few costs a turn of the judge, one too many a row of K.
WATCH_ALL = 400
# Where the judge computes few rows, so does a turn.
WATCH_PART, WATCH_LEAST, WATCH_EACH, WATCH_MOST = 12, 128, 12, 2048
# Where few rows change, others move with them as far as k(x, z) says. So of the nearest, one in so
# many of all, those are watched that are nearest for their k(x, z), about so many; and beside them
# one for so many that are the nearest whatever it is.
WATCH_FEW, WATCH_AMONG, WATCH_LIKELY, NEAREST = 8, 48, 512, 4
# Rows from which it is guessed how far the nearest are, and how many of the nearest are among them.
WATCH_GUESS, WATCH_COUNT = 128, 16
# A batch larger than this part of the machine is grown from a random part of it: by violators, at
# most so many for each row watched, and as many as the part or so many for each row with weight.
SUBSET_PART, SUBSET_LEAST, GROWTH, GROWTH_EACH = 32, 200, 3, 16
# Columns of a new machine of fewer rows have values for all of them, if in its first part more than
# one row in so many carries weight.
MANY_ROWS, MANY_WEIGHTS = 100_000, 10
# Rounds in blocks overshoot where the margin is less than the SMALL_MARGIN-th part of the rows with
# weight, unless it has LARGE_MARGIN rows and no two of them nearly depend on each other, which WEAK
# says of the least pivot; where two do, from the WEAK_MARGIN-th part on. There the path goes first
# if it is short: a few breakpoints for each row that moves, and for each of them the margin's
# answer, at itself and at all rows; SHORT_PATH is how many products that may be. Else pairs do,
# unless bounds moved and so few rows came or went that blocks may do: a part of the margin.
SMALL_MARGIN, WEAK_MARGIN, LARGE_MARGIN, WEAK = 4, 2, 128, 1e-3
SHORT_PATH, MOVED_PART = 5_000_000, 4
# Where blocks have overshot, rows go to the optimum one at a time if the margin is large, and has
# so many times the rows that move; else in pairs.
NEAR = 2
# Refinement turns once the tolerance is met, and again once rounding is reached.
REFINEMENTS = 3


class Run:
    """One machine on its way to the new optimum."""

    def __init__(
        self, machine: Machine, tol: float, touched: IntArray, fresh: bool, carried: bool,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.machine = machine
        self.tol = tol
        self.progress = None if progress is None else RunProgress(progress, machine)
        self.exchange: Exchange | None = None
        self.left_undone = False  # by the path
        self.nearly_there = False  # few rows are left to move
        self.fresh = fresh  # most rows are new: it starts from scratch
        self.carried = carried  # bounds or the sum moved, and weights with them
        self.n_moving = len(touched)  # rows that are new to the solve, in this turn
        self.overshoots = not fresh and self._is_low_rank()  # rounds in blocks do, or would
        self.whole = fresh and self._is_small()  # the coarse step is of all rows
        self.undecided = fresh and not self.whole  # whether one would help
        starts = self._grows_in_pairs() if fresh else self._starts_in_pairs()
        self.coarse = self.whole or starts
        self.crowded = False  # most rows will get weight
        self.watched = self._first_watch(touched, fresh)
        compute_watched(machine, self.watched)
        self.best = np.inf
        self.stuck = False
        self.content = 0  # turns that ended within the tolerance, but not at rounding
        self.refined = 0  # turns since it is at rounding

    def _first_watch(self, touched: IntArray, fresh: bool) -> BoolArray:
        machine = self.machine
        n = len(machine.u)
        watched = np.zeros(n, dtype=bool)
        if n <= WATCH_ALL or self.whole:
            watched[:] = True
            return watched
        if fresh:
            size = self._subset()
            # a fixed seed: the same data give the same model to the last bit
            watched[np.random.default_rng(0).permutation(touched)[:size]] = True
            return watched
        size = max(WATCH_LEAST, n // WATCH_PART)
        size = (min(size, WATCH_MOST) if machine.in_part else size) + WATCH_EACH * len(touched)
        few = 0 < len(touched) <= WATCH_FEW and size > WATCH_LIKELY
        if few and machine.in_part and machine.samples.viewed:
            self._watch_likely(watched, touched)
        else:
            self._watch_nearest(watched, size)
        watched[touched] = True
        return watched

    def _watch_nearest(self, watched: BoolArray, size: int) -> None:
        """Watch about so many rows, those nearest to r = 0."""
        machine, n = self.machine, len(watched)
        if size >= n - machine.n_margin:
            watched[:] = True
            return
        # about that many: how far the nearest are is guessed from every few rows
        step = max(1, min(n // WATCH_GUESS, size // WATCH_COUNT))
        passed = machine.in_margin.view(np.uint8)
        watch_nearest(machine.r, passed, step, size, watched.view(np.uint8))

    def _watch_likely(self, watched: BoolArray, touched: IntArray) -> None:
        """Watch rows near r = 0, and near the rows that change: those may come to violate."""
        machine, samples = self.machine, self.machine.samples
        size = WATCH_LIKELY + WATCH_EACH * len(touched)
        if samples.in_lines:  # rows that have a line are near; those that change need columns
            samples.slots(machine.at[touched])
            lined = samples.gram.members(slice(samples.gram.n_lines))
            rows = machine.straight.rows_of_some(machine.at, lined, samples.n)
            rows = rows[~machine.in_margin[rows]]
            values = samples.between
        else:
            self._watch_nearest(watched, max(machine.n // WATCH_AMONG, size))
            rows, values = np.flatnonzero(watched), samples.block
        if len(rows) <= size:
            watched[rows] = True
            return
        together = np.abs(values(machine.at[rows], machine.at[touched])).max(axis=1)
        far = np.abs(machine.r[rows])
        with np.errstate(over="ignore"):  # infinite is far
            reach = far / np.maximum(together, TINY)
        likely = np.argpartition(reach, size)[:size]
        near = np.argpartition(far, size // NEAREST)[: size // NEAREST]
        watched[:] = False
        watched[rows[likely]] = watched[rows[near]] = True

    def _subset(self) -> int:
        """How many rows of a new machine are watched first."""
        return max(SUBSET_LEAST, self.machine.n // SUBSET_PART)

    def _most_new(self) -> int:
        """How many violators may be watched from now on.

        Where few rows carry weight, few of the violators will, and one settles many like it.
        """
        watched, weighty = int(self.watched.sum()), self._n_weighty()
        return max(SUBSET_LEAST, min(GROWTH * watched, max(self._subset(), GROWTH_EACH * weighty)))

    def _is_small(self) -> bool:
        n, samples = self.machine.n, self.machine.samples
        each = 1 if samples.precomputed else samples.n_features
        return n <= FEW_ROWS and n * n * each <= FEW_PRODUCTS

    def _is_bounded(self) -> bool:
        """Whether weights at a bound outnumber the margin."""
        margin = self.machine.n_margin
        return self._n_weighty() - margin >= margin

    def _n_weighty(self) -> int:
        """How many rows carry weight."""
        machine = self.machine
        return nonzero(machine.u if machine.weighty is None else machine.u[machine.weighty])

    def _weighty_part(self) -> float:
        """The part of the rows that will get weight, estimated from those seen so far."""
        return self._n_weighty() / max(1, int(self.watched.sum()))

    def _is_affordable(self) -> bool:
        """Whether a coarse step of all rows is affordable.

        It needs the kernel values of each row that gets weight, with all others.
        """
        n, samples = self.machine.n, self.machine.samples
        each = EACH_VALUE + samples.n_features
        return self._weighty_part() * n * n * each <= MOST_PRODUCTS

    def _is_few(self) -> bool:
        """Whether so few rows move that a path is short."""
        margin, n = self.machine.n_margin, self.machine.n
        return self.n_moving * margin * (margin + n) <= SHORT_PATH

    def _is_low_rank(self) -> bool:
        """Few rows are in the margin, most weights at a bound: rounds in blocks overshoot there."""
        margin, factor = self.machine.n_margin, self.machine.factor
        weighty = self._n_weighty()
        if not 0 < margin <= weighty // WEAK_MARGIN:
            return False
        is_small = margin < LARGE_MARGIN and margin <= weighty // SMALL_MARGIN
        return is_small or factor.weakest() < WEAK

    def _starts_in_pairs(self) -> bool:
        """Whether a coarse step goes before the rounds of an update."""
        if self.overshoots:
            # else the path goes first, or blocks
            many = MOVED_PART * self.n_moving > self.machine.n_margin
            return not self._is_few() or (self.carried and many)
        many = self.machine.d == 0.0 and self.n_moving >= self._n_weighty()
        return many and self._is_bounded() and self._is_small()

    def _grows_in_pairs(self) -> bool:
        """Whether a new machine takes a coarse step of the part that it has grown to.

        With a large margin a few rounds do better. A sum other than 0 is for all rows to share.
        """
        return self.fresh and self.machine.d == 0.0 and self.machine.n_margin < LARGE_MARGIN

    def _is_near(self, n_margin: int) -> bool:
        """Whether the optimum is so near that rows go there one at a time.

        Pairs need many steps where the margin is large and its rows nearly depend on each other.
        """
        return n_margin >= max(LARGE_MARGIN, NEAR * self.n_moving)

    def _go_on(self, near: bool) -> None:
        """Blocks overshoot: one row at a time instead, or after a coarse step."""
        self.nearly_there, self.coarse = near, not near

    def path_is_short(self) -> bool:
        """Whether few rows move and the margin is small: breakpoints are few, and cheap."""
        return not self.carried and self._is_few() and self._is_low_rank()

    def descend(self, steps: int | None = None) -> bool:
        """The coarse step by itself. Who has weight then needs a column.

        Whether so many steps were enough.
        """
        self.machine.in_part, self.machine.weighty = False, None
        try:
            self._descend_on(self.machine, self.watched, steps)
        except Stuck:
            self.stuck = True
        if self.exchange is None or not self.exchange.has_landed:
            self.exchange = None
        return self.exchange is not None

    def solve(self, place: tuple[int, int] = (1, 1)) -> None:
        """One turn of exchange on the watched rows; `place` is its machine's among how many."""
        machine = self.machine
        if self.progress is not None:
            self.progress.place = place
        if self.stuck:
            return
        if self.whole:
            self.watched[:] = True
        try:
            if machine.in_part and machine.factor.holds_b() and not self.watched.all():
                rows = self._rows_to_solve()
                with Part(machine, rows) as part:
                    watched = self.watched[rows]
                    self._exchange_on(part, watched)
                self.watched[rows] = watched
            else:
                machine.weighty = None
                machine.held_r = machine.held_r.copy() if machine.in_part else machine.held_r
                self._exchange_on(machine, self.watched)
            if self.fresh and self.best == np.inf:
                self._choose_columns()
            self.whole = self.undecided and self._is_bounded() and self._is_affordable()
            self.crowded = self.whole and self._weighty_part() > CROWDED
            self.coarse, self.undecided = self.whole, self.undecided and not self.whole
        except Stuck:
            self.stuck = True  # the full check may still pass

    def _rows_to_solve(self) -> IntArray:
        """Rows that are watched, or in the margin, or carry weight, ascending."""
        watched = self.watched.copy()
        watched[self.machine.margin] = True
        watched[self.machine.rows_with_weight()] = True
        return np.flatnonzero(watched)

    def _choose_columns(self) -> None:
        """After a first part of the rows: if many carry weight, columns have values for all rows.

        Most residuals would else be computed from features in every update.
        """
        machine = self.machine
        if machine.n < MANY_ROWS and MANY_WEIGHTS * self._n_weighty() > int(self.watched.sum()):
            machine.samples.complete()

    def _exchange_on(self, machine: Machine, watched: BoolArray) -> None:
        while True:
            near = self._is_near(machine.n_margin)
            exchange = self._descend_on(machine, watched)
            exchange.solve(watched, self.nearly_there)
            if not exchange.overshoots:  # not after a coarse step
                break
            self.overshoots = True
            self._go_on(near)

    def _descend_on(
        self, machine: Machine, watched: BoolArray, steps: int | None = None
    ) -> Exchange:
        """Where exchange goes on, after a coarse step if one is wanted."""
        if self.whole:
            watched[:] = True
        if self.exchange is None:
            self.exchange = Exchange(machine, self.tol, self.progress)
        elif self.exchange.machine is not machine:
            self.exchange.turn_to(machine)
        if machine.samples.in_lines:
            machine.samples.draw(machine.at[watched | machine.in_margin])
        if self.coarse:
            if self.progress is not None:
                self.progress.tell_coarse(machine, watched | machine.in_margin)
            rows = np.flatnonzero(watched | machine.in_margin)
            self.exchange.descend(rows, self.crowded, steps)
            self.coarse = False
        return self.exchange

    def _refine(self, found: FloatArray, fine: FloatArray, rows: IntArray | slice) -> bool:
        """Whether to refine further: where weights are huge, f shows the roundings that are left.

        What it finds are rows that nearly tie with the margin.
        """
        if self.stuck or self.refined == REFINEMENTS or np.all(found <= fine):
            return False
        self._ask_for_more(1.0)
        self.watched[rows] |= found > fine
        self.refined += 1
        return True

    def _ask_for_more(self, roundings: float) -> None:
        if self.exchange is None:
            self.exchange = Exchange(self.machine, self.tol, self.progress)
        self.exchange.roundings = roundings

    def satisfied(self) -> bool:
        """After the full check: is it done? If not, watch what was found."""
        machine, computed = self.machine, self.machine.computed()
        if self.progress is not None:
            self.progress.tell_judged(self.exchange.rounds if self.exchange is not None else 0)
        rows = slice(None) if computed is None else computed
        seen = machine if computed is None else Part(machine, computed)  # others do not violate
        if machine.verdict.ok and seen.is_fine(self.tol):
            return True
        found = violations(seen.r, seen.u, seen.lo, seen.hi)
        rounding = seen.rounding(self.tol)
        aim = seen.aims(self.tol, rounding=rounding)
        worst = largest_ratio(found, aim)
        ok = machine.verdict.ok
        if ok and worst <= 1.0 and seen.infeasibility() == 0.0:
            return not self._refine(found, np.maximum(seen.fineness(), rounding), rows)
        if ok:
            self.content += 1
            if self.stuck or self.content > REFINEMENTS:
                return True
        elif worst <= 1.0:  # not enough for the full check
            self._ask_for_more(FEWEST)
        if worst > 0.5 * self.best:  # no better than before
            machine.refactor(machine.margin)
        self.best = min(worst, self.best)
        new = np.flatnonzero((found > aim) & ~self.watched[rows])
        new = new if computed is None else computed[new]
        most = self._most_new()
        if len(new) > most:
            new = np.random.default_rng(len(new)).choice(new, most, replace=False)
        self.watched[new] = True
        self.n_moving = len(new)
        self.coarse |= len(new) > 0 and self._grows_in_pairs()
        if self.overshoots and len(new):
            self._go_on(self._is_near(machine.n_margin))
        return False
