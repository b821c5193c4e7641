# SPDX-License-Identifier: BSD-3-Clause
"""A service starts without what only a change needs, and decides by nothing that was not judged."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import adiabat
from adiabat.errors import ModelFileError, StoreDamagedError
from adiabat.estimators.files.content import content_of
from adiabat.estimators.predictors.making import make_predictor
from adiabat.estimators.predictors.stored import predictor_from
from adiabat.store import stored_model
from store_tools import people

from service.conftest import make_client

READY = """
import json, sys
from adiabat.cli import main, serve
from adiabat.service import server
from adiabat.service.app import make_app
from adiabat.service.desk import Desk
from fastapi.testclient import TestClient
desk = Desk(sys.argv[1])
client = TestClient(make_app(desk), base_url="http://localhost", client=("127.0.0.1", 1))
for path in ("/healthz", "/readyz", "/v1/models", "/v1/models/loans"):
    assert client.get(path).status_code == 200, path
asked = client.post("/v1/models/loans/predictions", json={"rows": [json.loads(sys.argv[2])]})
assert asked.status_code == 200, asked.text
slow = {"sklearn", "pandas", "scipy.stats", "scipy.optimize", "scipy.spatial", "matplotlib"}
print(sorted(slow & set(sys.modules)))
desk.close()
"""


def test_a_service_answers_without_what_takes_long_to_import(folder):
    row = people(70, 71).drop(columns=["good"]).iloc[0]
    said = subprocess.run(
        [sys.executable, "-c", READY, str(folder), row.to_json()], capture_output=True, text=True
    )
    assert said.stdout == "[]\n", said.stdout + said.stderr


def test_the_writer_has_the_estimator_ready_after_a_while(folder):
    with make_client(folder) as client:
        served = client.desk.models["loans"]
        assert not served.store._session.cache.holds(served.predictor.hash)
        served.start()
        row = people(70, 71).to_dict("records")
        assert client.post("/v1/models/loans/rows", json={"rows": row}).status_code == 201
        assert served.store._session.cache.holds(served.predictor.hash)


KERNELS = [
    {"gamma": 0.5}, {"kernel": "linear"}, {"kernel": "poly", "gamma": 0.5, "coef0": 1.0},
    {"kernel": "laplacian", "gamma": 0.3},
]  # fmt: skip


@pytest.mark.parametrize("scale", [None, "exact", "held"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda given: given.get("kernel", "rbf"))
@pytest.mark.parametrize("task", ["svc", "svr", "one-class", "svdd"])
def test_a_predictor_that_was_read_decides_as_the_model(tmp_path, monkeypatch, task, kernel, scale):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    rows.insert(0, "id", np.arange(80))
    label = {"svc": np.digitize(rows.a + 0.5 * rows.b, [-0.5, 0.5]), "svr": rows.a + rows.b}
    if task in label:
        rows["y"] = label[task]
    store = adiabat.create_store(
        tmp_path / "m", task, label="y" if task in label else None, scale=scale, **kernel
    )
    store.learn(rows)
    expected = make_predictor(store.model)
    store.close()
    Q = rng.normal(size=(60, 3))
    with adiabat.open_store(tmp_path / "m") as opened:
        monkeypatch.setattr(opened._session, "load", lambda *_: pytest.fail("made the estimator"))
        found = opened.predictor
        assert found.entry == 2 and type(found.decider) is type(expected)
        for given, right in zip(found.decider.answer(Q), expected.answer(Q), strict=True):
            assert np.array_equal(given, right)
        assert np.array_equal(found.decider.decider.places, expected.decider.places)
        known, right = np.array(found.decider.decider.known), np.array(expected.decider.known)
        assert np.allclose(known, right, rtol=1e-12)
        held = [opened.find_numbers([number]) for number in found.support]
        assert all(held)


def test_sparse_rows_are_read_as_the_model_has_them(tmp_path):
    import scipy.sparse as sp

    X = sp.random_array((60, 9), density=0.3, format="csr", rng=np.random.default_rng(0))
    y = (np.asarray(X.sum(axis=1)).ravel() > 1.0).astype(int)
    store = adiabat.create_store(tmp_path / "m", "svc", label="y", gamma=0.5)
    store.learn(X, y, ids=np.arange(60))
    expected = make_predictor(store.model).decision_function(X)
    store.close()
    with adiabat.open_store(tmp_path / "m") as opened:
        assert np.array_equal(opened.predictor.decider.decision_function(X), expected)


@pytest.mark.parametrize("given", [{"calibration": "sigmoid"}, {"C": np.inf}])
def test_what_arrays_do_not_say_takes_the_estimator(given):
    X = np.arange(8.0)[:, None]
    model = adiabat.SVC(kernel="linear", **given).fit(X, [0] * 4 + [1] * 4)
    assert predictor_from(*content_of(model)) is None


def test_weights_that_are_not_the_optimum_decide_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = adiabat.SVC(gamma=0.5).fit(X, (X[:, 0] > 0).astype(int))
    manifest, arrays = content_of(model)
    assert predictor_from(manifest, arrays) is not None
    arrays["machine0_u"] = arrays["machine0_u"] * (1.0 - 1e-6)
    with pytest.raises(ValueError, match="not the optimum"):
        predictor_from(manifest, arrays)


@pytest.mark.parametrize("other", [{"C": 4.0}, {"gamma": 0.25}])
def test_a_model_of_other_settings_decides_nothing(folder, monkeypatch, other):
    unpack = stored_model.unpack_predictor

    def tampered(blob, settings, X):
        found = unpack(blob, settings, X)
        found.parameters.update(other)
        return found

    monkeypatch.setattr(stored_model, "unpack_predictor", tampered)
    with (
        adiabat.open_store(folder / "loans") as store,
        pytest.raises(StoreDamagedError, match="it has another"),
    ):
        store.predict(people(0, 1))


def test_what_cannot_be_read_is_said_to_be_damaged(folder, monkeypatch):
    def broken(*_):
        raise ModelFileError("'the model of the store' is cut short; restore a copy")

    monkeypatch.setattr(stored_model, "unpack_predictor", broken)
    with (
        adiabat.open_store(folder / "loans") as store,
        pytest.raises(StoreDamagedError, match=r"cut short.*adiabat repair"),
    ):
        store.predict(people(0, 1))
