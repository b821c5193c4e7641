# SPDX-License-Identifier: BSD-3-Clause
"""`memory_limit`: columns beyond it are in a file, to the same bits; rows must fit."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

import adiabat
from adiabat import SVC, SVDD, SVR, IncrementalPipeline, OneClassSVM
from adiabat.engine import mapped, memory, samples
from adiabat.engine.mapped import in_memory, is_mapped

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 6))
Y = (X[:, 0] + 0.4 * RNG.normal(size=700) > 0).astype(int)
KINDS: dict[str, Callable[..., Any]] = {
    "svc": lambda **more: SVC(C=10.0, **more),
    "classes": lambda **more: SVC(C=10.0, **more),
    "linear": lambda **more: SVC(C=1.0, kernel="linear", **more),
    "sparse": lambda **more: SVC(C=10.0, gamma=0.2, **more),
    "svr": lambda **more: SVR(C=10.0, **more),
    "one_class": lambda **more: OneClassSVM(nu=0.3, **more),
    "svdd": lambda **more: SVDD(C=0.01, **more),
}
SUPERVISED = {"svc", "classes", "linear", "sparse", "svr"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("adiabat-*")) == []


@pytest.fixture
def no_memory_for_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a limit leaves for columns is nothing, whatever it is."""
    allot = memory.allot
    for home in ("limit", "persistence"):
        monkeypatch.setattr(
            f"adiabat.estimators.kernel.{home}.allot",
            lambda gram, limit, beside: allot(gram, limit, limit if limit else beside),
        )


def rows(kind: str) -> Any:
    return sp.csr_array(np.where(X > 0.5, X, 0.0)) if kind == "sparse" else X


def targets(kind: str) -> Any:
    if kind == "classes":
        return (Y + 2 * (X[:, 1] > 0)).astype(int)
    return X[:, 0] * X[:, 1] if kind == "svr" else Y


def columns_of(model: Any) -> list[Any]:
    machine = getattr(model, "estimator_", model)
    return list(machine._model.solver.samples.gram.panels)


def said_of(model: Any, at: Any) -> list[bytes]:
    report = model.last_update_
    moved = report.rounds, report.breakpoints, report.fallbacks, report.solver
    return [
        model.decision_function(at).tobytes() if hasattr(model, "decision_function")
        else model.predict(at).tobytes(),
        repr((moved, model.certificate(), report.certificate)).encode(),
    ]  # fmt: skip


def life(kind: str, limit: float | None) -> Iterator[tuple[Any, list[bytes]]]:
    """A model from fit to leave-one-out, and what it says after each step."""
    at, to = rows(kind), targets(kind)
    model = KINDS[kind](memory_limit=limit)
    for step in (
        lambda: model.fit(at[:400], *([to[:400]] if kind in SUPERVISED else [])),
        lambda: model.partial_fit(at[400:], *([to[400:]] if kind in SUPERVISED else [])),
        lambda: model.forget(model.ids_[model.support_[:40]]),
        lambda: model.revise(model.ids_[:5], X=at[5:10]),
        lambda: model.retune(**({"nu": 0.4} if kind == "one_class" else {"C": 0.5})),
        lambda: model.retune(gamma=0.15),
    ):
        step()
        yield model, said_of(model, at)
    found = model.leave_one_out()
    values = next(
        getattr(found, name)
        for name in ("decision", "prediction", "values")
        if hasattr(found, name)
    )
    yield model, [np.asarray(values).tobytes()]
    yield model, said_of(model, at)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_in_a_file_give_the_same_bits(kind: str, no_memory_for_columns: None) -> None:
    for (model, said), (_, expected) in zip(life(kind, 1e9), life(kind, None), strict=True):
        assert said == expected
        assert all(map(is_mapped, columns_of(model)))
        assert len(columns_of(model)) > 0 or kind == "linear"


def test_columns_of_samples_near_the_margin_as_well(
    no_memory_for_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "LINED", 300)
    for (model, said), (_, expected) in zip(life("svc", 1e9), life("svc", None), strict=True):
        assert said == expected and all(map(is_mapped, columns_of(model)))


def test_a_given_kernel(no_memory_for_columns: None) -> None:
    K = X @ X.T + 1.0
    said = []
    for limit in (None, 1e9):
        model = SVC(C=1.0, kernel="precomputed", memory_limit=limit).fit(K[:500, :500], Y[:500])
        model.partial_fit(K[500:], Y[500:]).forget(list(range(20)))
        assert all(is_mapped(panel) is (limit is not None) for panel in columns_of(model))
        said.append(said_of(model, K[:, 20:]))
    assert said[0] == said[1]


def test_a_pipeline(no_memory_for_columns: None) -> None:
    said = []
    for limit in (None, 1e9):
        model = IncrementalPipeline(SVC(C=5.0, memory_limit=limit)).fit(X[:500], Y[:500])
        model.partial_fit(X[500:], Y[500:]).forget(list(range(20)))
        assert all(is_mapped(panel) is (limit is not None) for panel in columns_of(model))
        said.append(said_of(model, X))
    assert said[0] == said[1]


def test_columns_are_in_memory_up_to_the_limit() -> None:
    plain = SVC(C=10.0).fit(X, Y)
    taken = in_memory(columns_of(plain))
    limit = 3e5 + taken / 2
    model = SVC(C=10.0, memory_limit=limit).fit(X, Y)
    where = list(map(is_mapped, columns_of(model)))
    assert any(where) and not all(where)
    assert in_memory(columns_of(model)) <= limit
    assert not any(map(is_mapped, columns_of(SVC(C=10.0, memory_limit=1e10).fit(X, Y))))


def test_the_limit_may_change_between_updates() -> None:
    model, plain = SVC(C=10.0).fit(X[:400], Y[:400]), SVC(C=10.0).fit(X[:400], Y[:400])
    assert not any(map(is_mapped, columns_of(model)))
    expected = [said_of(plain.forget([k]), X) for k in (1, 2)]
    model.set_params(memory_limit=1.0).forget([1])  # what goes is never refused
    assert all(map(is_mapped, columns_of(model)))
    assert said_of(model, X) == expected[0]
    model.set_params(memory_limit=None).forget([2])
    assert said_of(model, X) == expected[1]
    assert model.retune(memory_limit=1e9).certificate.ok and model.memory_limit == 1e9
    assert clone(model).memory_limit == 1e9 and "memory_limit" in model.get_params()


@pytest.mark.parametrize("kind", ["svc", "classes", "sparse", "svr", "one_class", "svdd"])
def test_rows_that_do_not_fit_are_refused_and_the_model_is_as_it_was(kind: str) -> None:
    at, to = rows(kind), targets(kind)
    given = (to[:300],) if kind in SUPERVISED else ()
    said = r"Holding 300 rows, without kernel columns, needs about .* and 20\.0 kB are allowed "
    model = KINDS[kind](memory_limit=2e4)
    with pytest.raises(MemoryError, match=said + r"\(memory_limit\)\. Use a larger memory_limit"):
        model.fit(at[:300], *given)
    assert not hasattr(model, "ids_")
    model.set_params(memory_limit=1e9).fit(at[:300], *given)
    before, columns = said_of(model, at), columns_of(model)
    model.set_params(memory_limit=2e4)
    more = (to[300:],) if kind in SUPERVISED else ()
    for call in (
        lambda: model.partial_fit(at[300:], *more),
        lambda: model.update(at[300:], *more, remove=[0]),
        lambda: model.fit(at[300:], *more),
    ):
        with pytest.raises(MemoryError, match="20\\.0 kB are allowed"):
            call()
    assert said_of(model, at) == before
    assert [id(one) for one in columns_of(model)] == [id(one) for one in columns]


def test_without_a_limit_free_memory_is_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_WORTH_ASKING", 0.0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000.0)
    with pytest.raises(MemoryError, match="are free"):
        SVC().fit(X, Y)
    assert SVC(memory_limit=1e9).fit(X, Y).certificate().ok  # the user's word, and a file beyond


def full(file: Any, size: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("kind", ["svc", "svr", "svdd"])
def test_a_full_disk_leaves_the_model_as_it_was(
    kind: str, no_memory_for_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, to = rows(kind), targets(kind)
    first, more = ((to[:300],), (to[300:],)) if kind in SUPERVISED else ((), ())
    model, plain = (KINDS[kind](memory_limit=limit).fit(at[:300], *first) for limit in (1e9, None))
    before = said_of(model, at)
    with monkeypatch.context() as patch:
        patch.setattr(mapped, "reserve", full)
        for call in (
            lambda: model.partial_fit(at[300:], *more),
            lambda: model.fit(at, *(first + more and (to,))),
            lambda: model.retune(gamma=0.01),
        ):
            with pytest.raises(OSError, match=r"memory_limit=1e\+09: .*No space left on device"):
                call()
        assert said_of(model, at) == before
    model.partial_fit(at[300:], *more), plain.partial_fit(at[300:], *more)
    assert model.certificate().ok
    np.testing.assert_allclose(model.decision_function(at) if kind != "svr" else model.predict(at),
                               plain.decision_function(at) if kind != "svr" else plain.predict(at),
                               atol=1e-8)  # fmt: skip


def test_completed_columns_are_not_worth_a_failure(
    no_memory_for_columns: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a full disk does not let columns be completed after an update, they are not."""
    monkeypatch.setattr(samples, "LINED", 300)
    model = SVC(C=10.0, memory_limit=1e9).fit(X, Y)
    held = model._model.solver.samples
    held.in_lines, held.n_read = True, 10**9
    with monkeypatch.context() as patch:
        patch.setattr(mapped, "reserve", full)
        patch.setattr(held, "complete", lambda: full(None, 0))
        model.forget([0])
    assert model.certificate().ok


def test_pickles_copies_and_files_keep_within_it(
    no_memory_for_columns: None, tmp_path: Path
) -> None:
    model = SVC(C=10.0, memory_limit=1e9).fit(X, Y)
    model.save(tmp_path / "model")
    expected = None
    for copy in (
        pickle.loads(pickle.dumps(model)),
        deepcopy(model),
        adiabat.load(tmp_path / "model"),
    ):
        assert copy.memory_limit == 1e9 and all(map(is_mapped, columns_of(copy)))
        copy.forget([3])
        assert copy.certificate().ok
        expected = expected or said_of(copy, X)
        assert said_of(copy, X) == expected
    assert len(pickle.dumps(model)) < 2 * X.nbytes  # a pickle has no columns


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_share_what_is_in_the_file(backend: str, no_memory_for_columns: None) -> None:
    model, plain = (SVC(C=10.0, memory_limit=limit).fit(X, Y) for limit in (1e9, None))
    with joblib.parallel_config(backend):
        found = [each.leave_one_out(n_jobs=2).decision for each in (model, plain)]
    np.testing.assert_allclose(*found, atol=1e-9)  # who asks first is chance
    np.testing.assert_array_equal(
        model.influence(X[:50], Y[:50]).change, plain.influence(X[:50], Y[:50]).change
    )
    asked = model.preview(remove=[0, 1], X=X[:2], y=Y[:2]).change
    np.testing.assert_array_equal(asked, plain.preview(remove=[0, 1], X=X[:2], y=Y[:2]).change)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_write_to_its_parents_columns(
    no_memory_for_columns: None,
) -> None:
    model, plain = (SVC(C=10.0, memory_limit=limit).fit(X, Y) for limit in (1e9, None))
    carrying = model.ids_[model.support_[:60]]
    child = os.fork()
    if child == 0:
        try:
            model.forget(carrying).partial_fit(X[:3], Y[:3], ids=[901, 902, 903])
            right = model.certificate().ok and len(model.leave_one_out().decision) == 643
        except BaseException:
            right = False
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert said_of(model.forget([0]), X) == said_of(plain.forget([0]), X)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_nothing_is_left_once_the_model_is_gone(folder: Path, no_memory_for_columns: None) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        model = SVC(C=10.0, memory_limit=1e9).fit(X, Y)
        assert str(folder) in Path("/proc/self/maps").read_text()
        model.forget(list(range(30))).leave_one_out()
        del model
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before
        assert str(folder) not in Path("/proc/self/maps").read_text()


def test_what_is_forgotten_is_overwritten_in_the_file(no_memory_for_columns: None) -> None:
    model = SVC(C=10.0, memory_limit=1e9).fit(X, Y)
    gram = model._model.solver.samples.gram
    gone = model.support_[:30]
    held = model._model.position[gone]
    traces = [gram.panels[s // 128][:, s % 128].copy() for s in gram.slot_of[held]]
    model.forget(model.ids_[gone])
    now = np.concatenate([panel.ravel() for panel in gram.panels])
    for column in traces:
        own = column[(column != 0.0) & (column != 1.0)]
        assert np.isin(own, now).mean() < 0.01


@pytest.mark.parametrize("bad", [0, -1.0, "much", float("nan"), float("inf"), [1e9]])
@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM, SVDD])
def test_what_is_no_number_of_bytes_is_refused(kind: Any, bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="memory_limit"):
        kind(memory_limit=bad).fit(X, Y)
    model = SVC().fit(X[:50], Y[:50]).set_params(memory_limit=bad)
    with pytest.raises(InvalidParameterError, match="memory_limit"):
        model.forget([0])
