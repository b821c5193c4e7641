# SPDX-License-Identifier: BSD-3-Clause
"""What a model file declares, held against the file and a limit before anything is made of it.

A file of a few kilobytes can declare a width, a degree or a number of classes from which gigabytes
or hours would follow. Each number that something is allocated or counted by is checked here against
the arrays that are there, or against the memory that is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from adiabat.certificate import Certificate
from adiabat.engine.report import UpdateReport
from adiabat.inputs import require_memory, require_width
from adiabat.kernels import MOST_DEGREE

_FLOAT: Final = 8
# Kernel columns of the support, and half as many again that are kept for those that come back.
_COLUMNS: Final = 1.5
# Matrices as large as the moments that solving for w takes.
OF_MOMENTS: Final = 8
# Matrices of n x n that a kernel least-squares machine takes.
OF_SAMPLES: Final = 6
_MOST_CODE: Final = 1 << 20

_COUNTS: Final = ("n_added", "n_removed", "n_revised", "rounds", "breakpoints", "fallbacks")


def require_affordable(
    manifest: Mapping[str, Any], arrays: Mapping[str, Any], limit: int | None
) -> None:
    """Refuse a file whose content would take more memory or time than its size accounts for.

    `limit` is in bytes; None stands for half of the computer's memory.
    """
    if "machines" in manifest:
        _require_kernel_machine(manifest, arrays, limit)
    elif "moments_hi" in arrays:
        _require_least_squares(manifest, arrays, limit)
    elif "alpha" in arrays:
        n = int(arrays["weight"].size)
        require_memory(OF_SAMPLES * _FLOAT * n * n, "the kernel matrix", limit)
        _require_kernel(manifest, n, limit)


def report_fields(report: UpdateReport) -> dict[str, Any]:
    """A report as plain values; without its certificate, which is made anew on reading."""
    return {name: getattr(report, name) for name in (*_COUNTS, "solver", "seconds")}


def report_from(fields: Mapping[str, Any], certificate: Certificate) -> UpdateReport:
    """The report that a file holds, with the certificate found on reading.

    A certificate in the file, as early ones have it, is passed over: anybody can write one.
    """
    for name in _COUNTS:
        _require_count(name, fields[name])
    solver, seconds = fields["solver"], fields["seconds"]
    if not isinstance(solver, str) or len(solver) > 100:
        raise ValueError("the report names no solver")
    if type(seconds) not in (int, float) or not 0 <= seconds < float("inf"):
        raise ValueError(f"the report has seconds={seconds!r}")
    counts = {name: fields[name] for name in _COUNTS}
    return UpdateReport(
        **counts, solver=solver, seconds=float(seconds), certificate=certificate, trace=None
    )


def _require_count(name: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{name}={value!r} is no number of anything")


def _require_kernel_machine(
    manifest: Mapping[str, Any], arrays: Mapping[str, Any], limit: int | None
) -> None:
    target = arrays["target"]
    n = int(target.size)
    if target.dtype == np.int64:
        if n and not 0 <= int(target.min()) <= int(target.max()) <= _MOST_CODE:
            raise ValueError("the code of a class is out of range")
        k = len(np.unique(target))
        if len(manifest["machines"]) != k * (k - 1) // 2:
            raise ValueError("the machines are not those of the targets")
    support = 0
    for number in range(len(manifest["machines"])):
        support += int(np.count_nonzero(arrays[f"machine{number}_u"]))
        support += int(arrays[f"machine{number}_margin"].size)
    needed = int(_COLUMNS * _FLOAT * n * min(n, support))
    require_memory(needed, f"kernel columns of {min(n, support)} samples", limit)
    _require_kernel(manifest, n, limit)


def _require_kernel(manifest: Mapping[str, Any], n: int, limit: int | None) -> None:
    degree = manifest["kernel"]["degree"]
    if type(degree) not in (int, float) or not 0 <= degree <= MOST_DEGREE:
        raise ValueError(f"degree={degree!r} is out of range")
    if manifest["sparse"]:
        width = manifest["shape"][1]
        _require_count("the number of features", width)
        require_width(width, "X", limit)


def _require_least_squares(
    manifest: Mapping[str, Any], arrays: Mapping[str, Any], limit: int | None
) -> None:
    width, n_features = manifest["width"], manifest["n_features_in"]
    _require_count("width", width)
    _require_count("n_features_in", n_features)
    side = width + len(arrays["combine"])
    if arrays["moments_hi"].shape != (side * (side + 1) // 2,):
        raise ValueError("the moments are not those of the features")
    require_memory(OF_MOMENTS * _FLOAT * side * side, f"moments of {width} features", limit)
    require_memory(_FLOAT * n_features, f"a row of {n_features} features", limit)
    if manifest["feature_map"] is not None and "transformers" in manifest["feature_map"]:
        _require_following(manifest, arrays, limit)
    elif manifest["feature_map"] is not None:
        _require_map(manifest["feature_map"], arrays, width, n_features, limit)
    elif n_features != width:
        raise ValueError("the moments are not those of the features")


def _require_following(
    manifest: Mapping[str, Any], arrays: Mapping[str, Any], limit: int | None
) -> None:
    n = manifest["counts"]["n"]
    _require_count("n", n)
    # Python's whole numbers take several times the room of digits
    require_memory(8 * arrays["sums_digits"].nbytes, "the exact moments", limit)
    counts = [array for name, array in arrays.items() if re.fullmatch(r"scaler\d+_counts\d+", name)]
    if any(array.dtype != np.int64 or float(array.sum(dtype=float)) != n for array in counts):
        raise ValueError("the counts of a transformer are not those of the rows")
    # values are spelled out for scikit-learn's transformers
    require_memory(4 * _FLOAT * n * len(counts), f"{n} rows of {len(counts)} columns", limit)


def _require_map(
    fields: Mapping[str, Any],
    arrays: Mapping[str, Any],
    width: int,
    n_features: int,
    limit: int | None,
) -> None:
    given = fields["parameters"]
    if "n_components" in given:
        _require_count("n_components", given["n_components"])
        if given["n_components"] != width:
            raise ValueError("the features of the map are not those of the moments")
        # random bits, uniform numbers and normal numbers
        require_memory(3 * _FLOAT * (n_features + 1) * width, "the random features", limit)
    if "landmarks" in arrays:
        rows = len(arrays["landmarks"])
        require_memory(4 * _FLOAT * rows * rows, f"the kernel of {rows} landmarks", limit)
    elif "degree" in given:
        degree = given["degree"]
        _require_count("degree", degree)
        if _monomials(n_features + (given["coef0"] > 0.0), degree, width) != width:
            raise ValueError("the monomials of the map are not those of the moments")
        require_memory(6 * _FLOAT * width * degree, f"monomials of degree {degree}", limit)


def _monomials(columns: int, degree: int, most: int) -> int:
    """How many monomials of a degree there are, counted no further than beyond `most`."""
    count = 1
    for k in range(1, min(degree, columns - 1) + 1):
        count = count * (degree + columns - k) // k
        if count > most:
            break
    return count
