# SPDX-License-Identifier: BSD-3-Clause
"""Arrays that grow and shrink where they are."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat._core.room import extended, remove_entries


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
def test_arrays_grow_at_their_end(dtype: type) -> None:
    """In a new buffer with room, or in their own as long as it has some."""
    values = np.arange(1, 17).astype(dtype)
    buffer, grown = extended(values, values[:8], 8)
    assert buffer.dtype == dtype and len(buffer) == 27 and not buffer[24:].any()
    np.testing.assert_array_equal(grown, np.concatenate([values, values[:8]]))
    assert not np.shares_memory(buffer, values)
    same, more = extended(grown, values[:3], 8, buffer)
    assert same is buffer and np.shares_memory(more, grown)
    np.testing.assert_array_equal(more, np.concatenate([grown, values[:3]]))
    other, most = extended(more, values[:1], 8, buffer)
    assert other is not buffer and len(most) == 28 and len(more) == 27
    np.testing.assert_array_equal(most, np.concatenate([more, values[:1]]))
    _, copy = extended(values, values[:0], 8)
    assert not np.shares_memory(copy, values)
    np.testing.assert_array_equal(copy, values)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("gone", [[], [0], [9], [0, 9], [3, 4, 5], list(range(10))])
def test_entries_are_removed_where_they_are(dtype: type, gone: list[int]) -> None:
    values = np.arange(10).astype(dtype)
    expected = np.delete(values, gone)
    left = remove_entries(values, np.array(gone, dtype=np.int64))
    np.testing.assert_array_equal(values[:left], expected)
    assert not values[left:].any()  # nothing of them is left


@pytest.mark.parametrize("gone", [[10], [-1], [3, 3], [4, 2]])
def test_entries_that_are_not_there_are_not_removed(gone: list[int]) -> None:
    values = np.arange(10.0)
    with pytest.raises(IndexError, match="ascend"):
        remove_entries(values, np.array(gone, dtype=np.int64))
    np.testing.assert_array_equal(values, np.arange(10.0))
