# SPDX-License-Identifier: BSD-3-Clause
"""The ratio test of the path, rule by rule and against a plain loop."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adiabat._core.path import (
    BOUND,
    FALLING,
    LEAVING,
    MARGIN,
    RESTING,
    RISING,
    advance,
    largest_rate,
    next_breakpoint,
)

Vector = npt.NDArray[np.float64]


def one_row(
    role: int, *, u: float = 0.0, du: float = 0.0, r: float = 0.0, dr: float = 0.0,
    lo: float = 0.0, hi: float = 1.0, still: float = 1e-9, limit: float = 1.0,
) -> tuple[float, int]:  # fmt: skip
    values = [np.array([x]) for x in (u, du, r, dr, lo, hi)]
    return next_breakpoint(*values, np.array([role], dtype=np.uint8), still, limit)


# ---------------------------------------------------------------------------------------------
# Who meets what


def test_a_margin_row_meets_either_bound() -> None:
    assert one_row(MARGIN, u=0.25, du=1.0) == (0.75, 0)
    assert one_row(MARGIN, u=0.25, du=-1.0) == (0.25, 0)
    assert one_row(MARGIN, u=0.25, du=0.0) == (1.0, -1)


def test_a_margin_row_that_arrives_together_with_the_driven_rows_stays() -> None:
    assert one_row(MARGIN, u=0.25, du=0.75) == (1.0, -1)


def test_a_row_at_its_lower_bound_waits_for_r_from_above() -> None:
    assert one_row(BOUND, u=0.0, r=0.5, dr=-1.0) == (0.5, 0)
    assert one_row(BOUND, u=0.0, r=0.5, dr=1.0) == (1.0, -1)


def test_a_row_at_its_upper_bound_waits_for_r_from_below() -> None:
    assert one_row(BOUND, u=1.0, r=-0.5, dr=1.0) == (0.5, 0)
    assert one_row(BOUND, u=1.0, r=-0.5, dr=-1.0) == (1.0, -1)


def test_a_row_without_a_box_meets_nothing() -> None:
    assert one_row(BOUND, u=0.0, r=0.5, dr=-1.0, hi=0.0) == (1.0, -1)


def test_an_entering_row_waits_on_its_own_side() -> None:
    assert one_row(RISING, r=-0.5, dr=1.0) == (0.5, 0)
    assert one_row(RISING, r=-0.5, dr=-1.0) == (1.0, -1)
    assert one_row(FALLING, r=0.5, dr=-1.0) == (0.5, 0)
    assert one_row(FALLING, r=0.5, dr=1.0) == (1.0, -1)


@pytest.mark.parametrize("role", [LEAVING, RESTING])
def test_leaving_and_resting_rows_meet_nothing(role: int) -> None:
    assert one_row(role, u=0.5, du=5.0, r=0.5, dr=-5.0) == (1.0, -1)


@pytest.mark.parametrize("role, r", [(BOUND, 1e-20), (FALLING, 1e-20), (RISING, -1e-20)])
def test_rates_of_rounding_size_meet_nothing(role: int, r: float) -> None:
    assert one_row(role, r=r, dr=-np.sign(r) * 1e-10) == (1.0, -1)
    assert one_row(role, r=r, dr=-np.sign(r) * 1e-8)[1] == 0


def test_a_row_beyond_its_condition_meets_it_at_once() -> None:
    """Rounding may have carried it past; it never sends the path backwards."""
    assert one_row(MARGIN, u=1.0 + 1e-15, du=1.0) == (0.0, 0)
    assert one_row(BOUND, u=0.0, r=-1e-15, dr=-1.0) == (0.0, 0)


def test_without_a_limit_the_first_row_or_none() -> None:
    assert one_row(BOUND, u=0.0, r=5.0, dr=-1.0, limit=np.inf) == (5.0, 0)
    assert one_row(BOUND, u=0.0, r=5.0, dr=1.0, limit=np.inf) == (np.inf, -1)


def test_among_tied_rows_the_largest_rate_goes_first() -> None:
    rate = np.array([1.0, 4.0, 2.0])
    zero, one = np.zeros(3), np.ones(3)
    role = np.full(3, BOUND, dtype=np.uint8)
    assert next_breakpoint(zero, zero, 0.5 * rate, -rate, zero, one, role, 1e-9, 1.0) == (0.5, 1)
    nothing = next_breakpoint(zero, zero, zero, -rate, zero, one, role, 1e-9, 1.0)
    assert nothing == (0.0, 1)


def test_no_rows() -> None:
    none = np.empty(0)
    role = np.empty(0, dtype=np.uint8)
    assert next_breakpoint(none, none, none, none, none, none, role, 0.0, 1.0) == (1.0, -1)
    assert largest_rate(none) == 0.0
    advance(none, none, none, none, 1.0)


# ---------------------------------------------------------------------------------------------
# Against a plain loop


def plain_ratios(
    u: Vector, du: Vector, r: Vector, dr: Vector, lo: Vector, hi: Vector,
    role: npt.NDArray[np.uint8], still: float,
) -> Vector:  # fmt: skip
    """eta of every row, infinite where it meets nothing."""
    eta = np.full(len(u), np.inf)
    for i in range(len(u)):
        if role[i] == MARGIN and du[i] != 0.0:
            eta[i] = ((hi[i] if du[i] > 0.0 else lo[i]) - u[i]) / du[i]
        above = role[i] == FALLING or (role[i] == BOUND and u[i] == lo[i])
        waits = role[i] in (RISING, FALLING) or (role[i] == BOUND and lo[i] < hi[i])
        towards_zero = -dr[i] if above else dr[i]
        if waits and towards_zero > still:
            eta[i] = (r[i] if above else -r[i]) / towards_zero
    return np.maximum(eta, 0.0)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), limit=st.sampled_from([1.0, np.inf]))
def test_the_first_of_all_ratios(seed: int, n: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    role = rng.integers(0, 6, n).astype(np.uint8)
    lo = -rng.random(n)
    hi = lo + rng.random(n) * (rng.random(n) < 0.8)
    u = np.where(rng.random(n) < 0.5, lo, hi)
    inside = (role == MARGIN) | (role == RESTING)
    u[inside] = (lo + rng.random(n) * (hi - lo))[inside]
    r = np.where((role == RISING) | ((role == BOUND) & (u > lo)), -1.0, 1.0) * rng.random(n)
    du, dr = rng.standard_normal(n), 3.0 * rng.standard_normal(n)
    still = 0.01
    eta, row = next_breakpoint(u, du, r, dr, lo, hi, role, still, limit)
    ratios = plain_ratios(u, du, r, dr, lo, hi, role, still)
    if ratios.min() >= limit:
        assert (eta, row) == (limit, -1)
    else:
        assert eta == pytest.approx(ratios.min(), rel=1e-11)
        assert ratios[row] == pytest.approx(eta, rel=1e-11)


def test_advance_and_largest_rate() -> None:
    rng = np.random.default_rng(0)
    u, du, r, dr = rng.standard_normal((4, 25))
    u_new, r_new = u.copy(), r.copy()
    advance(u_new, du, r_new, dr, 0.3)
    np.testing.assert_allclose(u_new, u + 0.3 * du, rtol=1e-15, atol=1e-16)
    np.testing.assert_allclose(r_new, r + 0.3 * dr, rtol=1e-15, atol=1e-16)
    assert largest_rate(dr) == np.abs(dr).max()
    assert largest_rate(-np.abs(dr)) == np.abs(dr).max()
