# SPDX-License-Identifier: BSD-3-Clause
"""A start near the optimum where K = XX' has few features and rows are many.

With p features at most p + 1 rows are strictly between their bounds, however many there are. All
others are at a bound. To find out at which, exchange takes hundreds of rounds; an interior point
method finds it for all rows at once (Ferris and Munson, 2002). Each step solves

    [ XX' + D   1 ] [ du ]
    [ 1'        0 ] [ db ]  =  ...         D > 0 diagonal: the distances to the bounds

by a p x p system (Woodbury), and two or three dozen steps are enough, even if rows are dependent.
Its answer is near the optimum and inside of all bounds, never the optimum: rows that it leaves
next to a bound are put there, the others are offered to MARGIN, and exchange goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from adiabat._core.conditions import typical_size
from adiabat.engine.machine import Machine
from adiabat.typing import FloatArray

# Rows from which it applies, and how many for each feature.
LEAST_ROWS, ROWS_EACH = 400, 8
# Steps of pairs that take about as long as a start from inside, for each feature.
PAIRS_EACH = 200
# Steps at most; the mean product of distance and multiplier at which it ends, as a part of targets
# times weights; how much of the way to the nearest bound a step may go.
STEPS, CLOSE, SHORT_OF = 80, 1e-12, 0.995
# Once the gap is this part of the first one, it has to fall by a tenth in one of so many steps:
# else r has no digits left, and weights would drift.
WELL_ON, PATIENCE = 1e-3, 3
# How near to its bound a row that depends on MARGIN is put there, as a part of a typical weight.
NEAR, TINY = 1e-3, 1e-150


def applies(machine: Machine) -> bool:
    """Whether there are features to go by, and rows enough."""
    if not machine.samples.by_features:
        return False
    n_features = int(machine.samples.features.shape[1])
    return machine.n >= max(LEAST_ROWS, ROWS_EACH * n_features)


def pairs_worth(machine: Machine) -> int:
    """How many steps of pairs take about as long."""
    return PAIRS_EACH * int(machine.samples.features.shape[1])


def start_inside(machine: Machine) -> None:
    """Bring u, b and MARGIN near to the optimum; r is then out of date.

    Where no point is strictly inside of all bounds with the right sum, nothing is done.
    """
    free = np.flatnonzero(machine.hi > machine.lo)
    fixed = np.flatnonzero(machine.hi <= machine.lo)
    features = machine.samples.features
    X, lo, hi = features[machine.at[free]], machine.lo[free], machine.hi[free]
    held = machine.lo[fixed]
    t = machine.t[free] - X @ (features[machine.at[fixed]].T @ held)
    d = machine.d - float(held.sum())
    if not lo.sum() < d < hi.sum():
        return
    own = np.einsum("ij,ij->i", X, X)
    with np.errstate(all="ignore"):  # what is no longer finite is not used
        at = _follow(X, t, lo, hi, d)
    # at which bound a row is: where the multiplier outweighs the distance, by what the distance
    # does to the row's own f
    unit = own + (typical_size(t) or 1.0) / (hi - lo)
    low, high = unit * at.to_lo <= at.below, unit * at.to_hi <= at.above
    machine.u[fixed], machine.weighty = held, None
    machine.u[free] = np.where(low, lo, np.where(high, hi, np.clip(at.u, lo, hi)))
    machine.b = at.b
    inside = np.flatnonzero(~low & ~high)
    spare = machine.refactor(free[inside[np.argsort(-np.minimum(at.to_lo, at.to_hi)[inside])]])
    # a row that depends on MARGIN and is near a bound is most likely at that bound
    nearest = np.where(at.to_lo < at.to_hi, lo, hi)
    far = np.zeros(machine.n)
    far[free], at_bound = np.minimum(at.to_lo, at.to_hi), machine.u.copy()
    at_bound[free] = nearest
    # weights are compared by their effect on f: a small weight of an outlier has as much
    root = np.sqrt(own)
    most = np.zeros(machine.n)
    if len(inside):
        most[free] = NEAR * np.median((root * np.abs(at.u))[inside]) / np.maximum(root, TINY)
    near = spare[far[spare] <= most[spare]]
    machine.u[near] = at_bound[near]


@dataclass
class Point:
    """Weights strictly inside of their bounds: u, b, distances to the bounds, multipliers."""

    u: FloatArray
    b: float
    to_lo: FloatArray
    to_hi: FloatArray
    below: FloatArray
    above: FloatArray

    @property
    def gap(self) -> float:
        """Mean product of distance and multiplier: 0 at the optimum."""
        total = self.below @ self.to_lo + self.above @ self.to_hi
        return float(total) / (2 * len(self.u))

    def moved(self, part: float, du: FloatArray, db: float, *d: FloatArray) -> Point:
        """A part of a step; distances are kept by themselves, so that none rounds to 0."""
        return Point(
            self.u + part * du, self.b + part * db,
            self.to_lo + part * du, self.to_hi - part * du,
            self.below + part * d[0], self.above + part * d[1],
        )  # fmt: skip

    def reach(self, du: FloatArray, d_below: FloatArray, d_above: FloatArray) -> float:
        """The largest part of a step, at most 1, that leaves everything positive."""
        least = 1.0
        pairs = (self.to_lo, du), (self.to_hi, -du), (self.below, d_below), (self.above, d_above)
        for value, change in pairs:
            falls = change < 0.0
            if falls.any():
                least = min(least, float((value[falls] / -change[falls]).min()))
        return least


def _follow(X: FloatArray, t: FloatArray, lo: FloatArray, hi: FloatArray, d: float) -> Point:
    """Mehrotra's predictor and corrector, until the gap is closed or rounding stops it."""
    u = lo + (d - lo.sum()) / (hi - lo).sum() * (hi - lo)
    f = X @ (X.T @ u)
    b = float(np.median(t - f))
    r = f + b - t
    size = typical_size(t) or 1.0
    # multipliers of the size of r from the start: where C is huge, r is
    more = max(size, float(np.abs(r).mean()))
    at = Point(u, b, u - lo, hi - u, np.maximum(r, 0.0) + more, np.maximum(-r, 0.0) + more)
    first, idle = at.gap, 0
    for _ in range(STEPS):
        weights = np.abs(at.u)
        # the mean without the largest, which may be a heavy sample's
        typical = float(weights.sum() - weights.max()) / len(weights)
        if at.gap <= CLOSE * size * typical or idle == PATIENCE:
            break
        pull, push = at.below / at.to_lo, at.above / at.to_hi
        r = X @ (X.T @ at.u) + at.b - t
        missing = d - float(at.u.sum())
        try:
            system = _System(X, pull + push)
            # the predictor says how far the gap can fall; the corrector aims at that
            du, db = system.solve(-r, missing)
            d_below, d_above = -at.below - pull * du, -at.above + push * du
            part = at.reach(du, d_below, d_above)
            aim = at.moved(part, du, db, d_below, d_above).gap ** 3 / at.gap**2
            at_low, at_high = (aim - d_below * du) / at.to_lo, (aim + d_above * du) / at.to_hi
            du, db = system.solve(-r + at_low - at_high, missing)
        except (np.linalg.LinAlgError, ValueError):  # not definite, or no longer finite
            break
        d_below, d_above = at_low - at.below - pull * du, at_high - at.above + push * du
        part = min(1.0, SHORT_OF * at.reach(du, d_below, d_above))
        further = at.moved(part, du, db, d_below, d_above)
        if not np.isfinite(further.gap):
            break
        falls = further.gap <= 0.9 * at.gap or further.gap > WELL_ON * first
        idle = 0 if falls else idle + 1
        at = further
    return at


class _System:
    """Solver of (XX' + D) du + db = q, sum du = s."""

    def __init__(self, X: FloatArray, D: FloatArray) -> None:
        self._X, self._D = X, D
        self._scaled = X / D[:, None]
        self._inner = scipy.linalg.cho_factor(np.eye(X.shape[1]) + X.T @ self._scaled)
        self._ones = self._alone(np.ones(len(D)))

    def solve(self, q: FloatArray, s: float) -> tuple[FloatArray, float]:
        """(du, db)."""
        du = self._alone(q)
        db = (float(du.sum()) - s) / float(self._ones.sum())
        return du - db * self._ones, db

    def _alone(self, q: FloatArray) -> FloatArray:
        q = q / self._D
        inner = scipy.linalg.cho_solve(self._inner, self._X.T @ q)
        return np.asarray(q - self._scaled @ inner)
