# SPDX-License-Identifier: BSD-3-Clause
"""The index of a pandas object as ids: of rows to learn, and of values to assign to samples.

The default index (0, 1, 2, ...) only counts rows; it names none. Any other index names its rows, if
its labels can be ids.
"""

from __future__ import annotations

import warnings
from typing import Any
from uuid import UUID

from adiabat.errors import IdError

__all__ = ["by_ids", "names_in"]


def _index_of(X: Any) -> Any:
    """The pandas index of `X`, or None if it has none or only the default one."""
    index = _pandas_index(X)
    return None if index is None or _only_counts(index) else index


def names_in(X: Any) -> list[Any] | None:
    """The ids that the index of `X` names, or None, with a warning where it names no ids.

    Dates, floats, several levels, mixed labels and labels that repeat are no ids; rows are then
    counted.
    """
    index = _index_of(X)
    if index is None:
        return None
    labels: list[Any] = index.tolist()
    if not all(_may_be_id(label) for label in labels):
        why = "its labels are not int, str, bytes or UUID"
    elif len({isinstance(label, int) + 2 * isinstance(label, str) for label in labels}) > 1:
        why = "it mixes kinds of labels"
    elif len(set(labels)) < len(labels):
        why = "labels repeat"
    else:
        return labels
    warnings.warn(
        f"The index of X cannot be ids ({why}), so samples are numbered; ids_ has their numbers. "
        "Pass ids= to name them.",
        stacklevel=2,
    )
    return None


def _may_be_id(label: Any) -> bool:
    return isinstance(label, (int, str, bytes, UUID)) and not isinstance(label, bool)


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
