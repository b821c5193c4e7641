# SPDX-License-Identifier: BSD-3-Clause
"""Samples left out of a pipeline, against pipelines fitted without them."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import KFold

import adiabat
from adiabat import SVC, SVDD, SVR, IdError, IncrementalPipeline, OneClassSVM, StandardScaler

TIGHT = 1e-7
SCALES = np.array([1.0, 40.0, 0.02])

MACHINES = {
    "binary": (lambda: SVC(C=3.0), 2),
    "balanced": (lambda: SVC(C=3.0, class_weight="balanced"), 2),
    "classes": (lambda: SVC(C=3.0, kernel="linear"), 3),
    "ovo": (lambda: SVC(C=3.0, decision_function_shape="ovo"), 3),
    "svr": (lambda: SVR(C=2.0), 3),
    "one class": (lambda: OneClassSVM(nu=0.3), 3),
    "svdd": (lambda: SVDD(C=0.1, gamma=0.2), 3),
}


def data(n=40, n_classes=3):
    X, y = make_blobs(n, 3, centers=n_classes, cluster_std=5.0, random_state=2)
    return X * SCALES, y


def decide(model, X):
    machine = getattr(model, "estimator", model)
    return model.predict(X) if isinstance(machine, SVR) else model.decision_function(X)


def held_machine(model, X, y, rest):
    """The machine refitted on rows scaled as they are with all samples, gamma as well."""
    machine = clone(model.estimator)
    if machine.gamma == "scale":
        machine.set_params(gamma=model.estimator_.gamma_)
    return machine.fit(model.scaler_.transform(X[rest]), y[rest])


@pytest.mark.parametrize("name", MACHINES)
def test_leave_one_out_is_that_of_pipelines_refitted_without_each_sample(name):
    make, n_classes = MACHINES[name]
    X, y = data(n_classes=n_classes)
    X[5] *= 30.0  # in the scaling as much as in the machine
    model = IncrementalPipeline(make()).fit(X, y)
    before = decide(model, X)
    seen = []
    found = model.leave_one_out(
        n_jobs=2 if name == "ovo" else None, progress=lambda done, total: seen.append((done, total))
    )
    for place in range(len(X)):
        rest = np.arange(len(X)) != place
        refit = IncrementalPipeline(make()).partial_fit(X[rest], y[rest])
        np.testing.assert_allclose(
            found.decision[place], decide(refit, X[[place]])[0], atol=TIGHT, rtol=TIGHT
        )
        if name != "svr":
            assert found.prediction[place] == refit.predict(X[[place]])[0]
    assert seen[-1] == (len(X), len(X)) and found.n_removals == len(X)
    np.testing.assert_array_equal(decide(model, X), before)
    np.testing.assert_array_equal(found.ids, model.ids_)


@pytest.mark.parametrize("mode", ["held", "exact"])
@pytest.mark.parametrize("name", ["binary", "svr", "one class"])
def test_with_the_scaling_held_it_is_that_of_the_machine(name, mode):
    make, n_classes = MACHINES[name]
    X, y = data(n_classes=n_classes)
    model = IncrementalPipeline(make(), mode=mode).fit(X, y)
    found = model.leave_one_out(hold_scaling=mode == "exact")
    scaled = model.scaler_.transform(X)
    for place in (0, 7, 23):
        rest = np.arange(len(X)) != place
        refit = held_machine(model, X, y, rest)
        np.testing.assert_allclose(
            found.decision[place], decide(refit, scaled[[place]])[0], atol=TIGHT
        )
    if name == "binary":
        model.leave_one_out(decisions=False)
        verdicts = model.leave_one_out(decisions=False, hold_scaling=True)
        assert verdicts.decision is None
        np.testing.assert_array_equal(verdicts.prediction, found.prediction)


def test_weights_duplicates_and_the_last_of_a_class():
    X, y = data(24, 2)
    X[3] = X[4]
    y[3], y[4], y[0] = 0, 1, 2
    weights = np.where(np.arange(24) % 5 == 0, 2.5, 1.0)
    weights[6] = 0.0
    model = IncrementalPipeline(SVC(C=2.0)).fit(X, y, sample_weight=weights)
    found = model.leave_one_out()
    for place in range(len(X)):
        rest = np.arange(len(X)) != place
        refit = IncrementalPipeline(SVC(C=2.0)).fit(X[rest], y[rest], sample_weight=weights[rest])
        assert found.prediction[place] == refit.predict(X[[place]])[0]
        if place:
            values = refit.decision_function(X[[place]])[0]
            np.testing.assert_allclose(found.decision[place], values, atol=TIGHT)
    assert found.decision[0, 2] == -np.inf and not found.correct[0]


@pytest.mark.parametrize("mode", ["exact", "held"])
@pytest.mark.parametrize("name", ["binary", "ovo", "svr", "svdd"])
def test_groups_and_folds_are_those_of_refitted_pipelines(name, mode):
    make, n_classes = MACHINES[name]
    X, y = data(n_classes=n_classes)
    model = IncrementalPipeline(make(), mode=mode).fit(X, y)
    labels = np.arange(len(X)) % 4
    found = model.leave_out(labels)
    if hasattr(model, "score"):
        folds = KFold(4, shuffle=True, random_state=0)
        scores = adiabat.cross_validate(model, cv=folds, return_estimator=True)
    for group in range(4):
        own = labels == group
        if mode == "exact":
            refit = IncrementalPipeline(make()).fit(X[~own], y[~own])
            wanted = decide(refit, X[own])
        else:
            refit = held_machine(model, X, y, ~own)
            wanted = decide(refit, model.scaler_.transform(X[own]))
        np.testing.assert_allclose(found.decision[own], wanted, atol=TIGHT)
    if hasattr(model, "score") and mode == "exact":
        for (train, test), score, kept in zip(
            folds.split(X), scores["test_score"], scores["estimator"], strict=True
        ):
            refit = IncrementalPipeline(make()).fit(X[train], y[train])
            assert score == pytest.approx(refit.score(X[test], y[test]), abs=TIGHT)
            kept.partial_fit(X[test], y[test])
            np.testing.assert_allclose(decide(kept, X), decide(model, X), atol=1e-6)


def test_a_validation_curve_along_a_parameter_of_the_machine():
    X, y = data(n_classes=2)
    model = IncrementalPipeline(SVC()).fit(X, y)
    _, scores = adiabat.validation_curve(model, "estimator__C", [0.1, 10.0], cv=4)
    for k, C in enumerate((0.1, 10.0)):
        own = adiabat.cross_validate(IncrementalPipeline(SVC(C=C)).fit(X, y), cv=4)
        np.testing.assert_allclose(scores[k], own["test_score"])
    assert model.estimator_.C == 1.0


@pytest.mark.parametrize("mode", ["exact", "held"])
@pytest.mark.parametrize("name", ["classes", "svr", "one class"])
def test_a_preview_is_what_the_update_does(name, mode):
    make, n_classes = MACHINES[name]
    X, y = data(60, n_classes)
    model = IncrementalPipeline(make(), mode=mode).fit(X[:40], y[:40])
    given = {} if name == "one class" else {"y": y[40:50]}
    for change, new in (({"remove": [3, 5, 8]}, {}), ({"remove": [1]}, {"X": X[40:50], **given})):
        said = model.preview(**change, **new, at=X[50:])
        np.testing.assert_array_equal(said.before, decide(model, X[50:]))
        done = copy.deepcopy(model)
        done.update(**new, **change)
        np.testing.assert_allclose(said.after, decide(done, X[50:]), atol=TIGHT)
        assert said.certificate.ok and said.n_support[1] == len(done.estimator_.support_)
    with pytest.raises(IdError):
        model.preview(remove=["nobody"], at=X)
    with pytest.raises(ValueError, match="nothing would be left"):
        model.preview(remove=model.ids_, at=X)


def test_influence_is_that_of_refitted_pipelines():
    X, y = data(36, 2)
    model = IncrementalPipeline(SVC(C=1.0)).fit(X[:24], y[:24])
    found = model.influence(X[24:], y[24:], n_jobs=2)
    held = model.influence(X[24:], y[24:], hold_scaling=True)
    assert held.loss == pytest.approx(found.loss) and not np.allclose(held.change, found.change)

    def loss(of):
        signed = np.where(y[24:] == 1, 1.0, -1.0)
        return np.mean(np.maximum(0.0, 1.0 - signed * of.decision_function(X[24:])))

    for place in range(24):
        rest = np.arange(24) != place
        refit = IncrementalPipeline(SVC(C=1.0)).fit(X[:24][rest], y[:24][rest])
        assert found.change[place] == pytest.approx(loss(refit) - loss(model), abs=TIGHT)


def test_what_cannot_be_asked():
    X, y = data(n_classes=2)
    model = IncrementalPipeline(SVC(), scaler=StandardScaler(with_std=False)).fit(X, y)
    with pytest.raises(ValueError, match="groups has 2 labels, the model has 40"):
        model.leave_out([0, 1])
    model.set_params(mode="held")
    for ask in (model.leave_one_out, lambda: model.preview(at=X), lambda: model.influence(X, y)):
        with pytest.raises(ValueError, match="mode='held' was 'exact'"):
            ask()
