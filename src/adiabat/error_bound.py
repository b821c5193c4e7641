# SPDX-License-Identifier: BSD-3-Clause
"""How far f may be from that of the exact optimum: a bound from residuals without rounding.

No line is shared with the engine, which it judges as `certificate` does. NumPy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

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
# Times that the bound of a linear system's solution is made sharper.
SHARPENINGS = 8
# Kernel values that are held at a time, where all rows take part.
VALUES = 1 << 24
# Rows are doubles where |k(x, z)| is within this part of its most.
DOUBLES = 1e-9
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
) -> FloatArray:
    """How far f may be from the optimum's, row by row; `own` are the rows' k(x, x).

    Where k(x, z) = <x, z>, `features` are the rows x, and no kernel value is rounded either.

    For any (w, b) the gap bounds the distance to the optimum, 1/2 |w - w*|^2 <= gap. From the
    model's own residuals that is coarse: the gap of a model that is exact to rounding is a sum of
    roundings, and its root is large. So residuals are summed without rounding where they matter,
    a few Newton steps lead from the model to a point whose gap is far smaller, and the length of
    the steps is added. All of it is kept beside u, which has no digits left for it.

    Given |w - w*|, b is bounded by the sum of u: were b* larger than b by more than that explains,
    all rows near r = 0 would have r > 0, hence be at lo, and the sum could not be d.

    Where boxes are far larger than the weights in them even that gap is large. If no two sets of
    rows could be confused, the optimum itself is then enclosed (`_enclosed`).
    """
    if len(r) == 0:
        return np.zeros(0)
    noise = roundings(problem, sizes)
    near = _near_zero(problem, r, noise)
    root = np.sqrt(own)
    rounded = noise / 8.0  # who computes f rounds, too
    if len(near) * int(np.count_nonzero(problem.u)) > MOST_PRODUCTS:
        return rounded + _by_gap(problem, Nearer(r, noise, np.zeros(len(r))), root)
    system = _exactly(problem, near, block, features)
    bound = np.full(len(r), np.inf)
    for wide in (False, True):
        at = _towards_optimum(problem, r, noise, root, near, system, wide)
        least = rounded + at.moved
        if not wide:
            bound = least + _by_gap(problem, at, root)
        if np.all(bound <= 2.0 * least) or len(near) == 0:
            break
        bound = np.minimum(bound, least + _enclosed(problem, at, near, block))
    return bound


def _by_gap(problem: Problem, at: Nearer, root: FloatArray) -> FloatArray:
    """How far f may be from the optimum's at a point, by the gap there."""
    beyond = math.sqrt(2.0 * _largest_gap(problem, at))
    return np.asarray(root * beyond + _bias_error(problem, at.r, at.doubt + root * beyond, beyond))


@dataclass
class Nearer:
    """A point nearer to the optimum than the model: its residuals, and how well they are known.

    `moved` is how far f is from the model's there; `du` are the steps of the rows near r = 0, and
    `missing` is what the sum of u lacks after them.
    """

    r: FloatArray
    doubt: FloatArray
    moved: FloatArray
    du: FloatArray = field(default_factory=lambda: np.zeros(0))
    missing: float = 0.0


@dataclass
class System:
    """The rows near r = 0, without rounding: their r, their K, and what the sum of u lacks."""

    r: FloatArray
    K: FloatArray
    missing: float


def _largest_gap(problem: Problem, at: Nearer) -> float:
    """The gap for whichever sign r has within its doubt.

    The gap bounds |w - w*| for any b. So where all weights are at a bound, and b at the end of its
    interval, b is moved inside of it.
    """
    u, lo, hi = problem.u, problem.lo, problem.hi
    r = at.r
    if np.all((u == lo) | (u == hi)):
        least = float(np.max(-r[u < hi], initial=-np.inf))
        most = float(np.min(-r[u > lo], initial=np.inf))
        far = 4.0 * float(np.max(at.doubt))
        if math.isinf(least) or math.isinf(most):
            least, most = (most - far, most) if math.isinf(least) else (least, least + far)
        if math.isfinite(least + most):
            r = r + 0.5 * (least + most)
    down, up = np.maximum(r + at.doubt, 0.0), np.maximum(at.doubt - r, 0.0)
    return float(np.sum(np.maximum(down * (u - lo), up * (hi - u))))


def _enclosed(problem: Problem, at: Nearer, near: IntArray, block: Block) -> FloatArray:
    """How far f of the optimum may be from that point's, row by row; inf where it is not known.

    The rows strictly inside their boxes are held at r = 0 by a linear system. If it is regular,
    its solution differs from the point by no more than the system's inverse makes of their
    residuals. If these weights are in their boxes, and no other row's r can have the wrong sign,
    they fulfil the conditions of the optimum, hence are it.
    """
    nowhere = np.full(len(problem.u), np.inf)
    u, lo, hi = problem.u, problem.lo, problem.hi
    # distances, as u + du may round to the bound
    below, above = at.du - (lo - u)[near], (hi - u)[near] - at.du
    inside = (below > 0.0) & (above > 0.0)
    rows = near[inside]
    if len(rows) == 0:
        return nowhere
    off = np.append(np.abs(at.r[rows]) + at.doubt[rows], abs(at.missing))
    reach = _solution_size(block(rows, rows), off)
    if reach is None:
        return nowhere
    du, db = reach[:-1], float(reach[-1])
    if np.any(du > (1.0 - 1e-10) * np.minimum(below, above)[inside]):
        return nowhere
    every, some = np.arange(len(u)), max(1, VALUES // len(rows))
    parts = [np.abs(block(every[i : i + some], rows)) @ du for i in range(0, len(u), some)]
    error = np.concatenate(parts) * (1.0 + 1e-10) + db
    others = np.ones(len(u), dtype=bool)
    others[rows] = False
    others &= hi > lo
    low = u - lo <= hi - u
    low[near] = below <= above
    away = np.where(low, at.r, -at.r)  # positive where the sign is right
    return error if np.all((away >= at.doubt + error)[others]) else nowhere


def _solution_size(K: FloatArray, off: FloatArray) -> FloatArray | None:
    """Bounds of |du|, |db| with K du + db = q, sum du = s, for all |q|, |s| up to `off`.

    None if the system is not known to be regular.
    """
    m = len(K)
    system = np.zeros((m + 1, m + 1))
    system[:m, :m] = K
    system[m, :m] = system[:m, m] = 1.0
    # Powers of two round nothing: rows by sqrt k(x, x) or a typical one, b by its inverse.
    size = np.sqrt(K.diagonal())
    typical = float(np.median(size)) or 1.0
    size = np.append(np.maximum(size, typical), 1.0 / typical)
    scale = 2.0 ** -np.round(np.log2(size))
    scaled = system * scale[:, None] * scale
    try:
        with np.errstate(all="ignore"):  # of a singular system it may not be finite
            inverse = np.linalg.inv(scaled)
            rest = np.abs(np.eye(m + 1) - inverse @ scaled)
            rest += 2.0 * (m + 2) * EPSILON * (np.abs(inverse) @ np.abs(scaled))
            lack = float(np.max(rest.sum(axis=1)))
    except np.linalg.LinAlgError:
        return None
    if not lack < 0.5:
        return None
    first = np.abs(inverse) @ (off * scale)
    found = first + np.max(first) * lack / (1.0 - lack)
    for _ in range(SHARPENINGS):  # each row by its own part of what the inverse lacks
        found = first + rest @ found
    return np.asarray(found * scale * (1.0 + 1e-10))


def _near_zero(problem: Problem, r: FloatArray, noise: FloatArray) -> IntArray:
    """Rows with room, whose r should be 0 or might have either sign."""
    u, lo, hi = problem.u, problem.lo, problem.hi
    doubtful = ((r < noise) & (u < hi)) | ((r > -noise) & (u > lo))
    return np.flatnonzero(doubtful)


def _exactly(problem: Problem, near: IntArray, block: Block, features: FloatArray | None) -> System:
    """The system of the rows near r = 0."""
    u, t = problem.u, problem.t
    weighty = np.flatnonzero(u)
    if features is None:
        r = _exact_residuals(block(near, weighty), u[weighty], problem.b, t[near])
    else:
        w = _weighted_rows(u[weighty], features[weighty])
        r = _exact_residuals(np.tile(features[near], 2), w, problem.b, t[near])
    return System(r, block(near, near), -math.fsum([*u.tolist(), -problem.d]))


def _towards_optimum(
    problem: Problem,
    r: FloatArray,
    noise: FloatArray,
    root: FloatArray,
    near: IntArray,
    system: System,
    wide: bool,
) -> Nearer:
    """A few Newton steps on the rows near r = 0.

    With `wide` those at a bound take part as well: in the optimum they may be beside it by less
    than u could show.
    """
    start, K, missing = system.r, system.K, system.missing
    u, lo, hi = problem.u[near], problem.lo[near], problem.hi[near]
    down, up = lo - u, hi - u  # how far u may go
    also = _beside(K, (down < 0.0) & (up > 0.0)) if wide else np.zeros(len(near), dtype=bool)
    du, db, q = np.zeros(len(near)), 0.0, start
    best = np.inf
    kept = du, db, q
    for _ in range(STEPS if len(near) else 0):
        free = ((du > down) & (du < up)) | ((q > 0.0) & (du > down)) | ((q < 0.0) & (du < up))
        gap = float(np.abs(q) @ np.where(q > 0.0, du - down, up - du))
        if not gap < best and not wide:
            break
        best, kept = gap, (du, db, q)
        rows = np.flatnonzero(also if wide else free)
        if len(rows) == 0 or gap == 0.0:
            break
        lacks = missing - math.fsum(du.tolist())
        step, shift = _newton(K[np.ix_(rows, rows)], -q[rows], lacks)
        du, db = du.copy(), db + shift
        du[rows] = np.clip(du[rows] + step, down[rows], up[rows])
        q = start + K @ du + db
    du, db, q = kept
    left, doubt = r.copy(), noise.copy()
    away = math.sqrt(max(0.0, float(du @ (K @ du))))
    moved = root * away + abs(db)
    doubt += moved
    left[near] = q
    doubt[near] = 8.0 * EPSILON * (np.abs(start) + np.abs(K) @ np.abs(du) + abs(db))
    moved[near] = np.abs(r[near] - q)
    return Nearer(left, doubt, moved, du, missing - math.fsum(du.tolist()))


def _beside(K: FloatArray, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The rows inside their boxes, and those at a bound that are no others' doubles."""
    root = np.sqrt(K.diagonal())
    root = np.where(root > 0.0, root, 1.0)
    alike = np.abs(K[:, inside] / root[:, None] / root[inside]) >= 1.0 - DOUBLES
    return np.asarray(inside | ~alike.any(axis=1))


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
