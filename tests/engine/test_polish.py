# SPDX-License-Identifier: BSD-3-Clause
"""The last digits where weights are huge, against the margin system in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from adiabat.engine.machine import Machine
from adiabat.engine.polish import polish
from adiabat.kernels import make_kernel
from engine.rig import Rig

C = 2.0**23
FAR = np.array([[4096, 1], [1, 4096], [-4096, 4096]], dtype=np.float64)


def nearly_touching(seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Two classes on a grid, some labels wrong: weights at C. Kernel values are exact."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2048, 2048, (60, 2)).astype(np.float64)
    y = np.where(X @ [2.0, 1.0] > 0.5, 1.0, -1.0)
    y[:3] *= -1.0
    return X / 1024.0, y


def solved_exactly(machine: Machine, K: npt.NDArray[np.float64]) -> list[Fraction]:
    """(weights of MARGIN, b) by elimination, all other weights as they are."""
    margin = machine.margin
    s = len(margin)
    rest = machine.u.copy()
    rest[margin] = 0.0
    rows = []
    for i in margin:
        fixed = sum(Fraction(k) * Fraction(u) for k, u in zip(K[i], rest, strict=True))
        row = [Fraction(K[i, j]) for j in margin]
        rows.append([*row, Fraction(1), Fraction(machine.t[i]) - fixed])
    total = sum((Fraction(u) for u in rest), Fraction(0))
    rows.append([Fraction(1)] * s + [Fraction(0), Fraction(machine.d) - total])
    for column in range(s + 1):
        pivot = next(r for r in range(column, s + 1) if rows[r][column] != 0)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for r in range(s + 1):
            if r != column and rows[r][column] != 0:
                part = rows[r][column]
                rows[r] = [a - part * b for a, b in zip(rows[r], rows[column], strict=True)]
    return [row[-1] for row in rows]


def off_far_away(rig: Rig) -> float:
    """How far f is from that of the exact solution, at rows outside of the data."""
    machine = rig.machine
    X = rig.solver.samples.data[machine.at]
    K, K_far = X @ X.T, FAR @ X.T
    *weights, b = solved_exactly(machine, K)
    true = [Fraction(u) for u in machine.u]
    for row, weight in zip(machine.margin, weights, strict=True):
        true[row] = weight
    worst = Fraction(0)
    for k in K_far:
        f_true = sum((Fraction(a) * u for a, u in zip(k, true, strict=True)), b)
        f = sum((Fraction(a) * Fraction(u) for a, u in zip(k, machine.u, strict=True)),
                Fraction(machine.b))  # fmt: skip
        worst = max(worst, abs(f - f_true) / max(1, abs(f_true)))
    return float(worst)


def learned(seed: int) -> Rig:
    """A model by parts, with labels that are wrong for a while: weights at C come and go."""
    X, y = nearly_touching(seed)
    rig = Rig(make_kernel("linear", gamma=1.0, degree=3, coef0=0.0, X=X), C)
    rig.change(X[:40], y[:40], method="exchange")
    for start in range(40, 60, 5):
        rig.change(
            X[start : start + 5], y[start : start + 5], remove=[start - 20], method="exchange"
        )
    return rig


@pytest.mark.parametrize("seed", range(6))
def test_f_is_right_where_terms_of_1e8_add_up_to_1(seed: int) -> None:
    rig = learned(seed)
    assert np.abs(rig.machine.u).sum() > 5e7
    assert off_far_away(rig) < 4e-9


@pytest.mark.parametrize("seed", range(3))
def test_what_plain_sums_do_not_show_is_taken_out(seed: int) -> None:
    rig = learned(seed)
    machine = rig.machine
    rounding = machine.rounding(rig.solver.tol)[machine.margin]
    noise = 12.0 * rounding * np.array([1.0, -1.0, 0.0])  # in r, and so much less in u
    du, db = machine.factor.solve(noise, 0.0)
    machine.u[machine.margin] += du
    machine.b += db
    rig.solver.refresh([machine])
    before = off_far_away(rig)
    assert before > 1e-8
    assert polish(machine)
    assert off_far_away(rig) < min(4e-9, 0.1 * before)
    assert np.all((machine.u >= machine.lo) & (machine.u <= machine.hi))


def test_where_weights_are_small_nothing_is_done() -> None:
    X, y = nearly_touching(0)
    rig = Rig(make_kernel("rbf", gamma=1.0, degree=3, coef0=0.0, X=X), 10.0)
    rig.change(X, y)
    u, b = rig.machine.u.copy(), rig.machine.b
    assert not polish(rig.machine)
    assert np.array_equal(u, rig.machine.u) and b == rig.machine.b


def test_a_factor_that_answers_wrongly_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = learned(0)
    machine = rig.machine
    u, b = machine.u.copy(), machine.b
    machine.r[machine.margin] = 1e-6  # as if the judge had found it

    class Liar:
        rows = machine.margin

        def holds_b(self) -> bool:
            return True

        def solve(self, q: npt.NDArray[np.float64], s: float) -> tuple[object, float]:
            return np.full(len(q), 1e3), 1.0

    monkeypatch.setattr(machine, "factor", Liar())
    polish(machine)
    assert np.array_equal(u, machine.u) and b == machine.b


def test_a_far_outlier_alone_does_not_move_b() -> None:
    """All other rows are at a bound, and what the sum lacks is below the rounding of their weights.

    Their b is, to 12 digits, that of an outlier near enough to share MARGIN with another row.
    """
    rng = np.random.default_rng(6)
    X, y = rng.random((15, 2)), np.where(np.arange(15) % 2, 1.0, -1.0)
    found = {}
    for far in (1e9, 1e14):
        X[14] = far
        rig = Rig(make_kernel("linear", gamma=1.0, degree=3, coef0=0.0, X=X), 1e-3)
        rig.change(X, y)
        found[far] = rig.machine
    machine = found[1e14]
    assert machine.margin.tolist() == [14] and not machine.factor.holds_b()
    assert abs(machine.r[14]) > machine.fineness()[14]
    assert machine.b == pytest.approx(found[1e9].b, rel=1e-12, abs=0.0)
    b = machine.b
    assert not polish(machine) and machine.b == b
