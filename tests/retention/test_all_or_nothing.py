# SPDX-License-Identifier: BSD-3-Clause
"""A batch and what the policy lets go are one call: it is before or after, never between."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from adiabat import SVC
from adiabat.engine.machine import Machine
from adiabat.engine.solver import Solver
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.retention import Budget, Policy, Reserve, Support, Window

from faults import failing, injected, interruptible
from laws.compare import exact_state

RNG = np.random.default_rng(3)
X = RNG.standard_normal((70, 3))
Y = (X[:, 0] + 0.5 * RNG.standard_normal(70) > 0.0).astype(int) + (X[:, 1] > 1.0)
POLICIES = [Support(), Reserve(0.2), Budget(30), Window(40)]


def fresh(policy: Policy | None) -> SVC:
    return SVC(C=3.0, gamma=0.5, retain=policy).fit(X[:50], Y[:50])


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize(
    ("owner", "name"),
    [(Transaction, "solve"), (Machine, "begin"), (Solver, "refresh"), (Machine, "update_verdict")],
)
def test_a_failure_in_any_step_is_as_if_nothing_had_been_tried(
    policy: Policy, owner: Any, name: str
) -> None:
    model = fresh(policy)
    before, n_seen = exact_state(model, X), model.certificate().n_seen
    failed = 0
    for k in range(1, 12):
        with failing(owner, name, k, injected(k)) as calls:
            try:
                model.update(X[50:], Y[50:])
            except (KeyboardInterrupt, MemoryError):
                failed += 1
        if calls[0] < k:
            break
        assert exact_state(model, X) == before, k
        assert model.certificate().n_seen == n_seen
    else:  # every one failed: it is still a whole model
        model.update(X[50:], Y[50:])
    # rows that go without weight need no residual anew
    assert failed >= (1 if isinstance(policy, Window) or name == "refresh" else 2)
    done = fresh(policy)
    done.update(X[50:], Y[50:])
    assert model.ids_.tolist() == done.ids_.tolist()
    np.testing.assert_allclose(model.decision_function(X), done.decision_function(X), atol=1e-9)


def test_the_first_batch_is_as_if_it_had_not_been_tried() -> None:
    for verb in ("fit", "partial_fit"):
        model = SVC(retain=Breaks("raise"))
        with pytest.raises(ArithmeticError):
            getattr(model, verb)(X, Y)
        assert sorted(vars(model)) == sorted(model.get_params())
    refitted = fresh(None).set_params(retain=Breaks("raise"))
    before = exact_state(refitted, X)
    with pytest.raises(ArithmeticError):
        refitted.fit(X[:20], Y[:20])
    assert exact_state(refitted, X) == before


class Breaks(Policy):
    """Fails when it is asked, by an exception of its own or by Ctrl-C."""

    def __init__(self, how: str) -> None:
        self.how = how

    def leaving(self, held: Any) -> Any:
        if self.how == "raise":
            raise ArithmeticError("injected")
        signal.raise_signal(signal.SIGINT)
        return ()


@pytest.mark.parametrize("how", ["raise", "interrupt"])
def test_a_policy_that_fails_changes_nothing(how: str) -> None:
    model = fresh(None).set_params(retain=Breaks(how))
    before = exact_state(model, X)
    with interruptible(), pytest.raises((ArithmeticError, KeyboardInterrupt)):
        model.update(X[50:], Y[50:], remove=[1, 2])
    assert exact_state(model, X) == before
    model.set_params(retain=None).update(X[50:], Y[50:], remove=[1, 2])
    assert model.certificate().ok and len(model.ids_) == 68
