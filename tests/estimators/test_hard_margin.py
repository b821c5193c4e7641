# SPDX-License-Identifier: BSD-3-Clause
"""C=inf: the model without errors, or a refusal that leaves everything as it was."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs

import adiabat
from adiabat import SVC, SVR, IncrementalPipeline
from adiabat.partitions.working import Working

X, Y = make_blobs(60, centers=3, random_state=1)


def line(epsilon=0.1, **parameters):
    x = np.linspace(-1.0, 1.0, 12)
    return SVR(C=np.inf, kernel="linear", epsilon=epsilon, **parameters).fit(x[:, None], 2.0 * x)


def test_the_margin_of_two_points_is_known():
    """It is 2 over the distance of the points, also where weights are far above any usual C."""
    for scale in (1.0, 1e-5, 1e5):
        model = SVC(C=np.inf, kernel="linear").fit([[-scale], [scale]], [0, 1])
        np.testing.assert_allclose(model.coef_, [[1.0 / scale]], rtol=1e-12)
        np.testing.assert_allclose(model.dual_coef_, [[-0.5 / scale**2, 0.5 / scale**2]])
        assert model.certificate().ok


def test_it_is_the_limit_of_large_c_and_says_so_after_every_change():
    hard = SVC(C=np.inf, kernel="linear").fit(X[:50], Y[:50])
    finite = SVC(C=1e6, kernel="linear").fit(X[:50], Y[:50])
    for model in (hard, finite):
        model.partial_fit(X[50:], Y[50:])
        model.forget(range(0, 60, 7))
        assert model.certificate().ok
    np.testing.assert_allclose(
        hard.decision_function(X), finite.decision_function(X), rtol=1e-9, atol=1e-9
    )
    assert hard.C == np.inf and clone(hard).C == np.inf
    np.testing.assert_allclose(hard.to_sklearn().decision_function(X), hard.decision_function(X))


def test_weights_of_samples_count_by_force_alone():
    weights = np.where(np.arange(60) % 3, 1e-3, 5.0)
    plain = SVC(C=np.inf, kernel="linear").fit(X, Y)
    weighted = SVC(C=np.inf, kernel="linear").fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(weighted.coef_, plain.coef_, rtol=1e-9)
    rows, labels = np.vstack([X, X[:1]]), np.append(Y, (Y[0] + 1) % 3)  # a label without force
    forceless = SVC(C=np.inf, kernel="linear").fit(rows, labels, np.append(np.ones(60), 0.0))
    np.testing.assert_allclose(forceless.coef_, plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_classes_that_overlap_are_refused(scale):
    for kernel, rows, labels in [
        ("linear", [[0.0], [1.0], [2.0]], [0, 1, 0]),
        ("rbf", [[0.0], [1.0], [1.0]], [0, 1, 0]),
    ]:
        with pytest.raises(ValueError, match=r"C=inf allows no errors"):
            SVC(C=np.inf, kernel=kernel, gamma=1.0).fit(scale * np.array(rows), labels)


def test_a_row_that_makes_classes_overlap_changes_nothing():
    model = SVC(C=np.inf, kernel="linear").fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"C=inf allows no errors"):
        model.partial_fit(X[:1], [(Y[0] + 1) % 3])
    with pytest.raises(ValueError, match=r"C=inf allows no errors"):
        model.revise([0], y=[(Y[0] + 1) % 3])
    np.testing.assert_array_equal(model.decision_function(X), before)
    soft = SVC(C=1.0, kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(ValueError, match=r"C=inf allows no errors"):
        soft.retune(C=np.inf)
    assert soft.C == 1.0 and soft.certificate().ok


def test_a_tube_that_nothing_may_leave():
    model = line()
    np.testing.assert_allclose(model.coef_, [[1.9]], rtol=1e-9)  # as flat as the tube allows
    with pytest.raises(ValueError, match=r"C=inf allows no errors"):
        model.partial_fit([[0.0]], [5.0])
    assert model.retune(C=1.0).certificate.ok
    assert model.retune(C=np.inf).certificate.ok


def test_files_keep_it_and_are_checked(tmp_path):
    model = SVC(C=np.inf, kernel="linear", class_weight={0: 2.0}).fit(X, Y)
    model.save(tmp_path / "hard.adiabat")
    loaded = adiabat.load(tmp_path / "hard.adiabat")
    assert loaded.C == np.inf
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match=r"C=inf allows no errors"):
        loaded.partial_fit(X[:1], [(Y[0] + 1) % 3])
    line().save(tmp_path / "tube.adiabat")
    assert adiabat.load(tmp_path / "tube.adiabat").forget([0]).certificate().ok


@pytest.mark.parametrize(
    "question",
    [
        lambda model: model.leave_one_out(),
        lambda model: model.leave_out([[0]]),
        lambda model: model.preview(remove=[0]),
        lambda model: model.influence(X[:2], Y[:2]),
        lambda model: model.regularization_path(0.1, 1.0),
        lambda model: model.predict_p(X[:1]),
        lambda model: model.predict_proba(X[:1]),
    ],
)
def test_what_would_be_is_asked_of_a_finite_c(question):
    model = SVC(C=np.inf, kernel="linear", calibration="sigmoid").fit(X, Y)
    with pytest.raises(ValueError, match=r"retune\(C=1024\)"):
        question(model)
    model.retune(C=1024.0)
    question(model)


def test_stores_and_clusters_want_a_finite_c(tmp_path):
    with pytest.raises(ValueError, match="C=inf: a store"):
        adiabat.create_store(tmp_path / "store", "svc", label="y", C=np.inf)
    with pytest.raises(ValueError, match="C=inf is for models"):
        Working(SVC(C=np.inf), lambda *rest: [])


def test_in_a_pipeline():
    model = IncrementalPipeline(SVC(C=np.inf, kernel="linear")).fit(X, Y)
    model.forget([3, 4]).partial_fit(X[3:5], Y[3:5], ids=[3, 4])
    again = IncrementalPipeline(SVC(C=np.inf, kernel="linear")).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), again.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"retune\(C="):
        model.leave_one_out(hold_scaling=True)
    left_out = model.leave_one_out().decision  # each a change of a copy, whose bound is raised
    for place in (0, 20, 40):
        rest = np.delete(np.arange(60), place)
        again = IncrementalPipeline(SVC(C=np.inf, kernel="linear")).fit(
            *(part[model.ids_[rest]] for part in (X, Y))
        )
        expected = again.decision_function(X[model.ids_[[place]]])[0]
        np.testing.assert_allclose(left_out[place], expected, atol=1e-9)
    with pytest.raises(ValueError, match=r"C=inf allows no errors"):
        model.partial_fit(X[:1], [(Y[0] + 1) % 3])
