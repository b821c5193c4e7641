# SPDX-License-Identifier: BSD-3-Clause
"""Distances from products against the same in NumPy."""

import numpy as np
import pytest

from adiabat._core.distances import scaled_distances


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (5, 1), (1, 7), (13, 29), (3, 0)])
def test_scaled_distances(shape):
    rng = np.random.default_rng(0)
    products, a, b = rng.standard_normal(shape), rng.random(shape[0]), rng.random(shape[1])
    expected = 0.3 * np.minimum(products - a[:, None] - b, 0.0)
    scaled_distances(products, a, b, 0.3)
    np.testing.assert_array_equal(products, expected)


def test_what_is_no_number_stays_so():
    products = np.array([[np.nan, 5.0]])
    scaled_distances(products, np.ones(1), np.ones(2), 2.0)
    assert np.isnan(products[0, 0])
    assert products[0, 1] == 0.0


def test_norms_of_another_number_are_refused():
    with pytest.raises(ValueError, match="one norm"):
        scaled_distances(np.ones((2, 3)), np.ones(3), np.ones(3), 1.0)
