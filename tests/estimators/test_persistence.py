# SPDX-License-Identifier: BSD-3-Clause
"""Models on disk: the same after, for every kind of id, label, kernel and row."""

from __future__ import annotations

import copy
import json
import pickle
import threading
import zipfile
from pathlib import Path
from typing import Any
from uuid import UUID

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import adiabat
from adiabat import SVC, ModelFileError
from adiabat.archive import read_archive, write_archive

from laws.compare import exact_state

RNG = np.random.default_rng(5)
X = np.abs(RNG.standard_normal((40, 3)))
Y = np.arange(40) % 3
Y[RNG.random(40) < 0.3] = 0


def again(model: SVC, folder: Path, how: str) -> Any:
    """The model after a trip through a file, a pickle, joblib or a deep copy."""
    if how == "save":
        model.save(folder / "model.adiabat")
        return adiabat.load(folder / "model.adiabat")
    if how == "pickle":
        return pickle.loads(pickle.dumps(model))
    if how == "joblib":
        joblib.dump(model, folder / "model.joblib")
        return joblib.load(folder / "model.joblib")
    if how == "skops":
        content = skops.io.dumps(model)
        return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
    return copy.deepcopy(model)


HOW = ["save", "pickle", "joblib", "skops", "copy"]
CASES: dict[str, dict[str, Any]] = {
    "rbf": {},
    "linear": {"kernel": "linear", "C": 0.5},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "auto"},
    "laplacian": {"kernel": "laplacian", "gamma": 0.25, "solver": "path"},
    "chi2": {"kernel": "chi2"},
    "balanced": {"class_weight": "balanced", "tol": 1e-10},
    "weights by class": {"class_weight": {0: 2.0, 1: 0.5}, "decision_function_shape": "ovo"},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CASES)
def test_a_model_comes_back_and_continues(name: str, how: str, tmp_path: Path) -> None:
    model = SVC(**CASES[name]).fit(X[:30], Y[:30], sample_weight=np.linspace(0.0, 2.0, 30))
    model.forget([2, 29, 7])
    twin = again(model, tmp_path, how)
    afresh = how == "save"
    assert exact_state(twin, X, afresh) == exact_state(model, X, afresh)
    assert twin.get_params() == model.get_params()
    assert (twin.gamma_, twin.n_features_in_) == (model.gamma_, model.n_features_in_)
    assert twin.certificate().held_fixed == model.certificate().held_fixed
    for each in (model, twin):
        each.partial_fit(X[30:], Y[30:])
        each.revise([1, 3], y=[2, 2])
        each.forget(5)
    assert (
        twin.ids_.tolist() == model.ids_.tolist() == [0, 1, 3, 4, 6, *range(8, 29), *range(30, 40)]
    )
    np.testing.assert_allclose(
        twin.decision_function(X), model.decision_function(X), rtol=0.0, atol=1e-11
    )
    assert twin.certificate().ok


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "ids",
    [
        [f"customer {k}" for k in range(40)],
        [UUID(int=k + 1) for k in range(40)],
        [bytes([k, 0]) for k in range(40)],
        [2**100 + k for k in range(40)],
        list(range(-20, 20)),
    ],
    ids=["str", "uuid", "bytes", "big", "negative"],
)
def test_ids_of_every_kind_come_back(ids: Any, how: str, tmp_path: Path) -> None:
    model = SVC().fit(X, Y, ids=ids).forget(ids[3])
    twin = again(model, tmp_path, how)
    assert twin.ids_.tolist() == model.ids_.tolist()
    assert twin.ids_.dtype == model.ids_.dtype
    twin.forget(ids[4])
    assert len(twin.ids_) == 38 and len(model.ids_) == 39


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "maybe", "yes"]),
        np.array(["no", "maybe", "yes"], dtype=object),
        np.array([-1.0, 0.0, 1.0]),
        np.array([7, 8, 9], dtype=np.int8),
    ],
    ids=["str", "object", "float", "int8"],
)
def test_labels_of_every_kind_come_back(labels: Any, how: str, tmp_path: Path) -> None:
    model = SVC().fit(X, labels[Y])
    twin = again(model, tmp_path, how)
    assert twin.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    twin.partial_fit(X[:2] + 1.0, labels[Y[:2]])
    assert twin.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_come_back(index: Any, how: str, tmp_path: Path) -> None:
    rows = sp.csr_array(np.where(X < 0.5, 0.0, X))
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    model = SVC().fit(rows, Y)
    twin = again(model, tmp_path, how)
    assert sp.issparse(twin.support_vectors_)
    np.testing.assert_array_equal(twin.decision_function(rows), model.decision_function(rows))
    assert twin.partial_fit(rows[:3], Y[:3]).certificate().ok


@pytest.mark.parametrize("how", HOW)
def test_a_given_kernel_comes_back(how: str, tmp_path: Path) -> None:
    K = rbf_kernel(X, X, gamma=0.5)
    model = SVC(kernel="precomputed").fit(K[:30, :30], Y[:30]).forget([0, 9])
    twin = again(model, tmp_path, how)
    stays = [k for k in range(30) if k not in (0, 9)]
    np.testing.assert_array_equal(
        twin.decision_function(K[:, stays]), model.decision_function(K[:, stays])
    )
    columns = [*stays, *range(30, 40)]
    twin.partial_fit(K[30:][:, columns], Y[30:])
    assert twin.certificate().ok


@pytest.mark.parametrize("how", HOW)
def test_feature_names_come_back(how: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["height", "weight", "age"], index=[f"p{k}" for k in range(40)])
    model = SVC().fit(frame, Y)
    twin = again(model, tmp_path, how)
    assert twin.feature_names_in_.tolist() == ["height", "weight", "age"]
    assert twin.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        twin.predict(frame[["age", "weight", "height"]])


@pytest.mark.parametrize("how", HOW)
def test_models_of_one_class_and_of_two_come_back(how: str, tmp_path: Path) -> None:
    for classes in (1, 2):
        model = SVC().fit(X, Y % classes)
        twin = again(model, tmp_path, how)
        afresh = how == "save"
        assert exact_state(twin, X, afresh) == exact_state(model, X, afresh)


@pytest.mark.parametrize("how", ["pickle", "joblib", "copy"])
def test_a_model_without_samples_can_be_pickled(how: str, tmp_path: Path) -> None:
    assert again(SVC(C=3.0), tmp_path, how).C == 3.0
    emptied = again(SVC().fit(X, Y).forget(range(40)), tmp_path, how)
    with pytest.raises(NotFittedError):
        emptied.predict(X)
    assert emptied.partial_fit(X, Y).ids_[0] == 40


def test_saving_needs_samples(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        SVC().save(tmp_path / "model.adiabat")
    assert not list(tmp_path.iterdir())


def test_a_callable_is_pickled_but_not_saved(tmp_path: Path) -> None:
    model = SVC(kernel=rbf_kernel).fit(X, Y)
    with pytest.raises(TypeError, match="kernel"):
        model.save(tmp_path / "model.adiabat")
    assert not list(tmp_path.iterdir())
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))


def test_a_failed_save_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "model.adiabat"
    SVC().fit(X, Y).save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        SVC(kernel=rbf_kernel).fit(X, Y).save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    model = SVC().fit(X, Y)
    model.save(tmp_path / "a")
    model.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_forgotten_rows_are_not_in_the_file(tmp_path: Path) -> None:
    """Unlearning means gone: neither the features nor the id of a forgotten sample are kept."""
    secret = np.pi * 1e5
    rows = X.copy()
    rows[11] = secret
    names = [f"customer-{k}" for k in range(40)]
    model = SVC(gamma=0.5).fit(rows, Y, ids=names)
    model.forget("customer-11")
    model.save(tmp_path / "model.adiabat")
    for content in ((tmp_path / "model.adiabat").read_bytes(), pickle.dumps(model)):
        assert np.float64(secret).tobytes() not in content
        assert b"customer-11" not in content
        assert b"customer-12" in content


def test_clone_knows_nothing() -> None:
    model = SVC(C=2.0, kernel="linear").fit(X, Y)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "ids_") and not hasattr(twin, "classes_")


# -- files that are not what they seem -------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.adiabat"
    SVC(class_weight="balanced").fit(X, Y).save(path)
    return path


def test_a_truncated_file_is_refused(saved: Path) -> None:
    content = saved.read_bytes()
    for length in [0, 1, 4, 100, len(content) // 2, len(content) - 100, len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            adiabat.load(saved)


def test_any_altered_byte_is_noticed(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)
    expected = exact_state(adiabat.load(saved), X)
    for place in rng.choice(len(content), size=150, replace=False):
        altered = content.copy()
        altered[place] ^= 1 << int(rng.integers(8))
        saved.write_bytes(altered)
        try:
            model = adiabat.load(saved)
        except ModelFileError:
            continue
        assert exact_state(model, X) == expected  # a date in the zip, say: nothing that counts


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.adiabat"
    for content in (b"", b"hello", pickle.dumps(SVC()), b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"model\.adiabat"):
            adiabat.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"estimator": "SVC"}))
    with pytest.raises(ModelFileError):
        adiabat.load(path)
    with pytest.raises(FileNotFoundError):
        adiabat.load(tmp_path / "nowhere")


def rewrite(path: Path, change: Any) -> None:
    """A file with all its checksums in order, made by someone who means ill."""
    manifest, arrays = read_archive(path)
    change(manifest, arrays)
    write_archive(path, manifest, arrays)


def _drop(name: str) -> Any:
    return lambda manifest, arrays: arrays.pop(name)


def _forget_key(name: str) -> Any:
    return lambda manifest, arrays: manifest.pop(name)


def _set(name: str, value: Any) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        (arrays if name in arrays else manifest)[name] = value

    return change


def _with(name: str, place: Any, value: Any) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def _in(name: str, key: str, value: Any) -> Any:
    def change(manifest: Any, arrays: Any) -> None:
        manifest[name] = {**manifest[name], key: value}

    return change


HOSTILE = {
    "estimator unknown": _set("estimator", "os.system"),
    "no estimator": _forget_key("estimator"),
    "no kernel": _forget_key("kernel"),
    "no parameters": _forget_key("parameters"),
    "kernel by name of code": _in("kernel", "name", "__import__"),
    "kernel gamma is text": _in("kernel", "gamma", "1e9"),
    "degree enormous": _in("kernel", "degree", -3),
    "unknown parameter": _in("parameters", "__class__", "evil"),
    "C is text": _in("formulation", "C", "many"),
    "C is negative": _in("formulation", "C", -1.0),
    "tol is negative": _set("tol", -1.0),
    "labels missing": _in("formulation", "classes", []),
    "biases missing": _set("biases", []),
    "no X": _drop("X"),
    "no ids": _drop("ledger_ids"),
    "no machine": _drop("machine0_u"),
    "X of other type": _set("X", X.astype(np.float32)),
    "X of other length": _set("X", X[:-1]),
    "X with NaN": _with("X", (0, 0), np.nan),
    "margin negative": _with("machine0_margin", 0, -1),
    "margin doubled": _with("machine0_margin", slice(0, 2), 0),
    "margin floating": _set("machine0_margin", np.array([0.5])),
    "u too short": _set("machine0_u", np.zeros(3)),
    "u beyond its box": _with("machine0_u", slice(None), 17.0),
    "bias NaN": _set("biases", [0.0, 0.0, None]),
    "margin out of range": _with("machine0_margin", 0, 10**6),
    "weight NaN": _with("weight", 0, np.nan),
    "weight negative": _with("weight", 0, -1.0),
    "target unknown": _with("target", 0, 99),
    "u NaN": _with("machine0_u", 0, np.nan),
    "u wrong": _with("machine0_u", slice(None), 0.0),
    "ids doubled": _with("ledger_ids", 0, 1),
    "unknown formulation": _in("formulation", "name", "evil"),
    "n_features wrong": _set("n_features_in", 99),
    "pairs wrong": _set("machines", [[0, 1], [0, 1], [1, 2]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_does_not_hang_together_is_refused(name: str, saved: Path) -> None:
    rewrite(saved, HOSTILE[name])
    with pytest.raises(ModelFileError):
        adiabat.load(saved)


def test_pickles_can_be_written_while_another_thread_predicts() -> None:
    model = SVC().fit(X, Y)
    expected, wrong = model.decision_function(X), []

    def predict() -> None:
        for _ in range(50):
            if not np.array_equal(model.decision_function(X), expected):
                wrong.append(1)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        pickle.loads(pickle.dumps(model))
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("name", ["SVC", "LSSVC", "KernelLSSVC", "IncrementalPipeline"])
def test_a_pickle_says_its_format(name: str) -> None:
    kind = getattr(adiabat, name)
    model = kind(adiabat.SVC()) if name == "IncrementalPipeline" else kind()
    model.fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    state = model.__getstate__()
    assert state["_pickle_format"] == 1
    old = object.__new__(kind)  # from before there was a format
    old.__setstate__({key: value for key, value in state.items() if key != "_pickle_format"})
    assert old.predict([[2.0]]).tolist() == [1] and "_pickle_format" not in vars(old)
    with pytest.raises(ValueError, match="format 2, and this version of adiabat reads up to 1"):
        object.__new__(kind).__setstate__({**state, "_pickle_format": 2})
