# SPDX-License-Identifier: BSD-3-Clause
"""An update that fails at any step leaves the model as it was, and the model goes on.

Three ways to fail: an exception at the k-th call of an inner function; a kernel of the user's own
that raises at its k-th call; and Ctrl-C at the k-th line of the package that is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adiabat import SVC
from adiabat._core import blas_threads
from adiabat.engine.exchange import Exchange
from adiabat.engine.machine import Machine
from adiabat.engine.path import Path
from adiabat.engine.samples import Samples
from adiabat.engine.solver import Solver
from adiabat.engine.threads import BlasHold

from faults import NEVER, failing, injected, interrupt_at_line
from laws.compare import assert_is_optimum, exact_state
from oracles.operations import Roster

RNG = np.random.default_rng(8)
N = 40
X = RNG.standard_normal((N + 8, 3))
Y = np.arange(N + 8) % 3
Y[RNG.random(N + 8) < 0.4] = 1
NEW = slice(N, N + 8)

ACTS: dict[str, Callable[[SVC], Any]] = {
    "add": lambda model: model.partial_fit(X[NEW], Y[NEW]),
    "forget": lambda model: model.forget([1, 5, 9, 13, 22]),
    "both": lambda model: model.update(X[NEW], Y[NEW], remove=[2, 3, 30, 39]),
    "labels": lambda model: model.revise([4, 6, 8], y=(Y[[4, 6, 8]] + 1) % 3),
    "features": lambda model: model.revise([4, 6, 8], X=X[[40, 41, 42]]),
    "weights": lambda model: model.revise([4, 6, 8, 10], sample_weight=[0.0, 0.5, 2.0, 3.0]),
    "new class": lambda model: model.partial_fit(X[NEW], np.full(8, 9)),
    "a class goes": lambda model: model.forget(np.flatnonzero(Y[:N] == 2)),
    "refit": lambda model: model.fit(X[:20], Y[:20]),
}
SOLVERS = ["exchange", "path"]


def fresh(solver: str, **params: Any) -> SVC:
    return SVC(C=5.0, gamma=0.4, solver=solver, **params).fit(X[:N], Y[:N])


def goes_on(model: SVC) -> None:
    """The state that was restored is a whole one: an update from it is exact."""
    model.update(X[NEW], Y[NEW], remove=[0, 7])
    stays = np.array([k for k in range(N + 8) if k not in (0, 7)])
    assert_is_optimum(model, Roster(X[stays], Y[stays], np.ones(len(stays)), stays), X[:5])


INNER = [
    (Samples, "add"),
    (Samples, "_store_rows"),
    (Samples, "_claim"),
    (Samples, "view"),
    (Samples, "slots"),
    (Samples, "between"),
    (Samples, "among"),
    (Machine, "begin"),
    (Machine, "kernel"),
    (Machine, "coefficients"),
    (Machine, "aims"),
    (Exchange, "turn_to"),
    (Exchange, "_settle"),
    (Exchange, "_survey"),
    (Exchange, "_set_accuracy"),
    (Exchange, "_exchange"),
    (Exchange, "_join"),
    (Exchange, "descend"),
    (Exchange, "_seed"),
    (Path, "_assign"),
    (Path, "_motion"),
    (Path, "_run"),
    (Path, "_arrive"),
    (Solver, "refresh"),
    (Machine, "update_verdict"),
]


@pytest.mark.rotates(9)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("act", ACTS)
def test_an_exception_at_any_inner_call_changes_nothing(act: str, solver: str) -> None:
    model = fresh(solver)
    before = exact_state(model, X)
    failed = 0
    for owner, name in INNER:
        for k in (1, 2, 3, 5, 8, 13, 21, 34):
            error = injected(k)
            with failing(owner, name, k, error) as calls:
                try:
                    ACTS[act](model)
                except (KeyboardInterrupt, MemoryError) as raised:
                    assert raised is error
                    failed += 1
            if calls[0] >= k:  # it was raised, so nothing may have happened
                assert exact_state(model, X) == before, f"{owner.__name__}.{name}, call {k}"
            else:
                model = fresh(solver)
                before = exact_state(model, X)
                break
    assert failed > 10 or act == "a class goes"  # whose other machines have nothing to solve
    goes_on(model)


def test_a_kernel_that_raises_at_any_call_changes_nothing() -> None:
    left = [10**9]

    def kernel(A: Any, B: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("injected")
        return np.exp(-0.4 * ((A[:, None] - B[None]) ** 2).sum(-1))

    model = SVC(C=5.0, kernel=kernel).fit(X[:N], Y[:N])
    for act in ("add", "forget", "both", "features", "a class goes"):
        before = exact_state(model, X)
        for k in range(1, 60):
            left[0] = k
            try:
                ACTS[act](model)
            except RuntimeError:
                left[0] = 10**9
                assert exact_state(model, X) == before
            else:
                break
        left[0] = 10**9
        assert model.certificate().ok
        model = SVC(C=5.0, kernel=kernel).fit(X[:N], Y[:N])


@pytest.mark.rotates(9)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("act", ACTS)
def test_an_interrupt_at_any_line_leaves_before_or_after(act: str, solver: str) -> None:
    done = fresh(solver)
    with interrupt_at_line(NEVER) as lines:
        ACTS[act](done)
    model = fresh(solver)
    before = exact_state(model, X)
    # The last lines, where the new state is put in place, densely; the others by a stride.
    last = lines[0]
    places = sorted({*range(1, last, 1 + last // 25), *range(max(1, last - 45), last)})
    seen = set()
    for k in places:
        interrupted = False
        try:
            with interrupt_at_line(k):
                ACTS[act](model)
        except KeyboardInterrupt:
            interrupted = True
        restored = exact_state(model, X) == before
        seen.add((interrupted, restored))
        if not restored:
            assert_carried_out(model, done, f"line {k} of {last}")
            model = fresh(solver)
            before = exact_state(model, X)
    assert (True, True) in seen
    goes_on(model)


def test_an_interrupt_at_any_line_of_holding_blas_lets_it_go() -> None:
    k, through = 0, False
    while not through:
        k += 1
        blas = BlasHold()
        try:
            with interrupt_at_line(k) as lines:
                blas.take()
                through = lines[0] < k
        except KeyboardInterrupt:
            pass
        blas.give_back()
        assert blas_threads.n_holds() == 0, f"line {k}"
    assert k > 2


def assert_carried_out(model: SVC, done: SVC, where: str) -> None:
    """The model is the one after the update, in every respect; up to rounding, as it may have been
    restored before, its factors built anew."""
    assert model.ids_.tolist() == done.ids_.tolist(), where
    assert model.classes_.tolist() == done.classes_.tolist(), where
    np.testing.assert_allclose(
        model.decision_function(X), done.decision_function(X), rtol=0.0, atol=1e-10, err_msg=where
    )
    for name in ("n_added", "n_removed", "n_revised"):
        assert getattr(model.last_update_, name) == getattr(done.last_update_, name), where
    assert model.last_update_.certificate.n_samples == len(done.ids_), where
    assert model.certificate().ok, where
