# SPDX-License-Identifier: BSD-3-Clause
"""What a model file holds: a manifest of plain values, and arrays.

An estimator says what it is (`_to_file`) and is made again from that (`_from_file`). What all of
them write alike is here: names of features, rows of features, parameters.
"""

from __future__ import annotations

import math
import os
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from adiabat.archive import write_archive
from adiabat.inputs import csr_from_parts
from adiabat.retention.policy import Policy, from_dict, to_dict

Manifest = dict[str, Any]
Arrays = dict[str, Any]

#: Names of the arrays that rows of features are written as.
ROWS = ("X", "X_data", "X_indices", "X_indptr")


def content_of(estimator: Any) -> tuple[Manifest, Arrays]:
    """Manifest and arrays of a fitted estimator."""
    from sklearn.utils.validation import check_is_fitted  # reading does without scikit-learn

    check_is_fitted(estimator)
    manifest, arrays = estimator._to_file()
    manifest["estimator"] = type(estimator).__name__
    if hasattr(estimator, "feature_names_in_"):
        manifest["feature_names_in"] = [str(name) for name in estimator.feature_names_in_]
    return manifest, arrays


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file, whole or not at all."""
    write_archive(path, *content_of(estimator))


def row_arrays(X: Any) -> Arrays:
    """The arrays of rows of features."""
    if sp.issparse(X):
        return {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr}
    return {"X": np.ascontiguousarray(X)}


def row_fields(X: Any) -> Manifest:
    """What the manifest says of rows of features."""
    if sp.issparse(X):
        return {"sparse": True, "shape": [int(side) for side in X.shape]}
    return {"sparse": False}


def rows_from(manifest: Manifest, arrays: Arrays) -> Any:
    """Rows of features; ValueError if they are not finite numbers of type float64."""
    if manifest.get("sparse", "X" not in arrays):
        X: Any = csr_from_parts(
            arrays["X_data"], arrays["X_indices"], arrays["X_indptr"], manifest["shape"], "X"
        )
    else:
        X = arrays["X"]
    values = X.data if sp.issparse(X) else X
    if X.ndim != 2 or X.dtype != np.float64 or not np.isfinite(values).all():
        raise ValueError("the rows are not finite numbers")
    return X


def name_features(estimator: Any, manifest: Manifest) -> None:
    """Set the names of features, if the file has them."""
    if "feature_names_in" in manifest:
        names = np.array(manifest["feature_names_in"], dtype=object)
        if names.shape != (estimator.n_features_in_,):
            raise ValueError("the names of the features are not as many as they")
        estimator.feature_names_in_ = names


def plain(name: str, value: Any) -> Any:
    """A parameter or label as JSON; a dictionary keeps its keys' types as a list of pairs."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}  # JSON has none
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [plain(name, item) for item in value]
    if isinstance(value, (dict, MappingProxyType)):
        return {"pairs": [[plain(name, key), plain(name, item)] for key, item in value.items()]}
    if isinstance(value, Policy):
        fields = to_dict(value)
        return {**fields, "parameters": plain(name, fields["parameters"])}
    raise TypeError(
        f"{name}={value!r} cannot be written to a model file, which holds plain values only; "
        "pickle the model instead"
    )


def plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON, by name."""
    return {name: plain(name, value) for name, value in values.items()}


def from_plain(value: Any) -> Any:
    """What `plain` was given."""
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return float(value["number"])
    if "policy" in value:
        return from_dict({**value, "parameters": from_plain(value["parameters"])})
    return {key: from_plain(item) for key, item in value["pairs"]}
