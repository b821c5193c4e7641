# SPDX-License-Identifier: BSD-3-Clause
"""A change of samples together with those that the policy then removes.

A policy that looks at age alone is applied in the same solve (KT09 §4.2). One that looks at the
solution needs it first: the batch is one part of the transaction, each removal another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.transaction import Transaction
from adiabat.retention.policy import Held, Policy
from adiabat.typing import BoolArray, FloatArray, IntArray


def retain(
    step: Transaction,
    model: Model,
    change: SampleChange,
    policy: Policy,
    method: str,
    trace: bool,
) -> int:
    """Carry out a change, then remove what the policy names; how many those are."""
    step.save(model)
    step.solve(model, change, method, trace)
    step.commit_part()
    n_new, n_left = len(change.ids), 0
    while True:
        n = len(model)
        held = Held(
            n, n_new, lambda: model.ledger.ids, _solution(model), model.notes, model.ledger.n_seen
        )
        places = _checked(policy, held)
        if len(places):
            step.solve(model, SampleChange(removed=places), method, trace)
            step.commit_part()
            n_left += len(places)
            n_new -= int(np.sum(places >= n - n_new))
        if len(places) == 0 or policy.timing != "in turn":
            return n_left


def with_leaving(model: Model, change: SampleChange, policy: Policy) -> tuple[SampleChange, int]:
    """The change with what leaves in the same step, and how many that are.

    New samples among them are not even learned.
    """
    n, n_new = len(model), len(change.ids)
    stays = np.ones(n, dtype=bool)
    stays[change.removed] = False
    staying = np.flatnonzero(stays)

    def ids() -> npt.NDArray[Any]:
        every = np.empty(len(staying) + n_new, dtype=object)
        every[:] = [*model.ledger.ids[staying].tolist(), *change.ids]
        return every

    places = _checked(policy, Held(len(staying) + n_new, n_new, ids))
    if len(places) == 0:
        return change, 0
    old = staying[places[places < len(staying)]]
    learned = np.ones(n_new, dtype=bool)
    learned[places[places >= len(staying)] - len(staying)] = False
    removed = np.concatenate([change.removed, old])
    if learned.all():
        return change._replace(removed=removed), len(places)
    X = change.X[np.flatnonzero(learned)]
    if model.kernel.name == "precomputed":  # a column for each sample held, then for each new one
        X = X[:, np.concatenate([np.ones(n, dtype=bool), learned])]
    narrowed = change._replace(
        ids=[name for name, stay in zip(change.ids, learned, strict=True) if stay],
        passing=[name for name, stay in zip(change.ids, learned, strict=True) if not stay],
        X=X if learned.any() else None,
        target=change.target[learned],
        weight=change.weight[learned],
        removed=removed,
    )
    return narrowed, len(places)


def _checked(policy: Policy, held: Held) -> IntArray:
    """The places that a policy names, each once; ValueError if they are none."""
    named = policy.leaving(held)
    try:
        values = np.asarray(list(named))
    except TypeError:
        values = np.asarray(named)
    sound = values.ndim == 1 and (values.size == 0 or values.dtype.kind in "iu")
    if sound and values.size:
        inside = 0 <= values.min() and values.max() < held.n
        sound = inside and len(np.unique(values)) == len(values)
    if not sound:
        raise ValueError(
            f"retain={policy!r}: leaving returned {named!r}; it must return places of samples, "
            f"integers from 0 to {held.n - 1}, each at most once"
        )
    return values.astype(np.int64)


def _solution(model: Model) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(weight, slack, decided) of the samples, in the order of learning."""
    n = model.solver.samples.n
    weight, slack = np.zeros(n), np.full(n, np.inf)
    decided = np.zeros(n, dtype=bool)
    for _, machine in model.machines:
        carried = np.bincount(machine.at, machine.u, minlength=n)
        np.maximum(weight, np.abs(carried), out=weight)
        # g = y r: a row that could rise from 0 is held there by r >= 0, one that could fall by -r
        g = np.where(machine.hi > 0.0, machine.r, np.where(machine.lo < 0.0, -machine.r, np.inf))
        np.minimum.at(slack, machine.at, g)
        # where nobody carries weight, as with one class of weight 0, nothing is decided
        decided[machine.at] |= bool(machine.u.any())
    at = model.position
    return weight[at], slack[at], decided[at]
