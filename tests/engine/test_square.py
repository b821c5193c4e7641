# SPDX-License-Identifier: BSD-3-Clause
"""All kernel values of a model of several machines, each computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from adiabat import SVC
from adiabat.engine import square
from adiabat.engine.samples import Samples
from adiabat.engine.square import Square, all_known
from adiabat.kernels import make_kernel

DIGITS = load_digits()
ROWS, LABELS = DIGITS.data[:400], DIGITS.target[:400]


@pytest.fixture
def samples() -> Samples:
    held = Samples(make_kernel("rbf", gamma=0.001, degree=3, coef0=0.0, X=ROWS))
    held.add(ROWS)
    return held


def test_values_are_those_of_the_kernel(samples: Samples) -> None:
    samples.group = LABELS.astype(np.int64)
    some = np.array([7, 3, 300, 12, 13])
    expected = samples.block(some, some)
    found = Square(samples).among(some).values(np.arange(len(some)))
    np.testing.assert_array_equal(found, expected)


def test_rows_are_sorted_by_group(samples: Samples) -> None:
    samples.group = LABELS.astype(np.int64)
    rows, at = np.arange(50), np.random.default_rng(0).permutation(400)[:50]
    ordered = Square(samples).sorted(rows, at)
    assert np.all(np.diff(LABELS[at[ordered]]) >= 0)


def test_columns_are_those_of_the_kernel(samples: Samples) -> None:
    some = np.array([7, 3, 300])
    with all_known(samples, True):
        samples.slots(some)
    expected = samples.block(np.arange(400), some)
    np.testing.assert_array_equal(samples.between(np.arange(400), some), expected)


def test_they_are_there_in_the_block_only(samples: Samples) -> None:
    with all_known(samples, False):
        assert samples.square is None
    with pytest.raises(ZeroDivisionError), all_known(samples, True):
        assert samples.square is not None
        _ = 1 / 0
    assert samples.square is None


def test_a_fit_with_and_without_is_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SVC(gamma=0.001, C=10.0).fit(ROWS, LABELS)
    monkeypatch.setattr(square, "FEW", 0)
    model = SVC(gamma=0.001, C=10.0).fit(ROWS, LABELS)
    np.testing.assert_allclose(
        model.decision_function(ROWS), known.decision_function(ROWS), atol=1e-9
    )


def test_a_fit_of_several_machines_computes_a_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(formula: Any, rows: Any) -> Any:
        made.append(rows.n)
        return matrix(formula, rows)

    matrix = square.whole_matrix
    monkeypatch.setattr(square, "whole_matrix", counted)
    model = SVC(gamma=0.001, C=10.0).fit(ROWS, LABELS)
    assert made == [400]
    model.forget(range(40))  # of each machine a tenth, of all machines together 360 rows
    assert made == [400]
    SVC(gamma=0.001, C=10.0).fit(ROWS, LABELS > 4)
    assert made == [400]
