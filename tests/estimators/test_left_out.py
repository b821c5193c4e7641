# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of regression, one class and the sphere equals forgetting each sample."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from adiabat import SVDD, SVR, OneClassSVM

rng = np.random.default_rng(5)
CLOUD = rng.normal(size=(40, 3))
DATA = {
    "cloud": CLOUD,
    "duplicates": np.repeat(CLOUD[:20], 2, axis=0),
    "integers": np.round(CLOUD),
    "few": CLOUD[:3],
    "one": CLOUD[:1],
}
MACHINES = {
    "svr": SVR(C=5.0, epsilon=0.2, gamma=0.5),
    "svr linear": SVR(C=1.0, epsilon=0.0, kernel="linear"),
    "one class": OneClassSVM(nu=0.3, gamma=0.5),
    "one class, whole": OneClassSVM(nu=0.5, kernel="linear"),
    "sphere": SVDD(C=0.15, gamma=0.5),
    "ball": SVDD(C=1.0, kernel="linear"),
    "sphere below 1 / C": SVDD(C=0.02, gamma=0.5),
}


def value(model: Any, x: np.ndarray) -> float:
    if not len(model._model):
        return np.nan
    return float((model.predict if isinstance(model, SVR) else model.decision_function)(x)[0])


@pytest.mark.rotates(4)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MACHINES)
def test_it_equals_forgetting_each(name: str, data: str) -> None:
    X = DATA[data]
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    weight = np.where(np.arange(len(X)) % 7 == 3, 0.5, 1.0)
    model = copy.deepcopy(MACHINES[name]).partial_fit(X, y, sample_weight=weight)
    before = [value(model, X[[i]]) for i in range(len(X))]
    found = model.leave_one_out()
    assert [value(model, X[[i]]) for i in range(len(X))] == before
    assert found.ids.tolist() == model.ids_.tolist()
    assert "removals" in str(found)
    values = found.prediction if isinstance(model, SVR) else found.decision
    for i in range(len(X)):
        expected = value(copy.deepcopy(model).forget([i]), X[[i]])
        if np.isfinite(expected):
            assert values[i] == pytest.approx(expected, abs=1e-8)
    if isinstance(model, SVR):
        np.testing.assert_array_equal(found.residual, found.prediction - y)
        assert found.mean_absolute_error == pytest.approx(np.mean(np.abs(values - y)))
    else:
        assert found.error_rate == pytest.approx(np.mean(found.prediction == -1))


@pytest.mark.parametrize("name", ["svr", "one class", "sphere"])
def test_in_parallel_it_is_the_same(name: str) -> None:
    model = copy.deepcopy(MACHINES[name]).fit(CLOUD, CLOUD[:, 0])
    calls: list[tuple[int, int]] = []
    alone = model.leave_one_out(progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (alone.n_removals, alone.n_removals)
    together = model.leave_one_out(n_jobs=2)
    np.testing.assert_allclose(together.decision, alone.decision, atol=1e-10)


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_learned_is_refused(name: str) -> None:
    with pytest.raises(NotFittedError):
        copy.deepcopy(MACHINES[name]).leave_one_out()
