# SPDX-License-Identifier: BSD-3-Clause
"""What does not fit in memory is refused beforehand, and the model is as it was."""

from pathlib import Path

import numpy as np
import pytest

from adiabat import LSSVC, SVC, KernelLSSVC, create_store
from adiabat.engine import memory
from adiabat.engine.memory import available_bytes, estimated_bytes, readable, require_room


def test_kernel_columns_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = rng.integers(0, 2, size=300)
    model = SVC(C=1.0, gamma=1.0).fit(X[:200], y[:200])
    before = model.decision_function(X).tobytes()
    monkeypatch.setattr(memory, "_WORTH_ASKING", 0.0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000.0)
    with pytest.raises(MemoryError, match=r"more kernel columns of .* rows needs about .* 1\.0 kB"):
        model.partial_fit(X[200:], y[200:])
    with pytest.raises(MemoryError):
        SVC(C=1.0, gamma=1.0).fit(X, y)
    assert model.decision_function(X).tobytes() == before
    assert len(model.ids_) == 200
    monkeypatch.undo()
    again = model.partial_fit(X[200:], y[200:])
    whole = SVC(C=1.0, gamma=1.0).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_the_estimate_is_that_of_columns_and_half_as_many_again() -> None:
    assert estimated_bytes(50_000, 1, 2200) == pytest.approx(8 * 1.5 * 2200 * 50_000, rel=0.02)
    require_room(10.0, 10.0, "It")
    with pytest.raises(MemoryError, match=r"^It needs about 2\.0 GB, and 10 bytes are allowed"):
        require_room(2e9, 10.0, "It")
    found = available_bytes()
    assert found is None or found > 0.0
    assert readable(3.2e6) == "3.2 MB"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            KernelLSSVC(gamma=1.0),
            "Holding a kernel matrix of 40 samples and its inverse needs about 76.8 kB",
        ),
        (LSSVC(), "Holding the second moments of 30 features needs about 57.6 kB"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(
    model: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 30)), np.arange(40) % 2
    monkeypatch.setattr(memory, "_WORTH_ASKING", 0.0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 5e4)
    with pytest.raises(MemoryError, match=said):
        model.fit(X, y)  # type: ignore[attr-defined]
    assert not hasattr(model, "last_update_")


def test_a_store_that_has_no_room_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    store = create_store(tmp_path / "model", "svc", label="y", gamma=1.0)
    store.learn(X[:20], y[:20], ids=range(20))
    before = store.head()
    with monkeypatch.context() as patch:
        patch.setattr(memory, "_WORTH_ASKING", 0.0)
        patch.setattr(memory, "available_bytes", lambda: 1000.0)
        with pytest.raises(MemoryError, match="more kernel columns"):
            store.learn(X[20:], y[20:], ids=range(20, 60))
    assert store.head() == before and store.verify(retrain=True).ok
    assert store.learn(X[20:], y[20:], ids=range(20, 60)).added == 40
