# SPDX-License-Identifier: BSD-3-Clause
"""The exact oracle: against hand-made optima, an interior point solver, and its own judge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest

from oracles import batch_qp, exact_models, exact_numbers, exact_qp, kinds, machines, problems
from oracles.batch_qp import EPS, Rows
from oracles.exact_numbers import digits, exact, floats

MOST_ROWS = 30


def solved(K: Any, t: Any, lo: Any, hi: Any, d: float = 0.0, **options: Any) -> Any:
    rows = Rows(*(np.asarray(part, np.float64) for part in (t, lo, hi)), d)
    return exact_qp.solve(np.asarray(K, np.float64), rows, **options)


def pair(k_one: float, k_two: float, k_both: float, C: float) -> Any:
    """Two rows of opposite labels."""
    return solved([[k_one, k_both], [k_both, k_two]], [1.0, -1.0], [0.0, -C], [C, 0.0])


def is_optimal(K: Any, rows: Rows, u: Any, b: Any, within: Fraction) -> bool:
    """The conditions, in fractions: nothing here is rounded."""
    K = [[Fraction(float(value)) for value in row] for row in K]
    u, b = [Fraction(*value.as_integer_ratio()) for value in u], Fraction(*b.as_integer_ratio())
    if abs(sum(u) - Fraction(rows.d)) > within:
        return False
    for i, row in enumerate(K):
        r = sum(k * v for k, v in zip(row, u, strict=True)) + b - Fraction(float(rows.t[i]))
        lo, hi = Fraction(float(rows.lo[i])), Fraction(float(rows.hi[i]))
        if not lo <= u[i] <= hi:
            return False
        if (r < -within and u[i] < hi) or (r > within and u[i] > lo):
            return False
    return True


# ---------------------------------------------------------------------------------------------
# By hand


@pytest.mark.parametrize("size", [1e-24, 1e-12, 1.0, 1e12, 1e120])
def test_two_rows_of_any_size(size: float) -> None:
    # distance^2 = k11 + k22 - 2 k12, u = 2 / distance^2, b in the middle
    found = pair(size, 1.0, 0.0, 1e300)
    with digits(60):
        k = gmpy2.mpfr(size)
        u = 2 / (k + 1)
        assert abs(found.u[0] - u) < 1e-50 * u
        assert abs(found.b - (1 - k * u)) < 1e-50
    assert found.fixed and found.violation == 0


def test_a_box_that_binds_leaves_b_in_the_middle() -> None:
    found = pair(1.0, 1.0, 0.2, 0.125)
    assert floats(found.u).tolist() == [0.125, -0.125]
    assert not found.fixed
    assert [float(end) for end in found.b_interval] == pytest.approx([-0.9, 0.9])
    assert float(found.b) == pytest.approx(0.0, abs=1e-60)


def test_a_tiny_box_fixes_b_all_the_same() -> None:
    """Balanced classes at C, and one row of weight 1e-12 more: b is then not in the middle."""
    K = np.eye(3)
    C = np.array([1.0, 1.0, 1e-12])
    balanced = solved(np.eye(2), [1.0, -1.0], [0.0, -0.25], [0.25, 0.0])
    assert float(balanced.b) == 0.0 and not balanced.fixed
    found = solved(K, [1.0, -1.0, -1.0], [0.0, -0.25, -1e-12], [0.25 * C[0], 0.0, 0.0])
    # the third row wants to fall to its bound, and the second gives way: it is inside
    assert found.u[2] == -1e-12 and found.fixed
    assert float(found.b) == pytest.approx(-0.75, abs=1e-11)


def test_boxes_that_balance_in_doubles_only() -> None:
    """0.1 + 0.2 is not 0.3: in truth a row is inside by 5e-17, and b hangs on it."""
    rows = Rows(
        np.array([1.0, 1.0, -1.0]), np.array([0.0, 0.0, -0.3]), np.array([0.1, 0.2, 0.0]), 0.0
    )
    K = np.eye(3)
    found = exact_qp.solve(K, rows)
    low, high = exact_qp.bias_range(K, rows, None, found)
    assert found.fixed
    assert float(low) <= -0.7 + 1e-12 and float(high) >= 0.8 - 1e-12
    assert low <= found.b <= high


def test_equal_rows_under_both_labels() -> None:
    found = solved(np.ones((4, 4)), [1, 1, -1, -1], [0, 0, -2, -2], [2, 2, 0, 0])
    assert sum(found.u) == 0 and float(found.objective) == -8.0
    assert floats(found.f - found.b).tolist() == [0.0] * 4


def test_a_sphere_around_a_line() -> None:
    X = np.array([[-1.0], [1.0], [0.25]])
    truth = exact_models.machine_truth("svdd", {"kernel": "linear", "C": 1.0}, X, None, np.ones(3))
    # f - k / 2 = (R^2 - |x|^2) / 2
    np.testing.assert_allclose(floats(truth.f), [0.0, 0.0, 0.5 * (1.0 - 0.0625)], atol=1e-60)


def test_a_sum_other_than_zero() -> None:
    found = solved(np.diag([1.0, 2.0, 4.0]), [0.0] * 3, [0.0] * 3, [1.0] * 3, 1.75)
    # K u = -b where inside: u = 1, 1/2, 1/4
    assert floats(found.u).tolist() == pytest.approx([1.0, 0.5, 0.25])
    assert sum(found.u) == 1.75


def test_no_row_has_any_force() -> None:
    found = solved(np.eye(2), [1.0, -1.0], [0.0, 0.0], [0.0, 0.0])
    assert found.b == 0 and not found.fixed and found.gap == 0


def test_what_cannot_be_solved_is_refused() -> None:
    with pytest.raises(ValueError, match="d=3"):
        solved(np.eye(2), [0.0, 0.0], [0.0, 0.0], [1.0, 1.0], 3.0)
    with pytest.raises(ArithmeticError, match="semidefinite"):
        solved([[1.0, 2.0], [2.0, 1.0]], [1.0, -1.0], [0.0, -1.0], [1.0, 0.0])


def test_a_kernel_rounded_to_doubles_may_be_indefinite() -> None:
    X = np.random.default_rng(0).random((12, 2))
    with digits(100):
        K = exact_numbers.gram({"kernel": "linear"}, X, X)
        assert exact_numbers.is_semidefinite(K, 1e-60)
        assert not exact_numbers.is_semidefinite(exact(X @ X.T), 1e-60)


# ---------------------------------------------------------------------------------------------
# Against others


EVERY = [(kind, name) for kind in kinds.KINDS for name in kinds.families(kind)]


@pytest.mark.rotates(3)
@pytest.mark.parametrize(("kind", "name"), EVERY, ids=str)
def test_the_interior_point_solver_agrees(kind: str, name: str) -> None:
    problem = kinds.families(kind)[name](np.random.default_rng(3))
    rows = slice(0, MOST_ROWS)
    X, y, weight = problem.X[rows], problem.y[rows], problem.sample_weight[rows]
    for task in machines.tasks(kind, problem.params, X, y, weight):
        samples, at = np.unique(task.sample, return_inverse=True)

        def K(of: Any = samples, params: Any = problem.params) -> Any:
            return exact_numbers.gram(params, X[of], X[of])

        found = exact_qp.solve(K, task.rows, at)
        low, high = exact_qp.bias_range(K, task.rows, at, found)
        assert found.violation == 0 and all(found.f_error <= exact_qp.ACCEPTED * found.size)
        try:
            other = task.solve()
        except ArithmeticError:
            continue
        size = max(1.0, float(max(found.size)))
        np.testing.assert_allclose(
            floats(found.f - found.b), other.f - other.b, rtol=0.0, atol=1e-8 * size
        )
        assert float(low) - 1e-8 * size <= other.b <= float(high) + 1e-8 * size


@pytest.mark.parametrize("seed", range(12))
def test_its_answer_is_optimal_in_fractions(seed: int) -> None:
    """Boxes and kernel values of any size: the conditions hold without rounding."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    scale = 10.0 ** rng.integers(-12, 60, n)
    X = rng.integers(-4, 5, (n, 3)) * scale[:, None]
    K = exact_numbers.gram({"kernel": "linear"}, np.float64(X), np.float64(X))
    doubles = floats(K)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    rows = batch_qp.svc_rows(y, 1.0, 10.0 ** rng.integers(-12, 13, n))
    with digits(400):
        semidefinite = exact_numbers.is_semidefinite(exact(doubles), 1e-200)
    if not semidefinite:
        doubles = np.diag(np.diagonal(doubles)) * 2.0
    found = exact_qp.solve(doubles, rows)
    assert is_optimal(doubles, rows, found.u, found.b, Fraction(1, 10**20))
    if found.fixed:
        elsewhere = found.b + gmpy2.mpfr(2) ** -40
        assert not is_optimal(doubles, rows, found.u, elsewhere, Fraction(1, 10**20))


def test_a_start_changes_nothing_but_the_steps() -> None:
    problem = problems.FAMILIES["linear_many_rows"](np.random.default_rng(2))
    X, rows = problem.X[:30], batch_qp.svc_rows(problem.y[:30], 10.0)

    def K() -> Any:
        return exact_numbers.gram({"kernel": "linear"}, X, X)

    cold = exact_qp.solve(K, rows)
    warm = exact_qp.solve(K, rows, start=cold.u)
    astray = exact_qp.solve(K, rows, start=np.random.default_rng(0).uniform(rows.lo, rows.hi))
    for other in (warm, astray):
        assert max(abs(other.f - cold.f)) < 1e-40
    assert warm.steps < cold.steps


@pytest.mark.rotates(3)
@pytest.mark.parametrize("kernel", problems.HOSTILE_KERNELS)
def test_many_rows_from_a_start_nearby(kernel: str) -> None:
    rng = np.random.default_rng(4)
    problem = problems.outlier(kernel)(rng)
    more = problem.draw(rng, 76)
    X, y = np.vstack([problem.X, more.X]), np.concatenate([problem.y, more.y])
    rows, params = batch_qp.svc_rows(y, 1.0), problem.params

    def K() -> Any:
        return exact_numbers.gram(params, X, X)

    with digits(100):
        start = exact_qp.near(floats(K()), rows)
    warm = exact_qp.solve(K, rows, start=start, check=False)
    cold = exact_qp.solve(K, rows, check=False)
    assert max(abs(warm.f - cold.f) / cold.size) < 1e-40
    assert np.all((rows.lo <= start) & (start <= rows.hi))


@pytest.mark.rotates(3)
@pytest.mark.parametrize("name", problems.HOSTILE)
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_hostile_families_have_a_truth(kind: str, name: str) -> None:
    problem = kinds.hostile(kind)[name](np.random.default_rng(5))
    truth = exact_models.machine_truth(
        kind, problem.params, problem.X, problem.y, problem.sample_weight
    )
    assert np.isfinite(floats(truth.f)).all() and truth.off(floats(truth.f)).max() <= max(
        EPS * truth.size
    )


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "chi2"])
def test_kernels_are_those_of_the_definitions(kernel: str) -> None:
    rng = np.random.default_rng(0)
    X, Z = rng.random((5, 3)), rng.random((4, 3))
    X[0], Z[0] = 0.0, 0.0
    params = {"kernel": kernel, "gamma": 0.3, "degree": 3, "coef0": 1.0}
    with digits(50):
        found = floats(exact_numbers.gram(params, X, Z))
    np.testing.assert_allclose(found, problems.gram_of(params, X, Z), rtol=1e-14)


def test_least_squares_is_the_closed_form() -> None:
    from oracles.least_squares import closed_form

    rng = np.random.default_rng(1)
    X, y, weight = rng.random((12, 3)), rng.random(12), rng.integers(0, 3, 12).astype(np.float64)
    truth = exact_models.least_squares_truth(
        lambda: exact_numbers.gram({"kernel": "linear"}, X, X), y, weight, 0.5
    )
    solution = closed_form(X, y, 0.5, True, weight)[:, 0]
    np.testing.assert_allclose(floats(truth.f), X @ solution[:3] + solution[3], rtol=1e-13)


def test_what_is_off_is_seen() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.random((14, 2)), np.where(rng.random(14) < 0.5, 1, -1)
    y[:2] = [1, -1]
    params = {"kernel": "rbf", "gamma": 1.0, "C": 10.0}
    truth = exact_models.machine_truth("svc", params, X, y, np.ones(14))
    right = floats(truth.f)
    assert truth.off(right).max() <= EPS * 4.0
    wrong = right.copy()
    wrong[3] += 1e-9
    assert truth.off(wrong)[3] == pytest.approx(1e-9, rel=1e-5)
    assert np.isinf(truth.off(np.full(14, np.nan))).all()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_ties_and_differs_in_size(seed: int) -> None:
    """Few points of a grid, zero among them, far ones, and weights of any size."""
    rng = np.random.default_rng([seed, 7])
    n, width = int(rng.integers(4, 28)), int(rng.integers(1, 4))
    X = rng.integers(0, 4, (n, width)) / 3.0
    X[rng.random((n, width)) < 0.05] = 10.0 ** rng.integers(2, 13)
    weight = 10.0 ** rng.integers(-12, 13, n) if seed % 2 else np.ones(n)
    kernel = list(problems.HOSTILE_KERNELS.values())[seed % 7]
    kind = kinds.KINDS[rng.integers(4)]
    y = np.append([-1, 1], rng.choice([-1, 1], n - 2))
    own = {"nu": 0.4} if kind == "one_class" else {"C": 10.0 ** rng.integers(-3, 7)}
    params = {**kernel, **own, "epsilon": 0.25}
    truth = exact_models.machine_truth(kind, params, X, y, weight)
    assert np.isfinite(floats(truth.f)).all()
