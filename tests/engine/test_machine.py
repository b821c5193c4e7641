# SPDX-License-Identifier: BSD-3-Clause
"""One machine: its rows, its state, and the way back."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import numpy.typing as npt
import pytest

from adiabat.engine.bias import centre_bias
from adiabat.engine.machine import FEWEST, ROUNDINGS, Machine
from adiabat.engine.row_change import RowChange
from adiabat.engine.samples import Samples
from adiabat.engine.snapshot import Snapshot
from adiabat.kernels import make_kernel
from engine.rig import Rig

from oracles import problems

X = np.random.default_rng(0).standard_normal((12, 3))
K = problems.gram("rbf", X, X, gamma=0.5)


def samples_of(matrix: npt.NDArray[np.float64]) -> Samples:
    samples = Samples(make_kernel("precomputed", gamma=1.0, degree=3, coef0=0.0, X=matrix))
    samples.add(matrix)
    return samples


def boxes(at: npt.ArrayLike, **others: npt.NDArray[np.float64]) -> RowChange:
    """Rows at samples, t = +1 and -1 by turns, in [0, 1] and [-1, 0]."""
    where = np.asarray(at, dtype=np.int64)
    t = np.where(where % 2 == 0, 1.0, -1.0)
    values = {"add_t": t, "add_lo": np.minimum(t, 0.0), "add_hi": np.maximum(t, 0.0)} | others
    return RowChange(add_at=where, **values)


def settled() -> Rig:
    problem = problems.poly2_low_rank(np.random.default_rng(0))
    rig = Rig.of(problem)
    rig.change(problem.X, problem.y)
    return rig


def same(one: Snapshot, other: Snapshot) -> bool:
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


# ---------------------------------------------------------------------------------------------
# Rows


def test_new_rows_come_with_no_weight_and_their_residual() -> None:
    machine = Machine(samples_of(K))
    machine.begin(boxes([0, 1, 2]))
    assert machine.n == 3 and not machine.u.any() and len(machine.margin) == 0
    np.testing.assert_array_equal(machine.r, [-1.0, 1.0, -1.0])
    machine.u[:] = [0.5, -0.7, 0.2]
    machine.b = 0.25
    machine.begin(boxes([5, 6]))
    np.testing.assert_allclose(machine.r[3:], K[5:7, :3] @ machine.u[:3] + 0.25 - machine.t[3:])
    np.testing.assert_array_equal(machine.at, [0, 1, 2, 5, 6])


def test_leaving_rows_get_an_empty_box_and_others_a_new_one() -> None:
    machine = Machine(samples_of(K))
    machine.begin(boxes(np.arange(6)))
    change = RowChange(
        remove=np.array([1, 4]),
        rebound=np.array([0, 3]),
        rebound_t=np.array([1.0, -2.0]),
        rebound_lo=np.array([0.0, -5.0]),
        rebound_hi=np.array([5.0, 0.0]),
        d=0.5,
    )
    assert change.size == 4
    machine.begin(change)
    assert machine.lo.tolist() == [0.0, 0.0, 0.0, -5.0, 0.0, -1.0]
    assert machine.hi.tolist() == [5.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert machine.d == 0.5
    assert machine.t[[0, 3]].tolist() == [1.0, -2.0]
    np.testing.assert_array_equal(machine.r, -machine.t)


def test_finish_takes_rows_out_and_renumbers_the_margin() -> None:
    rig = settled()
    machine = rig.machine
    margin_at = machine.at[machine.margin].copy()
    gone = np.flatnonzero(~machine.in_margin)[::2]
    kept = np.setdiff1d(np.arange(machine.n), gone)
    u, r = machine.u[kept].copy(), machine.r[kept].copy()
    machine.finish(gone)
    np.testing.assert_array_equal(machine.u, u)
    np.testing.assert_array_equal(machine.r, r)
    np.testing.assert_array_equal(machine.at[machine.margin], margin_at)
    np.testing.assert_array_equal(np.flatnonzero(machine.in_margin), np.sort(machine.margin))


# ---------------------------------------------------------------------------------------------
# There and back


SOME = np.array([1, 4])
CHANGES = {
    "rows come": boxes([3, 4]),
    "rows leave": RowChange(remove=SOME),
    "boxes and targets move": RowChange(
        rebound=SOME, rebound_t=np.zeros(2), rebound_lo=np.full(2, -0.5), rebound_hi=np.full(2, 0.5)
    ),
    "the sum moves": RowChange(d=0.25),
}


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_leaves_the_arrays_of_a_snapshot_alone(change: str, carry: bool) -> None:
    """The snapshot has the machine's own arrays, until `begin` replaces those that change."""
    machine, rows = settled().machine, CHANGES[change]
    before = machine.snapshot(rows.remove)
    copy = deepcopy(before)
    machine.begin(rows, carry)
    if len(rows.remove):  # their boxes are kept apart
        assert same(before._replace(lo=copy.lo, hi=copy.hi), copy)
    else:
        assert same(before, copy)
    for name in ("u", "r", *(("t", "lo", "hi") if len(rows.rebound) else ())):
        assert not np.shares_memory(getattr(machine, name), getattr(before, name)), name
    machine.restore(before)
    assert same(machine.snapshot(rows.remove), copy)
    machine.lo -= 1.0
    assert np.array_equal(before.boxes()[0], copy.lo)


def test_restore_brings_everything_back() -> None:
    rig = settled()
    machine = rig.machine
    before = machine.snapshot()
    copy = deepcopy(before)  # the snapshot has the machine's own arrays, until `begin`
    machine.begin(boxes([3, 4]))
    machine.u += 1.0
    machine.r *= 2.0
    machine.b, machine.d = 5.0, 7.0
    machine.refactor(np.empty(0, dtype=np.int64))
    assert same(before, copy)  # a snapshot does not follow the machine
    machine.restore(before)
    assert same(machine.snapshot(), before)
    np.testing.assert_array_equal(np.flatnonzero(machine.in_margin), np.sort(machine.margin))
    machine.u += 1.0
    assert same(before, copy)  # nor does it share with the machine it restored


def test_refactor_leaves_dependent_rows_out_and_names_them() -> None:
    rows = np.repeat(np.arange(4), 2)
    machine = Machine(samples_of(K[np.ix_(rows, rows)]))
    machine.begin(boxes(np.arange(8)))
    out = machine.refactor(np.arange(8))
    assert len(out) == 4 and set(out // 2) == {0, 1, 2, 3}
    assert machine.in_margin.sum() == 4 and not machine.in_margin[out].any()
    assert machine.factor.shift == pytest.approx(K.diagonal().mean())


@pytest.mark.parametrize("size", [0, 3])
def test_a_kernel_of_zeros_has_a_factor_too(size: int) -> None:
    machine = Machine(samples_of(np.zeros((3, 3))))
    machine.begin(boxes(np.arange(size)))
    assert machine.factor.shift > 0.0


# ---------------------------------------------------------------------------------------------
# Kernel and weights


def test_a_sample_may_have_several_rows() -> None:
    """Both rows of a sample add up in its slot."""
    machine = Machine(samples_of(K))
    machine.begin(boxes([2, 2, 7]))
    machine.u[:] = [0.5, 0.25, -1.0]
    out = np.empty(12)
    machine.samples.gram.multiply(machine.coefficients(), out)
    np.testing.assert_allclose(out, K[:, [2, 7]] @ [0.75, -1.0], atol=1e-14)
    others = np.array([0.0, 1.0, 2.0])
    machine.samples.gram.multiply(machine.coefficients(others), out)
    np.testing.assert_allclose(out, K[:, [2, 7]] @ [1.0, 2.0], atol=1e-14)
    expected = K[np.ix_([2, 2, 7], [2, 7])]
    np.testing.assert_allclose(machine.kernel(np.arange(3), np.array([0, 2])), expected)


def test_no_weights_are_no_coefficients() -> None:
    machine = Machine(samples_of(K))
    machine.begin(boxes([0, 1]))
    assert not machine.coefficients().any()
    assert len(machine.coefficients()) == machine.samples.gram.n_slots


def test_the_aim_is_a_few_roundings_and_well_within_the_tolerance() -> None:
    machine = Machine(samples_of(K))
    machine.begin(boxes([0, 1]))
    rounding = machine.rounding(1e-3)
    np.testing.assert_allclose(machine.aims(1e-30), FEWEST * rounding)
    np.testing.assert_allclose(machine.aims(1e-3), ROUNDINGS * rounding)
    np.testing.assert_allclose(machine.aims(1e-14), 1e-15)
    assert np.all((rounding > 1e-16) & (rounding < 1e-15))
    machine.u[:] = [1e6, -1e6]
    assert np.all(machine.rounding(1e-3) > 1e5 * rounding)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_where_a_bound_on_rounding_is_too_coarse_it_is_computed(sign: float) -> None:
    """Of two rows far apart, the weight of one is nothing to the f of the other."""
    far = np.full((4, 4), sign * 1e-8)
    np.fill_diagonal(far, 1.0)
    machine = Machine(samples_of(far))
    machine.begin(boxes([0, 1, 2, 3]))
    machine.u[:] = [1e8, -1.0, 1.0, -1.0]
    np.testing.assert_allclose(machine.sizes(), [1e8, 2.0, 2.0, 2.0], rtol=1e-7)
    found = machine.rounding(1e-9)
    assert found[0] > 1e-9 and np.all(found[1:] < 1e-14)


def test_an_outlier_does_not_move_the_shift() -> None:
    diagonal = np.diag([1.0, 2.0, 3.0, 1e60])
    machine = Machine(samples_of(diagonal))
    machine.begin(boxes([0, 1, 2, 3]))
    assert 1.0 <= machine.factor.shift <= 3.0
    nothing = Machine(samples_of(np.zeros((2, 2))))
    nothing.begin(boxes([0, 1]))
    assert nothing.factor.shift == 1.0


def test_infeasibility() -> None:
    machine = Machine(samples_of(K))
    machine.begin(boxes([0, 1]))
    assert machine.infeasibility() == 0.0
    machine.u[:] = [0.5, -0.25]
    assert machine.infeasibility() == 0.25
    machine.u[:] = [3.0, -3.0]
    assert machine.infeasibility() == 2.0
    machine.u[:] = [0.1 + 0.2, -0.3]
    assert machine.infeasibility() == 0.0  # rounding of the sum


# ---------------------------------------------------------------------------------------------
# b without a row that fixes it


@pytest.mark.parametrize(
    "u, r, shift",
    [
        ([0.0, 0.0], [-3.0, 1.0], 1.0),  # no b will do: the middle is the least evil
        ([0.0, 0.0], [2.0, -4.0], 1.0),
        ([1.0, -1.0], [-2.0, 4.0], -1.0),
    ],
)
def test_the_middle_of_the_interval(u: list[float], r: list[float], shift: float) -> None:
    """Two rows, y = +1 and -1, both at a bound: r becomes the same distance for both."""
    machine = Machine(samples_of(K))
    machine.begin(boxes([0, 1]))
    machine.u[:], machine.r[:] = u, r
    centre_bias(machine)
    assert machine.b == shift
    np.testing.assert_allclose(machine.r, np.array(r) + shift)
    assert machine.r[0] == -machine.r[1]


@pytest.mark.parametrize("at, r, b", [([0], -3.0, 3.0), ([1], 5.0, -5.0)])
def test_one_class_leaves_one_end(at: list[int], r: float, b: float) -> None:
    machine = Machine(samples_of(K))
    machine.begin(boxes(at))
    machine.r[:] = r
    centre_bias(machine)
    assert machine.b == b and machine.r[0] == 0.0


def test_without_a_row_of_any_force_b_is_zero() -> None:
    machine = Machine(samples_of(K))
    machine.begin(RowChange())
    machine.b = 4.0
    centre_bias(machine)
    assert machine.b == 0.0
    machine.begin(boxes([0, 1], add_lo=np.zeros(2), add_hi=np.zeros(2)))
    machine.b = 4.0
    centre_bias(machine)
    assert machine.b == 0.0


def test_a_row_inside_its_box_fixes_b() -> None:
    rig = settled()
    b = rig.machine.b
    centre_bias(rig.machine)
    assert rig.machine.b == b and len(rig.machine.margin) > 0


def test_weights_stay_as_they_were_judged() -> None:
    """A weight may be small and its box large: it is then no nearer to its bound for that."""
    machine = Machine(samples_of(K))
    large = np.array([1e6, 0.0])
    machine.begin(boxes([0, 1], add_lo=-large[::-1], add_hi=large))
    u = np.array([1e-9, -1e-9])
    machine.u[:] = u
    machine.refactor(np.arange(2))
    centre_bias(machine)
    np.testing.assert_array_equal(machine.u, u)
    assert len(machine.margin) == 2
