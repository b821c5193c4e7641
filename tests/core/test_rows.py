# SPDX-License-Identifier: BSD-3-Clause
"""Small services for arrays of rows."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat._core.rows import (
    aims,
    are_fine,
    codes_in,
    common_size,
    delete_entries,
    first_at,
    has_codes,
    largest_ratio,
    mark,
    nonzero,
    remove_entries,
    rename,
    roundings,
    rows_at,
    typical_size,
    violations,
    within,
)


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


def test_counts_and_marks() -> None:
    u = np.array([0.0, -2.0, 0.5])
    assert nonzero(u) == 2
    marked = np.zeros(5, dtype=bool)
    mark(marked.view(np.uint8), np.array([4, 1, 1]), u)
    assert marked.tolist() == [False, True, False, False, False]


def test_an_outlier_does_not_move_what_is_typical() -> None:
    assert typical_size(np.array([1.0, -1.0, 1.0])) == 1.0
    assert typical_size(np.array([1.0, -2.0, 1e12])) == 2.0
    assert typical_size(np.empty(0)) == 0.0


def test_violations_by_definition() -> None:
    r = np.array([0.5, -0.5, 0.5, -0.5, 0.25, -0.25])
    u = np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.5])
    found = violations(r, u, np.zeros(6), np.ones(6))
    assert found.tolist() == [0.0, 0.5, 0.5, 0.0, 0.25, 0.25]


EPSILON = float(np.finfo(np.float64).eps)


def roundings_of(u, t, root, sizes=None):
    out = np.empty(len(u))
    coarse = roundings(u, t, root, 0.5, typical_size(t), 1.0, 1e-11, out, sizes)
    return coarse, out


def test_a_rounding_is_that_of_the_terms_of_f() -> None:
    t, root = np.array([1.0, -1.0, 1.0]), np.ones(3)
    coarse, found = roundings_of(np.array([1.0, -1.0, 0.0]), t, root)
    assert not coarse
    np.testing.assert_allclose(found, EPSILON * (2.0 + 0.5 + 1.0))
    coarse, found = roundings_of(np.array([1e8, -1e8, 0.0]), t, root)
    assert coarse
    np.testing.assert_allclose(found, EPSILON * 2e8)
    _, found = roundings_of(np.array([1e8, -1e8, 0.0]), t, root, np.array([2e8, 10.0, 10.0]))
    np.testing.assert_allclose(found[2], EPSILON * 11.5)


def test_b_carries_the_rounding_of_a_usual_row() -> None:
    t, u = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, 0.0])
    _, found = roundings_of(u, t, np.array([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, EPSILON * 3.5)
    _, found = roundings_of(u, t, np.ones(3), np.array([8.0, 8.0, 0.0]))
    np.testing.assert_allclose(found, EPSILON * 9.5)


def test_an_outlier_rounds_for_itself() -> None:
    t, u = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, 1e-30])
    _, ordinary = roundings_of(u, t, np.ones(3))
    _, found = roundings_of(u, t, np.array([1.0, 1.0, 1e30]))
    assert np.all(found[:2] <= 2.0 * ordinary[:2]) and found[2] > 1.0


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


def test_rows_at_marked_samples() -> None:
    at = np.array([4, 0, 1, 4, 2])
    marked = np.array([0, 1, 0, 0, 1], dtype=np.uint8)
    assert rows_at(at, marked).tolist() == [0, 2, 3]
    assert rows_at(at, np.zeros(5, dtype=np.uint8)).tolist() == []


@pytest.mark.parametrize(
    ("t", "size"), [([], -1.0), ([-2.0], 2.0), ([1.0, -1.0, 1.0], 1.0), ([1.0, -1.5], -1.0)]
)
def test_common_size(t: list[float], size: float) -> None:
    assert common_size(np.array(t)) == size


def test_first_at() -> None:
    at = np.array([4, 0, 1, 4, 2])
    assert [first_at(at, position) for position in (4, 0, 2, 3)] == [0, 1, 4, -1]


@pytest.mark.parametrize(
    ("codes", "there"), [([], True), ([0], True), ([2, 5], True), ([0, 3], False), ([9], False)]
)
def test_has_codes(codes: list[int], there: bool) -> None:
    assert has_codes(np.array([2, 0, 5, 2, 0]), codes) is there
    assert has_codes(np.array([], dtype=np.int64), codes) is (codes == [])


@pytest.mark.parametrize(("gone", "there"), [([], True), ([0, 3], False), ([1, 3], True)])
def test_codes_at_some_places_do_not_count(gone: list[int], there: bool) -> None:
    assert has_codes(np.array([2, 0, 5, 2, 0]), [0, 2], np.array(gone, dtype=np.int64)) is there


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_fine_where_the_parts_say_so(seed: int) -> None:
    """In one pass what roundings, aims and violations say one after the other."""
    rng = np.random.default_rng(seed)
    n, b, part, fine = 12, rng.choice([0.0, 0.3, 1e5]), 1e-10, 1e-12
    t, root = rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 2.0, n)
    u = np.where(rng.random(n) < 0.5, 0.0, rng.choice([1.0, 1e3, 1e6]))
    lo, hi = np.zeros(n), np.where(u > 0.0, rng.choice([1.0, 2.0]) * u, 1.0)
    r = rng.choice([0.0, 1e-14, 3e-13, 1e-11, 1e-9]) * rng.standard_normal(n)
    if seed % 5 == 0:
        u[3] = hi[3] + 1e-9
    rounding = np.empty(n)
    coarse = roundings(u, t, root, b, 1.0, 1.0, part / 4.0, rounding)
    found = violations(r, u, lo, hi)
    aim = aims(rounding, t, 1.0, part, 64.0, 4.0)
    expected = (
        not coarse
        and largest_ratio(found, aim) <= 1.0
        and bool(np.all(found <= np.maximum(fine, rounding)))
        and bool(np.all((u >= lo) & (u <= hi)))
    )
    given = r, u, t, lo, hi, root, b, 1.0, 1.0, part / 4.0, part, 64.0, 4.0
    assert are_fine(*given, fine) == expected


def test_rows_that_violate_or_do_not_fit_are_not_fine() -> None:
    n = 5
    ones, none = np.ones(n), np.zeros(n)
    given = ones, none, ones, ones, 0.0, 1.0, 1.0, 2.5e-11, 1e-10, 64.0, 4.0, 1e-12
    assert are_fine(none, none, *given)
    assert not are_fine(-1e-9 * ones, none, *given)  # they want to rise, and can
    with pytest.raises(ValueError, match="do not fit"):
        are_fine(none[:4], none, *given)


def test_within() -> None:
    r, t = np.array([1e-12, 5e-12, 1.0, np.nan]), np.array([1.0, 10.0, 1.0, 1.0])
    assert within(r, t, np.array([0, 1]), 1.0, 1e-12)
    assert not within(r, t, np.array([0, 2]), 1.0, 1e-12)
    assert not within(r, t, np.array([3]), 1.0, 1e-12)
    assert within(r, t, np.array([0, 1]), 5.0, 1e-12)
