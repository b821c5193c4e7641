# SPDX-License-Identifier: BSD-3-Clause
"""C-SVC as rows: targets, boxes and pairs of classes."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat.formulations.c_svc import CSVC

LABELS = {0: "pear", 1: "apple", 2: "fig"}
WEIGHT = np.array([1.0, 2.0, 0.5, 0.0, 3.0, 1.0])
OWN = np.ones(6)
TARGET = np.array([0, 1, 2, 0, 1, 2])


def test_rows_are_those_of_the_table() -> None:
    """t = +1 in [0, C w] for the second class of a pair, t = -1 in [-C w, 0] for the first."""
    rows = CSVC(10.0, LABELS).rows((1, 0), TARGET, WEIGHT, OWN)
    assert rows.sample.tolist() == [0, 1, 3, 4]
    assert rows.t.tolist() == [1.0, -1.0, 1.0, -1.0]
    assert rows.lo.tolist() == [0.0, -20.0, 0.0, -30.0]
    assert rows.hi.tolist() == [10.0, 0.0, 0.0, 0.0]


def test_class_weights_are_factors_on_c() -> None:
    formulation = CSVC(10.0, LABELS, {1: 0.1, 2: 3.0})
    rows = formulation.rows((1, 2), TARGET, WEIGHT, OWN)
    assert rows.sample.tolist() == [1, 2, 4, 5]
    np.testing.assert_allclose(rows.lo, [-2.0, 0.0, -3.0, 0.0])
    np.testing.assert_allclose(rows.hi, [0.0, 15.0, 0.0, 30.0])
    plain = CSVC(10.0, LABELS).rows((0, 1), TARGET, WEIGHT, OWN)
    some = formulation.rows((0, 1), TARGET, WEIGHT, OWN)
    np.testing.assert_allclose(some.lo[some.t < 0], plain.lo[plain.t < 0])
    np.testing.assert_allclose(some.hi, 0.1 * plain.hi)


def test_a_weight_of_zero_is_a_row_without_a_box() -> None:
    rows = CSVC(1.0, LABELS).rows((0, 1), TARGET, np.zeros(6), OWN)
    assert not rows.lo.any() and not rows.hi.any() and len(rows.sample) == 4


def test_zero_is_in_every_box() -> None:
    rows = CSVC(7.0, LABELS).rows((2, 0), TARGET, WEIGHT, OWN)
    assert np.all(rows.lo <= 0.0) and np.all(rows.hi >= 0.0)


def test_classes_are_in_the_order_of_their_labels() -> None:
    formulation = CSVC(1.0, LABELS)
    assert formulation.codes(TARGET) == [1, 2, 0]
    assert formulation.machines(TARGET) == [(1, 2), (1, 0), (2, 0)]


def test_who_writes_to_classes_changes_no_others() -> None:
    formulation = CSVC(10.0, LABELS)
    formulation.classes(TARGET)[0] = "plum"
    assert formulation.classes(TARGET).tolist() == ["apple", "fig", "pear"]
    assert formulation.classes(TARGET[:2]).tolist() == ["apple", "pear"]


def test_pairs_do_not_change_when_other_classes_come_and_go() -> None:
    formulation = CSVC(1.0, {**LABELS, 3: "date"})
    before = formulation.machines(TARGET)
    with_more = formulation.machines(np.append(TARGET, 3))
    with_fewer = formulation.machines(TARGET[TARGET != 2])
    assert set(before) < set(with_more) and set(with_fewer) < set(before)
    assert with_more[0] == (1, 3)


@pytest.mark.parametrize("target", [[], [2], [2, 2]])
def test_fewer_than_two_classes_need_no_machine(target: list[int]) -> None:
    formulation = CSVC(1.0, LABELS)
    assert formulation.machines(np.array(target, dtype=np.int64)) == []
    assert formulation.codes(np.array(target, dtype=np.int64)) == sorted(set(target))


def test_samples_of_other_classes_have_no_rows() -> None:
    rows = CSVC(1.0, LABELS).rows((0, 1), np.array([2, 2]), np.ones(2), np.ones(2))
    assert len(rows.sample) == len(rows.t) == len(rows.lo) == len(rows.hi) == 0


def test_a_formulation_is_a_value() -> None:
    assert CSVC(1.0, LABELS) == CSVC(1.0, dict(LABELS)) != CSVC(2.0, LABELS)
    assert CSVC(1.0, LABELS).total((0, 1), TARGET, WEIGHT) == 0.0
    target, weight = TARGET.copy(), WEIGHT.copy()
    CSVC(1.0, LABELS).rows((0, 1), target, weight, OWN)
    np.testing.assert_array_equal(target, TARGET)
    np.testing.assert_array_equal(weight, WEIGHT)


def test_the_last_sample_of_a_class_takes_its_label_with_it() -> None:
    """A label is a value of a row: what no row has any more is not kept."""
    resolved = CSVC(10.0, LABELS, {1: 0.1, 2: 3.0}).resolve(np.array([0, 1, 0]), WEIGHT[:3])
    assert resolved.label == {0: "pear", 1: "apple"} and resolved.class_weight == {1: 0.1}


def test_targets_of_a_file_have_labels() -> None:
    formulation = CSVC(10.0, LABELS)
    formulation.require_sound(TARGET)
    formulation.require_sound(TARGET[:0])
    for stray in (3, -1):
        with pytest.raises(ValueError, match="a target has no label"):
            formulation.require_sound(np.append(TARGET, stray))


@pytest.mark.parametrize(("gone", "stays"), [([], True), ([0, 1, 2], True), ([0, 3], False)])
def test_it_stays_while_each_class_has_a_sample(gone: list[int], stays: bool) -> None:
    assert CSVC(1.0, LABELS).stays(TARGET, np.array(gone, dtype=np.int64)) is stays
