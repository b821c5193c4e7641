# SPDX-License-Identifier: BSD-3-Clause
"""The oracles agree with each other: batch solvers, single-row path, many-row path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracles import batch_qp, kinds, machines, problems
from oracles.path_numpy import Event, Kind, Matrix, Path

TOL_F = 1e-8
TOL_VIOLATION = 1e-9
TOL_RELATIVE = 1e-13
EVERY_FAMILY = {**problems.FAMILIES, **problems.C_VARIANTS}


def pool(seed: int, n: int, C: float, weighted: bool = False) -> tuple[Matrix, batch_qp.Rows]:
    """Gaussian rows with noisy labels under an RBF kernel: in general position."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1, -1)
    weight = rng.uniform(0.5, 2.0, n) * (rng.random(n) > 0.1) if weighted else None
    return problems.gram("rbf", X, X, gamma=0.5), batch_qp.svc_rows(y, C, weight)


def assert_is_optimum(path: Path) -> None:
    """f and b of the members are those of a batch solution, and the KKT conditions hold."""
    m = path.members
    part = path.K[np.ix_(m, m)], path.t[m], path.lo[m], path.hi[m]
    exact = batch_qp.solve(*part)
    assert exact.kkt_violation < TOL_VIOLATION
    assert batch_qp.kkt_violation(*part, 0.0, path.u[m], path.b) < TOL_F
    np.testing.assert_allclose((path.r + path.t)[m], exact.f, atol=TOL_F, rtol=0)
    np.testing.assert_allclose(path.b, exact.b, atol=TOL_F, rtol=0)
    assert np.all(path.u[path.rows(Kind.ABSENT)] == 0.0)


# ---------------------------------------------------------------------------------------------
# batch_qp


@pytest.mark.parametrize("name", EVERY_FAMILY)
def test_batch_solution_is_optimal_on_every_family(name: str) -> None:
    for seed in range(2):
        problem = EVERY_FAMILY[name](np.random.default_rng(seed))
        K, C = problems.gram_of(problem.params, problem.X, problem.X), problem.params["C"]
        found = batch_qp.solve_svc(K, problem.y, C, problem.sample_weight)
        assert found.kkt_violation < TOL_VIOLATION * max(1.0, C * np.abs(K).max())
        size = max(1.0, batch_qp.size_of_f(K, problem.y.astype(np.float64), found.u))
        assert found.kkt_violation < TOL_RELATIVE * size
        assert found.duality_gap < TOL_VIOLATION * max(1.0, abs(found.objective) + size * C)


@pytest.mark.skipif(not batch_qp.HAVE_CLARABEL, reason="clarabel is not installed")
@pytest.mark.parametrize("name", problems.FAMILIES)
def test_two_batch_solvers_agree(name: str) -> None:
    problem = problems.FAMILIES[name](np.random.default_rng(7))
    K, C = problems.gram_of(problem.params, problem.X, problem.X), problem.params["C"]
    one = batch_qp.solve_svc(K, problem.y, C, problem.sample_weight)
    two = batch_qp.solve_svc(K, problem.y, C, problem.sample_weight, solver="clarabel")
    assert one.objective == pytest.approx(two.objective, rel=1e-9)
    np.testing.assert_allclose(one.f - one.b, two.f - two.b, atol=1e-7, rtol=1e-9)
    if one.unique_f:
        np.testing.assert_allclose(one.f, two.f, atol=1e-7, rtol=0)


EVERY_KIND = {
    (kind, name): family
    for kind in ("svr", "one_class", "svdd")
    for name, family in {**kinds.families(kind), **kinds.variants(kind)}.items()
}


@pytest.mark.parametrize("kind", ["svr", "one_class", "svdd"])
def test_batch_solution_is_optimal_for_every_kind(kind: str) -> None:
    """On one family in three; where the digits do not suffice, the oracle says so."""
    refused = 0
    some = [family for key, family in EVERY_KIND.items() if key[0] == kind][::3]
    for seed, family in enumerate(some):
        problem = family(np.random.default_rng(seed))
        held = problem.X, problem.y, problem.sample_weight
        (task,) = machines.tasks(kind, problem.params, *held)
        try:
            found = task.solve()
        except ArithmeticError:
            refused += 1
            continue
        size = max(1.0, batch_qp.size_of_f(task.K, task.rows.t, found.u))
        assert found.kkt_violation < 10.0 * TOL_RELATIVE * size
        box = float((task.rows.hi - task.rows.lo).max())
        assert found.duality_gap < TOL_VIOLATION * max(1.0, abs(found.objective) + size * box)
    assert refused <= 2


def test_no_row_and_one_row() -> None:
    none = batch_qp.solve_svc(np.zeros((0, 0)), np.zeros(0), 1.0)
    assert (none.b, none.objective, none.kkt_violation, none.unique_f) == (0.0, 0.0, 0.0, False)
    one = batch_qp.solve_svc(np.ones((1, 1)), [-1.0], 1.0)
    assert (one.u[0], one.b, one.b_interval, one.unique_f) == (0.0, -1.0, (-np.inf, -1.0), False)
    fixed = batch_qp.solve(np.ones((1, 1)), [0.0], [2.0], [2.0], 2.0)
    assert (fixed.u[0], fixed.kkt_violation) == (2.0, 0.0)


def test_one_class_has_no_coefficients_and_an_open_interval() -> None:
    K, _ = pool(0, 12, 1.0)
    found = batch_qp.solve_svc(K, np.ones(12), 10.0)
    assert np.all(found.u == 0.0)
    assert found.b_interval == (1.0, np.inf)
    assert found.b == 1.0 and not found.unique_f


def test_two_equal_opposite_rows_at_bound_put_b_in_the_middle() -> None:
    K = np.array([[1.0, 0.2], [0.2, 1.0]])
    found = batch_qp.solve_svc(K, [1.0, -1.0], 0.1)
    np.testing.assert_allclose(found.u, [0.1, -0.1])
    assert found.b == pytest.approx(0.0, abs=1e-15) and not found.unique_f


def test_sum_may_be_other_than_zero() -> None:
    """One-class rows: t = 0, 0 <= u <= 1, sum(u) = nu n."""
    K, _ = pool(3, 30, 1.0)
    n = len(K)
    found = batch_qp.solve(K, np.zeros(n), np.zeros(n), np.ones(n), 0.3 * n)
    assert found.u.sum() == pytest.approx(0.3 * n)
    assert found.kkt_violation < TOL_VIOLATION and found.unique_f


def test_unreachable_sum_is_refused() -> None:
    with pytest.raises(ValueError, match="d=3"):
        batch_qp.solve(np.eye(2), [0.0, 0.0], [0.0, 0.0], [1.0, 1.0], 3.0)


def test_judges_see_a_wrong_point() -> None:
    K, rows = pool(1, 30, 1.0)
    found = batch_qp.solve(K, *rows)
    assert abs(batch_qp.duality_gap(K, *rows, found.u, found.b)) < 1e-12
    wrong = found.u.copy()
    pair = np.flatnonzero((found.u > 0.1) & (found.u < 0.9))[:2]
    wrong[pair] += [0.05, -0.05]
    assert batch_qp.kkt_violation(K, *rows, wrong, found.b) > 1e-3
    gap = batch_qp.duality_gap(K, *rows, wrong, found.b)
    assert gap >= batch_qp.objective(K, rows.t, wrong) - found.objective > 0.0
    assert batch_qp.kkt_violation(K, *rows, found.u, found.b + 0.01) >= 0.0099


# ---------------------------------------------------------------------------------------------
# path_numpy


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_single_rows_in_and_out(C: float, weighted: bool) -> None:
    K, rows = pool(11, 40, C, weighted)
    path = Path(K, *rows[:3])
    for c in range(40):
        path.increment(c)
        assert_is_optimum(path)
    for c in np.random.default_rng(0).permutation(40)[:25]:
        path.decrement(int(c))
        assert_is_optimum(path)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_in_one_motion(C: float, weighted: bool) -> None:
    K, rows = pool(12, 60, C, weighted)
    rng = np.random.default_rng(0)
    path = Path(K, *rows[:3])
    path.move(enter=np.arange(45))
    assert_is_optimum(path)
    for _ in range(8):
        absent = path.rows(Kind.ABSENT)
        coming = rng.choice(absent, size=rng.integers(0, min(12, len(absent)) + 1), replace=False)
        going = rng.choice(path.members, size=rng.integers(0, 12), replace=False)
        path.move(enter=coming, leave=going)
        assert_is_optimum(path)
    path.move(leave=path.members)
    assert np.all(path.u == 0.0) and len(path.members) == 0


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_one_driven_row_is_the_same_path_in_both_papers(C: float) -> None:
    K, rows = pool(13, 40, C)
    single, multiple = Path(K, *rows[:3]), Path(K, *rows[:3])
    for c in range(40):
        one, other = single.increment(c), multiple.move(enter=[c])
        for p, q in zip(one, other, strict=True):
            assert (p.event, p.row, p.sizes) == (q.event, q.row, q.sizes)
        np.testing.assert_allclose([p.u for p in one], [p.u for p in other], atol=TOL_F)
        np.testing.assert_allclose([p.r for p in one], [p.r for p in other], atol=TOL_F)


def test_every_breakpoint_is_an_optimum_of_the_settled_rows() -> None:
    """At a breakpoint the KKT conditions hold for every row that is not being driven."""
    K, rows = pool(14, 50, 5.0)
    path = Path(K, *rows[:3])
    path.move(enter=np.arange(30))
    for point in path.move(enter=np.arange(30, 45), leave=np.arange(10)):
        settled = np.arange(10, 30)
        u, r = point.u[settled], point.r[settled]
        assert np.all(r[u < rows.hi[settled] - 1e-12] > -TOL_F)
        assert np.all(r[u > rows.lo[settled] + 1e-12] < TOL_F)
        assert abs(point.u.sum()) < TOL_F


def test_many_at_once_needs_fewer_breakpoints() -> None:
    """KT09 section 3.4: the straight line is shorter than one coordinate after the other."""
    K, rows = pool(15, 60, 1.0)
    single, multiple = Path(K, *rows[:3]), Path(K, *rows[:3])
    for path in (single, multiple):
        path.move(enter=np.arange(40))
    singles = sum(len(single.increment(c)) - 1 for c in range(40, 60))
    together = len(multiple.move(enter=np.arange(40, 60))) - 1
    assert together < singles
    np.testing.assert_allclose(single.u, multiple.u, atol=TOL_F)


def test_adding_then_removing_restores_the_optimum() -> None:
    K, rows = pool(16, 31, 3.0)
    path = Path(K, *rows[:3])
    path.move(enter=np.arange(30))
    u, b = path.u.copy(), path.b
    forth = path.increment(30)
    back = path.decrement(30)
    assert forth[0].event is Event.START and back[-1].event is Event.ARRIVE
    np.testing.assert_allclose(path.u, u, atol=TOL_F)
    assert path.b == pytest.approx(b, abs=TOL_F)


def test_leave_one_out_is_the_verdict_of_a_refit() -> None:
    K, rows = pool(17, 40, 2.0)
    path = Path(K, *rows[:3])
    path.move(enter=np.arange(40))
    before = path.u.copy()
    for c in range(40):
        correct, g = path.leave_one_out(c)
        rest = np.arange(40) != c
        exact = batch_qp.solve(K[np.ix_(rest, rest)], *(part[rest] for part in rows[:3]))
        g_exact = rows.t[c] * (float(exact.decide(K[[c]][:, rest])[0]) - rows.t[c])
        assert correct == (g_exact >= -1.0)
        if correct:
            assert g == pytest.approx(g_exact, abs=TOL_F)
        else:
            assert g >= g_exact - TOL_F
    np.testing.assert_array_equal(path.u, before)


# ---------------------------------------------------------------------------------------------
# problems


@pytest.mark.parametrize("name", problems.FAMILIES)
def test_families_are_small_two_class_and_reproducible(name: str) -> None:
    family = problems.FAMILIES[name]
    one, two = (family(np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert 20 <= len(one.y) <= 80 and set(one.y) == {-1, 1}
    assert len(one.sample_weight) == len(one.y)
    more = one.draw(np.random.default_rng(6), 7)
    assert more.X.shape == (7, one.X.shape[1])
    assert len(more.y) == len(more.sample_weight) == 7


@pytest.mark.parametrize("keep_classes", [False, True])
def test_operations_name_rows_that_are_there(keep_classes: bool) -> None:
    verbs = set()
    for name, family in problems.FAMILIES.items():
        problem, rng = family(np.random.default_rng(1)), np.random.default_rng(2)
        roster = problems.Roster.of(problem)
        for operation in problems.random_operations(problem, rng, 40, keep_classes=keep_classes):
            verbs.add(type(operation).__name__)
            known = set(roster.ids.tolist())
            for field in ("remove",) if isinstance(operation, problems.Update) else ("ids",):
                if not isinstance(operation, problems.Add):
                    assert set(getattr(operation, field).tolist()) <= known, name
            if isinstance(operation, problems.Add | problems.Update):
                assert known.isdisjoint(operation.ids.tolist())
            roster.apply(operation)
            assert len(roster.ids) == len(set(roster.ids.tolist())) == len(roster.y) >= 1
            assert len(roster.X) == len(roster.sample_weight) == len(roster.y)
            assert not keep_classes or len(np.unique(roster.y)) == 2
    assert verbs == {"Add", "Remove", "Revise", "Update"}


@pytest.mark.parametrize("kind", ["linear", "poly", "rbf", "laplacian", "chi2"])
def test_kernels_are_those_of_scikit_learn(kind: str) -> None:
    from sklearn.metrics.pairwise import pairwise_kernels

    rng = np.random.default_rng(0)
    X, Z = rng.random((6, 4)), rng.random((5, 4))
    options = {"linear": {}, "poly": {"gamma": 0.3, "degree": 2, "coef0": 1.0}}
    params: dict[str, Any] = {"kernel": kind, **options.get(kind, {"gamma": 0.3})}
    expected = pairwise_kernels(X, Z, metric=kind, **options.get(kind, {"gamma": 0.3}))
    np.testing.assert_allclose(problems.gram_of(params, X, Z), expected, rtol=1e-12)
