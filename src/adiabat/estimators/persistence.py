# SPDX-License-Identifier: BSD-3-Clause
"""A fitted estimator as plain values and arrays, for pickles and for model files.

Written are the samples in the order of learning and, for each machine, u, b and the MARGIN rows.
Boxes, kernel columns and factors are derived again on reading, and the judge looks at the result.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from adiabat.archive import read_archive, write_archive
from adiabat.certificate import Verdict
from adiabat.engine.machine import Snapshot
from adiabat.errors import ModelFileError
from adiabat.estimators.ledger import Ledger
from adiabat.estimators.model import Model
from adiabat.estimators.reading import report_fields
from adiabat.estimators.validation import MAX_TOL
from adiabat.formulations import FORMULATIONS
from adiabat.inputs import csr_from_parts
from adiabat.kernels import Kernel
from adiabat.retention.policy import Policy, from_dict, to_dict

_ROW_ARRAYS = ("u", "margin")
# A file from before they existed leaves them at their defaults.
_LATER_PARAMETERS = {
    "retain", "shrinking", "cache_size", "verbose", "max_iter", "break_ties", "probability",
    "random_state", "calibration",
}  # fmt: skip


def pack(model: Model) -> dict[str, Any]:
    """A model as a dictionary of plain values and arrays."""
    state: dict[str, Any] = {
        "kernel": model.kernel,
        "tol": model.solver.tol,
        "formulation": model.formulation,
        "ledger": model.ledger.copy(),
        "target": model.target.copy(),
        "weight": model.weight.copy(),
        "notes": dict(model.notes),
        "machines": [],  # a list: skops writes no tuples as keys
    }
    if model.kernel.name == "precomputed":
        state["X"] = model.given_kernel() if len(model) else None
    else:
        state["X"] = model.features(np.arange(len(model))) if len(model) else None
    for key, machine in model.machines:
        order, margin = model.in_order(machine)
        kept = {"key": key, "u": machine.u[order], "margin": margin, "b": machine.b}
        state["machines"].append(kept)
    return state


def unpack(state: dict[str, Any]) -> Model:
    """The model of a packed state."""
    formulation = state["formulation"]
    model = Model(state["kernel"], state["tol"], formulation, state["ledger"])
    model.target, model.weight = state["target"], state["weight"]
    model.notes = dict(state.get("notes", {}))
    if state["X"] is None:
        return model
    model.position = model.solver.samples.add(state["X"])
    own = model.solver.samples.diagonal[model.position]
    for kept in state["machines"]:
        key = tuple(kept["key"])
        rows = formulation.rows(key, model.target, model.weight, own)
        d = formulation.total(key, model.target, model.weight)
        snapshot = Snapshot(
            model.position[rows.sample], rows.t, rows.lo, rows.hi, kept["u"], np.zeros(len(rows.t)),
            kept["margin"], kept["b"], d, Verdict(),
        )  # fmt: skip
        model.solver.restore_machine(key, snapshot)
    return model


def save_state(path: str | os.PathLike[str], estimator: str, state: dict[str, Any]) -> None:
    """Write an estimator's state to a model file."""
    packed = state["_model"]
    manifest: dict[str, Any] = {
        "estimator": estimator,
        "kernel": packed["kernel"].to_dict(),
        "tol": packed["tol"],
        "formulation": {
            "name": packed["formulation"].name,
            **{name: _plain("y", value) for name, value in packed["formulation"].to_dict().items()},
        },
        "parameters": {
            name: _plain(name, value)
            for name, value in state.items()
            if not name.startswith("_") and not name.endswith("_")
        },
        "held": {name: _plain(name, value) for name, value in state["_held_parameters"].items()},
        "n_features_in": int(state["n_features_in_"]),
        "gamma": float(state["gamma_"]),
        "machines": [list(kept["key"]) for kept in packed["machines"]],
        "biases": [kept["b"] for kept in packed["machines"]],
        "report": report_fields(state["last_update_"]),
        "sparse": sp.issparse(packed["X"]),
    }
    arrays: dict[str, Any] = {
        "target": packed["target"],
        "weight": packed["weight"],
        **packed["ledger"].to_arrays(),
    }
    if "feature_names_in_" in state:
        manifest["feature_names_in"] = [str(name) for name in state["feature_names_in_"]]
    X = packed["X"]
    if sp.issparse(X):
        manifest["shape"] = [int(side) for side in X.shape]
        arrays.update(X_data=X.data, X_indices=X.indices, X_indptr=X.indptr)
    else:
        arrays["X"] = np.ascontiguousarray(X)
    for number, kept in enumerate(packed["machines"]):
        arrays.update({f"machine{number}_{name}": kept[name] for name in _ROW_ARRAYS})
    write_archive(path, manifest, arrays)


def load_state(
    path: str | os.PathLike[str], estimator: str, parameters: set[str]
) -> dict[str, Any]:
    """Read back what `save_state` wrote; `ModelFileError` if it does not hang together."""
    manifest, arrays = read_archive(path)
    if manifest.get("estimator") != estimator:
        raise ModelFileError(
            f"{os.fspath(path)!r} holds a {manifest.get('estimator')!r}, not a {estimator}; "
            "open it with adiabat.load"
        )
    try:
        if set(manifest["parameters"]) | (_LATER_PARAMETERS & parameters) != parameters:
            raise ValueError("its parameters are not those of the estimator")
        return _state_from(manifest, arrays)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a sound model file ({error}); restore it from a copy, "
            "or save the model again"
        ) from error


def _state_from(manifest: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    fields = dict(manifest["formulation"])
    formulation = FORMULATIONS[fields.pop("name")].from_dict(fields)
    if manifest["sparse"]:
        X: Any = csr_from_parts(
            arrays["X_data"], arrays["X_indices"], arrays["X_indptr"], manifest["shape"], "X"
        )
    else:
        X = arrays["X"]
    machines = []
    for number, key in enumerate(manifest["machines"]):
        kept = {name: arrays[f"machine{number}_{name}"] for name in _ROW_ARRAYS}
        machines.append({"key": tuple(key), "b": float(manifest["biases"][number]), **kept})
    packed = {
        "kernel": Kernel.from_dict(manifest["kernel"]),
        "tol": float(manifest["tol"]),
        "formulation": formulation,
        "ledger": Ledger.from_arrays(arrays),
        "target": arrays["target"],
        "weight": arrays["weight"],
        "X": X,
        "machines": machines,
    }
    _require_sound(packed)
    if int(manifest["n_features_in"]) != X.shape[1]:
        raise ValueError("the number of features is not that of the rows")
    held = _unplain_all(manifest["held"])
    _require_held(held, packed, set(manifest["parameters"]))
    state: dict[str, Any] = {
        **_unplain_all(manifest["parameters"]),
        "_held_parameters": held,
        "_model": packed,
        "_checked_parameters": (),
        "gamma_": packed["kernel"].gamma,
        "n_features_in_": int(manifest["n_features_in"]),
        "last_update_": manifest["report"],  # until the judge has looked at the model
    }
    if "feature_names_in" in manifest:
        state["feature_names_in_"] = np.array(manifest["feature_names_in"], dtype=object)
    return state


def _require_sound(packed: dict[str, Any]) -> None:
    """Refuse arrays that do not fit together, before anything indexes with them."""
    X, target, weight = packed["X"], packed["target"], packed["weight"]
    formulation = packed["formulation"]
    n = X.shape[0]
    if target.shape != (n,) or weight.shape != (n,) or len(packed["ledger"]) != n or X.ndim != 2:
        raise ValueError("the arrays of the samples differ in length")
    types = (X.dtype, weight.dtype, target.dtype)
    if types != (np.float64, np.float64, formulation.target_type):
        raise ValueError("an array has the wrong type")
    if not (np.isfinite(X.data if sp.issparse(X) else X).all() and np.isfinite(weight).all()):
        raise ValueError("an array has values that are not finite")
    if (n and weight.min() < 0.0) or not 0.0 < packed["tol"] <= MAX_TOL:
        raise ValueError("a weight or tol is out of range")
    formulation.require_sound(target)
    keys = [kept["key"] for kept in packed["machines"]]
    if len(set(keys)) < len(keys) or set(keys) != set(formulation.machines(target)):
        raise ValueError("the machines are not those of the targets")
    for kept in packed["machines"]:
        m = len(formulation.rows(kept["key"], target, weight, np.zeros(n)).t)
        u, margin = kept["u"], kept["margin"]
        if u.shape != (m,) or u.dtype != np.float64 or not np.isfinite(u).all():
            raise ValueError("the weights of a machine are not sound")
        if margin.ndim != 1 or margin.dtype != np.int64 or len(np.unique(margin)) != len(margin):
            raise ValueError("the margin of a machine is not sound")
        if len(margin) and not (margin.min() >= 0 and margin.max() < m):
            raise ValueError("a margin row is out of range")
        if not np.isfinite(kept["b"]):
            raise ValueError("a bias is not finite")


def _require_held(held: dict[str, Any], packed: dict[str, Any], parameters: set[str]) -> None:
    """Refuse parameters said to have shaped the model that are not those of its problem."""
    kernel, formulation = packed["kernel"], packed["formulation"]
    if not set(held) <= parameters:
        raise ValueError("parameters are held that the estimator does not have")
    shape = {"kernel": kernel.name, "degree": kernel.degree, "coef0": kernel.coef0}
    shape |= {name: getattr(formulation, name, None) for name in ("C", "epsilon", "nu")}
    for name, value in shape.items():
        if value is not None and name in held and held[name] != value:
            raise ValueError(f"the model has another {name} than is held")


def _plain(name: str, value: Any) -> Any:
    """A parameter or label as JSON; a dictionary keeps its keys' types as a list of pairs."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_plain(name, item) for item in value]
    if isinstance(value, (dict, MappingProxyType)):
        return {"pairs": [[_plain(name, key), _plain(name, item)] for key, item in value.items()]}
    if isinstance(value, Policy):
        fields = to_dict(value)
        return {**fields, "parameters": _plain(name, fields["parameters"])}
    raise TypeError(
        f"{name}={value!r} cannot be written to a model file, which holds plain values only; "
        "pickle the model instead"
    )


def _unplain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "policy" in value:
        return from_dict({**value, "parameters": _unplain(value["parameters"])})
    return {key: _unplain(item) for key, item in value["pairs"]}


def _unplain_all(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _unplain(value) for name, value in values.items()}
