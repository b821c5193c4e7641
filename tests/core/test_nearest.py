# SPDX-License-Identifier: BSD-3-Clause
"""Which landmark is nearest to a row."""

import numpy as np
import pytest

from adiabat._core.nearest import approach


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
