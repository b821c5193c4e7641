# SPDX-License-Identifier: BSD-3-Clause
"""Model files of the kernel least-squares machines: rows, targets, weights, ids and solution.

Kernel values and their inverse are derived again on reading, and the solution is judged.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from adiabat.archive import read_archive, write_archive
from adiabat.errors import ModelFileError, NotOptimalError
from adiabat.estimators.arguments.validation import require_square
from adiabat.estimators.files.reading import report_fields, report_from
from adiabat.estimators.kernel_least_squares.model import KernelModel
from adiabat.estimators.least_squares.files import plain
from adiabat.estimators.ledger import Ledger
from adiabat.inputs import csr_from_parts
from adiabat.kernels import Kernel


def save_state(path: str | os.PathLike[str], estimator: Any) -> None:
    """Write a fitted kernel least-squares estimator."""
    model: KernelModel = estimator._model
    manifest: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "kernel": model.kernel.to_dict(),
        "parameters": {name: plain(value) for name, value in estimator.get_params().items()},
        "n_features_in": int(estimator.n_features_in_),
        "report": report_fields(estimator.last_update_),
        "sparse": bool(sp.issparse(model.X)),
    }
    if hasattr(estimator, "feature_names_in_"):
        manifest["feature_names_in"] = [str(name) for name in estimator.feature_names_in_]
    arrays: dict[str, Any] = {
        "y": model.y,
        "weight": model.weight,
        "heavy": model.heavy,
        "alpha": np.ascontiguousarray(model.machine.alpha),
        "bias": model.machine.bias,
        **model.ledger.to_arrays(),
    }
    if model.machine.rest.any():
        arrays["alpha_rest"] = np.ascontiguousarray(model.machine.rest)
    if manifest["sparse"]:
        manifest["shape"] = [int(side) for side in model.X.shape]
        arrays.update(X_data=model.X.data, X_indices=model.X.indices, X_indptr=model.X.indptr)
    else:
        arrays["X"] = np.ascontiguousarray(model.X)
    write_archive(path, manifest, arrays)


def load_state(path: str | os.PathLike[str], kind: type) -> Any:
    """Read back what `save_state` wrote; `ModelFileError` if it does not hang together."""
    manifest, arrays = read_archive(path)
    name = os.fspath(path)
    if manifest.get("estimator") != kind.__name__:
        raise ModelFileError(
            f"{name!r} holds a {manifest.get('estimator')!r}, not a {kind.__name__}; "
            "open it with adiabat.load"
        )
    try:
        return _estimator_from(manifest, arrays, kind)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, NotOptimalError) as error:
        raise ModelFileError(
            f"{name!r} is not a sound model file ({error}); restore it from a copy, or save the "
            "model again"
        ) from error


def _estimator_from(manifest: dict[str, Any], arrays: dict[str, Any], kind: type) -> Any:
    estimator = kind(**manifest["parameters"])
    estimator._validate_params()
    X = _rows_from(manifest, arrays)
    y, weight, heavy = arrays["y"], arrays["weight"], arrays["heavy"]
    n = X.shape[0]
    ledger = Ledger.from_arrays(arrays)
    if y.shape[:1] != (n,) or weight.shape != (n,) or len(ledger) != n:
        raise ValueError("the arrays of the samples differ in length")
    if weight.dtype != np.float64 or not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
        raise ValueError("a weight is out of range")
    if X.shape[1] != int(manifest["n_features_in"]):
        raise ValueError("the number of features is not that of the rows")
    if heavy.dtype != np.int64 or not np.array_equal(np.sort(heavy), np.flatnonzero(weight > 0.0)):
        raise ValueError("the samples of the machine are not those with weight")
    kernel = Kernel.from_dict(manifest["kernel"])
    if kernel.name == "precomputed":
        require_square(X)
    estimator.n_features_in_, estimator.gamma_ = X.shape[1], kernel.gamma
    estimator._hold_parameters()
    model = estimator._careful(
        lambda: KernelModel.built(
            X, estimator._check_targets(y), weight, ledger, kernel, estimator._problem(), heavy
        )
    )
    machine = model.machine
    alpha, bias = arrays["alpha"], arrays["bias"]
    rest = arrays.get("alpha_rest", np.zeros_like(alpha))
    if alpha.shape != machine.alpha.shape or bias.shape != machine.bias.shape:
        raise ValueError("the solution has the wrong size")
    if rest.shape != alpha.shape or any(a.dtype != np.float64 for a in (alpha, rest, bias)):
        raise ValueError("the solution has the wrong size or type")
    estimator._model = replace(model, machine=machine.with_solution(alpha, rest, bias))
    certificate = estimator.certificate()
    if not certificate.ok:
        raise ValueError("the weights are not the solution on the rows")
    estimator._after_change()
    estimator.last_update_ = report_from(manifest["report"], certificate)
    if "feature_names_in" in manifest:
        estimator.feature_names_in_ = np.array(manifest["feature_names_in"], dtype=object)
    return estimator


def _rows_from(manifest: dict[str, Any], arrays: dict[str, Any]) -> Any:
    if manifest["sparse"]:
        X: Any = csr_from_parts(
            arrays["X_data"], arrays["X_indices"], arrays["X_indptr"], manifest["shape"], "X"
        )
        values = X.data
    else:
        X = values = arrays["X"]
    if X.ndim != 2 or X.dtype != np.float64 or not np.isfinite(values).all():
        raise ValueError("the rows are not finite numbers")
    return X
