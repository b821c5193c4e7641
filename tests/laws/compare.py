# SPDX-License-Identifier: BSD-3-Clause
"""How far a model is from the optimum that an independent solver finds on the same rows.

Models are compared by decision values, objective and certificate, never by alpha: with equal rows
alpha is not unique. K u is unique, and so is the interval of optimal b, whose middle is taken;
hence decision values are unique, too. Only where a row is inside its bounds by a hair, so that
rounding decides whether it fixes b, decision values are compared up to a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from oracles import batch_qp, problems
from oracles.batch_qp import EPS, Solution
from oracles.operations import Roster

TOL_OBJECTIVE = 1e-9
TOL_F = 1e-7
ROUNDINGS = 64.0


@dataclass(frozen=True)
class Difference:
    """Of one machine from the truth: the objective relatively, f relative to its own size.

    `strained` is the larger of both as a part of what is allowed: 1e-9 and 1e-7, and a few
    roundings.
    """

    pair: tuple[Any, Any]
    objective: float
    f: float
    strained: float
    unique: bool

    @property
    def ok(self) -> bool:
        return self.strained <= 1.0


def parameters(model: Any) -> dict[str, Any]:
    """What the oracle needs to know of a model: C and the kernel, gamma settled."""
    values = {name: getattr(model, name) for name in ("C", "kernel", "degree", "coef0")}
    return values if model.kernel == "linear" else {**values, "gamma": model.gamma_}


def pair_values(model: Any, X: Any) -> dict[tuple[Any, Any], Any]:
    """Decision values of every pair of classes, above 0 for the second."""
    classes = model.classes_.tolist()
    shape = model.decision_function_shape
    model.decision_function_shape = "ovo"
    try:
        f = model.decision_function(X)
    finally:
        model.decision_function_shape = shape
    if len(classes) == 2:
        return {(classes[0], classes[1]): f}
    return {pair: -f[:, k] for k, pair in enumerate(combinations(classes, 2))}


def pair_weights(model: Any) -> dict[tuple[Any, Any], tuple[Any, float]]:
    """(u in the order of ids_, b) of every pair, from the public attributes."""
    classes = model.classes_.tolist()
    n, support, dual = len(model.ids_), model.support_, model.dual_coef_
    sign = 1.0 if len(classes) == 2 else -1.0
    rank = np.repeat(np.arange(len(classes)), model.n_support_)
    weights = {}
    for k, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        u = np.zeros(n)
        for own, other in ((i, j), (j, i)):
            row = 0 if len(classes) == 2 else other - (other > own)
            mine = rank == own
            u[support[mine]] = sign * dual[row, mine]
        weights[classes[i], classes[j]] = u, float(sign * model.intercept_[k])
    return weights


def truth(
    params: dict[str, Any], roster: Roster, pair: tuple[Any, Any]
) -> tuple[Solution, Any, Any]:
    """(optimum, mask of its rows in the roster, their kernel matrix) for two of the classes."""
    chosen = np.isin(roster.y, pair)
    X = roster.X[chosen]
    K = problems.gram_of(params, X, X)
    sign = np.where(roster.y[chosen] == pair[1], 1.0, -1.0)
    return batch_qp.solve_svc(K, sign, params["C"], roster.sample_weight[chosen]), chosen, K


def differences(model: Any, roster: Roster, X_other: Any) -> list[Difference]:
    """Of every machine, on the rows it was trained on and on others.

    Raises ArithmeticError where the oracle has no answer of that precision.
    """
    assert model.ids_.tolist() == roster.ids.tolist(), "ids_ are not the rows learned, in order"
    assert model.classes_.tolist() == np.unique(roster.y).tolist()
    if len(model.classes_) < 2:
        return []
    params = parameters(model)
    X = np.vstack([roster.X, X_other])
    found, held = pair_values(model, X), pair_weights(model)
    roster, X = near_origin(params, roster, X)
    result = []
    for pair, values in found.items():
        best, chosen, K = truth(params, roster, pair)
        t = np.where(roster.y[chosen] == pair[1], 1.0, -1.0)
        u, _ = held[pair]
        assert not u[~chosen].any(), "a row of another class has weight in this machine"
        objective = batch_qp.objective(K, t, u[chosen])
        K_all = problems.gram_of(params, X, roster.X[chosen])
        expected = np.asarray(batch_qp.exact_product(K_all, best.u) + best.b, dtype=np.float64)
        rows = batch_qp.svc_rows(t, params["C"], roster.sample_weight[chosen])
        if hangs_on_a_digit(K, rows, best.u):
            values, expected = values - values[0], expected - expected[0]
        floor = rounding_of(K, t, best.u)
        if best.kkt_violation > max(floor, 0.01 * TOL_F):
            raise ArithmeticError(f"the oracle itself is off by {best.kkt_violation:.1e}")
        cost = floor * params["C"] * float(roster.sample_weight[chosen].sum())
        goal = max(abs(best.objective), 1e-3 * params["C"])  # 0 where a class has no weight
        off = float(np.abs(values - expected).max(initial=0.0))
        size = max(1.0, float(np.abs(expected).max(initial=0.0)))
        off_goal = abs(objective - best.objective)
        strained = max(off_goal / (TOL_OBJECTIVE * goal + cost), off / (TOL_F * size + floor))
        result.append(Difference(pair, off_goal / goal, off / size, strained, best.unique_f))
    return result


def near_origin(params: dict[str, Any], roster: Roster, X: Any) -> tuple[Roster, Any]:
    """The same problem with rows around zero, where the kernel is linear: only b takes it up.

    Far from zero the rounding of u alone would blur the oracle's f.
    """
    if params["kernel"] != "linear":
        return roster, X
    origin = np.round(roster.X.mean(axis=0))
    return replace(roster, X=roster.X - origin), X - origin


def hangs_on_a_digit(K: Any, rows: batch_qp.Rows, u: Any) -> bool:
    """Whether a row is inside its bounds by so little that rounding may have put it there."""
    if batch_qp.unique_f(K, *rows, u):
        return False
    low, high = batch_qp.at_bounds(rows.lo, rows.hi, u)
    return bool(np.any(~low & ~high))


def rounding_of(K: Any, t: Any, u: Any) -> float:
    """What no method can see: a few roundings of f, for the best placed origin of the kernel.

    It matters where C is huge and binds, as terms of size C k(x, z) then add up to an f near 1; a
    row that is off by it changes the objective by it times C.
    """
    centred, t = batch_qp.centred(K, t, 0.0)
    return ROUNDINGS * EPS * batch_qp.size_of_f(centred, t, u) if len(u) else 0.0


# ---------------------------------------------------------------------------------------------
# Two models


def assert_is_optimum(model: Any, roster: Roster, X_other: Any) -> None:
    """The certificate holds, and an independent solver finds the same model on the same rows."""
    certificate = model.certificate()
    assert certificate.ok, str(certificate)
    try:
        found = differences(model, roster, X_other)
    except ArithmeticError:
        return
    wrong = [difference for difference in found if not difference.ok]
    assert not wrong, f"not the optimum: {wrong}"


def assert_same(one: Any, other: Any, roster: Roster, X_other: Any) -> None:
    """Two models of the rows in the roster, in whatever order each learned them, are one model."""
    assert sorted(one.ids_.tolist()) == sorted(other.ids_.tolist()) == sorted(roster.ids.tolist())
    assert_same_on(one, other, roster, X_other)


def assert_same_on(one: Any, other: Any, roster: Roster, X_other: Any) -> None:
    """Two models that hold the rows in the roster, and else rows without weight, are one model."""
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.certificate().ok and other.certificate().ok
    if len(one.classes_) < 2:
        return
    params = parameters(one)
    X = np.vstack([roster.X, X_other])
    values = pair_values(one, X), pair_values(other, X)
    weights = _by_roster(one, roster), _by_roster(other, roster)
    roster, _ = near_origin(params, roster, X)
    for pair in values[0]:
        chosen = np.isin(roster.y, pair)
        t = np.where(roster.y[chosen] == pair[1], 1.0, -1.0)
        K = problems.gram_of(params, roster.X[chosen], roster.X[chosen])
        rows = batch_qp.svc_rows(t, params["C"], roster.sample_weight[chosen])
        u, u_other = weights[0][pair], weights[1][pair]
        f, f_other = values[0][pair], values[1][pair]
        if any(hangs_on_a_digit(K, rows, v[chosen]) for v in (u, u_other)):
            f, f_other = f - f[0], f_other - f_other[0]
        floor = rounding_of(K, t, u[chosen])
        size = max(1.0, float(np.abs(f).max()))
        np.testing.assert_allclose(
            f, f_other, rtol=0.0, atol=TOL_F * size + floor, err_msg=f"f of {pair}"
        )
        goals = [batch_qp.objective(K, t, v[chosen]) for v in (u, u_other)]
        cost = floor * float((rows.hi - rows.lo).sum())
        assert (
            abs(goals[0] - goals[1])
            <= TOL_OBJECTIVE * max(abs(goals[0]), 1e-3 * params["C"]) + cost
        )


def _by_roster(model: Any, roster: Roster) -> dict[tuple[Any, Any], Any]:
    """`pair_weights`, with u in the order of the roster."""
    place = {identity: row for row, identity in enumerate(model.ids_.tolist())}
    order = [place[identity] for identity in roster.ids.tolist()]
    return {pair: u[order] for pair, (u, _) in pair_weights(model).items()}


def exact_state(model: Any, X: Any) -> Any:
    """All that a user can see of a model, to the last bit; None if it has learned nothing."""
    if not hasattr(model, "ids_"):
        return None
    seen = [model.decision_function(X), model.predict(X), model.dual_coef_, model.intercept_]
    seen += [model.support_, model.n_support_, model.classes_]
    return (
        [(part.dtype.str, part.shape, part.tolist()) for part in seen],
        model.ids_.tolist(),
        str(model.last_update_),
        model.certificate().ok,
    )
