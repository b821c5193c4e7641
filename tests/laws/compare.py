# SPDX-License-Identifier: BSD-3-Clause
"""How far a model is from the optimum that an independent solver finds on the same rows.

Models are compared by decision values, objective and certificate, never by alpha: with equal rows
alpha is not unique. K u is unique, and so is the interval of optimal b, whose middle is taken;
hence decision values are unique, too. Only where a row is inside its bounds by a hair, so that
rounding decides whether it fixes b, decision values are compared up to a constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from adiabat import SVC, SVDD, SVR, IncrementalPipeline, OneClassSVM
from adiabat.preprocessing.scaler import StandardScaler

from laws.adapters import LEAST_SQUARES, ByRows, machine_of
from laws.subjects import Subject, judge, wrapped
from oracles import batch_qp, problems
from oracles.batch_qp import EPS
from oracles.exact_models import machine_truth
from oracles.machines import SHIFT_FREE, Task, by_row, seen, tasks
from oracles.operations import Roster

ESTIMATORS: dict[str, Any] = {"svc": SVC, "svr": SVR, "one_class": OneClassSVM, "svdd": SVDD}

TOL_OBJECTIVE = 1e-9
TOL_F = 1e-7
ROUNDINGS = 128.0  # the judge allows 64, and as many to the rows that b is taken from
# Kernel values of samples with themselves, and boxes, are of one size up to these factors; where
# they are not, an interior point solver in doubles is no judge.
SPREAD_OF_KERNEL, SPREAD_OF_BOXES = 1e4, 1e6


@dataclass(frozen=True)
class Difference:
    """Of one machine from the truth: the objective relatively, f relative to its own size.

    `strained` is the larger of both as a part of what is allowed: 1e-9 and 1e-7, and a few
    roundings.
    """

    machine: Any
    objective: float
    f: float
    strained: float
    unique: bool

    @property
    def ok(self) -> bool:
        return self.strained <= 1.0


_KINDS = {**{estimator: kind for kind, estimator in ESTIMATORS.items()},
          **dict(LEAST_SQUARES.values())}  # fmt: skip


def kind_of(model: Any) -> str:
    """The kind of problem that an estimator solves."""
    if isinstance(model, IncrementalPipeline):
        return kind_of(model.estimator)
    return _KINDS[type(model.model if isinstance(model, ByRows) else model)]


def parameters(model: Any) -> dict[str, Any]:
    """What the oracle needs to know of a model: parameters, those taken from data settled."""
    own = {"svc": ("C",), "svr": ("C", "epsilon"), "one_class": ("nu",), "svdd": ("C",)}
    names = (*own[kind_of(model)], "kernel", "degree", "coef0")
    values = {name: getattr(model, name) for name in names}
    if model.kernel != "linear":
        values["gamma"] = model.gamma_
    factors = model.certificate().held_fixed.get("class_weight")
    return values if factors is None else {**values, "class_weight": factors}


def values_of(model: Any, X: Any) -> dict[Any, Any]:
    """Decision values by machine; of a pair of classes above 0 for the second."""
    kind = kind_of(model)
    if kind != "svc":
        return {"all": model.predict(X) if kind == "svr" else model.decision_function(X)}
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


def weights_of(model: Any) -> dict[Any, Any]:
    """Weights of the samples in the order of ids_ by machine, from the public attributes."""
    n, support, dual = len(model.ids_), model.support_, model.dual_coef_
    if kind_of(model) != "svc":
        u = np.zeros(n)
        u[support] = dual[0]
        return {"all": u}
    classes = model.classes_.tolist()
    sign = 1.0 if len(classes) == 2 else -1.0
    rank = np.repeat(np.arange(len(classes)), model.n_support_)
    weights = {}
    for i, j in combinations(range(len(classes)), 2):
        u = np.zeros(n)
        for own, other in ((i, j), (j, i)):
            row = 0 if len(classes) == 2 else other - (other > own)
            mine = rank == own
            u[support[mine]] = sign * dual[row, mine]
        weights[classes[i], classes[j]] = u
    return weights


def tasks_of(model: Any, roster: Roster) -> tuple[dict[str, Any], Any, list[Task]]:
    """(parameters, the origin that rows are measured from, problems of the machines) of a model."""
    params, kind = parameters(model), kind_of(model)
    origin = best_origin(kind, params, roster.X)
    return params, origin, tasks(kind, params, roster.X - origin, roster.y, roster.sample_weight)


def differences(model: Any, roster: Roster, X_other: Any) -> list[Difference]:
    """Of every machine, on the rows it was trained on and on others.

    Raises ArithmeticError where the oracle has no answer of that precision.
    """
    assert model.ids_.tolist() == roster.ids.tolist(), "ids_ are not the rows learned, in order"
    kind = kind_of(model)
    if kind == "svc":
        assert model.classes_.tolist() == np.unique(roster.y).tolist()
        if len(model.classes_) < 2:
            return []
    X = np.vstack([roster.X, X_other])
    found, held = values_of(model, X), weights_of(model)
    params, origin, machines = tasks_of(model, roster)
    X = X - origin
    result = []
    for task in machines:
        values, u = found[task.key], held[task.key]
        elsewhere = np.ones(len(u), dtype=bool)
        elsewhere[task.sample] = False
        assert not u[elsewhere].any(), "a row of another class has weight in this machine"
        if badly_scaled(task):
            result.append(exact_difference(kind, params, roster, task, values))
            continue
        best, t = task.solve(), task.rows.t
        own = u[task.sample] if kind == "svc" else by_row(kind, u)
        objective = batch_qp.objective(task.K, t, own)
        K_all = problems.gram_of(params, X, X[task.sample])
        f = np.asarray(batch_qp.exact_product(K_all, best.u) + best.b, dtype=np.float64)
        expected = seen(kind, params, f, X)
        if hangs_on_a_digit(task.K, task.rows, best.u):
            values, expected = values - values[0], expected - expected[0]
        floor = rounding_of(kind, task, best.u)
        if best.kkt_violation > max(floor, 0.01 * TOL_F):
            raise ArithmeticError(f"the oracle itself is off by {best.kkt_violation:.1e}")
        goal = size_of_objective(task, best.objective)
        off = float(np.abs(values - expected).max(initial=0.0))
        size = max(1.0, float(np.abs(expected).max(initial=0.0)))
        off_goal = abs(objective - best.objective)
        allowed = TOL_OBJECTIVE * goal + floor * float((task.rows.hi - task.rows.lo).sum())
        strained = max(off_goal / allowed, off / (TOL_F * size + floor))
        result.append(Difference(task.key, off_goal / goal, off / size, strained, best.unique_f))
    return result


def badly_scaled(task: Task) -> bool:
    """Whether rows or boxes of a machine differ by orders of magnitude."""
    own, box = np.diagonal(task.K), task.rows.hi - task.rows.lo
    return _spread(own) > SPREAD_OF_KERNEL or _spread(box) > SPREAD_OF_BOXES


def _spread(sizes: Any) -> float:
    sizes = sizes[sizes > 0.0]
    return float(sizes.max() / sizes.min()) if len(sizes) else 1.0


def exact_difference(
    kind: str, params: dict[str, Any], roster: Roster, task: Task, values: Any
) -> Difference:
    """Of one machine from the truth to hundreds of digits, at its samples, each in its own units.

    The objective is left out: what an outlier adds to it hides the rest.
    """
    at = np.unique(task.sample)
    rows = roster.X[at], roster.y[at], roster.sample_weight[at]
    truth = machine_truth(kind, params, *rows)
    own = 0.5 * values[at] if kind == "svdd" else values[at]
    off, size = truth.off(own), np.maximum(1.0, truth.target)
    allowed = TOL_F * size + truth.rounding(ROUNDINGS)
    strained = float(np.max(off / allowed, initial=0.0))
    return Difference(task.key, 0.0, float(np.max(off / size, initial=0.0)), strained, truth.unique)


def size_of_objective(task: Task, objective: float) -> float:
    """What a difference of objectives is relative to: 0 would be the size where weights are 0."""
    box = float((task.rows.hi - task.rows.lo).max(initial=0.0))
    return max(abs(objective), 1e-3 * box) or 1.0


def best_origin(kind: str, params: dict[str, Any], X: Any) -> Any:
    """Where rows are measured from: their middle, if the kernel is linear and only b takes it up.

    Far from zero the rounding of u alone would blur the oracle's f.
    """
    if params["kernel"] != "linear" or kind not in SHIFT_FREE:
        return np.zeros(X.shape[1])
    return np.round(X.mean(axis=0))


def hangs_on_a_digit(K: Any, rows: batch_qp.Rows, u: Any) -> bool:
    """Whether a row is inside its bounds by so little that rounding may have put it there."""
    if batch_qp.unique_f(K, *rows, u):
        return False
    low, high = batch_qp.at_bounds(rows.lo, rows.hi, u)
    return bool(np.any(~low & ~high))


def rounding_of(kind: str, task: Task, u: Any) -> float:
    """What no method can see: a few roundings of f, for the best placed origin of the kernel.

    It matters where C is huge and binds, as terms of size C k(x, z) then add up to an f near 1; a
    row that is off by it changes the objective by it times C.
    """
    K, t = task.K, task.rows.t
    if not len(u):
        return 0.0
    if kind in SHIFT_FREE:
        K, t = batch_qp.centred(K, t, 0.0)
    return ROUNDINGS * EPS * batch_qp.size_of_f(K, t, u)


# ---------------------------------------------------------------------------------------------
# Two models


def assert_is_optimum(model: Any, roster: Roster, X_other: Any) -> None:
    """The certificate holds, and an independent solver finds the same model on the same rows."""
    certificate = model.certificate()
    assert certificate.ok, str(certificate)
    assert model.ids_.tolist() == roster.ids.tolist(), "ids_ are not the rows learned, in order"
    if isinstance(model, IncrementalPipeline):
        assert_scaled_by(model, roster)
        roster, X_other = _seen_by(model, roster), model.scaler_.transform(X_other)
        model = model.estimator_
    if type(model) not in ESTIMATORS.values():
        if len(getattr(model, "classes_", (0, 1))) > 1:
            verdict = judge(_as_subject(model, roster))
            assert verdict.ok, f"{verdict.fault}: {verdict.off:.1e} off, {verdict.allowed:.1e}"
        return
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
    assert one.certificate().ok and other.certificate().ok
    if isinstance(one, IncrementalPipeline):
        assert_scaled_by(one, roster)
        assert_scaled_by(other, roster)
        roster, X_other = _seen_by(one, roster), one.scaler_.transform(X_other)
        one, other = one.estimator_, other.estimator_
    kind = kind_of(one)
    if type(one) not in ESTIMATORS.values():
        _assert_same_least_squares(one, other, roster, X_other)
        return
    if kind == "svc":
        assert one.classes_.tolist() == other.classes_.tolist()
        if len(one.classes_) < 2:
            return
    X = np.vstack([roster.X, X_other])
    values = values_of(one, X), values_of(other, X)
    weights = _by_roster(one, roster), _by_roster(other, roster)
    params, _, machines = tasks_of(one, roster)
    for task in machines:
        rows = task.rows
        u, u_other = (
            each[task.key][task.sample] if kind == "svc" else by_row(kind, each[task.key])
            for each in weights
        )
        f, f_other = values[0][task.key], values[1][task.key]
        floors = roundings_of(kind, params, task, roster, X, u, f)
        if any(hangs_on_a_digit(task.K, rows, v) for v in (u, u_other)):
            f, f_other = f - f[0], f_other - f_other[0]
        off, known = np.abs(f - f_other), known_to(one) + known_to(other)
        allowed = np.maximum(TOL_F * np.maximum(1.0, np.abs(f)), known) + floors
        worst = int(np.argmax(off / allowed))
        assert off[worst] <= allowed[worst], (
            f"f of {task.key} at row {worst}: {f[worst]!r} and {f_other[worst]!r}, "
            f"{off[worst]:.1e} apart, {allowed[worst]:.1e} allowed"
        )
        if badly_scaled(task):
            continue
        goals = [batch_qp.objective(task.K, rows.t, v) for v in (u, u_other)]
        floor = rounding_of(kind, task, u)
        allowed_goal = floor * float((rows.hi - rows.lo).sum())
        allowed_goal += TOL_OBJECTIVE * size_of_objective(task, goals[0])
        assert abs(goals[0] - goals[1]) <= allowed_goal


def assert_scaled_by(model: Any, roster: Roster) -> None:
    """A pipeline's scaler is that of its rows, to the last bit."""
    afresh = StandardScaler(with_mean=model.scaler_.with_mean)
    afresh.fit(roster.X, sample_weight=roster.sample_weight)
    for name in ("mean_", "scale_"):
        found, expected = getattr(model.scaler_, name), getattr(afresh, name)
        assert np.array_equal(found, expected), f"{name} of the scaler: {found}, not {expected}"


def _seen_by(model: Any, roster: Roster) -> Roster:
    """The rows as the machine of a pipeline sees them."""
    return replace(roster, X=model.scaler_.transform(roster.X))


def _as_subject(model: Any, roster: Roster) -> Subject:
    """A model of least squares and the rows that it should hold."""
    found = wrapped(model, kind_of(model))
    found.roster = roster
    return found


def _assert_same_least_squares(one: Any, other: Any, roster: Roster, X_other: Any) -> None:
    """Two models of least squares differ by no more than each may be off."""
    if kind_of(one) == "svc":
        assert one.classes_.tolist() == other.classes_.tolist()
        if len(one.classes_) < 2:
            return
    X = np.vstack([roster.X, X_other])
    f, f_other = (np.ravel(_as_subject(model, roster).decide(X)) for model in (one, other))
    known = known_to(one) + known_to(other)
    sizes = np.ravel(_terms_of(one, X)), np.ravel(_terms_of(other, X))
    allowed = np.maximum(TOL_F * np.maximum(1.0, np.abs(f)), known)
    allowed = allowed + ROUNDINGS * EPS * np.maximum(*sizes)
    worst = int(np.argmax(np.abs(f - f_other) / allowed))
    assert abs(f[worst] - f_other[worst]) <= allowed[worst], (
        f"f at row {worst}: {f[worst]!r} and {f_other[worst]!r}, {allowed[worst]:.1e} allowed"
    )


def _terms_of(model: Any, X: Any) -> Any:
    """What the rounding of f is relative to, output by output."""
    machine = machine_of(model)
    b = np.abs(np.atleast_1d(machine.intercept_))
    if isinstance(model, ByRows):
        features = np.abs(_as_subject(model, model.held).features(X))
        return features @ np.abs(np.atleast_2d(machine.coef_)).T + b
    own = {name: getattr(model, name) for name in ("kernel", "degree", "coef0")}
    own = own if model.kernel == "linear" else {**own, "gamma": model.gamma_}
    K = np.abs(problems.gram_of(own, X, model.X_ if hasattr(model, "X_") else model._model.X))
    return K @ np.abs(machine.dual_coef_).T + b


def known_to(model: Any) -> float:
    """How far f may be from the optimum's, where the certificate says it."""
    f_error = getattr(model.certificate(), "f_error", None)
    return 0.0 if f_error is None else float(f_error)


def roundings_of(
    kind: str, params: dict[str, Any], task: Task, roster: Roster, X: Any, u: Any, f: Any
) -> Any:
    """A few roundings of f at each of some rows: of its own terms, or for the best placed origin.

    The second is the smaller one where all rows are far from zero, the first where one row is.
    """
    K = np.abs(problems.gram_of(params, X, roster.X[task.sample]))
    size = K @ np.abs(u) + np.abs(f)
    if kind == "svdd":
        size = size + np.array([problems.gram_of(params, x[None], x[None])[0, 0] for x in X])
    return np.minimum(ROUNDINGS * EPS * size, rounding_of(kind, task, u))


def _by_roster(model: Any, roster: Roster) -> dict[Any, Any]:
    """`weights_of`, in the order of the roster."""
    place = {identity: row for row, identity in enumerate(model.ids_.tolist())}
    order = [place[identity] for identity in roster.ids.tolist()]
    return {key: u[order] for key, u in weights_of(model).items()}


_LEARNED = ("dual_coef_", "coef_", "intercept_", "support_", "n_support_", "classes_", "mean_",
            "scale_")  # fmt: skip


def _owners(model: Any) -> list[Any]:
    """What has learned something: the scaler and the machine of a pipeline, or the model."""
    return [getattr(model, name) for name in ("scaler_", "estimator_") if hasattr(model, name)] or [
        machine_of(model)
    ]


def exact_state(model: Any, X: Any, afresh: bool = False) -> Any:
    """All that a user can see of a model, to the last bit; None if it has learned nothing.

    `afresh` leaves out the figures of the report's certificate: a model read from a file is judged
    anew, and by rounding another of its rows may come out worst.
    """
    if not hasattr(model, "ids_"):
        return None
    report = model.last_update_
    if afresh:
        figures = {"residual": 0.0, "tol": 0.0, "gap": 0.0, "gap_tol": 0.0, "rounding": 0.0}
        figures |= {"n_bounded": 0, "moved": 0.0}
        judged = replace(report.certificate, **figures, balance=0.0, worst=None, f_error=math.nan)
        report = replace(report, certificate=judged)
    seen = [model.predict(X)]
    seen += [model.decision_function(X)] if hasattr(model, "decision_function") else []
    for name in _LEARNED:
        seen += [np.asarray(getattr(owner, name)) for owner in _owners(model)
                 if hasattr(owner, name)]  # fmt: skip
    return (
        [(part.dtype.str, part.shape, part.tolist()) for part in seen],
        model.ids_.tolist(),
        str(report),
        str(sorted(model.get_params().items())),
        model.certificate().ok,
    )
