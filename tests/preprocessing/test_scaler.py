# SPDX-License-Identifier: BSD-3-Clause
"""The scaler is to the last bit that of the rows that remain, and scikit-learn's up to rounding."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler as Plain
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from adiabat import StandardScaler

from faults import interrupt_at_line

LEARNED = ("mean_", "var_", "scale_", "n_samples_seen_")


def state(scaler: Any) -> list[Any]:
    """What was learned, to the last bit."""
    return [np.asarray(getattr(scaler, name)).tolist() for name in LEARNED]


def truth(X: Any, w: Any) -> tuple[list[float], list[float]]:
    """Mean and variance in rational numbers, rounded once."""
    means, variances = [], []
    weights = [Fraction(value) for value in w]
    for column in X.T:
        values = [Fraction(value) for value in column]
        mean = sum(a * b for a, b in zip(weights, values, strict=True)) / sum(weights)
        spread = sum(a * (b - mean) ** 2 for a, b in zip(weights, values, strict=True))
        means.append(float(mean))
        variances.append(float(spread / sum(weights)))
    return means, variances


def assert_like_plain(scaler: StandardScaler, plain: Plain, rtol: float = 1e-12) -> None:
    if plain.with_mean or plain.with_std:  # else theirs leaves weights out of account
        np.testing.assert_allclose(scaler.n_samples_seen_, plain.n_samples_seen_, rtol=1e-14)
    for name in ("mean_", "var_", "scale_"):
        ours, theirs = getattr(scaler, name), getattr(plain, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            # a mean near zero is a difference of values of the size of the deviation
            atol = rtol * plain.scale_.max() if name == "mean_" and plain.with_std else 0.0
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=name)


@pytest.mark.rotates(3)
@pytest.mark.parametrize(("weighted", "operations"), [(False, 2_000), (True, 4_000)])
def test_thousands_of_operations_leave_the_scaler_of_the_rows_that_remain(
    weighted: bool, operations: int
) -> None:
    rng = np.random.default_rng(0)
    pool = rng.standard_normal((400, 4)) * [1.0, 1e-3, 50.0, 1.0] + [0.0, 3.0, -200.0, 1e3]
    weights = rng.random(400) * 3.0 if weighted else np.ones(400)
    held = np.zeros(400, dtype=bool)
    held[:50] = True

    def given(rows: Any) -> dict[str, Any]:
        return {"X": pool[rows], "sample_weight": weights[rows] if weighted else None}

    scaler = StandardScaler().fit(**given(np.flatnonzero(held)))
    for step in range(operations):
        comes = held.sum() < 20 or (held.sum() < 380 and rng.random() < 0.5)
        rows = rng.choice(np.flatnonzero(~held if comes else held), rng.integers(1, 4), False)
        (scaler.partial_fit if comes else scaler.forget)(**given(rows))
        held[rows] = comes
        if step % 1000 == 999:
            rest = given(np.flatnonzero(held))
            assert state(scaler) == state(StandardScaler().fit(**rest))
            assert_like_plain(scaler, Plain().fit(**rest))


@pytest.mark.parametrize(
    ("offset", "outlier"),
    [(1e9, None), (0.0, 1e12), (1e9, -1e12), (-1e6, 1e150), (0.0, 5e-324), (1e15, 1e15 + 7.0)],
)
def test_hostile_rows_leave_no_trace(offset: float, outlier: float | None) -> None:
    rng = np.random.default_rng(1)
    X = offset + rng.standard_normal((60, 3))
    w = rng.random(60) + 0.1
    scaler = StandardScaler().fit(X, sample_weight=w)
    if outlier is not None:
        strange = np.full((2, 3), outlier) * [[1.0], [0.3]]
        scaler.partial_fit(strange, sample_weight=[1e-3, 7.7])
        scaler.forget(strange, sample_weight=[1e-3, 7.7])
    scaler.partial_fit(X[:30] * 3.7, sample_weight=w[:30])
    scaler.forget(X[:30], sample_weight=w[:30])
    scaler.forget(X[:30] * 3.7, sample_weight=w[:30])
    mean, variance = truth(X[30:], w[30:])
    assert scaler.mean_.tolist() == mean
    assert scaler.var_.tolist() == variance
    assert state(scaler) == state(StandardScaler().fit(X[30:], sample_weight=w[30:]))


def test_the_whole_range_of_float64_is_exact() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 3)) * 10.0 ** rng.integers(-320, 150, (40, 3))
    w = rng.random(40) * 10.0 ** rng.integers(-300, 3, 40)
    scaler = StandardScaler().fit(X, sample_weight=w)
    assert (scaler.mean_.tolist(), scaler.var_.tolist()) == truth(X, w)


@pytest.mark.parametrize("with_mean", [False, True])
@pytest.mark.parametrize("with_std", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "missing", "float32", "weights"])
def test_attributes_and_rows_are_those_of_scikit_learn(
    kind: str, with_std: bool, with_mean: bool
) -> None:
    rng = np.random.default_rng(3)
    X: Any = rng.standard_normal((50, 4)) * (rng.random((50, 4)) < 0.6)
    extra, w = rng.standard_normal((7, 4)), None
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "sparse":
        X, extra = sp.csr_array(X), sp.csr_array(extra)
    elif kind == "float32":
        X, extra = X.astype(np.float32), extra.astype(np.float32)
    elif kind == "weights":
        w = rng.integers(0, 4, 50).astype(float)
    if kind == "sparse" and with_mean:
        with pytest.raises(ValueError, match=r"sparse.*with_mean=False"):
            StandardScaler().fit(X)
        return
    options = {"with_mean": with_mean, "with_std": with_std}
    scaler = StandardScaler(**options).fit(X, sample_weight=w)
    scaler.partial_fit(extra).forget(extra)
    plain = Plain(**options).fit(X, sample_weight=w)
    assert_like_plain(scaler, plain)
    assert np.shape(scaler.n_samples_seen_) == np.shape(plain.n_samples_seen_)
    ours, theirs = scaler.transform(X), plain.transform(X)
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype
    back = scaler.inverse_transform(ours)
    if kind == "sparse":
        ours, theirs, back, X = (A.toarray() for A in (ours, theirs, back, X))
    tolerance = 1e-5 if kind == "float32" else 1e-12
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(back, X, rtol=tolerance, atol=tolerance)


def test_constant_features_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(4)
    rows = 200
    X = np.column_stack([
        np.full(rows, 0.1), np.zeros(rows), np.full(rows, 1e9), 1.0 + 1e-15 * rng.random(rows),
        1e9 + rng.standard_normal(rows), 1e-9 * rng.standard_normal(rows),
    ])  # fmt: skip
    scaler, plain = StandardScaler().fit(X), Plain().fit(X)
    np.testing.assert_allclose(scaler.scale_, plain.scale_, rtol=1e-10)
    assert scaler.scale_[:4].tolist() == [1.0] * 4
    assert scaler.var_[:3].tolist() == [0.0] * 3  # exactly, where theirs is a rounding


def test_a_weight_of_two_is_two_rows_and_zero_is_none() -> None:
    X = np.random.default_rng(5).standard_normal((9, 2))
    w = np.array([2, 0, 1, 1, 3, 1, 0, 1, 1])
    one = StandardScaler().fit(X, sample_weight=w)
    assert state(one) == state(StandardScaler().fit(np.repeat(X, w, axis=0)))


def test_without_a_row_it_is_as_before_the_first() -> None:
    X = np.ones((3, 2))
    scaler = StandardScaler().fit(X).forget(X)
    with pytest.raises(NotFittedError):
        scaler.transform(X)
    with pytest.raises(NotFittedError, match="nothing to forget"):
        scaler.forget(X)
    assert scaler.partial_fit([[1.0, 2.0, 3.0]]).mean_.tolist() == [1.0, 2.0, 3.0]


def test_a_data_frame_keeps_its_names_and_a_pickle_goes_on() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 1.0]})
    scaler = StandardScaler().set_output(transform="pandas").fit(frame)
    assert scaler.transform(frame).columns.tolist() == ["a", "b"]
    twin = pickle.loads(pickle.dumps(scaler))
    assert state(twin.forget(frame[:1])) == state(scaler.forget(frame[:1]))


X3 = np.arange(12.0).reshape(6, 2) ** 1.5
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "more rows than there are": (lambda s: s.forget(np.vstack([X3, X3])), ValueError, "X has rows"),
    "a row never there": (lambda s: s.forget([[1e3, 0.0]]), ValueError, "not learned"),
    "as many others": (lambda s: s.forget(X3 + 1.0), ValueError, "feature 0"),
    "another weight": (lambda s: s.forget(X3, sample_weight=np.full(6, 2.0)), ValueError, "weight"),
    "another width": (lambda s: s.forget([[1.0]]), ValueError, "1 features"),
    "infinite": (lambda s: s.partial_fit([[np.inf, 1.0]]), ValueError, "infinity"),
    "text": (lambda s: s.partial_fit([["a", "b"]]), ValueError, "could not convert"),
    "a variance beyond float64": (lambda s: s.partial_fit([[1e300, 0.0]]), ValueError, "variance"),
    "negative weights": (lambda s: s.forget(X3, sample_weight=-np.ones(6)), ValueError, "weig"),
    "too few weights": (lambda s: s.forget(X3, sample_weight=[1.0]), ValueError, "weight"),
    "no rows": (lambda s: s.partial_fit(np.empty((0, 2))), ValueError, "0 sample"),
    "sparse": (lambda s: s.partial_fit(sp.csr_array(X3)), ValueError, "with_mean=False"),
    "no weight": (lambda s: s.fit(X3, sample_weight=np.zeros(6)), ValueError, "zero for all"),
    "a parameter": (
        lambda s: s.set_params(with_mean="yes").partial_fit(X3), InvalidParameterError, "with_mean"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_itself_and_changes_nothing(case: str) -> None:
    act, error, message = BAD[case]
    scaler = StandardScaler().fit(X3)
    before = state(scaler)
    with pytest.raises(error, match=message):
        act(scaler)
    assert state(scaler) == before
    scaler.set_params(with_mean=True)
    assert state(scaler.forget(X3[:2])) == state(StandardScaler().fit(X3[2:]))


def test_a_failed_first_fit_leaves_nothing() -> None:
    scaler = StandardScaler()
    with pytest.raises(ValueError, match="variance"):
        scaler.fit([[1e300, 1.0], [0.0, 1.0]])
    assert set(vars(scaler)) == {"copy", "with_mean", "with_std"}


@pytest.mark.rotates(3)
@pytest.mark.parametrize("verb", ["partial_fit", "forget", "fit"])
def test_an_interrupt_at_any_line_leaves_before_or_after(verb: str) -> None:
    done = StandardScaler().fit(X3)
    before = state(done)
    after = state(getattr(done, verb)(X3[:2]))
    k, seen, interrupted = 0, [], True
    while interrupted:
        k, interrupted = k + 1, False
        scaler = StandardScaler().fit(X3)
        try:
            with interrupt_at_line(k):
                getattr(scaler, verb)(X3[:2])
        except KeyboardInterrupt:
            interrupted = True
        seen.append(state(scaler))
        assert seen[-1] in (before, after) if interrupted else seen[-1] == after, f"line {k}"
    assert seen[:50] == [before] * 50


@pytest.mark.filterwarnings("default")
@parametrize_with_checks([StandardScaler(), StandardScaler(with_mean=False)])
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


def test_more_entries_than_are_added_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from adiabat.preprocessing import exact_sums

    monkeypatch.setattr(exact_sums, "MOST_ENTRIES", 7)
    weights = np.linspace(0.1, 2.0, 30)
    X = np.random.default_rng(5).normal(size=(30, 2))
    found = StandardScaler().fit(X, sample_weight=weights)
    monkeypatch.undo()
    assert state(found) == state(StandardScaler().fit(X, sample_weight=weights))


def test_scalers_of_rows_in_many_places_merge() -> None:
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(60, 2)) * [1e-5, 1e7], columns=["a", "b"])
    w = rng.random(60)
    whole = StandardScaler().fit(X, sample_weight=w)
    first = StandardScaler().fit(X[:7], sample_weight=w[:7])
    last = StandardScaler().fit(X[7:], sample_weight=w[7:])
    kept = state(last)
    assert state(first.merge(last)) == state(whole) and state(last) == kept
    assert state(first.subtract(last)) == state(StandardScaler().fit(X[:7], sample_weight=w[:7]))
    before = state(first)
    with pytest.raises(ValueError, match="other has rows that were not learned"):
        first.subtract(last)
    with pytest.raises(TypeError, match="other is a StandardScaler of sklearn"):
        first.merge(Plain().fit(X))
    with pytest.raises(NotFittedError, match="nothing to give"):
        first.merge(StandardScaler())
    with pytest.raises(ValueError, match="with_std=False of other is not with_std=True"):
        first.merge(StandardScaler(with_std=False).fit(X))
    with pytest.raises(ValueError, match="other has 1 features, this scaler 2"):
        first.merge(StandardScaler().fit(X[["a"]]))
    with pytest.raises(ValueError, match="columns of other names"):
        first.merge(StandardScaler().fit(X[["b", "a"]]))
    assert state(first) == before
    assert not first.subtract(first).__sklearn_is_fitted__()
