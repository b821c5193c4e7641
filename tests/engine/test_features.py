# SPDX-License-Identifier: BSD-3-Clause
"""Which samples are kept how, and that the model does not depend on it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from adiabat import SVC, SVR
from adiabat.engine import features
from adiabat.engine.features import DenseFeatures, SparseFeatures, make_features
from adiabat.engine.samples import Samples
from adiabat.kernels import make_kernel

RNG = np.random.default_rng(0)
# Rows like images: a fifth of the entries is not zero, and some rows come twice.
ROWS = RNG.random((260, 40)) * (RNG.random((260, 40)) < 0.2)
ROWS[200:230] = ROWS[:30]


def kernel(name: str, X: np.ndarray) -> object:
    return make_kernel(name, gamma=0.3, degree=2, coef0=1.0, X=X)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_rows_with_many_zeros_are_kept_by_their_entries_too(name: str) -> None:
    store = make_features(kernel(name, ROWS), ROWS)
    store.add(ROWS)
    assert isinstance(store, DenseFeatures)
    assert store.nonzeros is not None
    assert store.nonzeros.nnz == np.count_nonzero(ROWS)


@pytest.mark.parametrize("name", ["laplacian", "chi2"])
def test_not_where_a_kernel_takes_no_products(name: str) -> None:
    store = make_features(kernel(name, ROWS), ROWS)
    store.add(ROWS)
    assert store.nonzeros is None


def test_far_from_zero_there_are_no_zeros() -> None:
    far = ROWS + 1e4
    store = make_features(kernel("rbf", far), far)
    store.add(far)
    assert store.nonzeros is None


def test_the_part_of_zeros_is_seen_again_when_the_store_grows() -> None:
    samples = Samples(kernel("rbf", ROWS))
    full = np.random.default_rng(1).random((600, 40))
    seen = []
    for part in (ROWS[:100], full[:10], full[10:], np.zeros((4000, 40))):
        samples.add(part)
        seen.append(samples._held.nonzeros is not None)
    assert seen == [True, True, False, True]
    everyone = np.arange(0, samples.n, 50)
    values = samples.between(everyone, everyone)
    np.testing.assert_allclose(values, samples.block(everyone, everyone), atol=1e-14)


def test_more_features_than_can_be_numbered_are_refused() -> None:
    with pytest.raises(ValueError, match="features"):
        SparseFeatures(2**31)


@pytest.mark.parametrize("solver", ["exchange", "path"])
@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("estimator", [SVC, SVR])
def test_models_are_those_of_plain_products(
    estimator: type[SVC] | type[SVR], name: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = ROWS @ np.linspace(-1.0, 1.0, 40) + 0.3 * np.random.default_rng(2).standard_normal(260)
    y = np.sign(y) if estimator is SVC else y
    monkeypatch.setattr(features, "FEW_FEATURES", -1)

    def learned(X: object) -> SVC | SVR:
        model = estimator(C=2.0, kernel=name, solver=solver).fit(X[:150], y[:150])
        model.partial_fit(X[150:230], y[150:230])
        model.update(X[230:], y[230:], remove=np.arange(0, 60, 2))
        return model.forget([1, 77, 205])

    by_entries = [learned(ROWS), learned(sp.csr_array(ROWS))]
    monkeypatch.setattr(features, "SPARSE_PART", -1.0)
    plain = learned(ROWS)
    value = "decision_function" if estimator is SVC else "predict"
    for model in by_entries:
        assert model.certificate().ok
        assert model._model.solver.samples._nonzeros is not None
        found = getattr(model, value)(ROWS)
        np.testing.assert_allclose(found, getattr(plain, value)(ROWS), atol=1e-9)
    assert plain._model.solver.samples._nonzeros is None
