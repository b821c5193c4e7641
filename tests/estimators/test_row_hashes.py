# SPDX-License-Identifier: BSD-3-Clause
"""Models that keep no rows: what their certificate cannot know, and hashes that make it known."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adiabat
from adiabat import LSSVC, LSSVR, ModelFileError, NotLearnedError
from adiabat.archive import read_archive, write_archive
from adiabat.estimators.least_squares.row_hashes import RowHashes, _Part
from adiabat.feature_maps import Polynomial

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 3, 60)
VALUES = X @ RNG.normal(size=3) + RNG.normal(size=60)
S = RNG.choice([0.5, 1.0, 2.0], 60)
STRANGER = np.zeros((1, 3))  # contradicts no moment
KINDS = [LSSVC, LSSVR]


def target(kind: type) -> np.ndarray:
    return Y if kind is LSSVC else VALUES


def taught(kind: type, n: int = 40, **params: Any) -> Any:
    return kind(remember="hashes", **params).fit(X[:n], target(kind)[:n])


def refuses(model: Any, call: Any, message: str) -> None:
    before = pickle.dumps(model.__dict__)
    with pytest.raises(NotLearnedError, match=message):
        call(model)
    assert pickle.dumps(model.__dict__) == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_says_what_it_cannot_know(kind, tmp_path):
    plain = kind().fit(X, target(kind))
    says = "this model keeps no rows: optimal for the moments it was given"
    plain.save(tmp_path / "m.adiabat")
    for model in (plain, adiabat.load(tmp_path / "m.adiabat")):
        for certificate in (model.certificate(), model.last_update_.certificate):
            assert certificate.basis == says and says in str(certificate)
    hashed = taught(kind).certificate()
    assert "hashes" in hashed.basis and hashed.basis in str(hashed)
    assert adiabat.SVC().fit(X, Y).certificate().basis == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_was_never_learned_is_refused(kind):
    t = target(kind)
    unnoticed = kind().fit(X[:40], t[:40]).forget(STRANGER, t[:1])
    assert unnoticed.certificate().ok  # for the moments it was given
    model = taught(kind)
    refuses(model, lambda m: m.forget(STRANGER, t[:1]), r"remove_X\[0\]: never learned")
    batch = np.vstack([X[:2], STRANGER, X[2:3], STRANGER])
    refuses(model, lambda m: m.forget(batch, t[:5]), r"remove_X\[2\]")
    refuses(model, lambda m: m.forget(X[40:60], t[40:60]), r"remove_X\[9\] and 10 more")
    refuses(model, lambda m: m.forget(X[:1], t[:1], [2.0]), "with their target and sample_weight")
    refuses(model, lambda m: m.forget(np.nextafter(X[:1], 9.0), t[:1]), "to the last bit")
    other = [(t[0] + 1) % 3] if kind is LSSVC else [np.nextafter(t[0], 9.0)]
    refuses(model, lambda m: m.forget(X[:1], other), "never learned")
    assert model.forget(X[:1], t[:1]).certificate().ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_unlearned_once_and_an_equal_row_as_often_as_it_was_learned(kind):
    t = target(kind)
    model = taught(kind)
    refuses(model, lambda m: m.forget(X[[3, 3]], t[[3, 3]]), r"remove_X\[1\]: never learned, or un")
    model.forget(X[3:4], t[3:4])
    refuses(model, lambda m: m.forget(X[3:4], t[3:4]), "unlearned already")
    model.partial_fit(X[[3, 3, 3]], t[[3, 3, 3]])
    refuses(model, lambda m: m.forget(X[[3, 5, 3, 3, 3]], t[[3, 5, 3, 3, 3]]), r"remove_X\[4\]")
    model.forget(X[[3, 3]], t[[3, 3]]).forget(X[3:4], t[3:4])
    refuses(model, lambda m: m.forget(X[3:4], t[3:4]), "unlearned already")


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_keeps_the_hashes_in_step(kind):
    t = target(kind)
    model = taught(kind)
    model.revise(X[:2], t[:2], X[50:52], t[50:52])
    refuses(model, lambda m: m.revise(X[:1], t[:1], X[52:53], t[52:53]), "unlearned already")
    model.update(X[:2], t[:2], remove_X=X[50:52], remove_y=t[50:52])
    # what comes in a step cannot leave in it
    refuses(
        model,
        lambda m: m.update(X[55:56], t[55:56], remove_X=X[55:56], remove_y=t[55:56]),
        "never learned",
    )
    model.retune(rho=3.0)
    model.update()
    assert len(model._hashes) == model.n_samples_ == 40
    salt = model._hashes._parts[0].salt
    model.forget(X[:40], t[:40])
    assert len(model._hashes) == 0
    model.partial_fit(X[:9], t[:9])
    assert model._hashes._parts[0].salt != salt  # nothing is left of what was forgotten
    assert model.forget(X[:2], t[:2]).n_samples_ == 7


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_equal_has_one_hash(kind):
    t = target(kind)
    rows = np.round(X)
    rows[0] = [0.0, 1.0, 255.0]
    rows[1] = [0.0, 1.0, 256.0]
    model = kind(remember="hashes").fit(sp.csr_array(rows), t, sample_weight=np.ones(60))
    rows[rows == 0.0] = -0.0
    given = t.astype(float) if kind is LSSVC else t
    model.forget(rows[:20].astype(np.float32), given[:20])
    model.forget(np.asfortranarray(rows[20:40]), given[20:40])
    model.forget(sp.csc_array(rows[40:55]), list(given[40:55]))
    assert model.n_samples_ == 5


def test_labels_are_told_apart():
    labels = np.array(["1", "s1", "n1", "1n"])[np.arange(8) % 4]
    model = LSSVC(remember="hashes").fit(X[:8], labels)
    refuses(model, lambda m: m.forget(X[:1], ["n1"]), "never learned")
    assert model.forget(X[:1], ["1"]).n_samples_ == 7


def test_several_values_and_a_feature_map():
    both = np.column_stack([VALUES, X[:, 0]])
    model = LSSVR(remember="hashes", feature_map=Polynomial(degree=2)).fit(X, both)
    refuses(model, lambda m: m.forget(X[:1], both[:1, ::-1]), "never learned")
    assert model.forget(X[:7], both[:7]).n_samples_ == 53


def test_behind_a_transformer_it_is_the_transformed_rows_that_count():
    pipeline = make_pipeline(StandardScaler(), LSSVC(remember="hashes")).fit(X, Y)
    scaled, model = pipeline[0].transform(X), pipeline[1]
    refuses(model, lambda m: m.forget(X[:1], Y[:1]), "never learned")
    assert model.forget(scaled[:1], Y[:1]).n_samples_ == 59


@pytest.mark.parametrize("kind", KINDS)
def test_merged_models_keep_the_hashes_of_both(kind):
    t = target(kind)
    one, other = taught(kind), kind(remember="hashes").fit(X[30:], t[30:])
    kept = copy.deepcopy(other)
    one.merge(other)  # rows 30 ... 39 are in both
    assert len(one._hashes) == one.n_samples_ == 70
    one.forget(X[[0, 35, 35, 59]], t[[0, 35, 35, 59]])
    refuses(one, lambda m: m.forget(X[[35]], t[[35]]), "unlearned already")
    one.partial_fit(X[[0, 35]], t[[0, 35]])
    refuses(one, lambda m: m.subtract(other), "other has 2 rows whose hashes are not among those")
    one.merge(kept.forget(X[30:59], t[30:59]))  # the same salt again
    assert len(one._hashes._parts) == 2
    one.subtract(kept)
    assert len(one._hashes) == one.n_samples_
    stranger = kind(remember="hashes").fit(X[:5], t[:5])
    refuses(one, lambda m: m.subtract(stranger), "forget its rows")
    with pytest.raises(ValueError, match="remember=None of other is not remember='hashes'"):
        one.merge(kind().fit(X, t))
    with pytest.raises(ValueError, match="either both remember their rows or neither"):
        kind().fit(X, t).merge(one)


def test_what_was_merged_can_be_subtracted_and_leaves_no_salt():
    one, other = taught(LSSVC), LSSVC(remember="hashes").fit(X[40:], Y[40:])
    one.merge(other).subtract(other)
    assert len(one._hashes._parts) == 1 and len(one._hashes) == 40
    one.merge(other).forget(X[40:], Y[40:])
    assert len(one._hashes) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_hashes_go_with_copies_and_files(kind, tmp_path):
    t = target(kind)
    model = taught(kind).merge(kind(remember="hashes").fit(X[40:], t[40:])).forget(X[:3], t[:3])
    model.save(tmp_path / "m.adiabat")
    loaded = adiabat.load(tmp_path / "m.adiabat")
    for twin in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        refuses(twin, lambda m: m.forget(X[2:5], t[2:5]), r"remove_X\[0\]: never")
        twin.forget(X[3:50], t[3:50])
        assert len(twin._hashes) == twin.n_samples_ == 10
    assert clone(model).remember == "hashes" and not hasattr(clone(model), "_hashes")
    content = (tmp_path / "m.adiabat").read_bytes()
    assert not any(np.float64(number).tobytes() in content for number in X.ravel())


def test_models_of_the_same_rows_share_no_hash():
    one, other = taught(LSSVC), taught(LSSVC)
    hashes = [model._hashes.to_arrays()["row_hashes"].tolist() for model in (one, other)]
    assert len(set(hashes[0])) == 40 and not set(hashes[0]) & set(hashes[1])


def test_a_file_from_before_there_were_hashes_opens(tmp_path):
    LSSVC().fit(X, Y).save(tmp_path / "m.adiabat")
    manifest, arrays = read_archive(tmp_path / "m.adiabat")
    del manifest["parameters"]["remember"]
    write_archive(tmp_path / "m.adiabat", manifest, arrays)
    model = adiabat.load(tmp_path / "m.adiabat")
    assert model.remember is None and model.forget(X[:1], Y[:1]).certificate().ok


def test_altered_hashes_are_refused(tmp_path):
    taught(LSSVC).save(tmp_path / "m.adiabat")
    manifest, arrays = read_archive(tmp_path / "m.adiabat")
    for name, value in {
        "row_hashes": arrays["row_hashes"][:-1],
        "row_hash_salts": arrays["row_hash_salts"][:, :-1],
        "row_hash_counts": arrays["row_hash_counts"] + 1,
    }.items():
        write_archive(tmp_path / "x.adiabat", manifest, {**arrays, name: value})
        with pytest.raises(ModelFileError, match="hashes of the rows"):
            adiabat.load(tmp_path / "x.adiabat")
    del arrays["row_hashes"]
    write_archive(tmp_path / "x.adiabat", manifest, arrays)
    with pytest.raises(ModelFileError, match="not a sound model file"):
        adiabat.load(tmp_path / "x.adiabat")


def test_it_is_settled_at_fit():
    model = LSSVC().fit(X, Y)
    with pytest.raises(ValueError, match="remember='hashes' was None when the model was fitted"):
        model.set_params(remember="hashes").partial_fit(X, Y)
    with pytest.raises(ValueError, match="remember cannot be retuned"):
        model.set_params(remember=None).retune(remember="hashes")
    with pytest.raises(ValueError, match="remember"):
        LSSVC(remember="rows").fit(X, Y)


def test_rows_known_roughly_and_hashes_exclude_one_another():
    model = taught(LSSVR)
    with pytest.raises(ValueError, match="approximate=True"):
        model.forget(X[:1] + 1e-9, VALUES[:1], approximate=True)
    assert model.n_samples_ == 40


@pytest.mark.parametrize("kind", KINDS)
def test_rows_to_analyse_must_be_the_models_own(kind):
    t = target(kind)
    model = taught(kind)
    model.leave_one_out(X[:40], t[:40])
    model.cross_validate(X[:40], t[:40], cv=4)
    swapped = X[:40].copy()
    swapped[[0, 1], 0] = swapped[[1, 0], 0]  # the same sums
    with pytest.raises(NotLearnedError, match=r"X\[0\], X\[1\]: never learned"):
        model.leave_one_out(swapped, t[:40])


def test_a_store_of_a_model_that_remembers(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.insert(0, "id", [f"r{i}" for i in range(60)])
    table["label"] = Y
    table.to_csv(tmp_path / "rows.csv", index=False)
    store = adiabat.create_store(tmp_path / "s", "lssvc", label="label", remember="hashes")
    store.learn(tmp_path / "rows.csv")
    store.forget(["r3", "r7"])
    opened = adiabat.open_store(tmp_path / "s")
    assert len(opened.model._hashes) == 58
    assert opened.verify(retrain=True).ok


def test_hashes_are_a_multiset_whatever_their_bytes():
    """Few different hashes, some with zeros at their ends, against a Counter."""
    rng = np.random.default_rng(1)
    alphabet = np.array([bytes([a, 0, b]) + bytes(13) for a in range(4) for b in range(3)], "S16")
    part, counted = _Part(b"", np.empty(0, "S16")), Counter[Any]()
    for _ in range(200):
        chosen = alphabet[rng.integers(0, 12, rng.integers(0, 6))]
        if rng.random() < 0.5:
            part = part.with_hashes(chosen)
            counted.update(chosen.tolist())
        else:
            part, found = part.removing(chosen)
            for one, was in zip(chosen.tolist(), found.tolist(), strict=True):
                assert was == (counted[one] > 0)
                counted[one] -= was
        assert Counter(part.hashes.tolist()) == +counted
        assert np.array_equal(part.hashes, np.sort(part.hashes))
    assert len(RowHashes((part,))) == sum(counted.values())
