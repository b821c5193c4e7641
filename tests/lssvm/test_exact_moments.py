# SPDX-License-Identifier: BSD-3-Clause
"""Moments without rounding: equal to fractions, and the same digits in any order."""

from fractions import Fraction

import numpy as np
import pytest

from adiabat.lssvm.exact_moments import ExactMoments
from adiabat.lssvm.linear_images import image_moments
from adiabat.lssvm.moments import NotConverged

WIDTH = 3


def some_rows(seed: int, spread: int, weighted: bool):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    phi = rng.normal(size=(n, WIDTH)) * 10.0 ** rng.integers(-spread, spread + 1, size=(n, WIDTH))
    phi[rng.random(size=phi.shape) < 0.2] = 0.0
    t = rng.integers(0, 2, size=(n, 1)).astype(float)
    return phi, t, rng.random(n) if weighted else None


def taken(rows, places=slice(None)) -> ExactMoments:
    phi, t, s = rows
    found = ExactMoments(WIDTH, 1)
    found.add(phi[places], t[places], None if s is None else s[places])
    return found


def value(moments: ExactMoments, i: int, j: int) -> Fraction:
    return sum(
        (
            Fraction(int(digit)) * Fraction(2) ** (32 * (moments.lowest + k))
            for k, digit in enumerate(moments.digits[:, i, j])
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [0, 3, 14, 100])
def test_every_sum_is_that_of_fractions(spread: int, weighted: bool) -> None:
    phi, t, s = rows = some_rows(spread, spread, weighted)
    Z = np.hstack([phi, np.ones((len(phi), 1)), t])
    weights = [Fraction(1)] * len(Z) if s is None else [Fraction(w) for w in s]
    found = taken(rows)
    rounded = found.rounded(1.0)
    parts = [rounded.hi, rounded.lo, *([] if rounded.rest is None else rounded.rest)]
    for i in range(Z.shape[1]):
        for j in range(i, Z.shape[1]):
            exact = sum(
                (w * Fraction(z[i]) * Fraction(z[j]) for w, z in zip(weights, Z, strict=True)),
                Fraction(0),
            )
            assert value(found, i, j) == value(found, j, i) == exact
            off = abs(exact - sum((Fraction(float(part[i, j])) for part in parts), Fraction(0)))
            assert off**2 <= Fraction(rounded.lost[i]) * Fraction(rounded.lost[j])


@pytest.mark.parametrize("seed", range(6))
def test_digits_do_not_depend_on_the_order_or_on_what_came_and_went(seed: int) -> None:
    rows = some_rows(seed, 8, seed % 2 == 0)
    n = len(rows[0])
    rng = np.random.default_rng(seed)
    order, cut = rng.permutation(n), int(rng.integers(0, n + 1))
    whole, first, rest = taken(rows), taken(rows, order[:cut]), taken(rows, order[cut:])
    rest.join(first, 1)
    assert rest.same_as(whole)
    rest.join(whole, -1)
    assert len(rest.digits) == 0 and rest.n == 0
    rest.join(whole, 1)
    assert rest.same_as(whole)


def test_targets_can_be_put_in_another_order() -> None:
    phi, t, _ = some_rows(1, 2, False)
    both = ExactMoments(WIDTH, 2)
    both.add(phi, np.hstack([t, 1.0 - t]), None)
    other = ExactMoments(WIDTH, 2)
    other.add(phi, np.hstack([1.0 - t, t]), None)
    assert both.arranged([1, 0]).same_as(other)
    assert both.arranged([0]).same_as(taken((phi, t, None)))
    assert value(both.arranged([0, None]), WIDTH + 2, 0) == 0


def test_sums_beyond_float64_are_refused() -> None:
    found = ExactMoments(1, 0)
    found.add(np.array([[1e200]]), np.zeros((1, 0)), None)
    with pytest.raises(NotConverged, match="overflow"):
        found.rounded(1.0)


def test_moments_of_linear_images_are_rounded_once():
    rng = np.random.default_rng(5)
    X, t, s = 1e6 + rng.standard_normal((40, 3)), rng.standard_normal((40, 2)), rng.random(40)
    sums = ExactMoments(3, 2)
    sums.add(X, t, s)
    mean, third = Fraction(float(X[:, 0].mean())), Fraction(1, 3)
    forms = [[(0, third), (3, -mean * third)], [(1, Fraction(2)), (2, third)], [(2, Fraction(1))]]
    found = image_moments(sums, sums.whole(), forms, 1e-9)
    rows = [
        [Fraction(value) for value in [*x, 1.0, *y]] for x, y in zip(X.tolist(), t, strict=True)
    ]
    images = [
        [*(sum(factor * row[place] for place, factor in form) for form in forms), *row[3:]]
        for row in rows
    ]
    parts = [found.hi, found.lo, *([] if found.rest is None else found.rest)]
    for i in range(6):
        for j in range(i, 6):
            exact = sum(Fraction(w) * z[i] * z[j] for w, z in zip(s.tolist(), images, strict=True))
            off = abs(sum(Fraction(float(part[i, j])) for part in parts) - exact)
            assert off <= abs(exact) / 2 ** (52 * len(parts))
    assert (found.n, found.n_heavy, found.width, found.n_targets) == (40, 40, 3, 2)
