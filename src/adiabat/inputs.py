# SPDX-License-Identifier: BSD-3-Clause
"""Arrays and sizes from outside, checked before compiled code indexes or allocates by them.

SciPy trusts the index arrays of its sparse matrices, and so do the loops of `_core`: a column
number out of range reads or writes memory that is not the matrix's. Every sparse matrix that comes
from a caller, a file or a store goes through `require_sparse` or `csr_from_parts` first. Invariant:
what they let pass has row bounds that start at 0, never fall and end within the entries, column
numbers in range, and as many values as column numbers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from adiabat.typing import FloatArray

__all__ = [
    "MAX_TOL",
    "as_csr",
    "csr_from_parts",
    "dense_values",
    "memory_limit",
    "require_csr",
    "require_memory",
    "require_sparse",
    "require_width",
]


#: The largest `tol`: a looser one would call a model optimal that has learned nothing.
MAX_TOL: Final = 1e-2

# Rows and columns are counted in 32 bits below.
_MOST: Final = np.iinfo(np.int32).max
# Rows laid side by side for a product, at most, each as long as there are features.
_LANES: Final = 48
_FLOAT_BYTES: Final = 8
# Half of this is the limit where the size of the memory is not known.
_USUAL_MEMORY: Final = 1 << 33


def require_sparse(X: Any, name: str = "X") -> None:
    """Refuse a SciPy sparse matrix whose index arrays are not sound; ValueError names it."""
    if min(X.shape) < 0:
        raise _unsound(name, f"its shape is {X.shape}")
    if X.format in ("csr", "csc"):
        major, minor = X.shape if X.format == "csr" else X.shape[::-1]
        _require_compressed(X.indptr, X.indices, X.data, major, minor, name)
    elif X.format == "coo":
        _require_coordinates(X, name)
    elif X.format == "bsr":
        high, wide = X.data.shape[1:]
        if min(high, wide) < 1 or X.shape[0] % high or X.shape[1] % wide:
            raise _unsound(name, f"blocks of {high} x {wide} do not divide its shape {X.shape}")
        _require_compressed(
            X.indptr, X.indices, X.data[:, 0, 0], X.shape[0] // high, X.shape[1] // wide, name
        )


def as_csr(X: Any) -> Any:
    """CSR with sorted indices and float64 data, or X itself if dense."""
    return sp.csr_array(X) if sp.issparse(X) else X


def require_csr(X: Any, name: str = "X") -> Any:
    """A sparse matrix in CSR, sound before and after the conversion."""
    require_sparse(X, name)
    if X.format == "csr":
        return X
    rows = X.tocsr()
    require_sparse(rows, name)  # lists and dictionaries of entries show their faults only here
    return rows


def csr_from_parts(data: Any, indices: Any, indptr: Any, shape: Sequence[Any], name: str) -> Any:
    """A CSR array of float64 from arrays that a file holds; ValueError if they are not one."""
    sides = [side for side in shape if type(side) is int and 0 <= side <= _MOST]
    if len(sides) != 2 or len(shape) != 2:
        raise ValueError(f"{name} has the shape {tuple(shape)!r}, which no matrix has")
    if data.dtype != np.float64:
        raise ValueError(f"{name} has values of dtype {data.dtype}, not float64")
    _require_compressed(indptr, indices, data, sides[0], sides[1], name)
    return sp.csr_array((data, indices, indptr), shape=(sides[0], sides[1]))


def dense_values(values: Any, shape: tuple[int, int], name: str) -> FloatArray:
    """What a function of the caller's returned, as a new float64 array of this shape in C order."""
    if sp.issparse(values):
        values = require_csr(values, f"what {name} returned").toarray()
    if np.iscomplexobj(values):
        raise ValueError(f"{name} returned complex numbers; it must return real ones")
    # A copy: the function may hand out an array that it keeps.
    block: FloatArray = np.array(values, np.float64, order="C")
    if block.shape != shape:
        raise ValueError(
            f"{name} returned shape {block.shape} for {shape[0]} and {shape[1]} rows; it must "
            f"return shape {shape}"
        )
    return block


def require_width(width: int, name: str = "X", limit: int | None = None) -> None:
    """Refuse sparse rows of so many features that products with them could not be held."""
    what = f"{name}, sparse rows of {width} features,"
    require_memory(_LANES * _FLOAT_BYTES * width, what, limit)


def memory_limit() -> int:
    """Bytes that what a file or a caller declares may take: half of the machine's memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        memory = _USUAL_MEMORY
    return (memory if memory > 0 else _USUAL_MEMORY) // 2


def require_memory(needed: int, what: str, limit: int | None = None) -> None:
    """Refuse, before anything is allocated, what would take more memory than is allowed."""
    allowed = memory_limit() if limit is None else limit
    if needed > allowed:
        raise ValueError(
            f"{what} would take {needed / 2**30:.3g} GiB of memory, and {allowed / 2**30:.3g} GiB "
            "are allowed"
        )


def _require_compressed(
    indptr: Any, indices: Any, data: Any, major: int, minor: int, name: str
) -> None:
    for part, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise _unsound(name, f"{part} is no one-dimensional array of whole numbers")
    if data.ndim != 1 or len(indices) != len(data):
        raise _unsound(name, f"it has {len(indices)} indices and {len(data)} values")
    if len(indptr) != major + 1:
        raise _unsound(name, f"indptr has {len(indptr)} entries where {major + 1} are needed")
    count = int(indptr[-1])
    if int(indptr[0]) != 0 or count > len(indices):
        raise _unsound(
            name, f"indptr goes from {indptr[0]} to {count}, and there are {len(indices)} values"
        )
    if major > 1 and (indptr[1:] < indptr[:-1]).any():
        raise _unsound(name, "indptr falls from one row to the next")
    if count < 0:
        raise _unsound(name, "indptr falls from one row to the next")
    _require_range(indices[:count], minor, name, "indices")


def _require_coordinates(X: Any, name: str) -> None:
    if len(X.coords) != 2 or any(len(part) != len(X.data) for part in X.coords):
        raise _unsound(name, "its coordinates are not as many as its values")
    for part, side, said in zip(X.coords, X.shape, ("row", "col"), strict=True):
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise _unsound(name, f"{said} is no one-dimensional array of whole numbers")
        _require_range(part, side, name, said)


def _require_range(numbers: Any, side: int, name: str, said: str) -> None:
    if not len(numbers):
        return
    least, most = int(numbers.min()), int(numbers.max())
    if least < 0 or most >= side:
        wrong = least if least < 0 else most
        raise _unsound(name, f"{said} has {wrong}, outside 0 to {side - 1}")


def _unsound(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} is a sparse matrix that is not sound: {what}; build it anew, by "
        "scipy.sparse.csr_array of a dense or COO matrix, say"
    )
