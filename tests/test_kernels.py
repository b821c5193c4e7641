# SPDX-License-Identifier: BSD-3-Clause
"""Kernels: against scikit-learn, against exact arithmetic, and at the edges."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, polynomial_kernel, rbf_kernel

from adiabat.errors import (
    AdiabatError,
    IdError,
    IndefiniteKernelError,
    ModelFileError,
    NotOptimalError,
)
from adiabat.kernels import KERNEL_NAMES, Kernel, make_kernel, resolve_gamma

FORMULAS = ("chi2", "laplacian", "linear", "poly", "rbf")
REFERENCE = {
    "chi2": lambda A, B, k: chi2_kernel(A, B, gamma=k.gamma),
    "laplacian": lambda A, B, k: laplacian_kernel(A, B, gamma=k.gamma),
    "linear": lambda A, B, k: A @ B.T,
    "poly": lambda A, B, k: polynomial_kernel(A, B, degree=k.degree, gamma=k.gamma, coef0=k.coef0),
    "rbf": lambda A, B, k: rbf_kernel(A, B, gamma=k.gamma),
}


def some_rows(n=40, d=7, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    X[X < 0.4] = 0.0
    return X


def kernel_on(X, name="rbf", **changes):
    settings_ = {"gamma": "scale", "degree": 3, "coef0": 0.5, "X": X} | changes
    return make_kernel(name, **settings_)


def as_csr(X, index_dtype=np.int32, kind=sp.csr_array):
    S = kind(X)
    S.indices, S.indptr = S.indices.astype(index_dtype), S.indptr.astype(index_dtype)
    return S


FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr32": as_csr,
    "csr64": lambda X: as_csr(X, np.int64),
    "csr_matrix": lambda X: as_csr(X, kind=sp.csr_matrix),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("form_a", FORMS)
@pytest.mark.parametrize("form_b", ["dense", "csr32", "csr64"])
@pytest.mark.parametrize("m", [1, 11])
def test_a_block_is_the_formula_in_every_storage(name, form_a, form_b, m):
    X = some_rows().astype(np.float32).astype(np.float64)
    k = kernel_on(X, name)
    A, B = FORMS[form_a](X), FORMS[form_b](X[:m])
    block = k.block(A, B)
    np.testing.assert_allclose(block, REFERENCE[name](X, X[:m], k), rtol=1e-12, atol=1e-14)
    assert block.dtype == np.float64
    assert block.flags.c_contiguous
    assert block.flags.writeable
    np.testing.assert_allclose(k.block(B, A), block.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("form", FORMS)
def test_the_diagonal_is_the_diagonal_of_the_block(name, form):
    A = FORMS[form](some_rows())
    k = kernel_on(some_rows(), name)
    np.testing.assert_allclose(k.diagonal(A), np.diag(k.block(A, A)), rtol=1e-6, atol=1e-12)
    assert k.diagonal(A).shape == (40,)


@pytest.mark.parametrize("form", FORMS)
def test_given_norms_change_nothing(form):
    A, B = FORMS[form](some_rows()), FORMS[form](some_rows(9, seed=1))
    k = kernel_on(some_rows())
    rows, others = k.rows(A), k.rows(B)
    rows.norms, others.norms = k.norms(A), k.norms(B)
    np.testing.assert_array_equal(k.block(A, B), k.block(rows, others))


@pytest.mark.parametrize("name", FORMULAS)
def test_only_rbf_and_poly_have_norms(name):
    norms = kernel_on(some_rows(), name).norms(some_rows())
    assert (norms is not None) == (name in ("rbf", "poly"))


@pytest.mark.parametrize("name", FORMULAS)
def test_inputs_are_not_mutated(name):
    X = some_rows()
    before = X.copy()
    X.setflags(write=False)
    k = kernel_on(X, name)
    k.block(X, X)
    k.diagonal(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", FORMULAS)
def test_unsorted_and_repeated_entries_of_sparse_rows_are_summed_not_changed(name):
    values, columns = np.array([1.0, 2.0, 3.0, 0.5]), np.array([4, 1, 4, 2])
    S = sp.csr_array((values, columns, np.array([0, 3, 4])), shape=(2, 7))
    dense = np.array([[0, 2.0, 0, 0, 4.0, 0, 0], [0, 0, 0.5, 0, 0, 0, 0]])
    k = kernel_on(S, name)
    assert k.to_dict() == kernel_on(dense, name).to_dict()
    np.testing.assert_allclose(k.block(S, S), k.block(dense, dense), rtol=1e-14)
    np.testing.assert_allclose(k.block(dense, S), k.block(dense, dense), rtol=1e-14)
    np.testing.assert_allclose(k.diagonal(S), k.diagonal(dense), rtol=1e-14)
    np.testing.assert_array_equal(S.indices, [4, 1, 4, 2])
    np.testing.assert_array_equal(S.data, [1.0, 2.0, 3.0, 0.5])


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_empty_blocks_have_their_shape(name, shape):
    X = some_rows()
    k = kernel_on(X, name)
    assert k.block(X[: shape[0]], X[: shape[1]]).shape == shape


def test_blocks_larger_than_a_chunk_are_right():
    X = np.random.default_rng(0).normal(size=(300, 4))
    k = kernel_on(X, gamma=0.3)
    np.testing.assert_allclose(k.block(X, X[:250]), rbf_kernel(X, X[:250], gamma=0.3), atol=1e-14)
    wide = np.random.default_rng(1).normal(size=(40_000, 1))
    np.testing.assert_allclose(
        k_row := kernel_on(wide, gamma=0.3).block(wide[:2], wide),
        np.exp(-0.3 * (wide[:2] - wide.T) ** 2),
        atol=1e-13,
    )
    assert k_row.shape == (2, 40_000)


@given(
    scale=st.floats(1e-6, 1e6),
    gamma=st.floats(0.0, 1e3),
    seed=st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_rbf_stays_between_zero_and_one(scale, gamma, seed):
    X = scale * np.random.default_rng(seed).normal(size=(12, 3))
    X = np.vstack([X, X])
    block = kernel_on(X, gamma=gamma).block(X, X.copy())
    assert block.min() >= 0.0
    assert block.max() <= 1.0


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_rbf_survives_a_large_common_offset(offset):
    near = np.round(np.random.default_rng(0).normal(size=(30, 5)) * 64) / 64
    far = near + offset  # exact: the grid of 1/64 fits in the mantissa
    k = kernel_on(far, gamma=0.2)
    expected = k.block(near, near)
    np.testing.assert_array_equal(k.block(far, far.copy()), expected)
    np.testing.assert_array_equal(k.block(sp.csr_array(far), far), expected)


def test_no_origin_where_none_is_needed():
    X = some_rows()

    def origin(rows, name="linear", shift_free=True):
        return kernel_on(rows, name, gamma=0.1, shift_free=shift_free).origin

    assert not origin(X + 1e6).flags.writeable
    assert origin(X) is None
    assert origin(X + 5.0) is None
    assert origin(X + 1e6, shift_free=False) is None
    assert origin(sp.csr_array(X + 1e6)) is None
    assert origin(X + 1e6, "rbf") is None
    assert origin(X + 1e6, "laplacian") is None
    assert origin(np.full((3, 2), 7.0)).tolist() == [7.0, 7.0]
    assert origin(np.zeros((3, 2))) is None


def test_origin_is_refused_for_other_features():
    k = kernel_on(some_rows() + 1e6, "linear", shift_free=True)
    with pytest.raises(ValueError, match="7"):
        k.block(np.ones((2, 3)), np.ones((2, 3)))


def test_the_origin_of_an_rbf_kernel_in_an_old_file_is_left_out():
    """Distances do not depend on it."""
    fields = kernel_on(some_rows()).to_dict() | {"origin": [1.0] * 7}
    assert Kernel.from_dict(fields).origin is None


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5, 8, 13])
def test_poly_of_every_degree(degree):
    X = np.random.default_rng(0).normal(size=(20, 3))
    k = kernel_on(X, "poly", degree=degree, gamma=0.7)
    np.testing.assert_allclose(k.block(X, X), (0.7 * X @ X.T + 0.5) ** degree, rtol=1e-12)


# gamma


@pytest.mark.parametrize("form", ["dense", "fortran", "csr32", "csr64", "csr_matrix"])
def test_scale_is_that_of_scikit_learn(form):
    X = some_rows()
    assert resolve_gamma("scale", FORMS[form](X)) == pytest.approx(1 / (7 * X.var()), rel=1e-14)
    assert resolve_gamma("auto", FORMS[form](X)) == 1 / 7


@given(
    weights=st.lists(st.integers(0, 9), min_size=3, max_size=12).filter(any),
    seed=st.integers(0, 1000),
    sparse=st.booleans(),
    offset=st.sampled_from([0.0, 3.0, 1e5]),
)
@settings(max_examples=150, deadline=None)
def test_whole_weights_are_repetition_to_the_last_bit(weights, seed, sparse, offset):
    rng = np.random.default_rng(seed)
    X = some_rows(len(weights), 5, seed) + offset
    repeated = np.repeat(X, weights, axis=0)
    rng.shuffle(repeated)
    convert = sp.csr_array if sparse else np.asarray
    weighted = resolve_gamma("scale", convert(X), sample_weight=weights)
    assert weighted == resolve_gamma("scale", convert(repeated))


def test_scale_of_constant_rows_is_one():
    assert resolve_gamma("scale", np.full((7, 3), 0.1)) == 1.0
    assert resolve_gamma("scale", sp.csr_array((4, 3))) == 1.0
    X = np.array([[1.0, 1.0], [5.0, 2.0]])
    assert resolve_gamma("scale", X, sample_weight=[1.0, 0.0]) == 1.0


@pytest.mark.parametrize("gamma", [0, 0.5, np.float64(2.0), np.int64(3)])
def test_a_number_is_itself(gamma):
    value = resolve_gamma(gamma, some_rows())
    assert value == gamma
    assert type(value) is float


@pytest.mark.parametrize("gamma", ["scales", -1.0, np.nan, np.inf, None, True, [1.0]])
@pytest.mark.parametrize("name", ["rbf", "linear", "precomputed", lambda A, B: A @ B.T])
def test_other_gammas_are_refused(gamma, name):
    with pytest.raises(ValueError, match="gamma="):
        kernel_on(some_rows(), name, gamma=gamma)


@pytest.mark.parametrize(
    "weight", [np.zeros(40), -np.ones(40), np.ones(3), np.full(40, np.nan), np.ones((40, 1))]
)
def test_weights_that_cannot_be_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        resolve_gamma("scale", some_rows(), weight)


@pytest.mark.parametrize("size", [1e300, 1e-160])
def test_a_scale_out_of_range_is_refused(size):
    with pytest.raises(ValueError, match="scale the features"):
        resolve_gamma("scale", some_rows() * size)


def test_kernels_without_gamma_say_zero():
    X = some_rows()
    for name in ("linear", "precomputed", lambda A, B: A @ B.T):
        assert kernel_on(X, name).gamma == 0.0


# what is refused


def test_an_unknown_name_is_refused_with_the_names():
    with pytest.raises(ValueError, match="chi2, laplacian, linear, poly, precomputed, rbf"):
        kernel_on(some_rows(), "cosine")
    with pytest.raises(ValueError, match="unknown"):
        kernel_on(some_rows(), 3)


def test_sigmoid_is_refused_with_the_reason():
    with pytest.raises(IndefiniteKernelError, match=r"not positive semidefinite.*rbf.*poly"):
        kernel_on(some_rows(), "sigmoid")


def test_poly_with_a_negative_constant_is_refused():
    with pytest.raises(IndefiniteKernelError, match="coef0=-1"):
        kernel_on(some_rows(), "poly", coef0=-1.0)
    assert kernel_on(some_rows(), "rbf", coef0=-1.0).coef0 == -1.0


@pytest.mark.parametrize("change", [{"degree": -1}, {"degree": 2.5}, {"coef0": np.nan}])
def test_poly_parameters_are_checked(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        kernel_on(some_rows(), "poly", **change)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_chi2_refuses_negative_features(convert):
    X = some_rows()
    k = kernel_on(X, "chi2")
    bad = convert(X - 0.5)
    for use in (lambda: kernel_on(bad, "chi2"), lambda: k.block(X, bad), lambda: k.diagonal(bad)):
        with pytest.raises(ValueError, match="chi2"):
            use()


def test_precomputed_is_not_evaluated():
    k = kernel_on(np.eye(3), "precomputed")
    for use in (lambda: k.block(np.eye(3), np.eye(3)), lambda: k.diagonal(np.eye(3))):
        with pytest.raises(ValueError, match="precomputed"):
            use()


def test_rows_of_other_features_are_refused():
    with pytest.raises(ValueError, match="7"):
        kernel_on(some_rows()).block(some_rows(), some_rows()[:, :6])
    with pytest.raises(ValueError, match="2-D"):
        kernel_on(some_rows()).block(some_rows(), some_rows()[0])


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_overflow_is_an_error_not_a_nan(name):
    huge = some_rows() * 1e200
    k = kernel_on(huge, name, gamma=1.0)
    for use in (lambda: k.block(huge, huge), lambda: k.block(huge, some_rows() * 1e200)):
        with pytest.raises(ValueError, match=name):
            use()


# functions as kernels


def test_a_function_is_called_and_copied():
    kept = np.eye(4)
    k = kernel_on(np.eye(4), lambda A, B: kept)
    block = k.block(np.eye(4), np.eye(4))
    block[:] = 7.0
    assert kept[0, 1] == 0.0


def test_a_function_gives_diagonal_and_sparse_values():
    X = np.random.default_rng(0).normal(size=(70, 3))
    k = kernel_on(X, lambda A, B: A @ B.T)
    np.testing.assert_allclose(k.diagonal(X), (X * X).sum(axis=1))
    S = sp.csr_array(X)
    np.testing.assert_allclose(k.block(S, S[:3]), X @ X[:3].T)


@pytest.mark.parametrize(
    ("result", "message"),
    [(np.ones((3, 2)), "shape"), (np.ones(3), "shape"), (np.full((3, 3), np.nan), "not finite")],
)
def test_a_function_that_misbehaves_is_named(result, message):
    def my_kernel(A, B):
        return result

    k = kernel_on(np.eye(3), my_kernel)
    with pytest.raises(ValueError, match=rf"my_kernel.*{message}"):
        k.block(np.eye(3), np.eye(3))


# keeping a kernel


@pytest.mark.parametrize("name", KERNEL_NAMES)
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_dict_and_pickle_give_the_same_kernel(name, offset):
    k = kernel_on(some_rows() + offset, name)
    assert Kernel.from_dict(json.loads(json.dumps(k.to_dict()))).to_dict() == k.to_dict()
    assert pickle.loads(pickle.dumps(k)).to_dict() == k.to_dict()


def test_a_function_cannot_go_into_a_dict():
    with pytest.raises(TypeError, match="pickle"):
        kernel_on(np.eye(3), max).to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "callable"},
        {"name": "sigmoid"},
        {"gamma": "scale"},
        {"gamma": -1.0},
        {"gamma": None},
        {"degree": "3"},
        {"coef0": None},
        {"origin": [[1.0]]},
        {"origin": ["x"]},
        {"origin": {"a": 1}},
        {"extra": 1},
    ],
)
def test_fields_that_are_not_sound_are_refused(change):
    with pytest.raises(ValueError, match=r"kernel|gamma|degree|coef0"):
        Kernel.from_dict(kernel_on(some_rows()).to_dict() | change)


def test_a_kernel_does_not_change():
    with pytest.raises(AttributeError):
        kernel_on(some_rows()).gamma = 2.0


# the errors themselves


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (NotOptimalError, RuntimeError),
        (IdError, ValueError),
        (IndefiniteKernelError, ValueError),
        (ModelFileError, ValueError),
    ],
)
def test_errors_are_of_one_family_and_pickle(kind, builtin):
    error = pickle.loads(pickle.dumps(kind("what and why")))
    assert isinstance(error, AdiabatError)
    assert isinstance(error, builtin)
    assert str(error) == "what and why"
    assert type(error) is kind


def test_not_optimal_carries_its_certificate():
    assert NotOptimalError("x").certificate is None
    error = pickle.loads(pickle.dumps(NotOptimalError("x", certificate={"residual": 1.0})))
    assert error.certificate == {"residual": 1.0}
    assert str(error) == "x"


def test_a_name_out_of_an_array_of_names() -> None:
    """As a search over parameters gives it."""
    X = np.arange(12.0).reshape(6, 2)
    for name in np.array(["rbf", "linear", "poly"]):
        found = make_kernel(name, gamma=0.1, degree=2, coef0=1.0, X=X)
        plain = make_kernel(str(name), gamma=0.1, degree=2, coef0=1.0, X=X)
        np.testing.assert_array_equal(found.block(X, X), plain.block(X, X))
