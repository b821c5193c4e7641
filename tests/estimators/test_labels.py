# SPDX-License-Identifier: BSD-3-Clause
"""No label loses a digit: whole numbers of any type, beside floats, in any order of learning."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adiabat
from adiabat import LSSVC, SVC, IncrementalPipeline, KernelLSSVC
from adiabat.active import ActiveLearner
from adiabat.estimators.arguments.labels import joined, label_places, require_among
from adiabat.formulations.labels import label_array

X = np.array([[0.0, 0.0], [0.2, 0.1], [4.0, 0.0], [4.2, 0.1], [0.0, 4.0], [0.1, 4.2]])
BIG, ODD = 2**63 + 1, 2**53 + 1  # beyond int64; beyond the 53 bits of a float
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "SVC": lambda: SVC(C=10.0, gamma=0.5),
    "LSSVC": lambda: LSSVC(rho=0.01),
    "KernelLSSVC": lambda: KernelLSSVC(rho=0.01, gamma=0.5),
    "exact pipeline": lambda: IncrementalPipeline(SVC(C=10.0)),
    "held pipeline": lambda: IncrementalPipeline(SVC(C=10.0), mode="held"),
}
#: Labels that come first, and one that comes later; each pair loses digits in NumPy's hands.
MIXTURES: dict[str, tuple[Any, Any]] = {
    "uint64 after int64": (np.array([0, 1]), np.array([BIG], dtype=np.uint64)),
    "uint64 after a list": ([0, 1], [BIG]),
    "int64 after uint64": (np.array([BIG, BIG + 1], dtype=np.uint64), np.array([3])),
    "neighbours": (np.array([2**63, BIG], dtype=np.uint64), np.array([2**63 - 1])),
    "odd after floats": (np.array([1.0, 2.0]), np.array([ODD])),
    "float after odd": (np.array([ODD, ODD + 1]), np.array([2.0])),
    "float beside its neighbour": (np.array([2.0**53, 1.0]), np.array([ODD])),
    "negative odd": (np.array([-1.0, 1.0]), np.array([-ODD])),
}


def exact(labels: Any) -> list[int]:
    return [int(label) for label in np.asarray(labels).tolist()]


def rows_of(first: Any, later: Any) -> tuple[Any, Any, list[int]]:
    """Two rows for each label, in the order of X, and all labels as whole numbers."""
    kind = list if isinstance(first, list) else np.asarray
    two = kind([first[0], first[0], first[1], first[1]])
    one = kind([later[0], later[0]])
    if kind is not list:
        two, one = two.astype(first.dtype), one.astype(later.dtype)
    return two, one, [*exact(two), *exact(one)]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_label_that_comes_later_keeps_its_digits_and_theirs(name, mixture, tmp_path):
    two, one, whole = rows_of(*MIXTURES[mixture])
    model = CLASSIFIERS[name]().fit(X[:4], two).partial_fit(X[4:], one)
    model.save(tmp_path / "m.adiabat")
    for held in (model, pickle.loads(pickle.dumps(model)), adiabat.load(tmp_path / "m.adiabat")):
        assert exact(held.classes_) == sorted(set(whole))
        assert exact(held.predict(X)) == whole
    assert len(model.classes_) == 3  # none was taken for its neighbour


@pytest.mark.parametrize("name", ["SVC", "KernelLSSVC", "exact pipeline", "held pipeline"])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_label_that_is_corrected_keeps_its_digits(name, mixture):
    two, one, whole = rows_of(*MIXTURES[mixture])
    model = CLASSIFIERS[name]().fit(X[:4], two).revise([1], y=one[:1])
    assert exact(model.classes_) == sorted({whole[0], whole[2], whole[4]})
    model.revise([1], y=two[:1])
    assert exact(model.predict(X[:4])) == whole[:4]
    model.partial_fit(X[4:], one)
    assert exact(model.leave_one_out().target) == whole


@pytest.mark.parametrize("mixture", MIXTURES)
def test_rows_are_unlearned_by_their_exact_labels(mixture):
    two, one, whole = rows_of(*MIXTURES[mixture])
    model = LSSVC(rho=0.01).fit(X[:4], two).partial_fit(X[4:], one)
    assert exact(model.leave_one_out(X, label_array(whole)).prediction) == whole
    model.revise(X[:1], two[:1], X[:1], one[:1]).revise(X[:1], one[:1], X[:1], two[:1])
    other = LSSVC(rho=0.01).fit(X[4:], one)
    assert exact(model.subtract(other).classes_) == sorted(set(whole[:4]))
    assert exact(model.merge(other).classes_) == sorted(set(whole))
    model.forget(X[4:], one)
    assert exact(model.classes_) == sorted(set(whole[:4]))
    assert exact(model.predict(X[:4])) == whole[:4]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    "y",
    [
        [1.0, 1.0, ODD, ODD, 2**53, 2**53],
        pd.Series([1.0, 1.0, ODD, ODD, 2**53, 2**53], dtype=object),
        pd.Series([1, 1, ODD, ODD, 2**53, 2**53], dtype="Int64"),
        [1, 1, BIG, BIG, 2**63, 2**63],
        [np.int64(1), np.int64(1), *[np.uint64(BIG)] * 2, *[np.uint64(2**63)] * 2],
    ],
    ids=["list", "objects", "nullable", "beyond int64", "scalars"],
)
def test_labels_of_mixed_types_in_one_batch(name, y):
    model = CLASSIFIERS[name]().fit(X, y)
    assert exact(model.classes_) == sorted({int(label) for label in y})
    assert exact(model.predict(X)) == [int(label) for label in y]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("first, later", [([-1, 1], BIG), ([BIG, 1], -1), ([-1.0, 1.0], BIG)])
def test_labels_that_no_type_holds_together_are_refused(name, first, later):
    two, _, _ = rows_of(first, [later])
    model = CLASSIFIERS[name]().fit(X[:4], two)
    before = pickle.dumps(model.predict(X)), exact(model.classes_)
    with pytest.raises(ValueError, match="neither int64 nor uint64 holds both exactly"):
        model.partial_fit(X[4:], [later, later])
    assert (pickle.dumps(model.predict(X)), exact(model.classes_)) == before
    with pytest.raises(ValueError, match="neither int64 nor uint64 holds both exactly"):
        CLASSIFIERS[name]().fit(X, [*two, later, later])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_that_are_named_are_compared_exactly(name):
    model = CLASSIFIERS[name]().fit(X[:4], [1, 1, ODD, ODD])
    for y in ([2**53, 2**53], np.array([2.0**53] * 2)):
        with pytest.raises(
            ValueError, match=r"y has labels \[9007199254740992(\.0)?\] that are not"
        ):
            model.partial_fit(X[4:], y, classes=[1.0, ODD])
    model.partial_fit(X[4:], np.array([ODD, 1]), classes=[1.0, ODD])
    assert exact(model.classes_) == [1, ODD]


def test_streams_and_active_learning_keep_the_digits():
    streams = pytest.importorskip("adiabat.streams")
    stream = streams.RiverClassifier(SVC(C=10.0, gamma=0.5))
    labels = [1.0, 1.0, ODD, ODD, 2**53, 2**53]
    for row, label in zip(X, labels, strict=True):
        stream.learn_one(dict(enumerate(row)), label)
    assert [stream.predict_one(dict(enumerate(row))) for row in X] == labels
    model = SVC(C=10.0, gamma=0.5).fit(X[:4], labels[:4])
    ActiveLearner(model, X[4:]).teach([0, 1], labels[4:])
    assert model.predict(X).tolist() == labels


def test_what_if_compares_labels_exactly():
    y = label_array([1.0, 1.0, ODD, ODD])
    model = SVC(C=10.0, gamma=0.5).fit(X[:4], y)
    seen = model.preview(X=X[4:], y=np.array([2.0**53] * 2), at=X)
    assert seen.after.shape == (6, 3)
    with pytest.raises(ValueError, match="not learned"):
        model.influence(X[:1], [2.0**53])
    assert model.influence(X[2:3], [ODD]).change.shape == (4,)


def test_the_type_of_labels_is_the_plain_one_where_that_loses_nothing():
    assert label_array([1, 2.0]).dtype == np.float64
    assert label_array([False, 2]).dtype == np.int64
    assert label_array([1, BIG]).dtype == np.uint64
    assert label_array([1.0, ODD]).dtype == np.int64
    assert label_array(["a", "bc"]).dtype.kind == "U"
    assert joined(np.array([1]), np.array([BIG], dtype=np.uint64)).tolist() == [1, BIG]
    assert label_places(np.array([2.0**53, 3.0]), np.array([3, ODD])).tolist() == [-1, 0]
    require_among([1, ODD], [ODD, 1.0])
