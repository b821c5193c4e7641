# SPDX-License-Identifier: BSD-3-Clause
"""The judge is right: zero at the optimum, and above the tolerance anywhere else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from adiabat import SVC, SVR, Certificate
from adiabat.certificate import Problem, duality_gap, judge, violations

from oracles import batch_qp
from oracles.problems import FAMILIES, gram_of

LINE = (
    "optimal: residual 1.0e-12 (allowed 1.0e-09), relative gap 2.0e-11, 10 samples, 4 support, "
    "holding gamma=0.5"
)


def solved(name: str) -> tuple[Any, Any, Any, Any]:
    """(K, t, (lo, hi), oracle's solution) of a family."""
    problem = FAMILIES[name](np.random.default_rng(3))
    K = gram_of(problem.params, problem.X, problem.X)
    rows = batch_qp.svc_rows(problem.y, problem.params["C"], problem.sample_weight)
    return K, rows.t, (rows.lo, rows.hi), batch_qp.solve(K, *rows)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_judge_agrees_with_the_oracle(name: str) -> None:
    K, t, (lo, hi), best = solved(name)
    for part in (1.0, 1.0 - 1e-6, 0.9, 0.0):  # u = 0 is feasible, and so is all in between
        u = part * best.u
        r = np.asarray(batch_qp.exact_product(K, u) + best.b - t, dtype=np.float64)
        sizes = np.abs(K) @ np.abs(u)
        verdict = judge(Problem(u, t, lo, hi, 0.0, best.b), r, sizes, 1e-9)
        rounding = 1e-13 * max(1.0, batch_qp.size_of_f(K, t, u))
        expected = batch_qp.kkt_violation(K, t, lo, hi, 0.0, u, best.b, slack=0.0)
        # the worst row is worst for what it may be, which is nearly the same for all rows here
        assert verdict.residual == pytest.approx(expected, rel=1e-6, abs=rounding)
        assert verdict.ok == (part == 1.0)
        gap = batch_qp.duality_gap(K, t, lo, hi, 0.0, u, best.b)
        size = 0.5 * float(u @ K @ u) + float(t @ u)
        cost = len(t) * rounding * max(1.0, float((hi - lo).max()))
        if part > 0.0:  # else there is nothing to be relative to
            assert verdict.gap * size == pytest.approx(gap, rel=1e-6, abs=cost)


def test_the_gap_bounds_what_is_left_to_gain() -> None:
    K, t, (lo, hi), best = solved("poly2_low_rank")
    rng = np.random.default_rng(1)
    for _ in range(20):
        u = np.clip(best.u + 0.1 * rng.standard_normal(len(t)), lo, hi)
        u -= u.sum() * (hi - lo) / (hi - lo).sum()
        if np.any(u < lo) or np.any(u > hi):
            continue
        b = best.b + 0.1 * rng.standard_normal()
        r = K @ u + b - t
        left = batch_qp.objective(K, t, u) - best.objective
        assert duality_gap(r, u, lo, hi) >= left - 1e-9


def test_each_condition_is_seen() -> None:
    r = np.array([0.5, -0.5, 0.5, -0.5, 0.25, -0.25])
    u = np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.5])
    lo, hi = np.zeros(6), np.ones(6)
    assert violations(r, u, lo, hi).tolist() == [0.0, 0.5, 0.5, 0.0, 0.25, 0.25]
    nothing, one = np.zeros(2), np.ones(2)

    def verdict(u: list[float], r: Any = nothing) -> Any:
        return judge(Problem(np.array(u), one, nothing, one, 0.0, 0.0), r, one, 1e-9)

    assert verdict([1.5, -1.5]).balance == 1.5 and not verdict([1.5, -1.5]).ok
    assert verdict([0.5, 0.25]).balance == 1.0 and not verdict([0.5, 0.25]).ok
    assert verdict([0.0, 0.0]).ok
    wrong = verdict([0.0, 0.0], np.array([0.0, -0.5]))
    assert wrong.residual == 0.5 and wrong.worst == 1 and not wrong.ok
    assert judge(Problem(*[np.empty(0)] * 4, 0.0, 0.0), *[np.empty(0)] * 2, 1e-9).ok


# -- the certificate of a model ------------------------------------------------------------------


def test_one_readable_line() -> None:
    certificate = Certificate(1e-12, 2e-11, 10, 4, 1e-9, True, {"gamma": 0.5})
    assert str(certificate) == LINE
    bad = Certificate(1e-3, 2e-2, 10, 4, 1e-9, False)
    assert str(bad).startswith("NOT OPTIMAL: residual 1.0e-03")
    assert "\n" not in str(certificate) and "holding" not in str(bad)


def test_certificates_can_be_copied_compared_and_pickled_but_not_changed() -> None:
    model = SVC(class_weight="balanced").fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    certificate = model.certificate()
    for twin in (copy.deepcopy(certificate), pickle.loads(pickle.dumps(certificate))):
        assert twin == certificate and str(twin) == str(certificate)
    with pytest.raises(AttributeError):
        certificate.ok = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        certificate.held_fixed["gamma"] = 1.0  # type: ignore[index]


def test_what_was_held_fixed_is_named() -> None:
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    held = SVC(gamma="scale").fit(X, y).certificate().held_fixed
    assert dict(held) == {"gamma": pytest.approx(1.0 / (3 * X.var()))}
    assert dict(SVC(kernel="linear").fit(X, y).certificate().held_fixed) == {}
    balanced = SVC(kernel="linear", class_weight="balanced").fit(X, y).certificate().held_fixed
    assert dict(balanced["class_weight"]) == {0: 1.0, 1: 1.0}


@pytest.mark.parametrize(("C", "scale"), [(0.1, 1.0), (1.0, 1.0), (50.0, 1.0), (50.0, 3.0)])
def test_the_tolerance_is_that_of_the_target(C: float, scale: float) -> None:
    X = scale * np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
    certificate = SVC(C=C, kernel="linear", tol=1e-8).fit(X, [0, 1, 0, 1]).certificate()
    assert certificate.tol == pytest.approx(1e-8, rel=1e-3)
    assert certificate.ok


@pytest.mark.parametrize("part", ["u", "b"])
def test_a_model_that_was_tampered_with_has_no_certificate(part: str) -> None:
    """The judge starts from the data: nothing that the engine keeps can persuade it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    model = SVC(gamma=0.5).fit(X, np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1, 0))
    assert model.certificate().ok
    ((_, machine),) = model._model.machines
    inside = np.flatnonzero((machine.u > machine.lo) & (machine.u < machine.hi))[:2]
    if part == "u":
        machine.u[inside] += [1e-6, -1e-6]
    else:
        machine.b += 1e-6
    certificate = model.certificate()
    assert not certificate.ok and certificate.residual > 1e-7
    assert str(certificate).startswith("NOT OPTIMAL")


def test_where_rounding_is_the_limit_it_is_said() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + 0.7 * rng.standard_normal(60) > 0).astype(int)
    model = SVC(gamma=0.3, C=10.0).fit(X, y)
    assert "double precision" not in str(model.certificate())
    model.tol = 1e-18
    certificate = model.partial_fit(X[:3] + 0.1, y[:3]).certificate()
    assert certificate.ok and certificate.rounding == pytest.approx(certificate.tol, rel=1e-3)
    assert "as exact as double precision allows: f is known to" in str(certificate)


def test_a_gap_that_is_rounding_is_said_in_words() -> None:
    def line(gap: float, gap_tol: float, ok: bool = True) -> str:
        certificate = Certificate(1e-12, gap, 10, 4, 1e-9, ok, gap_tol=gap_tol)
        assert certificate.gap == gap
        return str(certificate)

    assert ", gap below rounding, 10 samples" in line(1e35, 1e36)
    assert ", relative gap 1.0e-13, 10 samples" in line(1e-13, 1e36)  # small all the same
    assert ", relative gap 1.0e-02, 10 samples" in line(1e-2, 1e-1)
    assert ", relative gap 1.0e+35, 10 samples" in line(1e35, 1e36, ok=False)


def test_the_gap_of_a_model_with_a_huge_box_is_below_rounding() -> None:
    X, y = np.array([[0.1], [0.4], [0.7], [1.3]]), [0.3, 0.1, 0.9, 0.2]
    model = SVR(kernel="rbf", C=1e30, epsilon=0.01).fit(X, y)
    certificate = model.certificate()
    assert certificate.ok and certificate.gap > 1.0
    assert "gap below rounding" in str(certificate) and "relative gap" not in str(certificate)


def test_certify_matches_the_reports() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 3))
    model = SVC(gamma=0.3).fit(X, np.arange(50) % 3)
    for certificate in (model.certificate(), model.last_update_.certificate):
        assert certificate.n_samples == 50
        assert certificate.n_support == len(model.support_)
        assert certificate.residual <= certificate.tol and certificate.gap < 1e-10
