# SPDX-License-Identifier: BSD-3-Clause
"""A fitted estimator as plain values and arrays, for pickles and for model files.

Written are the samples in the order of learning and, for each machine, u, b and the MARGIN rows.
Boxes, kernel columns and factors are derived again on reading, and the judge looks at the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adiabat.certificate import Verdict
from adiabat.engine.memory import allot, bytes_beside_columns, bytes_of
from adiabat.engine.snapshot import Snapshot
from adiabat.estimators.files.content import (
    Arrays,
    Manifest,
    from_plain,
    plain,
    plain_values,
    row_arrays,
    row_fields,
    rows_from,
)
from adiabat.estimators.files.reading import report_fields
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.ledger import Ledger
from adiabat.formulations import FORMULATIONS
from adiabat.inputs import MAX_TOL
from adiabat.kernels import Kernel

_ROW_ARRAYS = ("u", "margin")
# A file from before they existed leaves them at their defaults.
_LATER_PARAMETERS = {
    "retain", "shrinking", "cache_size", "verbose", "max_iter", "break_ties", "probability",
    "random_state", "calibration", "memory_limit",
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


def unpack(state: dict[str, Any], limit: float | None = None) -> Model:
    """The model of a packed state; kernel columns beyond a limit of memory are in a file."""
    formulation = state["formulation"]
    model = Model(state["kernel"], state["tol"], formulation, state["ledger"])
    model.target, model.weight = state["target"], state["weight"]
    model.notes = dict(state.get("notes", {}))
    if state["X"] is None:
        return model
    if limit is not None:
        rows = [len(kept["u"]) for kept in state["machines"]]
        margins = [len(kept["margin"]) for kept in state["machines"]]
        beside = bytes_beside_columns(bytes_of(state["X"]), sum(rows), margins)
        allot(model.solver.samples.gram, limit, beside)
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


def content(state: dict[str, Any]) -> tuple[Manifest, Arrays]:
    """Manifest and arrays of an estimator's state."""
    packed = state["_model"]
    own = {name: state[name] for name in state if not (name[0] == "_" or name[-1] == "_")}
    formulation = packed["formulation"]
    manifest: Manifest = {
        "kernel": packed["kernel"].to_dict(),
        "tol": packed["tol"],
        "formulation": {
            "name": formulation.name,
            **{name: plain("y", value) for name, value in formulation.to_dict().items()},
        },
        "parameters": plain_values(own),
        "held": plain_values(state["_held_parameters"]),
        "n_features_in": int(state["n_features_in_"]),
        "gamma": float(state["gamma_"]),
        "machines": [list(kept["key"]) for kept in packed["machines"]],
        "biases": [kept["b"] for kept in packed["machines"]],
        "report": report_fields(state["last_update_"]),
        **row_fields(packed["X"]),
    }
    arrays: Arrays = {
        "target": packed["target"],
        "weight": packed["weight"],
        **packed["ledger"].to_arrays(),
        **row_arrays(packed["X"]),
    }
    for number, kept in enumerate(packed["machines"]):
        arrays.update({f"machine{number}_{name}": kept[name] for name in _ROW_ARRAYS})
    return manifest, arrays


def state_from(manifest: Manifest, arrays: Arrays, parameters: set[str]) -> dict[str, Any]:
    """The state that `content` was given; ValueError if it is inconsistent."""
    if set(manifest["parameters"]) | (_LATER_PARAMETERS & parameters) != parameters:
        raise ValueError("its parameters are not those of the estimator")
    packed = packed_from(manifest, arrays)
    return {
        **{name: from_plain(value) for name, value in manifest["parameters"].items()},
        "_held_parameters": held_by(manifest),
        "_model": packed,
        "_checked_parameters": (),
        "gamma_": packed["kernel"].gamma,
        "n_features_in_": int(manifest["n_features_in"]),
    }


def packed_from(manifest: Manifest, arrays: Arrays) -> dict[str, Any]:
    """The packed model of a file's content; ValueError if it does not hang together."""
    fields = dict(manifest["formulation"])
    formulation = FORMULATIONS[fields.pop("name")].from_dict(fields)
    X = rows_from(manifest, arrays)
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
    _require_held(held_by(manifest), packed, set(manifest["parameters"]))
    return packed


def held_by(manifest: Manifest) -> dict[str, Any]:
    """The parameters that a file says have shaped its model."""
    return {name: from_plain(value) for name, value in manifest["held"].items()}


def _require_sound(packed: dict[str, Any]) -> None:
    """Refuse arrays that do not fit together, before anything indexes with them."""
    X, target, weight = packed["X"], packed["target"], packed["weight"]
    formulation = packed["formulation"]
    n = X.shape[0]
    if target.shape != (n,) or weight.shape != (n,) or len(packed["ledger"]) != n:
        raise ValueError("the arrays of the samples differ in length")
    if (weight.dtype, target.dtype) != (np.float64, formulation.target_type):
        raise ValueError("an array has the wrong type")
    if not np.isfinite(weight).all():
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
