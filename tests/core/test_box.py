# SPDX-License-Identifier: BSD-3-Clause
"""The violators' own small problem, to the modest accuracy that it promises."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from adiabat._core.box import coordinate_descent

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

FLAT = 1e-12
SHAPES = [(1, 1), (2, 1), (5, 5), (12, 4), (30, 30), (60, 8)]


class Box(NamedTuple):
    """minimise 1/2 d'Hd + g'd over lo <= d <= hi, where 0 is in the box."""

    H: Matrix
    g: Vector
    lo: Vector
    hi: Vector


def box(n: int, rank: int, seed: int = 0) -> Box:
    """A problem with some rows at a bound from the start and some that cannot move."""
    rng = np.random.default_rng([n, rank, seed])
    A = rng.standard_normal((n, rank))
    lo, hi = -rng.uniform(0.0, 2.0, n), rng.uniform(0.0, 2.0, n)
    lo[rng.random(n) < 0.3] = 0.0
    hi[rng.random(n) < 0.3] = 0.0
    return Box(np.ascontiguousarray(A @ A.T), 2.0 * rng.standard_normal(n), lo, hi)


def value(problem: Box, d: Vector) -> float:
    return float(0.5 * d @ problem.H @ d + problem.g @ d)


def assert_in_box(problem: Box, d: Vector, gradient: Vector) -> None:
    assert np.all(d >= problem.lo) and np.all(d <= problem.hi)
    np.testing.assert_allclose(gradient, problem.g + problem.H @ d, atol=1e-10)


def still_to_gain(problem: Box, d: Vector) -> float:
    """The duality gap of the box problem: no d of the box is better by more."""
    g = problem.g + problem.H @ d
    return float(np.sum(g * d - np.minimum(g * problem.lo, g * problem.hi)))


def flat(problem: Box) -> npt.NDArray[np.float64]:
    return np.full(len(problem.g), FLAT)


# ---------------------------------------------------------------------------------------------
# Coordinate descent: the box alone


@pytest.mark.parametrize("n, rank", SHAPES)
def test_coordinate_descent_ends_at_the_optimum_of_the_box(n: int, rank: int) -> None:
    for seed in range(5):
        problem, gradient = box(n, rank, seed), box(n, rank, seed).g.copy()
        d = coordinate_descent(problem.H, gradient, problem.lo, problem.hi, 20_000, flat(problem))
        assert_in_box(problem, d, gradient)
        assert still_to_gain(problem, d) <= 1e-3 * abs(value(problem, d)) + 1e-12


@pytest.mark.parametrize("n, rank", SHAPES)
def test_sixty_sweeps_are_nearly_as_good(n: int, rank: int) -> None:
    for seed in range(5):
        problem = box(n, rank, seed)
        few = coordinate_descent(problem.H, problem.g.copy(), *problem[2:], 60, flat(problem))
        many = coordinate_descent(problem.H, problem.g.copy(), *problem[2:], 20_000, flat(problem))
        assert value(problem, few) <= 0.98 * value(problem, many) + 1e-12


def test_every_sweep_lowers_the_objective() -> None:
    problem, last = box(30, 30), 0.0
    for sweeps in range(1, 25):
        d = coordinate_descent(problem.H, problem.g.copy(), *problem[2:], sweeps, flat(problem))
        assert value(problem, d) <= last + 1e-12
        last = value(problem, d)


def test_no_sweep_is_no_move() -> None:
    problem = box(5, 5)
    assert not coordinate_descent(problem.H, problem.g.copy(), *problem[2:], 0, flat(problem)).any()


def test_flat_curvature_goes_to_the_bound() -> None:
    zero, gradient = np.zeros((4, 4)), np.array([1.0, -1.0, 0.0, -1e-30])
    lo, hi = np.array([-3.0, -3.0, -3.0, -3.0]), np.array([2.0, 2.0, 2.0, 2.0])
    d = coordinate_descent(zero, gradient.copy(), lo, hi, 10, np.full(4, FLAT))
    assert d.tolist() == [-3.0, 2.0, 0.0, 2.0]


def test_curvature_below_flat_counts_as_none() -> None:
    H, gradient = np.array([[1e-6]]), np.array([1.0])
    lo, hi = np.array([-1e9]), np.array([1e9])
    assert coordinate_descent(H, gradient.copy(), lo, hi, 5, np.array([1e-5]))[0] == -1e9
    d = coordinate_descent(H, gradient.copy(), lo, hi, 5, np.array([1e-7]))
    assert d[0] == pytest.approx(-1e6)


def test_what_is_flat_for_one_row_is_not_for_another() -> None:
    """An outlier's curvature is large; that of its neighbour still counts."""
    H, gradient = np.diag([1e60, 1.0]), np.array([1e30, 1.0])
    d = coordinate_descent(H, gradient, np.full(2, -5.0), np.full(2, 5.0), 9, FLAT * H.diagonal())
    np.testing.assert_allclose(d, [-1e-30, -1.0])


def test_a_row_without_room_stays() -> None:
    d = coordinate_descent(
        np.eye(2), np.array([5.0, -5.0]), np.zeros(2), np.zeros(2), 9, np.full(2, FLAT)
    )
    assert not d.any()


def test_bounds_are_met_exactly() -> None:
    """Who ends at a bound goes to that bound: no rounding may tell it from the bound."""
    lo, hi = -np.array([0.1, 0.7, 0.3]), np.array([0.1, 0.2, 0.3])
    d = coordinate_descent(np.eye(3), np.array([50.0, -50.0, 0.1]), lo, hi, 9, np.full(3, FLAT))
    assert d[0] == lo[0] and d[1] == hi[1] and d[2] == pytest.approx(-0.1)


def test_an_empty_box_problem() -> None:
    none = np.empty(0)
    assert len(coordinate_descent(np.empty((0, 0)), none, none, none, 5, none)) == 0
