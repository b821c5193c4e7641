# SPDX-License-Identifier: BSD-3-Clause
"""Everything that can happen to a model: rows come, go, do both at once, and are corrected.

``oracles.operations`` has the rows that come and go; a ``Correct`` is any revision: of labels,
weights, features, or several of these in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oracles.operations import Add, Remove, Revise, Rng, Roster, Update
from oracles.problems import Problem, Sample


@dataclass(frozen=True)
class Correct:
    """``revise(ids, X=X, y=y, sample_weight=sample_weight)``; None leaves a thing as it is."""

    ids: Any
    X: Any = None
    y: Any = None
    sample_weight: Any = None


@dataclass(frozen=True)
class Tune:
    """``retune(**params)``."""

    params: dict[str, Any]


Step = Add | Remove | Revise | Update | Correct | Tune


def apply(model: Any, step: Step) -> None:
    """Carry a step out on a model, by its own verbs."""
    if isinstance(step, Add):
        model.partial_fit(step.X, step.y, ids=step.ids, sample_weight=step.sample_weight)
    elif isinstance(step, Remove):
        model.forget(step.ids)
    elif isinstance(step, Revise):
        model.revise(step.ids, y=step.y)
    elif isinstance(step, Update):
        model.update(
            step.X, step.y, ids=step.ids, sample_weight=step.sample_weight, remove=step.remove
        )
    elif isinstance(step, Tune):
        assert model.retune(**step.params) == model.last_update_
    else:
        model.revise(step.ids, X=step.X, y=step.y, sample_weight=step.sample_weight)


def write_down(roster: Roster, step: Step) -> None:
    """Carry a step out on plain arrays, which know nothing of parameters."""
    if isinstance(step, Tune):
        return
    if not isinstance(step, Correct):
        roster.apply(step)
        return
    place = {int(i): row for row, i in enumerate(roster.ids)}
    rows = [place[int(i)] for i in step.ids]
    for name in ("X", "y", "sample_weight"):
        value = getattr(step, name)
        if value is not None:
            kept = getattr(roster, name).copy()
            kept[rows] = value
            setattr(roster, name, kept)


SUPERVISED = ("svc", "svr")
_SHAPES: dict[str, dict[str, list[Any]]] = {
    "svc": {"C": [1e-3, 0.1, 1.0, 10.0, 1e3], "class_weight": [None, {1: 3.0, -1: 0.5}]},
    "svr": {"C": [1e-3, 0.1, 1.0, 10.0, 1e3], "epsilon": [0.0, 0.1, 0.25, 0.5, 50.0]},
    "one_class": {"nu": [1e-3, 0.1, 0.3, 0.5, 1.0]},
    "svdd": {"C": [1e-3, 1 / 30, 0.1, 0.5, 1.0, 1e3]},
}
_RHO = [1e-3, 0.1, 1.0, 10.0, 1e3]
#: Estimators of least squares, and whether they have a kernel.
_LEAST_SQUARES = {"LSSVC": False, "LSSVR": False, "KernelLSSVC": True, "KernelLSSVR": True}
_KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
]


def random_tuning(problem: Problem, rng: Rng) -> Tune:
    """Mostly what moves boxes, targets and sums; now and then another kernel and back."""
    kernel = {
        k: v for k, v in problem.params.items() if k in ("kernel", "gamma", "degree", "coef0")
    }
    if problem.estimator in _LEAST_SQUARES:
        by_kernel = _LEAST_SQUARES[problem.estimator] and rng.random() < 0.3
        return Tune(kernel if by_kernel else {"rho": float(rng.choice(_RHO))})
    chance = rng.random()
    if chance < 0.1:
        far = float(np.abs(problem.X).max()) > 100.0  # where no digits of a power would be left
        return Tune(_KERNELS[rng.integers(len(_KERNELS) - far)])
    if chance < 0.3:
        return Tune(kernel)
    shapes = _SHAPES[problem.kind]
    names = list(shapes) if rng.random() < 0.3 else [str(rng.choice(list(shapes)))]
    if rng.random() < 0.3:
        return Tune({name: problem.params.get(name) for name in names})
    return Tune({name: shapes[name][rng.integers(len(shapes[name]))] for name in names})


FEW = 16


def random_weights(rng: Rng, count: int, n: int) -> Any:
    """Thirds, halves and small numbers, a few of them zero where n samples are many.

    Of few all might get 0, and then a pipeline has nothing to scale by, and says so.
    """
    least = 0.0 if n > FEW else 0.25
    return rng.choice([least, 1 / 3, 0.5, 1.0, 2.0, 3.0], size=count)


def random_step(
    problem: Problem,
    roster: Roster,
    rng: Rng,
    *,
    largest: int = 8,
    fewest: int = 2,
    most: int = 90,
    tune: bool = False,
) -> Step:
    """One step on a model that holds what the roster says; `fewest` rows always stay.

    With `tune` one step in six changes parameters.
    """
    n = len(roster.ids)
    if tune and rng.random() < 1 / 6:
        return random_tuning(problem, rng)
    count = 1 if rng.random() < 0.5 else int(rng.integers(2, largest + 1))
    going = min(count, n - fewest)
    verbs = ["labels", "weights", "features", "several"]
    verbs += ["add"] * 2 if n + count <= most else []
    verbs += ["remove"] * 3 if going > 0 else []
    verbs += ["update"] * 2 if going > 0 else []
    verb = str(rng.choice(verbs))
    if verb == "remove":
        return Remove(rng.choice(roster.ids, size=going, replace=False))
    if verb in ("add", "update"):
        coming = going if verb == "update" else count
        fresh = problem.draw(rng, coming)
        ids = np.arange(roster.next_id, roster.next_id + coming, dtype=np.int64)
        if verb == "add":
            return Add(fresh.X, fresh.y, ids, fresh.sample_weight)
        gone = rng.choice(roster.ids, size=going, replace=False)
        return Update(fresh.X, fresh.y, ids, fresh.sample_weight, gone)
    ids = rng.choice(roster.ids, size=min(count, n), replace=False)
    labels = rng.choice(np.unique(problem.y), size=len(ids))
    features = problem.draw(rng, len(ids)).X
    if verb == "labels" and problem.kind in SUPERVISED:
        return Revise(ids, labels)
    if verb in ("weights", "labels"):
        return Correct(ids, sample_weight=random_weights(rng, len(ids), n))
    if verb == "features":
        return Correct(ids, X=features)
    return Correct(ids, X=features, y=labels, sample_weight=random_weights(rng, len(ids), n))


def random_steps(
    problem: Problem, rng: Rng, steps: int, **limits: Any
) -> Iterator[tuple[Step, Roster]]:
    """A stream of steps, each with the roster as it is after that step."""
    roster = Roster.of(problem)
    for _ in range(steps):
        step = random_step(problem, roster, rng, **limits)
        write_down(roster, step)
        yield step, roster


def with_third_class(problem: Problem) -> Problem:
    """The same rows under labels 0, 1, 2: about a third of them get the third label."""

    def relabel(rng: Rng, y: Any) -> Any:
        return np.where(rng.random(len(y)) < 1 / 3, 2, (y + 1) // 2)

    def draw(rng: Rng, count: int) -> Sample:
        fresh = problem.draw(rng, count)
        return replace(fresh, y=relabel(rng, fresh.y))

    y = relabel(np.random.default_rng(0), problem.y)
    y[:3] = [0, 1, 2]
    return replace(problem, y=y, draw=draw)
