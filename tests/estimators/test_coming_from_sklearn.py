# SPDX-License-Identifier: BSD-3-Clause
"""Code written for sklearn.svm runs with the import changed, or says what to do instead."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import resample
from sklearn.utils._param_validation import InvalidParameterError

import adiabat
from adiabat import SVC, SVR, IdError, OneClassSVM

X, Y = load_iris(return_X_y=True)
#: Values other than the defaults that change nothing.
HARMLESS = {
    "shrinking": False, "cache_size": 7.5, "verbose": True, "random_state": 3, "break_ties": True,
}  # fmt: skip


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
def test_every_parameter_of_scikit_learn_is_known_by_its_default(name):
    ours = inspect.signature(getattr(adiabat, name)).parameters
    for parameter in inspect.signature(getattr(sklearn.svm, name)).parameters.values():
        default = ours[parameter.name].default
        # probability is deprecated there, and its default says so
        same = {"tol": 1e-9, "probability": False}.get(parameter.name, parameter.default)
        assert default == same, parameter.name


@pytest.mark.parametrize("model", [SVC, SVR, OneClassSVM])
def test_what_changes_nothing_is_taken(model):
    names = inspect.signature(model).parameters
    chosen = {name: value for name, value in HARMLESS.items() if name in names}
    plain, given = model().fit(X, Y), model(**chosen).fit(X, Y)
    np.testing.assert_array_equal(plain.dual_coef_, given.dual_coef_)
    np.testing.assert_array_equal(plain.predict(X), given.predict(X))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"probability": True}, "calibration='sigmoid'"),
        ({"max_iter": 100}, r"max_iter=100.*leave max_iter at -1"),
        ({"break_ties": True, "decision_function_shape": "ovo"}, "break_ties must be False"),
    ],
)
def test_what_would_change_the_result_is_refused_in_a_sentence(parameters, said):
    with pytest.raises(ValueError, match=said):
        SVC(**parameters).fit(X, Y).predict(X)


def test_the_error_for_kernels_lists_those_there_are():
    with pytest.raises(InvalidParameterError, match="'rbf'") as refused:
        SVC(kernel="nothing").fit(X, Y)
    assert "sigmoid" not in str(refused.value)


def test_what_libsvm_leaves_behind():
    model = SVC(class_weight={1: 2.0}).fit(X, Y)
    assert model.n_iter_.shape == (3,) and (model.n_iter_ >= 1).all()
    assert (model.fit_status_, model.shape_fit_) == (0, (150, 4))
    assert model.class_weight_.tolist() == [1.0, 2.0, 1.0]
    model.forget([0])
    assert model.shape_fit_ == (149, 4)
    line = SVR().fit(X, Y)
    assert line.n_iter_ >= 1 and line.class_weight_.shape == (0,)
    with pytest.raises(AttributeError, match="call fit"):
        _ = SVC().n_iter_


def test_meta_estimators_of_scikit_learn_take_it():
    unlabelled = np.where(np.arange(150) % 4 == 0, -1, Y)
    asked = SelfTrainingClassifier(SVC(gamma=0.5), criterion="k_best", k_best=5)
    with pytest.raises(AttributeError):  # it needs probabilities, and says so
        asked.fit(X, unlabelled)
    members = [("a", SVC(random_state=0)), ("b", SVC(kernel="linear", random_state=1))]
    for ensemble in (VotingClassifier(members), StackingClassifier(members, cv=3)):
        assert ensemble.fit(X, Y).score(X, Y) > 0.9


INDICES = {
    "dates": pd.date_range("2026-01-01", periods=150),
    "floats": np.arange(150) / 2.0,
    "repeated": np.arange(150) % 100,
    "levels": pd.MultiIndex.from_product([range(15), range(10)]),
    "truths": np.arange(150) < 75,
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_that_cannot_be_ids_is_counted(name):
    frame = pd.DataFrame(X, index=INDICES[name])
    with pytest.warns(UserWarning, match=r"index of X cannot be ids.*Pass ids="):
        model = SVC().fit(frame, Y)
    assert model.ids_.tolist() == list(range(150))
    with pytest.warns(UserWarning, match="cannot be ids"):
        model.partial_fit(frame.iloc[[0, 100]], Y[[0, 100]])
    assert model.ids_.tolist() == list(range(152))


def test_frames_that_are_cut_and_drawn():
    frame = pd.DataFrame(X, index=INDICES["dates"])
    with pytest.warns(UserWarning, match="cannot be ids"):
        assert cross_val_score(SVC(), frame, Y).mean() > 0.9
        SVC().fit(*resample(frame, Y, random_state=0))
    named = SVC().fit(frame.set_axis([f"P{i}" for i in range(150)]), Y)
    with pytest.warns(UserWarning, match="cannot be ids"), pytest.raises(IdError, match="pass str"):
        named.partial_fit(frame[:2], Y[:2])  # numbers among names: nobody could tell them apart
    assert len(named.ids_) == 150


def count_letters(A, B):
    """A kernel of texts, which must come as they were given."""
    assert all(isinstance(text, str) for text in [*A, *B])
    counts = [
        np.array([[text.count(letter) for letter in "ab"] for text in part]) for part in (A, B)
    ]
    return (counts[0] @ counts[1].T).astype(float)


TEXTS = ["a a", "a", "b", "b b", "a b"]
COUNTS = np.array([[2, 0], [1, 0], [0, 1], [0, 2], [1, 1]])


@pytest.mark.parametrize("given", [list, np.array, pd.Series])
def test_rows_that_are_not_numbers_for_a_kernel_of_ones_own(given):
    labels = [1, 1, 2, 2, 1]
    texts = SVC(kernel=count_letters).fit(given(TEXTS), labels)
    numbers = SVC(kernel="linear").fit(COUNTS, labels)
    for model, rows in ((texts, given(TEXTS)), (numbers, COUNTS)):
        model.forget([1]).partial_fit(rows[1:2], [1], ids=[7])
        model.revise([7], X=list(rows)[4:5])
        assert model.certificate().ok
    np.testing.assert_allclose(
        texts.decision_function(TEXTS), numbers.decision_function(COUNTS), atol=1e-9
    )
    # without one of them others have f = 0, and rounding says on which side
    np.testing.assert_allclose(
        texts.leave_one_out().decision, numbers.leave_one_out().decision, atol=1e-9
    )
    again = pickle.loads(pickle.dumps(texts))
    np.testing.assert_array_equal(again.decision_function(TEXTS), texts.decision_function(TEXTS))


def test_rows_that_are_not_numbers_are_counted_and_measured():
    table = pd.DataFrame({"kind": ["x", "x", "y", "z"], "size": ["s", "m", "s", "m"]})

    def agreement(A, B):
        return (A[:, None] == B[None]).sum(axis=-1).astype(float)

    model = SVC(kernel=agreement).fit(table, [0, 0, 1, 1])
    assert model.n_features_in_ == 2 and list(model.predict(table)) == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="1 columns, but SVC is expecting 2"):
        model.predict(table[["kind"]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=count_letters).fit(TEXTS, [0, 1])
    with pytest.raises(ValueError, match="encode text columns"):
        SVC().fit(table, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="Expected 2D array"):
        SVC(kernel=count_letters).fit([1.0, 2.0], [0, 1])


def test_a_fractional_degree_where_the_kernel_is_semidefinite():
    """Of one feature above 0 it is a product of powers; elsewhere it need not be."""
    x = np.linspace(0.2, 2.0, 9)[:, None]
    labels = [0, 0, 1, 0, 1, 0, 1, 1, 1]
    model = SVC(kernel="poly", degree=2.5, gamma=1.0).fit(x, labels)
    assert model.certificate().ok and model.forget([0]).certificate().ok
    powers = SVC(kernel="linear").fit(x[1:] ** 2.5, labels[1:])
    np.testing.assert_allclose(
        model.decision_function(x), powers.decision_function(x**2.5), atol=1e-8
    )
    with pytest.raises(ValueError, match=r"degree=2\.5 asks for powers"):
        SVC(kernel="poly", degree=2.5).fit(x - 1.0, labels)
    with pytest.raises(adiabat.IndefiniteKernelError, match=r"degree=1\.5 and coef0=0\.0"):
        SVC(kernel="poly", degree=1.5).fit(np.abs(X[:60] - 2.0), Y[:60])
    with pytest.raises(ValueError, match=r"degree=0\.5 must be 0, or from 1"):
        SVC(kernel="poly", degree=0.5).fit(x, labels)


def test_a_negative_coef0_where_the_kernel_is_semidefinite():
    """With a constant column of 2, <x, z> - 1 is the product without it, plus 3."""
    rows = np.column_stack([np.full(60, 2.0), X[40:100, :2]])
    plain = SVC(kernel="poly", degree=2, gamma=1.0, coef0=3.0).fit(rows[:, 1:], Y[40:100])
    model = SVC(kernel="poly", degree=2, gamma=1.0, coef0=-1.0).fit(rows, Y[40:100])
    np.testing.assert_allclose(
        model.decision_function(rows), plain.decision_function(rows[:, 1:]), atol=1e-7
    )
    with pytest.raises(adiabat.IndefiniteKernelError, match=r"coef0=-9\.0"):
        SVC(kernel="poly", degree=2, gamma=1.0, coef0=-9.0).fit(X - X.mean(axis=0), Y)


def test_logarithms_of_probabilities():
    model = SVC(calibration="sigmoid").fit(X[:100], Y[:100])
    np.testing.assert_array_equal(
        model.predict_log_proba(X[:5]), np.log(model.predict_proba(X[:5]))
    )
    assert not hasattr(SVC(), "predict_log_proba")


@pytest.mark.parametrize("kind", ["int8", "uint16", "float32", "object", "bool", "<U1"])
def test_labels_keep_their_type(kind, tmp_path):
    labels = np.array(list("aabb")) if kind in ("object", "<U1") else np.array([0, 0, 1, 1])
    rows = np.arange(4.0)[:, None]
    model = SVC().fit(rows, labels.astype(kind))
    theirs = sklearn.svm.SVC().fit(rows, labels.astype(kind))
    assert model.classes_.dtype == theirs.classes_.dtype == kind
    assert model.predict(rows).dtype == kind
    model.save(tmp_path / "model")
    for again in (adiabat.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.forget([0]).classes_.dtype == kind
    if kind == "int8":  # a label that it does not hold
        assert model.partial_fit([[9.0]], [1000]).classes_.tolist() == [0, 1, 1000]
