# SPDX-License-Identifier: BSD-3-Clause
"""Folds taken out of a fitted model against models fitted on the rest, on every fold."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    validation_curve,
)
from sklearn.model_selection import cross_validate as peer_cross_validate

import adiabat
from adiabat import LSSVC, SVC, SVDD, SVR, IncrementalPipeline, KernelLSSVC, OneClassSVM

TIGHT = 1e-7


def classes(n_classes, n=90, seed=0):
    return make_blobs(n, 4, centers=n_classes, cluster_std=4.0, random_state=seed)


def numbers(n=80):
    X, y = make_regression(n, 4, noise=20.0, random_state=1)
    return X, y / np.std(y)


def low_rank(kind):
    """Duplicates and few integers: singular kernels, ties by the dozen."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (70, 3)).astype(float)
    X[40:55] = X[:15]
    y = (X.sum(1) + rng.integers(0, 3, 70) > 4).astype(int)
    return (X, y) if kind == "class" else (X, y + 0.1 * rng.integers(0, 4, 70))


CASES = {
    "binary": (SVC(C=3.0, gamma=0.1), *classes(2)),
    "three classes": (SVC(C=3.0, gamma=0.1), *classes(3)),
    "three classes, linear": (SVC(C=0.5, kernel="linear"), *classes(3)),
    "duplicates": (SVC(C=10.0, gamma=0.5), *low_rank("class")),
    "linear of low rank": (SVC(C=10.0, kernel="linear"), *low_rank("class")),
    "numbers": (SVR(C=2.0, epsilon=0.1, gamma=0.2), *numbers()),
    "numbers of low rank": (SVR(C=5.0, kernel="linear", epsilon=0.05), *low_rank("number")),
    "one class": (OneClassSVM(nu=0.3, gamma=0.1), *classes(1)),
    "one class, duplicates": (OneClassSVM(nu=0.4, gamma=0.5), *low_rank("class")),
    "sphere": (SVDD(C=0.05, gamma=0.1), *classes(1)),
}


def decide(model, X):
    return model.predict(X) if isinstance(model, SVR) else model.decision_function(X)


def worst_difference(model, X, y):
    """A scorer that compares each fold's model with one fitted on the rest, everywhere."""

    def scorer(view, X_test, y_test=None):
        rest = np.isin(np.arange(len(X)), np.asarray(view.ids_))
        refit = clone(model).fit(X[rest], y[rest])
        off = np.abs(decide(view, X) - decide(refit, X)).max()
        return {"off": off / max(1.0, np.abs(decide(refit, X)).max()), "n": len(X_test)}

    return scorer


@pytest.mark.parametrize("case", CASES)
def test_every_fold_equals_fitting_on_the_rest(case):
    model, X, y = CASES[case]
    fitted = clone(model).fit(X, y)
    found = adiabat.cross_validate(
        fitted, cv=KFold(5, shuffle=True, random_state=3), scoring=worst_difference(model, X, y)
    )
    assert found["test_off"].max() <= TIGHT
    assert found["test_n"].sum() == len(X)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nothing_of_the_model_changes(case, n_jobs):
    model, X, y = CASES[case]
    fitted = clone(model).fit(X, y)
    before = state(fitted)
    scoring = None if hasattr(fitted, "score") else lambda view, X, y=None: view.predict(X).mean()
    adiabat.cross_validate(fitted, cv=4, scoring=scoring, n_jobs=n_jobs)
    fitted.leave_out(np.arange(len(X)) % 3, n_jobs=n_jobs)
    fitted.preview(remove=[0, 1], at=X[:3])
    assert_same_state(before, state(fitted))


def test_an_exception_inside_leaves_the_model_as_it_was():
    model, X, y = CASES["three classes"]
    fitted = clone(model).fit(X, y)
    before = state(fitted)

    def interrupted(view, X, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adiabat.cross_validate(fitted, scoring=interrupted)
    assert_same_state(before, state(fitted))
    fitted.forget([3, 4])
    assert fitted.certificate().ok


def state(model):
    """Everything a machine computes with, to the last bit."""
    held = model._model
    gram = held.solver.samples.gram
    out = {"position": held.position, "target": held.target, "weight": held.weight,
           "ids": held.ledger.ids, "slots": gram.slot_of, "owner": gram.owner,
           "data": held.solver.samples.data, "diagonal": held.solver.samples.diagonal}  # fmt: skip
    for k, panel in enumerate(gram.panels):
        out[f"panel {k}"] = panel[: gram.n]
    for key, machine in held.solver.machines.items():
        for name in ("at", "t", "lo", "hi", "u", "r", "in_margin", "margin"):
            out[f"{key} {name}"] = getattr(machine, name)
        out[f"{key} b, d"] = np.array([machine.b, machine.d])
        out[f"{key} factor"] = machine.factor.lower()
    names = {"parameters": str(model.get_params()), "attributes": sorted(vars(model))}
    return {**{name: np.array(value) for name, value in out.items()}, **names}


def assert_same_state(before, after):
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert np.array_equal(value, after[name], equal_nan=False), name


# -- as scikit-learn's ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv",
    [None, 4, StratifiedKFold(3), ShuffleSplit(3, random_state=0), TimeSeriesSplit(3),
     [(np.arange(60), np.arange(60, 90)), (np.arange(90) >= 30, np.arange(90) < 30)]],
    ids=["default", "int", "stratified", "shuffle", "time series", "iterable"],
)  # fmt: skip
def test_scores_are_those_of_scikit_learn(cv):
    model, X, y = CASES["three classes"]
    scoring = ["accuracy", "f1_macro"]
    wanted = peer_cross_validate(model, X, y, cv=cv, scoring=scoring, return_train_score=True)
    found = adiabat.cross_validate(
        clone(model).fit(X, y), cv=cv, scoring=scoring, return_train_score=True
    )
    assert found.keys() == wanted.keys()
    for name in wanted:
        if not name.endswith("_time"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9)


@pytest.mark.parametrize(
    "scoring",
    [None, "neg_mean_squared_error", make_scorer(mean_absolute_error),
     {"mae": make_scorer(mean_absolute_error), "r2": "r2"}, ("r2", "neg_mean_absolute_error")],
    ids=["none", "string", "callable", "dict", "tuple"],
)  # fmt: skip
def test_scorers_of_every_shape(scoring):
    model, X, y = CASES["numbers"]
    wanted = peer_cross_validate(model, X, y, cv=3, scoring=scoring, return_indices=True)
    found = adiabat.cross_validate(
        clone(model).fit(X, y), X, y, cv=3, scoring=scoring, return_indices=True
    )
    assert found.keys() == wanted.keys()
    for name in wanted:
        if name.startswith("test_"):
            np.testing.assert_allclose(found[name], wanted[name], atol=TIGHT)
    np.testing.assert_array_equal(found["indices"]["test"][0], wanted["indices"]["test"][0])


def test_groups_stay_together():
    model, X, y = CASES["binary"]
    groups = np.arange(90) // 7
    wanted = peer_cross_validate(model, X, y, cv=GroupKFold(4), groups=groups)
    found = adiabat.cross_validate(clone(model).fit(X, y), cv=GroupKFold(4), groups=groups)
    np.testing.assert_array_equal(found["test_score"], wanted["test_score"])


@pytest.mark.parametrize("kind", ["sparse", "precomputed", "frame"])
def test_rows_of_other_kinds(kind):
    X, y = classes(3)
    model = SVC(C=3.0, gamma=0.05)
    if kind == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 2.0, X, 0.0))
    elif kind == "precomputed":
        X, model = X @ X.T / 50.0, SVC(C=3.0, kernel="precomputed")
    else:
        X = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    fitted = clone(model).fit(X, y)
    found = adiabat.cross_validate(fitted, X, y, cv=4, return_estimator=True)
    np.testing.assert_array_equal(
        found["test_score"], peer_cross_validate(model, X, y, cv=4)["test_score"]
    )
    kept = found["estimator"][0]
    kept.forget(kept.ids_[:3])
    assert kept.certificate().ok
    assert hasattr(kept, "feature_names_in_") == (kind == "frame")


@pytest.mark.parametrize(
    "model",
    [LSSVC(), KernelLSSVC(gamma=0.1), IncrementalPipeline(SVC(gamma=0.1))],
    ids=lambda model: type(model).__name__,
)
def test_the_other_estimators(model):
    X, y = classes(3)
    found = adiabat.cross_validate(clone(model).fit(X, y), X, y, cv=3)
    wanted = peer_cross_validate(model, X, y, cv=3)
    np.testing.assert_allclose(found["test_score"], wanted["test_score"], rtol=1e-9)


def test_a_class_that_goes_with_its_fold():
    X, y = classes(2, 40)
    two = SVC(C=1.0, gamma=0.1).fit(X[np.argsort(y)], np.sort(y))
    found = adiabat.cross_validate(two, cv=KFold(2))
    np.testing.assert_array_equal(found["test_score"], [0.0, 0.0])


@pytest.mark.parametrize(
    ("case", "name", "values"),
    [("three classes", "C", [0.1, 10.0, 1.0]), ("binary", "gamma", [0.01, 0.3]),
     ("numbers", "epsilon", [0.01, 0.5]),
     # above C = 0.05 rows of this family have f = 0 exactly, and rounding would decide
     ("linear of low rank", "C", [0.01, 0.03])],
)  # fmt: skip
def test_validation_curve_is_that_of_scikit_learn(case, name, values):
    model, X, y = CASES[case]
    wanted = validation_curve(model, X, y, param_name=name, param_range=values, cv=3)
    fitted = clone(model).fit(X, y)
    before = state(fitted)
    found = adiabat.validation_curve(fitted, name, values, cv=3)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=TIGHT)
    assert_same_state(before, state(fitted))


# -- bad input ------------------------------------------------------------------------------------


def fitted_binary():
    model, X, y = CASES["binary"]
    return clone(model).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scoring": "acuracy"}, "scoring='acuracy'"),
        ({"scoring": 3}, "scoring=3"),
        ({"groups": [1, 2]}, "groups has 2 labels, the model has 90"),
        ({"cv": []}, "no folds"),
        ({"cv": [([], [1])]}, "training set that is empty"),
        ({"cv": [([1, 1, 2], [3])]}, "a sample twice"),
        ({"cv": [([1, 2, 99], [3])]}, "places up to 99"),
        ({"X": np.zeros((90, 4))}, "not what the model was taught"),
        ({"X": np.zeros((9, 4))}, "not what the model was taught"),
        ({"y": np.zeros(90)}, "not what the model was taught"),
        ({"scoring": lambda model, X, y: [1, 2]}, "must give a number"),
    ],
)
def test_cross_validation_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        adiabat.cross_validate(fitted_binary(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("D", [1.0]), "param_name='D'"),
        (("C", []), "param_range is empty"),
        (("C", [-1.0]), "'C' parameter"),
    ],
)
def test_validation_curve_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        adiabat.validation_curve(fitted_binary(), *arguments)


def test_what_has_no_score_or_is_not_fitted():
    with pytest.raises(ValueError, match="scoring=None"):
        adiabat.cross_validate(OneClassSVM().fit(classes(1)[0]))
    with pytest.raises(NotFittedError):
        adiabat.cross_validate(SVC())
    with pytest.raises(ValueError, match="several scorers"):
        adiabat.validation_curve(fitted_binary(), "C", [1.0], scoring=["accuracy"])
    with pytest.raises(ValueError, match="X and y are missing"):
        adiabat.cross_validate(LSSVC().fit(*classes(2)))
