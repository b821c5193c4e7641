# SPDX-License-Identifier: BSD-3-Clause
"""The index of a pandas object as ids: of rows to learn, and of values to assign to samples.

The default index (0, 1, 2, ...) only counts rows; it names none. Any other index names its rows.
"""

from __future__ import annotations

from typing import Any

from adiabat.errors import IdError

__all__ = ["by_ids", "index_of"]


def index_of(X: Any) -> Any:
    """The pandas index of `X`, or None if it has none or only the default one."""
    index = _pandas_index(X)
    return None if index is None or _only_counts(index) else index


def by_ids(ids: Any, value: Any, name: str) -> Any:
    """`value`, its rows in the order of `ids` where it has an index that names them.

    IdError if the index names others, or if the default index is the ids in another order: whose
    value is whose is then not clear.
    """
    index = _pandas_index(value)
    if index is None:
        return value
    wanted = _listed(ids)
    place = {label: row for row, label in enumerate(index.tolist())}
    named = len(place) == len(wanted) == len(index) and all(item in place for item in wanted)
    order = [place[item] for item in wanted] if named else []
    in_order = named and order == list(range(len(order)))
    if in_order or (_only_counts(index) and not named):
        return value
    if _only_counts(index):
        raise IdError(
            f"{name} has the default index 0 ... {len(index) - 1}, and ids has the same numbers in "
            f"another order; pass {name}.to_numpy() to go by position"
        )
    if not named:
        raise IdError(
            f"{name} has an index that does not name the {len(wanted)} ids; pass {name} with these "
            f"ids as its index, or {name}.to_numpy() to go by position"
        )
    return value.iloc[order]


def _pandas_index(X: Any) -> Any:
    index = getattr(X, "index", None)
    if index is None or callable(index) or not hasattr(index, "tolist"):
        return None
    return index


def _only_counts(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _listed(ids: Any) -> list[Any]:
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
        return [ids]
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)
