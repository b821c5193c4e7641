# SPDX-License-Identifier: BSD-3-Clause
"""The judge of an update, in compiled code, says what the judge in NumPy says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from adiabat._core import thread_pool
from adiabat._core.judge import verdict, weigh
from adiabat.certificate import judge

WIDTH = 40


@pytest.fixture(params=[1, 2], ids="{} threads".format)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    thread_pool.resize(request.param)
    yield request.param
    thread_pool.resize(1)


@pytest.mark.parametrize("machines", [1, 2, 5])
@pytest.mark.parametrize("part", [0.0, 0.02, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("n", [1, 33, 700])
def test_weigh_is_a_product(threads: int, machines: int, part: float, n: int) -> None:
    rng = np.random.default_rng(n)
    panels = [rng.standard_normal((n + 3, WIDTH)) for _ in range(4)]
    weights = rng.standard_normal((4 * WIDTH, machines))
    weights[rng.random(len(weights)) >= part] = 0.0
    weights[WIDTH : 2 * WIDTH] = 0.0
    for panel in panels:  # where no weight is, nothing is read but within a panel in use
        panel[n:] = np.nan
    panels[1][:] = np.nan
    out = np.full((n, machines), np.nan)
    weigh(panels, weights, out)
    used = [0, 2, 3]
    K = np.hstack([panels[i][:n] for i in used])
    u = np.vstack([weights[WIDTH * i : WIDTH * (i + 1)] for i in used])
    np.testing.assert_allclose(out, K @ u, rtol=0.0, atol=1e-12)


def test_weigh_refuses_what_does_not_fit() -> None:
    panels = [np.ones((5, WIDTH)), np.ones((4, WIDTH))]
    with pytest.raises(ValueError, match="panel"):
        weigh(panels, np.ones((2 * WIDTH, 1)), np.empty((5, 1)))
    with pytest.raises(ValueError, match="weights"):
        weigh(panels, np.ones((WIDTH, 1)), np.empty((4, 1)))
    with pytest.raises(ValueError, match="weights"):
        weigh(panels, np.ones((2 * WIDTH, 2)), np.empty((4, 1)))


def problem(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Rows at their lower bound, at their upper, between, without force, and outside."""
    lo = -rng.random(n) * rng.integers(0, 2, n)
    hi = rng.random(n) * rng.integers(0, 2, n)
    u = lo + (hi - lo) * rng.choice([0.0, 0.3, 1.0], n)
    u[rng.random(n) < 0.05] *= 1.5
    return rng.standard_normal(n), u, rng.standard_normal(n), lo, hi


@pytest.mark.parametrize("seed", range(20))
def test_verdicts_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = problem(rng, int(rng.integers(1, 300)))
    d, b = float(rng.standard_normal()), float(rng.standard_normal())
    for scale in (1.0, 1e6):
        scaled = (rows[0], scale * rows[1], rows[2], scale * rows[3], scale * rows[4])
        expected = judge(*scaled, d, b)
        residual, gap = verdict(*scaled, d, b)
        assert residual == pytest.approx(expected.residual, rel=1e-12, abs=1e-12 * scale)
        assert gap == pytest.approx(expected.gap, rel=1e-9, abs=1e-12)


def test_each_condition_alone_is_seen() -> None:
    one, none = np.ones(1), np.zeros(1)
    assert verdict(none, none, none, none, one, 0.0, 0.0) == (0.0, 0.0)
    assert verdict(-0.5 * one, none, none, none, one, 0.0, 0.0)[0] == 0.5
    assert verdict(0.5 * one, one, none, none, one, 1.0, 0.0)[0] == 0.5
    assert verdict(none, 1.5 * one, none, none, one, 1.5, 0.0)[0] == 0.5
    assert verdict(none, -0.5 * one, none, none, one, -0.5, 0.0)[0] == 0.5
    assert verdict(none, none, none, none, one, 0.25, 0.0)[0] == 0.25
    assert verdict(*[np.empty(0)] * 5, 0.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_a_number_is_no_optimum(bad: float, which: int) -> None:
    rows = [np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.ones(3)]
    rows[which][1] = bad
    residual, _ = verdict(*rows, 0.0, 0.0)
    assert not residual <= 1e300


def test_a_sum_of_large_weights_is_not_rounded_into_a_fault() -> None:
    u = np.tile([1e8, -1e8, 0.1, -0.1], 1000)
    rows = (np.zeros(4000), u, np.zeros(4000), -np.abs(u), np.abs(u))
    assert verdict(*rows, 0.0, 0.0)[0] == 0.0


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="fit"):
        verdict(np.zeros(2), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), 0.0, 0.0)


@pytest.mark.parametrize("width", [1, 2, 7, 12, 13, 200])
def test_a_panel_may_have_any_width(threads: int, width: int) -> None:
    rng = np.random.default_rng(width)
    X, w = rng.standard_normal((50, width)), rng.standard_normal((width, 1))
    w[rng.random(width) < 0.3] = 0.0
    out = np.empty((50, 1))
    weigh([X], w, out)
    np.testing.assert_allclose(out, X @ w, rtol=0.0, atol=1e-12)
