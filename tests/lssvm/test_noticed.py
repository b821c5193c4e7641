# SPDX-License-Identifier: BSD-3-Clause
"""Faults that once went unnoticed, each with the test that notices it."""

from fractions import Fraction

import numpy as np
import pytest

import adiabat
from adiabat.errors import NotLearnedError

RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 3))
Y = np.arange(12) % 3


@pytest.mark.parametrize("off", [1e-4, 1e-6, 1e-9])
def test_the_last_rows_must_leave_nothing_behind(off):
    model = adiabat.LSSVR().fit(X, X[:, 0])
    with pytest.raises(NotLearnedError):
        model.forget(X * (1.0 + off), X[:, 0])
    model.forget(X, X[:, 0])


@pytest.mark.parametrize("off", [1e-4, 1e-6, 1e-9])
def test_the_last_rows_of_a_class_must_leave_nothing_behind(off):
    model = adiabat.LSSVC().fit(X, Y)
    with pytest.raises(NotLearnedError):
        model.forget(X[Y == 2] * (1.0 + off), Y[Y == 2])
    assert model.forget(X[Y == 2], Y[Y == 2]).classes_.tolist() == [0, 1]


def test_rows_unlearned_roughly_are_not_forgotten_as_classes_come_and_go():
    model = adiabat.LSSVC().fit(X, Y)
    model.forget(X[:1] * 1.000001, Y[:1], approximate=True)
    assert model.certificate().held_fixed["rows_unlearned_roughly"] == 1
    model.partial_fit(X[:2], [7, 7])  # a class that is new
    assert model.certificate().held_fixed["rows_unlearned_roughly"] == 1
    model.forget(X[:2], [7, 7])  # and gone again
    assert model.certificate().held_fixed["rows_unlearned_roughly"] == 1


def exact_line(x, y, w, rho):
    """Slope and intercept of rho a^2 + sum w (a x + b - y)^2, in fractions."""
    x, y, w = ([Fraction(float(v)) for v in part] for part in (x, y, w))
    s0, sx, sy = sum(w), sum(a * b for a, b in zip(w, x, strict=True)), 0
    sy = sum(a * b for a, b in zip(w, y, strict=True))
    sxx = sum(a * b * b for a, b in zip(w, x, strict=True))
    sxy = sum(a * b * c for a, b, c in zip(w, x, y, strict=True))
    slope = (s0 * sxy - sx * sy) / (s0 * (sxx + Fraction(rho)) - sx * sx)
    return float(slope), float((sy - slope * sx) / s0)


@pytest.mark.parametrize("count", [8, 200])
def test_both_halves_of_the_sums_count(count):
    """Fractional weights far from zero: what float64 alone would keep of the sums is not enough."""
    rng = np.random.default_rng(count)
    x = 1e6 + rng.normal(size=count)
    y = 3.0 * (x - 1e6) + 0.1 * rng.normal(size=count)
    w = rng.choice([0.1, 1 / 3, 0.7, 1.9], size=count)
    model = adiabat.LSSVR(rho=1e-3)
    half = count // 2
    model.fit(x[:half, None], y[:half], sample_weight=w[:half])
    model.partial_fit(x[half:, None], y[half:], sample_weight=w[half:])
    slope, intercept = exact_line(x, y, w, 1e-3)
    assert model.coef_[0] == pytest.approx(slope, rel=1e-10)
    assert float(model.intercept_) == pytest.approx(intercept, rel=1e-10)
    model.forget(x[:half, None], y[:half], sample_weight=w[:half])
    slope, intercept = exact_line(x[half:], y[half:], w[half:], 1e-3)
    assert model.coef_[0] == pytest.approx(slope, rel=1e-10)
    assert float(model.intercept_) == pytest.approx(intercept, rel=1e-10)


def test_no_more_rows_go_than_were_learned():
    """Rows without weight leave the sums as they are; only their number tells."""
    model = adiabat.LSSVR().fit(X, X[:, 0])
    with pytest.raises(NotLearnedError, match="more rows than were learned"):
        model.forget(np.ones((13, 3)), np.ones(13), sample_weight=np.zeros(13))


def test_no_weight_becomes_negative():
    rows = np.vstack([np.zeros((1, 3)), X])
    model = adiabat.LSSVR(fit_intercept=False).fit(rows, np.append(0.0, X[:, 0]))
    with pytest.raises(NotLearnedError, match="sum of weights"):
        model.forget(rows[:1], [0.0], sample_weight=[90.0])


def test_rows_that_several_threads_gather_count_once():
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(60_000, 40))
    y = rows @ np.arange(40.0) + rng.normal(size=60_000)
    model = adiabat.LSSVR(rho=1.0, fit_intercept=False).fit(rows, y)
    assert model.certificate().n_samples == 60_000
    expected = np.linalg.solve(rows.T @ rows + np.eye(40), rows.T @ y)
    assert np.allclose(model.coef_, expected, rtol=1e-9)
