# SPDX-License-Identifier: BSD-3-Clause
"""A window over a stream of few different rows, as KDD Cup 1999 is; see benchmarks/, too."""

from __future__ import annotations

import numpy as np

from adiabat import SVC, OneClassSVM
from adiabat.retention import Window


def connections(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts and one-hot symbols, most rows with copies, the classes in long runs."""
    rng = np.random.default_rng(6)
    counts = rng.poisson(1.0, (n, 2))
    symbols = np.eye(3)[rng.integers(0, 3, n)]
    attack = (np.arange(n) // 150) % 2 * (rng.random(n) < 0.8)
    counts[:, 0] += 3 * attack
    return np.hstack([np.log1p(counts), symbols]), np.where(attack, "attack", "normal")


def test_the_certificate_holds_along_a_window() -> None:
    X, y = connections(800)
    model = SVC(C=10.0, gamma=0.2, retain=Window(80)).fit(X[:80], y[:80])
    novel = OneClassSVM(gamma=0.2, nu=0.1, retain=Window(80)).fit(X[:80])
    sizes = set()
    for step in range(80, 800):
        model.update(X[step : step + 1], y[step : step + 1])
        novel.update(X[step : step + 1])
        if step % 20 == 0:
            rows = slice(step - 79, step + 1)
            for held in (model, novel):
                certificate = held.certificate()
                assert certificate.ok and certificate.n_samples == 80
                assert certificate.n_seen == step + 1
            sizes.add(len(model.classes_))
            if len(model.classes_) == 2:
                plain = SVC(C=10.0, gamma=0.2).fit(X[rows], y[rows])
                found = model.decision_function(X[:80])
                np.testing.assert_allclose(found, plain.decision_function(X[:80]), atol=1e-7)
    assert sizes == {1, 2}
