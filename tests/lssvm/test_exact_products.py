# SPDX-License-Identifier: BSD-3-Clause
"""Products by BLAS that keep more bits than BLAS has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from adiabat.lssvm.exact_products import BLOCK_ROWS, gram_terms


def truth(Z: np.ndarray, s: np.ndarray, i: int, j: int) -> Fraction:
    return sum(
        (
            Fraction(w) * Fraction(a) * Fraction(b)
            for w, a, b in zip(s, Z[:, i], Z[:, j], strict=True)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize(("cuts", "bound"), [(1, 10**21), (2, 10**27)])
@pytest.mark.parametrize("weighted", [False, True])
def test_more_digits_than_float64(weighted, cuts, bound):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 4)) * np.array([1.0, 1e5, 1e-7, 3.0])
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
    Z = rng.integers(0, 256, (BLOCK_ROWS, 5)).astype(np.float64)
    (term,) = gram_terms(Z, None)
    assert np.array_equal(term, Z.astype(np.int64).T @ Z.astype(np.int64))


def test_columns_of_zeros_and_no_rows():
    assert all(not term.any() for term in gram_terms(np.zeros((3, 2)), None))
    assert all(not term.any() for term in gram_terms(np.zeros((0, 2)), None))


def test_a_block_that_could_round_is_refused():
    with pytest.raises(ValueError, match="at most 1024 rows"):
        next(gram_terms(np.zeros((BLOCK_ROWS + 1, 1)), None))
