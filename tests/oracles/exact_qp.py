# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of a kernel machine to hundreds of digits, however badly it is scaled.

    minimise  1/2 u'Ku - t'u    subject to   lo <= u <= hi,   sum(u) = d          (P)

A primal active-set method. INSIDE rows are held at r = 0 by
the explicit inverse of [[0, 1'], [1, K_II]]. The row of the worst sign moves, and INSIDE with it,
until its own r is 0 (it joins), it meets its other bound, or an INSIDE row meets a bound (that one
leaves, and the motion goes on). A row that depends on INSIDE moves along the null direction. The
objective falls at every step that is not of length zero.

All of it is done to so many digits that what is zero can be told from what is small. Where a pivot
or a distance falls between, the digits are multiplied and the work is done again. The answer is
then judged from scratch: violation and duality gap, from K and u alone, and the gap bounds how far
f can be from the optimum's. K is symmetric and positive semidefinite; entries from 1e-24 to 1e120
side by side are fine, and so are boxes of any width, ties, and equal rows. A few dozen rows take
less than a second; some hundreds take seconds from the start that `near` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt
import piqp

from .batch_qp import EPS, Rows
from .exact_numbers import Exact, digits, exact, floats, is_semidefinite, product, zeros

DIGITS = (100, 400, 1600)
# Parts of the digits: below the first a quantity is zero, above the second it is not.
SURELY_ZERO, SURELY_NOT = 0.75, 0.30
NEGLIGIBLE = "1e-200"  # of its size, and zero for every purpose, however many digits there are
FORGOTTEN = "1e-60"  # of what f was on the way: no smaller f is told from zero
ACCEPTED = 1e-30  # what f may be off by, as a part of each row's own size
STEPS_PER_ROW = 60
FEASIBLE = 8.0  # roundings of a sum of doubles, by which d may miss what the boxes allow
TOL_START, SNAP, NO_BOUND = 1e-9, 1e-6, 1e29  # of the start by PIQP, in its scaled units
ROUNDINGS = 1.0  # of C w, by which the boxes are rounded: what sum(u) = d means


class Doubt(ArithmeticError):
    """A quantity is neither surely zero nor surely not: more digits are needed."""


@dataclass(frozen=True)
class ExactSolution:
    """An optimum of (P), with what shows it: all of type object, ``float(...)`` rounds."""

    u: Exact
    b: Any
    f: Exact
    b_interval: tuple[Any, Any]
    objective: Any
    violation: Any
    gap: Any
    f_error: Exact
    size: Exact
    inside: npt.NDArray[np.bool_]
    steps: int
    digits: int

    @property
    def fixed(self) -> bool:
        """Whether a row strictly inside its box fixes b."""
        return bool(self.inside.any())


def solve(
    K: Exact | Callable[[], Exact],
    rows: Rows,
    at: npt.ArrayLike | None = None,
    start: Any = None,
    *,
    check: bool = True,
) -> ExactSolution:
    """The optimum of (P), and the middle of the interval of b.

    Parameters
    ----------
    K
        The kernel matrix, of doubles or to any digits; or a function that makes it, called anew
        when digits are added.
    rows
        t, lo, hi and d: doubles, taken as they are.
    at
        Which row and column of K each row of (P) stands for; by default the same one.
    start
        Weights to start from; by default 0, or what reaches the sum.
    check
        Whether K is tested for being positive semidefinite first; ArithmeticError if it is not.
    """
    reason: Exception | None = None
    for count in DIGITS:
        with digits(count):
            values = K() if callable(K) else exact(K)
            work = _Work(values, rows, at, count)
            if check and not is_semidefinite(values, work.zero):
                raise ArithmeticError("K is not positive semidefinite: (P) has no unique optimum")
            try:
                work.run(start)
                return work.judged()
            except Doubt as doubt:
                reason = doubt
    raise ArithmeticError(f"{DIGITS[-1]} digits do not suffice: {reason}")


def bias_range(
    K: Exact | Callable[[], Exact], rows: Rows, at: Any, best: ExactSolution
) -> tuple[Any, Any]:
    """Where b may be if sum(u) = d only to the rounding of the boxes C w themselves.

    Boxes of 0.1 and of 0.3 do not balance in truth, and leave a row inside by 1e-17 that fixes b.

    -b is the slope of the optimum over d, which is convex: b falls as d grows, and its intervals at
    d - slack and d + slack enclose all others.
    """
    lo, hi = exact(rows.lo), exact(rows.hi)
    slack = ROUNDINGS * EPS * float(sum(abs(best.u), gmpy2.mpfr(abs(rows.d))))
    ends = []
    with digits(best.digits):
        for d in (gmpy2.mpfr(rows.d) + slack, gmpy2.mpfr(rows.d) - slack):
            d = min(max(d, sum(lo, gmpy2.mpfr(0))), sum(hi, gmpy2.mpfr(0)))
            ends.append(solve(K, rows._replace(d=d), at, best.u, check=False))
    known = [best.b, *(b for end in ends for b in end.b_interval if gmpy2.is_finite(b))]
    return min(known), max(known)


def near(K: npt.ArrayLike, rows: Rows, at: Any = None) -> npt.NDArray[np.float64]:
    """Weights near the optimum, to start from where rows are many: by PIQP on the scaled problem.

    Each row is scaled by a power of two near the root of its own kernel value, v = s u, so that the
    matrix has a diagonal near 1; the sum becomes that of v / s. What PIQP leaves within a millionth
    of a bound is put there.
    """
    K = np.asarray(K, np.float64)
    at = np.arange(len(rows.t)) if at is None else np.asarray(at)
    own = np.diagonal(K)[at]
    s = 2.0 ** np.round(0.5 * np.log2(np.where(own > 0.0, own, 1.0)))
    lo, hi = np.maximum(rows.lo * s, -NO_BOUND), np.minimum(rows.hi * s, NO_BOUND)
    ones = (1.0 / s) / np.max(1.0 / s)
    solver: Any = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = TOL_START
    solver.setup(
        np.asfortranarray(K[np.ix_(at, at)] / s[:, None] / s[None, :]),
        -rows.t / s,
        np.asfortranarray(ones[None, :]),
        np.array([float(rows.d) / np.max(1.0 / s)]),
        x_l=lo,
        x_u=hi,
    )
    solver.solve()
    v = np.clip(np.nan_to_num(np.array(solver.result.x)), lo, hi)
    edge = SNAP * np.minimum(hi - lo, np.maximum(1.0, np.abs(v).max()))
    u = np.where(v <= lo + edge, rows.lo, np.where(v >= hi - edge, rows.hi, v / s))
    return np.clip(u, rows.lo, rows.hi)


class _Work:
    """One attempt at (P), to a given number of digits."""

    def __init__(self, K: Exact, rows: Rows, at: Any, count: int) -> None:
        n = len(rows.t)
        self.K, self.n, self.count = K, n, count
        self.at = np.arange(n) if at is None else np.asarray(at)
        self.t, self.lo, self.hi = exact(rows.t), exact(rows.lo), exact(rows.hi)
        self.d = gmpy2.mpfr(rows.d)
        self.zero = max(gmpy2.mpfr(10) ** -int(SURELY_ZERO * count), gmpy2.mpfr(NEGLIGIBLE))
        self.not_zero = gmpy2.mpfr(10) ** -int(SURELY_NOT * count)
        self.own = np.diagonal(K)[self.at]
        self.rng = np.random.default_rng(0)
        self.steps = 0
        self.largest = abs(self.t)

    # -- the active set --------------------------------------------------------------------------

    def run(self, start: Any) -> None:
        """From a start to the optimum."""
        self.u = self._feasible(start)
        self.free = np.flatnonzero(self.lo < self.hi)
        if len(self.free) == 0:
            self.held: list[int] = []
            self.r, self.b = self._f() - self.t, gmpy2.mpfr(0)
            return
        self.b = gmpy2.mpfr(0)
        self.r = self._f() - self.t
        self._hold(self._first())
        stalled = 0
        while True:
            wrong = self._worst(stalled > 2)
            if wrong is None:
                return
            moved = self._drive(wrong)
            stalled = 0 if moved else stalled + 1
            if self.steps > STEPS_PER_ROW * (self.n + 10):
                raise ArithmeticError("the active set cycles")

    def _feasible(self, start: Any) -> Exact:
        u = zeros(self.n) if start is None else exact(start)
        u = np.minimum(np.maximum(u, self.lo), self.hi)
        lacking = self.d - sum(u, gmpy2.mpfr(0))
        for row in np.argsort(-floats(self.hi - self.lo), kind="stable"):
            if lacking == 0:
                break
            move = min(max(lacking, self.lo[row] - u[row]), self.hi[row] - u[row])
            u[row] += move
            lacking = self.d - sum(u, gmpy2.mpfr(0))
        if abs(lacking) > FEASIBLE * EPS * sum(abs(u), abs(self.d)):
            raise ValueError(f"d={float(self.d)} is outside of what the boxes allow")
        self.d -= lacking  # boxes that sum to d in doubles, and not quite in truth
        return u

    def _first(self) -> int:
        """A row inside its box, or the one that asks for the largest b."""
        room = np.minimum(self.u - self.lo, self.hi - self.u)[self.free]
        if max(room) > 0:
            return int(self.free[np.argmax(room / (self.hi - self.lo)[self.free])])
        rising = [row for row in self.free if self.u[row] < self.hi[row]] or list(self.free)
        return int(min(rising, key=lambda row: self.r[row]))

    def _hold(self, row: int) -> None:
        """Make one row INSIDE, alone."""
        one, none = gmpy2.mpfr(1), gmpy2.mpfr(0)
        self.held = [row]
        self.inverse = np.array([[-self.own[row], one], [one, none]], dtype=object)
        self.b -= self.r[row]
        self.r = self.r - self.r[row]

    def _worst(self, at_random: bool) -> int | None:
        """The row whose r has the most wrong sign, in units of its own kernel value."""
        wrong: list[tuple[float, int]] = []
        size = None
        for row in self.free:
            r = self.r[row]
            if r == 0 or row in self.held:
                continue
            if (r < 0 and self.u[row] < self.hi[row]) or (r > 0 and self.u[row] > self.lo[row]):
                size = self._sizes_so_far() if size is None else size
                if not self._is_zero(r, size[row], "r"):
                    scale = gmpy2.sqrt(self.own[row]) if self.own[row] > 0 else gmpy2.mpfr(1)
                    wrong.append((float(gmpy2.log(abs(r) / scale)), int(row)))
        if not wrong:
            return None
        if at_random:
            return wrong[self.rng.integers(len(wrong))][1]
        return max(wrong)[1]

    def _drive(self, row: int) -> bool:
        """Move a row until its r is 0 or it meets a bound; whether anything moved at all."""
        moved = False
        up = 1 if self.r[row] < 0 else -1
        while True:
            self.steps += 1
            column = np.concatenate([[gmpy2.mpfr(1)], self.K[self.at[self.held], self.at[row]]])
            w, terms = product(self.inverse, column), product(abs(self.inverse), abs(column))
            pivot = self.own[row] - product(column, w)
            dependent = self._is_zero(pivot, self._distance(row), "pivot")
            room = self.hi[row] - self.u[row] if up > 0 else self.u[row] - self.lo[row]
            step = room if dependent else min(room, abs(self.r[row]) / pivot)
            blocking = None
            for place, other in enumerate(self.held):
                rate = -up * w[1 + place]
                if abs(rate) <= self.zero * terms[1 + place]:
                    continue
                bound = self.hi[other] if rate > 0 else self.lo[other]
                reach = abs(bound - self.u[other])
                limit = reach / abs(rate)
                if limit < step:
                    step, blocking = limit, place
            moved = moved or step > 0
            self._move(row, up, w, step)
            if blocking is not None:
                other = self.held[blocking]
                self.u[other] = self.hi[other] if -up * w[1 + blocking] > 0 else self.lo[other]
                if len(self.held) == 1:
                    self._hold(row)
                    return moved
                self._release(blocking)
                continue
            if step == room:
                self.u[row] = self.hi[row] if up > 0 else self.lo[row]
                if dependent or abs(self.r[row]) > self.zero * self._sizes_so_far()[row]:
                    return moved
            self._join(row, w, pivot)
            return moved

    def _move(self, row: int, up: int, w: Exact, step: Any) -> None:
        if step == 0:
            return
        self.u[row] += up * step
        change = zeros(len(self.K))
        change[self.at[row]] += up * step
        for place, other in enumerate(self.held):
            move = -up * step * w[1 + place]
            self.u[other] += move
            change[self.at[other]] += move
        shift = -up * step * w[0]
        self.b += shift
        touched = np.flatnonzero(change != 0)
        self.r = self.r + product(self.K[:, touched], change[touched])[self.at] + shift
        for other in self.held:
            self.r[other] = gmpy2.mpfr(0)

    def _join(self, row: int, w: Exact, pivot: Any) -> None:
        m = len(self.inverse)
        grown = np.empty((m + 1, m + 1), dtype=object)
        grown[:m, :m] = self.inverse + np.outer(w, w) / pivot
        grown[m, :m] = grown[:m, m] = -w / pivot
        grown[m, m] = 1 / pivot
        self.inverse = grown
        self.held.append(row)
        self.r[row] = gmpy2.mpfr(0)

    def _release(self, place: int) -> None:
        k = 1 + place
        keep = [i for i in range(len(self.inverse)) if i != k]
        column = self.inverse[keep, k]
        rest = self.inverse[np.ix_(keep, keep)]
        self.inverse = rest - np.outer(column, column) / self.inverse[k, k]
        del self.held[place]

    # -- what is zero ----------------------------------------------------------------------------

    def _is_zero(self, value: Any, size: Any, what: str) -> bool:
        if size == 0 or abs(value) <= self.zero * size:
            return True
        if abs(value) <= self.not_zero * size:
            raise Doubt(f"a {what} of {float(value / size):.1e} of its size")
        return False

    def _distance(self, row: int) -> Any:
        """The squared distance to the nearest INSIDE row, which no pivot exceeds."""
        held = self.at[self.held]
        cross = self.K[held, self.at[row]]
        return max(gmpy2.mpfr(0), min(self.own[row] + np.diagonal(self.K)[held] - 2 * cross))

    def _f(self) -> Exact:
        weight = zeros(len(self.K))
        for place, u in zip(self.at, self.u, strict=True):
            weight[place] += u
        return product(self.K, weight)[self.at]

    def _sizes(self) -> Exact:
        """For each row sum_j |k_ij u_j| + |b| + |t_i|: what the rounding of r is relative to."""
        weight = zeros(len(self.K))
        for place, u in zip(self.at, self.u, strict=True):
            weight[place] += abs(u)
        return product(abs(self.K), weight)[self.at] + abs(self.b) + abs(self.t)

    def _sizes_so_far(self) -> Exact:
        """The largest that these were on the way: r carries the rounding of all of it."""
        self.largest = np.maximum(self.largest, self._sizes())
        return self.largest

    # -- the judge -------------------------------------------------------------------------------

    def judged(self) -> ExactSolution:
        """The answer with its evidence, from K and u alone."""
        self._refine()
        so_far = self._sizes_so_far()
        size = self._sizes() + gmpy2.mpfr(FORGOTTEN) * so_far
        inside = np.zeros(self.n, dtype=bool)
        for row in self.free:
            unit = self.hi[row] - self.lo[row]
            if self.own[row] > 0 and size[row] > 0:
                unit = min(unit, size[row] / self.own[row])
            bound = min((self.lo[row], self.hi[row]), key=lambda end, u=self.u[row]: abs(u - end))
            if self._is_zero(self.u[row] - bound, unit, "distance from a bound"):
                self.u[row] = bound
            inside[row] = self.lo[row] < self.u[row] < self.hi[row]
        q = self.t - self._f()
        infinite = gmpy2.inf()
        low = max((q[i] for i in range(self.n) if self.u[i] < self.hi[i]), default=-infinite)
        high = min((q[i] for i in range(self.n) if self.u[i] > self.lo[i]), default=infinite)
        if 0 < low - high <= ACCEPTED * min(size):
            low = high = (low + high) / 2
        b = _middle(low, high)
        r = b - q
        violation = max([gmpy2.mpfr(0), low - high])
        up, down = np.maximum(r, gmpy2.mpfr(0)), np.maximum(-r, gmpy2.mpfr(0))
        lacking = self.d - sum(self.u, gmpy2.mpfr(0))
        gap = sum(up * (self.u - self.lo) + down * (self.hi - self.u), gmpy2.mpfr(0))
        gap += abs(b * lacking)
        f_error = np.array([gmpy2.sqrt(2 * gap * own) for own in self.own], dtype=object)
        if violation > 0 or any(f_error > ACCEPTED * size):
            raise Doubt(f"violation {float(violation):.1e}, gap {float(gap):.1e}")
        objective = product(self.u, -q - self.t) / 2
        return ExactSolution(
            self.u, b, b - q + self.t, (low, high), objective, violation, gap, f_error, size,
            inside, self.steps, self.count,
        )  # fmt: skip

    def _refine(self) -> None:
        """Take out what the inverse has gathered of rounding, twice."""
        for _ in range(2 if self.held else 0):
            self.r = self._f() + self.b - self.t
            lacking = self.d - sum(self.u, gmpy2.mpfr(0))
            step = product(self.inverse, np.concatenate([[lacking], -self.r[self.held]]))
            self.b += step[0]
            for place, row in enumerate(self.held):
                moved = self.u[row] + step[1 + place]
                self.u[row] = min(max(moved, self.lo[row]), self.hi[row])


def _middle(low: Any, high: Any) -> Any:
    """The middle of an interval; its finite end where one is not; 0 where none is."""
    if gmpy2.is_finite(low) and gmpy2.is_finite(high):
        return (low + high) / 2
    if gmpy2.is_finite(low) or gmpy2.is_finite(high):
        return low if gmpy2.is_finite(low) else high
    return gmpy2.mpfr(0)
