# SPDX-License-Identifier: BSD-3-Clause
"""The judge of the dual of least squares: what it measures, and what it does not take on trust."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adiabat.lssvm.dual import DualMachine, Values
from adiabat.lssvm.dual_evidence import judged

N, WIDTH = 40, 4


def values(kernel: str) -> Values:
    X = np.random.default_rng(5).normal(size=(N, WIDTH))
    if kernel == "linear":
        return Values(X @ X.T, 0.0, X)
    square = np.einsum("ij,ij->i", X, X)
    return Values(np.exp(-0.2 * (square[:, None] + square - 2.0 * X @ X.T)), 1e-15)


def machine(kernel: str, intercept: bool) -> DualMachine:
    rng = np.random.default_rng(6)
    aims = rng.normal(size=(N, 2)) + 1.0
    return DualMachine.built(values(kernel), 0.1 / rng.uniform(0.5, 2.0, N), aims, intercept, 1e-10)


def moved(solved: DualMachine, size: float, seed: int = 7) -> DualMachine:
    rng = np.random.default_rng(seed)
    alpha = solved.alpha + size * rng.normal(size=solved.alpha.shape)
    bias = solved.bias + size * rng.normal(size=2) * solved.intercept
    return solved.with_solution(alpha, solved.rest, bias)


CASES = [(kernel, intercept) for kernel in ("linear", "rbf") for intercept in (True, False)]


@pytest.mark.parametrize(("kernel", "intercept"), CASES)
@pytest.mark.parametrize("size", [0.0, 1e-8, 1e-3])
def test_judge_and_machine_measure_alike(kernel, intercept, size):
    off = moved(machine(kernel, intercept), size)
    found = judged(off, values(kernel))
    lacking, balance = off.lacking(off.aims, off.alpha, off.rest, off.bias)
    step, shift = off.solve(lacking, balance)
    error = off.relative_error(step, shift, off.alpha, off.bias)
    assert found.error == pytest.approx(error, rel=1e-6, abs=1e-15)
    assert found.f_error == pytest.approx(off.distance(lacking, balance), rel=1e-6)
    assert found.rounding == (size == 0.0)
    assert (found.error <= off.tol) == (size == 0.0)


@pytest.mark.parametrize(("kernel", "intercept"), CASES)
@pytest.mark.parametrize("size", [1e-8, 1e-2])
def test_f_of_a_spoiled_solution_is_within_f_error(kernel, intercept, size):
    solved = machine(kernel, intercept)
    K = values(kernel).K
    for seed in range(5):
        off = moved(solved, size, seed)
        f = K @ off.alpha + off.bias - (K @ solved.alpha + solved.bias)
        assert np.abs(f).max() <= judged(off, values(kernel)).f_error
        assert np.abs(f).max() > 1e-3 * judged(off, values(kernel)).f_error


@pytest.mark.parametrize(("kernel", "intercept"), CASES)
def test_an_inverse_that_has_lost_a_direction_excuses_nothing(kernel, intercept):
    solved = machine(kernel, intercept)
    _, directions = np.linalg.eigh(solved.P)
    largest = directions[:, -1:]
    if intercept:  # what the bias cannot answer
        largest = largest - largest.mean()
        largest /= np.linalg.norm(largest)
    apart = np.eye(N) - largest @ largest.T
    off = solved.with_solution(solved.alpha + 0.1 * largest, solved.rest, solved.bias)
    lost = replace(off, P=apart @ solved.P @ apart)
    found = judged(lost, values(kernel))
    assert found.error > lost.tol and not found.rounding
    assert found.f_error > 1e-4


def test_a_solution_that_is_not_finite_is_not_ok():
    off = moved(machine("rbf", intercept=True), 1e100)
    assert judged(off, values("rbf")).error > 1.0
