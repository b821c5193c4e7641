# SPDX-License-Identifier: BSD-3-Clause
"""The bound on f holds, however far the model is from the optimum, and is small at the optimum."""

import numpy as np
import pytest

from adiabat import error_bound
from adiabat.certificate import Problem

from oracles import batch_qp

MODES = ["by the gap alone", "after Newton steps"]


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    """Large models are bounded by their gap alone."""
    if request.param == MODES[0]:
        monkeypatch.setattr(error_bound, "MOST_PRODUCTS", -1)
    return request.param


def bound_and_error(X, y, part, shift):
    """The bound of a model beside the optimum, and how far its f is from the optimum's."""
    K = X @ X.T
    rows = batch_qp.svc_rows(y, 1.0)
    best = batch_qp.solve(K, *rows)
    u, b = part * best.u, best.b + shift
    f = np.asarray(batch_qp.exact_product(K, u) + b, dtype=np.float64)
    f_best = np.asarray(batch_qp.exact_product(K, best.u) + best.b, dtype=np.float64)
    problem = Problem(u, rows.t, rows.lo, rows.hi, 0.0, b)
    found = error_bound.error_bound(
        problem, f - rows.t, np.abs(K) @ np.abs(u), K.diagonal(), lambda i, j: K[np.ix_(i, j)]
    )
    return found, np.abs(f - f_best)


def overlapping():
    """Two classes on a line, and far from them a row without weight."""
    rng = np.random.default_rng(5)
    X = np.append(rng.normal(size=40) + np.repeat([0.8, -0.8], 20), 100.0)[:, None]
    return X, np.append(np.repeat([1, -1], 20), 1)


def small():
    """Features so small that b is all there is to f; more rows of one class than of the other."""
    return np.array([[1e-3], [-2e-3], [5e-4], [1.5e-3], [-1e-3]]), np.array([1, 1, 1, -1, -1])


@pytest.mark.parametrize("part", [1.0, 1.0 - 1e-6, 0.9, 0.3])
def test_f_is_no_farther_off_than_the_bound(mode, part):
    found, error = bound_and_error(*overlapping(), part, 0.0)
    assert np.all(error <= found + 1e-11)  # which the oracle's own f may be off
    assert part == 1.0 or error[-1] > 10.0 * error[:-1].mean()


@pytest.mark.parametrize("shift", [0.0, 1e-6, 0.1, -0.3])
def test_b_is_no_farther_off_than_the_bound(mode, shift):
    found, error = bound_and_error(*small(), 1.0, shift)
    np.testing.assert_allclose(error, abs(shift), atol=1e-12)
    assert np.all(error <= found + 1e-12)


def test_the_bound_is_small_at_the_optimum():
    for X, y in (overlapping(), small()):
        found, _ = bound_and_error(X, y, 1.0, 0.0)
        assert found.max() < 1e-10


def enclosed(n):
    """How far f may be where three rows are inside their boxes, by values of so many rows."""
    X = np.linspace(-1.0, 1.0, n)[:, None]
    K = np.exp(-((X - X.T) ** 2))
    u = np.zeros(n)
    u[[1, 3, -2]] = 0.4, -0.8, 0.4
    f = K @ u
    t = np.where(np.arange(n) % 2, f, f - 1.0)
    t[-2] = f[-2]
    lo, hi = np.where(u < 0.0, -1.0, 0.0), np.where(u < 0.0, 0.0, 1.0)
    at = error_bound.Nearer(f - t, np.full(n, 1e-15), np.zeros(n), np.zeros(n))
    asked = []

    def block(i, j):
        asked.append(len(i) * len(j))
        return K[np.ix_(i, j)]

    problem = Problem(u, t, lo, np.where(u == 0.0, 0.0, hi), 0.0, 0.0)
    return error_bound._enclosed(problem, at, np.arange(n), block), max(asked)


def test_kernel_values_of_all_rows_are_held_in_parts(monkeypatch):
    whole, most = enclosed(40)
    assert np.all(whole < 1e-10) and most == 40 * 3
    monkeypatch.setattr(error_bound, "VALUES", 3 * 7)
    in_parts, most = enclosed(40)
    np.testing.assert_allclose(in_parts, whole, rtol=1e-12)
    assert most == 3 * 7


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_a_singular_system():
    for K in (np.ones((4, 4)), np.full((4, 4), 1e200), np.diag([1.0, 5e-324, 1.0, 1.0])):
        reach = error_bound._solution_size(K, np.full(5, 1e-15))
        assert reach is None or np.all(np.isfinite(reach))
