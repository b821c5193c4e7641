# SPDX-License-Identifier: BSD-3-Clause
"""The papers in plain NumPy: adding and removing rows along the exact path of optima.

The state is an optimum of (P): minimise 1/2 u'Ku - t'u, lo <= u <= hi, sum(u) = 0, over the rows
that are in, with u = y alpha, r = K u + b - t and CP01's g = y r. All rows that will ever come are
given at the start, as a pool; those not in have u = 0 and a residual that tells what they would
meet.

Driven rows, one or many, move in one motion [KT09 (3), (4)]::

    ENTERING   du = eta (far - u),  far = hi where r < 0, lo where r > 0
    LEAVING    du = - eta u                               eta in [0, 1] from the current point

and the MARGIN rows M answer so that their r and sum(u) stay 0 [CP01 (6), KT09 (7)]::

    [ 0   1'   ] [ db   ]       [ 1'du_driven          ]
    [ 1   K_MM ] [ du_M ]  =  - [ K_M,driven du_driven ]

until the first of these breakpoints [CP01 section 2.3, KT09 (8), (9)]: a MARGIN row meets a bound
(it is then BOUND there, LOWER or UPPER); the r of a BOUND row reaches 0 (it joins MARGIN); the r of
an ENTERING row reaches 0 (it joins MARGIN, settled); eta = 1 (every driven row arrives). While
MARGIN is empty, b moves alone until a row reaches r = 0 and joins [LGKM06 section 4.1, KT09 section
3.3].

``increment`` and ``decrement`` are Algorithms 1 and 2 of CP01 with its recursive inverse (13),
(14); ``move`` is KT09 with a fresh solve at every breakpoint. For rows in general position (no
ties, K_MM regular) only.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

TOL_RATE = 1e-13  # a rate below this part of the largest one is no movement
TOL_TIE = 1e-12  # with equal C a margin row may meet its bound just where eta = 1
TOL_INSIDE = 1e-10  # a row this part of its width from a bound is at it
TOL_BALANCE = 1e-12  # |sum of the driven rates| below this part of their size is balance
BREAKPOINTS_PER_ROW = 50  # beyond this the data were degenerate after all


class Kind(IntEnum):
    """Where a row of the pool is."""

    ABSENT = 0
    LOWER = 1
    UPPER = 2
    MARGIN = 3
    ENTERING = 4
    LEAVING = 5


class Event(Enum):
    """What ends a stretch of the path."""

    START = "start"
    MARGIN_MEETS_BOUND = "margin meets bound"
    BOUND_JOINS_MARGIN = "bound joins margin"
    ENTERING_JOINS_MARGIN = "entering joins margin"
    BIAS_MOVES = "bias moves until a row joins the margin"
    ARRIVE = "driven rows arrive"
    CENTRE_BIAS = "no row holds the bias: middle of its interval"


class Sizes(NamedTuple):
    """How many rows are in each set."""

    lower: int
    upper: int
    margin: int
    entering: int
    leaving: int


@dataclass(frozen=True)
class Breakpoint:
    """What happened (``row`` is -1 where no single row did it), and all rows just after."""

    event: Event
    row: int
    step: float
    u: Vector
    r: Vector
    b: float
    sizes: Sizes

    def g(self, y: npt.ArrayLike) -> Vector:
        """CP01's margins g = y r."""
        return np.asarray(y, dtype=np.float64) * self.r


@dataclass
class Path:
    """An optimum over some rows of a pool, and the motions that keep it one."""

    K: Matrix
    t: Vector
    lo: Vector
    hi: Vector
    u: Vector = field(init=False)
    b: float = field(init=False, default=0.0)
    kind: npt.NDArray[np.int_] = field(init=False)
    far: Vector = field(init=False)
    R: Matrix = field(init=False)
    order: list[int] = field(init=False, default_factory=list)
    trace: list[Breakpoint] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.u, self.far = np.zeros(len(self.t)), np.zeros(len(self.t))
        self.kind = np.full(len(self.t), int(Kind.ABSENT))
        self.R = np.zeros((1, 1))

    @property
    def r(self) -> Vector:
        """r = K u + b - t for every row of the pool, from u and not from differences."""
        return self.K @ self.u + self.b - self.t

    def rows(self, *kinds: Kind) -> Rows:
        """The rows in any of these sets."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    @property
    def members(self) -> Rows:
        """The rows that are in and stay."""
        return self.rows(Kind.LOWER, Kind.UPPER, Kind.MARGIN)

    # -- one row at a time: CP01 ---------------------------------------------------------------

    def increment(self, c: int) -> list[Breakpoint]:
        """Algorithm 1: row c comes in."""
        begin = self._start([c], [])
        while self.kind[c] == Kind.ENTERING:
            self._advance(c)
        return self._finish(begin)

    def decrement(self, c: int) -> list[Breakpoint]:
        """Algorithm 2 to its end, alpha_c = 0: row c goes out."""
        begin = self._start([], [c])
        while self.kind[c] == Kind.LEAVING:
            self._advance(c)
        return self._finish(begin)

    def leave_one_out(self, c: int) -> tuple[bool, float]:
        """Algorithm 2 as a test: (is c on its side without itself, its g then); nothing changes.

        The loop ends early, as in step 3(a), when g_c < -1; g_c is then an upper bound of its last
        value.
        """
        y = 1.0 if self.t[c] > 0 else -1.0
        trial = copy.deepcopy(self)
        trial._start([], [c])
        while trial.kind[c] == Kind.LEAVING and y * trial.r[c] >= -1.0:
            trial._advance(c)
        if trial.kind[c] == Kind.ABSENT:
            trial._finish(len(trial.trace))
        g = y * float(trial.r[c])
        return g >= -1.0, g

    def _advance(self, c: int) -> None:
        """One breakpoint with c the only driven row: (8)-(12) with the recursive inverse R."""
        if not self.order:
            self._move_bias(self._rates())
            return
        beta = -self.R @ self._border(c)  # (10)
        du, drive = np.zeros_like(self.u), self._rates()[c]
        du[self.order], du[c] = beta[1:] * drive, drive  # (9)
        self._step(du, float(beta[0] * drive))  # (8); (11), (12) in the ratio test

    def _border(self, k: int) -> Vector:
        """[1, K_sk] over the margin rows s, in the order of R."""
        return np.concatenate([[1.0], self.K[self.order, k]])

    def _join(self, k: int) -> None:
        """Row k joins MARGIN: R grows by (13); from nothing, R = [[0, 1], [1, K_kk]]^-1."""
        self.kind[k] = Kind.MARGIN
        if not self.order:
            self.R = np.array([[-self.K[k, k], 1.0], [1.0, 0.0]])
        else:
            beta = -self.R @ self._border(k)
            gamma = self.K[k, k] + beta @ self._border(k)
            beta = np.append(beta, 1.0)
            self.R = np.pad(self.R, (0, 1)) + np.outer(beta, beta) / gamma
        self.order.append(k)

    def _drop(self, k: int, to: Kind) -> None:
        """Row k leaves MARGIN: R shrinks by (14)."""
        self.kind[k] = to
        p = self.order.index(k) + 1
        keep = np.arange(len(self.order) + 1) != p
        self.order.remove(k)
        if self.order:
            column = self.R[keep, p]
            self.R = self.R[np.ix_(keep, keep)] - np.outer(column, column) / self.R[p, p]
        else:
            self.R = np.zeros((1, 1))

    # -- many rows at once: KT09 ---------------------------------------------------------------

    def move(self, enter: npt.ArrayLike = (), leave: npt.ArrayLike = ()) -> list[Breakpoint]:
        """Rows come in and go out in one motion."""
        coming, going = np.asarray(enter, np.intp), np.asarray(leave, np.intp)
        begin = self._start(coming.tolist(), going.tolist())
        while len(self.rows(Kind.ENTERING, Kind.LEAVING)):
            du = self._rates()
            if not self.order:
                self._move_bias(du)
                continue
            m = self.order
            system = np.ones((len(m) + 1, len(m) + 1))  # M of (7)
            system[0, 0], system[1:, 1:] = 0.0, self.K[np.ix_(m, m)]
            phi = np.linalg.solve(system, -np.append(du.sum(), self.K[m] @ du))  # (10)
            du[m] = phi[1:]
            self._step(du, float(phi[0]))
        return self._finish(begin)

    # -- what both share -----------------------------------------------------------------------

    def _start(self, enter: list[int], leave: list[int]) -> int:
        """Mark the driven rows; those that are at rest where they are take no part."""
        begin, r = len(self.trace), self.r
        for k in leave:
            if self.kind[k] == Kind.MARGIN:
                self._drop(k, Kind.LEAVING)
            self.kind[k] = Kind.LEAVING if self.u[k] != 0.0 else Kind.ABSENT
        for k in enter:
            at_rest_low = self.lo[k] == 0.0 and (r[k] >= 0.0 or self.hi[k] == 0.0)
            at_rest_high = self.hi[k] == 0.0 and r[k] <= 0.0
            self.kind[k] = (
                Kind.LOWER if at_rest_low else Kind.UPPER if at_rest_high else Kind.ENTERING
            )
            self.far[k] = self.hi[k] if r[k] < 0.0 else self.lo[k]
        self._record(Event.START, -1, 0.0)
        return begin

    def _rates(self) -> Vector:
        """du of the driven rows for eta = 1: far - u, and - u [KT09 (3), (4)]; 0 elsewhere."""
        du = np.zeros_like(self.u)
        e, gone = self.rows(Kind.ENTERING), self.rows(Kind.LEAVING)
        du[e], du[gone] = self.far[e] - self.u[e], -self.u[gone]
        return du

    def _waiting(self) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """BOUND and ENTERING rows, which wait for r = 0, and whether they do so from above."""
        rows = self.rows(Kind.LOWER, Kind.UPPER, Kind.ENTERING)
        rows = rows[self.lo[rows] < self.hi[rows]]
        falling = (self.kind[rows] == Kind.ENTERING) & (self.far[rows] == self.lo[rows])
        return rows, falling | (self.kind[rows] == Kind.LOWER)

    def _step(self, du: Vector, db: float) -> None:
        """The ratio test: go to the first breakpoint along (du, db); its row changes sets."""
        r, dr = self.r, self.K @ du + db  # (11) of either paper
        tol_u, tol_r = TOL_RATE * np.abs(du).max(), TOL_RATE * np.abs(dr).max()
        eta = np.full(len(r), np.inf)
        for i in self.order:
            if abs(du[i]) > tol_u:
                eta[i] = ((self.hi if du[i] > 0.0 else self.lo)[i] - self.u[i]) / du[i]
        for i, above in zip(*self._waiting(), strict=True):
            towards_zero = -dr[i] if above else dr[i]
            if towards_zero > tol_r:
                eta[i] = max(r[i] if above else -r[i], 0.0) / towards_zero
        row = int(np.argmin(eta))
        step = 1.0 if eta[row] >= 1.0 - TOL_TIE else max(0.0, float(eta[row]))
        self.u, self.b = self.u + step * du, self.b + step * db
        if step == 1.0:
            self._arrive()
        elif self.kind[row] == Kind.MARGIN:
            self.u[row] = (self.hi if du[row] > 0.0 else self.lo)[row]
            self._drop(row, Kind.UPPER if du[row] > 0.0 else Kind.LOWER)
            self._record(Event.MARGIN_MEETS_BOUND, row, step)
        else:
            entering = self.kind[row] == Kind.ENTERING
            self._join(row)
            event = Event.ENTERING_JOINS_MARGIN if entering else Event.BOUND_JOINS_MARGIN
            self._record(event, row, step)

    def _arrive(self) -> None:
        """eta = 1: ENTERING rows are at their far bounds, LEAVING rows are out."""
        for i in self.rows(Kind.ENTERING):
            self.u[i] = self.far[i]
            self.kind[i] = Kind.UPPER if self.far[i] == self.hi[i] else Kind.LOWER
        gone = self.rows(Kind.LEAVING)
        self.u[gone], self.kind[gone] = 0.0, int(Kind.ABSENT)
        self._record(Event.ARRIVE, -1, 1.0)

    def _move_bias(self, du: Vector) -> None:
        """MARGIN is empty: b rises or falls until the first row has r = 0, and that row joins.

        The driven rows change sum(u) at the rate delta [KT09 (13)]; a margin row has to take up -
        delta. b rises for delta > 0: the rows that then come to r = 0 from below are those that can
        give way. For delta = 0 either direction will do; where no row waits on either side nothing
        holds b, and the driven rows go alone.
        """
        delta, r = float(du.sum()), self.r
        balanced = abs(delta) <= TOL_BALANCE * np.abs(du).sum()
        waiting, above = self._waiting()
        for side in [~above, above] if balanced else [~above if delta > 0.0 else above]:
            if np.any(side):
                row = int(waiting[side][np.argmin(np.abs(r[waiting[side]]))])
                self.b -= float(r[row])
                self._join(row)
                self._record(Event.BIAS_MOVES, row, 0.0)
                return
        if not balanced:
            raise RuntimeError("no row can balance sum(u): the state was no optimum")
        self._step(du, 0.0)

    def _finish(self, begin: int) -> list[Breakpoint]:
        """Where no row is strictly inside its bounds, b takes the middle of its interval."""
        s, m = self.members, np.array(self.order, dtype=np.intp)
        near = TOL_INSIDE * (self.hi - self.lo)[m]
        if not np.any((self.u[m] > self.lo[m] + near) & (self.u[m] < self.hi[m] - near)):
            for k in list(self.order):
                upper = bool(self.u[k] - self.lo[k] > self.hi[k] - self.u[k])
                self.u[k] = self.hi[k] if upper else self.lo[k]
                self._drop(k, Kind.UPPER if upper else Kind.LOWER)
            q = (self.t - self.K @ self.u)[s]
            low = np.max(q[self.u[s] < self.hi[s]], initial=-np.inf)
            high = np.min(q[self.u[s] > self.lo[s]], initial=np.inf)
            ends = [end for end in (low, high) if np.isfinite(end)]
            self.b = float(np.mean(ends)) if ends else 0.0
            self._record(Event.CENTRE_BIAS, -1, 0.0)
        return self.trace[begin:]

    def _record(self, event: Event, row: int, step: float) -> None:
        if len(self.trace) > BREAKPOINTS_PER_ROW * max(20, len(self.t)):
            raise RuntimeError("too many breakpoints: the rows are not in general position")
        kinds = (Kind.LOWER, Kind.UPPER, Kind.MARGIN, Kind.ENTERING, Kind.LEAVING)
        sizes = Sizes(*(int(np.count_nonzero(self.kind == k)) for k in kinds))
        self.trace.append(Breakpoint(event, row, step, self.u.copy(), self.r, self.b, sizes))
