# SPDX-License-Identifier: BSD-3-Clause
"""The verbs of the classifier: what goes in, what comes out, what is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.metrics.pairwise import chi2_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adiabat import SVC, UpdateReport

from laws.compare import assert_is_optimum
from oracles.operations import Roster

N = 60
RNG = np.random.default_rng(11)
X = np.round(RNG.standard_normal((N, 4)), 3)
X[np.abs(X) < 0.4] = 0.0
Y = np.where(X[:, 0] + X[:, 1] + 0.6 * RNG.standard_normal(N) > 0, 1, 0)
PROBE = np.round(RNG.standard_normal((25, 4)), 3)
CLOSE = {"rtol": 0.0, "atol": 1e-10}


def f_of(model: Any, probe: Any = PROBE) -> Any:
    return model.decision_function(probe)


# -- what goes in ------------------------------------------------------------------------------


def csr(rows: Any, index: Any) -> Any:
    out = sp.csr_array(rows)
    out.indices, out.indptr = out.indices.astype(index), out.indptr.astype(index)
    return out


CONTAINERS = {
    "list": lambda rows: rows.tolist(),
    "fortran": np.asfortranarray,
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "big-endian": lambda rows: rows.astype(">f8"),
    "read-only": lambda rows: _read_only(rows),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda rows: pd.DataFrame(rows).astype("Float64"),
    "csr int32": lambda rows: csr(rows, np.int32),
    "csr int64": lambda rows: csr(rows, np.int64),
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
}


def _read_only(rows: Any) -> Any:
    out = rows.copy()
    out.setflags(write=False)
    return out


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("name", CONTAINERS)
def test_the_container_does_not_matter(name: str, kernel: str) -> None:
    wrap = CONTAINERS[name]
    plain = SVC(kernel=kernel, coef0=1.0).fit(X[:40], Y[:40])
    model = SVC(kernel=kernel, coef0=1.0).fit(wrap(X[:40]), Y[:40])
    assert model.gamma_ == pytest.approx(plain.gamma_, rel=1e-14)
    np.testing.assert_allclose(f_of(model, wrap(PROBE)), f_of(plain), **CLOSE)
    for each, rows in ((plain, X), (model, wrap(X))):
        part = rows[40:] if not sp.issparse(rows) else sp.csr_array(rows)[40:]
        each.partial_fit(part, Y[40:], ids=np.arange(40, N))
        each.forget([1, 41])
    np.testing.assert_allclose(f_of(model, wrap(PROBE)), f_of(plain), **CLOSE)
    assert model.certificate().ok


def test_polars_frames_are_rows_with_names() -> None:
    frame = pl.DataFrame({f"x{k}": X[:, k] for k in range(4)})
    model = SVC().fit(frame, pl.Series("label", Y))
    np.testing.assert_allclose(
        f_of(model, pl.DataFrame({f"x{k}": PROBE[:, k] for k in range(4)})),
        f_of(SVC().fit(X, Y)),
        **CLOSE,
    )
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    assert model.ids_.tolist() == list(range(N))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, bool])
def test_numbers_of_other_types_are_taken_as_they_are(dtype: Any) -> None:
    rows = (4.0 * X).astype(dtype)
    model = SVC(gamma=0.1).fit(rows, Y)
    exact = SVC(gamma=0.1).fit(rows.astype(np.float64), Y)
    np.testing.assert_array_equal(f_of(model, rows), f_of(exact, rows.astype(np.float64)))


def test_sparse_rows_may_be_added_to_dense_and_dense_to_sparse() -> None:
    plain = SVC(gamma=0.5).fit(X, Y)
    mixed = SVC(gamma=0.5).fit(X[:30], Y[:30]).partial_fit(sp.csr_array(X[30:]), Y[30:])
    other = SVC(gamma=0.5).fit(sp.csr_array(X[:30]), Y[:30]).partial_fit(X[30:], Y[30:])
    for model in (mixed, other):
        np.testing.assert_allclose(f_of(model), f_of(plain), **CLOSE)
        np.testing.assert_allclose(f_of(model, sp.csr_array(PROBE)), f_of(plain), **CLOSE)


def test_unsorted_and_repeated_entries_of_a_sparse_matrix() -> None:
    rows = sp.csr_matrix(X)
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        rows.indices[start:stop] = rows.indices[start:stop][::-1].copy()
        rows.data[start:stop] = rows.data[start:stop][::-1].copy()
    rows.has_sorted_indices = False
    kept = rows.indices.copy()
    np.testing.assert_allclose(f_of(SVC().fit(rows, Y)), f_of(SVC().fit(X, Y)), **CLOSE)
    np.testing.assert_array_equal(rows.indices, kept)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 1.0], [3, 7]], ids=str)
def test_labels_of_every_kind(labels: list[Any]) -> None:
    names = np.array(labels)[Y]
    for given in (names, names.tolist(), pd.Series(names)):
        model = SVC(gamma=0.5).fit(X, given)
        assert model.classes_.tolist() == labels
        np.testing.assert_array_equal(f_of(model), f_of(SVC(gamma=0.5).fit(X, Y)))
        assert set(model.predict(PROBE).tolist()) <= set(labels)
        model.revise([0], y=[labels[1 - Y[0]]])
        assert model.classes_.tolist() == labels


# -- ids ---------------------------------------------------------------------------------------


def test_ids_are_counted_on_and_never_used_twice() -> None:
    model = SVC(gamma=0.5).fit(X[:5], [0, 1, 0, 1, 0])
    model.forget([3, 4])
    model.partial_fit(X[5:7], [0, 1])
    assert model.ids_.tolist() == [0, 1, 2, 5, 6]
    model.partial_fit(X[7:8], [0], ids=[100])
    model.partial_fit(X[8:9], [0])
    assert model.ids_.tolist()[-2:] == [100, 101]


def test_the_index_of_a_frame_names_the_rows() -> None:
    frame = pd.DataFrame(X, index=[f"r{k}" for k in range(N)])
    model = SVC(gamma=0.5).fit(frame[:40], Y[:40])
    assert model.ids_.tolist() == [f"r{k}" for k in range(40)]
    model.update(frame[40:], Y[40:], remove=["r7", "r3"])
    assert len(model.ids_) == N - 2 and "r7" not in model.ids_
    numbered = SVC(gamma=0.5).fit(frame.set_axis(range(5, 5 + N)), Y)
    assert numbered.ids_.tolist() == list(range(5, 5 + N))
    given = SVC(gamma=0.5).fit(frame, Y, ids=range(N))
    assert given.ids_.tolist() == list(range(N))


def test_an_id_that_leaves_may_come_again_in_the_same_step() -> None:
    model = SVC(gamma=0.5).fit(X, Y)
    model.update(PROBE[:2], [0, 1], ids=[3, 4], remove=[4, 3])
    rows, labels = (
        np.vstack([np.delete(X, [3, 4], axis=0), PROBE[:2]]),
        [*np.delete(Y, [3, 4]), 0, 1],
    )
    np.testing.assert_allclose(f_of(model), f_of(SVC(gamma=0.5).fit(rows, labels)), **CLOSE)
    assert model.ids_.tolist() == [k for k in range(N) if k not in (3, 4)] + [3, 4]


def test_forget_can_pass_over_unknown_ids() -> None:
    model = SVC(gamma=0.5).fit(X, Y)
    model.forget([1, 999], missing="ignore")
    assert model.last_update_.n_removed == 1
    before = f_of(model)
    model.forget([999], missing="ignore")
    assert model.last_update_.n_removed == 0
    np.testing.assert_array_equal(f_of(model), before)


# -- weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.5])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_a_whole_weight_is_a_repetition_and_zero_is_absence(kernel: str, gamma: Any) -> None:
    count = np.random.default_rng(0).integers(0, 4, N)
    count[:2] = 1
    repeated = np.repeat(np.arange(N), count)
    one = SVC(kernel=kernel, gamma=gamma, coef0=1.0).fit(X, Y, sample_weight=count)
    two = SVC(kernel=kernel, gamma=gamma, coef0=1.0).fit(X[repeated], Y[repeated])
    assert one.gamma_ == two.gamma_
    np.testing.assert_allclose(f_of(one), f_of(two), rtol=0.0, atol=1e-9)
    assert not set(one.ids_[one.support_]) & set(np.flatnonzero(count == 0))


def test_weights_scale_C() -> None:
    one = SVC(gamma=0.5, C=2.0).fit(X, Y, sample_weight=np.full(N, 3.0))
    np.testing.assert_allclose(f_of(one), f_of(SVC(gamma=0.5, C=6.0).fit(X, Y)), **CLOSE)
    two = SVC(gamma=0.5, C=2.0).fit(X, Y, sample_weight=3.0)
    np.testing.assert_array_equal(f_of(one), f_of(two))
    by_class = SVC(gamma=0.5, class_weight={0: 3.0, 1: 0.5}).fit(X, Y)
    by_row = SVC(gamma=0.5).fit(X, Y, sample_weight=np.where(Y == 0, 3.0, 0.5))
    np.testing.assert_allclose(f_of(by_class), f_of(by_row), **CLOSE)


# -- kernels that are given ------------------------------------------------------------------------


def test_a_precomputed_kernel_follows_every_verb() -> None:
    everything = np.vstack([X, PROBE])
    K = rbf_kernel(everything, everything, gamma=0.5)
    plain, given = SVC(gamma=0.5), SVC(kernel="precomputed")
    plain.fit(X[:30], Y[:30])
    given.fit(K[:30, :30], Y[:30])

    def rows(new: Any) -> Any:
        held = given.ids_
        return K[np.ix_(new, np.concatenate([held, new]).astype(int))]

    for model in (plain, given):
        model.forget([0, 29, 7, 8])
    new = np.arange(30, 45)
    plain.partial_fit(X[new], Y[new], ids=new)
    given.partial_fit(rows(new), Y[new], ids=new)
    new = np.arange(45, 60)
    plain.update(X[new], Y[new], ids=new, remove=[30, 1, 2])
    given.update(rows(new), Y[new], ids=new, remove=[30, 1, 2])
    for model in (plain, given):
        model.revise([3, 4, 50], y=1 - Y[[3, 4, 50]], sample_weight=[0.5, 2.0, 0.0])
    assert given.ids_.tolist() == plain.ids_.tolist()
    columns = given.ids_.astype(int)
    np.testing.assert_allclose(f_of(given, K[N:][:, columns]), f_of(plain), **CLOSE)
    assert given.certificate().ok
    np.testing.assert_array_equal(given.support_, plain.support_)


def test_callables_are_kernels() -> None:
    def kernel(A: Any, B: Any) -> Any:
        return polynomial_kernel(A, B, degree=2, gamma=0.5, coef0=1.0)

    model = SVC(kernel=kernel).fit(X[:50], Y[:50]).partial_fit(X[50:], Y[50:]).forget([3, 4])
    plain = SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0).fit(X, Y).forget([3, 4])
    np.testing.assert_allclose(f_of(model), f_of(plain), rtol=0.0, atol=1e-9)


def test_chi2_is_the_kernel_of_scikit_learn() -> None:
    rows = np.abs(X)
    model = SVC(kernel="chi2", gamma=0.7).fit(rows, Y)
    given = SVC(kernel="precomputed").fit(chi2_kernel(rows, rows, gamma=0.7), Y)
    np.testing.assert_allclose(
        f_of(model, rows), f_of(given, chi2_kernel(rows, rows, gamma=0.7)), **CLOSE
    )


# -- what is reported ------------------------------------------------------------------------------


def test_reports_say_what_was_done() -> None:
    model = SVC(gamma=0.5).fit(X[:40], Y[:40])
    report = model.last_update_
    assert isinstance(report, UpdateReport)
    assert (report.n_added, report.n_removed, report.n_revised) == (40, 0, 0)
    assert report.solver == "exchange" and report.rounds > 0 and report.breakpoints == 0
    assert report.seconds > 0.0 and report.certificate.ok and report.trace is None
    report = model.update(X[40:], Y[40:], remove=[0, 1, 2])
    assert report is model.last_update_
    assert (report.n_added, report.n_removed, report.n_revised) == (20, 3, 0)
    assert "added 20, removed 3" in str(report) and "optimal" in str(report)
    model.revise([5, 6], y=[1, 1])
    assert model.last_update_.n_revised == 2


@pytest.mark.parametrize("empty", [[], np.empty((0, 4)), pd.DataFrame(np.empty((0, 4)))])
def test_an_empty_batch_is_a_report_of_nothing(empty: Any) -> None:
    model = SVC(gamma=0.5).fit(X, Y)
    before = f_of(model)
    report = model.partial_fit(empty, []).last_update_
    assert (report.n_added, report.n_removed, report.n_revised) == (0, 0, 0)
    assert report.solver == "none" and "nothing changed" in str(report)
    for act in (model.update, lambda: model.forget([]), lambda: model.revise([])):
        act()
        assert model.last_update_.solver == "none"
        assert "nothing changed" in str(model.last_update_)
    np.testing.assert_array_equal(f_of(model), before)
    assert model.last_update_.certificate.ok


def test_an_empty_batch_may_come_with_removals() -> None:
    model = SVC(gamma=0.5).fit(X, Y)
    report = model.update(np.empty((0, 4)), [], remove=[1, 2])
    assert (report.n_added, report.n_removed) == (0, 2)


def test_a_trace_records_every_breakpoint() -> None:
    model = SVC(gamma=0.5, C=10.0).fit(X[:50], Y[:50])
    report = model.update(X[50:], Y[50:], trace=True)
    (trace,) = report.trace
    assert report.solver.startswith("path") or "path" in report.solver
    assert len(trace) >= report.breakpoints > 0
    for point in trace:
        assert point.n_margin + point.n_error + point.n_reserve == len(point.u) == len(point.r)
        assert abs(point.u.sum()) < 1e-9
    plain = SVC(gamma=0.5, C=10.0).fit(X, Y)
    np.testing.assert_allclose(f_of(model), f_of(plain), **CLOSE)


@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
def test_solvers_give_one_model_and_say_who_ran(solver: str) -> None:
    model = SVC(gamma=0.5, solver=solver).fit(X[:50], Y[:50])
    report = model.update(X[50:], Y[50:], remove=[1, 2, 3])
    assert ("path" in report.solver) == (solver == "path")
    stays = np.delete(np.arange(N), [1, 2, 3])
    np.testing.assert_allclose(f_of(model), f_of(SVC(gamma=0.5).fit(X[stays], Y[stays])), **CLOSE)


# -- as a member of the family ---------------------------------------------------------------------


def test_gamma_is_settled_at_fit_and_held() -> None:
    model = SVC(gamma="scale").fit(X[:40], Y[:40])
    assert model.gamma_ == pytest.approx(1.0 / (4 * X[:40].var()), rel=1e-14)
    before = model.gamma_
    model.partial_fit(10.0 * X[40:], Y[40:])
    assert model.gamma_ == before
    rows = np.vstack([X[:40], 10.0 * X[40:]])
    assert_is_optimum(model, Roster(rows, Y, np.ones(N), np.arange(N)), PROBE)
    model.fit(rows, Y)
    assert model.gamma_ != before


def test_what_does_not_shape_the_optimum_may_change_between_updates() -> None:
    model = SVC(gamma=0.5).fit(X[:40], Y[:40])
    model.set_params(solver="path", decision_function_shape="ovo", tol=1e-8)
    model.partial_fit(X[40:], Y[40:])
    assert "path" in model.last_update_.solver
    assert model.certificate().tol == pytest.approx(1e-8)


def test_fit_starts_over() -> None:
    model = SVC(gamma=0.5).fit(X, Y)
    assert model.fit(X[:10, :2], Y[:10]) is model
    assert model.n_features_in_ == 2 and model.ids_.tolist() == list(range(10))
    model.set_params(C=7.0).fit(X, Y)
    np.testing.assert_array_equal(f_of(model), f_of(SVC(gamma=0.5, C=7.0).fit(X, Y)))


def test_partial_fit_alone_is_fit() -> None:
    one, two = SVC().partial_fit(X, Y), SVC().fit(X, Y)
    np.testing.assert_array_equal(f_of(one), f_of(two))
    assert one.gamma_ == two.gamma_


def test_the_verbs_return_the_model() -> None:
    model = SVC(gamma=0.5)
    assert model.fit(X, Y) is model
    assert model.partial_fit(PROBE, np.arange(25) % 2) is model
    assert model.forget([0]) is model
    assert model.revise([1], y=[1]) is model


def test_equal_data_give_equal_bits() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((900, 4))
    labels = (rows[:, 0] + 0.5 * rng.standard_normal(900) > 0).astype(int)
    one, two = SVC().fit(rows, labels), SVC().fit(rows, labels)
    np.testing.assert_array_equal(f_of(one), f_of(two))


def test_it_works_in_pipelines_and_searches() -> None:
    pipeline = make_pipeline(StandardScaler(), SVC())
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.6
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "kernel": ["rbf", "linear"]}, cv=3)
    search.fit(X, Y)
    plain = GridSearchCV(svm.SVC(), {"C": [0.1, 1.0, 10.0], "kernel": ["rbf", "linear"]}, cv=3)
    assert search.best_score_ == pytest.approx(plain.fit(X, Y).best_score_)


def test_a_larger_model_is_grown_and_exact() -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((1500, 5))
    labels = (rows[:, 0] * rows[:, 1] + 0.4 * rng.standard_normal(1500) > 0).astype(int)
    model = SVC(C=5.0, gamma=0.2).fit(rows, labels)
    model.update(rows[:50] + 0.3, labels[:50], remove=np.arange(100, 200))
    certificate = model.certificate()
    assert certificate.ok and certificate.residual < 1e-11
    stays = np.delete(np.arange(1500), np.arange(100, 200))
    afresh = SVC(C=5.0, gamma=0.2)
    afresh.fit(
        np.vstack([rows[stays], rows[:50] + 0.3]), np.concatenate([labels[stays], labels[:50]])
    )
    probe = rng.standard_normal((50, 5))
    np.testing.assert_allclose(f_of(model, probe), f_of(afresh, probe), rtol=0.0, atol=1e-9)
