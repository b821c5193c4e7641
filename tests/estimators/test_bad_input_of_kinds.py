# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue of bad input for regression, one class and the sphere; `test_bad_input` has SVC's.

What is refused leaves the model to the last bit as it was, and the model goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from adiabat import SVDD, SVR, IdError, IndefiniteKernelError, OneClassSVM

from laws.compare import ESTIMATORS, exact_state

RNG = np.random.default_rng(0)
X = np.abs(RNG.standard_normal((20, 3)))
Y = X[:, 0] - X[:, 1]
NEW, TARGETS = np.abs(RNG.standard_normal((2, 3))), [0.5, -0.5]
UNSUPERVISED = ("one_class", "svdd")


def spoiled(value: Any) -> Any:
    rows = NEW.copy()
    rows[1, 2] = value
    return rows


class Case(NamedTuple):
    """What is tried, what is raised, what the message must contain."""

    act: Callable[[Any], Any]
    error: type[Exception]
    message: str


def on_fit(name: str, value: Any, rows: int = 20) -> Callable[[Any], Any]:
    """fit with a parameter set to another value, which is set back."""

    def act(model: Any) -> None:
        before = getattr(model, name)
        setattr(model, name, value)
        try:
            model.fit(X[:rows], Y[:rows])
        finally:
            setattr(model, name, before)

    return act


def changed(name: str, value: Any) -> Callable[[Any], Any]:
    """An update with a parameter set behind the model's back."""

    def act(model: Any) -> None:
        before = getattr(model, name)
        setattr(model, name, value)
        try:
            model.partial_fit(NEW, TARGETS)
        finally:
            setattr(model, name, before)

    return act


EVERY: dict[str, Case] = {
    "NaN": Case(lambda m: m.partial_fit(spoiled(np.nan), TARGETS), ValueError, "X contains NaN"),
    "infinity": Case(lambda m: m.fit(spoiled(np.inf), TARGETS), ValueError, "X contains infinity"),
    "NaN, sparse": Case(
        lambda m: m.partial_fit(sp.csr_array(spoiled(np.nan)), TARGETS), ValueError, "X contains"
    ),
    "too large to square": Case(
        lambda m: type(m)(kernel="poly", gamma=1.0).partial_fit(spoiled(1e200), TARGETS),
        ValueError,
        "kernel=poly.*not finite; scale",
    ),
    "features": Case(lambda m: m.partial_fit(NEW[:, :2], TARGETS), ValueError, "X has 2 features"),
    "features to predict": Case(lambda m: m.predict(NEW[:, :2]), ValueError, "X has 2 features"),
    "1-D": Case(lambda m: m.partial_fit(NEW[0], TARGETS), ValueError, "Expected 2D array"),
    "text": Case(lambda m: m.partial_fit([["a"] * 3] * 2, TARGETS), ValueError, "X has a value"),
    "empty": Case(lambda m: m.fit(np.empty((0, 3)), []), ValueError, "0 sample"),
    "empty of another width": Case(
        lambda m: m.partial_fit(np.empty((0, 5)), []), ValueError, "X has 5 features"
    ),
    "ids known": Case(lambda m: m.partial_fit(NEW, TARGETS, ids=[3, 99]), IdError, "already known"),
    "ids repeated": Case(lambda m: m.partial_fit(NEW, TARGETS, ids=[9, 9]), IdError, "repeated"),
    "ids of another kind": Case(
        lambda m: m.partial_fit(NEW, TARGETS, ids=["a", "b"]), IdError, "str.*int"
    ),
    "ids too few": Case(lambda m: m.update(NEW, TARGETS, ids=[99]), IdError, "length 1, X has 2"),
    "index known": Case(
        lambda m: m.partial_fit(pd.DataFrame(NEW, index=[3, 4]), TARGETS), IdError, "index of X"
    ),
    "forget unknown": Case(lambda m: m.forget([1, 99]), IdError, "99.*missing='ignore'"),
    "remove unknown": Case(lambda m: m.update(NEW, TARGETS, remove=[99]), IdError, "99"),
    "revise unknown": Case(lambda m: m.revise([99], X=NEW[:1]), IdError, "99"),
    "revise X with NaN": Case(
        lambda m: m.revise([1, 2], X=spoiled(np.nan)), ValueError, "X contains NaN"
    ),
    "revise X of another length": Case(
        lambda m: m.revise([1, 2], X=NEW[:1]), ValueError, "X has 1 rows, ids has 2"
    ),
    "weight negative": Case(
        lambda m: m.partial_fit(NEW, TARGETS, sample_weight=[1.0, -1.0]), ValueError,
        "sample_weight",
    ),
    "weights all zero": Case(
        lambda m: m.fit(X, Y, sample_weight=np.zeros(20)), ValueError, "sample_weight is zero"
    ),
    "kernel sigmoid": Case(on_fit("kernel", "sigmoid"), IndefiniteKernelError, "sigmoid.*rbf"),
    "gamma changed": Case(changed("gamma", 0.1), ValueError, r"gamma=0.1.*retune\(gamma=0.1\)"),
    "kernel changed": Case(changed("kernel", "linear"), ValueError, "kernel='linear' was 'rbf'"),
    "tol": Case(changed("tol", -1.0), InvalidParameterError, "'tol' parameter"),
    "solver": Case(changed("solver", "smo"), InvalidParameterError, "'solver' parameter"),
}  # fmt: skip

OWN: dict[str, dict[str, Case]] = {
    "svr": {
        "C zero": Case(on_fit("C", 0.0), InvalidParameterError, "'C' parameter"),
        "epsilon below zero": Case(on_fit("epsilon", -0.1), InvalidParameterError, "'epsilon'"),
        "epsilon NaN": Case(on_fit("epsilon", np.nan), ValueError, "epsilon"),
        "epsilon infinite": Case(on_fit("epsilon", np.inf), ValueError, "epsilon"),
        "epsilon None": Case(on_fit("epsilon", None), InvalidParameterError, "'epsilon'"),
        "epsilon changed": Case(
            changed("epsilon", 0.5), ValueError, r"epsilon=0.5 was 0.1.*retune\(epsilon=0.5\)"
        ),
        "C changed": Case(changed("C", 5.0), ValueError, r"C=5.0 was 1.0.*retune\(C=5.0\)"),
        "y NaN": Case(lambda m: m.partial_fit(NEW, [0.0, np.nan]), ValueError, "y contains NaN"),
        "y infinite": Case(lambda m: m.fit(NEW, [0.0, np.inf]), ValueError, "y contains infinity"),
        "y minus infinity, revised": Case(
            lambda m: m.revise([1], y=[-np.inf]), ValueError, "y contains infinity"
        ),
        "y NaN, revised": Case(lambda m: m.revise(1, y=np.nan), ValueError, "y contains NaN"),
        "y text": Case(lambda m: m.partial_fit(NEW, ["a", "b"]), ValueError, "y|float"),
        "y complex": Case(lambda m: m.partial_fit(NEW, [1j, 0]), ValueError, "[Cc]omplex"),
        "y too long": Case(lambda m: m.partial_fit(NEW, [0, 1, 2]), ValueError, "inconsistent"),
        "y too short": Case(lambda m: m.update(NEW, [0.0]), ValueError, "inconsistent"),
        "y of two columns": Case(
            lambda m: m.partial_fit(NEW, [[0, 1], [1, 0]]), ValueError, "1d array|1D"
        ),
        "y missing": Case(lambda m: m.partial_fit(NEW, None), ValueError, "y"),
        "y without X": Case(lambda m: m.update(y=TARGETS), ValueError, "X and y"),
        "X without y": Case(lambda m: m.update(NEW), ValueError, "X and y"),
        "y for no rows": Case(
            lambda m: m.partial_fit(np.empty((0, 3)), [1.0]), ValueError, "y has 1 targets"
        ),
        "y revised, too many": Case(
            lambda m: m.revise([1], y=[1.0, 2.0]), ValueError, "y has 2 targets, ids has 1"
        ),
    },
    "one_class": {
        "nu zero": Case(on_fit("nu", 0.0), InvalidParameterError, "'nu' parameter"),
        "nu below zero": Case(on_fit("nu", -0.5), InvalidParameterError, "'nu' parameter"),
        "nu above one": Case(on_fit("nu", 1.0001), InvalidParameterError, "'nu' parameter"),
        "nu NaN": Case(on_fit("nu", np.nan), ValueError, "nu"),
        "nu text": Case(on_fit("nu", "0.5"), InvalidParameterError, "'nu' parameter"),
        "nu changed": Case(changed("nu", 0.9), ValueError, r"nu=0.9.*retune\(nu=0.9\)"),
    },
    "svdd": {
        "C zero": Case(on_fit("C", 0.0), InvalidParameterError, "'C' parameter"),
        "C NaN": Case(on_fit("C", np.nan), ValueError, "C"),
        "C infinite": Case(on_fit("C", np.inf), ValueError, "C"),
        "C too small": Case(
            on_fit("C", 0.01), ValueError, r"C=0.01 is too small for n_samples=20.*C >= 0.05"
        ),
        "too few samples": Case(
            on_fit("C", 0.1, rows=5), ValueError, "n_samples=5.*C >= 0.2.*partial_fit"
        ),
        "too little weight": Case(
            lambda m: m.fit(X, sample_weight=np.full(20, 0.4)), ValueError,
            "n_samples=20 of weight 8.*C >= 0.125",
        ),
        "C changed": Case(changed("C", 0.2), ValueError, r"C=0.2 was 0.1.*retune\(C=0.2\)"),
    },
}  # fmt: skip
CATALOGUE = [
    (kind, name) for kind in OWN for name in (*EVERY, *OWN[kind])
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), CATALOGUE)
def test_bad_input_is_refused_and_changes_nothing(kind: str, name: str) -> None:
    case = OWN[kind].get(name) or EVERY[name]
    model = ESTIMATORS[kind]().fit(X, Y)
    before, attributes = exact_state(model, X), set(vars(model))
    with pytest.raises(case.error) as caught:
        case.act(model)
    said = str(caught.value)
    assert re.search(case.message, said, re.DOTALL), said
    assert exact_state(model, X) == before
    assert set(vars(model)) == attributes
    model.partial_fit(NEW, TARGETS)
    assert model.certificate().ok and model.ids_.tolist() == list(range(22))


@pytest.mark.parametrize("kind", OWN)
def test_bad_input_before_fit_leaves_the_model_unfitted(kind: str) -> None:
    model = ESTIMATORS[kind]()
    before = set(vars(model))
    for act in (
        lambda: model.predict(X),
        lambda: model.forget([0]),
        lambda: model.revise([0], sample_weight=1.0),
        lambda: model.certificate(),
        lambda: model.to_sklearn(),
        lambda: model.save("nowhere.adiabat"),
        lambda: model.update(X, Y, remove=[0]),
    ):
        with pytest.raises(NotFittedError):
            act()
    for act in (
        lambda: model.partial_fit(spoiled(np.nan), TARGETS),
        lambda: model.partial_fit(NEW, TARGETS, ids=[1, 1]),
        lambda: model.partial_fit(NEW, TARGETS, sample_weight=[0.0, 0.0]),
        lambda: model.partial_fit(np.empty((0, 3)), []),
    ):
        with pytest.raises(ValueError, match=r"X|ids|sample"):
            act()
    assert set(vars(model)) == before
    assert not any(hasattr(model, name) for name in ("ids_", "support_", "dual_coef_"))
    assert model.partial_fit(X, Y).ids_.tolist() == list(range(20))


@pytest.mark.parametrize("kind", UNSUPERVISED)
def test_targets_of_detectors_are_not_looked_at(kind: str) -> None:
    model, plain = ESTIMATORS[kind]().fit(X, ["anything"] * 20), ESTIMATORS[kind]().fit(X)
    model.partial_fit(NEW, [np.nan, None])
    plain.partial_fit(NEW)
    model.revise([1], y=["else"])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_fit_refuses_a_sphere_that_partial_fit_may_start() -> None:
    model = SVDD(C=0.1)
    with pytest.raises(ValueError, match=r"C >= 0.2, or start with partial_fit"):
        model.fit(X[:5])
    assert not hasattr(model, "ids_")
    model.partial_fit(X[:5])
    np.testing.assert_allclose(model.dual_coef_, 0.2)
    with pytest.raises(ValueError, match="too small"):
        model.fit(X[:5])
    assert model.ids_.tolist() == list(range(5))
    assert SVDD(C=0.2).fit(X[:5]).certificate().ok
    assert SVDD(C=1 / 3).fit(X[:3]).certificate().ok  # 3 times 1/3 is 1 but for rounding


def test_an_indefinite_kernel_is_named() -> None:
    def distance(A: Any, B: Any) -> Any:
        return np.sqrt(((A[:, None] - B[None]) ** 2).sum(-1))

    for model in (SVR(kernel=distance), OneClassSVM(kernel=distance), SVDD(kernel=distance)):
        with pytest.raises(IndefiniteKernelError, match="not positive semidefinite"):
            model.fit(X, Y)
        assert not hasattr(model, "ids_")
