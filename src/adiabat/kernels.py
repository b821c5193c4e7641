# SPDX-License-Identifier: BSD-3-Clause
"""Kernel functions: blocks of the kernel matrix from rows of features.

==============  ========================================================
linear          <x, z>, or <x - o, z - o> with an origin o
rbf             exp(-gamma ||x - z||^2)
poly            (gamma <x, z> + coef0) ^ degree
laplacian       exp(-gamma ||x - z||_1)
chi2            exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)), 0/0 = 0
callable        k(X, Z) -> array of shape (len(X), len(Z)), of numbers or of anything else
precomputed     given by the caller, never evaluated here
==============  ========================================================

Rows are dense arrays, SciPy CSR matrices, or the `Rows` of `_core/kernel_values`, which makes the
values; a block is always a fresh dense float64 array in C order. A value depends on its two rows
alone, to the last bit: not on the other rows of a block, nor on how a row is stored.

A `Kernel` is immutable: whatever it takes from data (``gamma="scale"``, the origin) is resolved by
`make_kernel`, so that samples learned or forgotten later do not change what it means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
import scipy.sparse as sp

from adiabat._core.kernel_values import Formula, Rows, squared_norms
from adiabat._core.sparse_rows import SparseRows
from adiabat.errors import IndefiniteKernelError
from adiabat.inputs import dense_values
from adiabat.statistics import entry_variance, offset_origin
from adiabat.typing import FloatArray

__all__ = ["KERNEL_NAMES", "Kernel", "make_kernel", "resolve_gamma"]

KernelFunction: TypeAlias = Callable[[Any, Any], Any]

#: The names accepted by `make_kernel`.
KERNEL_NAMES: Final = ("chi2", "laplacian", "linear", "poly", "precomputed", "rbf")

#: The largest degree of ``poly``.
MOST_DEGREE: Final = 1_000
#: Part of nonzero entries up to which products by these alone are faster.
SPARSE_PART: Final = 1.0 / 3.0
# Rows against which it pays to look for the zeros of dense rows, and features from which on.
_MANY_ROWS: Final = 64
_MANY_FEATURES: Final = 64
_DIAGONAL_ROWS: Final = 32  # rows of a callable's diagonal evaluated together


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """A kernel with its parameters resolved. Make one with `make_kernel`.

    `name` is one of `KERNEL_NAMES`, or ``"callable"`` for a `function`; `gamma` is a number, 0.0
    for kernels that have none. `origin` is the point from which ``linear`` measures, None for
    zero: far from zero, products lose the digits in which rows differ.
    """

    name: str
    gamma: float = 0.0
    degree: float = 3
    coef0: float = 0.0
    function: KernelFunction | None = None
    origin: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.origin is not None:
            self.origin.setflags(write=False)

    def block(self, A: Any, B: Any) -> FloatArray:
        """Kernel values of every row of `A` against every row of `B`, as a new array.

        The rows are never written to.
        """
        if self.function is not None:
            return self._call(A, B)
        formula, same = self.formula, A is B
        A = _as_rows(A)
        B = A if same else _as_rows(B)
        m, n = A.shape[0], B.shape[0]
        rows = self.rows(A, n if m >= n else 0)
        return formula.block(rows, rows if same else self.rows(B, m if n > m else 0))

    @property
    def formula(self) -> Formula:
        """What makes values of `rows`."""
        if self.name == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no formula; use the values of the matrix given"
            )
        return Formula(self.name, self.gamma, self.degree, self.coef0)

    def rows(self, A: Any, against: int = 0) -> Rows:
        """The rows of `A` as `formula` takes them, measured from the origin.

        If values `against` many others are wanted, dense rows with many zeros are taken by their
        nonzero entries, which is faster.
        """
        A = _as_rows(A)
        if isinstance(A, Rows):
            return A
        A = self._from_origin(A)
        if self.name == "chi2":
            _require_nonnegative(A)
        if sp.issparse(A):
            return _entries(A)
        A = np.ascontiguousarray(A)
        if against >= _MANY_ROWS and A.shape[1] >= _MANY_FEATURES and self.takes_products:
            if np.count_nonzero(A) <= SPARSE_PART * A.size:
                nonzeros = SparseRows(A.shape[1])
                nonzeros.append(A)
                return nonzeros.view()
        return Rows.dense(A)

    @property
    def is_semidefinite(self) -> bool:
        """Whether it is positive semidefinite by its formula, on any rows."""
        if self.name == "poly":
            return self.degree == int(self.degree) and self.coef0 >= 0.0
        return self.name not in ("precomputed", "callable")

    @property
    def is_nonnegative(self) -> bool:
        """Whether no value is below 0."""
        return self.name in ("rbf", "laplacian", "chi2")

    @property
    def takes_products(self) -> bool:
        """Whether values follow from <a, b>, to which zeros add nothing."""
        return self.name in ("linear", "poly", "rbf") and self.origin is None

    def diagonal(self, A: Any) -> FloatArray:
        """Kernel value of every row of `A` with itself, shape (n,)."""
        if self.function is not None:
            starts = range(0, A.shape[0], _DIAGONAL_ROWS)
            parts = [A[start : start + _DIAGONAL_ROWS] for start in starts]
            return np.concatenate([np.empty(0), *(self._call(p, p).diagonal() for p in parts)])
        if self.name in ("rbf", "laplacian"):
            return np.ones(A.shape[0])
        return self.formula.diagonal(self.rows(A))

    def features(self, A: Any) -> FloatArray:
        """What ``linear`` multiplies: the rows of A, measured from the origin."""
        return np.asarray(self._from_origin(_as_rows(A)), dtype=np.float64)

    def norms(self, A: Any) -> FloatArray | None:
        """Squared norms for `Rows` to keep, if values are made with them; else None."""
        return squared_norms(self.rows(A)) if self.name in ("rbf", "poly") else None

    def equals(self, other: Kernel) -> bool:
        """Whether this is the same kernel, to the last bit of its values."""
        names = ("name", "gamma", "degree", "coef0", "function")
        if self.origin is None or other.origin is None:
            same_origin = self.origin is other.origin
        else:
            same_origin = np.array_equal(self.origin, other.origin)
        return same_origin and all(getattr(self, name) == getattr(other, name) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """The kernel as a dict of plain JSON values; `from_dict` reads it back."""
        if self.function is not None:
            raise TypeError(
                f"kernel={self.function!r} is a function, and a model file holds no code; "
                "pickle the model, or pass the function again when it is loaded"
            )
        fields = {name: getattr(self, name) for name in ("name", "gamma", "degree", "coef0")}
        return fields | {"origin": None if self.origin is None else self.origin.tolist()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Kernel:
        """Rebuild a kernel from what `to_dict` gave; ValueError if the fields are not sound."""
        expected = {"name", "gamma", "degree", "coef0", "origin"}
        if set(fields) != expected:
            raise ValueError(f"kernel fields are {sorted(fields)}, expected {sorted(expected)}")
        name, gamma, origin = fields["name"], fields["gamma"], fields["origin"]
        if name not in KERNEL_NAMES:
            raise ValueError(f"kernel={name!r} is not one of {', '.join(KERNEL_NAMES)}")
        if not _is_number(gamma) or gamma < 0.0:
            raise ValueError(f"kernel gamma={gamma!r} must be a finite number >= 0")
        degree, coef0 = _poly_parameters(fields["degree"], fields["coef0"])
        if origin is not None:
            if not isinstance(origin, list) or not all(map(_is_number, origin)):
                raise ValueError("kernel origin must be a list of finite numbers, one per feature")
            # files of old have one for rbf, which needs none
            origin = np.array(origin, dtype=np.float64) if name == "linear" else None
        return cls(name, float(gamma), degree, coef0, None, origin)

    def _call(self, A: Any, B: Any) -> FloatArray:
        assert self.function is not None
        shape = (A.shape[0], B.shape[0])
        values = self.function(as_given(A), as_given(B))
        block = dense_values(values, shape, f"kernel={self.function!r}")
        return _require_finite(block, repr(self.function))

    def _from_origin(self, A: Any) -> Any:
        if self.origin is None:
            return A
        if A.shape[1] != self.origin.shape[0]:
            raise ValueError(f"X has {A.shape[1]} features, the kernel {len(self.origin)}")
        return (A.toarray() if sp.issparse(A) else A) - self.origin


def make_kernel(
    kernel: str | KernelFunction,
    *,
    gamma: str | float,
    degree: float,
    coef0: float,
    X: Any,
    sample_weight: Any = None,
    shift_free: bool = False,
    inspected: bool = False,
) -> Kernel:
    """Settle a kernel's parameters on the training rows `X`.

    `kernel` is one of `KERNEL_NAMES` or a function ``k(X, Z) -> (len(X), len(Z))``; `gamma` is as
    in `resolve_gamma`, which `sample_weight` is for; `degree` and `coef0` belong to ``poly``.
    `shift_free` says that the weights sum to zero, so that a common offset of the features only
    moves b: ``linear`` may then measure from an origin, and keep the digits that the offset would
    take. `inspected` says that kernel values will be looked at: ``poly`` may then have a
    fractional `degree` or a negative `coef0`, with which it is semidefinite on some rows only.
    Raises `IndefiniteKernelError` for ``"sigmoid"``, and ValueError for an unknown name or a
    parameter out of range.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0]])
    >>> make_kernel("rbf", gamma=0.25, degree=3, coef0=0.0, X=X).block(X, X).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    _check_gamma(gamma)
    if callable(kernel):
        return Kernel("callable", function=kernel)
    if kernel == "sigmoid":
        raise IndefiniteKernelError(
            "kernel='sigmoid' is not positive semidefinite, so there is no unique optimum to "
            "follow; use kernel='rbf' or kernel='poly'"
        )
    if kernel not in KERNEL_NAMES:
        raise ValueError(
            f"kernel={kernel!r} is unknown; choose one of {', '.join(KERNEL_NAMES)}, or pass a "
            "function k(X, Z) -> array of shape (len(X), len(Z))"
        )
    kernel = str(kernel)  # of an array of names it is NumPy's kind of string
    degree, coef0 = _poly_parameters(degree, coef0)
    if kernel == "poly" and not (inspected or Kernel(kernel, 1.0, degree, coef0).is_semidefinite):
        raise IndefiniteKernelError(
            f"degree={degree!r} and coef0={coef0!r} can make kernel='poly' indefinite, so that "
            "there is no unique optimum to follow; use a whole degree and coef0 >= 0"
        )
    if kernel == "precomputed":
        return Kernel(kernel, degree=degree, coef0=coef0)
    if kernel == "linear":
        origin = offset_origin(_as_rows(X)) if shift_free else None
        return Kernel(kernel, degree=degree, coef0=coef0, origin=origin)
    if kernel == "chi2":
        _require_nonnegative(_as_rows(X))
    return Kernel(kernel, resolve_gamma(gamma, X, sample_weight), degree, coef0)


def resolve_gamma(gamma: str | float, X: Any, sample_weight: Any = None) -> float:
    """The number that `gamma` stands for on the rows `X`.

    ``"scale"`` is 1 / (n_features * variance of all entries of X), or 1.0 where that variance is
    zero; ``"auto"`` is 1 / n_features; a number >= 0 is itself. A row of weight k counts as k
    copies of it and a row of weight zero not at all, to the last bit and in any order of the rows.
    """
    _check_gamma(gamma)
    if not isinstance(gamma, str):
        return float(gamma)
    rows = _as_rows(X)
    if gamma == "auto":
        return 1.0 / int(rows.shape[1])
    variance = entry_variance(rows, sample_weight)
    value: float = 1.0 / (rows.shape[1] * variance) if variance > 0.0 else 1.0
    if not (math.isfinite(variance) and math.isfinite(value)):
        raise ValueError(f"gamma='scale': the variance of X is {variance:g}; scale the features")
    return value


def _check_gamma(gamma: Any) -> None:
    named = isinstance(gamma, str) and gamma in ("scale", "auto")
    if not named and not (_is_number(gamma) and gamma >= 0.0):
        raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a finite number >= 0")


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def _poly_parameters(degree: Any, coef0: Any) -> tuple[float, float]:
    # below 1 the slope at 0 is infinite, and with it what rounding does to a value
    if not _is_number(degree) or not (degree >= 1 or degree == 0) or degree > MOST_DEGREE:
        raise ValueError(f"degree={degree!r} must be 0, or from 1 to {MOST_DEGREE:,}")
    if not _is_number(coef0):
        raise ValueError(f"coef0={coef0!r} must be a finite number")
    return int(degree) if degree == int(degree) else float(degree), float(coef0)


def as_given(A: Any) -> Any:
    """Rows as a callable gets them: what is not numbers, and has no columns, as a list."""
    return A[:, 0].tolist() if A.dtype == object and A.shape[1] == 1 else A


def _as_rows(A: Any) -> Any:
    """`A` as a 2-D float64 array, CSR matrix or `Rows`, without a copy where it is one already."""
    if isinstance(A, Rows):
        return A
    if sp.issparse(A):
        return A.tocsr().astype(np.float64, copy=False)
    rows = np.asarray(A, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"rows of features must be a 2-D array, got shape {rows.shape}")
    return rows


def _entries(A: Any) -> Rows:
    """Rows of a CSR matrix; its entries in order, one given in parts being their sum."""
    if A.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {A.shape[1]} features; at most 2**31 - 1 can be numbered")
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    features = A.indices.astype(np.int32, copy=False)
    return Rows.by_entries(A.data, features, A.indptr[:-1], np.diff(A.indptr), A.shape[1])


def _require_nonnegative(A: Any) -> None:
    values = A.data if sp.issparse(A) else A
    if values.size and values.min() < 0.0:
        raise ValueError(
            "Negative values in data passed to kernel='chi2', which needs features >= 0; scale "
            "them to [0, 1], or use kernel='rbf'"
        )


def _require_finite(values: FloatArray, kernel: str) -> FloatArray:
    # The sum is one pass without a temporary; it can overflow where the values themselves do not.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(values.sum())
    if suspicious and not np.isfinite(values).all():
        raise ValueError(f"kernel={kernel} gave values that are not finite; scale the features")
    return values
