# SPDX-License-Identifier: BSD-3-Clause
"""Scaling, filling and encoding in front of least squares, with rows that come and go unkept."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

import adiabat
from adiabat import (
    LSSVC,
    LSSVR,
    SVC,
    ColumnTransformer,
    IncrementalPipeline,
    MinMaxScaler,
    NotLearnedError,
    OneHotEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from adiabat.feature_maps import RandomFourier

MAPS = {
    "standard": StandardScaler(),
    "standard, no mean": StandardScaler(with_mean=False),
    "standard, no deviation": StandardScaler(with_std=False),
    "least and largest": MinMaxScaler(feature_range=(-1, 2)),
    "robust": RobustScaler(),
    "filled by mean": SimpleImputer(),
    "filled by median, scaled": make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    "filled by a constant, scaled": make_pipeline(
        SimpleImputer(strategy="constant", fill_value=-1.5), StandardScaler()
    ),
    "encoded": OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
    "encoded, first dropped": OneHotEncoder(drop="first"),
    "columns": ColumnTransformer(
        [
            ("filled", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
            ("kind", OneHotEncoder(handle_unknown="ignore"), [2]),
        ],
        remainder="passthrough",
    ),
}
# These subtract a mean before anything is rounded.
CENTRED = ["standard", "standard, no deviation", "robust", "columns"]
CENTRED += [name for name in MAPS if ", scaled" in name]
WITH_GAPS = [name for name in MAPS if "filled" in name or "columns" in name]


def rows(name, n=80, seed=0, mean=1e8):
    """Columns of mean 1e8 and deviation 1, of 0.001, of few values, and constant."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([
        mean + rng.standard_normal(n), 1e-3 * rng.standard_normal(n), rng.integers(0, 4, n),
        np.full(n, 7.0),
    ])  # fmt: skip
    if "encoded" in name:
        X = rng.integers(0, 4, (n, 2)).astype(float)
    if name in WITH_GAPS:
        X[rng.random(n) < 0.2, 0] = np.nan
    target = X[:, -1] + np.nan_to_num(X[:, 1]) * 500 + rng.standard_normal(n)
    return X, target


def labelled(kind, target):
    return target if kind is LSSVR else np.digitize(target, np.quantile(target, [0.3, 0.6]))


def same_bits(one, other, X):
    return (
        np.array_equal(one.coef_, other.coef_)
        and np.array_equal(one.intercept_, other.intercept_)
        and np.array_equal(one.predict(X), other.predict(X))
    )


@pytest.mark.rotates(3)
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize("name", MAPS)
def test_changes_give_the_bits_of_a_refit(name, kind):
    X, target = rows(name)
    y = labelled(kind, target)
    s = np.random.default_rng(1).integers(1, 4, len(X)) / 4
    model = kind(rho=0.3, feature_map=MAPS[name])
    model.fit(X[:30], y[:30], sample_weight=s[:30])
    model.partial_fit(X[30:], y[30:], sample_weight=s[30:])
    model.forget(X[:10], y[:10], sample_weight=s[:10])
    model.revise(
        X[10:12], y[10:12], X[:2], y[:2], sample_weight_old=s[10:12], sample_weight_new=s[:2]
    )
    stay = np.r_[0, 1, 12:80]
    again = kind(rho=0.3, feature_map=MAPS[name]).fit(X[stay], y[stay], sample_weight=s[stay])
    assert same_bits(model, again, X)
    assert model.certificate().ok
    assert model.certificate().held_fixed == {}


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize("name", MAPS)
def test_it_is_the_pipeline_fitted_to_the_rows(name, kind):
    # else the rows that the plain machine gets are rounded to 1e-8
    X, target = rows(name, mean=1e8 if name in CENTRED else 1.0)
    y = labelled(kind, target)
    model = kind(feature_map=MAPS[name]).fit(X, y).forget(X[:20], y[:20])
    fitted = Pipeline([("map", clone(MAPS[name]))]).fit(X[20:])
    phi = fitted.transform(X)
    phi = phi.toarray() if sp.issparse(phi) else phi
    plain = kind().fit(phi[20:], y[20:])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=1e-12)
    decide = "predict" if kind is LSSVR else "decision_function"
    ours, theirs = getattr(model, decide)(X[20:]), getattr(plain, decide)(phi[20:])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())


@settings(max_examples=30)
@given(st.data())
def test_any_history_gives_the_bits_of_a_refit(data):
    X, target = rows("columns", n=14, seed=data.draw(st.integers(0, 5)))
    y = target > np.median(target)
    model = LSSVC(feature_map=MAPS["columns"])
    inside = [0, 1, 2]
    model.fit(X[inside], y[inside])
    for _ in range(data.draw(st.integers(1, 6))):
        outside = [i for i in range(len(X)) if i not in inside]
        came = data.draw(st.lists(st.sampled_from(outside), unique=True)) if outside else []
        gone = data.draw(st.lists(st.sampled_from(inside), unique=True, max_size=len(inside) - 1))
        model.update(X[came], y[came], remove_X=X[gone], remove_y=y[gone])
        inside = [i for i in inside if i not in gone] + came
    again = LSSVC(feature_map=MAPS["columns"]).fit(X[inside], y[inside])
    assert same_bits(model, again, X)


def test_a_huge_row_that_goes_leaves_no_trace():
    X, target = rows("standard")
    huge = [[1e12, -3e11, 1e10, 7.0]]
    before = LSSVR(feature_map=StandardScaler()).fit(X, target)
    after = clone(before).fit(X, target).partial_fit(huge, [5.0]).forget(huge, [5.0])
    assert same_bits(before, after, X)


def test_a_category_comes_with_its_first_row_and_goes_with_its_last():
    table = pd.DataFrame(
        {"age": [31, 54, None, 47, 68], "city": ["Bern", "Chur", "Bern", "Chur", "Olten"]}
    )
    columns = ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        ("words", OneHotEncoder(handle_unknown="ignore"), ["city"]),
    ])  # fmt: skip
    y = ["no", "yes", "no", "yes", "yes"]
    model = LSSVC(feature_map=columns).fit(table[:4], y[:4])
    assert model.coef_.shape == (1, 3)
    before = model.coef_
    model.partial_fit(table[4:], y[4:])
    assert model.coef_.shape == (1, 4)
    model.forget(table[4:], y[4:])
    assert np.array_equal(model.coef_, before)


def test_the_last_row_may_go_and_others_come():
    X, target = rows("columns")
    model = LSSVR(feature_map=MAPS["columns"]).fit(X[:3], target[:3])
    model.forget(X[:3], target[:3])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(X)
    model.partial_fit(X[3:], target[3:])
    assert same_bits(model, LSSVR(feature_map=MAPS["columns"]).fit(X[3:], target[3:]), X)


@pytest.mark.parametrize("name", ["standard", "columns"])
def test_a_refused_change_changes_nothing(name):
    X, target = rows(name)
    y = labelled(LSSVC, target)
    model = LSSVC(feature_map=MAPS[name]).fit(X[:40], y[:40])
    before = pickle.dumps(model)
    strange = np.array([[1e9, 50.0, 3.0, 7.0]])
    for refused in (
        lambda: model.forget(strange, y[:1]),
        lambda: model.forget(np.repeat(X[:1], 30, axis=0), np.repeat(y[:1], 30)),
        lambda: model.partial_fit([["a", "b", "c", "d"]], y[:1]),
        lambda: model.forget(X[:1], y[:1], approximate=True),
        lambda: model.forget(X[:39], y[:39], sample_weight=np.ones(39) * 2),
    ):
        with pytest.raises((ValueError, NotLearnedError)):
            refused()
        assert pickle.dumps(model) == before


def test_the_last_row_of_a_category_must_be_the_one_that_was_learned():
    columns = ColumnTransformer([("x", StandardScaler(), [0]), ("kind", OneHotEncoder(), [1])])
    X = [[1.0, "a"], [2.0, "a"], [4.0, "a"], [3.0, "rare"]]
    model = LSSVR(feature_map=columns).fit(X, [1.0, 2.0, 3.0, 4.0])
    before = pickle.dumps(model)
    for wrong, target in (([3.5, "rare"], 4.0), ([3.0, "rare"], 4.5), ([3.0, "new"], 4.0)):
        with pytest.raises(NotLearnedError):
            model.forget([wrong], [target])
        assert pickle.dumps(model) == before
    assert model.forget(X[3:], [4.0]).coef_.shape == (2,)


def test_retune_is_a_refit():
    X, target = rows("columns")
    model = LSSVR(rho=1.0, feature_map=MAPS["columns"]).fit(X, target)
    model.retune(rho=1e-7)
    assert same_bits(model, LSSVR(rho=1e-7, feature_map=MAPS["columns"]).fit(X, target), X)
    model.set_params(feature_map=StandardScaler())
    with pytest.raises(ValueError, match="when the model was fitted"):
        model.forget(X[:1], target[:1])


def test_retune_to_a_rho_that_needs_more_bits():
    X, target = rows("standard")
    model = LSSVR(feature_map=StandardScaler()).fit(X[:, :2], target)
    again = LSSVR(rho=1e-20, feature_map=StandardScaler()).fit(X[:, :2], target)
    assert again._model.moments.parts > model._model.moments.parts
    model.retune(rho=1e-20)
    assert model._model.moments.parts == again._model.moments.parts
    assert same_bits(model, again, X[:, :2])


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_leave_one_out_takes_each_row_out_of_the_scaling(kind):
    X, target = rows("columns", n=25)
    y = labelled(kind, target)
    model = kind(feature_map=MAPS["columns"]).fit(X, y)
    found = model.leave_one_out(X, y)
    for row in (0, 7, 24):
        rest = np.delete(np.arange(25), row)
        again = kind(feature_map=MAPS["columns"]).fit(X[rest], y[rest])
        assert found.prediction[row] == again.predict(X[row : row + 1])[0]
    held = model.leave_one_out(X, y, hold_scaling=True)
    assert not np.array_equal(held.prediction, found.prediction) or kind is LSSVC


def test_cross_validation_takes_each_fold_out_of_the_scaling():
    X, target = rows("columns", n=40)
    folds = np.arange(40) % 4
    split = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(4)]
    model = LSSVR(feature_map=MAPS["columns"]).fit(X, target)
    found = model.cross_validate(X, target, cv=split)
    for (train, test), guess in zip(split, found.predictions, strict=True):
        again = LSSVR(feature_map=MAPS["columns"]).fit(X[train], target[train])
        assert np.array_equal(guess, again.predict(X[test]))


@pytest.mark.rotates(3)
@pytest.mark.parametrize("name", MAPS)
def test_files_and_pickles_continue_alike(name, tmp_path):
    X, target = rows(name)
    y = labelled(LSSVC, target)
    model = LSSVC(feature_map=MAPS[name]).fit(X, y).forget(X[:5], y[:5])
    model.save(tmp_path / "model.adiabat")
    for twin in (adiabat.load(tmp_path / "model.adiabat"), pickle.loads(pickle.dumps(model))):
        assert same_bits(model, twin, X)
        twin.forget(X[5:9], y[5:9]).partial_fit(X[:2], y[:2])
        again = LSSVC(feature_map=MAPS[name]).fit(X[np.r_[0, 1, 9:80]], y[np.r_[0, 1, 9:80]])
        assert same_bits(twin, again, X)


def test_text_in_a_file(tmp_path):
    X = [["red", 1.0], ["blue", 2.0], ["red", 5.0], [None, 3.0]]
    columns = ColumnTransformer(
        [("c", OneHotEncoder(), [0]), ("x", StandardScaler(), [1])], remainder="drop"
    )
    model = LSSVR(feature_map=columns).fit(X, [1.0, 2.0, 3.0, 4.0])
    model.save(tmp_path / "model.adiabat")
    twin = adiabat.load(tmp_path / "model.adiabat")
    assert same_bits(model.forget(X[1:2], [2.0]), twin.forget(X[1:2], [2.0]), X[:1])


def test_an_altered_file_is_refused(tmp_path):
    X, target = rows("standard")
    model = LSSVR(feature_map=StandardScaler()).fit(X, target)
    manifest, arrays = model._to_file()
    arrays["sums_digits"] = arrays["sums_digits"].copy()
    arrays["sums_digits"][-1, 0] += 1
    with pytest.raises(ValueError, match="moments"):
        LSSVR._from_file(manifest, arrays)


def test_sparse_rows_and_several_targets():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (50, 6)).astype(float)
    Y = rng.standard_normal((50, 2))
    thin = LSSVR(feature_map=StandardScaler()).fit(sp.csr_array(X), Y)
    full = LSSVR(feature_map=StandardScaler()).fit(X, Y)
    assert same_bits(thin, full, X)
    assert np.array_equal(thin.predict(sp.csr_array(X)), full.predict(X))


def test_rows_remembered_by_hash():
    X, target = rows("standard")
    model = LSSVR(feature_map=StandardScaler(), remember="hashes").fit(X, target)
    with pytest.raises(NotLearnedError, match="never learned"):
        model.forget(X[:1] + 1e-9, target[:1])
    model.forget(X[:1], target[:1])
    text = ColumnTransformer([("c", OneHotEncoder(), [0])])
    with pytest.raises(ValueError, match="remember='hashes' hashes numbers"):
        LSSVC(feature_map=text, remember="hashes").fit([["a"], ["b"]], [0, 1])


@pytest.mark.parametrize(
    ("feature_map", "words"),
    [
        (make_pipeline(StandardScaler(), RandomFourier()), "follow from all rows"),
        (make_pipeline(SimpleImputer(), MinMaxScaler()), "SimpleImputer and then StandardScaler"),
        (MinMaxScaler(clip=True), "use clip=False"),
        (SimpleImputer(add_indicator=True), "leave missing_values and add_indicator"),
        (OneHotEncoder(min_frequency=2), "leave min_frequency and max_categories out"),
        (
            ColumnTransformer([("s", sklearn.preprocessing.PolynomialFeatures(), [0])]),
            "not linear in the columns",
        ),
        (ColumnTransformer([("s", StandardScaler(), [0])], transformer_weights={"s": 2.0}),
         "transformer_weights"),
    ],
)  # fmt: skip
def test_what_cannot_follow_rows_is_refused_with_a_remedy(feature_map, words):
    X, target = rows("standard")
    with pytest.raises((TypeError, ValueError), match=words):
        LSSVR(feature_map=feature_map).fit(X, target)


def test_gaps_need_something_that_fills_them():
    X, target = rows("filled by mean")
    for feature_map in (StandardScaler(), RobustScaler()):
        with pytest.raises(ValueError, match=r"NaN|SimpleImputer"):
            LSSVR(feature_map=feature_map).fit(X, target)
    whole = np.nan_to_num(X)
    model = LSSVR(feature_map=RobustScaler()).fit(whole, target)
    with pytest.raises(ValueError, match="SimpleImputer"):
        model.predict(X)


def test_what_needs_a_map_that_stays_is_refused_with_a_remedy():
    X, target = rows("standard")
    model = LSSVR(feature_map=StandardScaler()).fit(X, target)
    with pytest.raises(ValueError, match="partial_fit"):
        model.merge(clone(model).fit(X, target))
    with pytest.raises(ValueError, match="IncrementalPipeline"):
        model.predict_interval(X[:2], X, target)
    with pytest.raises(ValueError, match="IncrementalPipeline"):
        model.predict_region(X[:2], X, target)


def test_weights_of_zero_alone_cannot_be_scaled():
    X, target = rows("standard")
    model = LSSVR(feature_map=StandardScaler()).fit(X[:2], target[:2], sample_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="nothing could be scaled"):
        model.forget(X[:1], target[:1])


def test_a_scaler_of_scikit_learn_is_held_as_before():
    X, target = rows("standard")
    model = LSSVR(feature_map=sklearn.preprocessing.StandardScaler()).fit(X, target)
    assert "as fitted on the first batch" in model.certificate().held_fixed["feature_map"]


def test_a_pipeline_says_where_least_squares_takes_its_scaler():
    with pytest.raises(ValueError, match=r"LSSVC\(feature_map=StandardScaler\(\)\)"):
        IncrementalPipeline(LSSVC()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="estimator"):
        IncrementalPipeline(sklearn.preprocessing.StandardScaler()).fit([[0.0], [1.0]], [0, 1])
    assert IncrementalPipeline(SVC()).fit([[0.0], [1.0]], [0, 1]).ids_.tolist() == [0, 1]
