# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline on a table with categories and gaps is the refitted one after every change."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.compose
import sklearn.impute
import sklearn.preprocessing
from sklearn.compose import make_column_selector
from sklearn.pipeline import make_pipeline

import adiabat
from adiabat import (
    SVC,
    SVR,
    ColumnTransformer,
    IncrementalPipeline,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)

RNG = np.random.default_rng(7)
N = 60
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(20, 80, N).astype(float),
        "income": np.exp(RNG.normal(10, 1, N)),
        "city": RNG.choice(["Bern", "Chur", "Genf"], N),
        "visits": RNG.integers(0, 4, N),
    },
    index=[f"P{i}" for i in range(N)],
)
TABLE["city"] = TABLE["city"].astype(object)
TABLE.loc[TABLE.index[::7], "age"] = np.nan
TABLE.loc[["P3", "P44"], "city"] = "Olten"
Y = pd.Series((TABLE["income"] > 2e4).to_numpy().astype(int), index=TABLE.index)
NUMBERS, WORDS = ["age", "income"], ["city", "visits"]


def ours() -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("words", OneHotEncoder(), WORDS)])


def without_chains() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("age", SimpleImputer(), ["age"]),
            ("income", RobustScaler(), ["income"]),
            ("words", OneHotEncoder(drop="first"), make_column_selector(dtype_include=object)),
        ],
        remainder=MinMaxScaler(),
    )


def theirs(name: str) -> Any:
    impute, pre = sklearn.impute.SimpleImputer, sklearn.preprocessing
    if name == "ours":
        parts = [
            ("numbers", make_pipeline(impute(strategy="median"), pre.StandardScaler()), NUMBERS),
            ("words", pre.OneHotEncoder(), WORDS),
        ]
        return sklearn.compose.ColumnTransformer(parts)
    parts = [
        ("age", impute(), ["age"]),
        ("income", pre.RobustScaler(), ["income"]),
        ("words", pre.OneHotEncoder(drop="first"), ["city"]),
    ]
    return sklearn.compose.ColumnTransformer(parts, remainder=pre.MinMaxScaler())


MAKES = {"ours": ours, "without chains": without_chains}


def assert_refitted(model: Any, name: str, table: pd.DataFrame, y: pd.Series) -> None:
    """Equal to a machine of its own on what scikit-learn's transformers make of the rows."""
    assert sorted(model.ids_) == sorted(table.index)
    table, y = table.loc[list(model.ids_)], y.loc[list(model.ids_)]
    transformer = theirs(name).fit(table)
    rows = transformer.transform(table)
    machine = SVC(C=4.0).fit(rows, y.to_numpy())
    expected = machine.decision_function(rows)
    np.testing.assert_allclose(model.decision_function(table), expected, rtol=0, atol=1e-8)
    assert model.estimator_.n_features_in_ == rows.shape[1]
    assert model.certificate().ok and not model.certificate().held_fixed


@pytest.mark.parametrize("name", MAKES)
def test_after_every_verb_it_is_the_refitted_pipeline(name: str, tmp_path: Path) -> None:
    table, y = TABLE.copy(), Y.copy()
    model = IncrementalPipeline(SVC(C=4.0), MAKES[name]())
    model.fit(table[:40], y[:40])
    assert_refitted(model, name, table[:40], y[:40])
    model.partial_fit(table[40:50], y[40:50])  # Olten's second
    model.forget(["P3", "P44"])  # and its last: the category goes
    assert_refitted(model, name, table[:50].drop(["P3", "P44"]), y[:50].drop(["P3", "P44"]))
    table.loc["P5", ["age", "city"]] = [np.nan, "Davos"]  # one that was never there
    model.revise(["P5", "P6"], X=table.loc[["P6", "P5"]])
    assert_refitted(model, name, table[:50].drop(["P3", "P44"]), y[:50].drop(["P3", "P44"]))
    model.update(table[50:], y[50:], remove=["P0", "P1"])
    gone = ["P0", "P1", "P3", "P44"]
    assert_refitted(model, name, table.drop(gone), y.drop(gone))
    twins = [pickle.loads(pickle.dumps(model))]
    if name == "ours":
        model.save(tmp_path / "model")
        twins.append(adiabat.load(tmp_path / "model"))
    for twin in twins:
        twin.forget(["P2"])
        assert_refitted(twin, name, table.drop([*gone, "P2"]), y.drop([*gone, "P2"]))


def test_held_transformers_stay_until_refresh_also_in_a_file(tmp_path: Path) -> None:
    transformer = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), ["city"])], remainder=SimpleImputer()
    )
    held = IncrementalPipeline(SVC(), transformer, mode="held").fit(TABLE, Y)
    held.forget(["P3", "P44"])
    assert "Olten" in held.scaler_.named_transformers_["words"].categories_[0]
    assert "scaling" in held.certificate().held_fixed
    held.save(tmp_path / "held")
    read = adiabat.load(tmp_path / "held")
    assert read.decision_function(TABLE).tolist() == held.decision_function(TABLE).tolist()
    read.refresh()
    assert "Olten" not in read.scaler_.named_transformers_["words"].categories_[0]


def test_a_left_out_row_leaves_the_imputer_too() -> None:
    table = TABLE[["age", "income"]]
    model = IncrementalPipeline(SVR(), make_pipeline(SimpleImputer(), StandardScaler()))
    model.fit(table[:12], table["income"][:12] / 1e4)
    left = model.leave_one_out().prediction[1]
    rest = np.delete(np.arange(12), 1)
    refit = IncrementalPipeline(SVR(), make_pipeline(SimpleImputer(), StandardScaler()))
    refit.fit(table.iloc[rest], table["income"].iloc[rest] / 1e4)
    assert left == pytest.approx(refit.predict(table.iloc[[1]])[0], abs=1e-8)


def test_nothing_changes_when_a_category_cannot_be_taken() -> None:
    model = IncrementalPipeline(SVC(), OneHotEncoder()).fit(TABLE[["city"]], Y)
    before = model.decision_function(TABLE[["city"]]).tolist()
    with pytest.raises(ValueError, match="unknown categories"):
        model.predict(pd.DataFrame({"city": ["Basel"]}))
    with pytest.raises(TypeError, match=r"use adiabat\.OneHotEncoder"):
        IncrementalPipeline(SVC(), sklearn.preprocessing.OneHotEncoder()).fit(TABLE[["city"]], Y)
    assert model.decision_function(TABLE[["city"]]).tolist() == before
    new = pd.DataFrame({"city": ["Basel"]}, index=["Q1"])
    assert model.partial_fit(new, [1]).predict(new).tolist() == [1]
