# SPDX-License-Identifier: BSD-3-Clause
"""A linear kernel read from few features: the same values as columns, and none of the columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from adiabat import SVC, SVR
from adiabat._core.linear_gram import LinearGram
from adiabat.engine import features
from adiabat.engine.features import FEW_FEATURES
from adiabat.engine.samples import Samples
from adiabat.kernels import Kernel, make_kernel

POINTS = np.random.default_rng(0).standard_normal((900, 3))
FAR = POINTS + 1e5


def linear(X: npt.NDArray[np.float64]) -> Kernel:
    kernel = make_kernel("linear", gamma=1.0, degree=3, coef0=0.0, X=X, shift_free=True)
    assert (kernel.origin is None) == (X is not FAR)
    return kernel


class Held:
    """Samples beside the list of who is where."""

    def __init__(self, points: npt.NDArray[np.float64]) -> None:
        self.points, self.kernel = points, linear(points)
        self.samples = Samples(self.kernel)
        self.who = np.empty(0, dtype=np.int64)
        self.came = 0

    def add(self, k: int) -> None:
        new = np.arange(self.came, self.came + k)
        self.samples.add(self.points[new])
        self.came += k
        self.who = np.concatenate([self.who, new])

    def remove(self, positions: npt.NDArray[np.int64]) -> None:
        left = len(self.who) - len(positions)
        tail, hole = self.samples.remove(positions)
        self.who[hole] = self.who[tail]
        self.who = self.who[:left]

    def check(self) -> None:
        samples, n = self.samples, len(self.who)
        assert samples.by_features and isinstance(samples.gram, LinearGram)
        assert samples.n == samples.gram.n == samples.gram.n_slots == n
        assert samples.gram.nbytes == 0
        everyone = np.arange(n)
        np.testing.assert_array_equal(samples.gram.slot_of[:n], everyone)
        np.testing.assert_array_equal(samples.gram.owner, everyone)
        K = self.kernel.block(self.points[self.who], self.points[self.who])
        np.testing.assert_allclose(samples.between(everyone, everyone), K, atol=1e-12)
        np.testing.assert_allclose(samples.among(everyone[::2].copy()), K[::2, ::2], atol=1e-12)
        np.testing.assert_allclose(samples.diagonal, K.diagonal(), atol=1e-12)
        np.testing.assert_allclose(samples.features @ samples.features.T, K, atol=1e-12)
        for gram in (samples.gram, samples.fork().gram):
            coef = np.random.default_rng(n).standard_normal(n)
            coef[::3] = 0.0
            out, part = np.empty(n), np.empty(len(everyone[::-2]))
            gram.multiply(coef, out)
            np.testing.assert_allclose(out, K @ coef, atol=1e-11)
            gram.multiply(coef, part, everyone[::-2].copy())
            np.testing.assert_allclose(part, (K @ coef)[::-2], atol=1e-11)


@pytest.mark.parametrize("points", [POINTS, FAR], ids=["as they are", "from an origin"])
@given(
    steps=st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.6, 1.0]), st.integers(1, 40)),
        max_size=12,
    )
)
@settings(max_examples=20)
def test_thin_samples_are_as_their_mirror(
    points: npt.NDArray[np.float64], steps: list[tuple[bool, float, int]]
) -> None:
    held = Held(points)
    held.add(5)
    for comes, part, number in steps:
        if comes:
            held.add(number)
        else:
            rng = np.random.default_rng(number)
            held.remove(rng.permutation(len(held.who))[: round(part * len(held.who))])
        held.check()
    held.add(300)
    held.samples.truncate(len(held.who) - 250)
    held.who = held.who[:-250]
    held.check()


@pytest.mark.parametrize("points", [POINTS, FAR], ids=["as they are", "from an origin"])
def test_the_removed_leave_nothing_behind(points: npt.NDArray[np.float64]) -> None:
    held = Held(points)
    held.add(120)
    gone = np.arange(3, 120, 4)
    names = held.who[gone].copy()
    held.remove(gone)
    for left in (held.samples._held._rows, held.samples._held.measured):
        assert np.intersect1d(left, points[names]).size == 0
        assert np.intersect1d(left, held.kernel.features(points[names])).size == 0


def test_sparse_or_wide_samples_keep_columns() -> None:
    sparse = Samples(linear(POINTS))
    sparse.add(sp.csr_array(POINTS[:30]))
    wide = np.random.default_rng(1).standard_normal((40, FEW_FEATURES + 1))
    dense = Samples(linear(wide))
    dense.add(wide)
    assert not sparse.by_features and not dense.by_features
    for samples in (sparse, dense):
        samples.slots(np.arange(5))
    assert sparse.gram.nbytes > 0 and dense.gram.nbytes > 0


@pytest.mark.parametrize("solver", ["auto", "exchange", "path"])
@pytest.mark.parametrize("estimator", [SVC, SVR])
def test_models_are_those_of_columns(
    estimator: type[SVC] | type[SVR], solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = POINTS[:260]
    y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(2).standard_normal(260)
    y = np.sign(y) if estimator is SVC else y

    def learned() -> SVC | SVR:
        model = estimator(C=2.0, kernel="linear", solver=solver).fit(X[:200], y[:200])
        model.partial_fit(X[200:230], y[200:230])
        model.update(X[230:], y[230:], remove=np.arange(0, 60, 2))
        return model.forget([1, 77, 205])

    linear = learned()
    monkeypatch.setattr(features, "FEW_FEATURES", -1)
    columns = learned()
    assert linear.certificate().ok and columns.certificate().ok
    value = "decision_function" if estimator is SVC else "predict"
    np.testing.assert_allclose(getattr(linear, value)(X), getattr(columns, value)(X), atol=1e-10)
