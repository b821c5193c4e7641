# SPDX-License-Identifier: BSD-3-Clause
"""Stored rows as people read them: columns by name, categories as words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy.sparse as sp

from adiabat.store.records import Record, decode_features
from adiabat.store.settings import Settings


def described(record: Record, settings: Settings) -> dict[str, Any]:
    """A record as plain JSON."""
    return {
        "id": record.id,
        "number": record.number,
        "features": _columns(record, settings),
        "label": json.loads(record.label),
        "weight": record.weight,
        "entry": record.entry,
    }


def _columns(record: Record, settings: Settings) -> dict[str, Any]:
    X = decode_features([record.features], settings.n_features)
    if sp.issparse(X):
        return {str(j + 1): float(v) for j, v in zip(X.indices, X.data, strict=True)}
    row, at = X[0], 0
    found: dict[str, Any] = {}
    for column in settings.features or ():
        if column["kind"] == "number":
            found[column["name"]] = float(row[at])
            at += 1
            continue
        values = column["values"]
        chosen = np.flatnonzero(row[at : at + len(values)])
        found[column["name"]] = values[int(chosen[0])] if len(chosen) else None
        at += len(values)
    return found
