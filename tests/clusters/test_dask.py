# SPDX-License-Identifier: BSD-3-Clause
"""Models on a Dask cluster: equal to those of one machine, whatever the partitions."""

import pickle
from types import SimpleNamespace

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

from adiabat.dask import LSSVC, LSSVR, SVC, SVR, StandardScaler, cluster
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


def last_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Those after 100, so that some partitions are empty."""
    return frame[frame.index > 100]


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


def test_partitions_of_one_class_make_the_model_of_all() -> None:
    X, label, _ = rows(120)
    X = X / np.abs(X).max(axis=0)
    order = np.argsort(label, kind="stable")
    X, label = X[order], label[order]
    model = SVC(C=3.0).fit(spread(X, 15), spread(label, 15))
    alone = model._like().fit(X, label)
    np.testing.assert_allclose(
        model.to_local().decision_function(X), alone.decision_function(X), atol=TIGHT
    )
    same = np.zeros(len(X), dtype=int)
    alone.fit(X, same)
    one = clone(model).fit(spread(X, 15), spread(same, 15))
    np.testing.assert_array_equal(one.predict(X), alone.predict(X))


def test_a_scaler_has_the_bits_of_one_machine() -> None:
    X, _, _ = rows(120)
    X[17, 1] = np.nan
    weight = np.random.default_rng(2).integers(0, 3, 120).astype(float)
    weight[20:40] = 0.0  # a partition that counts for nothing

    def bits(scaler):
        found = (scaler.mean_, scaler.var_, scaler.scale_, scaler.n_samples_seen_)
        return [np.asarray(value).tobytes() for value in found]

    alone = adiabat.StandardScaler().fit(X, sample_weight=weight)
    for chunk in (120, 20, 7):
        scaler = StandardScaler().fit(spread(X, chunk), sample_weight=spread(weight, chunk))
        assert bits(scaler) == bits(alone)
    scaler.partial_fit(1e9 * X[:9]).forget(spread(1e9 * X[:9], 4))
    assert bits(scaler) == bits(alone)
    scaled = scaler.transform(spread(X, 50))
    assert scaled.shape == X.shape
    np.testing.assert_array_equal(scaled.compute(), alone.transform(X))
    np.testing.assert_allclose(scaler.inverse_transform(scaled).compute(), X, rtol=1e-12)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=3)
    named = StandardScaler().fit(frame)
    found = named.transform(frame.map_partitions(last_rows)).compute()
    assert list(found.columns) == ["a", "b", "c"] and (found.index == np.arange(101, 120)).all()
    np.testing.assert_array_equal(found, named.to_local().transform(frame.compute()[101:]))


def test_a_scaler_that_fails_stays_as_it_was() -> None:
    X, _, _ = rows(40)
    scaler = StandardScaler().fit(spread(X, 20))
    before = scaler.mean_.tobytes()
    bad = X.copy()
    bad[25, 0] = np.inf
    with pytest.raises(ValueError, match=r"partition 1: .*infinity"):
        scaler.partial_fit(spread(bad, 20))
    with pytest.raises(ValueError, match="X has 2 features, and the rows before it 3"):
        scaler.partial_fit(spread(X[:, :2], 20))
    with pytest.raises(ValueError, match="rows that were not learned"):
        scaler.forget(spread(9.0 * X, 20))
    with pytest.raises(ValueError, match="X has 0 rows of positive weight in its 2 partitions"):
        scaler.fit(spread(X, 20), sample_weight=spread(np.zeros(40), 20))
    assert scaler.mean_.tobytes() == before


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
        few = frame[["a", "b", "c"]].map_partitions(last_rows)
        wanted = alone.decision_function(kept[kept.index > 100][["a", "b", "c"]])
        np.testing.assert_allclose(
            model.decision_function(few).compute(), wanted, rtol=1e-9, atol=TIGHT
        )
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


def test_too_little_memory_is_said_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    X, label, _ = rows()
    at, target = spread(X, 50), spread(label, 50)
    model = SVC(memory_limit=2e4)
    learned: list[int] = []
    fit = adiabat.SVC.fit
    monkeypatch.setattr(
        adiabat.SVC, "fit", lambda self, X, *a, **b: learned.append(len(X)) or fit(self, X, *a, **b)
    )
    said = r"Holding \d+ rows with \d+ support vectors at the client needs about .* and "
    with pytest.raises(MemoryError, match=said + r"20\.0 kB are allowed .*larger memory_limit"):
        model.fit(at, target)
    assert not learned and not model.__sklearn_is_fitted__()
    # the first rows fit, later ones do not: the model is as it was
    model = SVC().fit(at[:50], target[:50])
    before = model.predict(X).tobytes()
    model._working._limit = 1e5
    with pytest.raises(MemoryError, match=said + r"100\.0 kB are allowed"):
        model.partial_fit(at[50:], target[50:])
    assert model.n_samples_ == 50 and model.predict(X).tobytes() == before
    for bad in ("1GB", -1, 0):
        with pytest.raises(ValueError, match=r"memory_limit=.* must be a positive"):
            SVC(memory_limit=bad).fit(at, target)


def test_a_cluster_that_is_gone_is_named() -> None:
    X, label, _ = rows(40)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        gone = distributed.Client(cluster, set_as_default=False)
        gone.close()
    with pytest.raises(ConnectionError, match="cannot be reached"):
        LSSVC(client=gone).fit(X, label)
    with pytest.raises(TypeError, match=r"distributed\.Client"):
        SVC(client="tcp://1.2.3.4").fit(X, label)


def never(X: np.ndarray) -> np.ndarray:
    raise distributed.KilledWorker("never", SimpleNamespace(address="tcp://nowhere"), 3)


def test_workers_that_die_again_and_again_are_named() -> None:
    X, label, _ = rows(40)
    lost = spread(X, 20).map_blocks(never, meta=np.empty((0, 0)))
    for model in (LSSVC(), SVC()):
        model.fit(X, label)
        before = model.predict(X).tobytes()
        with pytest.raises(RuntimeError, match=r"again and again .* smaller partitions"):
            model.partial_fit(lost, spread(label, 20))
        assert model.n_samples_ == 40 and model.predict(X).tobytes() == before


def test_a_cluster_whose_workers_do_not_come_back_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(cluster, "_PATIENCE_SECONDS", 0.2)
    X, label, _ = rows(40)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as alone,
    ):
        model = LSSVC().fit(X, label)
        model.client = alone
        with pytest.raises(RuntimeError, match=r"has had no worker for 0\.2 s; .* Start workers"):
            model.partial_fit(X, label)
    assert model.n_samples_ == 40


def test_an_estimator_is_cloned_with_its_client_and_pickled_without(client) -> None:
    X, label, _ = rows(40)
    model = clone(SVC(C=2.0, client=client))
    assert model.client is client and model.C == 2.0
    fitted = LSSVC(client=client).fit(X, label)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.client is None
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
