# SPDX-License-Identifier: BSD-3-Clause
"""One value is large: an outlier, a slipped decimal point, a heavy weight, another unit.

Each model is compared with the optimum to hundreds of digits, at every row and in the units of that
row's own target.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import adiabat
from adiabat import SVC, SVDD, SVR, OneClassSVM
from adiabat.error_bound import _solution_size
from adiabat.kernels import make_kernel

from laws.subjects import Subject, judge
from oracles.operations import Roster

POLY = {"kernel": "poly", "degree": 3, "coef0": 1.0}
KINDS = {SVC: "svc", SVR: "svr", OneClassSVM: "one_class", SVDD: "svdd"}


def rows(X: Any, y: Any = None, weight: Any = None) -> Roster:
    n = len(X)
    y = np.zeros(n) if y is None else y
    return Roster(X, y, np.ones(n) if weight is None else weight, np.arange(n))


def fitted(model: Any, X: Any, y: Any = None, weight: Any = None) -> Subject:
    return Subject(model, KINDS[type(model)]).fit(rows(X, y, weight))


def assert_right(model: Subject) -> None:
    """Certified by both certificates, and f is the optimum's."""
    verdict = judge(model)
    assert verdict.ok, f"{verdict.fault}: {verdict.off:.1e} off; {verdict.detail}"


def decimals(seed: int) -> tuple[Any, Any]:
    """Forty rows of tenths with noisy labels, and one cell of 256."""
    g = np.random.default_rng(seed)
    X = g.integers(0, 11, (40, 7)) / 10
    y = np.where(X[:, 0] - 0.5 + 0.3 * g.standard_normal(40) > 0, 1, -1)
    X[17, 0] = 256.0
    return X, y


# ---------------------------------------------------------------------------------------------
# One far row does not excuse the others


def test_a_model_that_has_learned_nothing_is_not_certified() -> None:
    X, y = decimals(1)
    model = fitted(SVC(C=15.0, gamma=0.4, **POLY), X, y)
    assert_right(model)
    certificate = model.certificate()
    assert certificate.n_support > 0 and certificate.gap < 1e-6
    u = np.zeros(40)
    u[model.model.support_] = model.model.dual_coef_[0]
    K = make_kernel("poly", gamma=0.4, degree=3, coef0=1.0, X=X).block(X, X)
    assert 0.5 * u @ K @ u - u @ y < -101.9


@pytest.mark.parametrize("seed", range(12))
def test_a_cell_of_256_among_tenths(seed: int) -> None:
    assert_right(fitted(SVC(C=15.0, gamma=0.4, **POLY), *decimals(seed)))


def test_labels_do_not_depend_on_the_order_of_rows() -> None:
    differ = []
    for seed in range(40):
        X, y = decimals(seed)
        one = SVC(C=15.0, gamma=0.4, **POLY).fit(X, y)
        order = np.random.default_rng(seed).permutation(40)
        other = SVC(C=15.0, gamma=0.4, **POLY).fit(X[order], y[order])
        clear = np.abs(one.decision_function(X)) > 1e-6
        if (one.predict(X) != other.predict(X))[clear].any():
            differ.append(seed)
    assert not differ, f"{len(differ)} of 40 seeds"


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.5}, {"kernel": "linear"}])
@pytest.mark.parametrize("heavy", [1e9, 1e12])
def test_a_heavy_weight(kernel: dict[str, Any], heavy: float) -> None:
    X, y = decimals(3)
    X[17, 0] = 0.5
    weight = np.ones(40)
    weight[[4, 9]] = heavy
    model = fitted(SVC(C=1.0, **kernel), X, y, weight)
    assert_right(model)
    assert model.certificate().f_error < 1e-6


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.5}, {"kernel": "linear"}])
@pytest.mark.parametrize("seed", range(10))
def test_heavy_weights_that_contradict_each_other(kernel: dict[str, Any], seed: int) -> None:
    """Half of the rows weigh 1e12, on sixteen points under both labels."""
    g = np.random.default_rng(seed)
    X = g.integers(0, 4, (24, 2)) / 3.0
    y = np.where(g.random(24) > 0.5, 1, -1)
    weight = np.where(g.random(24) < 0.5, 1e12, 1.0)
    assert_right(fitted(SVC(C=1.0, **kernel), X, y, weight))


# ---------------------------------------------------------------------------------------------
# A slipped decimal point is unlearned


def slipped(seed: int, cell: float) -> tuple[Any, Any, Any]:
    g = np.random.default_rng(seed)
    X = g.random((60, 5)).round(2)
    bad = X.copy()
    bad[17, 2] = cell
    return X, bad, X[:, 0].copy()


def test_forgetting_a_slipped_decimal_point(tmp_path: Any) -> None:
    X, bad, t = slipped(0, 1000.0)
    params = {"C": 1.0, "gamma": 0.1, **POLY}
    model = SVR(**params).fit(bad, t).forget([17])
    rest = np.delete(np.arange(60), 17)
    never = SVR(**params).fit(X[rest], t[rest])
    assert model.last_update_.certificate.ok and model.certificate().ok
    np.testing.assert_allclose(model.predict(X), never.predict(X), rtol=0.0, atol=1e-7)
    model.save(tmp_path / "model.adiabat")
    loaded = adiabat.load(tmp_path / "model.adiabat")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.partial_fit(X[[17]], t[[17]])
    assert model.certificate().ok


CELLS = [
    ({"gamma": 0.1, **POLY}, 1e3),
    ({"gamma": 0.1, **POLY, "degree": 2}, 1e4),
    ({"kernel": "linear"}, 1e6),
    ({"kernel": "linear"}, 1e5),
]


@pytest.mark.rotates(4)
@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize(
    ("kernel", "cell"), CELLS, ids=["poly 3, 1e3", "poly 2, 1e4", "linear, 1e6", "linear, 1e5"]
)
def test_fit_and_forget(kind: Any, kernel: dict[str, Any], cell: float) -> None:
    """Of 25 seeds all are certified, and are the model that never saw the cell."""
    faults = []
    for seed in range(25):
        X, bad, t = slipped(seed, cell)
        y = t if kind is SVR else np.where(t > 0.5, 1, -1)
        own = {"nu": 0.3} if kind is OneClassSVM else {"C": 1.0}
        targets = (y,) if kind in (SVC, SVR) else ()
        rest = np.delete(np.arange(60), 17)
        try:
            model = kind(**own, **kernel).fit(bad, *targets).forget([17])
        except adiabat.AdiabatError as error:
            faults.append(f"seed {seed}: {error}")
            continue
        never = kind(**own, **kernel).fit(X[rest], *(part[rest] for part in targets))
        decide = "predict" if kind is SVR else "decision_function"
        off = np.abs(getattr(model, decide)(X[rest]) - getattr(never, decide)(X[rest])).max()
        if not (model.last_update_.certificate.ok and model.certificate().ok and off < 1e-6):
            faults.append(f"seed {seed}: {off:.1e} off, {model.certificate()}")
    assert not faults, f"{len(faults)} of 25, the first: {faults[0]}"


def test_a_store_lives_on_after_a_slipped_decimal_point(tmp_path: Any) -> None:
    _, bad, t = slipped(0, 1000.0)
    store = adiabat.create_store(
        tmp_path / "model", "svr", label="t", C=1.0, kernel="poly", degree=3, coef0=1.0, gamma=0.1
    )
    store.learn(bad, t, ids=np.arange(60))
    store.forget([17], reference="DSR-1")
    assert store.verify().ok
    store.learn(bad[:1], t[:1], ids=[100])
    assert adiabat.open_store(tmp_path / "model").verify().ok


# ---------------------------------------------------------------------------------------------
# What f is known to


def test_f_error_is_small_wherever_f_is_known() -> None:
    """A box far larger than the weights in it says nothing of f; nor does an open end of b."""
    X, y = decimals(5)
    X[17, 0] = 0.5
    roomy = fitted(SVC(C=1e6, gamma=0.4, kernel="rbf"), X, y, np.where(y > 0, 1e9, 1.0))
    assert_right(roomy)
    assert roomy.certificate().f_error < 1e-6
    full = Subject(SVDD(C=0.2, gamma=0.4, kernel="rbf"), "svdd").learn(rows(X[:5]))
    assert_right(full)  # five weights of 0.2 have to sum to 1: each is at its bound
    assert full.certificate().f_error < 1e-12


def test_the_bound_of_a_linear_system_holds() -> None:
    """Of all right-hand sides within a box none has a solution beyond the bound."""
    g = np.random.default_rng(0)
    for far in (1.0, 1e3, 1e9):
        A = g.standard_normal((6, 8))
        A[2] *= far
        K, off = A @ A.T, np.append(g.random(6), 0.1)
        bound = _solution_size(K, off)
        assert bound is not None
        system = np.block([[K, np.ones((6, 1))], [np.ones((1, 6)), np.zeros((1, 1))]])
        for _ in range(50):
            q = off * g.choice([-1.0, 1.0], 7)
            assert np.all(np.abs(np.linalg.solve(system, q)) <= bound * (1.0 + 1e-6))
    assert _solution_size(np.ones((2, 2)), np.ones(3)) is None  # doubles


# ---------------------------------------------------------------------------------------------
# Far rows under a kernel of distances


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
@pytest.mark.parametrize("cell", [1e5, 1e6, 1e8, 1e12])
def test_a_kernel_value_is_the_same_whoever_stands_beside(kernel: str, cell: float) -> None:
    g = np.random.default_rng(0)
    X = g.random((30, 4))
    X[7, 1] = cell
    made = make_kernel(kernel, gamma=0.5, degree=3, coef0=0.0, X=X)
    K = made.block(X, X)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    np.testing.assert_array_equal(K, K.T)
    for i, j in pairwise(range(30)):
        assert made.block(X[[i]], X[[j]])[0, 0] == K[i, j]
    plain = make_kernel(kernel, gamma=0.5, degree=3, coef0=0.0, X=X[:5]).block(X[:5], X[:5])
    np.testing.assert_allclose(K[:5, :5], plain, rtol=1e-14)


@pytest.mark.rotates(4)
@pytest.mark.parametrize("cell", [1e5, 1e6, 1e8])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_b_does_not_depend_on_a_far_row(cell: float, C: float) -> None:
    for seed in range(5):
        g = np.random.default_rng(seed)
        X = g.random((24, 4)).round(2)
        y = np.where(X[:, 0] - 0.5 + 0.2 * g.standard_normal(24) > 0, 1, -1)
        y[:2] = [1, -1]
        X[17, 2] = cell
        model = fitted(SVC(C=C, kernel="rbf", gamma=0.5), X, y)
        assert_right(model)
        off = np.abs(model.decide(X) - [float(f) for f in model.truths()[0].f]).max()
        assert off < 1e-9 * max(1.0, C)
        model.learn(Roster(X[:1] + 0.25, y[:1], np.ones(1), np.array([100])))
        assert_right(model)


# ---------------------------------------------------------------------------------------------
# Other units


def test_small_features_and_a_large_C() -> None:
    """Features of 1e-4 and C = 1e9 are features of 1 and C = 10, in other units."""
    faults = []
    for seed in range(40):
        g = np.random.default_rng(seed)
        X = g.random((60, 5)).round(2)
        y = np.where(X[:, 0] - 0.5 + 0.2 * g.standard_normal(60) > 0, 1, -1)
        plain = SVC(C=10.0, kernel="linear").fit(X, y)
        try:
            small = SVC(C=1e9, kernel="linear").fit(1e-4 * X, y)
        except adiabat.AdiabatError as error:
            faults.append(f"seed {seed}: {error}")
            continue
        off = np.abs(plain.decision_function(X) - small.decision_function(1e-4 * X)).max()
        if not (small.certificate().ok and off < 1e-6):
            faults.append(f"seed {seed}: {off:.1e} off, {small.certificate()}")
    assert not faults, f"{len(faults)} of 40, the first: {faults[0]}"


# ---------------------------------------------------------------------------------------------
# Tiny weights, and ties


@pytest.mark.parametrize("weight", [1e-9, 1e-12, 1e-3])
def test_a_sphere_of_one_row_and_a_light_one(weight: float) -> None:
    model = Subject(SVDD(C=0.5, kernel="rbf", gamma=0.5), "svdd")
    model.learn(rows(np.array([[0.0, 0.0]])))
    assert_right(model)
    model.learn(Roster(np.array([[1.0, 0.5]]), np.zeros(1), np.array([weight]), np.array([1])))
    assert_right(model)


@pytest.mark.parametrize("n", [10, 100, 600, 2000])
@pytest.mark.parametrize("weight", [1e-12, 1e-9])
def test_b_follows_a_tiny_weight(n: int, weight: float) -> None:
    """Balanced classes at C leave b an interval; a row of any weight more fixes it.

    Rows are so far apart that K is the identity. The last one rises to its bound, another one gives
    way by as much, and so has f = C + b = 1.
    """
    X, y = np.arange(n + 1.0)[:, None], np.append(np.tile([1, -1], n // 2), 1)
    weights = np.append(np.ones(n), weight)
    model = SVC(C=0.01, gamma=1000.0).fit(X, y, weights)
    assert model.certificate().ok
    np.testing.assert_allclose(model.intercept_, 0.99, rtol=0.0, atol=1e-9)


def test_one_against_rest_is_even_where_a_pair_ties() -> None:
    """Mirrored classes have the same score on the mirror, to rounding."""
    side = np.array([[1.0, 0.3], [1.5, -0.2], [2.0, 0.7], [1.1, -0.9]])
    mirrored = side * [-1.0, 1.0]
    top = np.array([[0.0, 6.0], [0.3, 7.0], [-0.3, 7.0]])
    X, y = np.vstack([side, mirrored, top]), np.repeat([0, 1, 2], [4, 4, 3])
    on_the_mirror = np.column_stack([np.zeros(9), np.linspace(-2.0, 2.0, 9)])
    scores = SVC(C=1.0, gamma=0.3).fit(X, y).decision_function(on_the_mirror)
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=0.0, atol=1e-6)
