# SPDX-License-Identifier: BSD-3-Clause
"""Features over many decades: nothing is refused that could be solved, and f_error is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import adiabat
from adiabat import LSSVC, LSSVR, KernelLSSVR
from adiabat.archive import read_archive, write_archive
from adiabat.errors import ModelFileError
from adiabat.feature_maps import Polynomial
from adiabat.lssvm.auxiliary import AuxiliaryMatrix, IndefiniteMatrix
from adiabat.lssvm.elimination import PivotedMatrix
from adiabat.lssvm.evidence import certify
from adiabat.lssvm.moments import Moments

from oracles.exact_models import least_squares_truth
from oracles.exact_numbers import exact, product


def problem(seed, cell, weight=1.0, width=None):
    """Rows of small decimals, one with a large cell, one of another weight."""
    rng = np.random.default_rng([seed, 1])
    n, own = int(rng.integers(10, 25)), int(rng.integers(2, 8))
    X = rng.integers(0, 11, (n, own)) / 10.0
    y = np.where(X[:, 0] - 0.5 + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    y[:6] = [-1, 1, -1, 1, -1, 1]
    row, heavy = (int(place) for place in rng.choice(n, 2, replace=False))
    X[row, rng.integers(own)] = cell
    s = np.ones(n)
    s[heavy] = weight
    return X[:, : width or own], y, s, row


def off(model, X, y, s):
    """How far f is from the optimum's, at each row."""
    phi = model.feature_map.fit(X).transform(X) if model.feature_map else X

    def values():
        rows = exact(phi)
        return product(rows, rows.T.copy())

    truth = least_squares_truth(values, y, s, model.rho)
    f = model.decision_function(X) if isinstance(model, LSSVC) else model.predict(X)
    return truth.off(f)


@pytest.mark.parametrize(("seed", "cell", "rho", "weight"), [
    (27, 1e3, 1e-6, 1e-9),  # 0.055 off, and said to be known to 2e-9
    (46, 1e6, 1e-6, 1e11),
    (0, 1e3, 1e-5, 1e8),
    (48, 1e5, 1e-3, 1e5),
    (22, 1e5, 1e-4, 1e12),
    (7, 1e3, 1e-5, 1e9),
])  # fmt: skip
def test_a_huge_row_unlearned_is_not_what_the_inverse_has_lost(seed, cell, rho, weight):
    """Where the row was, an updated inverse is as good as 0, and answers to nothing."""
    X, y, s, row = problem(seed, cell, weight)
    model = LSSVC(rho=rho, feature_map=Polynomial(2, 0.5, 1.0)).fit(X, y, s)
    model.forget(X[[row]], y[[row]], s[[row]])
    X, y, s = (np.delete(part, row, axis=0) for part in (X, y, s))
    for certificate in (model.certificate(), model.last_update_.certificate):
        assert certificate.ok and certificate.f_error < 1e-6
        assert off(model, X, y, s).max() <= certificate.f_error


@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("cell", [1e4, 1e7, 1e12])
@pytest.mark.parametrize("rho", [1e-6, 1e-1, 1e3])
def test_a_huge_row_is_learned_and_f_is_known_there_too(degree, cell, rho):
    X, y, s, row = problem(degree, cell, width=3)
    X[row, 1] = cell
    t = y + 0.25 * X[:, 0]
    model = LSSVR(rho=rho, feature_map=Polynomial(degree, 0.4, 1.0)).fit(X, t, s)
    for certificate in (model.certificate(), model.last_update_.certificate):
        assert certificate.ok and certificate.f_error < 1e-6
        assert off(model, X, t, s).max() <= certificate.f_error
    model.forget(X[[row]], t[[row]], s[[row]])
    X, t, s = (np.delete(part, row, axis=0) for part in (X, t, s))
    assert model.certificate().ok and off(model, X, t, s).max() <= model.certificate().f_error
    fresh = LSSVR(rho=rho, feature_map=Polynomial(degree, 0.4, 1.0)).fit(X, t, s)
    assert np.abs(fresh.predict(X) - model.predict(X)).max() <= 1e-12


def test_ordinary_rows_are_solved_in_float64():
    X, y, _, _ = problem(3, 0.5)
    model = LSSVR(rho=1e-3, feature_map=Polynomial(2)).fit(X, y * 1.0)
    assert type(model._model.matrix) is AuxiliaryMatrix and model._model.expansion is None
    assert model._model.moments.rest is None


def large():
    X, y, s, row = problem(4, 1e7)
    return LSSVC(rho=1e-2, feature_map=Polynomial(3, 0.3, 1.0)).fit(X, y, s), X, y, s, row


def test_the_pivoted_matrix_is_the_inverse():
    X, y, _, _ = problem(5, 30.0, width=2)
    model = LSSVR(rho=0.5, feature_map=Polynomial(2)).fit(X, y * 1.0)._model
    plain = AuxiliaryMatrix.rebuilt(model.moments, model.rho, True)
    pivoted = PivotedMatrix(model.moments, model.rho, True)
    phi = Polynomial(2).fit(X).transform(X)
    right = np.random.default_rng(0).normal(size=(phi.shape[1] + 1, 3))
    assert np.allclose(pivoted.solve(right), plain.solve(right), rtol=1e-8, atol=1e-10)
    assert np.allclose(np.triu(pivoted.inverse), np.triu(plain.inverse), rtol=1e-8, atol=1e-10)
    assert np.allclose(pivoted.quadratics(phi), plain.quadratics(phi), rtol=1e-8)
    assert np.allclose(pivoted.mean, plain.mean, rtol=1e-14)


def test_moments_of_no_rows_are_refused_by_the_pivoted_matrix():
    moments = Moments(3, 1)
    X = np.random.default_rng(0).normal(size=(5, 3))
    moments.add(X, np.ones((5, 1)), None, 1.0, 1e-9)
    moments.add(np.array([[1e9, 1e9, 2.0]]), np.ones((1, 1)), None, -1.0, 1e-9)
    with pytest.raises(IndefiniteMatrix):
        PivotedMatrix(moments, 1e-9, True)


def test_an_inverse_that_has_lost_a_direction_is_found_out():
    """Its corrections are small whatever the solution is: that must not make it right."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 4))
    model = LSSVR(rho=1e-3).fit(X, X[:, 0] + 0.1 * rng.normal(size=40))._model
    upper = np.triu(model.matrix.inverse)
    P = upper + np.triu(upper, 1).T
    values, vectors = np.linalg.eigh(P)
    lost = P - (1.0 - 1e-13) * values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
    matrix = AuxiliaryMatrix(model.matrix.mean, model.matrix.total, True, None, lost)
    wrong = model.solution.copy()
    wrong[:4, 0] += 0.1 * vectors[:, -1]
    wrong[4, 0] -= 0.1 * vectors[:, -1] @ model.matrix.mean
    bad = replace(model, matrix=matrix, solution=wrong)
    found = certify(bad, {}, afresh=True)
    assert not found.ok and found.f_error > 0.01
    mended = replace(bad, effort=replace(bad.effort, way="update"))._refined()
    assert mended.effort.refreshes == 1
    assert np.abs(mended.solution - model.solution).max() <= 1e-13


def test_a_coefficient_moved_is_not_optimal_beside_a_huge_row():
    held = large()[0]._model
    for j in range(0, len(held.solution), 7):
        parts = held.expansion.copy()
        parts[0, j, 0] += 1e-5
        moved = replace(held, expansion=parts, solution=parts[:, :, 0].T.copy())
        assert not certify(moved, {}, afresh=True).ok


def test_files_keep_all_parts(tmp_path):
    model, X, y, s, row = large()
    path = tmp_path / "m.adiabat"
    model.save(path)
    loaded = adiabat.load(path)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.certificate().ok
    loaded.forget(X[[row]], y[[row]], s[[row]])
    model.forget(X[[row]], y[[row]], s[[row]])
    assert np.array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize("fault", ["other", "shape", "many"])
def test_files_whose_parts_are_unsound_are_refused(tmp_path, fault):
    path = tmp_path / "m.adiabat"
    large()[0].save(path)
    manifest, arrays = read_archive(path)
    if fault == "other":
        arrays["solution_parts"] = arrays["solution_parts"] * 1.001
    elif fault == "shape":
        arrays["solution_parts"] = arrays["solution_parts"][:, :-1]
    else:
        arrays["moments_rest"] = np.repeat(arrays["moments_rest"], 20, axis=0)
    write_archive(path, manifest, arrays)
    with pytest.raises(ModelFileError):
        adiabat.load(path)


def test_leave_one_out_beside_a_huge_row():
    X, y, s, _ = problem(4, 1e5)
    model = LSSVR(rho=1e-2, feature_map=Polynomial(2, 0.3, 1.0)).fit(X, y * 1.0, s)
    found = model.leave_one_out(X, y * 1.0, s).prediction
    for i in range(0, len(y), 4):
        twin = LSSVR(rho=1e-2, feature_map=Polynomial(2, 0.3, 1.0))
        twin.fit(np.delete(X, i, 0), np.delete(y * 1.0, i), np.delete(s, i))
        without = twin.predict(X[[i]])[0]
        assert abs(found[i] - without) <= 1e-8 * max(1.0, abs(without))


@pytest.mark.parametrize("degree", [2, 3])
def test_a_kernel_weight_moved_is_not_optimal_beside_a_huge_row(degree):
    """Rounding of the far row's kernel values excuses the far row alone."""
    X, y, s, row = problem(8, 1e6)
    model = KernelLSSVR(kernel="poly", degree=degree, gamma=0.4, coef0=1.0, rho=1e-2)
    model.fit(X, y * 1.0, sample_weight=s)
    assert model.certificate().ok
    held = model._model
    for i in range(len(y)):
        if held.heavy[i] == row:
            continue
        alpha = held.machine.alpha.copy()
        alpha[i] += 1e-5 * np.abs(alpha).max()
        model._model = replace(held, machine=replace(held.machine, alpha=alpha))
        assert not model.certificate().ok
