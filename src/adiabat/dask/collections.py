# SPDX-License-Identifier: BSD-3-Clause
"""Dask arrays and data frames as partitions of rows, and answers as collections like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from adiabat.partitions.looks import Part


def parts_of(X: Any, y: Any = None, sample_weight: Any = None, first: int = 0) -> list[Any]:
    """Delayed partitions of rows, numbered from `first`; plain arrays are one partition."""
    rows = _blocks(X, "X")
    targets = _blocks(_cut_like(X, y), "y")
    weights = _blocks(_cut_like(X, sample_weight), "sample_weight")
    for name, blocks in (("y", targets), ("sample_weight", weights)):
        if blocks is not None and len(blocks) != len(rows):
            raise ValueError(
                f"{name} has {len(blocks)} partitions and X {len(rows)}; cut both in the same "
                "places (rechunk, repartition)"
            )
    make = dask.delayed(Part, pure=True)
    return [make(rows[k], _at(targets, k), _at(weights, k), first + k) for k in range(len(rows))]


def lazily(function: Callable[[Any, Any], Any], model: Any, X: Any, like: Any) -> Any:
    """`function(model, rows)` for every partition, when it is asked for.

    `like` is what the answer for no rows looks like.
    """
    if not dask.is_dask_collection(X):
        return function(model, X)
    held = dask.delayed(model, traverse=False, pure=False)
    if hasattr(X, "map_partitions"):
        return X.map_partitions(
            _framed, function, held, like, meta=_framed_meta(like), enforce_metadata=False
        )
    blocks = _blocks(X, "X")
    ask = dask.delayed(function, pure=True)
    pieces = [
        da.from_delayed(ask(held, block), (n, *like.shape[1:]), like.dtype)
        for block, n in zip(blocks, X.chunks[0], strict=True)
    ]
    return da.concatenate(pieces, axis=0, allow_unknown_chunksizes=True)


def _framed(part: Any, function: Callable[[Any, Any], Any], model: Any, like: Any) -> Any:
    import pandas as pd

    found = function(model, part) if len(part) else like
    kind = pd.Series if found.ndim == 1 else pd.DataFrame
    return kind(found, index=part.index)


def _framed_meta(like: Any) -> Any:
    import pandas as pd

    return (pd.Series if like.ndim == 1 else pd.DataFrame)(like)


def _at(blocks: Any, k: int) -> Any:
    return None if blocks is None else blocks[k]


def _blocks(X: Any, name: str) -> Any:
    """Delayed blocks of rows; None for None."""
    if X is None:
        return None
    if not dask.is_dask_collection(X):
        return [dask.delayed(X, traverse=False, pure=False)]
    if isinstance(X, da.Array):
        if X.ndim > 1 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    if hasattr(X, "to_delayed"):
        found = X.to_delayed()
        return list(found) if isinstance(found, (list, tuple)) else list(np.ravel(found))
    raise TypeError(
        f"{name} is a {type(X).__name__}; pass a Dask array or data frame, or a plain array"
    )


def _cut_like(X: Any, y: Any) -> Any:
    """Y cut where X is, if both are arrays that know where that is."""
    both = isinstance(X, da.Array) and isinstance(y, da.Array)
    if both and y.chunks[0] != X.chunks[0]:
        known = not any(np.isnan(n) for n in (*X.chunks[0], *y.chunks[0]))
        if known and sum(X.chunks[0]) == sum(y.chunks[0]):
            return y.rechunk({0: X.chunks[0]})
        if known:
            raise ValueError(
                f"y has {sum(y.chunks[0])} targets, X has {sum(X.chunks[0])} rows; give one "
                "for each"
            )
    return y
