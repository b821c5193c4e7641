# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values against exact arithmetic: far rows, offsets, mixed scales, near duplicates.

A value exp(-x) can be no better known than x: what is asked is a few units in the last place of
the value, times max(1, x). A value of poly is a power of a sum in which terms may cancel.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from adiabat._core.kernel_values import Formula, Rows
from adiabat.kernels import Kernel

FloatArray = npt.NDArray[np.float64]
EPS = 2.0**-52
EXTENDED = np.finfo(np.longdouble).eps < 1e-18

pytestmark = pytest.mark.skipif(not EXTENDED, reason="no wider type to compare with")

# Units in the last place, times max(1, exponent): with few features, and with many.
BOUNDS = {"rbf": (6.0, 32.0), "laplacian": (6.0, 12.0), "chi2": (6.0, 12.0)}


def exponents(name: str, gamma: float, A: FloatArray, B: FloatArray) -> npt.NDArray[np.longdouble]:
    """gamma times the distances of all pairs, in extended precision."""
    a, b = A.astype(np.longdouble)[:, None], B.astype(np.longdouble)
    d = a - b
    if name == "rbf":
        terms = d * d
    elif name == "laplacian":
        terms = np.abs(d)
    else:
        terms = d * d / np.where(a + b > 0.0, a + b, 1.0)
    return np.longdouble(gamma) * terms.sum(axis=2)


def errors(name: str, gamma: float, A: FloatArray, B: FloatArray) -> FloatArray:
    """Of all values that are not below the normal numbers, in units of what `BOUNDS` says."""
    values = Kernel(name, gamma).block(A, B)
    x = exponents(name, gamma, A, B)
    exact = np.exp(-x)
    tiny = np.finfo(np.float64).tiny
    assert np.all(values[exact < tiny / 2] < tiny)
    off = np.abs(values - exact) / np.maximum(exact, tiny) / np.maximum(1.0, x)
    return np.asarray(np.where(exact < tiny, 0.0, off) / EPS, dtype=np.float64)


def families(p: int) -> dict[str, FloatArray]:
    """Rows whose kernel values are hard to get right, duplicates and near duplicates among them."""
    rng = np.random.default_rng(p)
    near = rng.random((30, p))
    found = {"near": near}
    for e in (*range(2, 13), 150):
        far = near.copy()
        far[::4, p // 2] = 10.0**e
        far[2::8, p // 2] = 10.0**e * (1.0 + 1e-9)
        found[f"cell of 1e{e}"] = far
    found["offset"] = near + 1e8
    found["offsets"] = near + 10.0 ** rng.integers(0, 9, p)
    found["scales"] = near * 10.0 ** rng.integers(-8, 9, p)
    found["tiny"] = near * 1e-150
    found["zeros"] = near * (rng.random(near.shape) < 0.2)
    for X in found.values():
        X[20:25] = X[:5]
        X[25:] = X[:5] * (1.0 + 4.0 * EPS)
    return found


@pytest.mark.rotates(4)
@pytest.mark.parametrize("p", [1, 3, 20, 32, 33, 100, 784])
@pytest.mark.parametrize("name", BOUNDS)
def test_values_are_right_to_the_last_few_bits(name: str, p: int) -> None:
    for family, X in families(p).items():
        spread = float(np.median(exponents(name, 1.0, X, X)))
        for width in (1.0, 30.0, 1e-3):
            gamma = width / spread if 1e-290 < spread < 1e290 else width
            worst = errors(name, gamma, X[:20], X).max()
            assert worst <= BOUNDS[name][p > 32], (family, width, worst)


@pytest.mark.parametrize("p", [3, 40, 784])
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_row_and_its_double_have_value_one(name: str, p: int, form: object) -> None:
    """Exactly, wherever they are and whatever gamma is."""
    for X in families(p).values():
        for gamma in (0.0, 1e-9, 1.0, 1e12):
            k = Kernel(name, gamma)
            assert np.all(k.block(form(X), form(X.copy())).diagonal() == 1.0)
            assert np.all(k.block(form(X[:5]), form(X[20:25])).diagonal() == 1.0)
            assert np.all(k.diagonal(form(X)) == 1.0)


@pytest.mark.parametrize("p", [2, 60])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_squares_that_overflow_are_far_apart(p: int, form: object) -> None:
    X = np.random.default_rng(p).random((6, p))
    X[1, 0], X[2, 0], X[3, 0], X[4, 0] = 1e200, -1e200, 1e200 * (1.0 + 1e-6), 1.7e308
    block = Kernel("rbf", 1.0).block(form(X), form(X))
    expected = np.eye(6)
    near = [0, 5]
    expected[np.ix_(near, near)] = Kernel("rbf", 1.0).block(X[near], X[near])
    np.testing.assert_array_equal(block, expected)
    assert np.all(Kernel("rbf", 0.0).block(form(X), form(X)) == 1.0)


@pytest.mark.parametrize("p", [40, 300])
def test_values_do_not_jump_where_the_way_of_computing_changes(p: int) -> None:
    """On both sides of the rule for differences, and where nearly all of a patch is on one."""
    rng = np.random.default_rng(p)
    for offset in (0.0, 1.5, 2.0, 2.5, 3.0, 4.0, 30.0):
        X = rng.standard_normal((150, p)) + offset
        assert errors("rbf", 0.5 / p, X, X[:70]).max() <= BOUNDS["rbf"][1]


# poly and linear


def exact_products(A: FloatArray, B: FloatArray) -> list[list[Fraction]]:
    rows = [[Fraction(x) for x in row] for row in A]
    others = [[Fraction(x) for x in row] for row in B]

    def product(a: list[Fraction], b: list[Fraction]) -> Fraction:
        return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))

    return [[product(a, b) for b in others] for a in rows]


def rounding(p: int) -> float:
    """Of a sum of p terms, for the sum of their sizes: chains of 128, and a chain of chains."""
    return (min(p, 128) + p // 128 + 2) * EPS / 2.0


def sizes(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)


@pytest.mark.parametrize("p", [3, 40, 300])
@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_poly_is_right_where_products_cancel(p: int, degree: int, coef0: float) -> None:
    """To a few units in the last place where nothing cancels, to twelve digits where all does."""
    gamma = 1.0 / p
    for family, X in families(p).items():
        if family == "cell of 1e150":
            continue  # overflows
        A, B = X[:6].copy(), X[3:10].copy()
        A[1] *= np.where(np.arange(p) % 2, 1.0, -1.0)
        # <a, b> = - coef0 / gamma but for a rounding, and <a, b> = 0 but for one
        for i, target in ((2, -coef0 / gamma), (3, 0.0)):
            A[i, -1] = (target - A[i, :-1] @ B[i, :-1]) / B[i, -1] if B[i, -1] else 0.0
        values = Kernel("poly", gamma, degree, coef0).block(A, B)
        size = sizes(A, B)
        for i, row in enumerate(exact_products(A, B)):
            for j, product in enumerate(row):
                base = Fraction(gamma) * product + Fraction(coef0)
                exact = base**degree
                largest = gamma * size[i, j] + coef0
                condition = largest / max(abs(float(base)), 1e-300)
                cancelled = min(condition, 1024.0) + EPS * condition
                bound = degree * (rounding(p) * cancelled + 4.0 * EPS)
                off = abs(Fraction(values[i, j]) - exact)
                assert off <= Fraction(bound) * abs(exact) + Fraction(1e-300), (family, i, j)


@pytest.mark.parametrize("p", [3, 300, 2000])
def test_a_product_is_right_for_the_size_of_its_rows(p: int) -> None:
    for X in families(p).values():
        if not np.isfinite(sizes(X, X)).all():
            continue
        values = Kernel("linear").block(X[:4], X[2:9])
        size = sizes(X[:4], X[2:9])
        for i, row in enumerate(exact_products(X[:4], X[2:9])):
            for j, product in enumerate(row):
                assert abs(float(Fraction(values[i, j]) - product)) <= rounding(p) * size[i, j]


# the exponential by itself: with one feature, |x - 0| is x


def exponentials(x: FloatArray) -> FloatArray:
    zero = Rows.dense(np.zeros((1, 1)))
    return Formula("laplacian", 1.0).block(Rows.dense(x[:, None]), zero)[:, 0]


@pytest.mark.parametrize("largest", [1.0, 30.0, 708.0])
def test_exponentials_of_a_million_points(largest: float) -> None:
    x = largest * np.random.default_rng(0).random(1_000_000)
    exact = np.exp(-x.astype(np.longdouble))
    ulp = np.spacing(exact.astype(np.float64))
    assert float((np.abs(exponentials(x) - exact) / ulp).max()) < 1.1


def test_exponentials_below_the_normal_numbers() -> None:
    """They are rounded to the numbers there are, down to the last of them and to zero."""
    x = np.linspace(708.0, 746.0, 100_000)
    exact = np.exp(-x.astype(np.longdouble))
    ulp = np.maximum(np.spacing(exact.astype(np.float64)), math.ulp(0.0))
    assert float((np.abs(exponentials(x) - exact) / ulp).max()) < 1.1
    assert exponentials(np.array([745.2, 800.0, 1e300, math.inf])).tolist() == [0.0] * 4
    assert exponentials(np.array([0.0, 1e-320, 1e-18])).tolist() == [1.0] * 3


def test_exponentials_fall() -> None:
    small, large = np.linspace(0.0, 2.0, 100_001), 10.0 ** np.linspace(-17, 2.8, 5000)
    values = exponentials(np.sort(np.concatenate([small, large])))
    assert values[0] == 1.0
    assert np.all(np.diff(values) <= 2.0 * np.spacing(values[:-1]))
