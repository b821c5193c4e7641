# SPDX-License-Identifier: BSD-3-Clause
"""The laws where one value is large: each a named function with one sentence, for all nine.

A law takes the name of an estimator, a problem of its kind and a source of chance; it fails by
AssertionError. A change may be refused where the problem is beyond what must be solved
(`may_refuse`); it then raises an error of the library's own and leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from adiabat import AdiabatError

from laws.subjects import Subject, judge, kind_of, subject_of
from oracles.batch_qp import EPS
from oracles.operations import Rng, Roster
from oracles.problems import Problem, gram_of

# Below a cell of this size, and below this C in units of the typical k(x, x), nothing is refused.
MODEST_CELL, MODEST_C = 1e6, 1e4
ROUNDINGS = 64.0

HostileLaw = Callable[[str, Problem, Rng], None]


def may_refuse(problem: Problem) -> bool:
    """Whether a problem is beyond what must be solved."""
    if float(np.abs(problem.X).max()) >= MODEST_CELL:
        return True
    typical = float(np.median([gram_of(problem.params, x[None], x[None])[0, 0] for x in problem.X]))
    return problem.params.get("C", 1.0) * typical >= MODEST_C


def attempted(model: Subject, verb: Callable[[], Any], problem: Problem) -> bool:
    """Carry out a verb; False if it was refused as it may be, the model being as it was."""
    before = None if model.roster is None else model.state()
    try:
        verb()
    except AdiabatError as error:
        assert may_refuse(problem), f"refused: {error}"
        assert str(error), "refused without a word"
        assert before is None or model.state() == before, f"changed by an error: {error}"
        return False
    return True


def fitted(name: str, problem: Problem, rows: Roster | None = None) -> Subject | None:
    """A model of the rows, or of the problem's own; None if it was refused."""
    model = subject_of(name, problem)
    held = Roster.of(problem) if rows is None else rows
    return model if attempted(model, lambda: _begin(model, held), problem) else None


def _begin(model: Subject, rows: Roster) -> Any:
    """`fit`; a sphere of too little weight for its C is begun with `partial_fit`."""
    few = model.kind == "svdd" and model.model.get_params()["C"] * rows.sample_weight.sum() < 1.0
    return model.learn(rows) if few else model.fit(rows)


def known_to(model: Subject) -> float:
    """How far f of a model may be off."""
    return float(model.certificate().f_error)


def assert_same_decisions(one: Subject, other: Subject, X: Any, why: str) -> None:
    """Two models of the same rows differ by no more than each may be off."""
    a, b = one.decide(X), other.decide(X)
    size = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    allowed = (known_to(one) + known_to(other)) * np.ones(len(a)) + ROUNDINGS * EPS * size
    allowed = allowed + ROUNDINGS * EPS * one.roundings(X)
    worst = int(np.argmax(np.abs(a - b) / allowed))
    assert np.abs(a - b)[worst] <= allowed[worst], (
        f"{why}: decisions of row {worst} are {a[worst]!r} and {b[worst]!r}, "
        f"{abs(a[worst] - b[worst]):.1e} apart, {allowed[worst]:.1e} allowed"
    )
    labels = one.model.predict(X), other.model.predict(X)
    clear = np.abs(a) > allowed
    if one.kind != "svr":
        np.testing.assert_array_equal(labels[0][clear], labels[1][clear], err_msg=why)


def life(model: Subject, problem: Problem, rng: Rng) -> Any:
    """Verbs one after the other: learn, correct, forget, both at once; yields what was done."""
    rows = Roster.of(problem)
    yield "fit", attempted(model, lambda: _begin(model, rows), problem)
    if model.roster is None:
        return
    fresh = _fresh(model, problem, rng, 3)
    yield "partial_fit", attempted(model, lambda: model.learn(fresh), problem)
    some = rng.choice(model.held_rows.ids, 2, replace=False)
    labels = rng.permutation(problem.y)[:2]
    yield "revise", attempted(model, lambda: model.revise(some, labels), problem)
    large = largest(model.held_rows)
    yield "forget", attempted(model, lambda: model.forget([large]), problem)
    fresh, going = _fresh(model, problem, rng, 2), largest(model.held_rows)
    yield "update", attempted(model, lambda: model.update(fresh, [going]), problem)


def largest(rows: Roster) -> int:
    """The id of the row with the largest cell."""
    return int(rows.ids[np.argmax(np.abs(rows.X).max(axis=1))])


def _fresh(model: Subject, problem: Problem, rng: Rng, count: int) -> Roster:
    drawn = problem.draw(rng, count)
    ids = model.held_rows.next_id + np.arange(count)
    return Roster(drawn.X, drawn.y, drawn.sample_weight, ids)


# ---------------------------------------------------------------------------------------------
# The laws


def the_update_and_the_certificate_agree(name: str, problem: Problem, rng: Rng) -> None:
    """What the report of an update says of the model, certificate() says, too."""
    model = subject_of(name, problem)
    for step, done in life(model, problem, rng):
        if done:
            reported, afresh = model.reported, model.certificate()
            assert reported.ok == afresh.ok, f"after {step}: {reported}; afresh: {afresh}"
            assert reported.n_samples == afresh.n_samples == len(model.held_rows.ids)
            assert reported.n_support == afresh.n_support


def no_model_exists_whose_certificate_is_not_ok(name: str, problem: Problem, rng: Rng) -> None:
    """After every change, carried out or refused, the model's own certificate() is ok."""
    model = subject_of(name, problem)
    for step, _ in life(model, problem, rng):
        if model.roster is not None:
            certificate = model.certificate()
            assert certificate.ok, f"after {step}: {certificate}"


def f_is_off_by_no_more_than_f_error(name: str, problem: Problem, rng: Rng) -> None:
    """At every row of the model f is within f_error of the optimum's, to hundreds of digits."""
    model = subject_of(name, problem)
    for step, done in life(model, problem, rng):
        if done:
            verdict = judge(model)
            assert verdict.ok, (
                f"after {step}: {verdict.fault}: {verdict.off:.1e} off, "
                f"{verdict.allowed:.1e} allowed; {verdict.detail}"
            )


def an_outlier_learned_and_forgotten_leaves_no_trace(name: str, problem: Problem, rng: Rng) -> None:
    """A model that forgets its largest row is the model that never saw it, however it was learned:
    first, last, or with all others."""
    rows = Roster.of(problem)
    place = int(np.argmax(np.abs(rows.X).max(axis=1)))
    others = np.delete(np.arange(len(rows.ids)), place)
    clean = replace(
        problem, X=rows.X[others], y=rows.y[others], sample_weight=rows.sample_weight[others]
    )
    never = fitted(name, clean, _part(rows, others))
    assert never is not None, "without the outlier it was refused"
    together = subject_of(name, problem)
    later = subject_of(name, problem)
    ways: dict[str, tuple[Subject, list[Callable[[], Any]]]] = {
        "fitted with all others": (together, [lambda: _begin(together, rows)]),
        "learned last": (
            later,
            [
                lambda: _begin(later, _part(rows, others)),
                lambda: later.learn(_part(rows, np.array([place]))),
            ],
        ),
    }
    for way, (model, verbs) in ways.items():
        learned = [attempted(model, verb, problem) for verb in verbs]
        if all(learned) and attempted(model, lambda m=model: m.forget([place]), problem):
            assert_same_decisions(never, model, rows.X[others], f"{way}, then forgotten")


def row_order_does_not_change_labels(name: str, problem: Problem, rng: Rng) -> None:
    """The same rows in another order give the same decisions, and hence the same labels."""
    rows = Roster.of(problem)
    one = fitted(name, problem, rows)
    for _ in range(3):
        other = fitted(name, problem, _part(rows, rng.permutation(len(rows.ids))))
        assert (one is None) == (other is None), "whether it is refused depends on the order"
        if one is not None and other is not None:
            assert_same_decisions(one, other, rows.X, "rows in another order")


def rescaling_changes_nothing_but_units(name: str, problem: Problem, rng: Rng) -> None:
    """Features in other units, with C and gamma in theirs, give the same labels, and the same
    decisions in their units."""
    factor = 2.0 ** int(rng.choice([-27, -13, 11, 27]))
    scaled, unit = rescaled(problem, factor, kind_of(name))
    if name == "IncrementalPipeline":  # which scales by itself
        scaled, unit = replace(problem, X=factor * problem.X), 1.0
    if name in ("LSSVC", "LSSVR") and problem.params["kernel"] != "linear":
        return  # the landmarks of its map have a unit of their own
    one, other = fitted(name, problem), fitted(name, scaled)
    assert (one is None) == (other is None), "whether it is refused depends on the units"
    if one is None or other is None:
        return
    a, b = one.decide(problem.X), other.decide(scaled.X) / unit
    allowed = known_to(one) + known_to(other) / unit + ROUNDINGS * EPS * np.maximum(1.0, np.abs(a))
    allowed = allowed + ROUNDINGS * EPS * one.roundings(problem.X)
    worst = int(np.argmax(np.abs(a - b) / allowed))
    assert abs(a[worst] - b[worst]) <= allowed[worst], (
        f"features x {factor:g}: decisions of row {worst} are {a[worst]!r} and {b[worst]!r}"
    )


def rescaled(problem: Problem, factor: float, kind: str) -> tuple[Problem, float]:
    """(the problem with features times a factor, the factor that f has then)."""
    params = dict(problem.params)
    kernel, unit = params["kernel"], 1.0
    power = {"rbf": 2, "laplacian": 1, "chi2": 1, "poly": 2}.get(kernel, 0)
    if power:
        params["gamma"] = params["gamma"] / factor**power
    elif "C" in params and kind in ("svc", "svr"):
        params["C"] = params["C"] / factor**2
    if kernel == "linear" and kind in ("one_class", "svdd"):
        unit = factor**2
    return replace(problem, X=factor * problem.X, params=params), unit


def _part(rows: Roster, which: Any) -> Roster:
    return Roster(rows.X[which], rows.y[which], rows.sample_weight[which], rows.ids[which])


HOSTILE_LAWS: tuple[HostileLaw, ...] = (
    the_update_and_the_certificate_agree,
    no_model_exists_whose_certificate_is_not_ok,
    f_is_off_by_no_more_than_f_error,
    an_outlier_learned_and_forgotten_leaves_no_trace,
    row_order_does_not_change_labels,
    rescaling_changes_nothing_but_units,
)
