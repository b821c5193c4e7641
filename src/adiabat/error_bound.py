# SPDX-License-Identifier: BSD-3-Clause
"""How far f may be from that of the exact optimum: a bound from residuals without rounding.

No line is shared with the engine, which it judges as `certificate` does. NumPy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from adiabat.certificate import EPSILON, Problem, roundings

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
#: Kernel values between rows, by their numbers.
Block = Callable[[IntArray, IntArray], FloatArray]

# Products of which sums without rounding are made, at most; beyond, f_error is coarser.
MOST_PRODUCTS = 20_000_000
# Steps towards the exact optimum from which f_error is read.
STEPS = 5
# What is added to the scaled margin system to make its inverse; the steps refine it away.
RIDGE = 1e-14
_SPLITTER = 2.0**27 + 1.0  # splits a float64 into two halves of 26 bits (Dekker)


def error_bound(
    problem: Problem,
    r: FloatArray,
    sizes: FloatArray,
    own: FloatArray,
    block: Block,
    features: FloatArray | None = None,
) -> float:
    """How far f may be from the optimum's at any row; `own` are the rows' k(x, x).

    Where k(x, z) = <x, z>, `features` are the rows x, and no kernel value is rounded either.

    For any (w, b) the gap bounds the distance to the optimum, 1/2 |w - w*|^2 <= gap. From the
    model's own residuals that is coarse: the gap of a model that is exact to rounding is a sum of
    roundings, and its root is large. So residuals are summed without rounding where they matter,
    a few Newton steps lead from the model to a point whose gap is far smaller, and the length of
    the steps is added. All of it is kept beside u, which has no digits left for it.

    Given |w - w*|, b is bounded by the sum of u: were b* larger than b by more than that explains,
    all rows near r = 0 would have r > 0, hence be at lo, and the sum could not be d.
    """
    if len(r) == 0:
        return 0.0
    noise = roundings(problem, sizes)
    near = _near_zero(problem, r, noise)
    if len(near) * int(np.count_nonzero(problem.u)) > MOST_PRODUCTS:
        away, db, left = 0.0, 0.0, r.copy()
        uncertain = noise
        exact = np.zeros(len(r), dtype=bool)
    else:
        exact = np.zeros(len(r), dtype=bool)
        exact[near] = True
        away, db, left, uncertain = _towards_optimum(problem, r, noise, own, near, block, features)
    u, lo, hi = problem.u, problem.lo, problem.hi
    # whichever sign r has within its uncertainty
    free_down, free_up = u - lo, hi - u
    worst = np.maximum(
        np.maximum(left + uncertain, 0.0) * free_down, np.maximum(uncertain - left, 0.0) * free_up
    )
    beyond = math.sqrt(2.0 * float(np.sum(worst)))
    root = np.sqrt(own)
    b_error = _bias_error(problem, left, uncertain + root * beyond, beyond)
    moved = np.where(exact, np.abs(r - left), root * away + abs(db))
    # who computes f rounds, too
    return float(np.max(moved + root * beyond + noise / 8.0, initial=0.0)) + b_error


def _near_zero(problem: Problem, r: FloatArray, noise: FloatArray) -> IntArray:
    """Rows with room, whose r should be 0 or might have either sign."""
    u, lo, hi = problem.u, problem.lo, problem.hi
    doubtful = ((r < noise) & (u < hi)) | ((r > -noise) & (u > lo))
    return np.flatnonzero(doubtful)


def _towards_optimum(
    problem: Problem,
    r: FloatArray,
    noise: FloatArray,
    own: FloatArray,
    near: IntArray,
    block: Block,
    features: FloatArray | None,
) -> tuple[float, float, FloatArray, FloatArray]:
    """(|dw|, db, residuals there, how well these are known) of a point nearer to the optimum."""
    u, t, lo, hi = problem.u, problem.t, problem.lo, problem.hi
    left, uncertain = r.copy(), noise.copy()
    if len(near) == 0:
        return 0.0, 0.0, left, uncertain
    weighty = np.flatnonzero(u)
    if features is None:
        start = _exact_residuals(block(near, weighty), u[weighty], problem.b, t[near])
    else:
        w = _weighted_rows(u[weighty], features[weighty])
        start = _exact_residuals(np.tile(features[near], 2), w, problem.b, t[near])
    missing = -math.fsum([*u.tolist(), -problem.d])
    K = block(near, near)
    down, up = lo[near] - u[near], hi[near] - u[near]  # how far u may go
    du, db, q = np.zeros(len(near)), 0.0, start
    best = np.inf
    kept = du, db, q
    known = 0.0
    for _ in range(STEPS):
        free = ((du > down) & (du < up)) | ((q > 0.0) & (du > down)) | ((q < 0.0) & (du < up))
        room = np.where(q > 0.0, du - down, up - du)
        gap = float(np.abs(q) @ room)
        if not gap < best:
            break
        best, kept = gap, (du, db, q)
        if not free.any() or gap == 0.0:
            break
        rows = np.flatnonzero(free)
        step, shift = _newton(K[np.ix_(rows, rows)], -q[rows], missing - math.fsum(du.tolist()))
        du, db = du.copy(), db + shift
        du[rows] = np.clip(du[rows] + step, down[rows], up[rows])
        q = start + K @ du + db
    du, db, q = kept
    known = 8.0 * EPSILON * (np.abs(start) + np.abs(K) @ np.abs(du) + abs(db))
    left[near], uncertain[near] = q, known
    away = math.sqrt(max(0.0, float(du @ (K @ du))))
    root = np.sqrt(own)
    elsewhere = np.ones(len(u), dtype=bool)
    elsewhere[near] = False
    uncertain[elsewhere] += root[elsewhere] * away + abs(db)
    return away, db, left, uncertain


def _newton(K: FloatArray, q: FloatArray, s: float) -> tuple[FloatArray, float]:
    """(du, db) with K du + db = q and sum du = s, nearly; K may be singular."""
    shift = float(np.median(K.diagonal())) or 1.0
    shifted = K + shift
    scale = 1.0 / np.sqrt(shifted.diagonal())
    scaled = shifted * scale[:, None] * scale
    scaled[np.diag_indices(len(q))] += RIDGE * len(q)
    inverse = np.linalg.inv(scaled) * scale[:, None] * scale
    ones = inverse.sum(axis=1)
    du = inverse @ q
    db = (float(du.sum()) - s) / float(ones.sum())
    return du - db * ones, db + shift * s


def _exact_residuals(K: FloatArray, u: FloatArray, b: float, t: FloatArray) -> FloatArray:
    """K u + b - t, each rounded once; nan where it overflows."""
    return np.array([_sum([*_terms(row, u), b, -t[i]]) for i, row in enumerate(K)])


def _weighted_rows(u: FloatArray, X: FloatArray) -> FloatArray:
    """U'X to twice the precision: of each column the sum, and what it rounds away."""
    terms = [_terms(column, u) for column in X.T]
    sums = [_sum(own) for own in terms]
    rests = [_sum([*own, -total]) for own, total in zip(terms, sums, strict=True)]
    return np.concatenate([sums, rests])


def _sum(terms: list[float]) -> float:
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return math.nan


def _terms(a: FloatArray, b: FloatArray) -> list[float]:
    """Numbers whose sum is a'b exactly (Dekker)."""
    product, a_high, b_high = a * b, _upper_half(a), _upper_half(b)
    error = (a_high * b_high - product) + a_high * (b - b_high)
    error += (a - a_high) * b_high
    error += (a - a_high) * (b - b_high)
    return [*product.tolist(), *error.tolist()]


def _upper_half(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = _SPLITTER * values
        return np.asarray(scaled - (scaled - values))


def _bias_error(problem: Problem, r: FloatArray, doubt: FloatArray, beyond: float) -> float:
    """How far b may be from the optimum's, where each r may be off by `doubt`."""
    u, lo, hi = problem.u, problem.lo, problem.hi
    force = hi > lo
    if not force.any():
        return abs(problem.b)
    r, doubt, u, lo, hi = r[force], doubt[force], u[force], lo[force], hi[force]
    above = _reach(-(r - doubt), u - lo, hi - u)
    below = _reach(r + doubt, hi - u, u - lo)
    if beyond == 0.0 and np.all((u == lo) | (u == hi)):
        # a corner: b has an interval, and its middle is taken, or its only end, or 0
        if math.isinf(above) and math.isinf(below):
            return abs(problem.b)
        middle = 0.0 if math.isinf(above) or math.isinf(below) else 0.5 * (above - below)
        near = min(above, below) if math.isinf(above) or math.isinf(below) else abs(middle)
        return near + float(np.max(doubt, initial=0.0))
    return max(above, below, 0.0)


def _reach(turns: FloatArray, gives: FloatArray, takes: FloatArray) -> float:
    """The least rise of b after which sum u could not be d any more.

    A row gives weight for certain once b has risen by more than `turns`; before, it may take.
    """
    order = np.argsort(turns)
    given = np.cumsum(gives[order]) - (float(takes.sum()) - np.cumsum(takes[order]))
    rounding = 4.0 * EPSILON * float(np.sum(np.abs(gives)) + np.sum(np.abs(takes)))
    certain = np.flatnonzero(given > rounding)
    return max(0.0, float(turns[order[certain[0]]])) if len(certain) else math.inf
