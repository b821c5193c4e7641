# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what users pass in, before anything moves."""

from __future__ import annotations

from numbers import Real
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import check_array, validate_data

from adiabat._core.rows import are_finite
from adiabat.inputs import MAX_TOL as MAX_TOL
from adiabat.inputs import as_csr as as_csr
from adiabat.inputs import require_csr, require_width
from adiabat.kernels import KERNEL_NAMES
from adiabat.preprocessing.weights import check_weights as check_weights
from adiabat.retention import Policy
from adiabat.typing import FloatArray

A = TypeVar("A")

#: Parameters that every kernel machine has.
KERNEL_CONSTRAINTS: Final[dict[str, list[Any]]] = {
    "kernel": [StrOptions(set(KERNEL_NAMES)), Hidden(StrOptions({"sigmoid"})), callable],
    "degree": [Interval(Real, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "tol": [Interval(Real, 0.0, MAX_TOL, closed="right")],
    "solver": [StrOptions({"auto", "path", "exchange"})],
    "retain": [Policy, None],
    "memory_limit": [Interval(Real, 0.0, None, closed="neither"), None],
}


def check_rows(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    sparse: bool = True,
    reset: bool = False,
    multi_output: bool = False,
) -> Any:
    """Rows (and targets, if given) as scikit-learn checks them, the argument named."""
    if _is_plain(estimator, X, y, reset):
        if reset:
            estimator.n_features_in_ = X.shape[1]
            vars(estimator).pop("feature_names_in_", None)
        return X if isinstance(y, str) else (X, y)
    if sp.issparse(X):
        X = require_csr(X)
        require_width(X.shape[1])
    try:
        return validate_data(
            estimator, X, y, accept_sparse="csr" if sparse else False, accept_large_sparse=True,
            dtype=np.float64, order="C", reset=reset,
            **({"multi_output": True} if multi_output and not isinstance(y, str) else {}),
        )  # fmt: skip
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"X has a value that is not a number ({error}); encode text columns as numbers"
        ) from error


def _is_plain(estimator: Any, X: Any, y: Any, reset: bool) -> bool:
    """Whether there is nothing to check or convert, which takes longer than a small update."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.flags.c_contiguous
        and X.size > 0
        and (
            reset
            or (
                X.shape[1] == getattr(estimator, "n_features_in_", None)
                and not hasattr(estimator, "feature_names_in_")
            )
        )
        and (
            (isinstance(y, str) and y == "no_validation")
            or (type(y) is np.ndarray and y.shape == X.shape[:1] and _is_clean(y))
        )
        and are_finite(X)
    )


def _is_clean(y: npt.NDArray[Any]) -> bool:
    return y.dtype.kind in "iubU" or (y.dtype == np.float64 and bool(np.isfinite(y).all()))


def require_force(weights: FloatArray) -> None:
    """Refuse weights that are all zero: nothing could be learned from them."""
    if len(weights) and not weights.any():
        raise ValueError(
            "sample_weight is zero for all rows, so that no row has any force; give at least one "
            "row a positive weight"
        )


def check_kernel_rows(X: Any, position: npt.NDArray[np.int64]) -> FloatArray:
    """New rows of a given kernel, their columns by the positions of the samples held.

    The user gives them in the order of learning: against the n samples, then among themselves.
    """
    X = check_array(X, dtype=np.float64, accept_sparse=False)
    k, n = X.shape[0], len(position)
    if X.shape[1] != n + k:
        raise ValueError(
            f"X has shape {X.shape}, but with kernel='precomputed' {k} new rows need "
            f"{n + k} columns: their kernel values against the {n} samples of ids_, in that "
            f"order, then against the {k} new rows themselves"
        )
    require_symmetric(X[:, n:])
    by_position: FloatArray = X.copy()
    by_position[:, position] = X[:, :n]
    return by_position


def require_square(K: FloatArray) -> None:
    """Refuse a given kernel that is not square or not symmetric."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix: X has shape {K.shape}; "
            "kernel='precomputed' needs one row and one column a sample"
        )
    require_symmetric(K)


def require_symmetric(K: FloatArray) -> None:
    """Refuse kernel values that differ from their mirror image by more than rounding."""
    scale = max(1.0, float(np.abs(K).max(initial=0.0)))
    if float(np.abs(K - K.T).max(initial=0.0)) > 1e-9 * scale:
        raise ValueError("X is not symmetric; a precomputed kernel must satisfy K(x, z) = K(z, x)")


def n_rows(X: Any) -> int:
    """Number of rows of anything array-like; 0 for None."""
    if X is None:
        return 0
    if hasattr(X, "shape"):
        return int(X.shape[0]) if len(X.shape) else 1
    return len(X) if hasattr(X, "__len__") else 1


#: Parameters that were checked before, by class; only those that no call can change.
_CHECKED: Final[set[tuple[Any, ...]]] = set()
_MOST_CHECKED: Final = 10_000
_PLAIN_TYPES: Final = (str, int, float, bool, type(None))


def were_checked(estimator: Any) -> bool:
    """Whether an estimator of this class with these parameters was found valid before."""
    return _parameters(estimator) in _CHECKED


def remember_checked(estimator: Any) -> None:
    """Note that the parameters of an estimator are valid."""
    parameters = _parameters(estimator)
    if parameters is not None and len(_CHECKED) < _MOST_CHECKED:
        _CHECKED.add(parameters)


def _parameters(estimator: Any) -> tuple[Any, ...] | None:
    """Class, and parameters with their types, as 1, 1.0 and True are equal; None if not plain."""
    values = [getattr(estimator, name, None) for name in _names(type(estimator))]
    if any(type(value) not in _PLAIN_TYPES for value in values):
        return None
    return (type(estimator), *values, *map(type, values))


_NAMES: Final[dict[Any, list[str]]] = {}


def _names(kind: Any) -> list[str]:
    """The names of a class's parameters, which scikit-learn reads from its signature each time."""
    if kind not in _NAMES:
        _NAMES[kind] = kind._get_param_names()
    return _NAMES[kind]


def same_parameter(before: Any, now: Any) -> bool:
    """Whether a constructor parameter is what it was at `fit`."""
    if before is now:
        return True
    try:
        return bool(before == now)
    except ValueError:  # arrays have no single truth
        return False


def read_only(values: A) -> A:
    """What is computed when asked for, so that writing to it, which would be lost, is an error."""
    array: Any = values
    (array.data if sp.issparse(array) else array).setflags(write=False)
    return values
