# SPDX-License-Identifier: BSD-3-Clause
"""Hypothesis looks for a sequence of verbs after which a model is not the optimum of its rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from laws.compare import ESTIMATORS, assert_is_optimum, assert_same
from laws.laws import fit_on
from laws.streams import Correct, Tune, apply, write_down
from oracles.operations import Add, Remove, Roster, Update

WIDTH = 2
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "rbf", "gamma": 0.05},
    {"kernel": "laplacian", "gamma": 0.5},
    {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
]
PROBE = np.array([[-1.5, 0.5], [0.25, 2.0], [3.0, -3.0]])
MOST_ROWS = 40
# Shrinking a life of thirty events takes minutes; HYPOTHESIS_PROFILE=explore is for that.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)

points = st.lists(st.integers(-3, 3), min_size=WIDTH, max_size=WIDTH)
weights = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0])
seeds = st.integers(0, 2**16)


class Life(RuleBasedStateMachine):
    """A model and plain arrays live through the same events."""

    kind = "svc"
    labels: Any = (0, 1)
    shapes: ClassVar[dict[str, Any]] = {"C": (1e-3, 1.0, 10.0, 100.0, 1e3)}
    retuned: ClassVar[dict[str, Any]] = {"class_weight": (None, {0: 2.0}, {0: 0.5, 1: 3.0})}

    @initialize(
        data=st.data(),
        kernel=st.sampled_from(KERNELS),
        solver=st.sampled_from(["auto", "path", "exchange"]),
        seed=seeds,
    )
    def begin(self, data: Any, kernel: dict[str, Any], solver: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shape = {name: data.draw(st.sampled_from(values)) for name, values in self.shapes.items()}
        self.model = ESTIMATORS[self.kind](solver=solver, **kernel, **shape)
        n = int(rng.integers(1, 12))
        X = rng.integers(-3, 4, (n, WIDTH)).astype(np.float64)
        self.roster = Roster(X, rng.choice(self.labels, n), np.ones(n), np.arange(n))
        fit_on(self.model, self.roster)
        self.events = 0

    # -- what can happen -------------------------------------------------------------------------

    @precondition(lambda self: len(self.roster.ids) < MOST_ROWS)
    @rule(data=st.data(), count=st.integers(1, 6))
    def add(self, data: Any, count: int) -> None:
        self.happen(self.fresh(data, count))

    @precondition(lambda self: len(self.roster.ids) > 1)
    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        chosen = self.choose(data)
        self.happen(Remove(chosen[: len(self.roster.ids) - 1]))

    @precondition(lambda self: len(self.roster.ids) > 1)
    @rule(data=st.data(), count=st.integers(1, 4))
    def do_both(self, data: Any, count: int) -> None:
        chosen = self.choose(data)
        coming = self.fresh(data, count)
        self.happen(
            Update(coming.X, coming.y, coming.ids, coming.sample_weight, chosen[: count + 1])
        )

    @rule(data=st.data())
    def revise_labels(self, data: Any) -> None:
        ids = self.choose(data)
        self.happen(Correct(ids, y=self.draw_labels(data, len(ids))))

    @rule(data=st.data())
    def revise_weights(self, data: Any) -> None:
        ids = self.choose(data)
        self.happen(Correct(ids, sample_weight=self.draw_weights(data, len(ids))))

    @rule(data=st.data())
    def revise_features(self, data: Any) -> None:
        ids = self.choose(data)
        self.happen(Correct(ids, X=self.draw_points(data, len(ids))))

    @rule(data=st.data())
    def revise_everything(self, data: Any) -> None:
        ids = self.choose(data)
        n = len(ids)
        parts = self.draw_points(data, n), self.draw_labels(data, n), self.draw_weights(data, n)
        self.happen(Correct(ids, *parts))

    @rule(data=st.data())
    def repeat_a_row_under_another_label(self, data: Any) -> None:
        row = data.draw(st.integers(0, len(self.roster.ids) - 1))
        X = self.roster.X[[row, row]]
        self.happen(
            Add(X, self.draw_labels(data, 2), self.roster.next_id + np.arange(2), np.ones(2))
        )

    @rule(data=st.data())
    def retune_shape(self, data: Any) -> None:
        choices = {**self.shapes, **self.retuned}
        names = data.draw(st.lists(st.sampled_from(list(choices)), min_size=1, unique=True))
        self.happen(Tune({name: data.draw(st.sampled_from(choices[name])) for name in names}))

    @rule(kernel=st.sampled_from(KERNELS))
    def retune_kernel(self, kernel: dict[str, Any]) -> None:
        self.happen(Tune(kernel))

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def certificate_holds(self) -> None:
        if hasattr(self, "model"):
            certificate = self.model.certificate()
            assert certificate.ok, str(certificate)
            assert self.model.ids_.tolist() == self.roster.ids.tolist()
            if self.kind == "svc":
                assert self.model.classes_.tolist() == np.unique(self.roster.y).tolist()

    def teardown(self) -> None:
        if hasattr(self, "roster"):
            assert_is_optimum(self.model, self.roster, PROBE)
            if self.roster.sample_weight.any():
                afresh = fit_on(type(self.model)(**self.model.get_params()), self.roster)
                assert_same(self.model, afresh, self.roster, PROBE)

    # -- within ----------------------------------------------------------------------------------

    def happen(self, step: Any) -> None:
        apply(self.model, step)
        write_down(self.roster, step)
        self.events += 1
        if self.events % 4 == 0:
            assert_is_optimum(self.model, self.roster, PROBE)

    def choose(self, data: Any) -> Any:
        places = st.lists(
            st.integers(0, len(self.roster.ids) - 1), min_size=1, max_size=6, unique=True
        )
        return self.roster.ids[data.draw(places)]

    def fresh(self, data: Any, count: int) -> Add:
        ids = self.roster.next_id + np.arange(count)
        X, y = self.draw_points(data, count), self.draw_labels(data, count)
        return Add(X, y, ids, self.draw_weights(data, count))

    def draw_points(self, data: Any, count: int) -> Any:
        drawn = data.draw(st.lists(points, min_size=count, max_size=count))
        return np.array(drawn, dtype=np.float64)

    def draw_labels(self, data: Any, count: int) -> Any:
        drawn = data.draw(st.lists(st.sampled_from(self.labels), min_size=count, max_size=count))
        return np.array(drawn)

    def draw_weights(self, data: Any, count: int) -> Any:
        return np.array(data.draw(st.lists(weights, min_size=count, max_size=count)))


class LifeOfThreeClasses(Life):
    """The same with classes that come and go."""

    labels = (0, 1, 2)


class LifeOfRegression(Life):
    """Targets on a grid, so that the edges of the tube tie."""

    kind = "svr"
    labels = (-1.0, -0.5, 0.0, 0.5, 1.0, 3.0)
    shapes: ClassVar[dict[str, Any]] = {
        "C": (1e-3, 1.0, 10.0, 1e3),
        "epsilon": (0.0, 0.25, 0.5, 10.0),
    }
    retuned: ClassVar[dict[str, Any]] = {}


class LifeOfOneClass(Life):
    """A sum that grows and falls with the samples."""

    kind = "one_class"
    labels = (0.0,)
    shapes: ClassVar[dict[str, Any]] = {"nu": (1e-3, 0.25, 0.5, 1.0)}
    retuned: ClassVar[dict[str, Any]] = {}


class LifeOfSphere(Life):
    """A sphere that begins with one sample, and now and then has too few for its C."""

    kind = "svdd"
    labels = (0.0,)
    shapes: ClassVar[dict[str, Any]] = {"C": (1e-3, 0.1, 0.25, 1.0, 10.0)}
    retuned: ClassVar[dict[str, Any]] = {}


def live(machine: type[Life], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=30, phases=WITHOUT_SHRINKING),
    )


def test_life_of_two_classes() -> None:
    live(Life, 18)


def test_life_of_three_classes() -> None:
    live(LifeOfThreeClasses, 15)


def test_life_of_regression() -> None:
    live(LifeOfRegression, 10)


def test_life_of_one_class() -> None:
    live(LifeOfOneClass, 10)


def test_life_of_sphere() -> None:
    live(LifeOfSphere, 10)
