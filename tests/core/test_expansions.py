# SPDX-License-Identifier: BSD-3-Clause
"""Expansions against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from adiabat._core import expansions
from adiabat._core.twofold import add_outer

PARTS = 6
SIDE = 7


def value(parts: np.ndarray) -> Fraction:
    return sum((Fraction(float(part)) for part in parts), Fraction(0))


def numbers(rng: np.random.Generator, count: int, parts: int = PARTS) -> np.ndarray:
    """Numbers of all their parts, over 60 decades."""
    found = np.zeros((count, parts))
    size = 10.0 ** rng.integers(-30, 31, count)
    for k in range(parts):
        expansions.add_scaled(
            found, (size * rng.normal(size=count) * 2.0 ** (-53 * k))[:, None], np.ones(1), 1.0
        )
    return found


@pytest.fixture
def matrix():
    """Moments of ordinary rows and of one of 1e40."""
    rng = np.random.default_rng(1)
    hi, lo, rest = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE)), np.zeros((PARTS - 2, SIDE, SIDE))
    rows = rng.normal(size=(4, SIDE))
    rows[0] *= 10.0 ** rng.integers(0, 41, SIDE)
    for z in rows:
        add_outer(hi, lo, z, 1.0 / 3.0, rest)
    truth = [
        [sum(Fraction(1.0 / 3.0) * Fraction(z[i]) * Fraction(z[j]) for z in rows)
         for j in range(SIDE)] for i in range(SIDE)
    ]  # fmt: skip
    return hi, lo, rest, truth


def test_rows_of_any_size_add_up_and_leave_nothing(matrix):
    hi, lo, rest, truth = matrix
    for i in range(SIDE):
        own = expansions.column(hi, lo, rest, SIDE, i, PARTS)
        for j in range(SIDE):
            assert abs(value(own[j]) - truth[i][j]) <= abs(truth[i][j]) * Fraction(2) ** -300
            kept = own[j][own[j] != 0.0]
            assert len(kept) == PARTS or not own[j][len(kept) :].any()
            assert (np.abs(kept[1:]) <= np.spacing(np.abs(kept[:-1]))).all()
    huge = np.full(SIDE, 1e45)
    add_outer(hi, lo, huge, 1.0, rest)
    add_outer(hi, lo, huge, -1.0, rest)
    for i in range(SIDE):
        left = value(expansions.column(hi, lo, rest, SIDE, i, PARTS)[i]) - truth[i][i]
        assert abs(left) <= Fraction(10) ** 90 * Fraction(2) ** (-52 * PARTS)


def test_products_quotients_and_sums():
    rng = np.random.default_rng(2)
    a, b, y = (numbers(rng, 9) for _ in range(3))
    found = y.copy()
    expansions.add_products(found, a, b, -1.0)
    for row in range(9):
        size = abs(value(a[row]) * value(b[row])) + abs(value(y[row]))
        truth = value(y[row]) - value(a[row]) * value(b[row])
        assert abs(value(found[row]) - truth) <= size * Fraction(2) ** -300
    quotient = expansions.divide(a, b[0])
    for row in range(9):
        truth = value(a[row]) / value(b[0])
        assert abs(value(quotient[row]) - truth) <= abs(truth) * Fraction(2) ** -300
    truth = sum((value(p) * value(q) for p, q in zip(a, b, strict=True)), value(y[0]))
    size = sum(abs(value(p) * value(q)) for p, q in zip(a, b, strict=True)) + abs(value(y[0]))
    assert abs(value(expansions.dot(a, b, y[0], PARTS)) - truth) <= size * Fraction(2) ** -300


def test_sums_are_rounded_once():
    rng = np.random.default_rng(3)
    A, x, start = rng.normal(size=(5, 9)), numbers(rng, 9), numbers(rng, 1)[0]
    A[:, 0] = -(A[:, 1:] @ x[1:, 0]) / x[0, 0]  # nearly all digits cancel
    for row, found in zip(A, expansions.dots(A, x, start), strict=True):
        terms = (Fraction(float(p)) * value(q) for p, q in zip(row, x, strict=True))
        truth = sum(terms, value(start))
        assert abs(Fraction(found) - truth) <= abs(truth) * Fraction(2) ** -52


def test_residual_and_remainder(matrix):
    hi, lo, rest, truth = matrix
    rng = np.random.default_rng(4)
    m = SIDE - 2
    ridge, x, b = np.abs(rng.normal(size=m)), numbers(rng, m), numbers(rng, m)
    found = expansions.residual(hi, lo, rest, ridge, x, b, 0.0)
    for i in range(m):
        terms = [truth[i][j] * value(x[j]) for j in range(m)]
        exact = value(b[i]) - sum(terms) - Fraction(ridge[i]) * value(x[i])
        size = max(abs(term) for term in terms)
        assert abs(value(found[i]) - exact) <= size * Fraction(2) ** -295
    U = np.zeros((1, m, PARTS))
    U[0] = expansions.column(hi, lo, rest, m, 0, PARTS)
    L = expansions.divide(U[0], U[0, 0])[None]
    S = expansions.remainder(hi, lo, rest, ridge, L, U, np.arange(1, m, dtype=np.intp), 2.0**-200)
    for i in range(1, m):
        for j in range(i, m):
            exact = truth[i][j] - truth[0][i] * truth[0][j] / truth[0][0]
            exact += Fraction(ridge[i]) if i == j else 0
            assert abs(Fraction(S[i - 1, j - 1]) - exact) <= abs(exact) * Fraction(10) ** -15


def test_more_parts_than_there_is_room_for_are_refused():
    with pytest.raises(ValueError, match="parts"):
        expansions.divide(np.ones((2, expansions.MOST_PARTS + 1)), np.ones(1))
    with pytest.raises(ValueError, match="rest has"):
        add_outer(np.zeros((2, 2)), np.zeros((2, 2)), np.ones(2), 1.0, np.zeros((20, 2, 2)))
