# SPDX-License-Identifier: BSD-3-Clause
"""The optimum of a kernel machine, from scratch, by a general QP solver.

Every formulation is one problem in u (u_i = y_i alpha_i for a classifier)::

    minimise  1/2 u'Ku - t'u    subject to   lo <= u <= hi,   sum(u) = d          (P)

with multiplier b of the equality, decision values f = K u + b and residuals r = f - t. Optimal is::

    u_i = lo_i  =>  r_i >= 0,     u_i = hi_i  =>  r_i <= 0,     lo_i < u_i < hi_i  =>  r_i = 0.

Written for b alone, with q = t - K u (so r = b - q): rows that may still rise (u < hi) ask b >=
q_i, rows that may still fall (u > lo) ask b <= q_i, so that u is optimal if and only if ::

    b_low = max{q_i : u_i < hi_i}   <=   b_high = min{q_i : u_i > lo_i}.

The middle of that interval is the b of every solution here: a row strictly inside its bounds makes
the interval a point, and where rounding leaves b_low above b_high the middle makes the worst
violation smallest.

An interior point solver (PIQP, or Clarabel where it is installed) finds the sets; a short primal
active-set polish, with residuals in extended precision, finds the digits.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import piqp

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

EPS = float(np.finfo(np.float64).eps)
TOL_SOLVER = 1e-13  # asked of the interior point solver, on the scaled problem
TOL_SOLVER_LOOSE = 1e-10  # asked again where the first is out of reach
TOL_POLISHED = (
    1e-14  # violation, relative to the sizes of f and u, at which no other start is tried
)
TOL_TRUSTED = 1e-12  # the same, above which the answer is refused
MAX_STALLS = 3  # full steps of the polish without a better point before it ends
TOL_FEASIBLE = 1e-9  # |d - what the bounds allow|, relative to the widths
INSIDE_MARGIN = 1e-6  # a row counts as surely inside its bounds beyond this part of its width
NARROW_INTERVAL = 1e-9  # width of the interval of b below which b counts as unique
POLISH_STEPS_PER_ROW = 1

HAVE_CLARABEL = importlib.util.find_spec("clarabel") is not None


class Rows(NamedTuple):
    """What a formulation contributes to (P), without the kernel."""

    t: Vector
    lo: Vector
    hi: Vector
    d: float


@dataclass(frozen=True)
class Solution:
    """An optimum of (P) with the figures that show that it is one."""

    u: Vector
    b: float
    f: Vector
    r: Vector
    objective: float
    b_interval: tuple[float, float]
    kkt_violation: float
    duality_gap: float
    unique_f: bool
    solver: str

    def decide(self, K_new: Matrix) -> Vector:
        """f(x) = sum_i u_i k(x, x_i) + b, for the rows of ``K_new`` = k(X_new, X)."""
        return np.asarray(K_new @ self.u + self.b, dtype=np.float64)


def svc_rows(y: npt.ArrayLike, C: float, sample_weight: npt.ArrayLike | None = None) -> Rows:
    """t = y; [lo, hi] = [0, C w] where y = +1 and [-C w, 0] where y = -1; d = 0."""
    sign = np.asarray(y, dtype=np.float64)
    weight = np.ones_like(sign) if sample_weight is None else np.asarray(sample_weight, np.float64)
    cap = C * weight
    return Rows(sign.copy(), np.where(sign > 0, 0.0, -cap), np.where(sign > 0, cap, 0.0), 0.0)


# ---------------------------------------------------------------------------------------------
# Judging a point


def exact_product(K: Matrix, u: Vector) -> npt.NDArray[np.longdouble]:
    """K u with the sums in extended precision, where the platform has it."""
    product: npt.NDArray[np.longdouble] = K.astype(np.longdouble) @ u.astype(np.longdouble)
    return product


def at_bounds(lo: Vector, hi: Vector, u: Vector, slack: float = 8 * EPS) -> tuple[Mask, Mask]:
    """Rows at lo and rows at hi, up to rounding of the bound itself; a fixed row is at both."""
    size = slack * np.maximum(np.abs(lo), np.abs(hi))
    return u <= lo + size, u >= hi - size


def bias_interval(
    K: Matrix, t: Vector, lo: Vector, hi: Vector, u: Vector, slack: float = 8 * EPS
) -> tuple[float, float]:
    """(max{q : u < hi}, min{q : u > lo}), q = t - K u; infinite where no row asks."""
    q = np.asarray(t - exact_product(K, u), dtype=np.float64)
    low, high = at_bounds(lo, hi, u, slack)
    return float(np.max(q[~high], initial=-np.inf)), float(np.min(q[~low], initial=np.inf))


def middle(interval: tuple[float, float]) -> float:
    """The middle of the interval of b; its finite end where one is infinite; 0 where both are."""
    low, high = interval
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low if np.isfinite(low) else high if np.isfinite(high) else 0.0


def kkt_violation(
    K: Matrix,
    t: Vector,
    lo: Vector,
    hi: Vector,
    d: float,
    u: Vector,
    b: float,
    slack: float = 8 * EPS,
) -> float:
    """The worst of: u outside its box; |sum(u) - d|; r < 0 where u < hi; r > 0 where u > lo."""
    if len(u) == 0:
        return abs(d)
    r = np.asarray(exact_product(K, u) + b - t, dtype=np.float64)
    low, high = at_bounds(lo, hi, u, slack)
    outside = np.maximum(lo - u, u - hi)
    wrong_sign = np.maximum(np.where(high, 0.0, -r), np.where(low, 0.0, r))
    unbalanced = abs(float(np.sum(u.astype(np.longdouble)) - d))
    return max(0.0, float(outside.max()), float(wrong_sign.max()), unbalanced)


def duality_gap(
    K: Matrix, t: Vector, lo: Vector, hi: Vector, d: float, u: Vector, b: float
) -> float:
    """Objective of u minus the dual bound at b, as a sum of terms that cannot cancel.

    The dual bound is -1/2 u'Ku - b d + sum_i min(r_i lo_i, r_i hi_i), hence ::

        gap = sum_i [max(r_i, 0)(u_i - lo_i) + max(-r_i, 0)(hi_i - u_i)] + b (d - sum(u)).
    """
    r = np.asarray(exact_product(K, u) + b - t, dtype=np.float64)
    terms = np.maximum(r, 0.0) * (u - lo) + np.maximum(-r, 0.0) * (hi - u)
    return float(terms.sum() + b * (d - np.sum(u.astype(np.longdouble))))


def objective(K: Matrix, t: Vector, u: Vector) -> float:
    """1/2 u'Ku - t'u."""
    return float(u.astype(np.longdouble) @ (0.5 * exact_product(K, u) - t))


def unique_f(
    K: Matrix, t: Vector, lo: Vector, hi: Vector, d: float, u: Vector, margin: float = INSIDE_MARGIN
) -> bool:
    """Whether b, and with it f = K u + b, is unique (K u always is, also where u is not).

    True where a row is inside its bounds by a safe margin, or where the interval of b stays
    narrower than 1e-9 when every row within that margin of a bound is taken to be at the bound. The
    margin is relative to the width of the box, or to the largest |u| where that is smaller. The
    answer errs towards False: no test should compare f where b hangs on a digit.
    """
    del d  # part of every signature here; the interval of b does not depend on it
    if len(u) == 0:
        return False
    size = margin * np.minimum(hi - lo, np.abs(u).max())
    if np.any((u > lo + size) & (u < hi - size)):
        return True
    q = np.asarray(t - exact_product(K, u), dtype=np.float64)
    rising, falling = (u < hi - size) & (lo < hi), (u > lo + size) & (lo < hi)
    width = np.min(q[falling], initial=np.inf) - np.max(q[rising], initial=-np.inf)
    return bool(width < NARROW_INTERVAL)


# ---------------------------------------------------------------------------------------------
# Solving


def solve(
    K: npt.ArrayLike,
    t: npt.ArrayLike,
    lo: npt.ArrayLike,
    hi: npt.ArrayLike,
    d: float = 0.0,
    *,
    solver: str = "piqp",
) -> Solution:
    """The optimum of (P), polished to the last digits that K and u leave.

    Rows with lo = hi are taken out first: with u_F fixed, t becomes t - K_F u_F and d becomes d -
    sum(u_F). The rest is solved in v = u / s, ``1/2 v'(sK)v - t'v``, for a few scales s (the width
    of the box, one, the reciprocal of the largest kernel value), as one of them suits each of a
    tiny and a huge C; the polished point with the smallest violation is kept. A point that does not
    satisfy the conditions to rounding is refused with ArithmeticError: an oracle does not guess.

    Parameters
    ----------
    K, t, lo, hi, d
        The problem (P). ``K`` is symmetric and positive semidefinite, any rank.
    solver
        "piqp" or "clarabel".
    """
    K, t = np.asarray(K, np.float64), np.asarray(t, np.float64)
    lo, hi = np.asarray(lo, np.float64), np.asarray(hi, np.float64)
    width = hi - lo
    if np.any(width < 0):
        raise ValueError("lo > hi: no point satisfies the bounds")
    room = TOL_FEASIBLE * float(np.max(np.abs(np.concatenate([lo, hi, [d]]))))
    if not lo.sum() - room <= d <= hi.sum() + room:
        raise ValueError(f"d={d} is outside [sum(lo), sum(hi)] = [{lo.sum()}, {hi.sum()}]")
    free = width > 0
    u = lo.copy()
    if np.count_nonzero(free) == 1:
        u[free] = np.clip(d - u[~free].sum(), lo[free], hi[free])
    elif np.any(free):
        t_free = np.asarray(t[free] - exact_product(K[free][:, ~free], u[~free]), dtype=np.float64)
        u[free] = _solve_free(
            K[np.ix_(free, free)], t_free, lo[free], hi[free], d - float(u[~free].sum()), solver
        )
    interval = bias_interval(K, t, lo, hi, u)
    b = middle(interval)
    f = np.asarray(exact_product(K, u) + b, dtype=np.float64)
    return Solution(
        u=u,
        b=b,
        f=f,
        r=f - t,
        objective=objective(K, t, u),
        b_interval=interval,
        kkt_violation=kkt_violation(K, t, lo, hi, d, u, b),
        duality_gap=duality_gap(K, t, lo, hi, d, u, b),
        unique_f=unique_f(K, t, lo, hi, d, u),
        solver=solver,
    )


def solve_svc(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    C: float,
    sample_weight: npt.ArrayLike | None = None,
    *,
    solver: str = "piqp",
) -> Solution:
    """The classifier with labels y = -1, +1 on the kernel matrix K."""
    return solve(K, *svc_rows(y, C, sample_weight), solver=solver)


def _solve_free(K: Matrix, t: Vector, lo: Vector, hi: Vector, d: float, solver: str) -> Vector:
    """The best polished point over scales and tolerances; every row has lo < hi."""
    interior_point = {"piqp": _by_piqp, "clarabel": _by_clarabel}[solver]
    largest = float(np.abs(K).max())
    scales = [float((hi - lo).max()), 1.0, 1.0 / largest if largest > 0.0 else 1.0]
    K, t = centred(K, t, d)
    best, best_violation = np.clip(np.zeros_like(t), lo, hi), np.inf
    for tol in (TOL_SOLVER, TOL_SOLVER_LOOSE):
        for s in scales:
            start = np.clip(s * interior_point(s * K, t, lo / s, hi / s, d / s, tol), lo, hi)
            u, violation = polish(K, t, lo, hi, d, start)
            if violation < best_violation:
                best, best_violation = u, violation
            if violation <= TOL_POLISHED * max(size_of_f(K, t, u), np.abs(u).max()):
                return best
    trusted = TOL_TRUSTED * max(1.0, size_of_f(K, t, best), float(np.abs(best).max()))
    if best_violation > trusted:
        raise ArithmeticError(
            f"solver={solver!r} left a KKT violation of {best_violation:.1e}, above {trusted:.1e}; "
            "no oracle for this problem: try the other solver"
        )
    return best


def centred(K: Matrix, t: Vector, d: float) -> tuple[Matrix, Vector]:
    """The same problem with small kernel values: K - 1m' - m1', t - d m, for the m that centres K.

    On sum(u) = d the objective changes by a constant only, and r not at all: b takes up m'u.
    Features far from the origin would otherwise drown the differences that decide.
    """
    wide = K.astype(np.longdouble)
    m = wide.mean(axis=0) - 0.5 * wide.mean()
    shifted = wide - m[:, None] - m[None, :]
    return shifted.astype(np.float64), np.asarray(t - d * m, dtype=np.float64)


def size_of_f(K: Matrix, t: Vector, u: Vector) -> float:
    """max_i sum_j |K_ij u_j|, |t_i|: what the rounding of f is relative to."""
    return float(max(np.max(np.abs(K) @ np.abs(u)), np.max(np.abs(t))))


def _by_piqp(K: Matrix, t: Vector, lo: Vector, hi: Vector, d: float, tol: float) -> Vector:
    """(P) by PIQP's dense solver, duality gap included in its stopping rule."""
    solver: Any = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = tol
    settings.check_duality_gap = True
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tol
    settings.iterative_refinement_always_enabled = True
    ones = np.ones((1, len(t)), order="F")
    solver.setup(np.asfortranarray(K), -t, ones, np.array([d]), x_l=lo, x_u=hi)
    solver.solve()
    return np.nan_to_num(np.array(solver.result.x, dtype=np.float64))


def _by_clarabel(K: Matrix, t: Vector, lo: Vector, hi: Vector, d: float, tol: float) -> Vector:
    """(P) by Clarabel: sum(u) = d as a zero cone, u <= hi and -u <= -lo as a nonnegative cone."""
    import clarabel
    from scipy import sparse

    n = len(t)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    A = sparse.vstack([np.ones((1, n)), sparse.identity(n), -sparse.identity(n)], format="csc")
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    limits = np.concatenate([[d], hi, -lo])
    P = sparse.csc_matrix(np.triu(K))
    found = clarabel.DefaultSolver(P, -t, A, limits, cones, settings).solve()
    return np.nan_to_num(np.array(found.x, dtype=np.float64))


# ---------------------------------------------------------------------------------------------
# The last digits


def polish(
    K: Matrix, t: Vector, lo: Vector, hi: Vector, d: float, start: Vector
) -> tuple[Vector, float]:
    """Sharpen a nearly optimal point; returns the best point met and its KKT violation.

    A row is put at a bound where its residual is larger than its distance (by what the distance is
    worth in f, or as a part of the box where K is nearly nothing). The others, INSIDE, are
    corrected by ::

        [ 0   1'   ] [ db ]       [ sum(u) - d ]
        [ 1   K_II ] [ p  ]  =  - [ r_I        ]           (least squares: K_II may be singular)

    as far as the box allows. A row that meets a bound leaves INSIDE; after a full step the bound
    row of the most wrong sign joins. Corrections, not fresh solves: each pass starts from residuals
    in extended precision.
    """
    u = start.copy()
    unit = float(np.abs(np.diag(K)).max() + np.abs(t).max() / (hi - lo).max())
    b = middle(bias_interval(K, t, lo, hi, u, slack=1e-9))
    r = np.asarray(exact_product(K, u) + b - t, dtype=np.float64)
    low, high = unit * (u - lo) <= r, unit * (hi - u) <= -r
    u[low], u[high] = lo[low], hi[high]
    inside = ~low & ~high
    best, best_violation, stalls = start, np.inf, 0
    for _ in range(POLISH_STEPS_PER_ROW * len(t) + 8):
        b = middle(bias_interval(K, t, lo, hi, u))
        violation = kkt_violation(K, t, lo, hi, d, u, b)
        if violation < best_violation:
            best, best_violation, stalls = u.copy(), violation, 0
        if violation == 0.0 or stalls > MAX_STALLS:
            break
        r = np.asarray(exact_product(K, u) + b - t, dtype=np.float64)
        if not np.any(inside):
            inside[np.argmin(np.abs(r))] = True
        rows = np.flatnonzero(inside)
        p = _correction(K[np.ix_(rows, rows)], r[rows], float(np.sum(u.astype(np.longdouble)) - d))
        reach = np.where(p > 0, hi[rows] - u[rows], lo[rows] - u[rows])
        ratio = np.divide(reach, p, out=np.full_like(p, np.inf), where=p != 0)
        blocking = int(np.argmin(ratio))
        if ratio[blocking] < 1.0:
            u[rows] = np.clip(u[rows] + ratio[blocking] * p, lo[rows], hi[rows])
            row = rows[blocking]
            u[row] = hi[row] if p[blocking] > 0 else lo[row]
            inside[row] = False
            continue
        u[rows] += p
        stalls += 1
        b = middle(bias_interval(K, t, lo, hi, u))
        r = np.asarray(exact_product(K, u) + b - t, dtype=np.float64)
        low, high = at_bounds(lo, hi, u)
        wrong = np.where(inside, 0.0, np.maximum(np.where(high, 0.0, -r), np.where(low, 0.0, r)))
        if wrong.max() > TOL_POLISHED * size_of_f(K, t, u):
            inside[np.argmax(wrong)] = True
    return best, best_violation


def _correction(K_inside: Matrix, r_inside: Vector, excess: float) -> Vector:
    """p of the bordered system in ``polish``."""
    m = len(r_inside)
    system = np.ones((m + 1, m + 1))
    system[0, 0] = 0.0
    system[1:, 1:] = K_inside
    right = -np.concatenate([[excess], r_inside])
    return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0][1:], dtype=np.float64)
