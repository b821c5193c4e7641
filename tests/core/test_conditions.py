# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of the optimum, and what rounding excuses."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat._core.conditions import (
    aims,
    aims_by_bound,
    are_fine,
    common_size,
    has_room,
    imbalance,
    largest_ratio,
    residuals_at,
    roundings,
    strength_of,
    typical_size,
    violations,
    watch_nearest,
    within,
)


def test_an_outlier_does_not_move_what_is_typical() -> None:
    assert typical_size(np.array([1.0, -1.0, 1.0])) == 1.0
    assert typical_size(np.array([1.0, -2.0, 1e12])) == 2.0
    assert typical_size(np.empty(0)) == 0.0


def test_violations_by_definition() -> None:
    r = np.array([0.5, -0.5, 0.5, -0.5, 0.25, -0.25])
    u = np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.5])
    found = violations(r, u, np.zeros(6), np.ones(6))
    assert found.tolist() == [0.0, 0.5, 0.5, 0.0, 0.25, 0.25]


EPSILON = float(np.finfo(np.float64).eps)


def roundings_of(u, t, root, sizes=None):
    out = np.empty(len(u))
    coarse = roundings(u, t, root, 0.5, typical_size(t), 1.0, 1e-11, out, sizes)
    return coarse, out


def test_a_rounding_is_that_of_the_terms_of_f() -> None:
    t, root = np.array([1.0, -1.0, 1.0]), np.ones(3)
    coarse, found = roundings_of(np.array([1.0, -1.0, 0.0]), t, root)
    assert not coarse
    np.testing.assert_allclose(found, EPSILON * (2.0 + 0.5 + 1.0))
    coarse, found = roundings_of(np.array([1e8, -1e8, 0.0]), t, root)
    assert coarse
    np.testing.assert_allclose(found, EPSILON * 2e8)
    _, found = roundings_of(np.array([1e8, -1e8, 0.0]), t, root, np.array([2e8, 10.0, 10.0]))
    np.testing.assert_allclose(found[2], EPSILON * 11.5)


def test_b_carries_the_rounding_of_a_usual_row() -> None:
    t, u = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, 0.0])
    _, found = roundings_of(u, t, np.array([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, EPSILON * 3.5)
    _, found = roundings_of(u, t, np.ones(3), np.array([8.0, 8.0, 0.0]))
    np.testing.assert_allclose(found, EPSILON * 9.5)


def test_an_outlier_rounds_for_itself() -> None:
    t, u = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, 1e-30])
    _, ordinary = roundings_of(u, t, np.ones(3))
    _, found = roundings_of(u, t, np.array([1.0, 1.0, 1e30]))
    assert np.all(found[:2] <= 2.0 * ordinary[:2]) and found[2] > 1.0


@pytest.mark.parametrize(
    ("t", "size"), [([], -1.0), ([-2.0], 2.0), ([1.0, -1.0, 1.0], 1.0), ([1.0, -1.5], -1.0)]
)
def test_common_size(t: list[float], size: float) -> None:
    assert common_size(np.array(t)) == size


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_fine_where_the_parts_say_so(seed: int) -> None:
    """In one pass what roundings, aims and violations say one after the other."""
    rng = np.random.default_rng(seed)
    n, b, part, fine = 12, rng.choice([0.0, 0.3, 1e5]), 1e-10, 1e-12
    t, root = rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 2.0, n)
    u = np.where(rng.random(n) < 0.5, 0.0, rng.choice([1.0, 1e3, 1e6]))
    lo, hi = np.zeros(n), np.where(u > 0.0, rng.choice([1.0, 2.0]) * u, 1.0)
    r = rng.choice([0.0, 1e-14, 3e-13, 1e-11, 1e-9]) * rng.standard_normal(n)
    if seed % 5 == 0:
        u[3] = hi[3] + 1e-9
    rounding = np.empty(n)
    coarse = roundings(u, t, root, b, 1.0, 1.0, part / 4.0, rounding)
    found = violations(r, u, lo, hi)
    aim = aims(rounding, t, 1.0, part, 64.0, 4.0)
    expected = (
        not coarse
        and largest_ratio(found, aim) <= 1.0
        and bool(np.all(found <= np.maximum(fine, rounding)))
        and bool(np.all((u >= lo) & (u <= hi)))
    )
    given = r, u, t, lo, hi, root, b, 1.0, 1.0, part / 4.0, part, 64.0, 4.0
    d = float(u.sum())
    assert are_fine(*given, fine, d, 1e-12) == expected
    assert not are_fine(*given, fine, d + 1e-9 * (1.0 + abs(d)), 1e-12)
    bound = aims_by_bound(u, t, root, b, 1.0, 1.0, part / 4.0, part, 64.0, 4.0)
    assert (bound is None) == coarse
    if bound is not None:
        np.testing.assert_array_equal(bound, aim)


def test_rows_that_violate_or_do_not_fit_are_not_fine() -> None:
    n = 5
    ones, none = np.ones(n), np.zeros(n)
    given = ones, none, ones, ones, 0.0, 1.0, 1.0, 2.5e-11, 1e-10, 64.0, 4.0, 1e-12, 0.0, 1e-15
    assert are_fine(none, none, *given)
    assert not are_fine(-1e-9 * ones, none, *given)  # they want to rise, and can
    with pytest.raises(ValueError, match="do not fit"):
        are_fine(none[:4], none, *given)


def test_within() -> None:
    r, t = np.array([1e-12, 5e-12, 1.0, np.nan]), np.array([1.0, 10.0, 1.0, 1.0])
    assert within(r, t, np.array([0, 1]), 1.0, 1e-12)
    assert not within(r, t, np.array([0, 2]), 1.0, 1e-12)
    assert not within(r, t, np.array([3]), 1.0, 1e-12)
    assert within(r, t, np.array([0, 1]), 5.0, 1e-12)


def test_a_sum_is_right_but_for_rounding() -> None:
    u = np.array([1e16, 1.0, -1e16])
    assert imbalance(u, 1.0, 0.0) == 0.0  # to twice the precision
    assert imbalance(u, 3.0, 0.0) == 2.0 and imbalance(u, 3.0, 1e-15) == 0.0
    assert imbalance(np.empty(0), 2.0, 1.0) == 2.0 and imbalance(np.empty(0), 0.0, 1.0) == 0.0
    assert strength_of(np.array([2.0, 3.0]), np.array([-1.0, 0.5])) == 3.5


def test_a_row_has_room_if_f_shows_how_far_its_bounds_are() -> None:
    of_one = 1.0, 0.0, 1.0, 1.0, 0.0  # t, lo, hi, root, b
    assert [has_room(u, *of_one, 1.0, 64.0) for u in (0.5, 1e-13, 1.0 - 1e-17)] == [
        True, True, False,
    ]  # fmt: skip
    assert not has_room(1e-13, *of_one, 1e3, 64.0)  # beside larger weights it is nothing
    # but for its own f, which is larger still
    assert has_room(1e-13, 1.0, 0.0, 1.0, 1e8, 0.0, 1e3, 64.0)


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("ties", [False, True])
def test_the_nearest_rows_are_watched(step: int, ties: bool) -> None:
    rng = np.random.default_rng(step)
    for n in (2, 7, 50, 501):
        r = rng.standard_normal(n)
        r = np.round(r, 1) if ties else r
        passed = (rng.random(n) < 0.2).astype(np.uint8)
        size = int(rng.integers(0, n))
        watched = np.ones(n, dtype=np.uint8)
        watch_nearest(r, passed, step, size, watched)
        distance = np.where(passed, np.inf, np.abs(r))
        guess = np.sort(distance[::step])
        most = guess[len(guess) * size // n]
        np.testing.assert_array_equal(watched, (distance <= most) & (passed == 0))
    with pytest.raises(ValueError, match="do not fit"):
        watch_nearest(r, passed, step, n, watched)


def test_strength_is_a_sum_over_all_rows_or_those_with_weight() -> None:
    rng = np.random.default_rng(0)
    root, u = rng.uniform(size=300), rng.standard_normal(300)
    u[rng.random(300) < 0.8] = 0.0
    expected = pytest.approx(root @ np.abs(u))
    assert strength_of(root, u) == expected
    assert strength_of(root, u, np.flatnonzero(u)) == expected
    with pytest.raises(IndexError, match="no row 300"):
        strength_of(root, u, np.array([300]))
    with pytest.raises(ValueError, match="do not fit"):
        strength_of(root[1:], u, np.array([3]))


def test_residuals_are_f_and_b_less_the_target() -> None:
    rng = np.random.default_rng(0)
    f, lines, t = rng.standard_normal((9, 2)), np.array([8, 0, 3, 3]), rng.standard_normal(4)
    r = residuals_at(f, 1, lines, 0.5, t)
    np.testing.assert_array_equal(r, f[lines, 1] + (0.5 - t))
    with pytest.raises(IndexError, match="no line 9"):
        residuals_at(f, 1, np.array([0, 9, 1, 1]), 0.5, t)
    for column, targets in ((2, t), (0, t[1:])):
        with pytest.raises(ValueError, match="do not fit"):
            residuals_at(f, column, lines, 0.5, targets)
