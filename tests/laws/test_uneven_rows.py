# SPDX-License-Identifier: BSD-3-Clause
"""Rows of which some have k(x, x) near 1 and others 1e15: the usual shift of the factor hides some.

Features are in raw units: one column of hundreds beside others of tenths, two rows next to the
origin, one of them heavy, and one far outlier.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from adiabat import SVR
from adiabat.engine.machine import Machine

from laws.subjects import judge, subject
from oracles.operations import Roster

N = 12
PARAMS: dict[str, Any] = {"kernel": "poly", "degree": 3, "gamma": 0.4, "coef0": 1.0, "C": 100.0}


def uneven(seed: int) -> Roster:
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (N, 6)) / 10
    X[:, 2] = 1000 * np.abs(X[:, 2])
    X[:2] = 0.0
    X[1, :2] = [0.5, -0.3]
    X[-1, 2] = 1e6
    weight = np.ones(N)
    weight[0] = 1e12
    return Roster(X, np.round(rng.random(N), 3), weight, np.arange(N))


@pytest.mark.parametrize("seed", [1, 4, 9])
def test_rows_that_the_usual_shift_hides_are_learned_and_forgotten(seed: int) -> None:
    """All of these were once refused."""
    model = subject("SVR", PARAMS, 6)
    model.fit(uneven(seed))
    verdict = judge(model)
    assert verdict.ok, verdict
    for gone in ([N - 1], [0]):
        model.forget(gone)
        verdict = judge(model)
        assert verdict.ok, verdict


def machine_of(model: SVR) -> Machine:
    (machine,) = model._model.solver.machines.values()
    return machine


def test_a_small_shift_stays_with_the_machine() -> None:
    rows = uneven(9)  # on which the usual shift fails at every SIMD level
    model = SVR(**PARAMS).fit(rows.X, rows.y, sample_weight=rows.sample_weight)
    machine = machine_of(model)
    assert machine.is_uneven() and machine.small_shift
    assert machine.factor.shift < 1e-9 * machine.factor.usual
    saved = machine.snapshot()
    copy = machine.copied(machine.samples)
    assert copy.small_shift and copy.factor.shift == machine.factor.shift
    assert copy.factor.usual == machine.factor.usual
    machine.restore(saved)
    assert machine.small_shift and machine.factor.shift == copy.factor.shift
    assert pickle.loads(pickle.dumps(model)).certificate().ok


def test_even_rows_have_the_usual_shift() -> None:
    rows = uneven(4)
    even = slice(2, -1)
    model = SVR(**PARAMS).fit(rows.X[even], rows.y[even])
    machine = machine_of(model)
    assert not machine.small_shift and machine.factor.shift == machine.factor.usual
