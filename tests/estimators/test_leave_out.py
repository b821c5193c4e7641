# SPDX-License-Identifier: BSD-3-Clause
"""Groups left out, and previews, against models fitted without the samples, or with others."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from adiabat import SVC, SVDD, SVR, IdError, OneClassSVM
from adiabat.analysis import sets

TIGHT = 1e-7


def data(n=60, n_classes=3):
    return make_blobs(n, 3, centers=n_classes, cluster_std=4.0, random_state=2)


MODELS = {
    "binary": (lambda: SVC(C=3.0, gamma=0.1), 2),
    "ovr": (lambda: SVC(C=3.0, gamma=0.1), 3),
    "ovo": (lambda: SVC(C=3.0, gamma=0.1, decision_function_shape="ovo"), 3),
    "svr": (lambda: SVR(C=2.0, gamma=0.1), 3),
    "one class": (lambda: OneClassSVM(nu=0.3, gamma=0.1), 3),
    "svdd": (lambda: SVDD(C=0.1, gamma=0.1), 3),
}


def decide(model, X):
    return model.predict(X) if isinstance(model, SVR) else model.decision_function(X)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("as_ids", [False, True], ids=["labels", "ids"])
def test_each_group_as_by_the_model_without_it(name, as_ids):
    make, n_classes = MODELS[name]
    X, y = data(n_classes=n_classes)
    ids = [f"row {k}" for k in range(len(X))]
    model = make().fit(X, y, ids=ids)
    labels = np.array(["a", "b", "c", "d"])[np.arange(len(X)) % 4]
    groups = [[ids[k] for k in np.flatnonzero(labels == g)] for g in "abcd"] if as_ids else labels
    found = model.leave_out(groups)
    np.testing.assert_array_equal(found.ids, ids)
    assert found.n_groups == 4
    for k, group in enumerate("abcd"):
        own = labels == group
        refit = make().fit(X[~own], y[~own])
        np.testing.assert_array_equal(found.group[own], k if as_ids else group)
        np.testing.assert_allclose(found.decision[own], decide(refit, X[own]), atol=TIGHT)
        np.testing.assert_allclose(found.prediction[own], refit.predict(X[own]), atol=TIGHT)
    if name == "svr":
        np.testing.assert_allclose(found.residual, y - found.prediction)
        assert found.error == pytest.approx(np.mean((y - found.prediction) ** 2))
        with pytest.raises(AttributeError):
            _ = found.correct
    else:
        truth = 1 if name in ("one class", "svdd") else y
        assert found.error == pytest.approx(np.mean(found.prediction != truth))
        with pytest.raises(AttributeError):
            _ = found.residual
    assert "4 groups" in str(found)


def test_some_samples_only_in_the_order_of_learning():
    X, y = data()
    found = SVC(gamma=0.1).fit(X, y).leave_out([[7, 3], [5]])
    np.testing.assert_array_equal(found.ids, [3, 5, 7])
    np.testing.assert_array_equal(found.group, [0, 1, 0])
    np.testing.assert_array_equal(found.target, y[[3, 5, 7]])


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_groups_of_one_equal_leave_one_out(shape):
    X, y = data(40)
    y[0] = 7  # alone in its class
    model = SVC(C=3.0, gamma=0.1, decision_function_shape=shape).fit(X, y)
    one, many = model.leave_one_out(), model.leave_out(np.arange(40))
    np.testing.assert_array_equal(one.prediction, many.prediction)
    finite = np.isfinite(one.decision)
    np.testing.assert_array_equal(finite, np.isfinite(many.decision))
    np.testing.assert_allclose(one.decision[finite], many.decision[finite], atol=TIGHT)


def test_a_class_that_goes_with_its_group():
    X, y = data(40, 2)
    found = SVC(gamma=0.1).fit(X, y).leave_out(y)
    np.testing.assert_array_equal(found.decision, 0.0)
    np.testing.assert_array_equal(found.prediction, 1 - y)
    assert found.error == 1.0


@pytest.mark.parametrize("make", [SVC, SVR, OneClassSVM, SVDD])
def test_a_given_kernel(make):
    X, y = data(40)
    K = X @ X.T / 30.0
    groups = np.arange(40) % 3
    given = make(kernel="precomputed").fit(K, y).leave_out(groups)
    plain = make(kernel="linear").fit(X / np.sqrt(30.0), y).leave_out(groups)
    np.testing.assert_allclose(given.decision, plain.decision, atol=TIGHT)


@pytest.mark.parametrize(
    ("groups", "error", "said"),
    [
        (np.zeros(7), ValueError, "groups has 7 labels, the model has 60 samples"),
        (np.zeros(60), ValueError, "with all 60 samples"),
        (None, ValueError, "groups=None must be"),
        ("abc", ValueError, "groups='abc' must be"),
        ([], ValueError, "groups has 0 labels"),
        ([[1, 2], []], ValueError, "is empty"),
        ([[1, 2], [2, 3]], ValueError, "id 2 in two groups"),
        ([[1, 99]], IdError, "99"),
        ([["a"]], IdError, "ids"),
    ],
)
def test_groups_that_make_no_sense(groups, error, said):
    model = SVC(gamma=0.1).fit(*data())
    with pytest.raises(error, match=said):
        model.leave_out(groups)


def test_models_that_cannot_be_asked():
    with pytest.raises(NotFittedError):
        SVC().leave_out([[1]])
    with pytest.raises(NotFittedError):
        SVC().preview(remove=[1], at=[[0.0]])
    model = SVC(gamma=0.1).fit(*data()).set_params(C=5.0)
    with pytest.raises(ValueError, match="retune"):
        model.leave_out([[1]])


# -- previews -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_preview_is_what_the_update_then_does(name):
    make, n_classes = MODELS[name]
    X, y = data(n_classes=n_classes)
    model, at = make().fit(X[:50], y[:50]), X[20:40]
    for update in ({"remove": [3, 30, 31]}, {"remove": [3], "X": X[50:], "y": y[50:]},
                   {"X": X[50:], "y": y[50:]}):  # fmt: skip
        found = model.preview(**update, at=at)
        twin = make().fit(X[:50], y[:50])
        twin.update(**update)
        np.testing.assert_allclose(found.before, decide(model, at), atol=1e-12)
        np.testing.assert_allclose(found.after, decide(twin, at), atol=TIGHT)
        np.testing.assert_allclose(found.change, found.after - found.before)
        assert found.certificate.ok
        assert found.n_support == (len(model.support_), len(twin.support_))
        had, has = set(model.ids_[model.support_]), set(twin.ids_[twin.support_])
        stay = set(model.ids_) - set(update.get("remove", ()))
        assert (found.n_joining, found.n_leaving) == (
            len((has - had) & stay), len((had - has) & stay)
        )  # fmt: skip
        assert "removed" in str(found)
        stays = [k for k, one in enumerate(model.ids_.tolist()) if one in stay]
        kept = [k for k, one in enumerate(twin.ids_.tolist()) if one in stay]
        before, after = sets(model)[stays], sets(twin)[kept]
        np.testing.assert_array_equal(found.ids, model.ids_[stays])
        np.testing.assert_array_equal(found.sets, (before, after))
        assert sum(found.moves.values()) == np.sum(before != after)
        for (a, b), n in found.moves.items():
            assert n == np.sum((before == a) & (after == b)) and f"{n} from {a} to {b}" in str(
                found
            )


def test_a_preview_counts_who_reaches_the_bound():
    X, y = data(n_classes=2)
    model = SVC(C=1.0, gamma=0.1).fit(X, y)
    found = model.preview(remove=model.ids_[sets(model) == "ERROR"][:4], at=X)
    assert found.moves.get(("MARGIN", "ERROR"), 0) or found.moves.get(("ERROR", "MARGIN"), 0)


def test_a_preview_of_classes_that_come_and_go():
    X, y = data()
    two = SVC(gamma=0.1).fit(X[y < 2], y[y < 2])
    found = two.preview(X=X[y == 2], y=y[y == 2], at=X[:5])
    assert found.before.shape == found.after.shape == (5, 3)
    assert np.all(found.change[:, 2] == np.inf)
    gone = SVC(gamma=0.1).fit(X, y).preview(remove=np.flatnonzero(y == 2), at=X[:5])
    assert np.all(gone.change[:, 2] == -np.inf)
    assert np.all(np.isfinite(gone.change[:, :2]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"remove": [99], "at": [[0.0, 0.0, 0.0]]}, "99"),
        ({"remove": list(range(60)), "at": [[0.0, 0.0, 0.0]]}, "remove has all 60"),
        ({"remove": [1], "at": [[0.0]]}, "1 features"),
        ({"remove": [1], "y": [1], "at": [[0.0, 0.0, 0.0]]}, "go with X"),
        ({"X": [[0.0, 0.0, 0.0]], "at": [[0.0, 0.0, 0.0]]}, "X and y together"),
    ],
)
def test_previews_that_make_no_sense(arguments, said):
    model = SVC(gamma=0.1).fit(*data())
    with pytest.raises(ValueError, match=said):
        model.preview(**arguments)
