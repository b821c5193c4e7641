# SPDX-License-Identifier: BSD-3-Clause
"""Two rows of one sample as one, and back."""

from __future__ import annotations

import numpy as np

from adiabat import SVC, SVR
from adiabat.engine.merged import Merged

RNG = np.random.default_rng(0)
X, Y = RNG.random((40, 3)), RNG.random(40)


def test_regression_has_half_as_many_rows_and_none_is_lost() -> None:
    (machine,) = SVR(gamma=1.0, C=0.5, epsilon=0.1).fit(X, Y)._model.solver.machines.values()
    before = machine.u.copy()
    merged = Merged(machine, np.arange(machine.n))
    assert len(merged.rows) == 40 and merged.jump is not None
    np.testing.assert_allclose(merged.jump, 0.2, rtol=0.0, atol=1e-15)
    assert set(merged.lo) == {-0.5} and set(merged.hi) == {0.5}
    at = machine.at[merged.rows]
    np.testing.assert_array_equal(merged.u, np.bincount(machine.at, machine.u)[at])
    machine.u[:] = 7.0
    merged.split(merged.u)
    np.testing.assert_array_equal(machine.u, before)


def test_a_row_whose_other_is_not_there_stands_alone() -> None:
    (machine,) = SVR(gamma=1.0, C=0.5, epsilon=0.1).fit(X, Y)._model.solver.machines.values()
    before = machine.u.copy()
    some = np.arange(3, machine.n)
    merged = Merged(machine, some)
    assert len(merged.rows) == len(set(machine.at[some].tolist())) > len(some) - 40
    merged.split(merged.u)
    np.testing.assert_array_equal(machine.u, before)


def test_classification_stays_as_it_is() -> None:
    model = SVC(gamma=1.0).fit(X, (Y > 0.5).astype(int))
    (machine,) = model._model.solver.machines.values()
    rows = np.arange(0, 40, 3)
    merged = Merged(machine, rows)
    assert merged.jump is None
    np.testing.assert_array_equal(merged.rows, rows)
