# SPDX-License-Identifier: BSD-3-Clause
"""Degenerate and hostile families for classifiers, and kernels by definition.

A family is a function ``(rng) -> Problem``; ``FAMILIES`` names them all. Each is small (20 to 80
rows) and breaks one assumption of the textbook path: a regular margin system, a unique b, one event
at a time. The families of ``HOSTILE`` break another one, that all rows are of one size: a cell, a
weight or a unit is larger than the others by orders of magnitude. ``Problem.draw`` yields more rows
of the same family, so that a stream of additions (``random_operations``) stays as it began.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .operations import (
    Add,
    Floats,
    Labels,
    Operation,
    Remove,
    Revise,
    Rng,
    Roster,
    Update,
    random_operations,
)  # fmt: skip

__all__ = [
    "C_VALUES", "C_VARIANTS", "FAMILIES", "HOSTILE", "HOSTILE_KERNELS", "Add", "Family",
    "Operation", "Problem", "Remove", "Revise", "Roster", "Sample", "Update", "gram", "gram_of",
    "outlier", "random_operations", "with_C",
]  # fmt: skip

# ---------------------------------------------------------------------------------------------
# Kernels, by definition


def gram(
    kind: str, X: Floats, Z: Floats, *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> Floats:
    """k(X, Z): the kernels by their definitions, from differences and products and nothing else."""
    X, Z = np.asarray(X, np.float64), np.asarray(Z, np.float64)
    if kind == "linear":
        return X @ Z.T
    if kind == "poly":
        return np.asarray((gamma * (X @ Z.T) + coef0) ** degree, dtype=np.float64)
    difference = X[:, None, :] - Z[None, :, :]
    if kind == "rbf":
        return np.asarray(np.exp(-gamma * (difference**2).sum(axis=2)), dtype=np.float64)
    if kind == "laplacian":
        return np.asarray(np.exp(-gamma * np.abs(difference).sum(axis=2)), dtype=np.float64)
    if kind == "chi2":
        total = X[:, None, :] + Z[None, :, :]
        ratio = np.divide(difference**2, total, out=np.zeros_like(total), where=total != 0)
        return np.asarray(np.exp(-gamma * ratio.sum(axis=2)), dtype=np.float64)
    raise ValueError(f"kind={kind!r} is not one of linear, poly, rbf, laplacian, chi2")


def gram_of(params: dict[str, Any], X: Floats, Z: Floats) -> Floats:
    """The kernel matrix that the constructor parameters of a classifier stand for."""
    options = {name: params[name] for name in ("gamma", "degree", "coef0") if name in params}
    return gram(params["kernel"], X, Z, **options)


# ---------------------------------------------------------------------------------------------
# A problem


@dataclass(frozen=True)
class Sample:
    """Rows with labels -1 or +1 (or with what another kind of machine has), and their weights."""

    X: Floats
    y: Labels
    sample_weight: Floats


@dataclass(frozen=True)
class Problem:
    """A data set, the parameters of an estimator, and a source of more rows of the same kind.

    `estimator` names one of that kind; empty stands for the support vector machine.
    """

    X: Floats
    y: Labels
    params: dict[str, Any]
    draw: Callable[[Rng, int], Sample]
    sample_weight: Floats
    kind: str = "svc"
    estimator: str = ""


# ---------------------------------------------------------------------------------------------
# The families


def _signs(score: Floats) -> Labels:
    return np.where(score > 0, 1, -1).astype(np.int64)


def _noisy(rng: Rng, y: Labels, rate: float) -> Labels:
    return np.where(rng.random(len(y)) < rate, -y, y)


def _problem(
    rng: Rng,
    n: int,
    features: Callable[[Rng, int], Floats],
    labels: Callable[[Rng, Floats], Labels],
    *,
    weights: Callable[[Rng, int], Floats] | None = None,
    **params: Any,
) -> Problem:
    """A problem of n rows with both classes present."""

    def draw(rng: Rng, count: int) -> Sample:
        X = np.asarray(features(rng, count), dtype=np.float64)
        weight = np.ones(count) if weights is None else weights(rng, count)
        return Sample(X, labels(rng, X), weight)

    start = draw(rng, n)
    y = start.y.copy()
    if len(np.unique(y)) < 2:
        y[0] = -y[0]
    return Problem(start.X, y, params, draw, start.sample_weight)


def _gaussian(d: int) -> Callable[[Rng, int], Floats]:
    return lambda rng, n: rng.standard_normal((n, d))


def _integers(low: int, high: int, d: int) -> Callable[[Rng, int], Floats]:
    return lambda rng, n: rng.integers(low, high + 1, (n, d)).astype(np.float64)


def _from_pool(rng: Rng, size: int, d: int) -> Callable[[Rng, int], Floats]:
    """Rows drawn again and again from a few points."""
    pool = rng.standard_normal((size, d))
    return lambda rng, n: pool[rng.integers(0, size, n)]


def _two_clouds(distance: float) -> Callable[[Rng, int], Floats]:
    """Unit clouds around plus and minus (distance, distance)."""

    def clouds(rng: Rng, n: int) -> Floats:
        side = np.where(rng.random((n, 1)) < 0.5, -distance, distance)
        return rng.standard_normal((n, 2)) + side

    return clouds


def _halves(rate: float = 0.1) -> Callable[[Rng, Floats], Labels]:
    """The sign of the first two centred coordinates' sum, some labels turned."""
    return lambda rng, X: _noisy(rng, _signs(X[:, :2].sum(axis=1)), rate)


def duplicates(rng: Rng) -> Problem:
    """Fifty rows on ten points, each point with its own label."""
    return _problem(rng, 50, _from_pool(rng, 10, 3), _halves(0.0), C=10.0, kernel="rbf", gamma=0.5)


def contradictory_duplicates(rng: Rng) -> Problem:
    """The same, with a quarter of the labels turned: equal rows on both sides."""
    return _problem(rng, 50, _from_pool(rng, 10, 3), _halves(0.25), C=1.0, kernel="rbf", gamma=0.5)


def integer_features(rng: Rng) -> Problem:
    """Small integers under the linear kernel: exact ties, rank three."""
    return _problem(rng, 60, _integers(-2, 2, 3), _halves(0.15), C=1.0, kernel="linear")


def one_hot_features(rng: Rng) -> Problem:
    """Three one-hot groups of four under the linear kernel: dependent columns and rows."""

    def encode(g: Rng, n: int) -> Floats:
        return np.hstack([np.eye(4)[g.integers(0, 4, n)] for _ in range(3)])

    def label(g: Rng, X: Floats) -> Labels:
        return _noisy(g, _signs(X[:, 0] + X[:, 1] + X[:, 4] + X[:, 5] - 0.5), 0.15)

    return _problem(rng, 50, encode, label, C=1.0, kernel="linear")


def constant_and_collinear_columns(rng: Rng) -> Problem:
    """Two informative columns, two combinations of them, one constant."""

    def columns(g: Rng, n: int) -> Floats:
        A = g.standard_normal((n, 2))
        return np.column_stack([A, A[:, 0] - A[:, 1], 2.0 * A[:, 1], np.full(n, 3.0)])

    return _problem(rng, 50, columns, _halves(), C=10.0, kernel="linear")


def linear_many_rows(rng: Rng) -> Problem:
    """Eighty rows in two dimensions: at most three margin rows are independent."""
    return _problem(rng, 80, _gaussian(2), _halves(), C=10.0, kernel="linear")


def poly2_low_rank(rng: Rng) -> Problem:
    """Degree 2 in two dimensions: rank six, with labels of a circle."""

    def ring(g: Rng, X: Floats) -> Labels:
        return _noisy(g, _signs((X**2).sum(axis=1) - 1.4), 0.1)

    return _problem(
        rng, 60, _gaussian(2), ring, C=10.0, kernel="poly", degree=2, gamma=1.0, coef0=1.0
    )


def all_at_bound(rng: Rng) -> Problem:
    """C so small that every row of the smaller class is at C; b is free where classes are equal."""
    return _problem(rng, 40, _gaussian(3), _halves(0.2), C=1e-3, kernel="rbf", gamma=0.3)


def separable(rng: Rng) -> Problem:
    """Two classes far apart: few support vectors, and most additions change nothing."""
    return _problem(rng, 40, _two_clouds(6.0), _halves(0.0), C=1.0, kernel="rbf", gamma=0.1)


def hard_margin_linear(rng: Rng) -> Problem:
    """C = 1e6 on separable rows: a box that never binds."""
    return _problem(rng, 40, _two_clouds(4.0), _halves(0.0), C=1e6, kernel="linear")


def hard_margin_poly(rng: Rng) -> Problem:
    """C = 1e5 with degree 2 and a few wrong labels: huge coefficients on low rank."""
    return _problem(
        rng, 30, _gaussian(3), _halves(0.05), C=1e5, kernel="poly", degree=2, gamma=0.5, coef0=1.0
    )


def gamma_tiny(rng: Rng) -> Problem:
    """gamma = 1e-6: K is all ones up to 1e-5, so numerically of rank one or few."""
    return _problem(rng, 40, _gaussian(3), _halves(), C=10.0, kernel="rbf", gamma=1e-6)


def gamma_huge(rng: Rng) -> Problem:
    """gamma = 1e3: K is the identity, every row of a class is tied with every other."""
    return _problem(rng, 40, _gaussian(3), _halves(), C=10.0, kernel="rbf", gamma=1e3)


def zero_weights(rng: Rng) -> Problem:
    """A third of the rows weigh nothing (lo = hi = 0), the others 1 or 2."""

    def weights(g: Rng, n: int) -> Floats:
        return g.integers(0, 3, n).astype(np.float64)

    return _problem(
        rng, 45, _gaussian(3), _halves(), weights=weights, C=1.0, kernel="rbf", gamma=0.5
    )


def identical_rows(rng: Rng) -> Problem:
    """One point, many times, under both labels: K is constant."""
    point = rng.standard_normal((1, 3))

    def coin(g: Rng, X: Floats) -> Labels:
        return _noisy(g, np.ones(len(X), dtype=np.int64), 0.4)

    return _problem(
        rng, 30, lambda g, n: np.repeat(point, n, axis=0), coin, C=1.0, kernel="rbf", gamma=0.5
    )


def grid_ties(rng: Rng) -> Problem:
    """One feature on the grid -3 .. 3: rows reach the margin by the dozen."""
    return _problem(rng, 60, _integers(-3, 3, 1), _halves(0.1), C=1.0, kernel="rbf", gamma=0.5)


def xor_grid(rng: Rng) -> Problem:
    """Exclusive or on the integer points of a square, symmetric in every way."""

    def square(g: Rng, n: int) -> Floats:
        return np.where(g.random((n, 2)) < 0.5, -1.0, 1.0) * g.integers(1, 3, (n, 2))

    def exclusive_or(g: Rng, X: Floats) -> Labels:
        return _signs(X[:, 0] * X[:, 1])

    return _problem(
        rng, 48, square, exclusive_or, C=1.0, kernel="poly", degree=2, gamma=1.0, coef0=0.0
    )


def imbalanced_duplicates(rng: Rng) -> Problem:
    """About one positive in twelve, on fifteen points: all positives at C."""

    def rare(g: Rng, X: Floats) -> Labels:
        return _signs(g.random(len(X)) - 11 / 12)

    return _problem(rng, 60, _from_pool(rng, 15, 2), rare, C=1.0, kernel="rbf", gamma=1.0)


def large_offset(rng: Rng) -> Problem:
    """Features around 1e3: K near 3e6, with the information in the last digits.

    They lie on a grid of 1/64, so that every product is exact and K has no rounding of its own.
    """

    def shifted(g: Rng, n: int) -> Floats:
        return 1e3 + np.round(64.0 * g.standard_normal((n, 3))) / 64.0

    def halves(g: Rng, X: Floats) -> Labels:
        return _noisy(g, _signs(X[:, :2].sum(axis=1) - 2e3), 0.1)

    return _problem(rng, 40, shifted, halves, C=1.0, kernel="linear")


Family = Callable[[Rng], Problem]


def with_C(family: Family, C: float) -> Family:
    """The same family under another C."""

    def changed(rng: Rng) -> Problem:
        problem = family(rng)
        return replace(problem, params={**problem.params, "C": C})

    return changed


_BASE: tuple[Family, ...] = (
    duplicates, contradictory_duplicates, integer_features, one_hot_features,
    constant_and_collinear_columns, linear_many_rows, poly2_low_rank, all_at_bound, separable,
    hard_margin_linear, hard_margin_poly, gamma_tiny, gamma_huge, zero_weights, identical_rows,
    grid_ties, xor_grid, imbalanced_duplicates, large_offset,
)  # fmt: skip

C_VALUES = (1e-3, 1.0, 1e3, 1e6)

FAMILIES: dict[str, Family] = {family.__name__: family for family in _BASE}
"""The nineteen families by name, each under its own C."""

C_VARIANTS: dict[str, Family] = {
    f"{family.__name__}-C={C:g}": with_C(family, C) for family in _BASE for C in C_VALUES
}
"""Every family under every C of ``C_VALUES``."""


# ---------------------------------------------------------------------------------------------
# One value is large

HOSTILE_KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly2": {"kernel": "poly", "degree": 2, "gamma": 0.4, "coef0": 1.0},
    "poly3": {"kernel": "poly", "degree": 3, "gamma": 0.4, "coef0": 1.0},
    "poly5": {"kernel": "poly", "degree": 5, "gamma": 0.4, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.4},
    "laplacian": {"kernel": "laplacian", "gamma": 0.4},
    "chi2": {"kernel": "chi2", "gamma": 0.4},
}
_MODEST_CELLS = tuple(10.0**exponent for exponent in range(2, 6))
_WIDTH = 4


def _tenths(rng: Rng, n: int) -> Floats:
    """Small decimals, none negative, as chi2 asks."""
    return rng.integers(0, 11, (n, _WIDTH)) / 10.0


def _above_half(rng: Rng, X: Floats) -> Labels:
    return _signs(X[:, 0] - 0.5 + 0.3 * rng.standard_normal(len(X)))


def outlier(kernel: str, cells: tuple[float, ...] = _MODEST_CELLS, C: float = 1.0) -> Family:
    """One cell of the first rows is large, and of later rows one in ten has such a cell."""

    def family(rng: Rng) -> Problem:
        plain = _problem(rng, 24, _tenths, _above_half, C=C, **HOSTILE_KERNELS[kernel])
        X = plain.X.copy()
        X[17, 2] = rng.choice(cells)

        def draw(g: Rng, count: int) -> Sample:
            fresh = plain.draw(g, count)
            for row in np.flatnonzero(g.random(count) < 0.1):
                fresh.X[row, g.integers(1, _WIDTH)] = g.choice(cells)
            return fresh

        return replace(plain, X=X, draw=draw)

    family.__name__ = f"outlier_{kernel}"
    family.__doc__ = f"A slipped decimal point, under the kernel {kernel}."
    return family


def _weights(exponents: tuple[int, int]) -> Callable[[Rng, int], Floats]:
    """A third of the weights are powers of ten from a range, the others 1."""

    def weights(g: Rng, n: int) -> Floats:
        power = 10.0 ** g.integers(exponents[0], exponents[1] + 1, n)
        return np.where(g.random(n) < 1 / 3, power, 1.0)

    return weights


def heavy_weights(rng: Rng) -> Problem:
    """Weights of up to 1e12 beside weights of 1."""
    return _problem(
        rng, 24, _tenths, _above_half, weights=_weights((3, 12)), C=1.0, kernel="rbf", gamma=0.4
    )


def tiny_weights(rng: Rng) -> Problem:
    """Weights down to 1e-12 beside weights of 1, in classes that else balance."""

    def balanced(g: Rng, X: Floats) -> Labels:
        return np.where(np.arange(len(X)) % 2 == 0, 1, -1)

    return _problem(
        rng, 24, _tenths, balanced, weights=_weights((-12, -3)), C=0.01, kernel="rbf", gamma=0.4
    )


def all_kinds_of_weights(rng: Rng) -> Problem:
    """Weights from 1e-12 to 1e12, under a linear kernel."""
    return _problem(
        rng, 24, _tenths, _above_half, weights=_weights((-12, 12)), C=1.0, kernel="linear"
    )


def mixed_units(rng: Rng) -> Problem:
    """Features of 1e-6, 1e-2, 1e2 and 1e5 side by side."""
    unit = np.array([1e-6, 1e-2, 1e2, 1e5])

    def halves(g: Rng, X: Floats) -> Labels:
        return _noisy(g, _signs((X / unit)[:, :2].sum(axis=1) - 1.0), 0.1)

    return _problem(rng, 24, lambda g, n: _tenths(g, n) * unit, halves, C=1.0, kernel="linear")


def small_features(rng: Rng) -> Problem:
    """Features of 1e-4 and C = 1e9: an ordinary problem in other units."""

    def labels(g: Rng, X: Floats) -> Labels:
        return _above_half(g, 1e4 * X)

    return _problem(rng, 30, lambda g, n: 1e-4 * _tenths(g, n), labels, C=1e9, kernel="linear")


HOSTILE: dict[str, Family] = {
    family.__name__: family
    for family in (
        *(outlier(kernel) for kernel in HOSTILE_KERNELS),
        heavy_weights, tiny_weights, all_kinds_of_weights, mixed_units, small_features,
    )
}  # fmt: skip
"""The families in which one value is large, so far as no model of them may be refused."""
