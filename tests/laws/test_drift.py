# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of updates of a sliding window: rounding does not add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat import SVC

from laws.compare import assert_is_optimum, assert_same
from oracles.operations import Roster

UPDATES, WINDOW, PART = 4_000, 60, 1_000
EPS = float(np.finfo(np.float64).eps)


def stream(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """A boundary that turns slowly, with a tenth of the labels wrong."""
    X = rng.standard_normal((n, 3))
    angle = np.linspace(0.0, 4.0 * np.pi, n)
    side = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.0
    return X, np.where(rng.random(n) < 0.1, ~side, side).astype(np.int64)


def slide(model: SVC, X: Any, y: Any, updates: int) -> tuple[Any, Any]:
    """Residual and relative gap after each update, by the report's own judge."""
    residual, gap = np.empty(updates), np.empty(updates)
    for k in range(updates):
        new = WINDOW + k
        report = model.update(X[new : new + 1], y[new : new + 1], ids=[new], remove=[k])
        assert report.certificate.ok
        residual[k], gap[k] = report.certificate.residual, report.certificate.gap
    return residual, gap


def assert_flat(model: SVC, X: Any, y: Any, updates: int, part: int) -> None:
    model.fit(X[:WINDOW], y[:WINDOW])
    size = model.C * WINDOW  # of the sums in f, as max|K| = 1
    residual, gap = slide(model, X, y, updates)
    allowed = 64.0 * EPS * size
    assert residual[-part:].max() <= max(residual[:part].max(), allowed)
    assert np.median(residual[-part:]) <= 2.0 * np.median(residual[:part]) + EPS * size
    assert gap[-part:].max() <= max(2.0 * gap[:part].max(), allowed)
    held = slice(updates, updates + WINDOW)
    roster = Roster(X[held], y[held], np.ones(WINDOW), np.arange(updates, updates + WINDOW))
    afresh = SVC(**{**model.get_params(), "gamma": model.gamma_})
    afresh.fit(roster.X, roster.y, ids=roster.ids)
    probe = np.random.default_rng(0).standard_normal((20, 3))
    assert model.certificate().ok
    np.testing.assert_allclose(
        model.decision_function(probe), afresh.decision_function(probe), rtol=0.0, atol=1e-10
    )
    assert_same(model, afresh, roster, probe)
    assert_is_optimum(model, roster, probe)


def test_thousands_of_updates_leave_no_drift() -> None:
    X, y = stream(np.random.default_rng(1), UPDATES + WINDOW)
    assert_flat(SVC(C=10.0, gamma=0.5), X, y, UPDATES, PART)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_a_window_of_low_rank_does_not_drift(kernel: str) -> None:
    X, y = stream(np.random.default_rng(2), 1_000 + WINDOW)
    X = np.round(2.0 * X) / 8.0
    model = SVC(C=10.0, kernel=kernel, degree=2, gamma=1.0, coef0=0.0)
    assert_flat(model, X, y, 1_000, 200)


def test_the_path_does_not_drift() -> None:
    X, y = stream(np.random.default_rng(3), 1_000 + WINDOW)
    assert_flat(SVC(C=10.0, gamma=0.5, solver="path"), X, y, 1_000, 200)
