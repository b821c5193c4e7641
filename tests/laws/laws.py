# SPDX-License-Identifier: BSD-3-Clause
"""The laws: each a named function with one sentence, which holds on any problem by any solver.

A law takes a problem, the name of a solver and a source of chance; it fails by AssertionError.
"""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adiabat
from adiabat import IdError

from laws.adapters import (
    ByRows,
    machine_of,
    of_problem,
    parameters_of,
    under_the_verbs,
    unlearned,
)
from laws.compare import assert_is_optimum, assert_same, assert_same_on, exact_state, kind_of
from laws.streams import SUPERVISED, Correct, apply, random_steps, random_tuning, write_down
from oracles.operations import Rng, Roster, Update
from oracles.problems import Problem

STEPS = 12
Law = Callable[..., None]  # (problem, solver, rng)


def unfitted(problem: Problem, solver: str) -> Any:
    """An estimator of the problem's kind with its parameters."""
    return of_problem(problem, solver)


def fitted(problem: Problem, solver: str, roster: Roster | None = None) -> Any:
    """A model of the rows in the roster, or of the problem's own."""
    return fit_on(unfitted(problem, solver), Roster.of(problem) if roster is None else roster)


def fit_on(model: Any, held: Roster) -> Any:
    """Learn the rows in the roster from scratch; a sphere of few samples is begun, not fitted."""
    few = kind_of(model) == "svdd" and parameters_of(model)["C"] * held.sample_weight.sum() < 1.0
    learn = model.partial_fit if few else model.fit
    return learn(held.X, held.y, sample_weight=held.sample_weight, ids=held.ids)


# ---------------------------------------------------------------------------------------------
# Exactness


def the_optimum_is_that_of_an_independent_solver(problem: Problem, solver: str, rng: Rng) -> None:
    """After a fit and after every few updates a general QP solver finds the same model."""
    model = fitted(problem, solver)
    assert_is_optimum(model, Roster.of(problem), problem.draw(rng, 5).X)
    for number, (step, roster) in enumerate(random_steps(problem, rng, STEPS)):
        apply(model, step)
        if number % 4 == 3:
            assert_is_optimum(model, roster, problem.draw(rng, 5).X)


def an_update_equals_a_refit(problem: Problem, solver: str, rng: Rng, **limits: Any) -> None:
    """After any updates the model is the one that a fit on the rows it then holds would give."""
    model = fitted(problem, solver)
    for step, after in random_steps(problem, rng, STEPS, **limits):
        apply(model, step)
        roster = after
    if roster.sample_weight.any():
        afresh = fit_on(unlearned(model), roster)
        assert_same(model, afresh, roster, problem.draw(rng, 5).X)


def a_retuned_model_equals_a_refit(problem: Problem, solver: str, rng: Rng) -> None:
    """Parameters may change between updates: the model is the one that a fit with the last of
    them would give."""
    model = fitted(problem, solver)
    for number in range(6):
        tuning = random_tuning(problem, rng)
        report = model.retune(**tuning.params)
        assert report.certificate.ok and report == model.last_update_
        assert (report.n_added, report.n_removed, report.n_revised) == (0, 0, 0)
        assert parameters_of(model).items() >= tuning.params.items()
        if number % 3 == 2:
            afresh = fit_on(unlearned(model), Roster.of(problem))
            assert_same(model, afresh, Roster.of(problem), problem.draw(rng, 5).X)
    an_update_equals_a_refit(problem, solver, rng, tune=True)


def adding_then_forgetting_restores(problem: Problem, solver: str, rng: Rng) -> None:
    """Rows learned and then forgotten, together or one by one, leave no trace in the model."""
    roster = Roster.of(problem)
    model, untouched = fitted(problem, solver), fitted(problem, solver)
    fresh = problem.draw(rng, 5)
    ids = np.arange(roster.next_id, roster.next_id + 5)
    model.partial_fit(fresh.X, fresh.y, ids=ids, sample_weight=fresh.sample_weight)
    model.forget(ids[:3])
    for one in rng.permutation(ids[3:]):
        model.forget(one)
    assert model.ids_.tolist() == untouched.ids_.tolist()
    assert_same(model, untouched, roster, fresh.X)


def forgetting_then_adding_restores(problem: Problem, solver: str, rng: Rng) -> None:
    """Rows forgotten and then learned again under their ids give the model back."""
    roster = Roster.of(problem)
    model = fitted(problem, solver)
    gone = rng.choice(len(roster.ids), size=max(1, len(roster.ids) // 3), replace=False)
    model.forget(roster.ids[gone])
    model.partial_fit(
        roster.X[gone],
        roster.y[gone],
        ids=roster.ids[gone],
        sample_weight=roster.sample_weight[gone],
    )
    assert_same(model, fitted(problem, solver), roster, problem.draw(rng, 5).X)


def order_and_batching_do_not_matter(problem: Problem, solver: str, rng: Rng) -> None:
    """One batch, or single rows in any order, lead to one model."""
    roster = Roster.of(problem)
    whole = fitted(problem, solver)
    order = rng.permutation(len(roster.ids))
    order = np.concatenate([order[roster.sample_weight[order] > 0][:1], order])
    _, first = np.unique(order, return_index=True)
    order = order[np.sort(first)]  # starts with a row of positive weight
    single = unfitted(problem, solver)
    cuts = [cut for cut in (1, 2, 3, 4, 5, 9) if cut < len(order)] + [len(order)]
    for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
        part = order[start:stop]
        single.partial_fit(
            roster.X[part],
            roster.y[part],
            ids=roster.ids[part],
            sample_weight=roster.sample_weight[part],
        )
    assert_same(whole, single, roster, problem.draw(rng, 5).X)


def one_step_equals_two(problem: Problem, solver: str, rng: Rng) -> None:
    """Learning and forgetting in one step gives the model of the two steps."""
    roster = Roster.of(problem)
    fresh = problem.draw(rng, 4)
    new = roster.next_id + np.arange(4)
    gone = rng.choice(roster.ids, size=min(4, len(roster.ids) - 1), replace=False)
    together, apart = fitted(problem, solver), fitted(problem, solver)
    together.update(fresh.X, fresh.y, ids=new, sample_weight=fresh.sample_weight, remove=gone)
    apart.forget(gone)
    apart.partial_fit(fresh.X, fresh.y, ids=new, sample_weight=fresh.sample_weight)
    write_down(roster, Update(fresh.X, fresh.y, new, fresh.sample_weight, gone))
    assert_same(together, apart, roster, fresh.X)


def a_revision_is_a_replacement(problem: Problem, solver: str, rng: Rng) -> None:
    """Revising rows gives the model in which they were forgotten and learned anew, and their
    places stay."""
    roster = Roster.of(problem)
    fresh = problem.draw(rng, min(4, len(roster.ids)))
    ids = rng.choice(roster.ids, size=len(fresh.y), replace=False)
    revised, replaced = fitted(problem, solver), fitted(problem, solver)
    revised.revise(ids, X=fresh.X, y=fresh.y, sample_weight=fresh.sample_weight)
    replaced.forget(ids)
    replaced.partial_fit(fresh.X, fresh.y, ids=ids, sample_weight=fresh.sample_weight)
    write_down(roster, Correct(ids, fresh.X, fresh.y, fresh.sample_weight))
    assert revised.ids_.tolist() == roster.ids.tolist()
    assert_same(revised, replaced, roster, fresh.X)


def path_and_exchange_agree(problem: Problem, solver: str, rng: Rng) -> None:
    """Whichever solver follows the same updates, the model is the same after each of them."""
    del solver
    one, other = fitted(problem, "path"), fitted(problem, "exchange")
    for number, (step, roster) in enumerate(random_steps(problem, rng, STEPS)):
        apply(one, step)
        apply(other, step)
        if number % 3 == 0:
            assert_same(one, other, roster, problem.draw(rng, 5).X)


def a_whole_weight_is_a_repetition(problem: Problem, solver: str, rng: Rng) -> None:
    """A row of weight k stands for k rows of weight one."""
    count = rng.integers(1, 4, len(problem.y))
    weighted = replace(problem, sample_weight=count.astype(np.float64))
    repeated = np.repeat(np.arange(len(problem.y)), count)
    one = fitted(weighted, solver)
    X, y = problem.X[repeated], problem.y[repeated]
    held = Roster(X, y, np.ones(len(y)), np.arange(len(y)))
    other = fitted(problem, solver, held)
    assert_is_optimum(other, held, problem.draw(rng, 5).X)
    assert_is_optimum(one, Roster.of(weighted), problem.draw(rng, 5).X)


def a_weight_of_zero_is_absence(problem: Problem, solver: str, rng: Rng) -> None:
    """A row without weight is held, and has no part in the model."""
    roster = Roster.of(problem)
    fresh = problem.draw(rng, 6)
    ids = np.arange(roster.next_id, roster.next_id + 6)
    known = np.isin(fresh.y, problem.y) | (problem.kind != "svc")
    X, y, ids = fresh.X[known], fresh.y[known], ids[known]
    model, without = fitted(problem, solver), fitted(problem, solver)
    model.partial_fit(X, y, ids=ids, sample_weight=np.zeros(len(y)))
    if hasattr(machine_of(model), "support_"):
        assert not np.isin(model.ids_[machine_of(model).support_], ids).any()
    assert len(model.ids_) == len(without.ids_) + len(ids)
    assert_same_on(model, without, roster, fresh.X)
    model.revise(ids, sample_weight=np.ones(len(ids)))
    model.revise(ids, sample_weight=np.zeros(len(ids)))
    assert_same_on(model, without, roster, fresh.X)


# ---------------------------------------------------------------------------------------------
# Safety


def the_certificate_holds_after_every_update(problem: Problem, solver: str, rng: Rng) -> None:
    """Every report says that the optimum was reached, and so does a judge who starts afresh."""
    model = fitted(problem, solver)
    for step, roster in random_steps(problem, rng, STEPS):
        apply(model, step)
        reported, afresh = model.last_update_.certificate, model.certificate()
        assert reported.ok, str(reported)
        assert afresh.ok and afresh.residual <= afresh.tol, str(afresh)
        assert afresh.n_samples == len(roster.ids)
        if hasattr(machine_of(model), "support_"):
            assert afresh.gap <= afresh.gap_tol, str(afresh)
            assert afresh.n_support == len(machine_of(model).support_)


def a_failed_update_changes_nothing(problem: Problem, solver: str, rng: Rng) -> None:
    """An update that is refused, however late, leaves the model as it was to the last bit."""
    model = fitted(problem, solver)
    fresh = problem.draw(rng, 2)
    probe = np.vstack([problem.X, fresh.X])
    before = exact_state(model, probe)
    unknown = [10**6, 10**6 + 1]
    broken = np.array([[np.nan] * problem.X.shape[1]] * 2)
    refused: list[tuple[type[Exception], Callable[[], Any]]] = [
        (ValueError, lambda: model.update(broken, fresh.y, ids=unknown, remove=[0])),
        (ValueError, lambda: model.revise([0], X=broken[:1])),
        (ValueError, lambda: model.retune(tol=-1.0)),
        (ValueError, lambda: model.retune(gamma=2.0, solver="none")),
        (ValueError, lambda: model.retune(depth=3)),
    ]
    if not isinstance(model, ByRows):  # which knows no ids
        refused += [
            (IdError, lambda: model.forget([0, *unknown])),
            (IdError, lambda: model.update(fresh.X, fresh.y, ids=unknown, remove=unknown)),
            (IdError, lambda: model.update(fresh.X, fresh.y, ids=[0, unknown[0]], remove=[1])),
            (IdError, lambda: model.revise([0, unknown[0]], y=fresh.y)),
        ]
    if problem.kind in SUPERVISED:
        few = fresh.y[:1]
        refused.append((ValueError, lambda: model.update(fresh.X, few, ids=unknown, remove=[0])))
    for error, attempt in refused:
        with pytest.raises(error):
            attempt()
        assert exact_state(model, probe) == before
    model.update(fresh.X, fresh.y, ids=unknown, remove=[0])
    assert model.certificate().ok


def pickle_save_and_load_continue_identically(problem: Problem, solver: str, rng: Rng) -> None:
    """A model that went through a pickle or a file is the same, and stays so through updates."""
    model = fitted(problem, solver)
    steps = list(random_steps(problem, rng, 8))
    for step, _ in steps[:4]:
        apply(model, step)
    probe = np.vstack([problem.X, problem.draw(rng, 5).X])
    before = [exact_state(model, probe, afresh) for afresh in (True, False)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.adiabat"
        model.save(path)
        loaded = under_the_verbs(adiabat.load(path), model)
    twins = [loaded, pickle.loads(pickle.dumps(model))]
    for twin, afresh, expected in zip(twins, (True, False), before, strict=True):
        assert exact_state(twin, probe, afresh) == expected
        assert str(twin.get_params()) == str(model.get_params())
    for step, _ in steps[4:]:
        for each in (model, *twins):
            apply(each, step)
    roster = steps[-1][1]
    for twin in twins:
        assert twin.ids_.tolist() == model.ids_.tolist()
        assert_same(model, twin, roster, probe)
    assert pickle.dumps(model) == pickle.dumps(model)


def inputs_are_never_mutated(problem: Problem, solver: str, rng: Rng) -> None:
    """Arrays that are passed in may be read-only, and are after any call what they were."""
    roster = Roster.of(problem)
    for part in (roster.X, roster.y, roster.sample_weight, roster.ids):
        part.setflags(write=False)
    copies = [part.copy() for part in (roster.X, roster.y, roster.sample_weight, roster.ids)]
    model = fitted(problem, solver, roster)
    steps = list(random_steps(problem, rng, STEPS))
    for step, _ in steps:
        given = {name.name: getattr(step, name.name) for name in fields(step)}
        held = {name: None if part is None else part.copy() for name, part in given.items()}
        for part in given.values():
            if part is not None:
                part.setflags(write=False)
        apply(model, step)
        for name, part in given.items():
            np.testing.assert_array_equal(part, held[name])
    model.predict(roster.X)
    for part, copy in zip(
        (roster.X, roster.y, roster.sample_weight, roster.ids), copies, strict=True
    ):
        np.testing.assert_array_equal(part, copy)


def what_was_passed_in_is_copied(problem: Problem, solver: str, rng: Rng) -> None:
    """Arrays that the caller overwrites after a call do not reach into the model."""
    roster = Roster.of(problem)
    fresh = problem.draw(rng, 3)
    ids = np.arange(roster.next_id, roster.next_id + 3)
    model = fitted(problem, solver, roster)
    model.partial_fit(fresh.X, fresh.y, ids=ids, sample_weight=fresh.sample_weight)
    probe = problem.X.copy()
    before = exact_state(model, probe)
    for part in (roster.X, roster.y, roster.sample_weight, roster.ids, *vars(fresh).values(), ids):
        part[...] = 7
    assert exact_state(model, probe) == before


def predictions_never_write(problem: Problem, solver: str, rng: Rng) -> None:
    """Asking a model anything leaves it as it was, byte for byte."""
    model = fitted(problem, solver)
    for step, _ in random_steps(problem, rng, 4):
        apply(model, step)
    before = _bytes(model)
    probe = problem.draw(rng, 7).X
    model.predict(probe)
    for verb in ("decision_function", "score_samples", "centre_distance"):
        if hasattr(model, verb):
            getattr(model, verb)(probe)
    if hasattr(model, "score"):
        model.score(probe, model.predict(probe))
    model.certificate()
    for name in ("support_vectors_", "dual_coef_", "coef_", "intercept_"):
        part = getattr(machine_of(model), name, None)
        if isinstance(part, np.ndarray) and part.flags.writeable:
            part += 1.0  # what is handed out is the caller's
    several = len(getattr(model, "classes_", (0, 1))) > 1
    if several and problem.kind != "svdd" and hasattr(model, "to_sklearn"):
        plain = model.to_sklearn()
        plain.predict(probe)
        plain.support_vectors_ += 1.0
        plain.dual_coef_ += 1.0
        plain.intercept_ += 1.0
    assert _bytes(model) == before


def _bytes(model: Any) -> bytes:
    out = io.BytesIO()
    pickle.dump(model, out)
    return out.getvalue()


LAWS: tuple[Law, ...] = (
    the_optimum_is_that_of_an_independent_solver,
    an_update_equals_a_refit,
    a_retuned_model_equals_a_refit,
    adding_then_forgetting_restores,
    forgetting_then_adding_restores,
    order_and_batching_do_not_matter,
    one_step_equals_two,
    a_revision_is_a_replacement,
    path_and_exchange_agree,
    a_whole_weight_is_a_repetition,
    a_weight_of_zero_is_absence,
    the_certificate_holds_after_every_update,
    a_failed_update_changes_nothing,
    pickle_save_and_load_continue_identically,
    inputs_are_never_mutated,
    what_was_passed_in_is_copied,
    predictions_never_write,
)
#: Of these the estimators of least squares have no part: they have one solver.
OF_SOLVERS: tuple[Law, ...] = (path_and_exchange_agree,)
