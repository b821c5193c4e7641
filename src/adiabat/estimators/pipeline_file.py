# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline as a model file: the machine's own content, the rows as given, the scaler's sums.

The scaled rows are not written: they are computed again on reading, the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from adiabat.archive import HeldArchive, read_archive, write_archive
from adiabat.errors import ModelFileError
from adiabat.estimators.scaled_machine import settings_of
from adiabat.inputs import csr_from_parts
from adiabat.preprocessing.composition import fit_to, require_unlearnable
from adiabat.preprocessing.files import describe, rebuild, restore, statistics
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.preprocessing.tally import Tally, key_of
from adiabat.preprocessing.unlearning import as_json, from_json

_ROWS = ("X", "X_data", "X_indices", "X_indptr")
_OF_THE_MACHINE = "machine."


class SavedPipeline:
    """Writing and reading of pipelines."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pipeline to a file: a zip of JSON and arrays, whole or not at all.

        :func:`adiabat.load` reads it back without running code.
        """
        check_is_fitted(self)
        state: Any = self
        held = HeldArchive(os.fspath(path))
        state.estimator_.save(held)
        manifest: dict[str, Any] = {
            "estimator": type(self).__name__,
            "mode": state.mode,
            "machine": held.manifest,
            "default_scaler": state.scaler is None,
        }
        arrays: dict[str, Any] = {}
        if isinstance(state.scaler_, StandardScaler):
            manifest["scaler"], arrays = state.scaler_._to_file()
        else:
            manifest["transformers"] = describe(state.scaler)
            manifest["at_positions"] = describe(state.scaler_)
            if state.mode == "held":
                manifest["held_statistics"], arrays = statistics(state.scaler_)
        if hasattr(self, "feature_names_in_"):
            manifest["feature_names_in"] = [str(name) for name in state.feature_names_in_]
        for name, array in held.arrays.items():
            if name not in _ROWS:
                arrays[_OF_THE_MACHINE + name] = array
        raw = state._raw
        if raw.dtype == object:
            _write_columns(raw, manifest, arrays)
        elif sp.issparse(raw):
            manifest["shape"] = [int(side) for side in raw.shape]
            arrays.update(X_data=raw.data, X_indices=raw.indices, X_indptr=raw.indptr)
        else:
            arrays["X"] = np.ascontiguousarray(raw)
        write_archive(path, manifest, arrays)

    @classmethod
    def _from_file(cls, path: str | os.PathLike[str], load: Callable[[Any], Any]) -> Any:
        """The pipeline of a file; `load` makes the machine of its content."""
        manifest, arrays = read_archive(path)
        try:
            raw = _rows_from(manifest, arrays)
            scaler, given = _scaler_from(manifest, arrays, raw)
            own = _machine_arrays(arrays, scaler, raw)
            machine = load(HeldArchive(os.fspath(path), manifest["machine"], own))
            pipeline: Any = cls.__new__(cls)
            pipeline.__dict__.update(
                estimator=type(machine)(**machine.get_params(deep=False)),
                scaler=given,
                mode=manifest["mode"],
                estimator_=machine,
                scaler_=scaler,
                _raw=raw,
                _held_mode=manifest["mode"],
                _held_scaler=settings_of(StandardScaler() if given is None else given),
                n_features_in_=int(raw.shape[1]),
            )
            pipeline._validate_params()
            if "feature_names_in" in manifest:
                names = np.array(manifest["feature_names_in"], dtype=object)
                if names.shape != (raw.shape[1],):
                    raise ValueError("the names of the features are not as many as they")
                pipeline.feature_names_in_ = names
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(
                f"{os.fspath(path)!r} is not a sound model file ({error}); restore it from a copy, "
                "or save the model again"
            ) from error
        return pipeline


def _scaler_from(manifest: dict[str, Any], arrays: dict[str, Any], raw: Any) -> tuple[Any, Any]:
    """The scaler as it was fitted, and as it was given."""
    if "scaler" in manifest:
        scaler = StandardScaler._from_file(manifest["scaler"], arrays, int(raw.shape[1]))
        default = manifest["default_scaler"]
        return scaler, None if default else StandardScaler(**scaler.get_params())
    given, fitted = rebuild(manifest["transformers"]), rebuild(manifest["at_positions"])
    require_unlearnable(given)
    require_unlearnable(fitted)
    weights = arrays[_OF_THE_MACHINE + "weight"]
    fitted = fit_to(fitted, raw, None if (weights == 1.0).all() else weights)
    if manifest["mode"] == "held":
        restore(fitted, manifest["held_statistics"], arrays)
    return fitted, given


def _write_columns(raw: Any, manifest: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Rows of objects: columns of numbers as arrays, others as numbers of their values."""
    manifest["columns"] = []
    for j in range(raw.shape[1]):
        tally = Tally().changed(raw[:, j], 1)
        place = {key_of(value): k for k, value in enumerate(tally.values.tolist())}
        manifest["columns"].append([as_json(value) for value in tally.values.tolist()])
        codes = [place[key_of(value)] for value in raw[:, j].tolist()]
        arrays[f"X_codes{j}"] = np.array(codes, dtype=np.int64)


def _read_columns(columns: Any, arrays: dict[str, Any]) -> Any:
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


def _rows_from(manifest: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The rows as they were given."""
    if "columns" in manifest:
        return _read_columns(manifest["columns"], arrays)
    if "X" in arrays:
        raw: Any = arrays["X"]
    else:
        raw = csr_from_parts(
            arrays["X_data"], arrays["X_indices"], arrays["X_indptr"], manifest["shape"], "X"
        )
    if raw.ndim != 2 or raw.dtype != np.float64:
        raise ValueError("the rows have the wrong shape or type")
    values = raw.data if sp.issparse(raw) else raw
    gaps = "scaler" not in manifest  # which transformers may fill
    if not (np.isfinite(values) | (np.isnan(values) & gaps)).all():
        raise ValueError("the rows have values that are not finite")
    return raw


def _machine_arrays(arrays: dict[str, Any], scaler: Any, raw: Any) -> dict[str, Any]:
    """The arrays of the machine's own file, with the rows scaled."""
    own = {
        name.removeprefix(_OF_THE_MACHINE): array
        for name, array in arrays.items()
        if name.startswith(_OF_THE_MACHINE)
    }
    scaled = scaler.transform(raw)
    if sp.issparse(scaled):
        scaled = sp.csr_array(scaled)
        own.update(X_data=scaled.data, X_indices=scaled.indices, X_indptr=scaled.indptr)
    else:
        own["X"] = scaled
    return own
