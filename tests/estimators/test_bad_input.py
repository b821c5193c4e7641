# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of bad input: each a documented exception that names the argument; state unchanged.

A case is a call on a fitted model (or on a fresh one) that must be refused. After it the model is
to the last bit what it was before, and goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils._param_validation import InvalidParameterError

import adiabat
from adiabat import SVC, IdError, IndefiniteKernelError, ModelFileError

from laws.compare import exact_state

RNG = np.random.default_rng(0)
X = np.abs(RNG.standard_normal((20, 3)))
Y = np.arange(20) % 2
NEW, LABELS = np.abs(RNG.standard_normal((2, 3))), [0, 1]


def spoiled(value: Any) -> Any:
    rows = NEW.copy()
    rows[1, 2] = value
    return rows


class Case(NamedTuple):
    """What is tried, what is raised, what the message must contain."""

    act: Callable[[SVC], Any]
    error: type[Exception]
    message: str
    params: Mapping[str, Any] = MappingProxyType({})


def partial(*args: Any, **kwargs: Any) -> Callable[[SVC], Any]:
    return lambda model: model.partial_fit(*args, **kwargs)


def update(*args: Any, **kwargs: Any) -> Callable[[SVC], Any]:
    return lambda model: model.update(*args, **kwargs)


def forget(*args: Any, **kwargs: Any) -> Callable[[SVC], Any]:
    return lambda model: model.forget(*args, **kwargs)


def revise(*args: Any, **kwargs: Any) -> Callable[[SVC], Any]:
    return lambda model: model.revise(*args, **kwargs)


def fit(*args: Any, **kwargs: Any) -> Callable[[SVC], Any]:
    return lambda model: model.fit(*args, **kwargs)


def predict(rows: Any) -> Callable[[SVC], Any]:
    return lambda model: model.predict(rows)


def changed(name: str, value: Any, act: Callable[[SVC], Any] | None = None) -> Any:
    """A parameter set to another value after fit, then an update."""

    def act_then_set_back(model: SVC) -> None:
        before = getattr(model, name)
        setattr(model, name, value)
        try:
            (act or partial(NEW, LABELS))(model)
        finally:
            setattr(model, name, before)

    return act_then_set_back


K = rbf_kernel(X, X, gamma=1.0)
GIVEN = {"kernel": "precomputed"}
PAIR = rbf_kernel(NEW, np.vstack([X, NEW]), gamma=1.0)

CATALOGUE: dict[str, Case] = {
    # X
    "NaN": Case(partial(spoiled(np.nan), LABELS), ValueError, "X contains NaN"),
    "infinity": Case(partial(spoiled(np.inf), LABELS), ValueError, "X contains infinity"),
    "minus infinity in fit": Case(fit(spoiled(-np.inf), LABELS), ValueError, "X contains infinity"),
    "NaN, sparse": Case(
        partial(sp.csr_array(spoiled(np.nan)), LABELS), ValueError, "X contains NaN"
    ),
    "NaN to predict": Case(predict(spoiled(np.nan)), ValueError, "X contains NaN"),
    "too large to square": Case(
        partial(spoiled(1e200), LABELS),
        ValueError,
        "kernel=poly.*not finite; scale the features",
        MappingProxyType({"kernel": "poly"}),
    ),
    "too few features": Case(
        partial(NEW[:, :2], LABELS), ValueError, "X has 2 features.*expecting 3"
    ),
    "too many features": Case(partial(np.ones((2, 4)), LABELS), ValueError, "X has 4 features"),
    "features to predict": Case(predict(np.ones((2, 4))), ValueError, "X has 4 features"),
    "1-D X": Case(partial(NEW[0], LABELS), ValueError, "Expected 2D array.*[Rr]eshape"),
    "1-D X to fit": Case(fit(NEW[0], LABELS), ValueError, "Expected 2D array"),
    "3-D X": Case(partial(np.ones((2, 3, 1)), LABELS), ValueError, "dim 3"),
    "a number": Case(partial(3.0, [1]), ValueError, "Expected 2D array, got scalar"),
    "strings": Case(
        partial([["a", "b", "c"], ["d", "e", "f"]], LABELS), ValueError, "string|float"
    ),
    "complex": Case(partial(NEW + 1j, LABELS), ValueError, "Complex data not supported"),
    "objects": Case(
        partial([[{}, 1, 2], [1, 2, 3]], LABELS), (TypeError, ValueError), "float|dict"
    ),  # type: ignore[arg-type]
    "ragged": Case(partial([[1.0, 2.0], [1.0]], LABELS), ValueError, "inhomogeneous|shape"),
    "empty fit": Case(fit(np.empty((0, 3)), []), ValueError, "0 sample"),
    "no features": Case(fit(np.empty((4, 0)), [0, 1, 0, 1]), ValueError, "0 feature"),
    "empty of another width": Case(partial(np.empty((0, 5)), []), ValueError, "X has 5 features"),
    "names in another order": Case(
        lambda m: (
            SVC()
            .fit(pd.DataFrame(X, columns=list("abc")), Y)
            .predict(pd.DataFrame(X, columns=list("bca")))
        ),
        ValueError,
        "feature names should match",
    ),
    # y
    "y too long": Case(partial(NEW, [0, 1, 1]), ValueError, "inconsistent numbers of samples"),
    "y too short": Case(partial(NEW, [0]), ValueError, "inconsistent numbers of samples"),
    "y without X": Case(update(y=LABELS), ValueError, "X and y"),
    "X without y": Case(update(NEW), ValueError, "X and y"),
    "X without y in partial_fit": Case(partial(NEW, None), ValueError, "y"),
    "y with NaN": Case(partial(NEW, [0.0, np.nan]), ValueError, "NaN"),
    "y with None": Case(partial(NEW, [None, 1]), (TypeError, ValueError), "label|y|None"),  # type: ignore[arg-type]
    "y continuous": Case(partial(NEW, [0.5, 1.5]), ValueError, "[Uu]nknown label type"),
    "y of two columns": Case(partial(NEW, [[0, 1], [1, 0]]), ValueError, "1d array"),
    "y of another type": Case(
        partial(NEW, ["a", "b"]), ValueError, "y has the label 'a'.*one type"
    ),
    "y of mixed types": Case(partial(NEW, [0, "b"]), (TypeError, ValueError), "label|y has"),  # type: ignore[arg-type]
    "labels for no rows": Case(partial(np.empty((0, 3)), [1]), ValueError, "y has 1 targets"),
    "label outside classes": Case(
        partial(NEW, [0, 5], classes=[0, 1]), ValueError, r"y has labels \[5\].*classes"
    ),
    # ids
    "ids known": Case(
        partial(NEW, LABELS, ids=[3, 99]), IdError, r"ids: 1 id \(3\) is already known"
    ),
    "ids repeated": Case(partial(NEW, LABELS, ids=[99, 99]), IdError, r"\(99\) is repeated"),
    "ids too few": Case(partial(NEW, LABELS, ids=[99]), IdError, "length 1, X has 2"),
    "ids of another kind": Case(partial(NEW, LABELS, ids=["a", "b"]), IdError, "str.*int"),
    "ids mixed": Case(partial(NEW, LABELS, ids=["a", 99]), IdError, "mixes int and str"),
    "ids floating": Case(partial(NEW, LABELS, ids=[0.5, 1.5]), IdError, "0.5 is a float"),
    "ids without order": Case(partial(NEW, LABELS, ids={98, 99}), IdError, "set"),
    "index known": Case(
        partial(pd.DataFrame(NEW, index=[3, 4]), LABELS), IdError, "index of X.*already known"
    ),
    "forget unknown": Case(forget([1, 99]), IdError, r"ids: 1 id \(99\) .*missing='ignore'"),
    "forget many unknown": Case(
        forget(range(20, 60)), IdError, r"40 ids \(20, 21, 22, 23, 24, 25, 26, 27, 28, 29, \.\.\.\)"
    ),
    "forget repeated": Case(forget([1, 1]), IdError, r"ids: 1 id \(1\) is repeated"),
    "forget strings": Case(forget(["1"]), IdError, "str.*int"),
    "forget, odd missing": Case(forget([1], missing="skip"), ValueError, "missing='skip'"),
    "revise unknown": Case(revise([99], y=[1]), IdError, "99"),
    "revise repeated": Case(revise([2, 2], y=[1, 0]), IdError, r"\(2\) is repeated"),
    "remove unknown": Case(update(NEW, LABELS, remove=[99]), IdError, "99"),
    "remove repeated": Case(update(NEW, LABELS, remove=[1, 1]), IdError, r"\(1\) is repeated"),
    # sample_weight
    "weight negative": Case(
        partial(NEW, LABELS, sample_weight=[1.0, -0.5]), ValueError, "sample_weight"
    ),
    "weight NaN": Case(
        partial(NEW, LABELS, sample_weight=[1.0, np.nan]), ValueError, "sample_weight"
    ),
    "weight infinite": Case(
        partial(NEW, LABELS, sample_weight=[1.0, np.inf]), ValueError, "sample_weight"
    ),
    "weights too few": Case(partial(NEW, LABELS, sample_weight=[1.0]), ValueError, "sample_weight"),
    "weights in columns": Case(
        partial(NEW, LABELS, sample_weight=np.ones((2, 2))), ValueError, "[Ss]ample.weight"
    ),
    "weights text": Case(
        partial(NEW, LABELS, sample_weight=["a", "b"]), ValueError, "sample_weight|float"
    ),
    "weights all zero at fit": Case(
        fit(X, Y, sample_weight=np.zeros(20)), ValueError, "sample_weight is zero for all"
    ),
    "weight revised below zero": Case(
        revise([1], sample_weight=[-1.0]), ValueError, "sample_weight"
    ),
    # revise
    "revise y of another length": Case(
        revise([1, 2], y=[1]), ValueError, "y has 1 targets, ids has 2"
    ),
    "revise X of another length": Case(
        revise([1, 2], X=NEW[:1]), ValueError, "X has 1 rows, ids has 2"
    ),
    "revise weights of another length": Case(
        revise([1, 2], sample_weight=[1.0, 1.0, 1.0]), ValueError, "sample_weight"
    ),
    "revise X of another width": Case(revise([1, 2], X=NEW[:, :2]), ValueError, "X has 2 features"),
    "revise X with NaN": Case(revise([1, 2], X=spoiled(np.nan)), ValueError, "X contains NaN"),
    "revise labels of another type": Case(revise([1], y=["a"]), ValueError, "y has the label 'a'"),
    # parameters
    "C changed": Case(changed("C", 7.0), ValueError, r"C=7.0 was 1.0 .* fit"),
    "C changed, then forget": Case(changed("C", 7.0, forget([1])), ValueError, "C=7.0"),
    "C changed, then revise": Case(changed("C", 7.0, revise([1], y=[1])), ValueError, "C=7.0"),
    "gamma changed": Case(changed("gamma", 0.1), ValueError, "gamma=0.1"),
    "kernel changed": Case(changed("kernel", "linear"), ValueError, "kernel='linear'"),
    "class_weight changed": Case(changed("class_weight", "balanced"), ValueError, "class_weight"),
    "C zero": Case(changed("C", 0.0, fit(X, Y)), InvalidParameterError, "'C' parameter"),
    "C negative": Case(changed("C", -1.0, fit(X, Y)), InvalidParameterError, "'C' parameter"),
    "C infinite": Case(
        changed("C", np.inf, fit(np.vstack([X, X[:1]]), np.append(Y, 1 - Y[0]))),
        ValueError,
        "C=inf allows no errors",
    ),
    "C NaN": Case(changed("C", np.nan, fit(X, Y)), ValueError, "C"),
    "C text": Case(changed("C", "1", fit(X, Y)), InvalidParameterError, "'C' parameter"),
    "C None": Case(changed("C", None, fit(X, Y)), InvalidParameterError, "'C' parameter"),
    "kernel unknown": Case(changed("kernel", "cubic", fit(X, Y)), ValueError, "'kernel' parameter"),
    "kernel sigmoid": Case(
        changed("kernel", "sigmoid", fit(X, Y)),
        IndefiniteKernelError,
        "sigmoid.*not positive semidefinite.*rbf",
    ),
    "gamma negative": Case(changed("gamma", -1.0, fit(X, Y)), ValueError, "'gamma' parameter"),
    "gamma unknown": Case(changed("gamma", "large", fit(X, Y)), ValueError, "'gamma' parameter"),
    "gamma infinite": Case(changed("gamma", np.inf, fit(X, Y)), ValueError, "gamma"),
    "degree fractional": Case(
        lambda m: SVC(kernel="poly", degree=2.5).fit(X, Y), ValueError, "degree=2.5"
    ),
    "degree negative": Case(
        lambda m: SVC(kernel="poly", degree=-1).fit(X, Y), ValueError, "'degree' parameter"
    ),
    "coef0 negative": Case(
        lambda m: SVC(kernel="poly", coef0=-1.0).fit(X, Y), IndefiniteKernelError, "coef0=-1.0"
    ),
    "coef0 NaN": Case(lambda m: SVC(kernel="poly", coef0=np.nan).fit(X, Y), ValueError, "coef0"),
    "tol zero": Case(changed("tol", 0.0, fit(X, Y)), InvalidParameterError, "'tol' parameter"),
    "tol zero in an update": Case(changed("tol", 0.0), InvalidParameterError, "'tol' parameter"),
    "solver unknown": Case(changed("solver", "smo"), InvalidParameterError, "'solver' parameter"),
    "shape unknown": Case(
        changed("decision_function_shape", "ova", fit(X, Y)), ValueError, "decision_function_shape"
    ),
    "class_weight text": Case(
        changed("class_weight", "heavy", fit(X, Y)), InvalidParameterError, "'class_weight'"
    ),
    "class_weight negative": Case(
        changed("class_weight", {0: -1.0}, fit(X, Y)), ValueError, "class_weight"
    ),
    "class_weight NaN": Case(
        changed("class_weight", {0: np.nan}, fit(X, Y)), ValueError, "class_weight"
    ),
    "class_weight of text": Case(
        changed("class_weight", {0: "heavy"}, fit(X, Y)),
        (TypeError, ValueError),
        "class_weight",  # type: ignore[arg-type]
    ),
    # kernels that are given
    "chi2 with negatives": Case(partial(-NEW, LABELS), ValueError, "chi2", {"kernel": "chi2"}),
    "chi2 with negatives to fit": Case(fit(-X, Y), ValueError, "chi2", {"kernel": "chi2"}),
    "chi2 with negatives to predict": Case(predict(-X), ValueError, "chi2", {"kernel": "chi2"}),
    "precomputed not square": Case(fit(K[:, :5], Y), ValueError, "square", GIVEN),
    "precomputed not symmetric": Case(fit(np.tril(K), Y), ValueError, "symmetric", GIVEN),
    "precomputed indefinite": Case(
        fit(K - 2.0 * np.eye(20), Y), IndefiniteKernelError, "precomputed", GIVEN
    ),
    "precomputed indefinite off the diagonal": Case(
        fit(np.ones((20, 20)) - K + np.eye(20), Y), IndefiniteKernelError, "precomputed", GIVEN
    ),
    "precomputed of wrong width": Case(
        partial(K[:2], LABELS), ValueError, r"X has shape \(2, 20\).*22 columns", GIVEN
    ),
    "precomputed new part not symmetric": Case(
        partial(PAIR + np.eye(2, 22, 21), LABELS), ValueError, "symmetric", GIVEN
    ),
    "precomputed new part indefinite": Case(
        partial(PAIR - 2.0 * np.eye(2, 22, 20), LABELS), IndefiniteKernelError, "precomputed", GIVEN
    ),
    "precomputed with NaN": Case(
        partial(np.where(PAIR > 0.9, np.nan, PAIR), LABELS), ValueError, "NaN", GIVEN
    ),
    "precomputed sparse": Case(
        fit(sp.csr_array(K), Y), TypeError, "[Ss]parse data was passed", GIVEN
    ),
    "precomputed y of another length": Case(partial(PAIR, [0]), ValueError, "y has 1", GIVEN),
    "precomputed, features revised": Case(
        revise([1], X=K[:1]), ValueError, "X cannot be revised.*forget", GIVEN
    ),
    "precomputed to predict": Case(predict(K[:, :5]), ValueError, "X has 5 features", GIVEN),
}


def fitted(params: Mapping[str, Any]) -> SVC:
    model = SVC(**params)
    return model.fit(K if params == GIVEN else X, Y)


def goes_on(model: SVC, params: Mapping[str, Any]) -> None:
    """After all that, an update works and the model is exact."""
    if params == GIVEN:
        model.partial_fit(PAIR, LABELS)
    else:
        model.partial_fit(NEW, LABELS)
    assert model.certificate().ok
    assert model.ids_.tolist() == list(range(22))


@pytest.mark.parametrize("solver", ["auto", "path"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_bad_input_is_refused_and_changes_nothing(name: str, solver: str) -> None:
    case = CATALOGUE[name]
    model = fitted(case.params)
    model.solver = solver
    probe = K if case.params == GIVEN else X
    before, attributes = exact_state(model, probe), set(vars(model))
    with pytest.raises(case.error) as caught:
        case.act(model)
    said = str(caught.value)
    assert re.search(case.message, said, re.DOTALL), said
    assert exact_state(model, probe) == before
    assert set(vars(model)) == attributes
    goes_on(model, case.params)


FIRST = {
    "forget": (forget([0]), NotFittedError, "forget"),
    "revise": (revise([0], y=[1]), NotFittedError, "revise"),
    "predict": (predict(X), NotFittedError, "fit"),
    "decision_function": (lambda m: m.decision_function(X), NotFittedError, "fit"),
    "certificate": (lambda m: m.certificate(), NotFittedError, "fit"),
    "to_sklearn": (lambda m: m.to_sklearn(), NotFittedError, "fit"),
    "save": (lambda m: m.save("nowhere.adiabat"), NotFittedError, "fit"),
    "remove": (update(X, Y, remove=[0]), NotFittedError, "remove"),
    "remove one": (update(X, Y, remove=0), NotFittedError, "remove"),
    "empty batch": (partial(np.empty((0, 3)), []), ValueError, "0 sample"),
    "no batch": (update(), ValueError, "y"),
    "C": (changed("C", -1.0), InvalidParameterError, "'C' parameter"),
    "NaN": (partial(spoiled(np.nan), LABELS), ValueError, "NaN"),
    "weights": (partial(NEW, LABELS, sample_weight=[0.0, 0.0]), ValueError, "sample_weight"),
    "ids": (partial(NEW, LABELS, ids=[1, 1]), IdError, r"\(1\) is repeated"),
}


@pytest.mark.parametrize("name", FIRST)
def test_bad_input_before_fit_leaves_the_model_unfitted(name: str) -> None:
    act, error, message = FIRST[name]
    model = SVC()
    before = set(vars(model))
    with pytest.raises(error, match=message):
        act(model)
    assert set(vars(model)) == before
    assert model.partial_fit(X, Y).ids_.tolist() == list(range(20))


@pytest.mark.parametrize(
    "name", ["ids_", "support_", "dual_coef_", "intercept_", "n_support_", "coef_"]
)
def test_attributes_of_a_model_without_samples_do_not_exist(name: str) -> None:
    assert not hasattr(SVC(kernel="linear"), name)


# -- kernels of the user's own ---------------------------------------------------------------------


def _distance(A: Any, B: Any) -> Any:
    return np.sqrt(((A[:, None] - B[None]) ** 2).sum(-1))


def _sigmoid(A: Any, B: Any) -> Any:
    return np.tanh(2.0 * A @ B.T - 1.0)


def _two_scales(A: Any, B: Any) -> Any:
    square = ((A[:, None] - B[None]) ** 2).sum(-1)
    return 2.0 * np.exp(-3.0 * square) - 0.9 * np.exp(-0.1 * square)


def _negative(A: Any, B: Any) -> Any:
    return -np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))


def _indefinite_product(A: Any, B: Any) -> Any:
    return A[:, :1] @ B[:, :1].T + 3.0 - A[:, 1:] @ B[:, 1:].T


INDEFINITE = [_distance, _sigmoid, _two_scales, _negative, _indefinite_product]


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("solver", ["auto", "path", "exchange"])
@pytest.mark.parametrize("kernel", INDEFINITE)
def test_an_indefinite_kernel_is_named_at_fit(kernel: Any, solver: str, C: float) -> None:
    started = time.perf_counter()
    with pytest.raises(IndefiniteKernelError, match=r"kernel=.*not positive semidefinite"):
        SVC(kernel=kernel, solver=solver, C=C).fit(X, Y)
    assert time.perf_counter() - started < 5.0


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("solver", ["auto", "path"])
@pytest.mark.parametrize("kernel", INDEFINITE)
def test_an_indefinite_kernel_is_named_in_a_stream(kernel: Any, solver: str, C: float) -> None:
    """However few rows come at a time, before 20 of them are in it has been noticed."""
    model = SVC(kernel=kernel, solver=solver, C=C)
    with pytest.raises(IndefiniteKernelError):
        for k in range(0, 20, 2):
            before = exact_state(model, X)
            model.partial_fit(X[k : k + 2], Y[k : k + 2])
    assert exact_state(model, X) == before


CALLABLES = {
    "wrong shape": (lambda A, B: np.ones((len(A), len(B) + 1)), ValueError, r"returned shape"),
    "transposed": (lambda A, B: np.ones((len(B), 1)), ValueError, "returned shape"),
    "1-D": (lambda A, B: np.ones(len(A)), ValueError, "returned shape"),
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), ValueError, "not finite"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), ValueError, "not finite"),
    "text": (lambda A, B: np.full((len(A), len(B)), "x"), ValueError, "could not convert|kernel"),
    "raises": (lambda A, B: 1 / 0, ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_a_callable_that_misbehaves_later_changes_nothing(name: str) -> None:
    bad, error, message = CALLABLES[name]
    spoil = [False]

    def kernel(A: Any, B: Any) -> Any:
        return bad(A, B) if spoil[0] else np.exp(-_distance(A, B))

    with pytest.raises(error, match=message):
        SVC(kernel=bad).fit(X, Y)
    model = SVC(kernel=kernel).fit(X, Y)
    before = exact_state(model, X)
    spoil[0] = True
    for act in (partial(NEW, LABELS), revise([1], X=NEW[:1]), predict(NEW)):
        with pytest.raises(error, match=message):
            act(model)
    spoil[0] = False
    assert exact_state(model, X) == before
    goes_on(model, {})


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["truncated", "altered", "empty", "text"])
def test_damaged_files_are_named(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "customers.adiabat"
    SVC().fit(X, Y).save(path)
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "truncated": content[:middle],
            "altered": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
            "empty": b"",
            "text": b"a model, honestly",
        }[damage]
    )
    with pytest.raises(ModelFileError, match=r"customers\.adiabat"):
        adiabat.load(path)
