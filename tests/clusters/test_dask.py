# SPDX-License-Identifier: BSD-3-Clause
"""Models on a Dask cluster: equal to those of one machine, whatever the partitions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import adiabat
from adiabat import feature_maps
from adiabat.errors import IdError, NotLearnedError

pytest.importorskip("distributed")
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd

from adiabat.dask import LSSVC, LSSVR, SVC, SVR
from adiabat.partitions import working

TIGHT = 1e-9
N = 400


@pytest.fixture(scope="module", autouse=True)
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "_START", 30)
    monkeypatch.setattr(working, "_BATCH", 20)


def rows(n: int = N, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-4, 4, size=3)
    scaled = X / np.abs(X).max(axis=0)
    label = np.argmax(scaled + 0.2 * rng.normal(size=X.shape), axis=1)
    return X, label, scaled @ [1.0, -2.0, 0.5] + 0.05 * rng.normal(size=n)


def spread(array: np.ndarray, chunk: int):
    return da.from_array(array, chunks=(chunk, *array.shape[1:]))


MAPS = [None, feature_maps.RandomFourier(7, gamma=0.3), feature_maps.Polynomial(2)]


@pytest.mark.parametrize("feature_map", MAPS, ids=["none", "fourier", "polynomial"])
def test_bits_do_not_depend_on_partitions_order_or_history(feature_map) -> None:
    X, label, number = rows()
    for kind, local, y in ((LSSVC, adiabat.LSSVC, label), (LSSVR, adiabat.LSSVR, number)):
        model = kind(rho=0.01, feature_map=feature_map)
        one = model.fit(spread(X, N), spread(y, N))
        bits = [one.coef_.tobytes(), np.asarray(one.intercept_).tobytes()]
        alone = local(rho=0.01, feature_map=feature_map).fit(X, y)
        np.testing.assert_allclose(one.coef_, alone.coef_, rtol=1e-12)
        order = np.random.default_rng(1).permutation(N)
        ways = [
            clone(model).fit(spread(X, 25), spread(y, 25)),
            clone(model).fit(spread(X[order], 171), spread(y[order], 171)),
            clone(model).fit(X[:90], y[:90]).partial_fit(spread(X[90:], 100), spread(y[90:], 100)),
            clone(model).fit(X[:90], y[:90]).merge(clone(model).fit(X[90:], y[90:])),
            clone(model)
            .fit(np.vstack([X, 1e6 * X[:40]]), np.concatenate([y, y[:40]]))
            .forget(spread(1e6 * X[:40], 15), spread(y[:40], 15)),
        ]
        for way in ways:
            assert [way.coef_.tobytes(), np.asarray(way.intercept_).tobytes()] == bits
            assert way.certificate().ok and way.n_samples_ == N


def test_sums_with_weights_and_new_labels() -> None:
    X, label, _ = rows()
    weight = np.random.default_rng(2).random(N)
    order = np.argsort(label, kind="stable")  # most partitions have one class
    X, label, weight = X[order], label[order], weight[order]
    model = LSSVC().fit(spread(X, 50), spread(label, 50), spread(weight, 50))
    again = LSSVC().fit(spread(X, 131), spread(label, 131), spread(weight, 131))
    assert model.coef_.tobytes() == again.coef_.tobytes()
    alone = adiabat.LSSVC().fit(X, label, weight)
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-12)
    last = label == 2
    fewer = model.forget(X[last], label[last], weight[last])
    np.testing.assert_array_equal(fewer.classes_, [0, 1])
    assert (
        fewer.coef_.tobytes() == LSSVC().fit(X[~last], label[~last], weight[~last]).coef_.tobytes()
    )


def test_what_was_never_learned_is_refused_and_nothing_changes() -> None:
    X, label, _ = rows()
    model = LSSVC().fit(spread(X, 100), spread(label, 100))
    bits = model.coef_.tobytes()
    with pytest.raises(NotLearnedError):
        model.forget(1e8 * X[:3], label[:3])
    with pytest.raises(NotLearnedError, match=r"never learned|times"):
        model.forget(X[label == 2] + 1.0, label[label == 2])
    with pytest.raises(ValueError, match="no row would be left"):
        model.forget(X, label)
    assert model.coef_.tobytes() == bits


CASES = {
    "three classes": (SVC(C=3.0), 1),
    "balanced": (SVC(C=3.0, class_weight="balanced"), 1),
    "numbers": (SVR(C=3.0, epsilon=0.02), 2),
    "linear": (SVR(C=3.0, epsilon=0.02, kernel="linear"), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_that_stay_away_do_not_change_the_optimum(name: str) -> None:
    model, which = CASES[name]
    found = rows()
    X, y = found[0] / np.abs(found[0]).max(axis=0), found[which]
    model = clone(model).fit(spread(X, 60), spread(y, 60))
    alone = model._like().fit(X, y)
    at = rows(50, seed=5)[0] / np.abs(found[0]).max(axis=0)

    def agree():
        local = model.to_local()
        np.testing.assert_allclose(local._decide(at), alone._decide(at), atol=TIGHT)
        evidence = model.certificate()
        assert evidence.ok and evidence.n_samples == len(alone.ids_) == model.n_samples_

    agree()
    assert len(model.rounds_) > 1 and model.rounds_[-1].n_violators == 0
    assert len(model.to_local().ids_) < N
    gone = np.flatnonzero(np.arange(N) % 3 == 0)
    model.forget(gone)
    alone.forget(gone)
    agree()
    more = rows(80, seed=9)
    fresh, target = more[0] / np.abs(found[0]).max(axis=0), more[which]
    model.partial_fit(spread(fresh, 30), spread(target, 30))
    alone.partial_fit(fresh, target)
    agree()
    found = model.predict(spread(at, 20)).compute()
    np.testing.assert_allclose(found, alone.predict(at), atol=TIGHT)
    with pytest.raises(IdError, match="is not"):
        model.forget([0])
    agree()


def test_forgetting_all_rows_of_a_class_that_the_client_holds_brings_others_in() -> None:
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(150, 2)), rng.normal(size=(150, 2)) + 4.0])
    y = np.repeat([0, 1], 150)
    model = SVC(C=1.0, gamma=0.5).fit(spread(X, 70), spread(y, 70))
    held = model.to_local().ids_
    gone = held[y[held] == 1]
    assert 0 < len(gone) < 150
    model.forget(gone)
    stays = np.setdiff1d(np.arange(300), gone)
    alone = adiabat.SVC(C=1.0, gamma=0.5).fit(X[stays], y[stays])
    found = model.decision_function(spread(X, 90)).compute()
    np.testing.assert_allclose(found, alone.decision_function(X), atol=TIGHT)


def test_data_frames_and_unknown_chunks() -> None:
    X, label, _ = rows(120)
    table = pd.DataFrame(X / np.abs(X).max(axis=0), columns=["a", "b", "c"])
    table["y"] = np.array(["red", "green", "blue"])[label]
    frame = dd.from_pandas(table, npartitions=4)
    frame = frame[frame.a > -0.5]
    kept = table[table.a > -0.5]
    for kind, local in ((SVC, adiabat.SVC()), (LSSVC, adiabat.LSSVC())):
        model = kind().fit(frame[["a", "b", "c"]], frame.y)
        alone = local.fit(kept[["a", "b", "c"]], kept.y)
        found = model.predict(frame[["a", "b", "c"]]).compute()
        np.testing.assert_array_equal(found, alone.predict(kept[["a", "b", "c"]]))
        assert (found.index == kept.index).all()
        X_unknown = frame[["a", "b", "c"]].to_dask_array()
        again = kind().fit(X_unknown, frame.y)
        assert np.isnan(again.predict(X_unknown).chunks[0]).all()
        np.testing.assert_array_equal(again.predict(X_unknown).compute(), found)


def test_bad_input_is_named_and_changes_nothing() -> None:
    X, label, number = rows()
    X = X / np.abs(X).max(axis=0)
    bad = X.copy()
    bad[370, 1] = np.nan  # partition 7 of 50 rows each
    for model, y in ((LSSVC(), label), (SVC(), label), (SVR(), number), (LSSVR(), number)):
        with pytest.raises(NotFittedError):
            model.predict(X)
        with pytest.raises(ValueError, match=r"partition 7.*NaN"):
            model.fit(spread(bad, 50), spread(y, 50))
        model.fit(spread(X, 50), spread(y, 50))
        before = model.predict(X).tobytes()
        with pytest.raises(ValueError, match=r"partition .*NaN"):
            model.partial_fit(spread(bad, 50), spread(y, 50))
        with pytest.raises(ValueError, match="399 targets, X has 400"):
            model.partial_fit(spread(X, 50), spread(y[1:], 50))
        with pytest.raises(ValueError, match=r"partitions"):
            model.partial_fit(spread(X, 50), dd.from_pandas(pd.Series(y), npartitions=3))
        with pytest.raises(ValueError, match=r"partition [01]: X has 50 rows and y (49|51)"):
            cut = da.concatenate([da.from_array(y[:49]), da.from_array(y[49:100])])
            cut._chunks = ((np.nan, np.nan),)
            kind = clone(model)
            kind.fit(spread(X[:100], 50), cut)
        assert model.predict(X).tobytes() == before


def test_a_map_fitted_on_rows_is_refused() -> None:
    from sklearn.preprocessing import StandardScaler

    X, label, _ = rows(60)
    with pytest.raises(ValueError, match="would be another one in every partition"):
        LSSVC(feature_map=StandardScaler()).fit(spread(X, 30), spread(label, 30))


def test_too_little_memory_is_said_beforehand() -> None:
    X, label, _ = rows()
    model = SVC(memory_limit=2e4)
    with pytest.raises(MemoryError, match=r"needs about .* and 20\.0 kB are allowed"):
        model.fit(spread(X, 50), spread(label, 50))
    assert not model.__sklearn_is_fitted__()


def test_a_cluster_that_is_gone_is_named() -> None:
    X, label, _ = rows(40)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        gone = distributed.Client(cluster, set_as_default=False)
        gone.close()
    with pytest.raises(ConnectionError, match="cannot be reached"):
        LSSVC(client=gone).fit(X, label)
    with pytest.raises(TypeError, match=r"distributed\.Client"):
        SVC(client="tcp://1.2.3.4").fit(X, label)


def test_an_estimator_is_cloned_with_its_client_and_pickled_without(client) -> None:
    X, label, _ = rows(40)
    model = clone(SVC(C=2.0, client=client))
    assert model.client is client and model.C == 2.0
    fitted = LSSVC(client=client).fit(X, label)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.client is None
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
