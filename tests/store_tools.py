# SPDX-License-Identifier: BSD-3-Clause
"""Rows for the tests of stores and of the command line."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from adiabat.archive import pack_archive, unpack_archive
from adiabat.store.digests import canonical, sha256


def people(start, stop, seed=0):
    """Rows with ids, two numbers, a category and a label that follows from them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "name": [f"person-{i:05d}" for i in range(2000)],
            "income": rng.normal(size=2000),
            "age": rng.normal(size=2000),
            "colour": rng.choice(["red", "green", "blue"], size=2000),
        }
    )
    score = frame.income + 0.5 * frame.age + (frame.colour == "red")
    frame["good"] = np.where(score + 0.3 * rng.normal(size=2000) > 0.3, "yes", "no")
    return frame[start:stop].reset_index(drop=True)


def write_keys(folder, name):
    """Files of a new key and its public half, in PEM."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


def reseal(folder, change=None):
    """Write the log anew, so that every hash fits again; `change(seq, body)` may edit entries."""
    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection, connection:
        previous = "0" * 64
        found = connection.execute("SELECT seq, body FROM log ORDER BY seq").fetchall()
        for seq, text in found:
            body = json.loads(text)
            if change is not None:
                change(seq, body)
            body["previous"] = previous
            text = canonical(body)
            previous = sha256(text)
            connection.execute(
                "UPDATE log SET body = ?, hash = ? WHERE seq = ?", (text, previous, seq)
            )


def plant_model(folder, edit):
    """Put another model into a store, its log made to vouch for it: `edit(manifest, arrays)`."""
    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection, connection:
        (blob,) = connection.execute("SELECT model FROM state").fetchone()
        manifest, arrays = unpack_archive(blob, "planted")
        edit(manifest, arrays)
        blob = pack_archive(manifest, arrays)
        connection.execute("UPDATE state SET model = ?", (blob,))
        (last,) = connection.execute("SELECT max(seq) FROM log").fetchone()

    def vouch(seq, body):
        if seq == last:
            body["model"]["after"] = sha256(blob)

    reseal(folder, vouch)
