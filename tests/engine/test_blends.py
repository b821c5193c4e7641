# SPDX-License-Identifier: BSD-3-Clause
"""Rows that follow several landmarks: their bounds hold, whatever the shares, and are close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat._core.looks import Looks, add_blends, merged, nonzeros
from adiabat._core.room import Leaving
from adiabat.engine.blends import PARTS, Blends, blend
from adiabat.engine.samples import Samples
from adiabat.kernels import make_kernel

RNG = np.random.default_rng(8)
N, MARKS = 300, 40
X = RNG.standard_normal((N, 2))


def made(kind: str = "rbf", X: Any = X) -> tuple[Samples, Any, Blends, Any]:
    """Samples, the number of every row's landmark, blends of the first rows, and distances."""
    samples = Samples(make_kernel(kind, gamma=0.5, degree=2, coef0=1.0, X=X))
    samples.add(X)
    everyone, landmarks = np.arange(len(X)), np.arange(len(X) - MARKS, len(X))
    names = np.arange(2, 2 + MARKS).astype(np.int16)
    K, own = samples.block(everyone, landmarks), samples.diagonal
    number = names[np.argmin(own[:, None] - 2.0 * K + own[landmarks], axis=1)]
    rows = RNG.permutation(len(X) - MARKS)
    found, apart = blend(samples, everyone, rows, number, landmarks, names)
    return samples, number, found, apart


@pytest.mark.parametrize("kind", ["rbf", "laplacian", "poly"])
def test_the_bound_holds_for_any_change(kind: str) -> None:
    samples, _, found, apart = made(kind)
    K = samples.block(np.arange(N), np.arange(N))
    finite = np.isfinite(apart)
    assert finite.sum() > 100 and np.all(np.diff(found.rows) > 0)
    for _ in range(20):
        d = RNG.standard_normal(N) * (RNG.random(N) < 0.1)
        f, length = K @ d, np.sqrt(d @ K @ d)
        beside = np.sum(found.shares * f[N - MARKS - 2 + found.parts.astype(int)], axis=1)
        off = np.abs(f[found.rows] - beside)[finite]
        scale = 1e-12 * np.abs(d).sum() * samples.largest
        assert np.all(off <= apart[finite] * length * (1 + 1e-9) + scale)
        alone = np.abs(f[found.rows] - f[N - MARKS - 2 + found.parts[:, 0].astype(int)])
        assert np.all(alone <= found.single * length * (1 + 1e-9) + scale)


def test_a_blend_is_nearer_than_the_nearest() -> None:
    _, number, found, apart = made()
    assert np.median(apart / found.single) < 0.2
    np.testing.assert_array_equal(found.parts[:, 0], number[found.rows])
    assert all(len(set(parts)) == PARTS for parts in found.parts.tolist())


def test_equal_landmarks_and_rows_that_are_landmarks() -> None:
    twice = np.repeat(X[:50], 6, axis=0)
    samples, _, found, apart = made(X=twice)
    K = samples.block(np.arange(N), np.arange(N))
    finite = np.isfinite(apart)
    d = RNG.standard_normal(N)
    f, length = K @ d, np.sqrt(d @ K @ d)
    beside = np.sum(found.shares * f[N - MARKS - 2 + found.parts.astype(int)], axis=1)
    assert np.all(np.abs(f[found.rows] - beside)[finite] <= apart[finite] * length + 1e-9)


def test_few_landmarks_or_none() -> None:
    samples, _, _, _ = made()
    number = np.full(N, 1, dtype=np.int16)
    one = np.array([0]), np.array([1], dtype=np.int16)
    found, apart = blend(samples, np.arange(N), np.arange(5, 20), number, *one)
    assert np.all(apart <= found.single)  # a part of one is nearer than all of it
    found, apart = blend(samples, np.arange(N), np.arange(5, 20), 0 * number, *one)
    assert len(found.rows) == len(apart) == 0


@pytest.mark.parametrize("filled", [False, True])
def test_rows_that_go_leave_their_blends(filled: bool) -> None:
    _, _, found, _ = made()
    before = dict(zip(found.rows.tolist(), found.parts.tolist(), strict=True))
    gone = np.array([3, 7, 250])
    found.remove(Leaving(gone, N, filled))
    names = np.arange(N)
    if filled:
        leaving = Leaving(gone, N, True)
        names[leaving.hole] = names[leaving.tail]
        names = names[: N - 3]
    else:
        names = np.delete(names, gone)
    after = {
        int(names[row]): parts
        for row, parts in zip(found.rows.tolist(), found.parts.tolist(), strict=True)
        if row >= 0
    }
    assert after == {row: parts for row, parts in before.items() if row not in gone.tolist()}
    lost = found.of(np.array([5], dtype=np.int16))
    assert all((5 in found.parts[place].tolist()) for place in lost)
    assert len(lost) == sum(5 in parts for parts in after.values())


def test_steps_are_added_by_share() -> None:
    n, m = 20_000, 9_000  # several parts
    rows = RNG.permutation(n)[:m]
    rows[::7] = -1
    parts = RNG.integers(0, 30, (m, PARTS)).astype(np.int16)
    shares, steps = RNG.standard_normal((m, PARTS)), RNG.standard_normal(30)
    r, off = np.zeros(n), np.zeros(n)
    add_blends(r, off, rows, parts, shares, steps, 0.5)
    here = rows >= 0
    expected = np.zeros(n)
    expected[rows[here]] = np.sum(shares * steps[parts], axis=1)[here]
    np.testing.assert_allclose(r, expected, atol=1e-12)
    expected[rows[here]] = 0.5 * np.abs(shares).sum(axis=1)[here]
    np.testing.assert_allclose(off, expected, atol=1e-12)


def test_blends_that_do_not_fit_are_refused() -> None:
    rows, parts = np.array([0, 1]), np.zeros((2, PARTS), dtype=np.int16)
    shares, steps, r = np.zeros((2, PARTS)), np.zeros(3), np.zeros(2)
    add_blends(r, r.copy(), rows, parts, shares, steps, 0.0)
    for given in (
        (r, r.copy(), rows + 1, parts, shares, steps),
        (r, r.copy(), rows, parts + np.int16(3), shares, steps),
        (r, r.copy(), rows, parts - np.int16(1), shares, steps),
        (r, r.copy(), rows[:1], parts, shares, steps),
        (r, r[:1].copy(), rows, parts, shares, steps),
        (r, r.copy(), rows, parts, shares[:, :3].copy(), steps),
    ):
        with pytest.raises(ValueError, match="blend"):
            add_blends(*given, 0.0)


def test_rows_of_both_ascend_and_are_there_once() -> None:
    for _ in range(50):
        one, other = (np.unique(RNG.integers(0, 40, RNG.integers(0, 30))) for _ in range(2))
        np.testing.assert_array_equal(merged(one, other), np.union1d(one, other))


def test_where_weights_are_not_zero() -> None:
    for n in (0, 1, 100, 40_000):
        u = RNG.standard_normal(n) * (RNG.random(n) < 0.1)
        np.testing.assert_array_equal(nonzeros(u), np.flatnonzero(u))


def test_weights_that_the_judge_knows_follow_their_rows() -> None:
    u = np.zeros(10)
    u[[2, 6, 9]] = 1.0, -2.0, 3.0
    for filled in (False, True):
        looks = Looks(np.zeros(10), u, 0.0)
        leaving = Leaving(np.array([3, 4]), 10, filled)
        looks.renumber(leaving)
        left = np.delete(u, [3, 4])
        if filled:
            left = u.copy()
            left[leaving.hole] = left[leaving.tail]
            left = left[:8]
        np.testing.assert_array_equal(looks.rows, np.flatnonzero(left))
        np.testing.assert_array_equal(looks.weights, left[looks.rows])
