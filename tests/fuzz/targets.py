# SPDX-License-Identifier: BSD-3-Clause
"""What is done with a drawn input, and what may come of it.

Each target returns a word for what happened. An exception that was not promised goes through, and
is a fault; so is a `Fault`, which says that a promise was broken without one.
"""

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import adiabat
from adiabat.archive import pack_archive, read_archive, unpack_archive
from adiabat.store import records
from adiabat.store.digests import SetDigest, canonical, sha256
from store_tools import people, reseal, write_keys

from fuzz.inputs import SPARSE, STORES
from fuzz.models import MODELS
from hostile import tampering

#: What a model may take, and with it twice as much of the process.
DECLARED = 64 << 20


class Fault(AssertionError):
    """A promise that was broken."""


# -- edits ---------------------------------------------------------------------------------------


def places_in(document, above=()):
    """Paths to everything in a JSON document."""
    found = []
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        found.append((*above, key))
        if isinstance(value, (dict, list)):
            found += places_in(value, (*above, key))
    return found


def edit_json(document, edit):
    """Carry an edit out, in place."""
    verb, *arguments = edit
    paths = places_in(document)
    if not paths:
        return
    *above, last = paths[arguments[0] % len(paths)]
    holder = document
    for key in above:
        holder = holder[key]
    if verb == "set":
        holder[last] = arguments[1]
    elif verb == "drop":
        del holder[last]
    else:
        *above, other = paths[arguments[1] % len(paths)]
        second = document
        for key in above:
            second = second[key]
        if last in path_of(holder) and other in path_of(second):
            holder[last], second[other] = second[other], holder[last]


def path_of(holder):
    return holder if isinstance(holder, dict) else range(len(holder))


def edit_arrays(arrays, edit):
    """Carry an edit out on a dictionary of arrays."""
    verb, place, *arguments = edit
    names = sorted(arrays)
    name = names[place % len(names)]
    array = arrays[name]
    with np.errstate(all="ignore"):
        if verb == "entry" and array.size:
            changed = array.copy().reshape(-1)
            changed[arguments[0] % array.size] = arguments[1]
            changed = changed.reshape(array.shape)
        elif verb == "cut":
            changed = array.reshape(-1)[: arguments[0]]
        elif verb == "repeat":
            changed = np.concatenate([np.atleast_1d(array)] * arguments[0])
        elif verb == "scale":
            changed = (array * arguments[0]).astype(array.dtype)
        elif verb == "shift":
            changed = (array + arguments[0]).astype(array.dtype)
        elif verb == "table":
            changed = array[None] if arguments[0] else array[..., None]
        elif verb == "cast":
            changed = array.astype(arguments[0])
        elif verb == "fill":
            changed = np.full_like(array, arguments[0])
        elif verb == "reverse":
            changed = np.atleast_1d(array)[::-1]
        elif verb == "exchange":
            other = names[arguments[0] % len(names)]
            arrays[name], arrays[other] = arrays[other], array
            return
        else:
            return
    arrays[name] = np.ascontiguousarray(changed)


def edit_bytes(data, edits):
    """Bytes after edits."""
    for verb, place, *arguments in edits:
        at = place % (len(data) + 1)
        if verb == "byte" and data:
            at = place % len(data)
            data = data[:at] + bytes([arguments[0]]) + data[at + 1 :]
        elif verb == "cut":
            data = data[:at]
        elif verb == "insert":
            data = data[:at] + bytes.fromhex(arguments[0]) + data[at:]
        elif verb == "repeat":
            data = data[:at] + data[at : at + arguments[0]] * 2 + data[at + arguments[0] :]
    return data


def edit_model(manifest, arrays, edits):
    for kind, edit in edits:
        if kind == "json":
            edit_json(manifest, edit)
        else:
            edit_arrays(arrays, edit)


# What NumPy or JSON cannot even represent is no input.
UNWRITABLE = (TypeError, ValueError, OverflowError, KeyError, IndexError, MemoryError)


# -- targets -------------------------------------------------------------------------------------


class Bench:
    """The functions that try edited inputs; sound ones are made when first asked for."""

    def __init__(self, folder):
        self.folder = folder
        self.sound = {}

    # model files

    def model(self, drawn):
        """`load` gives a model that is sound and can be used, or raises ModelFileError."""
        text, sound = self._saved(drawn["model"], drawn["sparse"] and drawn["model"] in SPARSE)
        manifest, arrays = json.loads(text), {name: sound[name].copy() for name in sound}
        path = f"{self.folder}/drawn.adiabat"
        try:
            edit_model(manifest, arrays, drawn["edits"])
            data = edit_bytes(pack_archive(manifest, arrays), drawn["bytes"])
        except UNWRITABLE:
            return "cannot be written"
        with open(path, "wb") as file:
            file.write(data)
        try:
            model = adiabat.load(path, max_bytes=DECLARED)
        except adiabat.ModelFileError as error:
            if "MemoryError" in str(error):
                raise Fault(str(error)) from error
            return "refused"
        return self._use(model)

    def _saved(self, name, sparse):
        """Manifest, as text, and arrays of a sound model file."""
        if (name, sparse) not in self.sound:
            path = f"{self.folder}/sound.adiabat"
            rows = sp.csr_array(tampering.X) if sparse else tampering.X
            MODELS[name](rows).save(path)
            manifest, arrays = read_archive(path)
            self.sound[name, sparse] = json.dumps(manifest), arrays
        return self.sound[name, sparse]

    def _use(self, model):
        if not model.last_update_.certificate.ok:
            raise Fault("a model came back that is not the optimum")
        try:
            probe = np.zeros((3, min(int(model.n_features_in_), 100_000)))
            if getattr(model, "kernel", "") == "precomputed":
                return "loaded"
            model.predict(probe)
            if hasattr(model, "ids_"):
                model.forget(model.ids_[:1])
        except (ValueError, adiabat.AdiabatError):
            return "loaded, and then an error"
        return "loaded"

    # CSR arrays

    @cached_property
    def _fitted(self):
        rows = sp.csr_array(tampering.X)
        return (
            adiabat.SVC(gamma=0.3).fit(rows, tampering.Y),
            adiabat.LSSVC().fit(rows, tampering.Y),
            adiabat.KernelLSSVC(gamma=0.3).fit(rows, tampering.Y),
            adiabat.StandardScaler(with_mean=False).fit(rows),
        )

    def csr(self, drawn):
        """Every entry takes a sparse matrix that is sound, and raises ValueError on another."""
        X = sp.csr_array(tampering.X).asformat(drawn["format"])
        names = {"coo": ("data", "row", "col")}.get(drawn["format"], ("data", "indices", "indptr"))
        arrays = {name: getattr(X, name).copy() for name in names}
        try:
            for edit in drawn["edits"]:
                edit_arrays(arrays, edit)
            if drawn["format"] == "coo":
                X.data, X.coords = arrays["data"], (arrays["row"], arrays["col"])
            else:
                X.data, X.indices, X.indptr = (arrays[name] for name in names)
            if drawn["shape"] is not None:
                X._shape = tuple(drawn["shape"])
        except UNWRITABLE:
            return "cannot be made"
        svc, lssvc, kernel, scaler = self._fitted
        count = X.shape[0] if 0 <= X.shape[0] <= 1000 else tampering.N
        y = np.arange(count) % 2
        verdicts = set()
        for entry in (
            svc.predict, lssvc.predict, kernel.predict, scaler.transform,
            lambda X: adiabat.SVC(gamma=0.3).fit(X, y),
            lambda X: adiabat.SVC(kernel="laplacian", gamma=0.3).fit(X, y),
        ):  # fmt: skip
            try:
                entry(X)
                verdicts.add("taken")
            except (ValueError, TypeError, adiabat.AdiabatError):
                verdicts.add("refused")
        return " and ".join(sorted(verdicts))

    # tables

    @cached_property
    def _learners(self):
        """Sound tables in the folder; stores that learn named columns, and sparse rows."""
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.parquet

        rows = people(60, 70)
        place = f"{self.folder}/good"
        rows.to_csv(f"{place}.csv", index=False)
        rows.to_csv(f"{place}.tsv", index=False, sep="\t")
        with gzip.open(f"{place}.csv.gz", "wb") as file:
            file.write(rows.to_csv(index=False).encode())
        table = pa.Table.from_pandas(rows, preserve_index=False)
        pyarrow.parquet.write_table(table, f"{place}.parquet")
        pyarrow.feather.write_feather(table, f"{place}.feather")
        lines = [f"{k % 2} 1:{k} 3:0.5 # id{k}\n" for k in range(10)]
        with open(f"{place}.svmlight", "w") as file:
            file.writelines(lines)
        named = adiabat.create_store(
            f"{self.folder}/named", id="name", label="good", categories={"colour": None}, gamma=0.5
        )
        named.learn(people(0, 20))
        sparse = adiabat.create_store(f"{self.folder}/wide", label="y", gamma=0.5)
        sparse.learn(sp.csr_array(np.eye(6)), np.arange(6) % 2, ids=range(6))
        return named, sparse

    def table(self, drawn):
        """A file is learned, or refused with an error that is one of ours."""
        named, sparse = self._learners
        name = drawn["name"]
        path = f"{self.folder}/drawn-{name}"
        if "text" in drawn:
            data = "".join(drawn["text"]).encode("utf-8", "surrogatepass")
        else:
            with open(f"{self.folder}/{name}", "rb") as file:
                data = edit_bytes(file.read(), drawn["edits"])
        with open(path, "wb") as file:
            file.write(data)
        store = sparse if name.endswith("svmlight") else named
        verdicts = set()
        for verb in (lambda: store.learn(path, dry_run=True), lambda: store.predict(path),
                     lambda: store.revise(path, dry_run=True)):  # fmt: skip
            try:
                verb()
                verdicts.add("taken")
            except adiabat.AdiabatError:
                verdicts.add("refused")
            except ValueError:
                verdicts.add("refused by the estimator")
        return " and ".join(sorted(verdicts))

    # stores

    @cached_property
    def _sealed(self):
        """Folders of sound stores, by name."""
        folders = {name: f"{self.folder}/store-{name}" for name in STORES}
        private, _ = write_keys(Path(self.folder), "key")
        rows = people(0, 24)
        plain = rows.drop(columns="colour")
        for name, settings, given in (
            ("svc", {"categories": {"colour": None}, "gamma": 0.5}, rows),
            ("lssvc", {"task": "lssvc"}, plain),
            ("scaled", {"scale": "exact"}, plain),
            ("signed", {"signing_key": private}, plain),
        ):
            store = adiabat.create_store(folders[name], id="name", label="good", **settings)
            store.learn(given)
            store.forget("person-00003", reference="DSR-1")
        store = adiabat.create_store(folders["sparse"], "kernel-lssvc", label="y")
        store.learn(sp.csr_array(tampering.X), tampering.Y, ids=range(tampering.N))
        return folders

    def store(self, drawn):
        """A store can be used, or raises StoreError; `verify` says so and does not raise."""
        folder = f"{self.folder}/drawn"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._sealed[drawn["store"]], folder)
        try:
            if "bytes" in drawn:
                with open(f"{folder}/store.sqlite", "r+b") as file:
                    data = edit_bytes(file.read(), drawn["bytes"])
                    file.seek(0)
                    file.write(data)
                    file.truncate(len(data))
            else:
                for edit in drawn["edits"]:
                    _edit_store(folder, edit)
        except (*UNWRITABLE, sqlite3.Error):
            return "cannot be written"
        try:
            store = adiabat.open_store(folder)
        except adiabat.StoreError:
            return "refused"
        with closing(store):
            return self._use_store(store)

    def _use_store(self, store):
        found = store.verify()
        verdicts = {"verified" if found.ok else "does not verify"}
        for verb in (
            store.info, store.log, store.rows, lambda: store.ids,
            lambda: store.forget(store.ids[:1], dry_run=True),
            store.leave_one_out, lambda: store.receipt("DSR-1"), store.repair,
        ):  # fmt: skip
            try:
                verb()
            except (adiabat.StoreError, adiabat.NotOptimalError, adiabat.IdError):
                verdicts.add("refused")
            except ValueError:
                if not found.ok:
                    raise
                verdicts.add("refused by the estimator")
        return " and ".join(sorted(verdicts))


def _edit_store(folder, edit):
    """Carry an edit out, and make every digest fit again."""
    kind, *arguments = edit
    fields = {}
    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection, connection:
        (last,) = connection.execute("SELECT max(seq) FROM log").fetchone()
        if kind == "settings":
            (text,) = connection.execute("SELECT body FROM settings").fetchone()
            body = json.loads(text)
            edit_json(body, arguments[0])
            text = canonical(body)
            connection.execute("UPDATE settings SET body = ?", (text,))
            fields["settings"] = sha256(text)
        elif kind == "model":
            (blob,) = connection.execute("SELECT model FROM state").fetchone()
            manifest, arrays = unpack_archive(blob, "drawn")
            edit_model(manifest, arrays, [arguments[0]])
            blob = pack_archive(manifest, arrays)
            connection.execute("UPDATE state SET model = ?", (blob,))
            fields["model"] = sha256(blob)
        elif kind == "state":
            columns = ("entry", "model", "dataset", "suppressed", "next_number", "purge")
            column = columns[arguments[0] % len(columns)]
            connection.execute(f"UPDATE state SET {column} = ?", (arguments[1],))
        elif kind != "entry":
            fields["dataset"] = _edit_record(connection, kind, *arguments)

    def vouch(seq, body):
        if kind == "entry" and seq == 1 + arguments[0] % last:
            edit_json(body, arguments[1])
        if seq == last:
            for name, digest in fields.items():
                if name == "settings":
                    body["settings"] = digest
                else:
                    body[name]["after"] = digest

    reseal(folder, vouch)


def _edit_record(connection, kind, place, value):
    found = connection.execute(
        "SELECT number, id, key, features, label, weight, entry FROM records ORDER BY number"
    ).fetchall()
    digest = SetDigest()
    for row, (number, name, key, features, label, weight, entry) in enumerate(found):
        if row == place % len(found):
            if kind == "features":
                features = edit_bytes(features, [value])
            elif kind == "label":
                label = canonical(value)
            elif kind == "weight":
                weight = float(value)
            else:
                name = value
        record = records.Record(number, name, key, features, label, weight, entry)
        digest.add([record.leaf])
        connection.execute(
            "UPDATE records SET id = ?, features = ?, label = ?, weight = ?, leaf = ? "
            "WHERE number = ?",
            (name, features, label, weight, record.leaf, number),
        )
    connection.execute("UPDATE state SET dataset = ?", (digest.to_bytes(),))
    return digest.hexdigest()
