# SPDX-License-Identifier: BSD-3-Clause
"""Regions and intervals of regression are those of the definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from adiabat import LSSVR, SVR, KernelLSSVR
from adiabat.engine import newcomers

from .brute_force import inside, regression_with, residuals_at
from .fine_grid import near_an_end, of_family, p_value, wrong_targets
from oracles.problems import FAMILIES

RNG = np.random.default_rng(2)
X = RNG.standard_normal((60, 3))
Y = X[:, 0] + 0.5 * np.sin(3.0 * X[:, 1]) + 0.3 * RNG.standard_normal(60)
Z = RNG.standard_normal((4, 3))

KINDS = {
    "SVR": (lambda: SVR(C=3.0, gamma=0.5, epsilon=0.2), ()),
    "SVR, linear": (lambda: SVR(kernel="linear", epsilon=0.1), ()),
    "KernelLSSVR": (lambda: KernelLSSVR(rho=0.5, gamma=0.5), ()),
    "KernelLSSVR, no bias": (lambda: KernelLSSVR(rho=0.5, fit_intercept=False, gamma=0.5), ()),
    "LSSVR": (lambda: LSSVR(rho=0.5), (X, Y)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_regions_are_those_of_refits_on_a_grid(name):
    compared, wrong = of_family(name, 25, [0.3, 0.85])
    assert compared > 40 and wrong == []


def test_a_fine_grid():
    params = {"C": 3.0, "gamma": 0.5, "epsilon": 0.6}
    known = X[:24], Y[:24], np.ones(24)
    compared, wrong = wrong_targets(params, known, Z[0], [0.2, 0.5, 0.9], 200)
    assert compared > 590 and wrong == []


def test_regions_may_have_several_parts():
    """With few support vectors a target inside the tube may be stranger than one at its edge."""
    rng = np.random.default_rng(12)
    rows, x = rng.uniform(-1, 1, (15, 1)), np.array([0.3])
    targets = 0.4 * rng.standard_normal(15)
    model = SVR(C=1.0, gamma=2.0, epsilon=0.5).fit(rows, targets)
    _, ((parts,),) = model.predict_region([[0.3]], 0.7)
    assert len(parts) == 4
    other = regression_with(model.get_params(), rows, targets, np.ones(15), x)
    for z, holds in (
        *((z, True) for z in parts.mean(axis=1)),
        *((z, False) for z in 0.5 * (parts[1:, 0] + parts[:-1, 1])),
    ):
        p = p_value(residuals_at(other, rows, targets, x, float(z)))
        assert (p > 0.3 + 1e-12) == holds


@pytest.mark.parametrize("name", KINDS)
def test_regions_of_every_kind(name):
    make, extra = KINDS[name]
    _, regions = make().fit(X, Y).predict_region(Z, *extra, [0.5, 0.9])
    for x, by_level in zip(Z, regions, strict=True):
        for z in np.linspace(-3.0, 3.0, 9):
            rows, targets = np.vstack([X, x[None, :]]), np.append(Y, z)
            residuals = np.abs(targets - make().fit(rows, targets).predict(rows))
            for level, parts in zip((0.5, 0.9), by_level, strict=True):
                if not near_an_end(parts, z):
                    assert inside(parts, z) == (p_value(residuals) > 1.0 - level + 1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_intervals_from_left_out_models(name):
    make, extra = KINDS[name]
    model = make().fit(X, Y)
    splits = {"jackknife+": KFold(60), "cv+": KFold(5), "minmax": KFold(60)}
    for method, folds in splits.items():
        residual, values = np.empty(60), np.empty((60, 4))
        for train, test in folds.split(X):
            other = make().fit(X[train], Y[train])
            residual[test] = np.abs(Y[test] - other.predict(X[test]))
            values[test] = other.predict(Z)
        if method == "minmax":
            reach = np.sort(residual)[60 - 6]
            ends = values.min(axis=0) - reach, values.max(axis=0) + reach
        else:
            ends = (
                np.sort(values - residual[:, None], axis=0)[5],
                np.sort(values + residual[:, None], axis=0)[60 - 6],
            )
        cv = folds if method == "cv+" else None
        prediction, intervals = model.predict_interval(Z, *extra, 0.9, method=method, cv=cv)
        np.testing.assert_allclose(intervals[:, :, 0], np.column_stack(ends), atol=1e-9)
        np.testing.assert_allclose(prediction, model.predict(Z), atol=1e-12)


def test_full_intervals_are_the_hulls_of_regions():
    model = SVR(C=3.0, gamma=0.5, epsilon=0.2).fit(X, Y)
    _, intervals = model.predict_interval(Z, [0.5, 0.9])
    _, regions = model.predict_region(Z, [0.5, 0.9])
    assert intervals.shape == (4, 2, 2)
    for k, by_level in enumerate(regions):
        for j, parts in enumerate(by_level):
            assert (intervals[k, 0, j], intervals[k, 1, j]) == (parts[0, 0], parts[-1, 1])


def test_the_pivots_do_the_work_on_ordinary_data(monkeypatch):
    model = SVR(C=3.0, gamma=0.5, epsilon=0.2).fit(X[:12], Y[:12])
    found = model.predict_region(Z[:1])[1][0][0]
    with monkeypatch.context() as patched:
        patched.setattr("adiabat.estimators.confidence.visits.Visits.of", None)
        model.predict_region(Z)
    monkeypatch.setattr(newcomers.Newcomers, "range_over", lambda *_: None)
    np.testing.assert_allclose(model.predict_region(Z[:1])[1][0][0], found, atol=1e-7)


@pytest.mark.parametrize("method", ["full", "jackknife+", "cv+", "minmax"])
def test_order_and_forgotten_rows_leave_no_trace(method):
    cv = [(np.arange(30, 60), np.arange(30)), (np.arange(30), np.arange(30, 60))]
    given = {"cv": cv} if method == "cv+" else {}
    found = SVR(gamma=0.5).fit(X, Y).predict_interval(Z, 0.9, method, **given)[1]
    order = np.concatenate([np.arange(30)[::-1], np.arange(30, 60)[::-1]])
    other = SVR(gamma=0.5).fit(X[order], Y[order])
    np.testing.assert_allclose(other.predict_interval(Z, 0.9, method, **given)[1], found, atol=1e-9)
    longer = SVR(gamma=0.5).fit(np.vstack([X, Z]), np.append(Y, Y[:4])).forget([60, 61, 62, 63])
    before = longer.predict(Z).copy()
    np.testing.assert_allclose(
        longer.predict_interval(Z, 0.9, method, **given)[1], found, atol=1e-9
    )
    np.testing.assert_array_equal(longer.predict(Z), before)


def test_samples_without_force():
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0)
    for make in (lambda: SVR(gamma=0.5), lambda: KernelLSSVR(gamma=0.5)):
        model = make().fit(X, Y, weight)
        assert not model.predict_interval(Z).guarantee.holds
        _, regions = model.predict_region(Z[:1], 0.8)
        for z in np.linspace(-3.0, 3.0, 9):
            rows, targets = np.vstack([X, Z[:1]]), np.append(Y, z)
            other = make().fit(rows, targets, np.append(weight, 1.0))
            p = p_value(np.abs(targets - other.predict(rows)))
            assert inside(regions[0][0], z) == (p > 0.2 + 1e-12)


def test_a_given_kernel():
    own = np.einsum("ij,ij->i", Z, Z)
    for kind in (SVR, KernelLSSVR):
        plain, given = kind(kernel="linear").fit(X, Y), kind(kernel="precomputed").fit(X @ X.T, Y)
        for method in ("full", "jackknife+", "cv+"):
            diagonal = own if method == "full" else None
            found = given.predict_interval(Z @ X.T, 0.9, method, diagonal=diagonal)[1]
            wanted = plain.predict_interval(Z, 0.9, method)[1]
            np.testing.assert_allclose(found, wanted, atol=1e-8)
        with pytest.raises(ValueError, match="diagonal is missing"):
            given.predict_region(Z @ X.T)


def test_what_is_guaranteed():
    model = SVR(gamma=0.5).fit(X, Y)
    promised = {
        "full": 0.9, "minmax": 0.9, "jackknife+": 0.8, "cv+": 0.8 - min(1.8 * 4 / 65, 11 / 72)
    }  # fmt: skip
    for method, least in promised.items():
        said = model.predict_interval(Z, 0.9, method).guarantee
        assert said.coverage[0] == pytest.approx(least)
        assert said.holds
    assert not SVR().fit(X, Y).predict_interval(Z).guarantee.holds


def test_bad_questions_change_nothing():
    model = SVR(gamma=0.5).fit(X, Y)
    before = model.predict(Z).copy()
    for level in (0.0, 1.0, "0.9x", [0.5, -1.0]):
        with pytest.raises(ValueError, match="confidence_level="):
            model.predict_interval(Z, level)
    with pytest.raises(ValueError, match="needs 99 samples, and the model has 60"):
        model.predict_interval(Z, 0.99)
    with pytest.raises(ValueError, match="method='split'"):
        model.predict_interval(Z, method="split")
    with pytest.raises(ValueError, match=r"cv=3 is for method='cv\+'"):
        model.predict_interval(Z, cv=3)
    with pytest.raises(ValueError, match="each of the 60 samples into one fold"):
        model.predict_interval(Z, method="cv+", cv=[(np.arange(30), np.arange(30, 60))])
    with pytest.raises(ValueError, match="NaN"):
        model.predict_interval(np.full((1, 3), np.nan))
    with pytest.raises(ValueError, match="one target"):
        KernelLSSVR().fit(X, np.column_stack([Y, Y])).predict_interval(Z)
    with pytest.raises(ValueError, match="not the 60 rows"):
        LSSVR().fit(X, Y).predict_interval(Z, X[:9], Y[:9])
    np.testing.assert_array_equal(model.predict(Z), before)
