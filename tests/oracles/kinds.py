# SPDX-License-Identifier: BSD-3-Clause
"""The degenerate families for every kind of machine, and those that only one kind has.

A family of classifiers becomes one of regression by targets on a grid of halves around its labels,
so that ties stay ties and equal rows contradict each other; one of novelty detection by leaving
the labels out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .operations import Rng
from .problems import FAMILIES, HOSTILE, Family, Problem, Sample

KINDS = ("svc", "svr", "one_class", "svdd")

_OWN: dict[str, dict[str, Any]] = {
    "svr": {"epsilon": 0.1},
    "one_class": {"nu": 0.3},
    "svdd": {"C": 0.1},
}
#: What is tried on every family, besides its own parameters.
VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "svr": (
        {"epsilon": 0.0}, {"epsilon": 0.5}, {"epsilon": 100.0},
        {"C": 1e-3}, {"C": 1e3}, {"C": 1e6, "epsilon": 0.0}, {"C": 1e-3, "epsilon": 0.0},
    ),
    "one_class": ({"nu": 1.0}, {"nu": 0.5}, {"nu": 0.1}, {"nu": 1e-3}, {"nu": 1e-6}),
    "svdd": (
        {"C": 1e-3}, {"C": 1 / 40}, {"C": 0.02}, {"C": 0.5}, {"C": 1.0}, {"C": 1e6},
    ),
}  # fmt: skip


def _targets(rng: Rng, y: Any) -> Any:
    return y + 0.5 * rng.integers(-2, 3, len(y))


def as_kind(problem: Problem, kind: str, rng: Rng, **changes: Any) -> Problem:
    """The same rows for another kind of machine, some parameters changed."""
    kernel = {name: value for name, value in problem.params.items() if name != "C"}
    C = {"C": problem.params["C"]} if kind in ("svc", "svr") else {}
    params = {**kernel, **C, **_OWN.get(kind, {}), **changes}

    def convert(rng: Rng, y: Any) -> Any:
        if kind == "svr":
            return _targets(rng, y)
        return y if kind == "svc" else np.zeros(len(y))

    def draw(rng: Rng, count: int) -> Sample:
        fresh = problem.draw(rng, count)
        return replace(fresh, y=convert(rng, fresh.y))

    return replace(problem, kind=kind, params=params, draw=draw, y=convert(rng, problem.y))


def _with_targets(problem: Problem, targets: Any, **params: Any) -> Problem:
    """A regression problem whose targets are a function of the rows."""

    def draw(rng: Rng, count: int) -> Sample:
        fresh = problem.draw(rng, count)
        return replace(fresh, y=targets(rng, fresh.X))

    return replace(
        problem,
        y=targets(np.random.default_rng(0), problem.X),
        draw=draw,
        params={**problem.params, **params},
    )


def _first(problem: Problem, n: int) -> Problem:
    """The same problem with its first n rows."""
    weight = np.maximum(problem.sample_weight[:n], 1.0)
    return replace(problem, X=problem.X[:n], y=problem.y[:n], sample_weight=weight)


def _regression(name: str, targets: Any, **params: Any) -> Family:
    return lambda rng: _with_targets(as_kind(FAMILIES[name](rng), "svr", rng), targets, **params)


def _few(name: str, kind: str, n: int, **params: Any) -> Family:
    return lambda rng: _first(as_kind(FAMILIES[name](rng), kind, rng, **params), n)


def _smooth(rng: Rng, X: Any) -> Any:
    return np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(len(X))


def _equal(rng: Rng, X: Any) -> Any:
    return np.full(len(X), 2.5)


def _plane(rng: Rng, X: Any) -> Any:
    return X[:, 0] - 0.5 * X[:, -1]


_SVR: dict[str, Family] = {
    "smooth": _regression("zero_weights", _smooth),
    "smooth, no tube": _regression("zero_weights", _smooth, epsilon=0.0, C=10.0),
    "equal targets": _regression("duplicates", _equal),
    "equal targets, no tube": _regression("integer_features", _equal, epsilon=0.0),
    "on a plane, no tube": _regression("integer_features", _plane, epsilon=0.0),
    "tube wider than the targets": _regression("grid_ties", _smooth, epsilon=3.0),
    "one row": _few("integer_features", "svr", 1, epsilon=0.0),
    "two rows": _few("duplicates", "svr", 2),
}
_ONE_CLASS: dict[str, Family] = {
    f"{n} rows, nu={nu:g}": _few("grid_ties", "one_class", n, nu=nu)
    for n, nu in ((1, 0.5), (2, 0.5), (3, 1 / 3), (3, 1.0))
}
_SVDD: dict[str, Family] = {
    f"{n} rows, C={C:g}": _few("grid_ties", "svdd", n, C=C)
    for n, C in ((1, 0.1), (1, 1.0), (2, 0.5), (2, 1.0), (3, 1 / 3), (3, 10.0))
}
_SPECIAL = {"svc": {}, "svr": _SVR, "one_class": _ONE_CLASS, "svdd": _SVDD}


def _of_kind(family: Family, kind: str, **changes: Any) -> Family:
    return lambda rng: as_kind(family(rng), kind, rng, **changes)


def _outlying_target(rng: Rng) -> Problem:
    """Smooth targets of 1, and one in ten of up to 1e6."""

    def targets(g: Rng, X: Any) -> Any:
        far = g.choice([0.0] * 9 + [1e6], len(X)) * g.standard_normal(len(X))
        return np.round(_smooth(g, X) + far, 6)

    problem = as_kind(FAMILIES["zero_weights"](rng), "svr", rng)
    problem = replace(_first(problem, 24), sample_weight=np.ones(24))
    problem = _with_targets(problem, targets)
    y = problem.y.copy()
    y[11] = 1e6
    return replace(problem, y=y)


def hostile(kind: str) -> dict[str, Family]:
    """The families in which one value is large."""
    if kind == "svc":
        return HOSTILE
    own = {"outlying_target": _outlying_target} if kind == "svr" else {}
    return {**{name: _of_kind(family, kind) for name, family in HOSTILE.items()}, **own}


def families(kind: str) -> dict[str, Family]:
    """The families by name: those of classifiers, and the kind's own."""
    if kind == "svc":
        return FAMILIES
    common = {name: _of_kind(family, kind) for name, family in FAMILIES.items()}
    return {**common, **_SPECIAL[kind]}


def variants(kind: str) -> dict[str, Family]:
    """Every family under every set of parameters in `VARIANTS`."""
    return {
        f"{name}-{','.join(f'{key}={value:g}' for key, value in changes.items())}": _of_kind(
            family, kind, **changes
        )
        for name, family in FAMILIES.items()
        for changes in VARIANTS[kind]
    }
