# SPDX-License-Identifier: BSD-3-Clause
"""Whether a dual machine has the solution: judged from kernel values computed afresh."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from adiabat.lssvm.dual import DualMachine, Values
from adiabat.lssvm.dual_measures import DualJudged
from adiabat.lssvm.exact_residual import linear_residual, normal_residual
from adiabat.typing import FloatArray

# Kernel values computed twice differ by twice their rounding; with that of the sum, three times.
_TWICE_AND_THE_SUM: Final = 3.0


@dataclass(frozen=True)
class Finding:
    """How far weights and bias are off, and whether rounding of the kernel values explains it."""

    error: float
    gap: float
    f_error: float
    rounding: bool

    @classmethod
    def of(cls, machine: DualMachine) -> Finding:
        """What the machine found when it was solved."""
        return cls(machine.error, machine.gap, machine.f_error, rounding=False)


def judged(machine: DualMachine, values: Values) -> Finding:
    """The machine against kernel values of its rows, by code that it does not use.

    It is asked for the solution, and for corrections of it.
    """
    if len(machine) == 0 or machine.aims.shape[1] == 0:
        return Finding(0.0, 0.0, 0.0, rounding=False)
    alpha, rest, bias = machine.alpha, machine.rest, machine.bias
    lacking = np.empty_like(alpha)
    stray = 0.0  # how far f is off because w is not the sum of the weighted rows
    for k in range(alpha.shape[1]):
        given = machine.d, alpha[:, k], machine.aims[:, k], float(bias[k])
        if values.features is None or machine.w is None:
            lacking[:, k] = _of_kernel(values.K, *given)
        else:
            lacking[:, k], w = _of_features(values.features, rest[:, k], *given)
            off = np.abs(values.features) @ np.abs(machine.w[:, k] - w)
            stray = max(stray, float(off.max()))
    balance = np.zeros(len(bias))
    if machine.intercept:
        balance -= [math.fsum([*a, *b]) for a, b in zip(alpha.T, rest.T, strict=True)]
    step, shift = machine.solve(lacking, balance)
    answer, _ = machine.solve(np.zeros((len(machine), 1)), np.ones(1))
    measured = DualJudged(
        values.K, values.rounding, values.features, machine.d, machine.aims, machine.intercept,
        alpha, bias, machine.w,
    )  # fmt: skip
    error = measured.relative_error(step, shift)
    # an inverse that has lost a direction gives small corrections: f must not be off, either
    left, permitted = measured.left_over(lacking, step, shift), measured.permitted(machine.tol)
    beyond = left > permitted
    if beyond.any():
        with np.errstate(divide="ignore"):
            error = max(error, machine.tol * float((left / permitted)[beyond].max()))
    return Finding(
        error,
        float(np.max(np.abs(np.sum(lacking * step, axis=0)))),
        measured.f_error(lacking, balance, answer[:, 0]) + stray,
        rounding=bool((np.abs(lacking) <= _TWICE_AND_THE_SUM * measured.rounds_away()).all()),
    )


def _of_kernel(K: FloatArray, d: FloatArray, a: FloatArray, t: FloatArray, b: float) -> FloatArray:
    return normal_residual(K, np.zeros_like(K), d, a, t, np.full(len(K), -b))


def _of_features(
    X: FloatArray, rest: FloatArray, d: FloatArray, a: FloatArray, t: FloatArray, b: float
) -> tuple[FloatArray, FloatArray]:
    return linear_residual(X, d, t, a, rest, b)
