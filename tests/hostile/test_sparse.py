# SPDX-License-Identifier: BSD-3-Clause
"""Sparse matrices whose index arrays are not sound are refused at every entry, by name.

Without the check each of these reads or writes memory that is not the matrix's.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import adiabat
from adiabat.active import ActiveLearner
from adiabat.feature_maps import Polynomial, RandomFourier
from adiabat.inputs import (
    csr_from_parts,
    dense_values,
    require_csr,
    require_memory,
    require_width,
)

N, D = 40, 12
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((N, D)) < 0.4, RNG.normal(size=(N, D)), 0.0)
DENSE[:, 0] = np.arange(N) % 2 + 0.5
Y = np.arange(N) % 2


def sound():
    return sp.csr_array(DENSE)


def faulty(change, X=None):
    """A sound matrix, its arrays changed behind SciPy's back."""
    X = sound() if X is None else X
    change(X)
    return X


def put(name, at, value):
    def change(X):
        array = getattr(X, name).astype(np.int64)
        array[at] = value
        setattr(X, name, array)

    return change


def whole(name, make):
    return lambda X: setattr(X, name, make(getattr(X, name)))


def no_values(X):
    """The case that SciPy's own check passes over: bounds beyond the entries, none at the end."""
    X.data, X.indices = X.data[:0], X.indices[:0]
    X.indptr = np.array([0] + [10**9] * (N - 1) + [0], dtype=np.int32)


def coordinates(row, col):
    X = sp.coo_array(DENSE)
    X.coords = (X.coords[0] + row, X.coords[1] + col)
    return X


def of_lists():
    X = sp.lil_array(DENSE)
    X.rows[3][0] = 10**6
    return X


def of_blocks():
    X = sp.bsr_array(DENSE, blocksize=(2, 2))
    X.indices[0] = 10**7
    return X


def of_no_rows():
    X = sp.bsr_array(DENSE, blocksize=(1, 1))
    X.indptr, X._shape = X.indptr[:0], (-1, D)
    return X


CASES = {
    "index -1": lambda: faulty(put("indices", 5, -1)),
    "first index -1": lambda: faulty(put("indices", 0, -1)),
    "last index -1": lambda: faulty(put("indices", -1, -1)),
    "index far below": lambda: faulty(put("indices", 5, -(10**9))),
    "index one too large": lambda: faulty(put("indices", 5, D)),
    "index far above": lambda: faulty(put("indices", 5, 2**31 - 1)),
    "index beyond 32 bits": lambda: faulty(put("indices", 5, 2**40)),
    "all indices above": lambda: faulty(whole("indices", lambda a: a + 10**8)),
    "indices of floats": lambda: faulty(whole("indices", lambda a: a.astype(float))),
    "indices in two dimensions": lambda: faulty(whole("indices", lambda a: a[None])),
    "fewer indices than values": lambda: faulty(whole("indices", lambda a: a[:-3])),
    "more indices than values": lambda: faulty(whole("indices", lambda a: np.append(a, 0))),
    "indptr starts at 1": lambda: faulty(put("indptr", 0, 1)),
    "indptr starts at -5": lambda: faulty(put("indptr", 0, -5)),
    "indptr starts far above": lambda: faulty(put("indptr", 0, 10**9)),
    "indptr ends beyond": lambda: faulty(put("indptr", -1, 10**9)),
    "indptr ends one beyond": lambda: faulty(whole("indptr", lambda a: a + (a == a[-1]))),
    "indptr ends at -1": lambda: faulty(put("indptr", -1, -1)),
    "indptr ends at 0": lambda: faulty(put("indptr", -1, 0)),
    "indptr falls": lambda: faulty(put("indptr", 20, 3)),
    "indptr leaps and comes back": lambda: faulty(put("indptr", 20, 10**9)),
    "indptr negative within": lambda: faulty(put("indptr", 20, -(10**6))),
    "indptr leaps beyond 32 bits": lambda: faulty(put("indptr", 20, 2**40)),
    "indptr too short": lambda: faulty(whole("indptr", lambda a: a[:-2])),
    "indptr too long": lambda: faulty(whole("indptr", lambda a: np.append(a, a[-1]))),
    "indptr empty": lambda: faulty(whole("indptr", lambda a: a[:0])),
    "indptr of floats": lambda: faulty(whole("indptr", lambda a: a.astype(float))),
    "no values and bounds of 10**9": lambda: faulty(no_values),
    "fewer values than indices": lambda: faulty(whole("data", lambda a: a[:-3])),
    "no values": lambda: faulty(whole("data", lambda a: a[:0])),
    "values in two dimensions": lambda: faulty(whole("data", lambda a: a[:, None])),
    "more rows than bounds": lambda: faulty(lambda X: setattr(X, "_shape", (N + 5, D))),
    "fewer columns than indices": lambda: faulty(lambda X: setattr(X, "_shape", (N, 3))),
    "columns: index above": lambda: faulty(put("indices", 5, 10**8), sp.csc_array(DENSE)),
    "columns: indptr falls": lambda: faulty(put("indptr", 4, 0), sp.csc_array(DENSE)),
    "coordinates: row above": lambda: coordinates(10**6, 0),
    "coordinates: column below": lambda: coordinates(0, -3),
    "blocks": of_blocks,
    "blocks of no rows": of_no_rows,
    "lists": of_lists,
}  # fmt: skip

SCALED = adiabat.IncrementalPipeline(
    adiabat.SVC(), scaler=adiabat.StandardScaler(with_mean=False), mode="held"
)
MACHINES = {
    "svc": adiabat.SVC(gamma=0.1),
    "svc linear": adiabat.SVC(kernel="linear"),
    "svc laplacian": adiabat.SVC(kernel="laplacian", gamma=0.1),
    "svr": adiabat.SVR(gamma=0.1),
    "one class": adiabat.OneClassSVM(gamma=0.1),
    "svdd": adiabat.SVDD(gamma=0.1),
    "lssvc": adiabat.LSSVC(),
    "lssvr": adiabat.LSSVR(),
    "kernel lssvc": adiabat.KernelLSSVC(gamma=0.1),
    "kernel lssvr": adiabat.KernelLSSVR(gamma=0.1),
    "pipeline": SCALED,
}


def fitted(name):
    from sklearn.base import clone

    model = clone(MACHINES[name])
    return model.fit(sound(), Y)


@pytest.mark.parametrize("case", CASES)
def test_the_check_alone_refuses_what_is_not_sound(case):
    """Nothing reads the entries here, so a check left out is seen and does no harm."""
    with pytest.raises(ValueError, match=r"^X_val is a sparse matrix that is not sound"):
        require_csr(CASES[case](), "X_val")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", MACHINES)
def test_no_estimator_learns_or_decides_on_what_is_not_sound(name, case):
    from sklearn.base import clone

    with pytest.raises(ValueError, match=r"^X is a sparse matrix that is not sound"):
        clone(MACHINES[name]).fit(CASES[case](), Y)
    model = fitted(name)
    before = model.predict(DENSE).tolist()
    keeps = hasattr(model, "ids_")
    new = list(range(100, 100 + N))
    for verb in (
        lambda X: model.predict(X),
        lambda X: model.partial_fit(X, Y, ids=new) if keeps else model.partial_fit(X, Y),
        lambda X: model.revise(model.ids_, X=X) if keeps else model.forget(X, Y),
    ):
        with pytest.raises(ValueError, match=r"^X is a sparse matrix that is not sound"):
            verb(CASES[case]())
    assert model.predict(DENSE).tolist() == before


@pytest.mark.parametrize("case", CASES)
def test_no_other_entry_takes_what_is_not_sound(case, tmp_path):
    svc, pipeline = fitted("svc"), fitted("pipeline")
    scaler = adiabat.StandardScaler(with_mean=False).fit(sound())
    store = adiabat.create_store(tmp_path / "m", label="y", gamma=0.1)
    for entry in (
        lambda X: svc.update(X, Y, ids=range(100, 100 + N)),
        lambda X: svc.preview(X=X, y=Y, at=DENSE),
        lambda X: svc.preview(remove=[3], at=X),
        lambda X: svc.influence(X, Y),
        lambda X: adiabat.cross_validate(svc, X, Y),
        lambda X: adiabat.cross_validate(pipeline, X, Y),
        lambda X: adiabat.cross_validate(fitted("kernel lssvc"), X, Y),
        lambda X: adiabat.cross_validate(fitted("lssvc"), X, Y),
        lambda X: ActiveLearner(svc, X),
        lambda X: pipeline.preview(remove=[3], at=X),
        lambda X: scaler.transform(X),
        lambda X: scaler.partial_fit(X),
        lambda X: scaler.inverse_transform(X),
        lambda X: adiabat.StandardScaler(with_mean=False).fit(X),
        lambda X: Polynomial().fit(X),
        lambda X: RandomFourier(5).fit(sound()).transform(X),
        lambda X: store.learn(X, Y, ids=range(N)),
    ):
        refused = "is a sparse matrix that is not sound|X_val has (45|-1) rows"  # counted before
        with pytest.raises(ValueError, match=refused):
            entry(CASES[case]())
    assert len(store) == 0


def test_a_function_that_returns_what_is_not_sound_is_refused():
    def kernel(A, B):
        K = sp.csr_array(np.asarray(A @ B.T))
        K.indices[0] = 10**8
        return K

    with pytest.raises(ValueError, match="returned is a sparse matrix that is not sound"):
        adiabat.SVC(kernel=kernel).fit(DENSE, Y)
    with pytest.raises(ValueError, match="returned complex numbers"):
        adiabat.SVC(kernel=lambda A, B: (A @ B.T).astype(complex)).fit(DENSE, Y)


@pytest.mark.parametrize(
    "returned",
    [
        lambda A, B: (A @ B.T)[:-1],
        lambda A, B: (A @ B.T).ravel(),
        lambda A, B: np.full((len(A), len(B)), np.nan),
        lambda A, B: "text",
        lambda A, B: None,
        lambda A, B: [*(A @ B.T).astype(object), None],
    ],
)
def test_a_function_that_returns_no_block_of_numbers_is_refused(returned):
    with pytest.raises((ValueError, TypeError)):
        adiabat.SVC(kernel=returned).fit(DENSE, Y)


@pytest.mark.parametrize("other", [(D, N), (N * D,), (1, N, D), (N, D, 1), (N - 1, D), ()])
def test_a_block_of_another_shape_is_refused_by_name(other):
    """As many numbers as wanted are not enough: each must stand for its pair of rows."""
    with pytest.raises(ValueError, match=r"^kernel returned shape .* must return shape \(40, 12\)"):
        dense_values(np.ones(other), (N, D), "kernel")
    with pytest.raises(ValueError, match=r"^kernel=.* returned shape .* must return shape"):
        adiabat.SVC(kernel=lambda A, B: (A @ B.T).ravel()).fit(DENSE, Y)


def test_what_is_sound_passes_in_every_format():
    unused = sound()
    unused.data = np.append(unused.data, [7.0, 7.0])
    unused.indices = np.append(unused.indices, [10**9, -1])  # beyond the last row: never read
    for X in (unused, *(sound().asformat(name) for name in "bsr coo csc csr dia dok lil".split())):
        assert np.array_equal(require_csr(X).toarray(), DENSE)
    wide = sound()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert np.array_equal(require_csr(wide).toarray(), DENSE)
    assert np.array_equal(dense_values(wide, (N, D), "it"), DENSE)
    model = adiabat.SVC(gamma=0.1).fit(unused, Y)
    assert np.allclose(model.decision_function(DENSE), adiabat.SVC(gamma=0.1).fit(DENSE, Y)
                       .decision_function(DENSE), atol=1e-8)  # fmt: skip


@pytest.mark.parametrize("shape", [(N,), (N, D, 1), (N, -1), (N, 2**31), (N, True), (N, 3.0), "ab"])
def test_parts_of_a_file_need_a_shape_of_a_matrix(shape):
    X = sound()
    with pytest.raises(ValueError, match="which no matrix has"):
        csr_from_parts(X.data, X.indices, X.indptr, shape, "X")


def test_more_features_than_memory_holds_are_refused_by_name():
    X = sp.csr_array((np.ones(4), [0, 1, 2, 2**31 - 2], [0, 1, 2, 3, 4]), shape=(4, 2**31 - 1))
    with pytest.raises(ValueError, match=r"^X, sparse rows of 2147483647 features, would take"):
        adiabat.SVC().fit(X, [0, 1, 0, 1])


def test_what_is_allowed_may_be_taken_and_not_a_byte_more():
    require_memory(1000, "a matrix", 1000)
    with pytest.raises(ValueError, match=r"^a matrix would take .* GiB are allowed"):
        require_memory(1001, "a matrix", 1000)
    with pytest.raises(ValueError, match=r"^X, sparse rows of 1000000 features, would take"):
        require_width(10**6, limit=10**6)


def test_what_a_function_hands_out_is_copied():
    kept = np.ones((2, 3))
    block = dense_values(kept, (2, 3), "kernel")
    block[:] = 7.0
    assert (kept == 1.0).all()
    kept[:] = 5.0
    assert (block == 7.0).all()
