# SPDX-License-Identifier: BSD-3-Clause
"""The judge: is this the optimum? NumPy only, and no line shared with the engine.

For problem (P), minimise 1/2 u'Ku - t'u over lo <= u <= hi, sum u = d, with r = Ku + b - t:

    violation_i = max( r_i where u_i > lo_i,  -r_i where u_i < hi_i,  0 )          (CP01 (2))
    gap         = sum_i  r_i u_i - min(r_i lo_i, r_i hi_i)   >=  objective - optimum

The violation is zero at the optimum and only there; the gap bounds what any other u could gain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """Evidence that a model is the optimum on the rows it holds.

    Attributes
    ----------
    residual : float
        Largest violation of the optimality conditions, over all rows of all machines.
    gap : float
        Largest duality gap of a machine, relative to max(1, |objective|).
    n_samples : int
        Samples in the model.
    n_support : int
        Samples that carry weight.
    tol : float
        What the residual must not exceed: the model's `tol` times max(1, C max|K|).
    ok : bool
        Whether it does not; of kernel least squares also if rounding of the kernel values explains
        it.
    held_fixed : mapping
        What retraining has to hold fixed to give this model, such as the resolved gamma.
    n_seen : int or None
        Samples that ever came to the model, those forgotten or let go included.
    retain : str
        The policy that chose which of them it holds; empty if none did.
    basis : str
        What the verdict rests on where it is not the rows themselves, and so cannot know; empty
        where it was recomputed from them.
    f_error : float
        How far f may be from the optimum's at the samples of the model; nan where that is not
        known.
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
    basis: str = ""
    f_error: float = math.nan

    def __post_init__(self) -> None:
        object.__setattr__(self, "held_fixed", MappingProxyType(dict(self.held_fixed)))

    def __str__(self) -> str:
        verdict = "optimal" if self.ok else "NOT OPTIMAL"
        if self.ok and self.residual > self.tol:
            verdict = "optimal, as exact as double precision allows"
        held = ", ".join(f"{name}={_brief(value)}" for name, value in self.held_fixed.items())
        kept = f" of {self.n_seen} seen ({self.retain})" if self.retain else ""
        return (
            f"{verdict}: residual {self.residual:.1e} (allowed {self.tol:.1e}), "
            f"relative gap {self.gap:.1e}, {self.n_samples} samples{kept}, {self.n_support} support"
            + ("" if math.isnan(self.f_error) else f", f known to {self.f_error:.1e}")
            + (f", holding {held}" if held else "")
            + (f"; {self.basis}" if self.basis else "")
        )

    def to_fields(self) -> dict[str, Any]:
        """The fields as plain values; None where a number is not known, since JSON has no nan."""
        fields = {**self.__dict__, "held_fixed": dict(self.held_fixed)}
        if not math.isfinite(self.f_error):
            fields["f_error"] = None
        return fields

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Certificate:
        """The certificate of `to_fields`, of this release or an earlier one."""
        return cls(**{name: value for name, value in fields.items() if value is not None})

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


def violations(r: FloatArray, u: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """How far each row is from its optimality condition; 0 where it holds."""
    worst = np.where(u > lo, r, 0.0)
    np.maximum(worst, np.where(u < hi, -r, 0.0), out=worst)
    return np.maximum(worst, 0.0, out=worst)


def duality_gap(r: FloatArray, u: FloatArray, lo: FloatArray, hi: FloatArray) -> float:
    """What the best move within the box could gain at most, by convexity."""
    return float(np.sum(r * u - np.minimum(r * lo, r * hi)))


@dataclass(frozen=True)
class Verdict:
    """What the judge found for one machine."""

    residual: float
    gap: float


def judge(
    r: FloatArray,
    u: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    d: float,
    b: float,
) -> Verdict:
    """Verdict on one machine, from residuals r = Ku + b - t computed afresh.

    A weight outside its box or a sum that is not d counts as a violation too.
    """
    if len(u) == 0:
        return Verdict(0.0, 0.0)
    outside = max(float(np.max(lo - u)), float(np.max(u - hi)), 0.0)
    balance = abs(float(np.sum(u)) - d)
    residual = max(float(np.max(violations(r, u, lo, hi))), outside, balance)
    # u'Ku = sum u (r + t) - b d, so the objective needs no second product with K
    objective = 0.5 * (float(u @ r) - b * d - float(u @ t))
    gap = max(0.0, duality_gap(r, u, lo, hi)) / max(1.0, abs(objective))
    return Verdict(residual, gap)
