# SPDX-License-Identifier: BSD-3-Clause
"""The judge: is this the optimum? NumPy only.

No line is shared with the engine. For problem (P), minimise 1/2 u'Ku - t'u over lo <= u <= hi,
sum u = d, with f = Ku + b and r = f - t:

    violation_i = max( r_i where u_i > lo_i,  -r_i where u_i < hi_i,  0 )          (CP01 (2))
    gap         = sum_i  r_i u_i - min(r_i lo_i, r_i hi_i)   >=  objective - optimum

The violation is zero at the optimum and only there; the gap bounds what any other u could gain.

Each row is held to its own tolerance, which no other row can loosen: `tol` in units of its target,
and the rounding of its own f, a sum of terms k(x_i, x_j) u_j, or that of a typical row, which b
carries to all of them. The sum of u is judged relative to the weights, the gap relative to the
objective. A model is the optimum if all three hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EPSILON = float(np.finfo(np.float64).eps)
# Roundings of f that a violation may be, and of the weights that their sum may be off.
ROUNDINGS, SUM_ROUNDINGS = 64.0, 8.0
# The largest relative gap that says something: a larger one that is allowed is rounding.
TELLING_GAP = 1e-3


@dataclass(frozen=True)
class Certificate:
    """Evidence that a model is the optimum on the rows it holds.

    Attributes
    ----------
    residual : float
        Violation of the optimality conditions at the row that is worst for what it is allowed.
    tol : float
        What the violation of that row may be: the model's `tol` in units of its target, and 64
        roundings of its own f.
    gap : float
        Duality gap of the worst machine, relative to its objective. Where boxes are so large that
        rounding alone exceeds the objective, it may be far above 1 at the optimum; the line then
        says "gap below rounding".
    gap_tol : float
        What the gap may be: the model's `tol`, and what 64 roundings of f make of it. 0 for least
        squares, where the residual says it all.
    balance : float
        How far the weights are from their sum and their bounds, relative to the weights; `tol` of
        the model and a few roundings are allowed.
    ok : bool
        Whether the model is the optimum: all three are within what is allowed.
    n_samples : int
        Samples in the model.
    n_support : int
        Samples that carry weight.
    held_fixed : mapping
        What retraining has to hold fixed to give this model, such as the resolved gamma.
    n_seen : int or None
        Samples that ever came to the model, those forgotten or let go included.
    retain : str
        The policy that chose which of them it holds; empty if none did.
    worst : object
        Id of the sample whose row is worst; None if every condition holds exactly.
    rounding : float
        The part of `tol` that is rounding. Where it is the larger part, double precision is the
        limit, and f at that row is known to about as much.
    basis : str
        What the verdict rests on where it is not the rows themselves, and so cannot know; empty
        where it was recomputed from them.
    f_error : float
        At every row of the model f is within this of the exact optimum's, for the kernel values
        that float64 has: those of a linear kernel of few features are exact, others are rounded.
        It is that of the worst row; where one row is far larger than the others, theirs is less.
        Nan in the report of an update of a kernel machine: `certificate()` computes it.
    n_bounded : int
        Rows whose residual the update did not compute, since they carry no weight and f cannot
        have moved so far that they violate; all others were computed. 0 from `certificate()`,
        which computes all.
    moved : float
        By how much f can have moved at most, at these rows, since it was computed.

    Examples
    --------
    >>> from adiabat import SVC
    >>> X, y = [[-3.0], [-1.0], [1.0], [4.0]], [0, 0, 1, 1]
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> certificate = model.certificate()
    >>> certificate.ok, certificate.n_samples
    (True, 4)
    >>> certificate.residual < 1e-9
    True
    """

    residual: float
    gap: float
    n_samples: int
    n_support: int
    tol: float
    ok: bool
    held_fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    n_seen: int | None = None
    retain: str = ""
    balance: float = 0.0
    gap_tol: float = 0.0
    worst: Any = None
    rounding: float = 0.0
    basis: str = ""
    f_error: float = field(default=math.nan, compare=False)  # nan is not equal to itself
    # how it was established is no part of what holds: a model that was loaded computes all rows
    n_bounded: int = field(default=0, compare=False)
    moved: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held_fixed", MappingProxyType(dict(self.held_fixed)))

    def __str__(self) -> str:
        verdict = "optimal" if self.ok else "NOT OPTIMAL"
        if self.ok and self.residual > self.tol:
            verdict = "optimal, as exact as double precision allows"
        held = ", ".join(f"{name}={_brief(value)}" for name, value in self.held_fixed.items())
        kept = f" of {self.n_seen} seen ({self.retain})" if self.retain else ""
        worst = "" if self.worst is None else f" at {_brief(self.worst)}"
        known = "" if math.isnan(self.f_error) else f", f within {self.f_error:.1e} of the optimum"
        limited = self.ok and self.rounding > 0.5 * self.tol
        limit = (
            f", as exact as double precision allows: f is known to {self.rounding:.0e}"
            if limited
            else ""
        )
        # rounding times the boxes exceeds the objective: the number would say nothing
        hidden = self.ok and self.gap_tol > 1.0 and self.gap > TELLING_GAP
        gap = "gap below rounding" if hidden else f"relative gap {self.gap:.1e}"
        return (
            f"{verdict}: residual {self.residual:.1e} (allowed {self.tol:.1e}){worst}, "
            f"{gap}{known}, {self.n_samples} samples{kept}, "
            f"{self.n_support} support{limit}"
            + (f", holding {held}" if held else "")
            + (f"; {self.basis}" if self.basis else "")
            + (f"; {self.n_bounded} rows bounded" if self.n_bounded else "")
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held_fixed": dict(self.held_fixed)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["held_fixed"] = MappingProxyType(state["held_fixed"])
        if math.isnan(self.f_error):
            self.__dict__["f_error"] = math.nan  # one object, so that it equals itself


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."


class Verdict(NamedTuple):
    """What the judge found for one machine.

    `worst` is the row whose violation, `residual`, is largest for what it is `allowed`, of which
    `rounding` is due to rounding; -1 where no row violates. Of `n_bounded` rows the residual was
    not computed: f can have `moved` by so much at most since it was, which is less than what they
    are from violating.
    """

    residual: float = 0.0
    allowed: float = 0.0
    rounding: float = 0.0
    worst: int = -1
    gap: float = 0.0
    gap_allowed: float = 0.0
    balance: float = 0.0
    ok: bool = True
    n_bounded: int = 0
    moved: float = 0.0

    @property
    def severity(self) -> float:
        """The largest of the three, each relative to what it may be: at most 1 where `ok`."""
        if not self.ok:
            return math.inf
        residual = self.residual / self.allowed if self.residual > 0.0 else 0.0
        gap = self.gap / self.gap_allowed if self.gap > 0.0 else 0.0
        return max(residual, gap)


@dataclass(frozen=True)
class Problem:
    """One machine as the judge sees it: (P) and a solution."""

    u: FloatArray
    t: FloatArray
    lo: FloatArray
    hi: FloatArray
    d: float
    b: float


def violations(r: FloatArray, u: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """How far each row is from its optimality condition; 0 where it holds."""
    worst = np.where(u > lo, r, 0.0)
    np.maximum(worst, np.where(u < hi, -r, 0.0), out=worst)
    return np.maximum(worst, 0.0, out=worst)


def units(t: FloatArray, b: float) -> FloatArray:
    """What `tol` is measured in, row by row: the row's target, or a typical one if that is larger.

    The typical target is the median, which no outlier moves; where it is 0, as for one class, it
    is b.
    """
    size = np.abs(t)
    typical = float(np.median(size)) if len(t) else 0.0
    return np.maximum(size, typical or abs(b))


def judge(problem: Problem, r: FloatArray, sizes: FloatArray, tol: float) -> Verdict:
    """Verdict on one machine, from residuals r = Ku + b - t and sizes |K||u| computed afresh."""
    u, t, lo, hi = problem.u, problem.t, problem.lo, problem.hi
    if len(u) == 0:
        return Verdict()
    rounding = roundings(problem, sizes)
    allowed = tol * units(t, problem.b) + rounding
    found = violations(r, u, lo, hi)
    worst = int(np.argmax(_ratio(found, allowed)))
    gap, scale = duality_gap(r, u, lo, hi), _objective_size(problem, r)
    scale += 0.5 * float(np.abs(u) @ rounding)  # which an objective of 0 is known to
    gap_allowed = tol + _ratio(float(_room(r, u, lo, hi) @ rounding), scale)
    relative_gap = _ratio(gap, scale)
    balance = _imbalance(problem)
    ok = bool(np.all(found <= allowed)) and relative_gap <= gap_allowed
    ok = ok and balance <= tol + SUM_ROUNDINGS * EPSILON
    violated = found[worst] > 0.0
    return Verdict(
        residual=float(found[worst]),
        allowed=float(allowed[worst]),
        rounding=float(rounding[worst]),
        worst=worst if violated else -1,
        gap=float(relative_gap),
        gap_allowed=gap_allowed,
        balance=balance,
        ok=bool(ok),
    )


def roundings(problem: Problem, sizes: FloatArray) -> FloatArray:
    """What r may be by rounding, row by row."""
    terms = np.maximum(sizes, np.median(sizes)) + abs(problem.b) + np.abs(problem.t)
    return ROUNDINGS * EPSILON * terms


def _ratio(found: Any, allowed: Any) -> Any:
    """What was found relative to what is allowed; 0 where nothing was found."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(found, allowed)
    return np.where(found > 0.0, ratio, np.where(np.isnan(found), np.inf, 0.0))[()]


def _room(r: FloatArray, u: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """How far each u could go in the direction in which the objective falls."""
    return np.where(r > 0.0, u - lo, np.where(r < 0.0, hi - u, 0.0))


def duality_gap(r: FloatArray, u: FloatArray, lo: FloatArray, hi: FloatArray) -> float:
    """What the best move within the box could gain at most, by convexity."""
    return float(np.abs(r) @ _room(r, u, lo, hi))


def _objective_size(problem: Problem, r: FloatArray) -> float:
    """Size of the two terms of the objective."""
    u, t = problem.u, problem.t
    # u'Ku = sum u (r + t) - b d, so the objective needs no second product with K
    square = float(u @ r) + float(u @ t) - problem.b * problem.d
    return 0.5 * abs(square) + abs(float(u @ t))


def _imbalance(problem: Problem) -> float:
    """How far u is from its sum and its box, relative to the weights."""
    u, lo, hi = problem.u, problem.lo, problem.hi
    missing = abs(math.fsum(u.tolist()) - problem.d)
    balance = float(_ratio(missing, max(float(np.abs(u).sum()), abs(problem.d))))
    outside = np.maximum(np.maximum(lo - u, u - hi), 0.0)
    reach = np.maximum(np.abs(lo), np.abs(hi))
    return max(balance, float(np.max(_ratio(outside, reach), initial=0.0)))
