# SPDX-License-Identifier: BSD-3-Clause
"""All or nothing: an update is carried out and certified, or nothing has changed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from adiabat import SVC
from adiabat._core import blas_threads
from adiabat._core.gram import PANEL_WIDTH
from adiabat.engine.exchange import Exchange
from adiabat.engine.interrupts import deferred_interrupts
from adiabat.engine.path import Path
from adiabat.engine.report import SolveInfo
from adiabat.engine.row_change import RowChange
from adiabat.engine.run import Run
from adiabat.engine.samples import Samples
from adiabat.engine.solver import Solver
from adiabat.errors import IndefiniteKernelError, NotOptimalError
from adiabat.formulations.c_svc import CSVC
from adiabat.kernels import Kernel, make_kernel
from engine.rig import PAIR, Rig

from faults import NEVER, PACKAGE, interrupt_at_line, interruptible
from oracles import batch_qp, problems

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 4))
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(120) > 0.0, 1.0, -1.0)


def rbf() -> Kernel:
    return make_kernel("rbf", gamma=0.3, degree=3, coef0=0.0, X=X)


def started(kernel: Kernel | None = None) -> Rig:
    rig = Rig(kernel or rbf(), C=5.0)
    rig.change(X[:80], Y[:80])
    return rig


def state(rig: Rig) -> dict[str, Any]:
    """All that an update may change, in plain copies."""
    solver, samples = rig.solver, rig.solver.samples
    everyone = np.arange(samples.n)
    owned = np.flatnonzero(samples.gram.slot_of[: samples.n] >= 0)
    found: dict[str, Any] = {
        "n": (samples.n, samples.gram.n),
        "data": np.array(samples.data),
        "diagonal": samples.diagonal.copy(),
        "K": samples.block(everyone, everyone),
        "position": rig.position.copy(),
        "machines": list(solver.machines),
        "owners": samples.gram.owner[samples.gram.owner >= samples.n],
    }
    for key, machine in solver.machines.items():
        saved = deepcopy(machine.snapshot())  # else it would follow what went wrong
        found |= {f"{key}.{name}": value for name, value in saved._asdict().items()}
        found[f"{key}.in_margin"] = machine.in_margin.copy()
        lower = machine.factor.lower()
        found[f"{key}.factor"] = np.round(lower @ lower.T, 10)
        f = np.empty(samples.n)
        samples.gram.multiply(machine.coefficients(), f)
        found[f"{key}.f"] = np.round(f, 12)
    exact = samples.block(everyone, everyone)[:, owned]
    np.testing.assert_allclose(samples.between(everyone, owned), exact, atol=1e-14)
    return found


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other[name], err_msg=name)
        else:
            assert value == other[name], name


def assert_goes_on(rig: Rig) -> None:
    """As if nothing had happened: the same update on a twin ends in the same place."""
    twin = started(rig.solver.samples.kernel)
    for each in (rig, twin):
        each.change(X[80:110], Y[80:110], remove=range(0, 40, 3))
        assert each.violation() <= 1e-12
    assert rig.objective() == pytest.approx(twin.objective(), rel=1e-12)
    assert rig.machine.b == pytest.approx(twin.machine.b, abs=1e-10)


class Broken(Exception):
    """What the tests break things with."""


# ---------------------------------------------------------------------------------------------
# Whatever fails, nothing has changed


def test_a_failing_plan_changes_nothing() -> None:
    rig = started()
    before = state(rig)
    with pytest.raises(Broken), rig.solver.changing() as step:
        step.add(X[80:])
        raise Broken
    assert_same(state(rig), before)
    assert_goes_on(rig)


def test_a_plan_that_makes_no_sense_changes_nothing() -> None:
    """Rows of lengths that do not fit fail in the middle of `begin`."""
    rig = started()
    before = state(rig)
    with pytest.raises((ValueError, IndexError)), rig.solver.changing() as step:
        new = step.add(X[80:])
        step.solve({PAIR: RowChange(add_at=new, add_t=np.ones(3)), (7, 8): RowChange()})
    assert_same(state(rig), before)
    assert_goes_on(rig)


@pytest.mark.parametrize("where", ["solve", "_settle", "_survey", "_exchange"])
@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, MemoryError])
def test_a_failing_exchange_changes_nothing(
    where: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = started()
    before = state(rig)
    original, calls = getattr(Exchange, where), list[int]()

    def fails_in_the_end(this: Exchange, *arguments: Any) -> Any:
        result = original(this, *arguments)
        calls.append(1)
        if len(calls) == (1 if where in ("solve", "_settle") else 2):
            raise error
        return result

    with monkeypatch.context() as patch:
        if where in ("_survey", "_exchange"):  # round by round
            patch.setattr(Exchange, "_settle", lambda *given: False)
        patch.setattr(Exchange, where, fails_in_the_end)
        with pytest.raises(error):
            rig.change(X[80:100], Y[80:100], remove=range(10))
    assert_same(state(rig), before)
    assert_goes_on(rig)


def test_a_failing_coarse_step_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = started()
    before = state(rig)
    descend, calls = Exchange.descend, list[int]()

    def fails_in_the_end(this: Exchange, *arguments: Any) -> None:
        descend(this, *arguments)
        calls.append(1)
        raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "descend", fails_in_the_end)
        patch.setattr(Run, "_starts_in_pairs", lambda this: True)
        with pytest.raises(Broken):
            rig.change(X[80:], Y[80:], remove=range(20))
    assert len(calls) == 1
    assert_same(state(rig), before)
    assert_goes_on(rig)


def test_a_failing_path_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = started()
    before = state(rig)
    calls = list[int]()

    def record(this: Path, event: str, row: int, eta: float) -> None:
        calls.append(row)
        if len(calls) == 5:
            raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(Path, "_record", record)
        with pytest.raises(Broken):
            rig.change(X[80:], Y[80:], remove=range(20), method="path", trace=True)
    assert_same(state(rig), before)
    assert_goes_on(rig)


class Fuse:
    """A kernel of the user's own that blows after a number of calls."""

    def __init__(self) -> None:
        self.left = 10**9

    def __call__(self, A: Any, B: Any) -> npt.NDArray[np.float64]:
        self.left -= 1
        if self.left < 0:
            raise Broken
        return problems.gram("rbf", A, B, gamma=0.3)


@pytest.mark.parametrize("batch", [25, 400])
def test_a_kernel_that_fails_at_any_call_changes_nothing(batch: int) -> None:
    """And goes on failing while the solver restores."""
    fuse = Fuse()
    rig = started(make_kernel(fuse, gamma=1.0, degree=3, coef0=0.0, X=X))
    rng = np.random.default_rng(1)
    new = rng.standard_normal((batch, 4))
    labels = np.where(new[:, 0] > 0.0, 1.0, -1.0)
    before = state(rig)
    calls = 0
    while True:
        fuse.left = calls
        try:
            rig.change(new, labels, remove=range(0, 60, 2))
        except Broken:
            fuse.left = 10**9
            assert_same(state(rig), before)
            calls += 1
        else:
            break
    assert calls > 0
    fuse.left = 10**9
    assert rig.violation() <= 1e-12


def test_an_indefinite_batch_is_refused() -> None:
    def kernel(A: Any, B: Any) -> npt.NDArray[np.float64]:
        return np.asarray(A @ B.T - 10.0 * A[:, 3:] @ B[:, 3:].T)

    flat = X.copy()
    flat[:, 3] = 0.0
    rig = Rig(make_kernel(kernel, gamma=1.0, degree=3, coef0=0.0, X=flat), C=1.0)
    rig.change(flat[:80], Y[:80])
    before = state(rig)
    with pytest.raises(IndefiniteKernelError):
        rig.change(X[80:], Y[80:])
    assert_same(state(rig), before)


# ---------------------------------------------------------------------------------------------
# Not optimal


def test_an_impossible_sum_is_said_and_nothing_has_changed() -> None:
    rig = started()
    before = state(rig)
    with (
        pytest.raises(NotOptimalError, match="as it was before"),
        rig.solver.changing() as step,
    ):
        step.add(None)
        step.solve({PAIR: RowChange(d=1e9)})
    assert_same(state(rig), before)
    assert_goes_on(rig)


def test_a_tolerance_below_rounding_ends_at_rounding() -> None:
    rig = started()
    rig.solver.tol = 1e-25
    rig.change(X[80:], Y[80:])
    verdict = rig.machine.verdict
    assert verdict.ok and verdict.residual <= verdict.allowed < 1e-12
    assert verdict.rounding == pytest.approx(verdict.allowed)


def test_the_judge_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that calls itself satisfied too early is not believed."""
    rig = started()
    before = state(rig)
    with monkeypatch.context() as patch:
        patch.setattr("adiabat.engine.run.Run.satisfied", lambda run: True)
        patch.setattr("adiabat.engine.run.Run.solve", lambda run, place: None)
        patch.setattr("adiabat.engine.path.Path.follow", lambda path: None)
        with pytest.raises(NotOptimalError, match="residual"):
            rig.change(X[80:], Y[80:])
    assert_same(state(rig), before)


# ---------------------------------------------------------------------------------------------
# What a successful update does


def test_commit_says_where_everyone_is() -> None:
    rig = started()
    rig.change(X[80:], Y[80:], remove=[3, 79, 17])
    names = rig.names
    np.testing.assert_array_equal(rig.solver.samples.data[rig.position[names]], X[names])
    rows = rig.names_of_rows()
    assert sorted(rows.tolist()) == names.tolist()
    np.testing.assert_array_equal(rig.machine.t, Y[rows])


def test_verdicts_are_those_of_the_oracle() -> None:
    rig = started()
    for method in ("exchange", "path", "auto"):
        rig.change(remove=rig.names[:5], method=method)
        assert rig.machine.verdict.residual == pytest.approx(rig.violation(), abs=1e-13)
        assert 0.0 <= rig.machine.verdict.gap <= 1e-12


def test_nothing_to_do() -> None:
    rig = started()
    before = state(rig)
    with rig.solver.changing() as step:
        step.add(None)
        step.solve({})
        step.commit()
    assert (step.info.solver, step.info.rounds, step.info.breakpoints) == ("none", 0, 0)
    assert_same(state(rig), before)


def test_several_machines_share_their_samples() -> None:
    """Three classes, three pairs; one class goes, and its machines retire."""
    solver, target = Solver(rbf(), 1e-9), np.arange(90) % 3
    formulation = CSVC(2.0, {0: "a", 1: "b", 2: "c"})

    with solver.changing() as step:
        new, changes = step.add(X[:90]), {}
        for pair in formulation.machines(target):
            part = formulation.rows(pair, target, np.ones(90), np.ones(90))
            changes[pair] = RowChange(
                add_at=new[part.sample], add_t=part.t, add_lo=part.lo, add_hi=part.hi
            )
        step.solve(changes)
        step.commit()
    assert set(solver.machines) == {(0, 1), (0, 2), (1, 2)}
    K = solver.samples.block(np.arange(90), np.arange(90))
    for pair, machine in solver.machines.items():
        at = machine.at
        assert set(target[at]) == set(pair)
        part = K[np.ix_(at, at)], machine.t, machine.lo, machine.hi
        assert batch_qp.kkt_violation(*part, 0.0, machine.u, machine.b) <= 1e-12
    kept = solver.machines[0, 1].u.copy()
    gone = np.flatnonzero(target == 2)
    with solver.changing() as step:
        step.add(None)
        where = np.arange(solver.samples.n)
        old, now = step.commit(gone, {(0, 2), (1, 2)})
        where[old] = now
    assert set(solver.machines) == {(0, 1)} and solver.samples.n == 60
    machine = solver.machines[0, 1]
    np.testing.assert_array_equal(machine.u, kept)
    stays = np.flatnonzero(target != 2)
    np.testing.assert_array_equal(solver.samples.data[where[stays]], X[:90][stays])


def test_a_machine_set_up_from_its_snapshot_goes_on_identically() -> None:
    rig, twin = started(), started()
    snapshot = rig.machine.snapshot()
    rig.solver.restore_machine(PAIR, snapshot)
    assert rig.machine.verdict.residual <= 1e-12
    for each in (rig, twin):
        each.change(X[80:], Y[80:], remove=range(0, 40, 3))
    np.testing.assert_allclose(rig.machine.u, twin.machine.u, atol=1e-10)


def test_what_cannot_be_reached_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample, what it misses, and the remedy."""
    rig = started()
    before = state(rig)
    with monkeypatch.context() as patch:
        patch.setattr("adiabat.engine.run.Run.satisfied", lambda run: True)
        patch.setattr("adiabat.engine.run.Run.solve", lambda run, place: None)
        patch.setattr("adiabat.engine.path.Path.follow", lambda path: None)
        with pytest.raises(NotOptimalError, match=r"residual .* allowed.*Scale the fea") as refused:
            rig.change(X[80:], Y[80:])
    assert 0 <= refused.value.sample < len(X)
    assert_same(state(rig), before)


def test_the_word_for_what_ran() -> None:
    assert SolveInfo().solver == "none"
    assert SolveInfo(methods={"path", "exchange"}).solver == "exchange+path"


def test_columns_of_samples_without_weight_are_released() -> None:
    rng = np.random.default_rng(2)
    many = rng.standard_normal((900, 4)) + np.where(rng.random((900, 1)) < 0.5, -2.0, 2.0)
    rig = Rig(rbf(), C=5.0)
    rig.change(many, np.sign(many.sum(axis=1)))
    gram = rig.solver.samples.gram
    weighty = np.count_nonzero(rig.machine.u)
    assert weighty <= np.count_nonzero(gram.owner >= 0) <= weighty + max(64, weighty // 2)


def test_a_machine_is_set_up_again_from_weights_that_fill_panels() -> None:
    """Most rows are at a bound, outside MARGIN, and their columns come with the judge's look."""
    rng = np.random.default_rng(4)
    many = rng.standard_normal((400, 4))
    rig = Rig(rbf(), C=0.1)
    rig.change(many, np.where(rng.random(400) < 0.5, -1.0, 1.0))
    saved = rig.machine.snapshot()
    assert np.count_nonzero(saved.u) > 2 * PANEL_WIDTH > 3 * len(saved.margin)
    again = Solver(rbf(), 1e-9)
    again.samples.add(rig.solver.samples.data.copy())
    again.restore_machine(PAIR, saved)
    np.testing.assert_allclose(again.machines[PAIR].r, saved.r, atol=1e-12)
    assert again.machines[PAIR].verdict.residual <= 1e-12


# ---------------------------------------------------------------------------------------------
# Interrupts


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A SIGINT handler that notes and does nothing else."""
    signals: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGINT, previous)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_until_the_block_is_through(heard: list[int]) -> None:
    handler = signal.getsignal(signal.SIGINT)
    with deferred_interrupts():
        interrupt()
        interrupt()
        assert heard == []
    assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is handler


def test_without_an_interrupt_nothing_is_delivered(heard: list[int]) -> None:
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(Broken), deferred_interrupts():
        raise Broken
    assert heard == [] and signal.getsignal(signal.SIGINT) is handler


def test_blocks_within_blocks(heard: list[int]) -> None:
    with deferred_interrupts():
        with deferred_interrupts():
            interrupt()
        assert heard == []
    assert heard == [signal.SIGINT]


def test_other_threads_are_let_be() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with deferred_interrupts():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("action, code", [("SIG_DFL", -signal.SIGINT), ("SIG_IGN", 0)])
def test_the_default_action_and_no_action_are_respected(action: str, code: int) -> None:
    program = f"""
import os
import signal
from adiabat.engine.interrupts import deferred_interrupts
signal.signal(signal.SIGINT, signal.{action})
with deferred_interrupts():
    signal.raise_signal(signal.SIGINT)
    print("through", flush=True)
print("on", flush=True)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == code, run.stderr
    assert run.stdout.split() == (["through", "on"] if code == 0 else ["through"])


@interruptible()
def test_an_interrupt_does_not_cut_a_commit_in_two() -> None:
    rig = started()
    nobody = np.empty(0, dtype=np.int64)
    with pytest.raises(KeyboardInterrupt), rig.solver.changing() as step:
        new = step.add(X[80:])
        step.solve({PAIR: rig.row_change(new, Y[80:], np.ones(40), nobody)})
        with deferred_interrupts():
            assert not any(map(len, step.commit()))
            interrupt()
            rig.y = np.concatenate([rig.y, Y[80:]])
            rig.weight = np.ones(len(rig.y))
            rig.position = np.concatenate([rig.position, new])
    assert len(rig.names) == rig.solver.samples.n == rig.machine.n == 120
    assert rig.violation() <= 1e-12


def test_a_commit_that_fails_lets_blas_go(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = started()

    def fail(*_: Any) -> None:
        raise Broken

    monkeypatch.setattr(Solver, "_commit", fail)
    with pytest.raises(Broken):
        rig.change(X[80:], Y[80:])
    assert blas_threads.n_holds() == 0


@interruptible()
def test_an_interrupt_does_not_cut_a_restore_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = started()
    before = state(rig)
    original = Solver._restore_machines

    def restore(this: Solver, *arguments: Any) -> None:
        interrupt()
        original(this, *arguments)

    monkeypatch.setattr(Solver, "_restore_machines", restore)
    with pytest.raises(KeyboardInterrupt), rig.solver.changing() as step:
        step.add(X[80:])
        raise Broken
    assert_same(state(rig), before)


def interrupted_at(line: int) -> Any:
    """Ctrl-C at a line of the engine, but for the file that holds a lock."""
    return interrupt_at_line(line, PACKAGE / "engine", other_than=("threads.py",))


def test_an_interrupt_at_any_line_is_all_or_nothing() -> None:
    """Every ninth line of an update, and every line around its commit."""

    def update(rig: Rig) -> None:
        rig.change(X[80:90], Y[80:90], remove=range(0, 30, 2))

    rig, outcomes = started(), set[str]()
    before = state(rig)
    with interrupted_at(NEVER) as lines:
        update(rig)
    rig, count = started(), lines[0]
    for line in [*range(1, count, 9), *range(7 * count // 8, count)]:
        with pytest.raises(KeyboardInterrupt), interrupted_at(line):
            update(rig)
        if rig.solver.samples.n == 80:
            outcomes.add("nothing")
            assert_same(state(rig), before)
        else:
            outcomes.add("all")
            assert len(rig.names) == rig.solver.samples.n == rig.machine.n == 75
            assert rig.violation() <= 1e-12
            rig = started()
    assert outcomes == {"all", "nothing"}


def test_columns_of_many_new_machines_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To write a few columns costs as much as to write many: memory is read row by row."""
    claimed: list[set[int]] = []
    claim = Samples._claim

    def counted(self: Samples, positions: Any) -> None:
        claimed.append(set(positions.tolist()))
        claim(self, positions)

    monkeypatch.setattr(Samples, "_claim", counted)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 80)
    model = SVC(C=10.0, gamma=0.5).fit(rng.standard_normal((320, 3)) + y[:, None] % 2, y)
    support = set(model.support_.tolist())
    assert len(model._model.solver.machines) == 6
    assert len(support & claimed[0]) >= 0.9 * len(support)
