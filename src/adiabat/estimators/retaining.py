# SPDX-License-Identifier: BSD-3-Clause
"""A change of samples together with what the policy then lets go: all of it, or nothing.

A policy that looks at age alone is carried out in the same step (KT09 §4.2). One that looks at the
solution needs it first: the batch is one step, each removal another, and an exception anywhere
between the first and the last brings back the model from before the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.engine.interrupts import deferred_interrupts
from adiabat.engine.solver import Outcome
from adiabat.estimators.change import Change
from adiabat.estimators.model import Model
from adiabat.estimators.persistence import pack, unpack
from adiabat.formulations import Formulation
from adiabat.retention.policy import Held, Policy

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Announce = Callable[[Outcome, int], None]


def carry_out(
    model: Model,
    change: Change,
    formulation: Formulation,
    policy: Policy | None,
    method: str,
    trace: bool,
    announce: Announce,
) -> None:
    """Carry out a change and the policy; `announce` is given how many samples it let go."""
    gone = 0
    if policy is not None and change.ids and policy.timing == "together":
        change, gone = _with_leaving(model, change, policy)
    if policy is None or not change.ids or policy.timing == "together":
        model.change(change, formulation, method, trace, lambda done: announce(done, gone))
        return
    total = Outcome()
    with _undone_on_failure(model):
        model.change(change, formulation, method, trace, lambda done: _absorb(total, done))
        n_new = len(change.ids)
        while True:
            n = len(model)
            held = Held(
                n, n_new, lambda: model.ledger.ids, _solution(model), model.notes,
                model.ledger.n_seen,
            )  # fmt: skip
            places = _checked(policy, held)
            if len(places) == 0:
                break
            removal = Change(ids=[], removed=places)
            model.change(
                removal, model.formulation, method, trace, lambda done: _absorb(total, done)
            )
            gone += len(places)
            n_new -= int(np.sum(places >= n - n_new))
            if policy.timing != "in turn":
                break
        with deferred_interrupts():
            announce(total, gone)


def _with_leaving(model: Model, change: Change, policy: Policy) -> tuple[Change, int]:
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
        return replace(change, removed=removed), len(places)
    X = change.X[np.flatnonzero(learned)]
    if model.kernel.name == "precomputed":  # a column for each sample held, then for each new one
        X = X[:, np.concatenate([np.ones(n, dtype=bool), learned])]
    narrowed = replace(
        change,
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


def _absorb(total: Outcome, step: Outcome) -> None:
    """Count one step's work with that of the steps before."""
    total.rounds += step.rounds
    total.breakpoints += step.breakpoints
    total.fallbacks += step.fallbacks
    total.methods |= step.methods
    for key, breakpoints in step.traces.items():
        total.traces.setdefault(key, []).extend(breakpoints)


class _undone_on_failure:
    """Bring a model back to where it was if the block fails, however many steps it has made.

    A copy of rows and weights is taken, which costs little beside a step where little is kept.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def __enter__(self) -> None:
        self._version = self._model.version
        self._before = pack(self._model)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and self._model.version != self._version:
            with deferred_interrupts():
                former = unpack(self._before)
                former.version = self._version
                self._model.__dict__.update(former.__dict__)
