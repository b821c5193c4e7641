# SPDX-License-Identifier: BSD-3-Clause
"""Some rows of a machine as a machine of their own."""

from __future__ import annotations

import numpy as np
import pytest

from adiabat import SVC, SVR
from adiabat.engine import run, samples, screening
from adiabat.engine.exchange import Stuck
from adiabat.engine.machine import Machine
from adiabat.engine.part import Part
from adiabat.engine.run import Run
from adiabat.engine.solver import Solver

RNG = np.random.default_rng(3)
N = 500
Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
X = RNG.standard_normal((N, 3)) + np.outer(Y, [1.0, 0.3, 0.0])


def fitted() -> Machine:
    model = SVC(C=1.0, gamma=0.3).fit(X, Y)
    (machine,) = model._model.solver.machines.values()
    return machine


def part_of(machine: Machine) -> tuple[Part, np.ndarray]:
    rows = np.flatnonzero((machine.u != 0.0) | machine.in_margin | (np.arange(N) % 5 == 0))
    return Part(machine, rows), rows


def test_a_part_has_the_rows_and_what_belongs_to_all_of_them() -> None:
    machine = fitted()
    part, rows = part_of(machine)
    for name in ("at", "t", "lo", "hi", "u", "r", "root", "in_margin"):
        np.testing.assert_array_equal(getattr(part, name), getattr(machine, name)[rows])
    assert (part.b, part.d, part.typical) == (machine.b, machine.d, machine.typical)
    assert part.n < machine.n and not part.has_pairs
    np.testing.assert_allclose(part.rounding(1e-6), machine.rounding(1e-6)[rows], rtol=1e-12)


@pytest.mark.parametrize("ends", [True, False])
def test_what_a_part_moved_to_is_given_back(ends: bool) -> None:
    machine = fitted()
    part, rows = part_of(machine)
    margin, r = machine.margin.copy(), machine.r.copy()
    try:
        with part:
            np.testing.assert_array_equal(rows[part.margin], margin)
            last = part.margin[-1]
            part.u[last], part.b = 0.25, -3.0
            part.in_margin[last] = False
            part.factor.drop_many(np.array([len(margin) - 1]))
            if not ends:
                raise Stuck
    except Stuck:
        assert not ends
    np.testing.assert_array_equal(machine.margin, margin[:-1])
    assert machine.u[margin[-1]] == 0.25 and not machine.in_margin[margin[-1]]
    assert machine.b == -3.0
    np.testing.assert_array_equal(machine.r, r)  # which only the judge computes anew


def test_a_part_is_factored_with_the_shift_of_the_whole() -> None:
    machine = fitted()
    machine.root[::2] = 7.0
    machine.root[1::2] = 9.0
    machine.root[0] = 9.0
    machine.refactor(machine.margin)
    part = Part(machine, np.flatnonzero((machine.root == 7.0) | machine.in_margin))
    shift = machine.factor.shift
    with part:
        part.refactor(part.margin)
    assert machine.factor.shift == shift


def test_rows_of_one_sample_are_known_as_such_in_a_part() -> None:
    model = SVR(C=1.0, gamma=0.3).fit(X, X[:, 0])
    (machine,) = model._model.solver.machines.values()
    assert Part(machine, np.arange(3)).has_pairs


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_updates_of_a_part_are_those_of_the_whole(
    kind: type[SVC | SVR], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening, "SCREENED", 100)
    monkeypatch.setattr(samples, "LINED", 100)
    monkeypatch.setattr(run, "WATCH_MOST", 20)
    monkeypatch.setattr(run, "WATCH_LIKELY", 10)
    monkeypatch.setattr(run, "WATCH_AMONG", 8)
    sizes = []

    class Counted(Part):
        def __enter__(self) -> Part:
            sizes.append(self.n)
            return super().__enter__()

    monkeypatch.setattr(run, "Part", Counted)
    y = Y if kind is SVC else X[:, 0] + 0.3 * RNG.standard_normal(N)
    model = kind(C=1.0, gamma=0.3, solver="exchange").fit(X[:480], y[:480])
    sizes.clear()
    gone = model.ids_[model.support_[:6]].tolist()
    for name in gone:
        model.forget([name])
        assert model.last_update_.certificate.ok
    model.partial_fit(X[480:], y[480:])
    assert sizes and max(sizes) < (1 if kind is SVC else 2) * N
    kept = np.setdiff1d(np.arange(N), gone)
    other = kind(C=1.0, gamma=0.3).fit(X[kept], y[kept])
    score = "decision_function" if kind is SVC else "predict"
    points = X[::7] + 0.1
    expected = getattr(other, score)(points)
    np.testing.assert_allclose(getattr(model, score)(points), expected, atol=1e-8)
    assert model.certificate().ok


def test_who_has_weight_is_asked_anew_after_a_part() -> None:
    """A later turn may move other rows, and the judge must hear of them."""
    machine = fitted()
    part, rows = part_of(machine)
    with part:
        part.u[part.margin[0]] += 0.125
    assert np.isin(np.flatnonzero(machine.u), machine.weighty).all()
    other = np.setdiff1d(np.arange(machine.n), rows)[0]
    machine.u[other] = 0.5
    solver = Solver(machine.samples.kernel, 1e-9)
    solver.samples = machine.samples
    solver.refresh([machine])
    K = machine.samples.block(machine.at, machine.at)
    np.testing.assert_allclose(machine.r, K @ machine.u + machine.b - machine.t, atol=1e-12)
    machine.u[other] = 0.0
    part, rows = part_of(machine)
    with part:
        pass
    machine.u[other] = 0.5
    run = Run(machine, 1e-9, np.array([other]), fresh=False, carried=True)
    run.watched[:] = True
    run.solve()  # on all rows
    assert machine.weighty is None
