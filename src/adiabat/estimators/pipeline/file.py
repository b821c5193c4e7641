# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline as a model file: the machine's own content, the rows as given, the scaler.

The scaled rows are not written: they are computed again on reading, the same to the last bit. Of a
`StandardScaler` the sums are written; other transformers are described, and fitted again to the
rows, or, where they are held, given back what they held.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from adiabat.estimators.files.content import (
    ROWS,
    Arrays,
    Manifest,
    content_of,
    row_arrays,
    rows_from,
)
from adiabat.preprocessing.composition import fit_to, require_unlearnable
from adiabat.preprocessing.files import describe, rebuild, restore, statistics
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.preprocessing.sizes import require_affordable_transformers
from adiabat.preprocessing.tally import Tally, key_of
from adiabat.preprocessing.unlearning import as_json, from_json

_OF_THE_MACHINE = "machine."


def content(pipeline: Any) -> tuple[Manifest, Arrays]:
    """Manifest and arrays of a fitted pipeline."""
    machine, own = content_of(pipeline.estimator_)
    manifest: Manifest = {
        "mode": pipeline.mode,
        "machine": machine,
        "default_scaler": pipeline.scaler is None,
    }
    arrays: Arrays = {}
    if isinstance(pipeline.scaler_, StandardScaler):
        manifest["scaler"], arrays = pipeline.scaler_._to_file()
    else:
        manifest["transformers"] = describe(pipeline.scaler)
        manifest["at_positions"] = describe(pipeline.scaler_)
        if pipeline.mode == "held":
            manifest["held_statistics"], arrays = statistics(pipeline.scaler_)
    raw = pipeline._raw
    arrays.update({_OF_THE_MACHINE + name: own[name] for name in own if name not in ROWS})
    if raw.dtype == object:
        manifest["columns"] = _write_columns(raw, arrays)
        return manifest, arrays
    if sp.issparse(raw):
        manifest["shape"] = [int(side) for side in raw.shape]
    arrays.update(row_arrays(raw))
    return manifest, arrays


def machine_arrays(arrays: Arrays, scaler: Any, raw: Any) -> Arrays:
    """The arrays of the machine's own file, with the rows scaled."""
    own = {
        name.removeprefix(_OF_THE_MACHINE): array
        for name, array in arrays.items()
        if name.startswith(_OF_THE_MACHINE)
    }
    scaled = scaler.transform(raw)
    return own | row_arrays(sp.csr_array(scaled) if sp.issparse(scaled) else scaled)


def raw_rows(manifest: Manifest, arrays: Arrays) -> Any:
    """The rows as they were given; ValueError if they are not sound."""
    if "columns" in manifest:
        return _read_columns(manifest["columns"], arrays)
    if "scaler" in manifest or "X" not in arrays:
        return rows_from(manifest, arrays)
    X = arrays["X"]
    if X.ndim != 2 or X.dtype != np.float64 or np.isinf(X).any():  # transformers may fill gaps
        raise ValueError("the rows are not finite numbers")
    return X


def scaler_from(manifest: Manifest, arrays: Arrays, raw: Any, limit: int | None) -> tuple[Any, Any]:
    """The scaler as it was fitted, and as it was given; its rows take at most `limit` bytes."""
    if "scaler" in manifest:
        scaler = StandardScaler._from_file(manifest["scaler"], arrays, int(raw.shape[1]))
        default = manifest["default_scaler"]
        return scaler, None if default else StandardScaler(**scaler.get_params())
    given, fitted = rebuild(manifest["transformers"]), rebuild(manifest["at_positions"])
    require_unlearnable(given)
    require_unlearnable(fitted)
    require_affordable_transformers(fitted, raw, limit)
    weights = arrays[_OF_THE_MACHINE + "weight"]
    fitted = fit_to(fitted, raw, None if (weights == 1.0).all() else weights)
    if manifest["mode"] == "held":
        restore(fitted, manifest["held_statistics"], arrays, limit)
    return fitted, given


def _write_columns(raw: Any, arrays: Arrays) -> list[list[Any]]:
    """Rows of objects as places in the lists of values of their columns; these lists."""
    columns = []
    for j in range(raw.shape[1]):
        values = Tally().changed(raw[:, j], 1).values.tolist()
        place = {key_of(value): k for k, value in enumerate(values)}
        columns.append([as_json(value) for value in values])
        codes = [place[key_of(value)] for value in raw[:, j].tolist()]
        arrays[f"X_codes{j}"] = np.array(codes, dtype=np.int64)
    return columns


def _read_columns(columns: Any, arrays: Arrays) -> Any:
    raw = np.empty((len(arrays["X_codes0"]), len(columns)), dtype=object)
    for j, given in enumerate(columns):
        codes = arrays[f"X_codes{j}"]
        values = np.empty(len(given), dtype=object)
        values[:] = [from_json(value) for value in given]
        if codes.dtype != np.int64 or codes.shape != raw.shape[:1]:
            raise ValueError("the columns have the wrong shape or type")
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(values):
            raise ValueError("the columns have values that are not in the file")
        raw[:, j] = values[codes]
    return raw
