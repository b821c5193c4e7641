# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline changes scaler and machine together or not at all, and refuses bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

import adiabat
from adiabat import SVC, SVR, IdError, IncrementalPipeline, ModelFileError, StandardScaler
from adiabat.archive import read_archive, write_archive
from adiabat.engine.machine import Machine
from adiabat.engine.samples import Samples
from adiabat.engine.solver import Solver
from adiabat.estimators.kernel import plan
from adiabat.preprocessing.moments import Moments

from faults import NEVER, failing, injected, interrupt_at_line

RNG = np.random.default_rng(5)
N = 30
X = RNG.standard_normal((N + 6, 3)) * [1.0, 100.0, 0.01]
Y = (X[:, 0] + 0.01 * X[:, 1] + 0.3 * RNG.standard_normal(N + 6) > 0).astype(int)
NEW = slice(N, N + 6)

ACTS: dict[str, Callable[[IncrementalPipeline], Any]] = {
    "add": lambda model: model.partial_fit(X[NEW], Y[NEW]),
    "forget": lambda model: model.forget([1, 5, 9]),
    "both": lambda model: model.update(X[NEW], Y[NEW], remove=[2, 3]),
    "features": lambda model: model.revise([4, 6], X=10.0 * X[[4, 6]]),
    "labels": lambda model: model.revise([4, 6], y=1 - Y[[4, 6]]),
    "weights": lambda model: model.revise([4, 6], sample_weight=[0.0, 3.0]),
    "retune": lambda model: model.retune(C=0.3, gamma=0.7),
    "refresh": lambda model: model.refresh(),
    "refit": lambda model: model.fit(X[:20], Y[:20]),
    "all": lambda model: model.forget(range(N)),
}

BOTH = [(act, "exact") for act in ACTS] + [(act, "held") for act in ("both", "features", "refresh")]


def fresh(mode: str) -> IncrementalPipeline:
    model = IncrementalPipeline(SVC(C=5.0), mode=mode).fit(X[:N], Y[:N])
    return model.forget([0]).partial_fit(X[[0]], Y[[0]], ids=[0])


def state(model: IncrementalPipeline) -> list[Any]:
    """All that can be seen of scaler and machine, to the last bit."""
    if not hasattr(model, "scaler_") or not len(model._raw):
        return [set(vars(model)), repr(model)]
    return [
        repr(model), model.ids_.tolist(), model._raw.tolist(), model.scaler_.mean_.tolist(),
        model.scaler_.scale_.tolist(), int(model.scaler_.n_samples_seen_), model.classes_.tolist(),
        model.estimator_.gamma_, model.decision_function(X).tolist(), model.n_features_in_,
        str(model.certificate()), str(model.last_update_),
    ]  # fmt: skip


def kind_of(model: IncrementalPipeline) -> list[Any]:
    """State up to rounding and time: which rows, which scaling, which values."""
    if not len(model._raw):
        return [len(model._raw), model.scaler_.__sklearn_is_fitted__()]
    f = np.round(model.decision_function(X), 8) + 0.0
    return [*state(model)[:8], f.tolist(), model.last_update_.n_added, model.last_update_.n_removed]


INNER = [
    (Moments, "change"),
    (Moments, "variance"),
    (StandardScaler, "transform"),
    (plan, "targets_after"),
    (plan, "weights_after"),
    (plan.Plan, "row_changes"),
    (Samples, "add"),
    (Machine, "begin"),
    (Solver, "refresh"),
    (Machine, "update_verdict"),
]


@pytest.mark.parametrize(("act", "mode"), BOTH)
def test_an_exception_at_any_inner_call_changes_nothing(act: str, mode: str) -> None:
    failed = 0
    for owner, name in INNER:
        for k in (1, 2):
            model = fresh(mode)
            before = state(model)
            error = injected(k)
            with failing(owner, name, k, error) as calls:
                try:
                    ACTS[act](model)
                except (KeyboardInterrupt, MemoryError) as raised:
                    assert raised is error
                    failed += 1
            if calls[0] < k:
                break
            assert state(model) == before, f"{owner.__name__}.{name}, call {k}"
    assert failed > 1


@pytest.mark.rotates(6)
@pytest.mark.parametrize(("act", "mode"), BOTH)
def test_an_interrupt_at_any_line_leaves_before_or_after(act: str, mode: str) -> None:
    done = fresh(mode)
    with interrupt_at_line(NEVER) as lines:
        ACTS[act](done)
    last, after = lines[0], kind_of(done)
    model = fresh(mode)
    before = state(model)
    restored = 0
    # The last lines, where the new state is put in place, densely; the others by a stride.
    for k in sorted({*range(1, last, 1 + last // 8), *range(max(1, last - 25), last)}):
        try:
            with interrupt_at_line(k):
                ACTS[act](model)
        except KeyboardInterrupt:
            pass
        if len(model._raw) and state(model) == before:
            restored += 1
            continue
        assert kind_of(model) == after, f"line {k} of {last}"
        model = fresh(mode)
        before = state(model)
    assert restored > 5


class Case(NamedTuple):
    """What is tried, what is raised, what the message must contain."""

    act: Callable[[IncrementalPipeline], Any]
    error: type[Exception]
    message: str


def spoiled(value: Any) -> Any:
    rows = X[NEW].copy()
    rows[1, 2] = value
    return rows


REFUSED = {
    "NaN": Case(lambda m: m.partial_fit(spoiled(np.nan), Y[NEW]), ValueError, "X contains NaN"),
    "infinite": Case(lambda m: m.update(spoiled(np.inf), Y[NEW]), ValueError, "infinity"),
    "text": Case(lambda m: m.predict([["a", 1, 2]]), ValueError, "X has a value"),
    "too wide": Case(lambda m: m.partial_fit(X[NEW, :2], Y[NEW]), ValueError, "2 features"),
    "empty, too wide": Case(lambda m: m.update(np.empty((0, 2)), []), ValueError, "2 features"),
    "no targets": Case(lambda m: m.update(X[NEW]), ValueError, "X and y together"),
    "few targets": Case(lambda m: m.update(X[NEW], Y[:3]), ValueError, "inconsistent numbers"),
    "real targets": Case(lambda m: m.update(X[NEW], X[NEW, 0]), ValueError, "label type"),
    "mixed labels": Case(lambda m: m.update(X[:1], ["a"], ids=[99]), ValueError, "label"),
    "a class outside": Case(
        lambda m: m.partial_fit(X[NEW], np.full(6, 7), classes=[0, 1]), ValueError, "classes"
    ),
    "a weight below 0": Case(
        lambda m: m.update(X[NEW], Y[NEW], sample_weight=-np.ones(6)), ValueError, "sample_weight"
    ),
    "few weights": Case(lambda m: m.revise([1, 2], sample_weight=[1.0]), ValueError, "weight"),
    "a known id": Case(lambda m: m.update(X[:1], Y[:1], ids=[3]), IdError, "already known"),
    "an unknown id": Case(lambda m: m.forget([99]), IdError, "not known"),
    "an id twice": Case(lambda m: m.forget([1, 1]), IdError, "repeated"),
    "few ids": Case(lambda m: m.update(X[NEW], Y[NEW], ids=[50]), IdError, "length 1"),
    "few rows": Case(lambda m: m.revise([1, 2], X=X[:1]), ValueError, "X has 1 rows, ids has 2"),
    "few labels": Case(lambda m: m.revise([1, 2], y=[1]), ValueError, "y has 1 targets"),
    "sparse": Case(lambda m: m.update(sp.csr_array(X[NEW]), Y[NEW]), ValueError, "with_mean=False"),
    "a spread beyond float64": Case(
        lambda m: m.partial_fit(spoiled(1e300), Y[NEW]), ValueError, "variance"
    ),
    "only rows without weight": Case(
        lambda m: m.update(X[:1], Y[:1], ids=[99], sample_weight=[0.0], remove=range(N)),
        ValueError, "zero for all samples that remain",
    ),
    "no such parameter": Case(lambda m: m.retune(D=1), ValueError, "D is not a parameter"),
    "a bad parameter": Case(lambda m: m.retune(C=-1.0), InvalidParameterError, "'C' parameter"),
    "given kernel": Case(lambda m: m.retune(kernel="precomputed"), ValueError, "precomputed"),
    "missing": Case(lambda m: m.forget([1], missing="maybe"), ValueError, "missing='maybe'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_names_itself_and_changes_nothing(case: str) -> None:
    model = fresh("exact")
    before = state(model)
    act, error, message = REFUSED[case]
    with pytest.raises(error, match=message.replace("(", r"\(")):
        act(model)
    assert state(model) == before
    model.forget([2])
    assert model.certificate().ok


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "held"}, "mode='held' was 'exact'"),
        ({"estimator__C": 1.0}, "C=1.0 was 5.0"),
        ({"scaler": StandardScaler(with_std=False)}, "with_std=False was True"),
    ],
)
def test_a_parameter_that_changes_behind_its_back_is_refused(change: Any, message: str) -> None:
    model = fresh("exact").set_params(**change)
    for act in ("add", "forget", "features", "retune", "refresh"):
        with pytest.raises(ValueError, match=message):
            ACTS[act](model)
    assert model.fit(X, Y).certificate().ok


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (IncrementalPipeline(SVC(kernel="precomputed")), "precomputed"),
        (IncrementalPipeline("SVC"), "'estimator' parameter"),
        (IncrementalPipeline(SVC(), scaler="standard"), "'scaler' parameter"),
        (IncrementalPipeline(SVC(), mode="fast"), "'mode' parameter"),
        (IncrementalPipeline(SVC(C=0.0)), "'C' parameter"),
        (IncrementalPipeline(SVC(kernel="chi2")), "chi2"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused_at_fit(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert set(vars(model)) == {"estimator", "scaler", "mode"}


def test_before_fit_there_is_nothing_to_change_or_read() -> None:
    for act in ("forget", "features", "retune", "refresh"):
        with pytest.raises(NotFittedError, match="not fitted"):
            ACTS[act](IncrementalPipeline(SVC()))
    with pytest.raises(NotFittedError):
        IncrementalPipeline(SVC()).save("nowhere")
    with pytest.raises(ValueError, match=r"classes=.*classifiers"):
        IncrementalPipeline(SVR()).partial_fit(X, Y, classes=[0, 1])


def test_a_file_that_does_not_hang_together_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    fresh("exact").save(path)
    manifest, arrays = read_archive(path)
    content = {key: value for key, value in manifest.items() if key not in ("format", "arrays")}

    def spoil(manifest_part: dict[str, Any], arrays_part: dict[str, Any]) -> None:
        write_archive(path, {**content, **manifest_part}, {**arrays, **arrays_part})
        with pytest.raises(ModelFileError):
            adiabat.load(path)

    spoil({"mode": "fast"}, {})
    spoil({"machine": {"estimator": "os.system"}}, {})
    spoil({"machine": content}, {})
    spoil({"scaler": {**content["scaler"], "parameters": {"code": 1}}}, {})
    spoil({"feature_names_in": ["a"]}, {})
    spoil({}, {"X": arrays["X"][:-1]})
    spoil({}, {"X": arrays["X"] * np.nan})
    spoil({}, {"X": arrays["X"] * 1.001})  # not the optimum on these rows
    spoil({}, {"scaler_squares_sums": np.zeros_like(arrays["scaler_squares_sums"])})
    spoil({}, {"scaler_values_ends": arrays["scaler_values_ends"][::-1].copy()})
    spoil({}, {"scaler_weights_unit": np.array(10**9)})
    write_archive(path, content, arrays)
    assert adiabat.load(path).certificate().ok
