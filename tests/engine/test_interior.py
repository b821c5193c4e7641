# SPDX-License-Identifier: BSD-3-Clause
"""A start from inside, where features are few: near the optimum, and then the optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from adiabat import SVC, SVDD, SVR, OneClassSVM
from adiabat.engine import interior
from adiabat.engine.interior import LEAST_ROWS, applies, start_inside
from adiabat.kernels import make_kernel
from engine.rig import Rig

from laws.compare import assert_is_optimum
from oracles.operations import Roster

N = LEAST_ROWS + 60
RNG = np.random.default_rng(0)
CLOUD = RNG.standard_normal((N, 6))
GRID = RNG.integers(0, 3, (N, 3)).astype(np.float64)  # 27 points, each many times
FAR = CLOUD + 1e3
NOISE = RNG.standard_normal(N)
WEIGHTS = RNG.integers(0, 3, N).astype(np.float64)

MODELS: dict[str, tuple[Callable[[], Any], npt.NDArray[np.float64], Any]] = {
    "noisy": (lambda: SVC(C=1.0), CLOUD, np.sign(CLOUD[:, 0] + NOISE)),
    "all at bound": (lambda: SVC(C=1e-4), CLOUD, np.sign(CLOUD[:, 0] + NOISE)),
    "huge C": (lambda: SVC(C=1e4), CLOUD, np.sign(CLOUD[:, 0] + NOISE)),
    "separable": (lambda: SVC(C=1e6), CLOUD, np.sign(CLOUD[:, 0] + 0.1)),
    "ties": (lambda: SVC(C=1.0), GRID, np.sign(GRID.sum(1) + NOISE - 3.1)),
    "ties, huge C": (lambda: SVC(C=1e3), GRID, np.sign(GRID.sum(1) + NOISE - 3.1)),
    "far from zero": (lambda: SVC(C=1.0), FAR, np.sign(CLOUD[:, 0] + NOISE)),
    "numbers": (lambda: SVR(C=1.0, epsilon=0.2), CLOUD, CLOUD.sum(1) + NOISE),
    "numbers, no tube": (lambda: SVR(C=10.0, epsilon=0.0), CLOUD, CLOUD.sum(1) + NOISE),
    "numbers on a plane": (lambda: SVR(C=10.0, epsilon=0.1), GRID, GRID.sum(1)),
    "one class": (lambda: OneClassSVM(nu=0.2), CLOUD + 2.0, None),
    "one class, ties": (lambda: OneClassSVM(nu=0.3), GRID, None),
    "sphere": (lambda: SVDD(C=0.02), CLOUD, None),
    "sphere, ties": (lambda: SVDD(C=0.01), GRID, None),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_from_there_few_rows_are_left_to_move(name: str, weighted: bool) -> None:
    make, X, y = MODELS[name]
    model = make().set_params(kernel="linear")
    weight = WEIGHTS if weighted else np.ones(N)
    arguments = (X,) if y is None else (X, y)
    model.fit(*arguments, sample_weight=weight)
    assert model.last_update_.rounds <= 40
    assert model.last_update_.fallbacks == 0
    labels = np.ones(N) if y is None else y
    roster = Roster(X, labels, weight, np.arange(N))
    assert_is_optimum(model, roster, X[:5] + 0.5)


def test_a_batch_that_makes_the_machine_anew_starts_there_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []

    def spy(machine: Any) -> None:
        started.append(machine.n)
        start_inside(machine)

    monkeypatch.setattr("adiabat.engine.solver.start_inside", spy)
    y = np.sign(CLOUD[:, 0] + NOISE)
    model = SVC(kernel="linear").fit(CLOUD[:100], y[:100])
    model.update(CLOUD[100:], y[100:], remove=np.arange(20))
    assert started == [N]
    again = SVC(kernel="linear", solver="path").fit(CLOUD[20:], y[20:])
    assert started == [N]
    np.testing.assert_allclose(
        model.decision_function(CLOUD), again.decision_function(CLOUD), atol=1e-10
    )


def test_it_is_for_few_features_and_many_rows() -> None:
    def rig(name: str, rows: int) -> Rig:
        made = Rig(make_kernel(name, gamma=0.5, degree=2, coef0=0.0, X=CLOUD), 1.0)
        made.change(CLOUD[:rows], np.sign(CLOUD[:rows, 0] + NOISE[:rows]))
        return made

    assert applies(rig("linear", N).machine)
    assert not applies(rig("linear", LEAST_ROWS - 1).machine)
    assert not applies(rig("rbf", N).machine)


def test_where_no_point_is_inside_nothing_is_done() -> None:
    rig = Rig(make_kernel("linear", gamma=1.0, degree=2, coef0=0.0, X=CLOUD), 1.0)
    rig.change(CLOUD, np.ones(N))  # one class: sum u = 0 leaves u = 0 alone
    machine = rig.machine
    start_inside(machine)
    assert not machine.u.any()


def test_a_system_that_is_not_finite_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the start is like, exchange finds the optimum."""

    def broken(*_: Any) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(interior, "_System", broken)
    y = np.sign(CLOUD[:, 0] + NOISE)
    model = SVC(kernel="linear").fit(CLOUD, y)
    assert_is_optimum(model, Roster(CLOUD, y, np.ones(N), np.arange(N)), CLOUD[:5] + 0.5)


# ---------------------------------------------------------------------------------------------
# One value is large


def with_cell(value: float) -> npt.NDArray[np.float64]:
    X = CLOUD.copy()
    X[17, 2] = value
    return X


LABELS, NUMBERS = np.sign(CLOUD[:, 0] + NOISE), CLOUD.sum(1) + NOISE
HUGE = np.where(np.arange(N) == 9, 1e8, NUMBERS)
HOSTILE: dict[str, tuple[Callable[[], Any], npt.NDArray[np.float64], Any]] = {
    "a far row": (lambda: SVC(C=1e4), with_cell(1e6), LABELS),
    "a farther row": (lambda: SVC(C=1e4), with_cell(1e12), LABELS),
    "numbers, a far row": (lambda: SVR(C=1.0, epsilon=0.2), with_cell(1e6), NUMBERS),
    "a huge number": (lambda: SVR(C=1.0, epsilon=0.2), CLOUD, HUGE),
    "one class, a far row": (lambda: OneClassSVM(nu=0.2), with_cell(1e6), None),
    "sphere, a far row": (lambda: SVDD(C=0.02), with_cell(1e12), None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_row_is_put_to_its_bound_in_its_own_unit(name: str) -> None:
    """A row millions of times as far as the others, or a target as large, leaves them theirs."""
    make, X, y = HOSTILE[name]
    model = make().set_params(kernel="linear").fit(*((X,) if y is None else (X, y)))
    assert model.last_update_.rounds <= 10
    assert model.last_update_.fallbacks == 0
    assert model.certificate().ok
