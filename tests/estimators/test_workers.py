# SPDX-License-Identifier: BSD-3-Clause
"""Every backend of joblib gives the same answers, and each worker reads the model once."""

import os
import pickle
import time

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import adiabat
from adiabat import SVC, SVR
from adiabat.estimators.what_if import workers
from adiabat.estimators.what_if.workers import Parcel, ask_each, ask_pieces

TIGHT = 1e-9


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    return X, np.argmax(X + 0.7 * rng.normal(size=X.shape), axis=1)


class Read:
    """An object that writes a file each time it is read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        with open(f"{self.folder}/{os.getpid()}-{time.monotonic_ns()}", "w"):
            pass


def slowly(held: Read, item: int) -> tuple[int, int]:
    time.sleep(0.02)
    return item, os.getpid()


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        distributed.Client(made),
    ):
        yield made


@pytest.fixture(params=["threading", "loky", "multiprocessing", "dask"])
def backend(request):
    if request.param == "dask":
        request.getfixturevalue("cluster")
    with joblib.parallel_config(backend=request.param, n_jobs=2):
        yield request.param


@pytest.mark.rotates(2)
def test_each_worker_reads_what_it_is_sent_once(backend: str, tmp_path) -> None:
    done = []
    found = ask_each(slowly, Read(str(tmp_path)), range(24), None, done.append)
    assert [item for item, _ in found] == list(range(24))
    processes = {process for _, process in found}
    read = [name.split("-")[0] for name in os.listdir(tmp_path)]
    assert sum(done) == 24 and len(done) >= 8
    if backend == "threading":
        assert not read and processes == {os.getpid()}
    else:
        assert sorted(read) == sorted(set(read))  # no process twice
        assert processes == {int(process) for process in read}


def hinge(y: np.ndarray, decision: np.ndarray) -> float:
    return float(np.mean(np.abs(decision)))


@pytest.mark.rotates(2)
def test_answers_do_not_depend_on_the_backend(backend: str) -> None:
    X, y = rows()
    model = SVC(C=2.0, gamma=0.5).fit(X, y)
    number = SVR(C=2.0, epsilon=0.1).fit(X, X @ [1.0, -1.0, 0.5])
    groups = np.arange(len(X)) % 10
    calls: list[tuple[int, int]] = []

    def ask(n_jobs):
        progress = None if n_jobs == 1 else lambda *step: calls.append(step)
        scores = adiabat.cross_validate(model, cv=5, n_jobs=n_jobs, return_estimator=True)
        return [
            model.leave_one_out(n_jobs=n_jobs, progress=progress).decision,
            number.leave_one_out(n_jobs=n_jobs).prediction,
            model.leave_out(groups, n_jobs=n_jobs).decision,
            scores["test_score"],
            np.array([each.intercept_ for each in scores["estimator"]]),
            *adiabat.validation_curve(model, "C", [1.0, 4.0], cv=4, n_jobs=n_jobs),
            model.influence(X[:20], y[:20], lambda y, d: hinge(y, d), n_jobs=n_jobs).change,
        ]

    for found, expected in zip(ask(2), ask(1), strict=True):
        np.testing.assert_allclose(found, expected, atol=TIGHT)
    assert [done for done, _ in calls] == list(range(1, calls[-1][1] + 1))


@pytest.mark.rotates(2)
def test_searches_of_scikit_learn_run_on_it(backend: str) -> None:
    X, y = rows()
    search = GridSearchCV(SVC(gamma=0.5), {"C": [0.1, 1.0]}, cv=3)
    with joblib.parallel_config(backend="sequential"):
        alone = GridSearchCV(SVC(gamma=0.5), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    found = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(found, alone.cv_results_["mean_test_score"])


def test_pieces_are_more_than_workers_and_keep_their_order() -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        pieces = ask_pieces(lambda held, piece: list(piece), None, range(19), None)
    assert len(pieces) == 2 * workers.PIECES
    assert [item for piece in pieces for item in piece] == list(range(19))
    assert ask_pieces(slowly, None, [], 2) == []


def test_an_idle_process_lets_go_of_what_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_IDLE_SECONDS", 0.02)
    parcel = pickle.loads(pickle.dumps(Parcel([1, 2, 3])))
    with parcel.opened() as first, parcel.opened() as second:
        assert first is second and first == [1, 2, 3]
        time.sleep(0.06)
        assert workers._shelf._value is first
    deadline = time.monotonic() + 5.0
    while workers._shelf._value is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers._shelf._value is None


@pytest.mark.rotates(2)
def test_an_error_of_a_worker_is_raised_here(backend: str) -> None:
    with pytest.raises(ZeroDivisionError):
        ask_each(divide, 1, [1, 1, 0, 1], None)


def divide(held: int, item: int) -> float:
    return held / item
