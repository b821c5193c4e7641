# SPDX-License-Identifier: BSD-3-Clause
"""Which landmark is nearest to a row."""

import numpy as np
import pytest

from adiabat._core.nearest import among, approach, places_of, take_out


def test_rows_follow_the_nearest_landmark() -> None:
    rng = np.random.default_rng(3)
    values, sizes, others = rng.standard_normal((5, 4)), rng.random(5) + 3.0, rng.random(4) + 3.0
    rows, names = np.array([6, 0, 2, 5, 3]), np.array([4, 9, 2, 7], dtype=np.int16)
    square, number = np.full(8, 6.0), np.full(8, 1, dtype=np.int16)
    expected, named = square.copy(), number.copy()
    both = sizes[:, None] + others
    apart = np.maximum(both - 2.0 * values, 0.0) + 64.0 * np.finfo(float).eps * both
    nearer = apart.min(axis=1) < 6.0
    expected[rows[nearer]] = apart.min(axis=1)[nearer]
    named[rows[nearer]] = names[apart.argmin(axis=1)][nearer]
    assert 0 < nearer.sum() < 5
    approach(values, sizes, others, 64.0, rows, names, square, number)
    np.testing.assert_array_equal(square, expected)
    np.testing.assert_array_equal(number, named)
    approach(values, sizes, others, 64.0, rows, names[::-1].copy(), square, number)
    np.testing.assert_array_equal(number, named)  # none is nearer than that
    with pytest.raises(ValueError, match="landmarks do not fit"):
        approach(values, sizes, others[1:], 64.0, rows, names, square, number)
    with pytest.raises(ValueError, match="a row is not there"):
        approach(values, sizes, others, 64.0, rows + 2, names, square, number)


def test_who_has_one_of_some_landmarks() -> None:
    rows = np.array([3, -1, 5, 9])
    parts = np.array([[1, 2], [2, 7], [4, 4], [7, 1]], dtype=np.int16)
    for names, expected in (([2], [0]), ([1, 4], [0, 2, 3]), ([9], []), ([], [])):
        found = among(rows, parts, np.array(names, dtype=np.int16))
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="parts do not fit"):
        among(rows[:2], parts, np.array([1], dtype=np.int16))


def test_places_of_rows_that_are_sought() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        rows = rng.permutation(60)[: rng.integers(0, 40)]
        rows[rng.random(len(rows)) < 0.2] = -1
        sought = np.unique(rng.integers(0, 60, rng.integers(0, 8)))
        here = np.isin(rows, sought)
        np.testing.assert_array_equal(places_of(rows, sought), np.flatnonzero(here))
        left = np.where(here, -1, rows)
        take_out(rows, sought)
        np.testing.assert_array_equal(rows, left)
    with pytest.raises(ValueError, match="twice"):
        places_of(np.array([4, 4]), np.array([4]))
