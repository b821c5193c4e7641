# SPDX-License-Identifier: BSD-3-Clause
"""The judge of an update, in compiled code, says what the judge in NumPy says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from adiabat._core import thread_pool
from adiabat._core.judge import adds_nothing, verdict, weigh, weigh_rows
from adiabat.certificate import Problem, Verdict, judge

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


@pytest.mark.parametrize("part", [0.0, 0.02, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("n", [1, 33, 700])
def test_weigh_rows_is_a_product_of_some_rows(threads: int, part: float, n: int) -> None:
    rng = np.random.default_rng(n)
    panels = [rng.standard_normal((n + 3, WIDTH)) for _ in range(4)]
    weights = rng.standard_normal(4 * WIDTH)
    weights[rng.random(len(weights)) >= part] = 0.0
    weights[WIDTH : 2 * WIDTH] = weights[8:16] = 0.0
    panels[1][:] = panels[0][:, 8:16] = np.nan  # lines without a weight are not read
    rows = rng.integers(0, n, 2 * n)
    out = np.full(len(rows), np.nan)
    weigh_rows(panels, weights, rows, out)
    expected = np.nan_to_num(np.hstack(panels))[rows] @ weights
    np.testing.assert_allclose(out, expected, rtol=0.0, atol=1e-12)


def test_weigh_rows_refuses_what_does_not_fit() -> None:
    panels, rows = [np.ones((5, WIDTH)), np.ones((4, WIDTH))], np.arange(4)
    for wrong in (np.array([0, 1, 2, 4]), np.array([-1, 0, 1, 2])):
        with pytest.raises(ValueError, match="not there"):
            weigh_rows(panels, np.ones(2 * WIDTH), wrong, np.empty(4))
    with pytest.raises(ValueError, match="weights"):
        weigh_rows(panels, np.ones(WIDTH), rows, np.empty(4))
    with pytest.raises(ValueError, match="rows"):
        weigh_rows(panels, np.ones(2 * WIDTH), rows, np.empty(3))


def problem(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Rows at their lower bound, at their upper, between, without force, and outside."""
    lo = -rng.random(n) * rng.integers(0, 2, n)
    hi = rng.random(n) * rng.integers(0, 2, n)
    u = lo + (hi - lo) * rng.choice([0.0, 0.3, 1.0], n)
    u[rng.random(n) < 0.05] *= 1.5
    return rng.standard_normal(n), u, rng.standard_normal(n), lo, hi


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("one_target", [False, True])
def test_verdicts_agree(seed: int, one_target: bool) -> None:
    rng = np.random.default_rng(seed)
    r, u, t, lo, hi = problem(rng, int(rng.integers(1, 300)))
    t = np.where(t > 0.0, 1.0, -1.0) if one_target else t
    d, b = float(rng.standard_normal()), float(rng.standard_normal())
    sizes = np.abs(r + t - b) * rng.uniform(1.0, 5.0, len(r))
    for scale in (1.0, 1e6):
        rows = (r, scale * u, t, scale * lo, scale * hi)
        for tol in (1e-9, 0.1, 10.0):
            expected = judge(Problem(*rows[1:], d, b), r, sizes, tol)
            found = Verdict(*verdict(*rows, d, b, tol, 64.0, sizes))
            assert found.ok == expected.ok and found.worst == expected.worst
            for name in ("residual", "allowed", "rounding", "gap", "gap_allowed", "balance"):
                assert getattr(found, name) == pytest.approx(
                    getattr(expected, name), rel=1e-9, abs=1e-14
                ), name


def of_one_row(r: float, u: float, d: float, **given: float) -> Verdict:
    """A row with t = 1, b = 1 and the box from 0 to 1."""
    one = np.ones(1)
    rows = (r * one, u * one, one, 0.0 * one, one)
    return Verdict(*verdict(*rows, d, 1.0, given.get("tol", 1e-9), 64.0))


def test_each_condition_alone_is_seen() -> None:
    assert of_one_row(0.0, 0.0, 0.0) == Verdict(gap_allowed=1e-9)
    for r, u, d in ((-0.5, 0.0, 0.0), (0.5, 1.0, 1.0), (0.5, 0.5, 0.5), (-0.5, 0.5, 0.5)):
        found = of_one_row(r, u, d)
        assert not found.ok and found.residual == 0.5 and found.worst == 0
    assert of_one_row(0.0, 1.5, 1.5).balance == 0.5 and not of_one_row(0.0, 1.5, 1.5).ok
    assert of_one_row(0.0, -0.5, -0.5).balance == 0.5
    assert of_one_row(0.0, 0.5, 0.25).balance == 0.5 and not of_one_row(0.0, 0.5, 0.25).ok
    assert of_one_row(0.0, 0.0, 0.25).balance == 1.0
    assert of_one_row(1.0, 0.0, 0.0).ok and of_one_row(-1.0, 1.0, 1.0).ok
    assert Verdict(*verdict(*[np.empty(0)] * 5, 0.0, 0.0, 1e-9, 64.0)) == Verdict()


def test_a_gap_alone_is_seen() -> None:
    """A violation within tol of a row whose box is huge: what it could gain is not small."""
    u, t = np.array([1.0, 1.0]), np.ones(2)
    r = np.array([-1e-10, 0.0])
    rows = (r, u, t, np.zeros(2), np.array([1e12, 2.0]))
    found = Verdict(*verdict(*rows, 2.0, 1.0, 1e-9, 0.0))
    assert found.residual <= found.allowed and found.gap > found.gap_allowed and not found.ok


def test_no_row_is_excused_by_another() -> None:
    """The largest f and target of the machine are one row's own."""
    n = 50
    t, u = np.ones(n), np.full(n, 0.5)
    t[7] = 1e12
    r, sizes = np.zeros(n), np.ones(n)
    sizes[7] = 1e20
    r[3] = 1e-6
    rows = (r, u, t, np.zeros(n), np.ones(n))
    found = Verdict(*verdict(*rows, 0.5 * n, 1.0, 1e-9, 64.0, sizes))
    assert not found.ok and found.worst == 3 and found.allowed < 1.1e-9
    r[3], r[7] = 0.0, 1e3
    assert Verdict(*verdict(*rows, 0.5 * n, 1.0, 1e-9, 64.0, sizes)).residual == 1e3


def test_what_is_not_known_of_sizes_excuses_nothing() -> None:
    u, t = np.array([0.5]), np.ones(1)
    rows = (np.array([1e-8]), u, t, np.zeros(1), np.ones(1))
    assert not verdict(*rows, 0.5, 1.0, 1e-9, 64.0)[-1]
    assert verdict(*rows, 0.5, 1.0, 1e-9, 64.0, np.array([1e6]))[-1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_a_number_is_no_optimum(bad: float, which: int) -> None:
    rows = [np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.ones(3)]
    rows[which][1] = bad
    found = Verdict(*verdict(*rows, 0.0, 0.0, 1e-9, 64.0))
    assert not found.ok and not found.residual <= 1e300


def test_a_sum_of_large_weights_is_not_rounded_into_a_fault() -> None:
    u = np.tile([1e8, -1e8, 0.1, -0.1], 1000)
    rows = (np.zeros(4000), u, np.zeros(4000), -np.abs(u), np.abs(u))
    assert Verdict(*verdict(*rows, 0.0, 0.0, 1e-9, 64.0)).balance == 0.0


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="fit"):
        verdict(*[np.zeros(2), *[np.zeros(3)] * 4], 0.0, 0.0, 1e-9, 64.0)
    with pytest.raises(ValueError, match="fit"):
        verdict(*[np.zeros(3)] * 5, 0.0, 0.0, 1e-9, 64.0, np.zeros(2))


@pytest.mark.parametrize("width", [1, 2, 7, 12, 13, 200])
def test_a_panel_may_have_any_width(threads: int, width: int) -> None:
    rng = np.random.default_rng(width)
    X, w = rng.standard_normal((50, width)), rng.standard_normal((width, 1))
    w[rng.random(width) < 0.3] = 0.0
    out = np.empty((50, 1))
    weigh([X], w, out)
    np.testing.assert_allclose(out, X @ w, rtol=0.0, atol=1e-12)


# -- rows that add nothing -------------------------------------------------------------------------


def verdict_on(rows: np.ndarray, d: float = 0.0) -> tuple[float, ...]:
    r, u, t, lo, hi = np.ascontiguousarray(rows.T)
    return verdict(r, u, t, lo, hi, d, 0.25, 1e-9, 32.0)


#: r, u, t, lo, hi
IDLE = [[0.5, 0.0, 1.0, 0.0, 2.0], [-3.0, 0.0, -1.0, -2.0, 0.0], [0.0, 0.0, 1.0, 0.0, 2.0]]
BUSY = {
    "weight": [0.0, 0.5, 1.0, 0.0, 2.0],
    "violates": [-1e-12, 0.0, 1.0, 0.0, 2.0],
    "other target": [0.5, 0.0, 2.0, 0.0, 2.0],
    "outside": [0.5, 0.0, 1.0, 0.1, 2.0],
    "not a number": [np.nan, 0.0, 1.0, 0.0, 2.0],
    "infinite": [np.inf, 0.0, 1.0, 0.0, 2.0],
}
HELD = [[1e-11, 0.5, 1.0, 0.0, 2.0], [0.0, -0.5, -1.0, -2.0, 0.0], [0.2, 0.0, 1.0, 0.0, 2.0]]


def test_rows_that_add_nothing_leave_the_verdict_alone() -> None:
    idle = np.array(IDLE)
    assert adds_nothing(*np.ascontiguousarray(idle.T), 1.0)
    assert verdict_on(np.array(HELD + IDLE)) == verdict_on(np.array(HELD))


@pytest.mark.parametrize("kind", BUSY)
def test_rows_that_may_change_a_verdict_are_noticed(kind: str) -> None:
    assert not adds_nothing(*np.ascontiguousarray(np.array([*IDLE, BUSY[kind]]).T), 1.0)
