# SPDX-License-Identifier: BSD-3-Clause
"""Model files and stores as an attacker would write them: every checksum right, the content not."""

import sqlite3
from contextlib import closing

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import adiabat
from adiabat.archive import read_archive, write_archive
from adiabat.feature_maps import Polynomial, RandomFourier
from adiabat.store import records
from adiabat.store.digests import SetDigest
from store_tools import reseal

N, D = 40, 5
RNG = np.random.default_rng(0)
X = np.where(RNG.random((N, D)) < 0.5, RNG.normal(size=(N, D)), 0.0)
X[:, 0] = np.arange(N) % 2 + 0.25 * RNG.normal(size=N)
Y = np.arange(N) % 2


def _columns():
    """Numbers that are filled and scaled, others as categories, one as it is."""
    filled = make_pipeline(adiabat.SimpleImputer(), adiabat.StandardScaler())
    parts = [("filled", filled, [0]), ("kinds", adiabat.OneHotEncoder(), [1])]
    return adiabat.ColumnTransformer(parts, remainder="passthrough")


MODELS = {
    "svc": lambda X: adiabat.SVC(gamma=0.3).fit(X, Y),
    "svc three": lambda X: adiabat.SVC(gamma=0.3).fit(X, np.arange(N) % 3),
    "svc linear": lambda X: adiabat.SVC(kernel="linear").fit(X, Y),
    "svr": lambda X: adiabat.SVR(gamma=0.3).fit(X, Y),
    "one class": lambda X: adiabat.OneClassSVM(gamma=0.3).fit(X),
    "svdd": lambda X: adiabat.SVDD(gamma=0.3).fit(X),
    "lssvc": lambda X: adiabat.LSSVC().fit(X, Y),
    "lssvr": lambda X: adiabat.LSSVR(feature_map=RandomFourier(7, 0.5)).fit(X, Y),
    "lssvr poly": lambda X: adiabat.LSSVR(feature_map=Polynomial(2)).fit(X, Y),
    "lssvc scaled": lambda X: adiabat.LSSVC(feature_map=adiabat.StandardScaler()).fit(X, Y),
    "lssvr table": lambda X: adiabat.LSSVR(feature_map=_columns()).fit(X, Y),
    "kernel lssvc": lambda X: adiabat.KernelLSSVC(gamma=0.3).fit(X, Y),
    "kernel lssvr": lambda X: adiabat.KernelLSSVR(gamma=0.3).fit(X, Y),
    "pipeline": lambda X: adiabat.IncrementalPipeline(
        adiabat.SVC(), scaler=adiabat.StandardScaler(with_mean=not sp.issparse(X))
    ).fit(X, Y),
}


def saved(folder, name, sparse=False):
    """A model file as `save` writes it."""
    path = folder / f"{name}.adiabat"
    MODELS[name](sp.csr_array(X) if sparse else X).save(path)
    return path


def resealed(path, edit):
    """The file with its content edited, and every checksum made to fit again."""
    manifest, arrays = read_archive(path)
    edit(manifest, arrays)
    write_archive(path, manifest, arrays)
    return path


def sparse_store(folder, task="lssvc"):
    """A store of sparse rows."""
    store = adiabat.create_store(folder, task, label="y")
    store.learn(sp.csr_array(X), Y, ids=range(N))
    store.close()
    return store.path


def rewrite_rows(folder, edit):
    """Change the bytes of the rows' features; leaves, digests and log are made to fit again."""
    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection, connection:
        digest = SetDigest()
        found = connection.execute(
            "SELECT number, id, key, features, label, weight, entry FROM records ORDER BY number"
        ).fetchall()
        for number, name, key, features, label, weight, entry in found:
            record = records.Record(number, name, key, edit(features), label, weight, entry)
            digest.add([record.leaf])
            connection.execute(
                "UPDATE records SET features = ?, leaf = ? WHERE number = ?",
                (record.features, record.leaf, number),
            )
        connection.execute("UPDATE state SET dataset = ?", (digest.to_bytes(),))
        (last,) = connection.execute("SELECT max(seq) FROM log").fetchone()

    def vouch(seq, body):
        if seq == last:
            body["dataset"]["after"] = digest.hexdigest()

    reseal(folder, vouch)
