# SPDX-License-Identifier: BSD-3-Clause
"""Products by BLAS that keep more bits than BLAS has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from adiabat.lssvm.exact_products import BLOCK_ROWS, SmallGram, gram_terms


def truth(Z: np.ndarray, s: np.ndarray, i: int, j: int) -> Fraction:
    return sum(
        (
            Fraction(w) * Fraction(a) * Fraction(b)
            for w, a, b in zip(s, Z[:, i], Z[:, j], strict=True)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize(
    ("cuts", "bound"), [(1, 10**21), (2, 10**27), (3, 10**33), (4, 10**39), (5, 10**45)]
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outlier", [1.0, 1e12])
def test_more_digits_than_float64(weighted, cuts, bound, outlier):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 4)) * np.array([1.0, 1e5, 1e-7, 3.0])
    Z[7, 3] *= outlier
    s = rng.uniform(0.0, 2.0, 300) if weighted else np.ones(300)
    terms = list(gram_terms(Z, s if weighted else None, cuts))
    scale = np.abs(Z).max(axis=0)
    for i in range(4):
        for j in range(i, 4):
            found = sum((Fraction(term[i, j]) for term in terms), Fraction(0))
            off = abs(found - truth(Z, s, i, j)) / Fraction(scale[i] * scale[j] * 300)
            assert off < Fraction(1, bound)


def test_whole_numbers_take_one_exact_product():
    rng = np.random.default_rng(1)
    Z = rng.integers(0, 2**20, (BLOCK_ROWS, 5)).astype(np.float64)
    (term,) = gram_terms(Z, None)
    whole = Z.astype(np.int64)
    assert np.array_equal(np.triu(term), np.triu(whole.T @ whole))


def test_small_whole_numbers_are_exact_in_single_precision():
    Z = np.full((BLOCK_ROWS, 3), 255.0) * [1.0, -1.0, 1.0]
    Z[-1, 2] = 254.0  # a last bit that only an exact sum keeps
    gram = SmallGram(4)
    for rows in (Z, Z // 16, Z[:1], np.asfortranarray(Z)[:5], Z[:, ::-1][::-3]):
        assert gram.add(rows[:, :2], np.ascontiguousarray(rows[:, 2:])) in (0, len(rows))
    exact = np.vstack([Z, Z // 16, Z[:1]]).astype(np.int64)
    exact = np.insert(exact, 2, 1, axis=1)
    assert np.array_equal(np.triu(gram.total), np.triu(exact.T @ exact))


@pytest.mark.parametrize("value", [0.5, 256.0, -256.0, 65536.0, 1e300, -1e-300, np.inf, np.nan])
def test_other_numbers_are_not_small(value):
    Z = np.full((3, 2), 7.0)
    Z[1, 1] = value
    for phi, t in ((Z, Z[:, :0]), (Z[:, :1], Z[:, 1:])):
        gram = SmallGram(3)
        assert gram.add(phi, np.ascontiguousarray(t)) == 1  # the row before it
        assert gram.total[0, 0] == 49.0
        assert gram.add(phi[:0], t[:0].copy()) == 0


def test_a_rest_in_a_few_columns():
    rng = np.random.default_rng(2)
    Z = np.column_stack([rng.integers(0, 9, (50, 3)).astype(float), rng.normal(size=50)])
    terms = list(gram_terms(Z, None))
    for i in range(4):
        for j in range(i, 4):
            found = sum((Fraction(term[i, j]) for term in terms), Fraction(0))
            assert abs(found - truth(Z, np.ones(50), i, j)) < Fraction(1, 10**19)


def test_columns_of_zeros_and_no_rows():
    assert all(not term.any() for term in gram_terms(np.zeros((3, 2)), None))
    assert all(not term.any() for term in gram_terms(np.zeros((0, 2)), None))


def test_a_block_that_could_round_is_refused():
    with pytest.raises(ValueError, match="at most 1024 rows"):
        next(gram_terms(np.zeros((BLOCK_ROWS + 1, 1)), None))
