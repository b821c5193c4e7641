# SPDX-License-Identifier: BSD-3-Clause
"""A machine on its way: when it has arrived."""

from __future__ import annotations

import numpy as np
import pytest

import adiabat
from adiabat.engine.run import Run

EPSILON = float(np.finfo(np.float64).eps)


def worst_in_roundings(seed: int) -> float:
    """The largest violation in a stream of revisions, rows tied everywhere and weights huge."""
    rng = np.random.default_rng(seed)
    X = np.eye(4)[rng.integers(0, 4, (50, 3))].reshape(50, 12)
    model = adiabat.SVC(C=1e6, kernel="linear").fit(X, rng.integers(0, 2, 50))
    worst = 0.0
    for _ in range(12):
        ids = rng.choice(model.ids_, 5, replace=False)
        model.revise(ids, y=rng.integers(0, 2, 5))
        rounding = EPSILON * 3.0 * np.abs(model.dual_coef_).sum()
        worst = max(worst, model.certificate().residual / rounding)
    return worst


@pytest.mark.parametrize("seeds", [range(10), range(10, 20), range(20, 30)])
def test_rows_that_all_but_tie_are_wrong_by_no_more_than_a_rounding(seeds: range) -> None:
    assert max(worst_in_roundings(seed) for seed in seeds) <= 2.0


def test_it_would_be_many_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such rows are in these streams: were it not for `_refine` they would show."""
    monkeypatch.setattr(Run, "_refine", lambda *_: False)
    assert max(worst_in_roundings(seed) for seed in range(30)) > 8.0
