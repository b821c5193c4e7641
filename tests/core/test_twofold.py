# SPDX-License-Identifier: BSD-3-Clause
"""Twice the working precision, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from adiabat._core.twofold import (
    add_matrix,
    add_outer,
    add_twofold,
    centred,
    residual,
    weighted_sums,
)


def wild(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape)


def exact(hi: np.ndarray, lo: np.ndarray, i: int, j: int) -> Fraction:
    i, j = min(i, j), max(i, j)
    return Fraction(hi[i, j]) + Fraction(lo[i, j])


@pytest.fixture
def sums() -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], Fraction]]:
    rng = np.random.default_rng(0)
    m = 21  # more than two vectors' worth, and no multiple
    hi, lo = np.zeros((m, m)), np.zeros((m, m))
    truth = {(i, j): Fraction(0) for i in range(m) for j in range(i, m)}
    for _ in range(30):
        z, s = wild(rng, m), float(rng.normal())
        add_outer(hi, lo, z, s)
        for i, j in truth:
            truth[i, j] += Fraction(s) * Fraction(z[i]) * Fraction(z[j])
    return hi, lo, truth


def test_outer_products_add_up(sums):
    hi, lo, truth = sums
    for (i, j), value in truth.items():
        assert abs(exact(hi, lo, i, j) - value) <= abs(value) * Fraction(1, 10**27)


def test_nothing_below_the_diagonal_is_touched(sums):
    hi, lo, _ = sums
    assert not np.tril(hi, -1).any() and not np.tril(lo, -1).any()


def test_what_is_taken_off_again_leaves_nothing(sums):
    hi, lo, _ = sums
    z = wild(np.random.default_rng(1), len(hi))
    before = hi.copy()
    add_outer(hi, lo, z, 1e8)
    add_outer(hi, lo, z, -1e8)
    assert np.abs(np.triu(hi - before)).max() <= 1e-15 * np.abs(before).max()


def test_matrices_and_twofold_matrices_add_up(sums):
    hi, lo, truth = sums
    term = wild(np.random.default_rng(2), *hi.shape)
    total_hi, total_lo = hi.copy(), lo.copy()
    add_matrix(total_hi, total_lo, term, 1.0)
    add_twofold(total_hi, total_lo, hi, lo, -1.0)
    for i, j in truth:
        assert abs(exact(total_hi, total_lo, i, j) - Fraction(term[i, j])) <= abs(
            Fraction(term[i, j])
        ) * Fraction(1, 10**12)


def wide(rng: np.random.Generator, m: int) -> np.ndarray:
    """Numbers of 53 bits over 24 decades."""
    return rng.normal(size=m) * 10.0 ** rng.integers(-12, 13, m)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_a_third_part_a_huge_row_leaves_nothing(weighted):
    rng = np.random.default_rng(5)
    m = 19
    hi, lo, rest = np.zeros((m, m)), np.zeros((m, m)), np.zeros((1, m, m))
    rows = [(rng.normal(size=m), float(rng.uniform(0.1, 2.0)) if weighted else 1.0)] * 3
    huge = [(wide(rng, m), float(rng.uniform(0.1, 2.0)) if weighted else 1.0) for _ in range(4)]
    for z, s in (*rows, *huge):
        add_outer(hi, lo, z, s, rest)
    other_hi, other_lo, other_rest = np.zeros((m, m)), np.zeros((m, m)), np.zeros((1, m, m))
    for z, s in huge[2:]:
        add_outer(other_hi, other_lo, z, s, other_rest)
    term = np.outer(1e10 * rng.normal(size=m), rng.normal(size=m))
    add_matrix(hi, lo, term, 1.0, rest)
    add_twofold(hi, lo, other_hi, other_lo, -1.0, rest, other_rest)
    for z, s in huge[:2]:
        add_outer(hi, lo, z, -s, rest)
    add_matrix(hi, lo, term, -1.0, rest)
    for i in range(m):
        for j in range(i, m):
            truth = sum(Fraction(s) * Fraction(z[i]) * Fraction(z[j]) for z, s in rows)
            left = Fraction(hi[i, j]) + Fraction(lo[i, j]) - truth
            assert abs(left) <= Fraction(1, 10**20)
            assert abs(lo[i, j]) <= np.spacing(abs(hi[i, j]))  # hi and lo alone are read
    assert not np.tril(rest, -1).any()


def test_residual_is_rounded_once(sums):
    hi, lo, _ = sums
    rng = np.random.default_rng(3)
    m = len(hi) - 2  # a leading block
    x, b, rest, ridge = wild(rng, m), wild(rng, m), 1e-17 * wild(rng, m), np.abs(wild(rng, m))
    found = residual(hi, lo, ridge, x, b, rest)
    for i in range(m):
        truth = Fraction(b[i]) + Fraction(rest[i]) - Fraction(ridge[i]) * Fraction(x[i])
        terms = [exact(hi, lo, i, j) * Fraction(x[j]) for j in range(m)]
        truth -= sum(terms)
        size = max(abs(term) for term in terms)
        assert abs(Fraction(found[i]) - truth) <= abs(truth) * Fraction(
            1, 10**15
        ) + size * Fraction(1, 10**28)


@pytest.mark.parametrize("precise", [True, False])
def test_what_is_left_of_a_right_side_is_its_low_part(precise):
    """The identity takes all of b away."""
    b, rest = np.array([1.0, -3.0, 7.0]), np.array([1e-17, 2e-17, -3e-16])
    lo = np.zeros((3, 3)) if precise else None
    assert residual(np.eye(3), lo, np.zeros(3), b, b, rest).tolist() == rest.tolist()


def test_centred_survives_a_mean_that_dwarfs_the_spread():
    rng = np.random.default_rng(4)
    rows = np.column_stack([1e7 + rng.normal(size=(50, 5)), np.ones(50)])
    hi, lo = np.zeros((6, 6)), np.zeros((6, 6))
    for row in rows:
        add_outer(hi, lo, row, 1.0)
    found = centred(hi, lo, 5)
    for i in range(5):
        for j in range(i, 5):
            truth = exact(hi, lo, i, j) - exact(hi, lo, i, 5) * exact(hi, lo, j, 5) / 50
            assert abs(Fraction(found[i, j]) - truth) <= Fraction(1, 10**13)


def test_nothing_in_nothing_out():
    empty = np.zeros((0, 0))
    add_outer(empty, empty, np.zeros(0), 1.0)
    assert residual(empty, empty, np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)).shape == (0,)


def test_weighted_sums_round_once():
    rng = np.random.default_rng(3)
    A, x, start = wild(rng, 7, 33), wild(rng, 33), wild(rng, 7)
    A[:, 16:32], x[16:32] = A[:, :16], -x[:16] * (1.0 + 1e-12)  # most of it cancels
    before = start.copy()
    found = weighted_sums(A, x, start)
    for row, first, value in zip(A, start, found, strict=True):
        true = sum(
            (Fraction(a) * Fraction(b) for a, b in zip(row, x, strict=True)), Fraction(first)
        )
        assert abs(Fraction(value) - true) <= abs(true) * Fraction(1, 2**52)
    assert np.array_equal(start, before)
    assert weighted_sums(np.empty((0, 33)), x, np.empty(0)).shape == (0,)
    assert np.array_equal(weighted_sums(np.empty((7, 0)), np.empty(0), start), start)
