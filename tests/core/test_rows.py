# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat._core.rows import codes_in, mark, nonzero, reach, sizes, without


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.uint8])
@pytest.mark.parametrize("gone", [[], [0], [9], [0, 9], [3, 4, 5], list(range(10))])
def test_without_some(dtype: type, gone: list[int]) -> None:
    values = np.arange(10).astype(dtype)
    left = without(values, np.array(gone, dtype=np.int64))
    assert left.dtype == values.dtype and not np.shares_memory(left, values)
    np.testing.assert_array_equal(left, np.delete(values, gone))
    for more in (values[:0], values[2:5]):
        joined = without(values, np.array(gone, dtype=np.int64), more)
        assert joined.dtype == values.dtype
        np.testing.assert_array_equal(joined, np.concatenate([np.delete(values, gone), more]))


@pytest.mark.parametrize("gone", [[10], [-1], [3, 3], [4, 2]])
def test_positions_must_ascend_within(gone: list[int]) -> None:
    with pytest.raises(IndexError, match="ascend"):
        without(np.arange(10.0), np.array(gone, dtype=np.int64))


def test_codes() -> None:
    assert codes_in(np.empty(0, dtype=np.int64)) == []
    for codes in ([0, 3, 7], [63], [0, 64], [63, 64, 128], [5, 200, 1000]):
        assert codes_in(np.array(codes * 2)[::-1].copy()) == codes
    with pytest.raises(ValueError, match="below"):
        codes_in(np.array([1, -1]))


def test_sizes_counts_and_marks() -> None:
    u = np.array([0.0, -2.0, 0.5])
    assert sizes(u, np.array([1.0, -3.0, 2.0])) == (2.5, 3.0)
    assert sizes(np.empty(0), np.empty(0)) == (0.0, 0.0)
    assert nonzero(u) == 2
    assert reach(np.array([-3.0, 0.0]), np.array([0.0, 2.0])) == 3.0
    assert reach(np.empty(0), np.empty(0)) == 0.0
    marked = np.zeros(5, dtype=bool)
    mark(marked.view(np.uint8), np.array([4, 1, 1]), u)
    assert marked.tolist() == [False, True, False, False, False]
