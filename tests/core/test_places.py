# SPDX-License-Identifier: BSD-3-Clause
"""Who fills holes, and whose places are given to others."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat._core.places import fillers, idle, misplaced, owned, vacant


@pytest.mark.parametrize("seed", range(20))
def test_those_at_the_end_fill_the_holes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    gone = np.sort(rng.permutation(n)[: rng.integers(0, n + 1)])
    tail, hole = fillers(gone, n)
    left = n - len(gone)
    who = np.arange(n)
    who[hole] = who[tail]
    assert sorted(who[:left]) == np.setdiff1d(np.arange(n), gone).tolist()
    assert np.all(tail >= left) and np.all(hole < left)
    assert np.all(np.diff(tail) > 0) and np.all(np.diff(hole) > 0)


@pytest.mark.parametrize("gone", [[-1], [5], [2, 2], [3, 1]])
def test_holes_must_ascend_within(gone: list[int]) -> None:
    with pytest.raises(IndexError, match="ascend from 0 to 4"):
        fillers(np.array(gone), 5)


def test_places_with_and_without_an_owner() -> None:
    owner = np.array([4, -1, 0, -1, -1, 2])
    assert owned(owner).tolist() == [0, 2, 5]
    assert [vacant(owner, k).tolist() for k in (0, 2, 3, 9)] == [[], [1, 3], [1, 3, 4], [1, 3, 4]]


def test_the_oldest_that_are_not_kept_are_idle() -> None:
    owner = np.array([0, 1, -1, 2, 3, 4])
    stamp = np.array([5, 9, 0, 7, 8, 6])
    keep = np.array([1, 0, 0, 0, 1], dtype=np.uint8)
    assert idle(owner, keep, stamp, 11, 1).tolist() == [3, 4]
    assert stamp.tolist() == [11, 9, 0, 7, 8, 11]
    assert idle(owner, keep, stamp, 12, 3).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_places_behind_the_first_panels_that_could_hold_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, n = 4, 24
    owner = np.where(rng.random(n) < 0.7, rng.permutation(n), -1)
    keep = (rng.random(n) < 0.5).astype(np.uint8)
    used = (owner >= 0) & (keep[owner] == 1)
    front = -(-int(used.sum()) // width) * width
    stand = front + np.flatnonzero(used[front:])
    room = np.flatnonzero(~used[:front])
    for tolerated, most in ((0, n), (2, n), (0, 2), (0, 0)):
        free, behind = misplaced(owner, keep, width, tolerated, most)
        many = len(stand) > tolerated and most > 0
        expected = stand[-most:] if many else stand[:0]
        assert behind.tolist() == expected.tolist()
        assert free.tolist() == room[: len(expected)].tolist()
