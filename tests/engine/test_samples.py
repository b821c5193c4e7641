# SPDX-License-Identifier: BSD-3-Clause
"""Samples come, move and go, and their kernel columns with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from adiabat.engine import samples as engine_samples
from adiabat.engine.samples import Samples
from adiabat.errors import IndefiniteKernelError
from adiabat.kernels import Kernel, make_kernel

MANY = 256
FORMS = ["dense", "zeros", "csr", "precomputed"]
POINTS = np.random.default_rng(0).standard_normal((900, 3))
# One feature of three at most is not zero: dense rows that are kept by their entries as well.
SPARSE_POINTS = POINTS * np.eye(4, 3)[np.random.default_rng(1).integers(0, 4, 900)]


def kernel(name: str = "rbf") -> Kernel:
    return make_kernel(name, gamma=0.4, degree=3, coef0=0.0, X=POINTS[:10])


EXACT = kernel().block(POINTS, POINTS)
SPARSE_EXACT = kernel().block(SPARSE_POINTS, SPARSE_POINTS)


class Held:
    """Samples in one of the forms, beside the list of who is where."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.points = SPARSE_POINTS if form == "zeros" else POINTS
        self.exact = SPARSE_EXACT if form == "zeros" else EXACT
        self.samples = Samples(kernel("precomputed" if form == "precomputed" else "rbf"))
        self.who = np.empty(0, dtype=np.int64)
        self.came = 0

    def rows(self, new: npt.NDArray[np.int64]) -> Any:
        if self.form == "precomputed":
            return self.exact[np.ix_(new, np.concatenate([self.who, new]))]
        return sp.csr_array(self.points[new]) if self.form == "csr" else self.points[new]

    def add(self, k: int) -> None:
        new = np.arange(self.came, self.came + k)
        positions = self.samples.add(self.rows(new))
        np.testing.assert_array_equal(positions, np.arange(len(self.who), len(self.who) + k))
        self.came += k
        self.who = np.concatenate([self.who, new])

    def remove(self, positions: npt.NDArray[np.int64]) -> None:
        left = len(self.who) - len(positions)
        tail, hole = self.samples.remove(positions)
        self.who[hole] = self.who[tail]
        self.who = self.who[:left]

    def check(self) -> None:
        samples, n = self.samples, len(self.who)
        assert samples.n == samples.gram.n == n == len(samples.diagonal)
        K = self.exact[np.ix_(self.who, self.who)]
        everyone = np.arange(n)
        np.testing.assert_array_equal(samples.block(everyone, everyone), K)
        np.testing.assert_array_equal(samples.diagonal, K.diagonal())
        owned = np.flatnonzero(samples.gram.slot_of[:n] >= 0)
        np.testing.assert_array_equal(samples.between(everyone, owned), K[:, owned])
        data = samples.data
        if n and self.form != "precomputed":
            dense = data.toarray() if sp.issparse(data) else data
            np.testing.assert_array_equal(dense, self.points[self.who])


@pytest.mark.parametrize("form", FORMS)
@given(
    steps=st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.6, 1.0]), st.integers(1, 40)),
        max_size=12,
    )
)
@settings(max_examples=25)
def test_samples_are_as_their_mirror(form: str, steps: list[tuple[bool, float, int]]) -> None:
    held = Held(form)
    held.add(5)
    for comes, part, number in steps:
        if comes:
            held.add(number)
        else:
            rng = np.random.default_rng(number)
            held.remove(rng.permutation(len(held.who))[: round(part * len(held.who))])
        held.check()
        if len(held.who):  # columns that nobody has yet
            some = np.random.default_rng(number).integers(0, len(held.who), 6)
            exact = held.exact[np.ix_(held.who, held.who[some])]
            found = held.samples.between(np.arange(len(held.who)), some)
            np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("form", FORMS)
def test_samples_get_their_columns_when_they_are_asked_for(form: str) -> None:
    held = Held(form)
    held.add(20)
    held.samples.slots(np.arange(20))
    assert np.all(held.samples.gram.slot_of[:20] >= 0)
    held.add(MANY + 40)
    assert np.all(held.samples.gram.slot_of[20 : held.samples.n] < 0)
    held.check()
    held.samples.slots(np.array([300, 25, 25, 7]))
    assert held.samples.gram.slot_of[[300, 25]].min() >= 0
    held.check()


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_filled_in_blocks(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_samples, "BLOCK_ENTRIES", 700)
    held = Held(form)
    held.add(MANY + 10)
    held.samples.slots(np.arange(0, held.samples.n, 3))
    held.add(MANY + 10)
    held.check()


@pytest.mark.parametrize("form", FORMS)
def test_among_asks_for_no_columns(form: str) -> None:
    held = Held(form)
    held.add(MANY + 10)
    some = np.array([200, 3, 77])
    np.testing.assert_array_equal(held.samples.among(some), held.exact[np.ix_(some, some)])
    assert np.all(held.samples.gram.slot_of[: held.samples.n] < 0)
    held.samples.slots(some)
    np.testing.assert_array_equal(held.samples.among(some), held.exact[np.ix_(some, some)])
    more = np.array([5, 200, 8, 3, 8, 77])
    exact = held.exact[np.ix_(more, more)]
    np.testing.assert_array_equal(held.samples.among(more), exact)
    assert np.all(held.samples.gram.slot_of[[5, 8]] < 0)
    assert held.samples.among(np.empty(0, dtype=np.int64)).shape == (0, 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [7, MANY + 7])
def test_truncate_takes_new_samples_back(form: str, k: int) -> None:
    held = Held(form)
    held.add(30)
    held.samples.slots(np.arange(0, 30, 2))
    slots = held.samples.gram.slot_of[:30].copy()
    held.samples.add(held.rows(np.arange(500, 500 + k)))
    held.samples.truncate(30)
    held.check()
    np.testing.assert_array_equal(held.samples.gram.slot_of[:30], slots)
    held.add(k)
    held.check()


def buffers(samples: Samples) -> list[npt.NDArray[np.float64]]:
    """What the rows are kept in, with the room to spare."""
    store = samples._held
    kept = [getattr(store, name) for name in ("_rows", "_values") if hasattr(store, name)]
    return kept if store.nonzeros is None else [*kept, store.nonzeros._value]


@pytest.mark.parametrize("form", FORMS)
def test_the_removed_leave_nothing_behind(form: str) -> None:
    """No feature and no kernel value of theirs, in the room to spare as well."""
    held = Held(form)
    held.add(120)
    gone = np.arange(3, 120, 4)
    names = held.who[gone].copy()
    held.remove(gone)
    values = np.concatenate([array.ravel() for array in buffers(held.samples)])
    traces = held.exact[names] if form == "precomputed" else held.points[names]
    traces = traces[(traces != 0.0) & (traces != 1.0)]  # the diagonal of everyone
    assert np.intersect1d(values, traces).size == 0
    held.check()


@pytest.mark.parametrize("form", FORMS)
def test_room_to_spare_holds_nothing_that_memory_held_before(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, written = Held(form), 12345.678
    monkeypatch.setattr(np, "empty", lambda shape, **kind: np.full(shape, written, **kind))
    held.add(120)
    for array in [*buffers(held.samples), *held.samples.gram.panels]:
        assert not np.any(array == written)


@pytest.mark.parametrize("csr", [False, True])
def test_a_row_and_its_double_are_at_no_distance(csr: bool) -> None:
    """Rows kept by their entries: kernel values are one to the last bit, for any gamma."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 200)) * (rng.random((60, 200)) < 0.2)
    samples = Samples(make_kernel("rbf", gamma=1e12, degree=3, coef0=0.0, X=rows))
    parts = [*np.split(np.arange(60), [30]), np.arange(40), [0], np.arange(5, 12), np.arange(60)]
    for part in parts:
        samples.add(sp.csr_array(rows[part]) if csr else rows[part])
    who = np.concatenate(parts)
    everyone = np.arange(samples.n)
    same = who[:, None] == who
    np.testing.assert_array_equal(samples.between(everyone, everyone), same.astype(float))
    tail, hole = samples.remove(np.arange(3, 60, 5))
    who[hole] = who[tail]
    left = np.arange(samples.n)
    same = who[left, None] == who[left]
    np.testing.assert_array_equal(samples.between(left, left), same.astype(float))


@pytest.mark.parametrize("name", ["chi2", "laplacian", "linear", "poly", "rbf"])
@pytest.mark.parametrize("form", ["dense", "zeros", "csr", "far"])
@pytest.mark.parametrize("features", [5, 40, 300])
def test_columns_have_the_bits_of_the_kernel(name: str, form: str, features: int) -> None:
    """In training as in prediction, for samples one by one, in small batches and in large ones."""
    rng = np.random.default_rng(features)
    rows = rng.random((MANY + 60, features))
    if form in ("zeros", "csr"):
        rows *= rng.random(rows.shape) < 0.2
    if form == "far":
        rows += 1e4
    form_of = make_kernel(
        name, gamma=1.0 / features, degree=3, coef0=0.5, X=rows, shift_free=form == "far"
    )
    samples = Samples(form_of)
    for part in np.split(np.arange(len(rows)), [1, 3, 40, 45]):
        samples.add(sp.csr_array(rows[part]) if form == "csr" else rows[part])
    everyone = np.arange(samples.n)
    expected = form_of.block(rows, rows)
    np.testing.assert_array_equal(samples.between(everyone, everyone), expected)
    np.testing.assert_array_equal(samples.block(everyone[:7], everyone), expected[:7])
    np.testing.assert_array_equal(samples.diagonal, expected.diagonal())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("part", [200.0, 0.37])
def test_an_entry_of_a_csr_matrix_given_in_parts_is_their_sum(kernel: str, part: float) -> None:
    """In products and in norms; also where each part is a small whole number and the sum is not."""
    twice = sp.csr_array((np.full(4, part), [0, 0, 1, 2], [0, 3, 4]), shape=(2, 4))
    form = make_kernel(kernel, gamma=1e-5, degree=3, coef0=0.0, X=twice)
    samples = Samples(form)
    samples.add(twice)
    both = np.arange(2)
    values = samples.between(both, both)
    np.testing.assert_allclose(values, form.block(twice.toarray(), twice.toarray()), rtol=1e-14)
    assert twice.nnz == 4, "the rows given are not written to"


def test_a_negative_diagonal_is_refused() -> None:
    samples = Samples(
        make_kernel(lambda A, B: -(A @ B.T), gamma=1.0, degree=3, coef0=0.0, X=POINTS)
    )
    with pytest.raises(IndefiniteKernelError, match=r"k\(x, x\) ="):
        samples.add(POINTS[:5])
    samples.truncate(0)
    assert samples.n == samples.gram.n == len(samples.diagonal) == 0


def test_distances_are_no_kernel() -> None:
    K = POINTS[:50] @ POINTS[:50].T
    samples = Samples(kernel("precomputed"))
    with pytest.raises(IndefiniteKernelError, match="precomputed"):
        samples.add(K.diagonal()[:, None] + K.diagonal() - 2.0 * K)


@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("d", [2, 10, 50])
def test_rounding_to_single_precision_is_no_fault_of_a_kernel(n: int, d: int) -> None:
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal((n, d))
        for K in (X @ X.T, (1.0 + X @ X.T) ** 2, np.exp(-0.2 * cdist(X, X, "sqeuclidean"))):
            samples = Samples(kernel("precomputed"))
            samples.add(K.astype(np.float32))
            assert samples.n == n


@pytest.mark.parametrize("first, second", [("dense", "csr"), ("csr", "dense")])
def test_dense_and_sparse_rows_may_follow_each_other(first: str, second: str) -> None:
    held = Held(first)
    held.add(10)
    held.form = second
    held.add(10)
    held.check()
    assert sp.issparse(held.samples.data) == (first == "csr")


def test_the_rows_given_are_not_written_to_and_not_kept() -> None:
    X = POINTS[:12].copy()
    samples = Samples(kernel())
    samples.add(X)
    np.testing.assert_array_equal(X, POINTS[:12])
    X[:] = 0.0
    np.testing.assert_array_equal(samples.data, POINTS[:12])
    samples.remove(np.array([0]))
    assert not X.any()
