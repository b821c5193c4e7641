# SPDX-License-Identifier: BSD-3-Clause
"""The plane of two features in which a model is drawn, the others held at fixed values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from adiabat.analysis.sets import held_model
from adiabat.typing import FloatArray


@dataclass(frozen=True)
class Plane:
    """Two features, or one for a curve, and the point at which all others are held."""

    features: tuple[int, ...]
    names: tuple[str, ...]
    point: FloatArray
    others: str

    @classmethod
    def of(cls, model: Any, features: Any, fixed: Any, wanted: int) -> Plane:
        """The plane that is asked for, checked."""
        held = held_model(model)
        if held.kernel.name == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no features to draw; use TrajectoryDisplay or "
                "UpdateDisplay"
            )
        n = model.n_features_in_
        named = list(getattr(model, "feature_names_in_", []))
        if features is None:
            if n != wanted:
                raise ValueError(
                    f"the model has {n} features and the picture has {wanted}: say which, "
                    f"features={tuple(range(min(n, wanted)))} for example; the others are held "
                    "at `fixed`, by default their means"
                )
            features = range(n)
        if isinstance(features, (str, Integral)):
            features = (features,)
        chosen = tuple(_place(item, n, named) for item in features)
        if len(chosen) != wanted or len(set(chosen)) != wanted:
            raise ValueError(f"features={tuple(features)!r} must be {wanted} different features")
        rows = dense(held.features(np.arange(len(held))))
        mean = rows.mean(axis=0)
        point, others = mean, "" if n == wanted else "other features at their means"
        if fixed is not None:
            point = np.asarray(fixed, dtype=np.float64)
            others = "" if n == wanted else "other features at given values"
            if point.shape != (n,) or not np.isfinite(point).all():
                raise ValueError(
                    f"fixed has shape {point.shape}; give one finite value for each of the {n} "
                    "features (those drawn are ignored)"
                )
        names = tuple(str(named[i]) if named else f"feature {i}" for i in chosen)
        return cls(chosen, names, point, others)

    def samples(self, model: Any) -> FloatArray:
        """Coordinates of the model's samples in the plane, in the order of `ids_`."""
        held = held_model(model)
        return dense(held.features(np.arange(len(held))))[:, self.features]

    def rows(self, coordinates: FloatArray) -> FloatArray:
        """Points of the plane as rows with all features."""
        rows = np.tile(self.point, (len(coordinates), 1))
        rows[:, self.features] = coordinates
        return rows

    def decide(self, model: Any, coordinates: FloatArray) -> tuple[FloatArray, Any]:
        """(decision values or predictions, class numbers or None) at points of the plane."""
        rows = self.rows(coordinates)
        with warnings.catch_warnings():
            # the names were checked when the model was fitted; these are its own columns
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            if not hasattr(model, "decision_function"):
                return model.predict(rows), None
            values = model.decision_function(rows)
            if values.ndim == 1:
                return values, None
            labels = np.searchsorted(model.classes_, model.predict(rows))
            return np.max(values, axis=1), labels


def edges_of(coordinates: FloatArray, padding: float, limits: Any) -> list[tuple[float, float]]:
    """(low, high) of each coordinate: as given, or around the samples."""
    if limits is not None:
        given = np.asarray(limits, dtype=np.float64)
        if given.shape != (coordinates.shape[1], 2) or not np.all(given[:, 0] < given[:, 1]):
            raise ValueError(
                f"limits={limits!r} must have (low, high), low < high, for each of the "
                f"{coordinates.shape[1]} features drawn"
            )
        return [(float(low), float(high)) for low, high in given]
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    room = padding * np.where(high > low, high - low, 1.0)
    return [(float(a), float(b)) for a, b in zip(low - room, high + room, strict=True)]


def dense(rows: Any) -> FloatArray:
    """Rows as an array, if they are sparse."""
    values: FloatArray = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return values


def _place(feature: Any, n: int, names: list[Any]) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"features: {feature!r} is not among the model's, {names[:5]}...")
        return names.index(feature)
    if not isinstance(feature, Integral) or not 0 <= int(feature) < n:
        raise ValueError(f"features: {feature!r} is not a feature of 0 ... {n - 1}, nor a name")
    return int(feature)
