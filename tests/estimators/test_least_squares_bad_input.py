# SPDX-License-Identifier: BSD-3-Clause
"""Bad input to the least-squares machines: refused by name, and nothing has changed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from adiabat import LSSVC, LSSVR, NotLearnedError
from adiabat.feature_maps import Nystroem, Polynomial, RandomFourier

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
NAN = np.array([[1.0, np.nan, 0.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.partial_fit(X[:, :2], Y), ValueError, "X has 2 features"),
        (lambda m: m.forget(X[:1, :2], Y[:1]), ValueError, "X has 2 features"),
        (lambda m: m.partial_fit(NAN, [0]), ValueError, "NaN"),
        (lambda m: m.forget(NAN, [0]), ValueError, "NaN"),
        (lambda m: m.partial_fit(X[:2], Y[:3]), ValueError, "inconsistent numbers"),
        (lambda m: m.forget(X[:1], [7]), NotLearnedError, "label 7"),
        (lambda m: m.forget(X[:1], ["a"]), NotLearnedError, "label 'a'"),
        (lambda m: m.forget(X[[0] * 7], [0] * 7), NotLearnedError, "7 times"),
        (lambda m: m.partial_fit(X[:1], ["a"]), ValueError, "one type of label"),
        (lambda m: m.partial_fit(X[:1], [0], classes=[1, 2]), ValueError, "not in classes"),
        (lambda m: m.partial_fit(X[:1], [0], sample_weight=[-1.0]), ValueError, "Negative"),
        (lambda m: m.update(X[:1]), ValueError, "X and y together"),
        (lambda m: m.update(remove_X=X[:1]), ValueError, "remove_X, remove_y together"),
        (lambda m: m.update(np.empty((0, 2)), []), ValueError, "X has 2 features"),
        (lambda m: m.update(np.empty((0, 3)), [1]), ValueError, "X has 0 rows"),
        (lambda m: m.revise(X[:2], Y[:2], X[:1], Y[:1]), ValueError, "one for each"),
        (lambda m: m.forget(50.0 * X[:1], Y[:1]), NotLearnedError, "never learned"),
        (lambda m: m.set_params(rho=2.0).partial_fit(X, Y), ValueError, "rho=2.0 was 1.0"),
        (
            lambda m: m.set_params(feature_map=Polynomial()).partial_fit(X, Y),
            ValueError,
            "feature_map",
        ),
        (lambda m: m.predict(X[:, :2]), ValueError, "X has 2 features"),
    ],
)
def test_refused_and_unchanged(call, error, message):
    model = LSSVC().fit(X, Y)
    state = pickle.dumps(model.__dict__)
    parameters = model.get_params()
    with pytest.raises(error, match=message):
        call(model)
    model.set_params(**parameters)
    assert pickle.dumps(model.__dict__) == state


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rho": 0.0}, "rho"),
        ({"rho": -1.0}, "rho"),
        ({"rho": np.nan}, "rho"),
        ({"tol": 0.0}, "tol"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"feature_map": "rbf"}, "feature_map"),
        ({"feature_map": RandomFourier(gamma="scale")}, "gamma"),
        ({"feature_map": RandomFourier(n_components=0)}, "n_components"),
        ({"feature_map": Polynomial(degree=0)}, "degree"),
        ({"feature_map": Polynomial(coef0=-1.0)}, "coef0"),
        ({"feature_map": Nystroem(landmarks=np.eye(2))}, "landmarks has 2 columns"),
        ({"feature_map": Nystroem()}, "landmarks"),
    ],
)
def test_parameters_out_of_range(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(X, Y)


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_before_the_first_fit_there_is_nothing_to_forget(kind):
    for call in (
        lambda m: m.forget(X, Y),
        lambda m: m.revise(X, Y, X, Y),
        lambda m: m.update(remove_X=X, remove_y=Y),
        lambda m: m.certificate(),
        lambda m: m.predict(X),
    ):
        with pytest.raises(NotFittedError):
            call(kind())


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_an_empty_batch_does_nothing_and_says_so(kind):
    model = kind().fit(X, Y)
    before = model.coef_
    report = model.update(np.empty((0, 3)), [], remove_X=np.empty((0, 3)), remove_y=[])
    assert (report.n_added, report.n_removed, report.solver) == (0, 0, "none")
    assert "nothing changed" in str(report)
    assert np.array_equal(model.coef_, before)
    assert str(model.partial_fit(X[:0], Y[:0]).last_update_).startswith("nothing changed")


def test_more_rows_than_were_learned():
    model = LSSVR().fit(X, Y)
    with pytest.raises(NotLearnedError, match="more rows than were learned"):
        model.forget(np.vstack([X, X]), np.concatenate([Y, Y]))


def test_weights_that_are_all_zero():
    with pytest.raises(ValueError, match="zero for all rows"):
        LSSVC().fit(X, Y, sample_weight=np.zeros(12))
