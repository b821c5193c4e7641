# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat._core.rows import (
    are_equal,
    are_finite,
    ascending,
    codes_in,
    delete_entries,
    has_codes,
    nonzero,
    nonzeros,
    place_at,
    rename,
    rows_at,
)


def test_ascending() -> None:
    values = np.array([1, 4, 4, 9])
    assert ascending(values) is values
    assert ascending(values[:0]).tolist() == []
    assert ascending(values[::-1].copy()).tolist() == values.tolist()
    assert values.tolist() == [1, 4, 4, 9]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.uint8])
@pytest.mark.parametrize("gone", [[], [0], [9], [0, 9], [3, 4, 5], list(range(10))])
def test_without_some(dtype: type, gone: list[int]) -> None:
    values = np.arange(10).astype(dtype)
    left = delete_entries(values, np.array(gone, dtype=np.int64))
    assert left.dtype == values.dtype and not np.shares_memory(left, values)
    np.testing.assert_array_equal(left, np.delete(values, gone))
    for more in (values[:0], values[2:5]):
        joined = delete_entries(values, np.array(gone, dtype=np.int64), more)
        assert joined.dtype == values.dtype
        np.testing.assert_array_equal(joined, np.concatenate([np.delete(values, gone), more]))


@pytest.mark.parametrize("gone", [[10], [-1], [3, 3], [4, 2]])
def test_positions_must_ascend_within(gone: list[int]) -> None:
    with pytest.raises(IndexError, match="ascend"):
        delete_entries(np.arange(10.0), np.array(gone, dtype=np.int64))


def test_codes() -> None:
    assert codes_in(np.empty(0, dtype=np.int64)) == []
    for codes in ([0, 3, 7], [63], [0, 64], [63, 64, 128], [5, 200, 1000]):
        assert codes_in(np.array(codes * 2)[::-1].copy()) == codes
    with pytest.raises(ValueError, match="below"):
        codes_in(np.array([1, -1]))


@pytest.mark.parametrize("values", [[], [0.0], [3.0], [0.0, -2.0, 0.5], [1.0, 0.0, np.nan, -0.0]])
def test_what_is_not_zero_is_counted_and_listed(values: list[float]) -> None:
    u = np.array(values)
    assert nonzero(u) == np.count_nonzero(u)
    assert nonzeros(u).tolist() == np.flatnonzero(u).tolist()


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_one_entry_that_is_not_finite_is_seen(strange: float) -> None:
    X = np.full((3, 5), 1e308)
    assert are_finite(X) and are_finite(np.empty((0, 5)))
    X[2, 4] = strange
    assert not are_finite(X)


@pytest.mark.parametrize("moves", [{}, {9: 2}, {7: 0, 9: 5}, {5: 1, 6: 2, 9: 0}])
def test_positions_are_renamed(moves: dict[int, int]) -> None:
    positions = np.array([3, 9, 7, 0, 5, 9, 8, 6])
    expected = [moves.get(old, old) for old in positions.tolist()]
    old, new = (np.array(list(names), dtype=np.int64) for names in (moves, moves.values()))
    rename(positions, old, new)
    assert positions.tolist() == expected


def test_positions_that_are_there_once_are_sought_from_the_end() -> None:
    positions = np.array([9, 4, 0, 7, 2, 9, 5])
    rename(positions, np.array([7, 9]), np.array([1, 3]), once=True)
    assert positions.tolist() == [9, 4, 0, 1, 2, 3, 5]


def test_one_position_is_renamed_wherever_it_is_or_once() -> None:
    positions = np.array([9, 4, 9, 7])
    rename(positions, np.array([9]), np.array([1]), once=True)
    assert positions.tolist() == [9, 4, 1, 7]
    rename(positions, np.array([9]), np.array([2]))
    assert positions.tolist() == [2, 4, 1, 7]


def test_rows_at_marked_samples() -> None:
    at = np.array([4, 0, 1, 4, 2])
    marked = np.array([0, 1, 0, 0, 1], dtype=np.uint8)
    assert rows_at(at, marked).tolist() == [0, 2, 3]
    assert rows_at(at, np.zeros(5, dtype=np.uint8)).tolist() == []


def test_are_equal() -> None:
    X = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [0.0, 0.0], [-0.0, 0.0]])
    rows, others = np.array([0, 0, 1, 2, 3]), np.array([2, 1, 1, 0, 4])
    assert are_equal(X, rows, others).tolist() == [True, False, True, True, False]
    assert are_equal(X[:, :0], rows, others).all()
    with pytest.raises(IndexError, match="no row"):
        are_equal(X, rows, others + 2)
    with pytest.raises(ValueError, match="5 rows"):
        are_equal(X, rows, others[:2])


def test_the_nearest_row_at_a_position() -> None:
    at = np.array([4, 0, 1, 4, 2])
    assert [place_at(at, position) for position in (4, 0, 2, 3, 9, -5)] == [3, 1, 4, -1, -1, -1]
    assert place_at(at[:0], 3) == -1
    rng = np.random.default_rng(7)
    for _ in range(30):
        at = rng.permutation(40)[:25]
        for position in range(40):
            found = place_at(at, position)
            assert at[found] == position if position in at else found == -1


@pytest.mark.parametrize(
    ("codes", "there"), [([], True), ([0], True), ([2, 5], True), ([0, 3], False), ([9], False)]
)
def test_has_codes(codes: list[int], there: bool) -> None:
    assert has_codes(np.array([2, 0, 5, 2, 0]), codes) is there
    assert has_codes(np.array([], dtype=np.int64), codes) is (codes == [])


@pytest.mark.parametrize(("gone", "there"), [([], True), ([0, 3], False), ([1, 3], True)])
def test_codes_at_some_places_do_not_count(gone: list[int], there: bool) -> None:
    assert has_codes(np.array([2, 0, 5, 2, 0]), [0, 2], np.array(gone, dtype=np.int64)) is there
