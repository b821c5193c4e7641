# SPDX-License-Identifier: BSD-3-Clause
"""KernelLSSVC and KernelLSSVR against plain linear algebra and refits."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

import adiabat
from adiabat import LSSVC, LSSVR, IdError, KernelLSSVC, KernelLSSVR

from oracles.least_squares import indicators, relative

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 3, 60)
VALUES = X @ RNG.normal(size=3) + RNG.normal(size=60)
S = RNG.choice([0.0, 0.5, 1.0, 2.0], 60)
KINDS = [KernelLSSVC, KernelLSSVR]


def target(kind: type) -> np.ndarray:
    return Y if kind is KernelLSSVC else VALUES


def truth(model: Any, rows: np.ndarray, t: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(a, b) of the bordered system, by a solver of its own."""
    heavy = np.flatnonzero(s > 0.0)
    aims = indicators(t, np.unique(t)) if isinstance(model, KernelLSSVC) else t[:, None]
    K = model._model.kernel.block(rows, rows)[np.ix_(heavy, heavy)]
    m = len(heavy)
    A = np.zeros((m + 1, m + 1))
    A[:m, :m] = K + np.diag(model.rho / s[heavy])
    A[m, m] = 1.0
    if model.fit_intercept:
        A[m, :m] = A[:m, m] = 1.0
        A[m, m] = 0.0
    right = np.vstack([aims[heavy], np.zeros(aims.shape[1])])
    answer = np.linalg.solve(A, right)
    spread = np.zeros((len(rows) + 1, aims.shape[1]))
    spread[heavy], spread[-1] = answer[:m], answer[m]
    return spread


def assert_solved(model: Any, rows: Any, t: np.ndarray, s: np.ndarray, tol: float = 1e-9) -> None:
    expected = truth(model, rows, t, s)
    found = np.vstack([model.dual_coef_.T, model.intercept_])
    assert relative(found, expected) < tol
    assert model.certificate().ok and model.last_update_.certificate.ok


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_every_verb_leads_to_the_closed_form(kind, kernel, fit_intercept):
    t = target(kind)
    model = kind(rho=0.2, kernel=kernel, gamma=0.3, fit_intercept=fit_intercept)
    model.fit(X[:40], t[:40], sample_weight=S[:40])
    assert_solved(model, X[:40], t[:40], S[:40])
    model.partial_fit(X[40:42], t[40:42], sample_weight=S[40:42])
    assert_solved(model, X[:42], t[:42], S[:42])
    assert model.last_update_.solver == "update"
    model.forget([3, 17])
    kept = np.setdiff1d(np.arange(42), [3, 17])
    assert_solved(model, X[kept], t[kept], S[kept])
    model.update(X[42:45], t[42:45], sample_weight=S[42:45], remove=[0, 41])
    kept = np.setdiff1d(np.arange(45), [3, 17, 0, 41])
    assert model.ids_.tolist() == kept.tolist()
    assert_solved(model, X[kept], t[kept], S[kept])
    rows, labels, weights = X.copy(), t.copy(), S.copy()
    model.revise([5, 6], y=labels[[50, 51]])
    labels[[5, 6]] = labels[[50, 51]]
    model.revise([7], X=rows[52:53], sample_weight=[3.0])
    rows[7], weights[7] = rows[52], 3.0
    model.revise([8], sample_weight=[0.0])
    weights[8] = 0.0
    assert_solved(model, rows[kept], labels[kept], weights[kept])


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    rho=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    kind=st.sampled_from(KINDS),
    whole=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_whatever_hypothesis_finds(seed, rho, kind, whole, fit_intercept):
    """Duplicates, singular kernels, classes that come and go."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (40, 2)).astype(float) if whole else rng.normal(size=(40, 2))
    t = rng.integers(0, 3, 40) if kind is KernelLSSVC else rng.normal(size=40)
    model = kind(
        rho=rho, kernel="poly", degree=2, gamma=1.0, coef0=1.0, fit_intercept=fit_intercept
    )
    model.fit(rows[:12], t[:12])
    held = list(range(12))
    for step in range(12, 40, 4):
        go = rng.choice(held, min(3, len(held) - 3), replace=False)
        come = np.arange(step, step + rng.integers(0, 5))
        model.update(rows[come], t[come], ids=come, remove=go)
        held = [*(row for row in held if row not in set(go.tolist())), *come.tolist()]
    fresh = clone(model).fit(rows[held], t[held])
    decide = "decision_function" if kind is KernelLSSVC else "predict"
    assert model.ids_.tolist() == held
    assert relative(getattr(model, decide)(rows), getattr(fresh, decide)(rows)) < 1e-8


@pytest.mark.parametrize(("kind", "primal"), [(KernelLSSVC, LSSVC), (KernelLSSVR, LSSVR)])
def test_the_linear_kernel_is_the_primal_model(kind, primal):
    t = target(kind)
    dual = kind(kernel="linear", rho=0.4).fit(X, t, S).forget([1, 2])
    rows = np.setdiff1d(np.arange(60), [1, 2])
    same = primal(rho=0.4).fit(X[rows], t[rows], S[rows])
    decide = "decision_function" if kind is KernelLSSVC else "predict"
    assert np.allclose(getattr(dual, decide)(X), getattr(same, decide)(X), rtol=0, atol=1e-12)


def test_without_a_bias_it_is_kernel_ridge():
    model = KernelLSSVR(rho=0.3, gamma=0.5, fit_intercept=False).fit(X, VALUES)
    ridge = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5).fit(X, VALUES)
    assert np.allclose(model.predict(X), ridge.predict(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_is_that_of_refitting(kind, fit_intercept):
    t = target(kind)[:30].copy()
    if kind is KernelLSSVC:
        t[t == 2] = 1
        t[4] = 2  # the only one of its class
    model = kind(rho=0.3, gamma=0.4, fit_intercept=fit_intercept).fit(X[:30], t, S[:30])
    found = model.leave_one_out()
    for row in range(30):
        rest = np.delete(np.arange(30), row)
        fresh = clone(model).fit(X[rest], t[rest], S[rest])
        assert found.prediction[row] == pytest.approx(fresh.predict(X[[row]])[0], abs=1e-9)
        if kind is KernelLSSVC and row != 4:
            assert np.allclose(found.decision[row], fresh.decision_function(X[[row]])[0], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_pickle_save_and_load_continue_identically(kind, sparse, tmp_path):
    t = target(kind)
    rows = sp.csr_array(X) if sparse else X
    model = kind(rho=0.5).fit(rows[:30], t[:30], S[:30], ids=[f"r{i}" for i in range(30)])
    model.forget("r3")
    model.save(tmp_path / "m.adiabat")
    twins = [adiabat.load(tmp_path / "m.adiabat"), pickle.loads(pickle.dumps(model))]
    for one in (model, *twins):
        one.update(rows[30:33], t[30:33], ids=["a", "b", "c"], remove=["r0"])
        assert one.gamma_ == model.gamma_
        assert one.ids_.tolist() == model.ids_.tolist()
        assert relative(one.dual_coef_, model.dual_coef_) < 1e-13


def test_an_altered_file_is_refused(tmp_path):
    KernelLSSVR().fit(X, VALUES).save(tmp_path / "m.adiabat")
    manifest, arrays = adiabat.archive.read_archive(tmp_path / "m.adiabat")
    for name, value in {
        "alpha": arrays["alpha"] * 1.01,
        "weight": arrays["weight"][:-1],
        "heavy": arrays["heavy"][::-1][:-1],
        "X": arrays["X"][:, :2],
    }.items():
        altered = {**arrays, name: value}
        adiabat.archive.write_archive(tmp_path / "x.adiabat", manifest, altered)
        with pytest.raises(adiabat.ModelFileError, match="not a sound model file"):
            adiabat.load(tmp_path / "x.adiabat")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.forget([99]), IdError, "not known"),
        (lambda m: m.forget([1, 1]), IdError, "repeated"),
        (lambda m: m.partial_fit(X[:1], [0], ids=[3]), IdError, "already known"),
        (lambda m: m.partial_fit(X[:1, :2], [0]), ValueError, "X has 2 features"),
        (lambda m: m.partial_fit(X[:1] * np.nan, [0]), ValueError, "NaN"),
        (lambda m: m.partial_fit(X[:1], ["a"]), ValueError, "one type of label"),
        (lambda m: m.revise([1, 2], y=[1]), ValueError, "y has 1 targets, ids has 2"),
        (lambda m: m.revise([1], X=X[:2]), ValueError, "X has 2 rows, ids has 1"),
        (lambda m: m.update(X[:1]), ValueError, "X and y together"),
        (lambda m: m.set_params(gamma=3.0).forget([1]), ValueError, "gamma=3.0"),
        (lambda m: m.partial_fit(X[:1], [0], sample_weight=[-1]), ValueError, "Negative"),
    ],
)
def test_bad_input_is_refused_and_nothing_changes(call, error, message):
    model = KernelLSSVC().fit(X, Y)
    state = pickle.dumps(model.__dict__)
    parameters = model.get_params()
    with pytest.raises(error, match=message):
        call(model)
    model.set_params(**parameters)
    assert pickle.dumps(model.__dict__) == state


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"rho": 0.0}, ValueError),
        ({"kernel": "given"}, ValueError),
        ({"kernel": "sigmoid"}, adiabat.IndefiniteKernelError),
    ],
)
def test_parameters_out_of_range(parameters, error):
    with pytest.raises(error):
        KernelLSSVR(**parameters).fit(X, VALUES)


def test_everything_can_be_forgotten_and_learned_again():
    model = KernelLSSVC().fit(X, Y).forget(np.arange(60))
    with pytest.raises(AttributeError, match="call fit"):
        _ = model.ids_
    assert model.partial_fit(X, Y).ids_[0] == 60  # numbers are never used twice
    report = model.update(np.empty((0, 3)), [])
    assert report.solver == "none" and "nothing changed" in str(report)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_what_was_passed_in_is_copied_and_never_written_to(kind, sparse):
    rows = sp.csr_array(X[:20]) if sparse else X[:20].copy()
    t, s = target(kind)[:20].copy(), np.ones(20)
    values = rows.data if sparse else rows
    before = values.copy()
    model = kind().fit(rows, t, s)
    outputs = model.predict(X)
    model.partial_fit(rows[:2], t[:2], sample_weight=s[:2])
    model.forget([20, 21])
    assert np.array_equal(values, before)
    values += 1.0
    t += 1
    s += 1.0
    assert np.allclose(model.revise([0], sample_weight=[1.0]).predict(X), outputs, atol=1e-9)
    assert model.certificate().ok
