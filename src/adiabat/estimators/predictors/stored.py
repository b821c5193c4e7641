# SPDX-License-Identifier: BSD-3-Clause
"""Predictors out of the content of a model file, without the estimator.

No solver is set up and scikit-learn is not imported, so that a program that only predicts starts
soon. Nothing is taken on trust: every kernel value is computed anew from the rows, and the judge
(`certificate.py`) looks at each machine. Predictors that need more than arrays are not made here:
those of least squares, of transformers other than `StandardScaler`, and of a calibration, whose
curves are fitted to leave-one-out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adiabat._core.conditions import strength_of, typical_size
from adiabat._core.kernel_values import multiply
from adiabat.certificate import Problem, judge
from adiabat.engine.noise import holders_of, usual_diagonal
from adiabat.engine.threads import pool_for
from adiabat.estimators.files.content import Arrays, Manifest, from_plain, row_arrays, rows_from
from adiabat.estimators.files.reading import require_affordable
from adiabat.estimators.kernel.model import BLOCK_ENTRIES
from adiabat.estimators.kernel.persistence import packed_from
from adiabat.estimators.predictors.answers import KernelPredictor, kernel_predictor
from adiabat.estimators.predictors.decider import Decider
from adiabat.preprocessing.standardization import Standardization
from adiabat.typing import FloatArray

_MACHINES: Final = ("SVC", "SVR", "OneClassSVM", "SVDD")
_PIPELINE: Final = "IncrementalPipeline"
_OF_THE_MACHINE: Final = "machine."


@dataclass(frozen=True)
class StoredPredictor:
    """A predictor out of a file, and what else the file says of it.

    Attributes
    ----------
    predictor : KernelPredictor
    ids : ndarray
        Of the samples, in the order of learning.
    parameters : dict
        Of the machine.
    n_features : int
        Of rows as they are given.
    """

    predictor: KernelPredictor
    ids: npt.NDArray[Any]
    parameters: dict[str, Any]
    n_features: int


def predictor_from(manifest: Manifest, arrays: Arrays) -> StoredPredictor | None:
    """The predictor of a file's content; None if it takes an estimator to make it.

    Raises an error of any kind if the content is not sound, ValueError if it is not the optimum on
    its rows.
    """
    if manifest.get("estimator") != _PIPELINE:
        return _of_machine(manifest, arrays, None)
    if "scaler" not in manifest:
        return None
    raw = rows_from(manifest, arrays)
    scale = Standardization.from_file(manifest["scaler"], arrays, int(raw.shape[1]))
    own = {
        name.removeprefix(_OF_THE_MACHINE): array
        for name, array in arrays.items()
        if name.startswith(_OF_THE_MACHINE)
    }
    return _of_machine(manifest["machine"], own | row_arrays(scale(raw)), scale)


def _of_machine(
    manifest: Manifest, arrays: Arrays, scale: Standardization | None
) -> StoredPredictor | None:
    if manifest.get("estimator") not in _MACHINES:
        return None
    parameters = {name: from_plain(value) for name, value in manifest["parameters"].items()}
    if parameters.get("calibration") is not None:
        return None
    require_affordable(manifest, arrays, None)
    packed = packed_from(manifest, arrays)
    if packed["formulation"].raised() is not None:
        return None
    in_pairs = parameters.get("decision_function_shape") == "ovo"
    found = kernel_predictor(judged_decider(packed), packed["target"], in_pairs, scale)
    return StoredPredictor(found, packed["ledger"].ids, parameters, int(manifest["n_features_in"]))


def judged_decider(packed: dict[str, Any]) -> Decider:
    """The arrays that a packed model decides with; ValueError if it is not the optimum."""
    X, kernel, formulation = packed["X"], packed["kernel"], packed["formulation"]
    target, weight, tol = packed["target"], packed["weight"], packed["tol"]
    own = kernel.diagonal(X)
    kept = {machine["key"]: machine for machine in packed["machines"]}
    keys = formulation.machines(target)
    rows = [formulation.rows(key, target, weight, own) for key in keys]
    weights = np.zeros((len(target), len(keys)))
    for column, key in enumerate(keys):
        np.add.at(weights[:, column], rows[column].sample, kept[key]["u"])
    places = np.flatnonzero(weights.any(axis=1))
    vectors, weights = X[places], weights[places]
    sums, sizes = _sums_and_sizes(kernel, X, vectors, weights)
    known = []
    for column, key in enumerate(keys):
        u, b, margin = kept[key]["u"], kept[key]["b"], kept[key]["margin"]
        at, t = rows[column].sample, rows[column].t
        d = formulation.total(key, target, weight)
        problem = Problem(u, t, rows[column].lo, rows[column].hi, d, b)
        size = sizes[at, column]
        if not judge(problem, sums[at, column] + b - t, size, tol).ok:
            raise ValueError("its model is not the optimum on its rows")
        root = np.sqrt(own[at])
        strength = strength_of(root, u)
        least = float(np.median(size[holders_of(margin, len(t))])) if len(t) else 0.0
        carried = usual_diagonal(root) ** 0.5 * strength
        known.append((strength, carried, least, typical_size(t)))
    biases = np.array([kept[key]["b"] for key in keys])
    return Decider(
        kernel, formulation, tol, len(target), places, vectors, weights, biases, tuple(known)
    )


def _sums_and_sizes(
    kernel: Any, X: Any, vectors: Any, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """K u and |K||u| at all rows X."""
    n, support = X.shape[0], len(weights)
    sums, sizes = np.zeros((2, n, weights.shape[1]))
    step = max(1, BLOCK_ENTRIES // max(1, support))
    with pool_for(n * support * X.shape[1]):
        for start in range(0, n if support else 0, step):
            part = slice(start, start + step)
            values = kernel.block(X[part], vectors)
            sums[part] = multiply(values, weights)
            sizes[part] = multiply(np.abs(values, out=values), np.abs(weights))
    return sums, sizes
