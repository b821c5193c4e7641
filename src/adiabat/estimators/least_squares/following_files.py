# SPDX-License-Identifier: BSD-3-Clause
"""A map that follows rows in a model file: its transformers, what they count, the exact moments.

A file has no rows to fit transformers to. It has one value for each column, of those that the
transformers know: fitted to that single row they get their shape, and then back what they held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from adiabat.estimators.least_squares.following import Following
from adiabat.lssvm.exact_moments import ExactMoments
from adiabat.lssvm.moments import Moments
from adiabat.preprocessing.basis import basis_of, require_linear, some_row
from adiabat.preprocessing.composition import fit_to
from adiabat.preprocessing.files import describe, rebuild, restore, statistics
from adiabat.preprocessing.unlearning import as_json, from_json

Arrays = Mapping[str, npt.NDArray[Any]]


def following_fields(
    given: Any, following: Following
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Fields and arrays of a map that follows rows; `given` as the estimator was given it."""
    held, arrays = statistics(following.transformer)
    upper = np.triu_indices(following.sums.digits.shape[1])
    arrays["sums_digits"] = np.ascontiguousarray(following.sums.digits[:, *upper])
    fields = {
        "transformers": describe(given),
        "at_positions": describe(following.transformer),
        "statistics": held,
        "row": [as_json(value) for value in some_row(following.transformer)],
        "lowest": following.sums.lowest,
    }
    return fields, arrays


def is_following(fields: Any) -> bool:
    """Whether these are the fields of a map that follows rows."""
    return fields is not None and "transformers" in fields


def following_from(
    fields: Mapping[str, Any], arrays: Arrays, n_features: int, moments: Moments
) -> tuple[Any, Following]:
    """The map as it was given, and the one that follows; ValueError if they are not sound."""
    given, fitted = rebuild(fields["transformers"]), rebuild(fields["at_positions"])
    require_linear(given)
    require_linear(fitted)
    row = [from_json(value) for value in fields["row"]]
    if len(row) != n_features:
        raise ValueError("the columns are not those of the map")
    text = any(isinstance(value, str) or value is None for value in row)
    fitted = fit_to(fitted, np.array([row], dtype=object if text else np.float64), None)
    restore(fitted, fields["statistics"], arrays)
    basis = basis_of(fitted)
    sums = ExactMoments(len(basis), moments.n_targets)
    side, digits = len(basis) + 1 + moments.n_targets, arrays["sums_digits"]
    upper = np.triu_indices(side)
    if digits.ndim != 2 or digits.shape[1:] != upper[0].shape or digits.dtype != np.int64:
        raise ValueError("the exact moments have the wrong size")
    sums.digits = np.zeros((len(digits), side, side), np.int64)
    sums.digits[:, *upper] = digits
    sums.digits[:, upper[1], upper[0]] = digits
    sums.lowest, sums.n, sums.n_heavy = int(fields["lowest"]), moments.n, moments.n_heavy
    if not sums.is_sound():
        raise ValueError("the exact moments are out of range")
    return given, Following(fitted, basis, sums).settled()


def same_moments(one: Moments, other: Moments) -> bool:
    """Whether two are the same to the last bit."""
    mine, theirs = (
        [matrix.hi, matrix.lo, *([] if matrix.rest is None else matrix.rest)]
        for matrix in (one, other)
    )
    return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))
