# SPDX-License-Identifier: BSD-3-Clause
"""Model files of the kernel least-squares machines: rows, targets, weights, ids and solution.

Kernel values and their inverse are derived again on reading, and the solution is judged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from adiabat.estimators.arguments.validation import require_square
from adiabat.estimators.files.content import (
    Arrays,
    Manifest,
    plain_values,
    row_arrays,
    row_fields,
    rows_from,
)
from adiabat.estimators.files.reading import report_fields, report_from
from adiabat.estimators.kernel_least_squares.model import KernelModel
from adiabat.estimators.ledger import Ledger
from adiabat.kernels import Kernel


def content(estimator: Any) -> tuple[Manifest, Arrays]:
    """Manifest and arrays of a fitted kernel least-squares estimator."""
    model: KernelModel = estimator._model
    manifest: Manifest = {
        "kernel": model.kernel.to_dict(),
        "parameters": plain_values(estimator.get_params()),
        "n_features_in": int(estimator.n_features_in_),
        "report": report_fields(estimator.last_update_),
        **row_fields(model.X),
    }
    arrays: Arrays = {
        **row_arrays(model.X),
        "y": model.y,
        "weight": model.weight,
        "heavy": model.heavy,
        "alpha": np.ascontiguousarray(model.machine.alpha),
        "bias": model.machine.bias,
        **model.ledger.to_arrays(),
    }
    if model.machine.rest.any():
        arrays["alpha_rest"] = np.ascontiguousarray(model.machine.rest)
    return manifest, arrays


def estimator_from(manifest: Manifest, arrays: Arrays, kind: type) -> Any:
    """The estimator that `content` was given; ValueError if it is inconsistent."""
    estimator = kind(**manifest["parameters"])
    estimator._validate_params()
    X = rows_from(manifest, arrays)
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
    return estimator
