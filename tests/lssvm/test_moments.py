# SPDX-License-Identifier: BSD-3-Clause
"""Moments against fractions, and what they say they may have lost."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from adiabat.lssvm.moments import Moments


def exact(rows: list[tuple[np.ndarray, float]], i: int, j: int) -> Fraction:
    return sum((Fraction(s) * Fraction(z[i]) * Fraction(z[j]) for z, s in rows), Fraction(0))


def entry(moments: Moments, i: int, j: int) -> Fraction:
    parts = [moments.hi, moments.lo, *([] if moments.rest is None else moments.rest)]
    return sum((Fraction(part[i, j]) for part in parts), Fraction(0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cell", [1.0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("size", [7, 90])  # one by one, and by blocks
def test_they_are_off_by_no_more_than_they_say(size, cell, weighted):
    rng = np.random.default_rng(0)
    phi, t = rng.normal(size=(size + 60, 3)), rng.normal(size=(size + 60, 1))
    phi[3, 1] *= cell
    s = rng.uniform(0.2, 3.0, size + 60) if weighted else None
    one, other = Moments(3, 1), Moments(3, 1)
    one.add(phi[:size], t[:size], None if s is None else s[:size], 1.0, 1.0)
    other.add(phi[size:], t[size:], None if s is None else s[size:], 1.0, 1.0)
    one.join(other, 1.0)
    one.add(phi[3:5], t[3:5], None if s is None else s[3:5], -1.0, 1.0)
    assert (one.rest is not None) == (cell >= 1e9)
    rows = [
        (np.array([*phi[row], 1.0, *t[row]]), 1.0 if s is None else float(s[row]))
        for row in range(size + 60)
        if row not in (3, 4)
    ]
    found = one.copy().arranged([0])
    for moments in (one, found):
        for i in range(5):
            for j in range(i, 5):
                off = entry(moments, i, j) - exact(rows, i, j)
                assert abs(off) <= Fraction(float(np.sqrt(moments.lost[i] * moments.lost[j])))
                assert abs(off) <= Fraction(1, 10**12)


def test_what_was_cleared_has_lost_nothing():
    moments = Moments(2, 1)
    moments.add(np.full((3, 2), 1e12), np.ones((3, 1)), None, 1.0, 1.0)
    assert moments.rest is not None and moments.lost.any()
    moments.clear()
    assert moments.rest is None and not moments.lost.any()
