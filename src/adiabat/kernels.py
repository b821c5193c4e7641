# SPDX-License-Identifier: BSD-3-Clause
"""Kernel functions: blocks of the kernel matrix from rows of features.

==============  ========================================================
linear          <x, z>, or <x - o, z - o> with an origin o
rbf             exp(-gamma ||x - z||^2)
poly            (gamma <x, z> + coef0) ^ degree
laplacian       exp(-gamma ||x - z||_1)
chi2            exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)), 0/0 = 0
callable        k(X, Z) -> array of shape (len(X), len(Z))
precomputed     given by the caller, never evaluated here
==============  ========================================================

Rows are dense arrays or SciPy CSR matrices; a block is always a fresh dense float64 array in C
order. A `Kernel` is immutable: whatever it takes from data (``gamma="scale"``, the origin) is
settled by `make_kernel`, so that samples learned or forgotten later do not change what it means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

from adiabat._core.distances import scaled_distances
from adiabat.errors import IndefiniteKernelError
from adiabat.inputs import dense_values
from adiabat.statistics import dense_slices, entry_variance, offset_origin, squared_norms

__all__ = ["KERNEL_NAMES", "Kernel", "make_kernel", "resolve_gamma"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
KernelFunction: TypeAlias = Callable[[Any, Any], Any]

#: The names accepted by `make_kernel`.
KERNEL_NAMES: Final = ("chi2", "laplacian", "linear", "poly", "precomputed", "rbf")

# Entries worked on at a time: 256 KiB of float64, which stays in the second-level cache, so that
# the element-wise steps after a product cost one pass over memory and not one pass each.
_CHUNK_ENTRIES: Final = 1 << 15
_DIAGONAL_ROWS: Final = 32  # rows of a callable's diagonal evaluated together


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """A kernel with its parameters settled. Make one with `make_kernel`.

    `name` is one of `KERNEL_NAMES`, or ``"callable"`` for a `function`; `gamma` is a number, 0.0
    for kernels that have none. `origin` is the point from which ``rbf`` measures, None for zero:
    distances do not depend on it, but far from zero ||x||^2 + ||z||^2 - 2 <x, z> would lose every
    digit.
    """

    name: str
    gamma: float = 0.0
    degree: int = 3
    coef0: float = 0.0
    function: KernelFunction | None = None
    origin: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.origin is not None:
            self.origin.setflags(write=False)

    def block(
        self, A: Any, B: Any, A_norms: FloatArray | None = None, B_norms: FloatArray | None = None
    ) -> FloatArray:
        """Kernel values of every row of `A` against every row of `B`, as a new array.

        `A_norms` and `B_norms` are what `norms` gave for `A` and `B`, if that is at hand. The rows
        are never written to.
        """
        if self.function is not None:
            return self._call(A, B)
        self._require_formula()
        same = A is B
        A = _as_rows(A)
        B = A if same else _as_rows(B)
        if self.name == "linear":
            A = self._from_origin(A)
            B = A if same else self._from_origin(B)
            return _require_finite(_products(A, B), self.name)
        if self.name == "poly":
            return self._poly(_products(A, B))
        if self.name == "rbf":
            return self._rbf_block(A, B, A_norms, B_norms)
        distances = _city_block(A, B) if self.name == "laplacian" else _chi2_distances(A, B)
        for part in _chunks(distances):
            np.multiply(part, -self.gamma, out=part)
            np.exp(part, out=part)
        return distances

    @property
    def takes_products(self) -> bool:
        """Whether `from_products` applies: values follow from <a, b> and the norms."""
        return self.name in ("linear", "poly", "rbf") and self.origin is None

    def from_products(
        self, products: FloatArray, A_norms: FloatArray | None, B_norms: FloatArray | None
    ) -> FloatArray:
        """Kernel values from products <a, b> in C order, in their place; norms as in `block`."""
        if self.name == "rbf":
            assert A_norms is not None and B_norms is not None
            return self._rbf(products, A_norms, B_norms)
        return self._poly(products) if self.name == "poly" else _require_finite(products, self.name)

    def diagonal(self, A: Any) -> FloatArray:
        """Kernel value of every row of `A` with itself, shape (n,)."""
        if self.function is not None:
            starts = range(0, A.shape[0], _DIAGONAL_ROWS)
            parts = [A[start : start + _DIAGONAL_ROWS] for start in starts]
            return np.concatenate([np.empty(0), *(self._call(p, p).diagonal() for p in parts)])
        self._require_formula()
        if self.name in ("rbf", "laplacian"):
            return np.ones(A.shape[0])
        A = _as_rows(A)
        if self.name in ("linear", "poly"):
            squares = _require_finite(squared_norms(self._from_origin(A)), self.name)
            return squares if self.name == "linear" else self._poly(squares)
        if self.name == "chi2":
            _require_nonnegative(A)
        return np.ones(A.shape[0])

    def features(self, A: Any) -> FloatArray:
        """What ``linear`` multiplies: the rows of A, measured from the origin."""
        return np.asarray(self._from_origin(_as_rows(A)), dtype=np.float64)

    def norms(self, A: Any, squares: FloatArray | None = None) -> FloatArray | None:
        """Squared norms for `block` to reuse: for ``rbf``, measured from the origin; else None.

        They are `squares`, if that is at hand; it is then checked.
        """
        if self.name != "rbf":
            return None
        if squares is None:
            squares = squared_norms(self._from_origin(_as_rows(A)))
        return _require_finite(squares, self.name)

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
        degree, coef0 = _poly_parameters(name, fields["degree"], fields["coef0"])
        if origin is not None:
            if not isinstance(origin, list) or not all(map(_is_number, origin)):
                raise ValueError("kernel origin must be a list of finite numbers, one per feature")
            origin = np.array(origin, dtype=np.float64)
        return cls(name, float(gamma), degree, coef0, None, origin)

    def _require_formula(self) -> None:
        if self.name == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no formula; use the values of the matrix given"
            )

    def _call(self, A: Any, B: Any) -> FloatArray:
        assert self.function is not None
        shape = (A.shape[0], B.shape[0])
        block = dense_values(self.function(A, B), shape, f"kernel={self.function!r}")
        return _require_finite(block, repr(self.function))

    def _poly(self, products: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            for part in _chunks(products):
                np.multiply(part, self.gamma, out=part)
                np.add(part, self.coef0, out=part)
                if self.degree == 0:
                    part.fill(1.0)
                base = part.copy()
                # By products: for the usual degrees far faster than pow.
                for _ in range(self.degree - 1):
                    np.multiply(part, base, out=part)
        return _require_finite(products, self.name)

    def _rbf_block(
        self, A: Any, B: Any, A_norms: FloatArray | None, B_norms: FloatArray | None
    ) -> FloatArray:
        same = A is B
        A = self._from_origin(A)
        B = A if same else self._from_origin(B)
        if A_norms is None:
            A_norms = _require_finite(squared_norms(A), self.name)
        if B_norms is None:
            B_norms = A_norms if same else _require_finite(squared_norms(B), self.name)
        block = self._rbf(_products(A, B), A_norms, B_norms)
        if same:
            np.fill_diagonal(block, 1.0)
        return block

    def _rbf(self, products: FloatArray, A_norms: FloatArray, B_norms: FloatArray) -> FloatArray:
        # -gamma d^2 = 2 gamma (<a, b> - ||a||^2 / 2 - ||b||^2 / 2); halving is exact.
        half_a, half_b = np.multiply(A_norms, 0.5), np.multiply(B_norms, 0.5)
        rows = max(1, _CHUNK_ENTRIES // max(1, products.shape[1]))
        for start in range(0, products.shape[0], rows):
            part = products[start : start + rows]
            # A squared distance that rounding made negative would give a value above one.
            scaled_distances(part, half_a[start : start + rows], half_b, 2.0 * self.gamma)
            np.exp(part, out=part)
        return products

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
    degree: int,
    coef0: float,
    X: Any,
    sample_weight: Any = None,
    shift_free: bool = False,
) -> Kernel:
    """Settle a kernel's parameters on the training rows `X`.

    `kernel` is one of `KERNEL_NAMES` or a function ``k(X, Z) -> (len(X), len(Z))``; `gamma` is as
    in `resolve_gamma`, which `sample_weight` is for; `degree` and `coef0` belong to ``poly``.
    `shift_free` says that the weights sum to zero, so that a common offset of the features only
    moves b: ``linear`` may then measure from an origin, as ``rbf`` always may, and keep the digits
    that the offset would take.
    Raises `IndefiniteKernelError` for ``"sigmoid"`` and for ``"poly"`` with a negative `coef0`,
    and ValueError for an unknown name or a parameter out of range.

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
    degree, coef0 = _poly_parameters(kernel, degree, coef0)
    if kernel == "precomputed":
        return Kernel(kernel, degree=degree, coef0=coef0)
    if kernel == "linear":
        origin = offset_origin(_as_rows(X)) if shift_free else None
        return Kernel(kernel, degree=degree, coef0=coef0, origin=origin)
    if kernel == "chi2":
        _require_nonnegative(_as_rows(X))
    value = resolve_gamma(gamma, X, sample_weight)
    origin = offset_origin(_as_rows(X)) if kernel == "rbf" else None
    return Kernel(kernel, value, degree, coef0, None, origin)


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


def _poly_parameters(kernel: str, degree: Any, coef0: Any) -> tuple[int, float]:
    if not _is_number(degree) or degree < 0 or degree != int(degree):
        raise ValueError(f"degree={degree!r} must be a whole number >= 0")
    if not _is_number(coef0):
        raise ValueError(f"coef0={coef0!r} must be a finite number")
    if kernel == "poly" and coef0 < 0.0:
        raise IndefiniteKernelError(
            f"coef0={coef0!r} makes kernel='poly' indefinite, so there is no unique optimum to "
            "follow; use coef0 >= 0"
        )
    return int(degree), float(coef0)


def _as_rows(A: Any) -> Any:
    """`A` as a 2-D float64 array or CSR matrix, without a copy where it is one already."""
    if sp.issparse(A):
        return A.tocsr().astype(np.float64, copy=False)
    rows = np.asarray(A, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"rows of features must be a 2-D array, got shape {rows.shape}")
    return rows


def _products(A: Any, B: Any) -> FloatArray:
    """A @ B.T as a new dense array in C order."""
    if sp.issparse(A) and sp.issparse(B) and B.shape[0] == 1:
        B = B.toarray()  # one row is cheaper dense: the product is then a plain pass over A
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks that all is finite
        product = A @ B.T
    return np.ascontiguousarray(product.toarray() if sp.issparse(product) else product)


def _city_block(A: Any, B: Any) -> FloatArray:
    if sp.issparse(A) or sp.issparse(B):
        return np.ascontiguousarray(manhattan_distances(_canonical_int32(A), _canonical_int32(B)))
    return np.ascontiguousarray(cdist(A, B, "cityblock"))


def _canonical_int32(A: Any) -> Any:
    """A sorted copy with int32 indices: scikit-learn takes no others, and sorts in place."""
    rows = sp.csr_array(A, copy=True)
    if rows.nnz > np.iinfo(np.int32).max:
        raise ValueError("kernel='laplacian' takes less than 2**31 stored values; pass fewer rows")
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    rows.sum_duplicates()
    return rows


def _chi2_distances(A: Any, B: Any) -> FloatArray:
    """sum_j (a_j - b_j)^2 / (a_j + b_j) for every pair of rows."""
    _require_nonnegative(A)
    _require_nonnegative(B)
    # scikit-learn's loop takes writable arrays only, though it writes to none.
    other = np.require(B.toarray() if sp.issparse(B) else B, requirements="W")
    out = np.empty((A.shape[0], B.shape[0]))
    for rows, part in dense_slices(A) if out.size else ():
        part = np.require(part, requirements="W")
        np.negative(additive_chi2_kernel(part, other), out=out[rows])
    return out


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


def _chunks(values: FloatArray) -> Iterator[FloatArray]:
    """Views of consecutive entries of a C-ordered array, each small enough for the cache."""
    flat = values.reshape(-1)
    for start in range(0, flat.shape[0], _CHUNK_ENTRIES):
        yield flat[start : start + _CHUNK_ENTRIES]
