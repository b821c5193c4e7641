# SPDX-License-Identifier: BSD-3-Clause
"""Transformers as plain values and arrays, for model files.

A file names transformers and their parameters. What they learned from the rows that the file holds
is learned again on reading, to the last bit; what is held fixed from other rows is written, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import sklearn.preprocessing
from sklearn.compose import ColumnTransformer as _AnyColumns
from sklearn.pipeline import Pipeline

from adiabat.preprocessing.columns import ColumnTransformer
from adiabat.preprocessing.encoder import OneHotEncoder
from adiabat.preprocessing.imputer import SimpleImputer
from adiabat.preprocessing.scaler import StandardScaler
from adiabat.preprocessing.scalers import MinMaxScaler, RobustScaler
from adiabat.preprocessing.sizes import require_affordable_counts
from adiabat.preprocessing.unlearning import Unlearning

Arrays = dict[str, npt.NDArray[Any]]

# The file names a transformer; only these are ever made.
_KINDS: Final[dict[str, Any]] = {
    kind.__name__: kind
    for kind in (
        StandardScaler, MinMaxScaler, RobustScaler, SimpleImputer, OneHotEncoder,
        sklearn.preprocessing.Normalizer, sklearn.preprocessing.Binarizer,
        sklearn.preprocessing.PolynomialFeatures,
    )
}  # fmt: skip
# How many processes to start and what to print is not for a file to say.
_OF_THE_READER: Final = ("n_jobs", "verbose")
_TYPES: Final = {"float64": np.float64, "float32": np.float32, "int64": np.int64}


def describe(transformer: Any) -> Any:
    """Which transformer it is, as JSON."""
    if transformer is None or isinstance(transformer, str):
        return transformer
    if isinstance(transformer, Pipeline):
        return {"kind": "Pipeline", "steps": [[n, describe(step)] for n, step in transformer.steps]}
    if isinstance(transformer, ColumnTransformer):
        parameters = transformer.get_params(deep=False)
        parts = parameters.pop("transformers")
        return {
            "kind": "ColumnTransformer",
            "parts": [[name, describe(part), _columns(chosen)] for name, part, chosen in parts],
            "remainder": describe(parameters.pop("remainder")),
            "parameters": {name: _value(name, value) for name, value in parameters.items()},
        }
    kind = type(transformer).__name__
    if _KINDS.get(kind) is not type(transformer):
        raise TypeError(
            f"{kind} cannot be written to a model file, which holds {', '.join(_KINDS)}, and "
            "ColumnTransformer and Pipeline of them; pickle the model instead"
        )
    parameters = transformer.get_params(deep=False)
    return {
        "kind": kind,
        "parameters": {name: _value(name, value) for name, value in parameters.items()},
    }


def rebuild(described: Any) -> Any:
    """The transformer of a description, not fitted; ValueError if there is none such."""
    if described is None or described in ("passthrough", "drop"):
        return described
    kind = described["kind"]
    if kind == "Pipeline":
        return Pipeline([(str(name), rebuild(step)) for name, step in described["steps"]])
    parameters = {
        name: _given(value)
        for name, value in described["parameters"].items()
        if name not in _OF_THE_READER
    }
    if kind == "ColumnTransformer":
        parts = [(str(name), rebuild(part), columns) for name, part, columns in described["parts"]]
        parameters["remainder"] = rebuild(described["remainder"])
        return ColumnTransformer(parts, **parameters)
    if kind not in _KINDS:
        raise ValueError(f"the file has a transformer {kind!r} that this version does not know")
    transformer = _KINDS[kind](**parameters)
    transformer._validate_params()
    return transformer


def statistics(transformer: Any) -> tuple[list[Any], Arrays]:
    """What fitted transformers hold, in the order of `_holders`."""
    fields, arrays = [], {}
    for number, holder in enumerate(_holders(transformer)):
        found, own = holder._statistics()
        fields.append(found)
        arrays.update({f"scaler{number}_{name}": array for name, array in own.items()})
    return fields, arrays


def restore(
    transformer: Any, fields: Any, arrays: Mapping[str, npt.NDArray[Any]], limit: int | None = None
) -> None:
    """Give fitted transformers back what they held; it takes at most `limit` bytes."""
    holders = _holders(transformer)
    if len(holders) != len(fields):
        raise ValueError("the transformers of the file are not as many as their statistics")
    for number, (holder, found) in enumerate(zip(holders, fields, strict=True)):
        prefix = f"scaler{number}_"
        own = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        require_affordable_counts(own, limit)
        holder._restore(found, own)


def _holders(transformer: Any) -> list[Any]:
    """Those fitted transformers that hold statistics of rows, in the order of the columns."""
    if isinstance(transformer, Pipeline):
        return [holder for _, step in transformer.steps for holder in _holders(step)]
    if isinstance(transformer, _AnyColumns):
        return [holder for _, part, _ in transformer.transformers_ for holder in _holders(part)]
    if not isinstance(transformer, (StandardScaler, Unlearning)):
        return []
    return [transformer] if transformer.__sklearn_is_fitted__() else []  # it has no columns


def _columns(chosen: Any) -> Any:
    """Columns of a part as JSON."""
    if callable(chosen):
        raise TypeError(
            "columns chosen by a function cannot be written to a model file; name them, or pickle "
            "the model instead"
        )
    if isinstance(chosen, slice):
        raise TypeError(
            "columns given as a slice cannot be written to a model file; give a list of them"
        )
    return chosen if isinstance(chosen, (str, int)) else np.asarray(chosen).tolist()


def _value(name: str, value: Any) -> Any:
    """A parameter as JSON; what JSON has not under a name of its own."""
    if isinstance(value, float) and value != value:
        return {"float": "nan"}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return _value(name, value.item())
    if isinstance(value, type) and value.__name__ in _TYPES:
        return {"type": value.__name__}
    if isinstance(value, tuple):
        return {"tuple": [_value(name, item) for item in value]}
    if isinstance(value, (list, np.ndarray)):
        return [_value(name, item) for item in value]
    raise TypeError(f"{name}={value!r} cannot be written to a model file; pickle the model instead")


def _given(value: Any) -> Any:
    if isinstance(value, list):
        return [_given(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "float":
        return float(inner)
    if kind == "type":
        return _TYPES[inner]
    return tuple(_given(item) for item in inner)
