# SPDX-License-Identifier: BSD-3-Clause
"""Model files of the least-squares machines: moments, solution, settings, and no row.

The auxiliary matrix follows from the moments and is not written. On reading, the solution is
judged against the moments.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from adiabat._core.expansions import MOST_PARTS
from adiabat.estimators.files.content import Arrays, Manifest, plain, plain_values
from adiabat.estimators.files.reading import report_fields, report_from
from adiabat.estimators.least_squares.following_files import (
    following_fields,
    following_from,
    is_following,
    same_moments,
)
from adiabat.estimators.least_squares.row_hashes import RowHashes
from adiabat.feature_maps import BY_NAME, FeatureMap
from adiabat.lssvm.machine import LeastSquares
from adiabat.lssvm.moments import Moments

_COUNTS = ("n", "n_heavy", "n_rough")


def content(estimator: Any) -> tuple[Manifest, Arrays]:
    """Manifest and arrays of a fitted least-squares estimator."""
    model: LeastSquares = estimator._model
    parameters = {
        name: value for name, value in estimator.get_params(deep=False).items()
        if name != "feature_map"
    }  # fmt: skip
    if estimator._following is not None:
        map_fields, arrays = following_fields(estimator.feature_map, estimator._following)
    else:
        map_fields, arrays = _map_fields(estimator._map)
    manifest: Manifest = {
        "parameters": plain_values(parameters),
        "feature_map": map_fields,
        "n_features_in": int(estimator.n_features_in_),
        "width": model.moments.width,
        "counts": {name: getattr(model.moments, name) for name in _COUNTS},
        "class_counts": getattr(estimator, "_class_counts", None),
        "flat": getattr(estimator, "_flat", None),
        "report": report_fields(estimator.last_update_),
    }
    upper = np.triu_indices(len(model.moments.hi))
    arrays.update(
        moments_hi=model.moments.hi[upper],
        moments_lo=model.moments.lo[upper],
        moments_lost=model.moments.lost,
        combine=model.combine,
        solution=np.ascontiguousarray(model.solution),
    )
    if model.expansion is not None:
        arrays["solution_parts"] = model.expansion
    if hasattr(estimator, "classes_"):
        arrays["classes"] = estimator.classes_
    if model.moments.rest is not None:
        arrays["moments_rest"] = model.moments.rest[:, *upper]
    if estimator._hashes is not None:
        arrays.update(estimator._hashes.to_arrays())
    return manifest, arrays


def estimator_from(manifest: Manifest, arrays: Arrays, kind: type) -> Any:
    """The estimator that `content` was given; ValueError if it is inconsistent."""
    parameters = dict(manifest["parameters"])
    fields, n_features = manifest["feature_map"], int(manifest["n_features_in"])
    moments, following, fitted = _moments_from(manifest, arrays), None, None
    if is_following(fields):
        made, following = following_from(fields, arrays, n_features, moments)
        fitted, width = following.transformer, moments.width
        if not same_moments(following.moments(float(parameters["rho"])), moments):
            raise ValueError("the moments are not those of the rows as given")
    else:
        made, width = _map_from(fields, arrays), n_features
        if made is not None:
            fitted = clone(made).fit(np.zeros((1, n_features)))
            width = fitted._n_features_out
    if moments.width != width:
        raise ValueError("the moments are not those of the features")
    estimator = kind(**parameters, feature_map=made)
    estimator._validate_params()
    rows = moments.width + bool(parameters["fit_intercept"])
    combine, solution = arrays["combine"], arrays["solution"]
    if combine.shape[0] != 1 + moments.n_targets or solution.shape != (rows, combine.shape[1]):
        raise ValueError("the solution is not one of these moments")
    if not (np.isfinite(solution).all() and np.isin(combine, (-1.0, 0.0, 1.0, 2.0)).all()):
        raise ValueError("the solution is not finite, or its outputs have no meaning")
    model = LeastSquares.solved(
        moments, float(parameters["rho"]), bool(parameters["fit_intercept"]),
        float(parameters["tol"]), combine,
    )  # fmt: skip
    model = replace(model, solution=solution, expansion=_expansion_from(arrays))
    estimator._model, estimator._map, estimator._following = model, fitted, following
    estimator.n_features_in_ = n_features
    estimator._held_parameters = {
        "rho": estimator.rho, "feature_map": made, "fit_intercept": estimator.fit_intercept,
        "remember": estimator.remember,
    }  # fmt: skip
    estimator._hashes = None
    if estimator.remember == "hashes":
        estimator._hashes = RowHashes.from_arrays(arrays)
        if len(estimator._hashes) != moments.n:
            raise ValueError("the hashes of the rows are not as many as the rows")
    certificate = estimator.certificate()
    if not certificate.ok:
        raise ValueError("w is not the solution of its moments")
    estimator.last_update_ = report_from(manifest["report"], certificate)
    if "classes" in arrays:
        counts = [int(count) for count in manifest["class_counts"]]
        if len(counts) != len(arrays["classes"]) or len(counts) != moments.n_targets:
            raise ValueError("the classes are not those of the targets")
        if sum(counts) != moments.n or min(counts) < 1:
            raise ValueError("the counts of the classes are not those of the rows")
        estimator.classes_, estimator._class_counts = arrays["classes"], counts
    else:
        estimator._flat = bool(manifest["flat"])
    return estimator


def _expansion_from(arrays: dict[str, Any]) -> npt.NDArray[np.float64] | None:
    """The solution in all its parts, if it has more than one."""
    if "solution_parts" not in arrays:
        return None
    parts, solution = arrays["solution_parts"], arrays["solution"]
    if parts.ndim != 3 or parts.shape[:2] != solution.T.shape or parts.dtype != np.float64:
        raise ValueError("the parts of the solution have the wrong size")
    if not 1 <= parts.shape[2] <= MOST_PARTS or not np.array_equal(parts[:, :, 0].T, solution):
        raise ValueError("the parts of the solution are not those of the solution")
    if not np.isfinite(parts).all():
        raise ValueError("the parts of the solution are not finite")
    return np.ascontiguousarray(parts)


def _moments_from(manifest: dict[str, Any], arrays: dict[str, Any]) -> Moments:
    width = int(manifest["width"])
    n_targets = len(arrays["combine"]) - 1
    moments = Moments(width, n_targets)
    upper = np.triu_indices(len(moments.hi))
    parts = [(moments.hi, arrays["moments_hi"]), (moments.lo, arrays["moments_lo"])]
    if "moments_rest" in arrays:
        given = np.atleast_2d(arrays["moments_rest"])  # an earlier file has one part
        if not 1 <= len(given) <= MOST_PARTS - 2:
            raise ValueError("the moments have too many parts")
        moments.rest = np.zeros((len(given), *moments.hi.shape))
        parts.extend(zip(moments.rest, given, strict=True))
    for part, values in parts:
        if values.shape != upper[0].shape or values.dtype != np.float64:
            raise ValueError("the moments have the wrong size")
        if not np.isfinite(values).all():
            raise ValueError("the moments have values that are not finite")
        part[upper] = values
    for name in _COUNTS:
        setattr(moments, name, int(manifest["counts"][name]))
    if not 0 <= moments.n_heavy <= moments.n or moments.n < 1:
        raise ValueError("the counts of rows are out of range")
    # an earlier file does not say; its sums had 74 bits or more
    moments.lost = arrays.get("moments_lost", 2.0**-74 * np.maximum(moments.diagonal(), 0.0))
    if "moments_lost" in arrays:
        sound = moments.lost.shape == (len(moments.hi),) and moments.lost.dtype == np.float64
        if not (sound and np.isfinite(moments.lost).all() and (moments.lost >= 0.0).all()):
            raise ValueError("what the moments have lost is not sound")
    return moments


def _map_fields(fitted: Any) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    if fitted is None:
        return None, {}
    if type(fitted).__name__ not in BY_NAME or not isinstance(fitted, FeatureMap):
        raise TypeError(
            f"feature_map={fitted!r} cannot be written to a model file, which knows those of "
            "adiabat.feature_maps only; pickle the model instead"
        )
    fields, arrays = {}, {}
    for name, value in fitted.get_params().items():
        if name == "landmarks":
            arrays["landmarks"] = np.asarray(value, dtype=np.float64)
        else:
            fields[name] = plain(name, value)
    return {"name": type(fitted).__name__, "parameters": fields}, arrays


def _map_from(fields: Any, arrays: dict[str, Any]) -> Any:
    if fields is None:
        return None
    parameters = dict(fields["parameters"])
    if "landmarks" in arrays:
        parameters["landmarks"] = arrays["landmarks"]
    return BY_NAME[fields["name"]](**parameters)
