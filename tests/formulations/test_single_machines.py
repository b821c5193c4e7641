# SPDX-License-Identifier: BSD-3-Clause
"""Regression, one class and the sphere as rows: the table of the formulations, line by line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adiabat.formulations import FORMULATIONS, Formulation
from adiabat.formulations.base import ONLY
from adiabat.formulations.epsilon_svr import EpsilonSVR
from adiabat.formulations.one_class import OneClass
from adiabat.formulations.svdd import Sphere

from oracles import machines

TARGET = np.array([1.0, -2.0, 0.5])
WEIGHT = np.array([1.0, 0.0, 3.0])
OWN = np.array([4.0, 1.0, 2.0])
EVERY: list[Any] = [EpsilonSVR(10.0, 0.25), OneClass(0.3), Sphere(0.4, 0.4)]


def test_regression_has_two_rows_a_sample_the_lower_edge_first() -> None:
    rows = EpsilonSVR(10.0, 0.25).rows(ONLY, TARGET, WEIGHT, OWN)
    assert rows.sample.tolist() == [0, 0, 1, 1, 2, 2]
    assert rows.t.tolist() == [0.75, 1.25, -2.25, -1.75, 0.25, 0.75]
    assert rows.lo.tolist() == [0.0, -10.0, 0.0, 0.0, 0.0, -30.0]
    assert rows.hi.tolist() == [10.0, 0.0, 0.0, 0.0, 30.0, 0.0]
    assert EpsilonSVR(10.0, 0.25).total(ONLY, TARGET, WEIGHT) == 0.0


def test_one_class_has_the_weight_for_a_box_and_nu_of_it_all_for_a_sum() -> None:
    rows = OneClass(0.3).rows(ONLY, TARGET, WEIGHT, OWN)
    assert rows.sample.tolist() == [0, 1, 2]
    assert not rows.t.any() and not rows.lo.any()
    assert rows.hi.tolist() == WEIGHT.tolist() and rows.hi is not WEIGHT
    assert OneClass(0.3).total(ONLY, TARGET, WEIGHT) == pytest.approx(1.2)


def test_a_sphere_has_half_the_own_value_for_a_target() -> None:
    rows = Sphere(0.4, 0.4).rows(ONLY, TARGET, WEIGHT, OWN)
    assert rows.t.tolist() == [2.0, 0.5, 1.0]
    np.testing.assert_allclose(rows.hi, [0.4, 0.0, 1.2])
    assert Sphere(0.4).total(ONLY, TARGET, WEIGHT) == 1.0
    assert Sphere(0.4).total(ONLY, TARGET, np.zeros(3)) == 0.0


def test_the_c_in_force_of_a_sphere_can_hold_a_sum_of_one() -> None:
    assert Sphere(0.4).resolve(TARGET, WEIGHT).reach == 0.4
    assert Sphere(0.2).resolve(TARGET, WEIGHT).reach == 0.25
    assert Sphere(0.25).resolve(TARGET, WEIGHT).reach == 0.25
    assert Sphere(0.2).resolve(TARGET, np.zeros(3)).reach == 0.2
    few = Sphere(0.2).resolve(TARGET, WEIGHT)
    more = few.resolve(TARGET, 2.0 * WEIGHT)
    assert more.reach == 0.2 and more.reshapes(few) and not more.reshapes(more)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 49, 93, 1000])
def test_boxes_of_few_samples_sum_to_one_but_for_rounding(n: int) -> None:
    weight = np.random.default_rng(n).uniform(0.1, 3.0, n)
    resolved = Sphere(1e-9).resolve(np.zeros(n), weight)
    hi = resolved.rows(ONLY, np.zeros(n), weight, np.ones(n)).hi
    assert abs(hi.sum() - 1.0) <= 4.0 * np.finfo(float).eps


def test_rows_are_those_of_the_oracle() -> None:
    pairs = [
        (EVERY[0], machines.svr_rows(TARGET, 10.0, 0.25, WEIGHT)),
        (EVERY[1], machines.one_class_rows(0.3, WEIGHT)),
        (EVERY[2], machines.sphere_rows(OWN, 0.4, WEIGHT)),
    ]
    for formulation, expected in pairs:
        rows = formulation.rows(ONLY, TARGET, WEIGHT, OWN)
        for name in ("t", "lo", "hi"):
            np.testing.assert_allclose(getattr(rows, name), getattr(expected, name), rtol=1e-15)
        assert formulation.total(ONLY, TARGET, WEIGHT) == pytest.approx(expected.d)


@pytest.mark.parametrize("formulation", EVERY, ids=lambda each: each.name)
def test_there_is_one_machine_as_soon_as_there_is_a_sample(formulation: Any) -> None:
    assert formulation.machines(np.empty(0)) == []
    assert formulation.machines(TARGET) == [ONLY]
    assert formulation.concerns(ONLY, {1.0}) and not formulation.concerns(ONLY, set())
    assert formulation.targets_move and formulation.target_type is np.float64


@pytest.mark.parametrize("formulation", EVERY, ids=lambda each: each.name)
def test_parameters_survive_a_file(formulation: Any) -> None:
    kind = FORMULATIONS[formulation.name]
    assert kind.from_dict(formulation.to_dict()) == formulation
    formulation.require_sound(TARGET)


@pytest.mark.parametrize(
    "unsound",
    [
        EpsilonSVR(0.0, 0.1), EpsilonSVR(-1.0, 0.1), EpsilonSVR(1.0, -0.1), EpsilonSVR(np.nan, 0.1),
        EpsilonSVR(1.0, np.inf), OneClass(0.0), OneClass(1.1), OneClass(np.nan), Sphere(0.0, 1.0),
        Sphere(1.0, 0.0), Sphere(np.inf, 1.0),
    ],
)  # fmt: skip
def test_parameters_of_a_file_that_make_no_sense_are_refused(unsound: Any) -> None:
    with pytest.raises(ValueError, match="is out of range"):
        unsound.require_sound(TARGET)


def test_targets_of_a_file_must_be_finite() -> None:
    with pytest.raises(ValueError, match="not finite"):
        EpsilonSVR(1.0, 0.1).require_sound(np.array([1.0, np.nan]))


@pytest.mark.parametrize("formulation", [EpsilonSVR(1.0, 0.1), OneClass(0.5)])
def test_what_takes_at_most_a_sum_from_the_samples_stays(formulation: Formulation) -> None:
    some, everyone = np.array([0]), np.arange(len(TARGET))
    assert formulation.stays(TARGET, some)
    assert not formulation.stays(TARGET, everyone)


def test_what_takes_a_bound_from_the_samples_does_not_stay() -> None:
    assert not Sphere(1.0, 1.0).stays(TARGET, np.array([0]))
