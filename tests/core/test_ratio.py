# SPDX-License-Identifier: BSD-3-Clause
"""The ratio test of the path, rule by rule and against a plain loop."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adiabat._core.ratio import (
    FALLING,
    HIGH,
    LEAVING,
    LOW,
    MARGIN,
    PINNED,
    RESTING,
    RISING,
    arrive,
    next_breakpoint,
)

Vector = npt.NDArray[np.float64]


def one_row(
    role: int, *, u: float = 0.0, du: float = 0.0, r: float = 0.0, dr: float = 0.0,
    lo: float = 0.0, dlo: float = 0.0, hi: float = 1.0, dhi: float = 0.0,
    still: float = 1e-9, limit: float = 1.0, scale: float = 1.0,
) -> tuple[float, int]:  # fmt: skip
    values = [np.array([x]) for x in (dr, u, du, r, lo, dlo, hi, dhi)]
    return next_breakpoint(
        np.zeros(1, dtype=np.int64), *values, np.array([role], dtype=np.uint8), np.array([scale]),
        1e-14, still, limit,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------
# Who meets what


def test_a_margin_row_meets_either_bound() -> None:
    assert one_row(MARGIN, u=0.25, du=1.0) == (0.75, 0)
    assert one_row(MARGIN, u=0.25, du=-1.0) == (0.25, 0)
    assert one_row(MARGIN, u=0.25, du=0.0) == (1.0, -1)


def test_a_margin_row_that_arrives_together_with_the_driven_rows_stays() -> None:
    assert one_row(MARGIN, u=0.25, du=0.75) == (1.0, -1)


@pytest.mark.parametrize("role", [MARGIN, RESTING])
def test_a_row_meets_a_bound_that_moves(role: int) -> None:
    assert one_row(role, u=0.25, dhi=-1.0) == (0.75, 0)
    assert one_row(role, u=0.25, dlo=0.5) == (0.5, 0)
    assert one_row(role, u=0.25, dlo=-1.0, dhi=1.0) == (1.0, -1)
    # a box that closes is met on one side or the other
    assert one_row(role, u=0.25, dlo=1.0, dhi=-1.0) == (0.25, 0)
    assert one_row(role, u=0.75, dlo=1.0, dhi=-1.0) == (0.25, 0)


def test_a_margin_row_that_moves_with_its_bound_does_not_meet_it() -> None:
    assert one_row(MARGIN, u=1.0, du=3.0, dhi=3.0) == (1.0, -1)
    assert one_row(MARGIN, u=1.0, du=3.0 * (1.0 + 1e-15), dhi=3.0) == (1.0, -1)
    assert one_row(MARGIN, u=0.5, du=3.0, dhi=2.0) == (0.5, 0)


def test_a_row_at_its_lower_bound_waits_for_r_from_above() -> None:
    assert one_row(LOW, u=0.0, r=0.5, dr=-1.0) == (0.5, 0)
    assert one_row(LOW, u=0.0, r=0.5, dr=1.0) == (1.0, -1)


def test_a_row_at_its_upper_bound_waits_for_r_from_below() -> None:
    assert one_row(HIGH, u=1.0, r=-0.5, dr=1.0) == (0.5, 0)
    assert one_row(HIGH, u=1.0, r=-0.5, dr=-1.0) == (1.0, -1)


def test_an_entering_row_waits_on_its_own_side() -> None:
    assert one_row(RISING, r=-0.5, dr=1.0) == (0.5, 0)
    assert one_row(RISING, r=-0.5, dr=-1.0) == (1.0, -1)
    assert one_row(FALLING, r=0.5, dr=-1.0) == (0.5, 0)
    assert one_row(FALLING, r=0.5, dr=1.0) == (1.0, -1)


@pytest.mark.parametrize("role", [LEAVING, PINNED])
def test_leaving_and_pinned_rows_meet_nothing(role: int) -> None:
    assert one_row(role, u=0.5, du=5.0, r=0.5, dr=-5.0) == (1.0, -1)


def test_a_resting_row_has_no_r_to_meet() -> None:
    assert one_row(RESTING, u=0.5, r=0.5, dr=-5.0) == (1.0, -1)


@pytest.mark.parametrize("role", [LOW, HIGH, FALLING, RISING])
def test_rates_of_rounding_size_meet_nothing(role: int) -> None:
    r = 1e-20 if role in (LOW, FALLING) else -1e-20
    assert one_row(role, r=r, dr=-np.sign(r) * 1e-10) == (1.0, -1)
    assert one_row(role, r=r, dr=-np.sign(r) * 1e-8)[1] == 0


def test_a_row_beyond_its_condition_meets_it_at_once() -> None:
    """Rounding may have carried it past; it never sends the path backwards."""
    assert one_row(MARGIN, u=1.0 + 1e-15, du=1.0) == (0.0, 0)
    assert one_row(LOW, u=0.0, r=-1e-15, dr=-1.0) == (0.0, 0)


def test_rates_are_judged_by_the_scale_of_their_row() -> None:
    """The weight of an outlier moves slowly and its r fast, and either means as much."""
    assert one_row(MARGIN, u=0.5, du=-1e-20) == (1.0, -1)
    assert one_row(MARGIN, u=0.5e-20, du=-1e-20, scale=1e20) == (0.5, 0)
    assert one_row(LOW, r=0.5e-3, dr=-1e-3, scale=1e3) == (0.5, 0)
    assert one_row(LOW, r=0.5e-3, dr=-1e-3, scale=1e7) == (1.0, -1)


def test_without_a_limit_the_first_row_or_none() -> None:
    assert one_row(LOW, u=0.0, r=5.0, dr=-1.0, limit=np.inf) == (5.0, 0)
    assert one_row(LOW, u=0.0, r=5.0, dr=1.0, limit=np.inf) == (np.inf, -1)


def test_among_tied_rows_the_largest_rate_goes_first() -> None:
    rate = np.array([1.0, 4.0, 2.0])
    zero, one = np.zeros(3), np.ones(3)
    role, rows = np.full(3, LOW, dtype=np.uint8), np.arange(3)
    ends = (zero, zero, one, zero, role, one, 0.0, 1e-9, 1.0)
    assert next_breakpoint(rows, -rate, zero, zero, 0.5 * rate, *ends) == (0.5, 1)
    assert next_breakpoint(rows, -rate, zero, zero, zero, *ends) == (0.0, 1)


def test_no_rows() -> None:
    none = np.empty(0)
    role = np.empty(0, dtype=np.uint8)
    rows = np.empty(0, dtype=np.int64)
    assert next_breakpoint(rows, *[none] * 8, role, none, 0.0, 0.0, 1.0) == (1.0, -1)


# ---------------------------------------------------------------------------------------------
# Against a plain loop


def plain_ratios(
    u: Vector, du: Vector, r: Vector, dr: Vector, lo: Vector, dlo: Vector, hi: Vector, dhi: Vector,
    role: npt.NDArray[np.uint8], still: float,
) -> Vector:  # fmt: skip
    """eta of every row, infinite where it meets nothing."""
    eta = np.full(len(u), np.inf)
    for i in range(len(u)):
        if role[i] in (MARGIN, RESTING):
            if du[i] > dhi[i]:
                eta[i] = (hi[i] - u[i]) / (du[i] - dhi[i])
            if du[i] < dlo[i]:
                eta[i] = min(eta[i], (u[i] - lo[i]) / (dlo[i] - du[i]))
        towards_zero = -dr[i] if role[i] in (LOW, FALLING) else dr[i]
        if role[i] in (LOW, HIGH, RISING, FALLING) and towards_zero > still:
            eta[i] = abs(r[i]) / towards_zero
    return eta


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), limit=st.sampled_from([1.0, np.inf]))
def test_the_first_of_all_ratios(seed: int, n: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    role = rng.integers(0, 8, n).astype(np.uint8)
    lo = -rng.random(n)
    hi = lo + rng.random(n)
    u = lo + rng.random(n) * (hi - lo)
    r = np.where((role == RISING) | (role == HIGH), -1.0, 1.0) * rng.random(n)
    du, dr = rng.standard_normal(n), 3.0 * rng.standard_normal(n)
    dlo, dhi = rng.standard_normal((2, n)) * (rng.random((2, n)) < 0.5)
    du[role == RESTING] = 0.0
    ends = (lo, dlo, hi, dhi, role)
    eta, row = next_breakpoint(np.arange(n), dr, u, du, r, *ends, np.ones(n), 0.0, 0.01, limit)
    ratios = plain_ratios(u, du, r, dr, *ends, 0.01)
    if ratios.min() >= limit:
        assert (eta, row) == (limit, -1)
    else:
        assert eta == pytest.approx(ratios.min(), rel=1e-11)
        assert ratios[row] == pytest.approx(eta, rel=1e-11)


# ---------------------------------------------------------------------------------------------
# The arrival


def test_rows_arrive_at_their_goal_to_the_last_bit() -> None:
    role = np.array([LOW, HIGH, PINNED, RISING, FALLING, LEAVING, RESTING, MARGIN], dtype=np.uint8)
    inside = (role == MARGIN).astype(np.uint8)
    off = 1e-15 * np.arange(1.0, 9.0)
    lo, hi = 0.1 + off, 0.9 + off
    u = np.array([0.1, 0.9, 0.1, 0.5, 0.5, 0.5, 0.95, 0.05])
    goal = np.arange(8.0), np.full(8, 0.1), np.full(8, 0.9)
    target = np.linspace(0.3, 0.4, 8)
    t = goal[0] + off
    arrive(u, t, lo, hi, goal, role, inside, target)
    for now, then in zip((t, lo, hi), goal, strict=True):
        np.testing.assert_array_equal(now, then)
    assert u.tolist() == [0.1, 0.9, 0.1, *target[3:6], 0.9, 0.1]
    with pytest.raises(ValueError, match="do not fit"):
        arrive(u[:7], t, lo, hi, goal, role, inside, target)
