# SPDX-License-Identifier: BSD-3-Clause
"""Decision values of the optimum, to the last bit and beyond, for every kind of machine.

The machines of ``oracles.machines`` by ``exact_qp``; least squares by elimination:

    minimise rho |w|^2 + sum s (w'phi + b - y)^2:   (K + diag(rho / s)) a + b = y,  sum(a) = 0

f is that of the kernel as it is defined. Kernel values in doubles are rounded, and where the rows
are dependent, as those of a linear kernel mostly are, rounding makes the matrix indefinite: it then
has no optimum. Where it is positive semidefinite all the same, its own optimum is as good a truth,
and a model is judged by the nearer one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

from . import exact_qp
from .batch_qp import EPS, Rows
from .exact_numbers import Exact, digits, exact, floats, gram, product, solve_linear, zeros
from .machines import one_class_rows, sphere_rows, svr_rows

Vector = npt.NDArray[np.float64]
LEAST_SQUARES_DIGITS = 200
MANY_ROWS = 60  # above which an interior point solver says where to start


@dataclass(frozen=True)
class Truth:
    """The optimum's f at the samples, and how far rounding alone may move it.

    `shift` is the range within which b is free to lie, relative to the b of `f`; `size` is what the
    rounding of f is relative to, sum_j |k_ij u_j| + |b| + |t_i|; `target` is |t|.
    """

    f: Exact
    shift: tuple[Any, Any]
    size: Vector
    target: Vector
    objective: float
    unique: bool

    def off(self, values: npt.ArrayLike) -> Vector:
        """How far values are from f at each sample, for the best b that is free to be chosen."""
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            return np.full(len(values), np.inf)
        with digits(LEAST_SQUARES_DIGITS):
            difference = exact(values) - self.f
            # rows of which f is known best say which b was chosen; that of an outlier hides it
            known = np.flatnonzero(self.size <= 1e3 * self.size.min(initial=np.inf))
            own = difference[known]
            middle = (max(own) + min(own)) / 2 if len(own) else gmpy2.mpfr(0)
            best = min(max(middle, self.shift[0]), self.shift[1])
            return floats(abs(difference - best))

    def rounding(self, roundings: float = 64.0) -> Vector:
        """A few roundings of f at each sample, or of a typical one, which b carries to all."""
        return roundings * EPS * np.maximum(self.size, np.median(self.size))


def rows_of(kind: str, params: dict[str, Any], y: Any, weight: Any, own: Any) -> Rows:
    """Rows of (P) of all samples; of a classifier, with labels that are two numbers."""
    if kind == "svr":
        return svr_rows(y, params["C"], params["epsilon"], weight)
    if kind == "one_class":
        return one_class_rows(params["nu"], weight)
    if kind == "svdd":
        return sphere_rows(own, params["C"], weight)
    positive = np.asarray(y) == np.unique(y)[-1]
    factors = params.get("class_weight") or {}
    cap = params["C"] * np.asarray(weight, np.float64)
    cap = cap * np.array([factors.get(label, 1.0) for label in np.asarray(y).tolist()])
    t = np.where(positive, 1.0, -1.0)
    return Rows(t, np.where(positive, 0.0, -cap), np.where(positive, cap, 0.0), 0.0)


def machine_truth(
    kind: str, params: dict[str, Any], X: Any, y: Any, weight: Any, K: Any = None
) -> Truth:
    """The optimum of a machine: for its kernel by definition, or for a matrix K of doubles.

    Raises ArithmeticError if K is not positive semidefinite.
    """
    matrix: Callable[[], Exact] = (lambda: gram(params, X, X)) if K is None else (lambda: exact(K))
    n = len(weight)
    with digits(exact_qp.DIGITS[0]):
        own = floats(np.diagonal(matrix()))
    rows = rows_of(kind, params, y, weight, own)
    at = np.repeat(np.arange(n), 2) if kind == "svr" else np.arange(n)
    start = None
    if n > MANY_ROWS:
        with digits(exact_qp.DIGITS[0]):
            start = exact_qp.near(floats(matrix()), rows, at)
    found = exact_qp.solve(matrix, rows, at, start, check=K is not None)
    low, high = exact_qp.bias_range(matrix, rows, at, found)
    first = slice(None, None, 2) if kind == "svr" else slice(None)
    with digits(found.digits):
        f = found.f[first]
        if kind == "svdd":  # as users see it, but for a factor of 2: f - k(x, x) / 2
            f = f - np.diagonal(matrix()) / 2
        shift = low - found.b, high - found.b
    size = floats(found.size)[first]
    target = np.abs(np.asarray(y, np.float64)) if kind == "svr" else np.abs(rows.t)
    unique = found.b_interval[0] == found.b_interval[1] and low == high
    return Truth(f, shift, size, target, float(found.objective), unique)


def least_squares_truth(
    K: Callable[[], Exact], targets: Any, weight: Any, rho: float, intercept: bool = True
) -> Truth:
    """f of the least-squares machine on K(), for one column of targets."""
    weight, targets = np.asarray(weight, np.float64), np.asarray(targets, np.float64)
    heavy = np.flatnonzero(weight > 0.0)
    m = len(heavy)
    with digits(LEAST_SQUARES_DIGITS):
        values = K()
        system = zeros(m + intercept, m + intercept)
        system[:m, :m] = values[np.ix_(heavy, heavy)]
        for place, row in enumerate(heavy):
            system[place, place] += gmpy2.mpfr(float(rho)) / gmpy2.mpfr(float(weight[row]))
        if intercept:
            system[m, :m] = system[:m, m] = gmpy2.mpfr(1)
        right = np.concatenate([exact(targets[heavy]), zeros(int(intercept))])[:, None]
        found = solve_linear(system, right)[:, 0]
        a, b = found[:m], found[m] if intercept else gmpy2.mpfr(0)
        f = product(values[:, heavy], a) + b
        size = floats(product(abs(values[:, heavy]), abs(a)) + abs(b)) + np.abs(targets)
        none = gmpy2.mpfr(0)
        return Truth(f, (none, none), size, np.abs(targets), 0.0, True)
