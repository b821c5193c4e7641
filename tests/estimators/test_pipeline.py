# SPDX-License-Identifier: BSD-3-Clause
"""After every change the pipeline is the one refitted to the rows it holds; or says what it held.

The reference is not the pipeline itself but a machine of its own, fitted to rows that
scikit-learn's scaler has scaled.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler as Plain
from sklearn.utils.estimator_checks import parametrize_with_checks

import adiabat
from adiabat import SVC, SVDD, SVR, IncrementalPipeline, OneClassSVM, StandardScaler

RNG = np.random.default_rng(3)
N = 90
SCALES = np.array([1e-3, 1.0, 40.0, 1e4])
X = RNG.standard_normal((N, 4)) * SCALES + [0.0, 5.0, 1e3, 0.0]
SCORE = ((X - X.mean(0)) / SCALES).sum(1) + 0.5 * RNG.standard_normal(N)
LABELS = np.digitize(SCORE, [-1.0, 1.0])
MACHINES: dict[str, tuple[Callable[[], Any], Any]] = {
    "SVC": (lambda: SVC(C=4.0), LABELS),
    "SVC balanced": (lambda: SVC(C=0.7, class_weight="balanced"), LABELS),
    "SVC linear": (lambda: SVC(kernel="linear", C=2.0), (SCORE > 0).astype(int)),
    "SVC path": (lambda: SVC(C=4.0, solver="path"), (SCORE > 0).astype(int)),
    "SVR": (lambda: SVR(C=3.0, epsilon=0.05), SCORE),
    "OneClassSVM": (lambda: OneClassSVM(nu=0.3), None),
    "SVDD": (lambda: SVDD(C=0.1), None),
}


class Rows:
    """Rows that a pipeline should hold, by id, kept the plainest way."""

    def __init__(self, y: Any) -> None:
        self.X, self.w = X.copy(), np.ones(N)
        self.y = None if y is None else y.copy()

    def given(self, ids: Any) -> dict[str, Any]:
        return {"X": self.X[ids], "y": None if self.y is None else self.y[ids]}

    def reference(self, machine: Any, ids: Any, **options: Any) -> tuple[Any, Plain]:
        """A machine on rows that scikit-learn has scaled, and that scaler."""
        scaler = Plain(**options).fit(self.X[ids], sample_weight=self.w[ids])
        rows = self.given(ids)
        rows["X"] = scaler.transform(rows["X"])
        return clone(machine).fit(**rows, sample_weight=self.w[ids]), scaler


def values(model: Any, rows: Any) -> Any:
    return (getattr(model, "decision_function", None) or model.predict)(rows)


def assert_refitted(pipeline: IncrementalPipeline, rows: Rows) -> None:
    """Equal to a refit of its own to the last bit of the scaling, and to the reference."""
    ids = pipeline.ids_
    refit = clone(pipeline).fit(**rows.given(ids), sample_weight=rows.w[ids], ids=ids)
    for name in ("mean_", "var_", "scale_"):
        assert getattr(pipeline.scaler_, name).tolist() == getattr(refit.scaler_, name).tolist()
    assert pipeline.estimator_.gamma_ == refit.estimator_.gamma_
    near = rows.X[ids]
    np.testing.assert_allclose(values(pipeline, near), values(refit, near), rtol=0, atol=1e-9)
    machine, scaler = rows.reference(pipeline.estimator, ids)
    expected = values(machine, scaler.transform(near))
    np.testing.assert_allclose(values(pipeline, near), expected, rtol=0, atol=1e-8)
    certificate = pipeline.certificate()
    assert certificate.ok and certificate.n_samples == len(ids)
    assert not certificate.held_fixed and not pipeline.last_update_.certificate.held_fixed


@pytest.mark.parametrize("name", MACHINES)
def test_after_every_verb_it_is_the_refitted_pipeline(name: str) -> None:
    make, y = MACHINES[name]
    rows = Rows(y)
    pipeline = IncrementalPipeline(make())
    start = np.arange(60)
    pipeline.fit(**rows.given(start))
    assert_refitted(pipeline, rows)
    pipeline.partial_fit(**rows.given(np.arange(60, 70)))
    assert_refitted(pipeline, rows)
    rows.X[5] = [30.0, -1e4, 1e6, 1e7]
    pipeline.revise([5, 6], X=rows.X[[5, 6]])
    assert_refitted(pipeline, rows)
    pipeline.forget([5, 8, 9])
    assert_refitted(pipeline, rows)
    rows.w[[11, 12, 60]] = [0.0, 2.5, 0.1]
    pipeline.revise([60, 11, 12], sample_weight=rows.w[[60, 11, 12]])
    assert_refitted(pipeline, rows)
    if y is not None:
        rows.y[[20, 21]] = rows.y[[40, 43]]
        pipeline.revise([20, 21], y=rows.y[[20, 21]])
        assert_refitted(pipeline, rows)
    report = pipeline.update(
        **rows.given(np.arange(70, 75)), ids=range(70, 75), remove=[0, 1, 2, 60]
    )
    assert (report.n_added, report.n_removed) == (5, 4) and report.certificate.ok
    assert_refitted(pipeline, rows)
    change = {"nu": 0.6} if name == "OneClassSVM" else {"C": 1.5}
    pipeline.retune(**change)
    assert pipeline.estimator.get_params()[next(iter(change))] == next(iter(change.values()))
    assert_refitted(pipeline, rows)
    pipeline.retune(gamma=0.2)
    assert_refitted(pipeline, rows)
    pipeline.retune(gamma="scale")
    pipeline.refresh()
    assert_refitted(pipeline, rows)


def test_random_operations_end_at_the_refitted_pipeline() -> None:
    rng = np.random.default_rng(11)
    rows = Rows(LABELS)
    pipeline = IncrementalPipeline(SVC(C=4.0, class_weight="balanced"))
    pipeline.fit(**rows.given(np.arange(40)))
    for _ in range(60):
        held, others = pipeline.ids_, np.setdiff1d(np.arange(N), pipeline.ids_)
        comes = rng.choice(others, min(len(others), int(rng.integers(0, 4))), False)
        goes = rng.choice(held, int(rng.integers(0, 4 if len(held) > 20 else 1)), False)
        rows.w[comes] = rng.choice([0.0, 0.5, 1.0, 3.0], len(comes), p=[0.1, 0.2, 0.5, 0.2])
        pipeline.update(**rows.given(comes), ids=comes, sample_weight=rows.w[comes], remove=goes)
        chosen = rng.choice(pipeline.ids_, 2, False)
        rows.X[chosen] *= rng.choice([1.0, -1.0, 1.1, 100.0, 0.01])
        pipeline.revise(chosen, X=rows.X[chosen])
    assert_refitted(pipeline, rows)


@pytest.mark.parametrize("with_std", [True, False])
def test_a_forgotten_outlier_leaves_no_trace_unless_it_is_held(with_std: bool) -> None:
    options = {"with_std": with_std}  # without it gamma="scale" takes up the outlier instead
    rows = Rows((SCORE > 0).astype(int))
    rows.X /= SCALES
    near = np.delete(rows.X, 7, axis=0)
    rows.X[7] = near.mean(0) + 60.0  # keyed in with a slipped decimal point
    exact, held = (
        IncrementalPipeline(SVC(C=10.0), scaler=StandardScaler(**options), mode=mode)
        .fit(**rows.given(np.arange(N)))
        .forget([7])
        for mode in ("exact", "held")
    )
    machine, scaler = rows.reference(SVC(C=10.0), exact.ids_, **options)
    truth = machine.decision_function(scaler.transform(near))
    assert np.abs(exact.decision_function(near) - truth).max() < 1e-9
    assert np.abs(held.decision_function(near) - truth).max() > 0.5
    assert held.certificate().ok  # of the rows as they were scaled, which it says
    assert {"gamma", "scaling"} <= set(held.certificate().held_fixed)
    assert with_std or held.estimator_.gamma_ < 0.1 * exact.estimator_.gamma_
    held.refresh()
    assert np.abs(held.decision_function(near) - truth).max() < 1e-9
    assert held.scaler_.mean_.tolist() == exact.scaler_.mean_.tolist()
    assert held.estimator_.gamma_ == exact.estimator_.gamma_


def test_held_mode_is_the_machine_on_rows_scaled_as_it_says() -> None:
    rows = Rows(LABELS)
    pipeline = IncrementalPipeline(SVC(C=4.0), mode="held").fit(**rows.given(np.arange(50)))
    pipeline.update(**rows.given(np.arange(50, 70)), remove=[0, 1, 2])
    pipeline.revise([9], X=X[[80]])
    rows.X[9] = X[80]
    pipeline.forget([30])
    held = pipeline.certificate().held_fixed
    assert held == pipeline.last_update_.certificate.held_fixed
    scaled = (rows.X - held["scaling"]["mean"]) / held["scaling"]["scale"]
    ids = pipeline.ids_
    machine = SVC(C=4.0, gamma=held["gamma"]).fit(scaled[ids], LABELS[ids])
    np.testing.assert_allclose(
        pipeline.decision_function(X), machine.decision_function((X - held["scaling"]["mean"])
        / held["scaling"]["scale"]), rtol=0, atol=1e-9,
    )  # fmt: skip
    first = Plain().fit(X[:50])
    np.testing.assert_allclose(held["scaling"]["mean"], first.mean_, rtol=1e-12)
    pipeline.refresh()
    exact = IncrementalPipeline(SVC(C=4.0)).fit(**rows.given(ids), ids=ids)
    np.testing.assert_allclose(values(pipeline, X), values(exact, X), rtol=0, atol=1e-9)


def test_a_change_that_leaves_the_scaling_moves_only_its_rows() -> None:
    rows = Rows(LABELS)
    pipeline = IncrementalPipeline(SVC(C=4.0)).fit(**rows.given(np.arange(N)))
    solver = pipeline._model.solver
    pipeline.revise([4], y=[(LABELS[4] + 1) % 3])
    assert pipeline._model.solver is solver
    pipeline.forget([4])
    assert pipeline._model.solver is not solver


def test_without_a_row_it_starts_again_and_counts_on() -> None:
    pipeline = IncrementalPipeline(SVC()).fit(X[:4], [0, 1, 0, 1])
    pipeline.forget([0, 1, 2, 3])
    assert len(pipeline.last_update_.certificate.held_fixed) == 0
    with pytest.raises(NotFittedError, match="not fitted"):
        pipeline.predict(X)
    pipeline.partial_fit(X[4:10, :3], LABELS[4:10])
    assert pipeline.ids_.tolist() == list(range(4, 10)) and pipeline.n_features_in_ == 3
    assert pipeline.scaler_.n_samples_seen_ == 6


def test_sparse_rows_stay_sparse() -> None:
    dense = np.where(RNG.random((N, 6)) < 0.4, RNG.standard_normal((N, 6)), 0.0)
    y = (dense.sum(1) > 0).astype(int)
    make = StandardScaler(with_mean=False)
    sparse, full = (
        IncrementalPipeline(SVC(), scaler=make).fit(rows[:70], y[:70])
        for rows in (sp.csr_array(dense), dense)
    )
    for pipeline, rows in ((sparse, sp.csr_array(dense)), (full, dense)):
        pipeline.update(rows[70:], y[70:], remove=[1, 2])
        pipeline.revise([5], X=rows[[6]])
    assert sp.issparse(sparse.estimator_.support_vectors_)
    expected = full.decision_function(dense)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(dense)), expected, atol=1e-9)


@pytest.mark.parametrize("mode", ["exact", "held"])
@pytest.mark.parametrize("name", ["SVC balanced", "SVR", "SVDD"])
def test_files_pickles_and_copies_go_on_alike(name: str, mode: str, tmp_path: Path) -> None:
    make, y = MACHINES[name]
    rows = Rows(y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = IncrementalPipeline(make(), mode=mode)
    pipeline.fit(frame[:70], None if y is None else y[:70]).forget([3, 4])
    pipeline.save(tmp_path / "model")
    twins = [
        adiabat.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(pipeline)),
        copy.deepcopy(pipeline),
    ]
    twins[0].save(tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()
    before = values(pipeline, frame)
    for twin in twins:
        assert values(twin, frame).tolist() == before.tolist()
        assert twin.get_params().keys() == pipeline.get_params().keys()
        assert twin.feature_names_in_.tolist() == list("abcd")
        assert twin.certificate().held_fixed == pipeline.certificate().held_fixed
    for model in (pipeline, *twins):
        given = rows.given(np.arange(70, N))
        model.update(frame[70:], given["y"], remove=[10])
        np.testing.assert_allclose(values(model, frame), values(pipeline, frame), atol=1e-12)
        assert model.scaler_.mean_.tolist() == pipeline.scaler_.mean_.tolist()


def test_it_is_what_its_machine_is() -> None:
    assert is_classifier(IncrementalPipeline(SVC())) and is_regressor(IncrementalPipeline(SVR()))
    assert not hasattr(IncrementalPipeline(SVR()), "decision_function")
    assert not hasattr(IncrementalPipeline(SVDD()), "score")
    search = GridSearchCV(IncrementalPipeline(SVC()), {"estimator__C": [0.1, 10.0]}, cv=3)
    assert search.fit(X, LABELS).best_score_ > 0.5
    pipeline = search.best_estimator_
    assert pipeline.classes_.tolist() == [0, 1, 2]
    assert pipeline.score(X, LABELS) == np.mean(pipeline.predict(X) == LABELS)


CHECKED = [
    IncrementalPipeline(SVC()),
    IncrementalPipeline(SVR()),
    IncrementalPipeline(OneClassSVM()),
    IncrementalPipeline(SVC(), scaler=StandardScaler(with_mean=False)),
    IncrementalPipeline(SVR(), mode="held"),
]


@pytest.mark.filterwarnings("default")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
