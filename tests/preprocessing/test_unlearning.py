# SPDX-License-Identifier: BSD-3-Clause
"""After any changes a transformer is scikit-learn's own, fitted to the rows that remain."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.compose
import sklearn.impute
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import adiabat
from adiabat import (
    ColumnTransformer,
    MinMaxScaler,
    NotLearnedError,
    OneHotEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from adiabat.preprocessing.composition import learned, require_unlearnable, same

pytestmark = pytest.mark.filterwarnings("ignore:Skipping features|invalid value|All-NaN")

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, 1e12, 1e-9, float("nan")])
WORDS = st.sampled_from(["red", "blue", "", "a b", "ä", None, float("nan")])
ROW = st.tuples(NUMBERS, NUMBERS, WORDS, st.sampled_from([1, 2, 3]))

NUMERIC: dict[str, tuple[Any, Any]] = {
    "min-max": (MinMaxScaler, {}),
    "min-max clipped": (MinMaxScaler, {"feature_range": (-2, 3), "clip": True}),
    "robust": (RobustScaler, {}),
    "robust unit": (RobustScaler, {"quantile_range": (10.0, 80.0), "unit_variance": True}),
    "mean": (SimpleImputer, {"keep_empty_features": True}),
    "mean, empty columns go": (SimpleImputer, {}),
    "median": (SimpleImputer, {"strategy": "median", "add_indicator": True}),
    "most frequent": (SimpleImputer, {"strategy": "most_frequent"}),
    "constant": (SimpleImputer, {"strategy": "constant", "fill_value": -1}),
}
CATEGORIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "first dropped": {"drop": "first"},
    "binary dropped": {"drop": "if_binary", "sparse_output": False},
    "unknown ignored": {"handle_unknown": "ignore", "dtype": np.float32},
    "rare together": {"min_frequency": 2, "handle_unknown": "infrequent_if_exist"},
}


def theirs(kind: Any, options: dict[str, Any]) -> Any:
    return kind._plain(**options)


def changes(rows: list[Any], at: list[int]) -> tuple[list[Any], list[Any], list[Any]]:
    """Rows learned at first, rows that come, and rows of either that go; one stays at least."""
    first, second, third = [*sorted(at), 0, 0, 0][:3]
    cut = max(1, first % len(rows))
    gone = sorted({second % len(rows), third % len(rows)})[: len(rows) - 1]
    return rows[:cut], rows[cut:], gone


@pytest.mark.parametrize("name", NUMERIC)
@settings(max_examples=8, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), at=st.lists(st.integers(0, 20), max_size=3))
def test_numbers_are_transformed_as_by_a_refit(name: str, rows: list[Any], at: list[int]) -> None:
    kind, options = NUMERIC[name]
    X = np.array([row[:2] for row in rows])
    first, _, gone = changes(rows, at)
    ours = kind(**options).fit(X[: len(first)])
    if len(first) < len(X):
        ours.partial_fit(X[len(first) :])
    if gone:
        ours.forget(X[gone])
    rest = np.delete(X, gone, axis=0)
    again = kind(**options).fit(rest)
    assert same(learned(ours), learned(again))
    plain = theirs(kind, options).fit(rest)
    a, b = ours.transform(X), plain.transform(X)
    np.testing.assert_allclose(
        a, b, rtol=1e-12, atol=1e-12 * max(1.0, np.nanmax(np.abs(b), initial=0))
    )
    assert ours.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", CATEGORIES)
@settings(max_examples=8, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), at=st.lists(st.integers(0, 20), max_size=3))
def test_categories_come_and_go_as_by_a_refit(name: str, rows: list[Any], at: list[int]) -> None:
    frame = pd.DataFrame([row[2:] for row in rows], columns=["word", "number"])
    frame["word"] = frame["word"].astype(object)
    first, _, gone = changes(rows, at)
    ours = OneHotEncoder(**CATEGORIES[name]).fit(frame[: len(first)])
    if len(first) < len(frame):
        ours.partial_fit(frame[len(first) :])
    if gone:
        ours.forget(frame.iloc[gone])
    rest = frame.drop(index=gone)
    plain = theirs(OneHotEncoder, CATEGORIES[name]).fit(rest)
    assert ours.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    a, b = ours.transform(rest), plain.transform(rest)
    assert type(a) is type(b) and a.dtype == b.dtype
    assert np.array_equal(*(item.toarray() if sp.issparse(item) else item for item in (a, b)))


COLUMNS = [
    ("numbers", "median", ["x", "z"]),
    ("words", "encoder", ["word"]),
    ("kinds", "encoder", ["number"]),
]


def columns_of(module: str, **options: Any) -> Any:
    ours = module == "adiabat"
    impute = SimpleImputer if ours else sklearn.impute.SimpleImputer
    encode = OneHotEncoder if ours else sklearn.preprocessing.OneHotEncoder
    make = ColumnTransformer if ours else sklearn.compose.ColumnTransformer
    parts = [
        (name, impute(strategy="median") if what == "median" else encode(), columns)
        for name, what, columns in COLUMNS
    ]
    return make(parts, **options)


@settings(max_examples=8, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), at=st.lists(st.integers(0, 20), max_size=3))
def test_columns_are_transformed_as_by_a_refit(rows: list[Any], at: list[int]) -> None:
    frame = pd.DataFrame(rows, columns=["x", "z", "word", "number"])
    frame["word"] = frame["word"].astype(object)
    first, _, gone = changes(rows, at)
    ours = columns_of("adiabat", sparse_threshold=0).fit(frame[: len(first)])
    if len(first) < len(frame):
        ours.partial_fit(frame[len(first) :])
    if gone:
        ours.forget(frame.iloc[gone])
    rest = frame.drop(index=gone)
    plain = columns_of("sklearn", sparse_threshold=0).fit(rest)
    np.testing.assert_allclose(ours.transform(rest), plain.transform(rest), rtol=1e-12)
    assert ours.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    assert {n: s for n, s in ours.output_indices_.items() if s != slice(0, 0)} == {
        n: s for n, s in plain.output_indices_.items() if s != slice(0, 0)
    }


ROWS = [["a", 1.0], ["b", 2.0], ["b", 7.0]]


def test_a_value_that_was_not_learned_is_refused_and_nothing_changes() -> None:
    encoder = OneHotEncoder(sparse_output=False).fit(ROWS)
    before = pickle.dumps(encoder)
    with pytest.raises(NotLearnedError, match="column 1 has a value more often"):
        encoder.forget([["b", 1.0], ["a", 1.0]])
    with pytest.raises(NotLearnedError):
        encoder.forget([["c", 1.0]])
    assert pickle.dumps(encoder) == before
    with pytest.raises(TypeError, match=r"X is sparse.*X\.toarray"):
        MinMaxScaler().fit(sp.csr_array(np.eye(3)))


@pytest.mark.parametrize("kind", [MinMaxScaler, RobustScaler, SimpleImputer, OneHotEncoder])
def test_without_a_row_it_is_as_before_its_first(kind: Any) -> None:
    transformer = kind().fit([[1.0], [2.0]]).forget([[2.0], [1.0]])
    with pytest.raises(NotFittedError):
        transformer.transform([[1.0]])
    with pytest.raises(NotFittedError, match="nothing to forget"):
        transformer.forget([[1.0]])
    assert transformer.partial_fit([[1.0, 2.0]]).n_features_in_ == 2


def test_columns_without_a_row_start_again() -> None:
    columns = ColumnTransformer([("a", OneHotEncoder(), [0]), ("b", StandardScaler(), [1])])
    columns.fit(ROWS).forget(ROWS)
    with pytest.raises(NotFittedError):
        columns.transform(ROWS)
    assert columns.partial_fit(ROWS).transform(ROWS).shape == (3, 3)


def test_weights_go_to_the_parts_that_take_them() -> None:
    columns = ColumnTransformer(
        [("a", OneHotEncoder(), [0]), ("b", StandardScaler(), [1]), ("c", "drop", [1])]
    )
    columns.fit(ROWS[:2], sample_weight=[1.0, 3.0]).partial_fit(ROWS[2:], sample_weight=[0.5])
    columns.forget(ROWS[:1], sample_weight=[1.0])
    plain = sklearn.preprocessing.StandardScaler()
    plain.fit([[2.0], [7.0]], sample_weight=[3.0, 0.5])
    np.testing.assert_allclose(columns.named_transformers_["b"].mean_, plain.mean_)
    chained = ColumnTransformer([("b", make_pipeline(SimpleImputer(), StandardScaler()), [1])])
    chained.fit(ROWS[1:], sample_weight=[3.0, 0.5])
    np.testing.assert_allclose(chained.named_transformers_["b"][-1].mean_, plain.mean_)
    with pytest.raises(TypeError, match="IncrementalPipeline"):
        chained.forget(ROWS[1:2], sample_weight=[3.0])


@pytest.mark.parametrize(
    ("transformer", "sentence"),
    [
        (sklearn.preprocessing.OneHotEncoder(), "use adiabat.OneHotEncoder"),
        (sklearn.compose.ColumnTransformer([]), "use adiabat.ColumnTransformer"),
        (sklearn.preprocessing.QuantileTransformer(), "one of adiabat's"),
        (make_pipeline(sklearn.impute.SimpleImputer()), "simpleimputer=SimpleImputer"),
        (ColumnTransformer([("q", sklearn.preprocessing.KBinsDiscretizer(), [0])]), "q=KBins"),
    ],
)
def test_what_cannot_unlearn_is_refused_by_name(transformer: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        require_unlearnable(transformer)


@pytest.mark.parametrize(
    "transformer",
    [
        sklearn.preprocessing.Normalizer(),
        sklearn.preprocessing.Binarizer(),
        sklearn.preprocessing.FunctionTransformer(np.log1p),
        sklearn.preprocessing.PolynomialFeatures(),
        make_pipeline(SimpleImputer(), sklearn.preprocessing.Normalizer()),
    ],
)
def test_what_holds_no_rows_passes(transformer: Any) -> None:
    require_unlearnable(transformer)


def test_names_are_public() -> None:
    for name in ("ColumnTransformer", "MinMaxScaler", "OneHotEncoder", "RobustScaler"):
        assert name in adiabat.__all__


@pytest.mark.filterwarnings("default")
@parametrize_with_checks([SimpleImputer(), OneHotEncoder()])
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
