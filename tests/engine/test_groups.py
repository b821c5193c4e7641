# SPDX-License-Identifier: BSD-3-Clause
"""Samples of the same machines are one group, whatever comes, goes or is corrected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from adiabat import SVC

X, Y = make_blobs(120, 3, centers=6, cluster_std=4.0, random_state=0)


def assert_groups_are_classes(model: Any) -> None:
    """Samples have the same group if they are in the same machines, which are those of a class."""
    solver = model._model.solver
    machines: list[list[Any]] = [[] for _ in range(solver.samples.n)]
    for key, machine in solver.machines.items():
        for position in machine.at.tolist():
            machines[position].append(key)
    assert len(solver.samples.group) == solver.samples.n
    pairs = set(zip(solver.samples.group.tolist(), map(tuple, machines), strict=True))
    assert len(pairs) == len({group for group, _ in pairs}) == len(model.classes_)


def test_groups_are_classes() -> None:
    model = SVC(gamma=0.1, C=1.0).fit(X, Y)
    assert_groups_are_classes(model)
    model.forget(model.ids_[:30:2])
    assert_groups_are_classes(model)
    model.partial_fit(X[:30:2], Y[:30:2])
    assert_groups_are_classes(model)
    model.revise(model.ids_[:9], y=(Y[1:10] + 1) % 6)
    assert_groups_are_classes(model)


def test_a_refused_update_leaves_groups_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SVC(gamma=0.1, C=1.0).fit(X, Y)
    samples = model._model.solver.samples
    before = samples.group.copy()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(type(model._model.solver), "attempt", _fail)
        model.update(X[:5] + 1.0, Y[:5], remove=model.ids_[:10])
    np.testing.assert_array_equal(samples.group, before)
    model.forget(model.ids_[:10])
    assert_groups_are_classes(model)


def _fail(*_: object) -> None:
    raise MemoryError


def test_few_machines_have_no_groups() -> None:
    for classes in (2, 3):
        model = SVC(gamma=0.1).fit(X[classes > Y], Y[classes > Y])
        assert model._model.solver.samples.group is None
    model.partial_fit(X[Y >= 3], Y[Y >= 3])  # there are six by now
    assert_groups_are_classes(model)
