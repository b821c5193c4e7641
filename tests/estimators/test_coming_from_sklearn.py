# SPDX-License-Identifier: BSD-3-Clause
"""Code written for sklearn.svm runs with the import changed, or says what to do instead."""

import inspect

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
