# SPDX-License-Identifier: BSD-3-Clause
"""Random bytes of a store or a model file changed: detected, or without any effect.

Half of the flips fall anywhere in the store's database, a quarter into the text of its log, a
quarter into a model file. `python tests/store/soaks/flips.py --flips 10000`.
"""

import argparse
import collections
import json
import os
import random
import shutil
import sqlite3
import tempfile

import numpy as np

import adiabat

TABLES = ("settings", "records", "state", "log", "commitments", "suppressed", "signatures")


def build(folder):
    """A store with a history, and a model file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    store = adiabat.create_store(folder, label="y", C=2.0, gamma=0.3)
    store.learn(X[:40], y[:40], ids=range(40))
    store.learn(X[40:], y[40:], ids=range(40, 60), reference="second")
    store.forget([3, 17, 45], reference="DSR-1")
    store.revise({"id": ["5"], "y": [int(1 - y[5])]})
    model = os.path.join(os.path.dirname(folder), "model.adiabat")
    store.model.save(model)
    store.close()
    return os.path.join(folder, "store.sqlite"), model


def content(database):
    """All that a store's tables hold (`purge` is a request, not content)."""
    connection = sqlite3.connect(database)
    try:
        found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    finally:
        connection.close()
    found["state"] = [row[:-1] for row in found["state"]]
    return found


def judge_store(folder, expected):
    try:
        result = adiabat.open_store(folder).verify()
    except adiabat.StoreError:
        return "detected on opening"
    if not result.ok:
        return "detected by verify"
    assert content(os.path.join(folder, "store.sqlite")) == expected, "altered and not noticed"
    return "harmless"


def judge_model(path, expected):
    try:
        model = adiabat.load(path)
    except adiabat.ModelFileError:
        return "detected on loading"
    probe = np.linspace(-2, 2, 30).reshape(10, 3)
    same = np.array_equal(model.decision_function(probe), expected.decision_function(probe))
    assert same and np.array_equal(model.ids_, expected.ids_), "altered and not noticed"
    return "harmless"


def log_places(data, database):
    """Where the text of the log's entries stands in the file."""
    places = []
    for (body,) in sqlite3.connect(database).execute("SELECT body FROM log"):
        piece = body.encode()[:400]
        at = data.find(piece)
        places += range(at, at + len(piece)) if at >= 0 else ()
    return places


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    verdicts = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        database, model_path = build(os.path.join(place, "model"))
        expected, expected_model = content(database), adiabat.load(model_path)
        data = {path: open(path, "rb").read() for path in (database, model_path)}
        places = log_places(data[database], database)
        assert len(places) > 1000
        folder = os.path.join(place, "flipped")
        for number in range(arguments.flips):
            path = model_path if number % 4 == 0 else database
            at = rng.choice(places) if number % 4 == 1 else rng.randrange(len(data[path]))
            altered = bytearray(data[path])
            altered[at] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(1, 256)
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            target = os.path.join(folder, os.path.basename(path))
            with open(target, "wb") as file:
                file.write(altered)
            where = {0: "model file", 1: "log"}.get(number % 4, "store")
            try:
                if path == model_path:
                    verdict = judge_model(target, expected_model)
                else:
                    verdict = judge_store(folder, expected)
            except BaseException as error:
                raise AssertionError(f"flip {number} of byte {at} in the {where}") from error
            verdicts[f"{where}: {verdict}"] += 1
    print(json.dumps(verdicts, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
