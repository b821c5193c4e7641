# SPDX-License-Identifier: BSD-3-Clause
"""A coarse step in which most rows get weight asks for all kernel values at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons

from adiabat import SVC
from adiabat.engine import exchange


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Of every coarse step how many rows there are, and up to how many ask at once."""
    found: list[tuple[int, int]] = []

    class Pairs(exchange.Pairs):
        def __init__(self, r: Any, *given: Any) -> None:
            super().__init__(r, *given)
            found.append((len(r), given[7]))

    monkeypatch.setattr(exchange, "Pairs", Pairs)
    return found


def test_where_most_rows_get_weight(few: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1600, 20)), rng.integers(0, 2, 1600)
    model = SVC(gamma=0.05, C=0.1).fit(X, y)
    assert len(model.support_) > 1200
    assert few == [(200, exchange.FEW_AT_ONCE), (1600, 1600)]
    assert model.certificate().ok


def test_where_few_rows_get_weight(few: list[tuple[int, int]]) -> None:
    X, y = make_moons(1600, noise=0.3, random_state=0)
    SVC(gamma=1.0, C=10.0).fit(X, y)
    assert few == [(200, exchange.FEW_AT_ONCE), (1600, exchange.FEW_AT_ONCE)]
