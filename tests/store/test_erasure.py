# SPDX-License-Identifier: BSD-3-Clause
"""After forgetting, no byte of a row or of its id is in any file of the folder."""

from pathlib import Path

import numpy as np
import pytest

import adiabat
from adiabat.store.tasks import TASKS

WIDTH = 8


def needles(ids, X):
    """Ids, and features as float64, pairs of float32, and text: each at least eight bytes long."""
    found = {name.encode(code) for name in ids for code in ("utf-8", "utf-16-le")}
    for row in X:
        for value in row:
            found |= {value.astype("<f8").tobytes(), value.astype(">f8").tobytes()}
            found |= {repr(float(value)).encode(), f"{value:.12g}".encode()}
        single = row.astype("<f4")
        found |= {single[k : k + 2].tobytes() for k in range(len(row) - 1)}
    return found


def hits(folder, wanted):
    """Which of the needles stand anywhere in the files of a folder."""
    # By their first eight bytes all at once; what those find is looked at in full.
    starts = {}
    for item in wanted:
        starts.setdefault(int.from_bytes(item[:WIDTH], "little"), []).append(item)
    patterns = np.array(sorted(starts), dtype=np.uint64)
    found = set()
    for path in Path(folder).iterdir():
        data = path.read_bytes()
        view = np.frombuffer(data, np.uint8)
        for shift in range(WIDTH):
            aligned = view[shift : shift + (len(view) - shift) // WIDTH * WIDTH]
            for start in np.intersect1d(aligned.view("<u8"), patterns).tolist():
                found |= {item for item in starts[start] if item in data}
    return found


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_thousand_erased_rows_leave_no_byte(tmp_path, kernel):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1400, 3))
    y = (X[:, 0] + 0.2 * rng.normal(size=1400) > 0).astype(int)
    ids = np.array([f"{'victim' if i % 7 < 5 else 'keeper'}-{i:05d}" for i in range(1400)])
    victims = np.char.startswith(ids, "victim")
    store = adiabat.create_store(tmp_path / "m", label="y", kernel=kernel, gamma=0.5, C=0.5)
    for part in np.array_split(rng.permutation(1400), 7):
        store.learn(X[part], y[part], ids=ids[part].tolist())
    wanted = needles(ids[victims], X[victims])
    assert victims.sum() == 1000 and len(hits(store.path, wanted)) > 3000  # the scan finds them
    store.revise({"id": ids[victims][:50].tolist(), "x1": rng.normal(size=50)})
    for part in np.array_split(rng.permutation(ids[victims]), 4):
        store.forget(part.tolist(), reference="DSR")
    assert hits(store.path, wanted) == set()
    assert store.verify().ok and len(store) == 400


@pytest.mark.parametrize("task", TASKS)
def test_erased_rows_leave_no_byte_in_any_task(tmp_path, task):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(90, 3))
    y = {"class": (X[:, 0] > 0).astype(int), "number": X[:, 0], None: None}[TASKS[task].target]
    ids = [f"{'victim' if i % 3 else 'keeper'}-{i:05d}" for i in range(90)]
    store = adiabat.create_store(tmp_path / "m", task, label=None if y is None else "y")
    for part in (slice(0, 1), slice(1, 40), slice(40, 90)):
        store.learn(X[part], None if y is None else y[part], ids=ids[part])
    victims = [i for i in range(90) if i % 3]
    wanted = needles([ids[i] for i in victims], X[victims])
    assert hits(store.path, wanted)
    store.forget([ids[i] for i in victims])
    assert hits(store.path, wanted) == set() and store.verify().ok


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_row_a_store_began_with_leaves_no_byte_either(tmp_path, kernel):
    store = adiabat.create_store(tmp_path / "m", label="y", kernel=kernel)
    rng = np.random.default_rng(6)
    X = 1e6 + rng.normal(size=(20, 3))  # far from zero, so that a kernel measures from an origin
    y = np.arange(20) % 2
    store.learn(X[:1], y[:1], ids=["victim-0"])
    store.learn(X[1:], y[1:], ids=[f"keeper-{i}" for i in range(1, 20)])
    store.forget("victim-0")
    assert hits(store.path, needles(["victim-0"], X[:1])) == set()


def test_an_erasure_cut_short_is_finished_on_opening(tmp_path, monkeypatch):
    from adiabat.store.session import Session

    store = adiabat.create_store(tmp_path / "m", label="y")
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 3))
    store.learn(X, np.arange(50) % 2, ids=[f"victim-{i}" for i in range(50)])
    monkeypatch.setattr(Session, "_purge", lambda self: None)  # as if killed just before
    store.forget([f"victim-{i}" for i in range(40)])
    monkeypatch.undo()
    import sqlite3

    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        assert connection.execute("SELECT purge FROM state").fetchone() == (1,)
    adiabat.open_store(store.path)
    with sqlite3.connect(f"{store.path}/store.sqlite") as connection:
        assert connection.execute("SELECT purge FROM state").fetchone() == (0,)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
