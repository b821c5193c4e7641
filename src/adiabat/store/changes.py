# SPDX-License-Identifier: BSD-3-Clause
"""What each operation does to the model and to the rows, inside a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adiabat.store import records
from adiabat.store.digests import new_keys
from adiabat.store.encoding import Batch, encode_revision, require_affordable, with_values
from adiabat.store.lookup import find_records
from adiabat.store.records import Record
from adiabat.store.session import Change
from adiabat.store.suppression import add_marks, mark
from adiabat.store.tables import Table
from adiabat.store.tasks import TASKS, Rows, is_fitted, machine, new_model, plain


def add_batch(change: Change, batch: Batch) -> None:
    """Learn new rows."""
    if not len(batch):
        change.idle = True
        return
    count = len(batch)
    numbers = np.arange(change.next_number, change.next_number + count, dtype=np.int64)
    labels = None if batch.labels is None else np.array(batch.labels)
    if change.settings.features is None and batch.settings.impute is not None:
        change.model = new_model(batch.settings)  # now the columns are known
    TASKS[batch.settings.task].learn(change.model, numbers, batch.X, labels, batch.weights)
    change.settings = batch.settings
    weights = np.ones(count) if batch.weights is None else batch.weights
    new = [
        Record(number, name, key, features, label, weight, change.seq)
        for number, name, key, features, label, weight in zip(
            numbers.tolist(),
            batch.ids,
            new_keys(count),
            records.encode_features(batch.X),
            records.encode_labels(batch.labels, count),
            weights.tolist(),
            strict=True,
        )
    ]
    records.insert(change.connection, new)
    change.dataset.add(record.leaf for record in new)
    change.next_number += count
    change.marks = [record.commitment for record in new]
    change.touched = new
    change.body["details"]["added"] = count


def erase_records(change: Change, found: Sequence[Record], suppress: bool) -> None:
    """Unlearn rows and delete them, their keys included."""
    if not found:
        change.idle = True
        return
    rows = records.as_rows(found, change.settings.n_features)
    numbers = np.array([record.number for record in found], dtype=np.int64)
    TASKS[change.settings.task].forget(change.model, numbers, rows)
    records.delete(change.connection, numbers.tolist())
    change.dataset.remove(record.leaf for record in found)
    change.marks = [record.commitment for record in found]
    drop_values(change)
    if suppress:
        add_marks(change, [record.id for record in found])
    change.purges = True
    change.body["details"] = {"removed": len(found), "suppressed": suppress}
    if suppress:  # so that whoever can test for an id can be told when it was erased
        key = change.keys.of_marks(change.settings)
        change.body["details"]["marks"] = sorted(mark(key, record.id).hex() for record in found)


def erase_again(change: Change, names: Sequence[str]) -> int:
    """Unlearn those of these ids that are there, and mark all of them as erased; how many."""
    found = find_records(change, names, "ignore")
    if found:
        erase_records(change, found, suppress=False)
    else:
        change.model_changed = False
    add_marks(change, names)
    change.body["details"] = {"removed": len(found), "suppressed": True}
    return len(found)


def correct_records(change: Change, found: Sequence[Record], table: Table) -> None:
    """Correct rows by the columns of a table that has their ids in this order."""
    if not found:
        change.idle = True
        return
    change.settings = with_values(table, change.settings)
    old = records.as_rows(found, change.settings.n_features)
    new, columns = encode_revision(table, change.settings, old)
    numbers = np.array([record.number for record in found], dtype=np.int64)
    TASKS[change.settings.task].revise(change.model, numbers, old, new)
    corrected = _corrected(found, new)
    records.replace(change.connection, corrected)
    change.dataset.remove(record.leaf for record in found)
    change.dataset.add(record.leaf for record in corrected)
    change.marks = [record.commitment for record in found]
    change.touched = corrected
    drop_values(change)
    change.body["details"] = {"revised": len(found), "columns": columns}


def drop_values(change: Change) -> None:
    """Where rows are kept as given, remove values that no row has any more from the settings."""
    settings = change.settings
    if settings.impute is None or not isinstance(settings.features, list):
        return
    held = [record.features for record in records.read_all(change.connection)]
    X = records.decode_features(held, settings.n_features)
    features = []
    for j, column in enumerate(settings.features):
        if column["kind"] == "category":
            there = set(X[:, j].tolist())
            values = [v if code in there else None for code, v in enumerate(column["values"])]
            column = {**column, "values": values}
        features.append(column)
    change.settings = replace(settings, features=features)


def add_column(change: Change, name: str, kind: str) -> None:
    """Add a column to rows that are kept as given; all of them have a gap in it."""
    settings = change.settings
    if settings.impute is None or not isinstance(settings.features, list):
        raise ValueError(
            "columns can be added to a store that fills gaps, after its first rows; make one with "
            "impute, and learn the rows again"
        )
    known = [column["name"] for column in settings.features]
    if name in (*known, settings.id_column, settings.label_column, settings.weight_column):
        raise ValueError(f"column {name!r} is there already; choose another name")
    column: dict[str, Any] = {"name": name, "kind": kind}
    if kind == "category":
        column["values"] = []
    ignored = [item for item in settings.ignored if item != name]
    held = list(records.read_all(change.connection))
    X = records.decode_features([record.features for record in held], settings.n_features)
    X = np.column_stack([X, np.full(len(held), np.nan)])
    change.settings = replace(settings, features=[*settings.features, column], ignored=ignored)
    wider = [
        replace(record, features=row)
        for record, row in zip(held, records.encode_features(X), strict=True)
    ]
    records.replace(change.connection, wider)
    change.dataset.remove(record.leaf for record in held)
    change.dataset.add(record.leaf for record in wider)
    change.model = new_model(change.settings)
    fit_again(change)
    change.body["details"] = {"column": kind}


def follow_parameters(change: Change, parameters: Mapping[str, Any]) -> None:
    """Move the model to the optimum of other parameters."""
    if not parameters:
        change.idle = True
        return
    task = TASKS[change.settings.task]
    given = {**change.settings.parameters, **parameters}
    task.create(given)
    if is_fitted(change.model):
        if not hasattr(change.model, "retune"):
            raise ValueError(
                f"a model of task {change.settings.task!r} cannot be retuned; make a new one with "
                "these parameters and learn the rows again"
            )
        known = machine(change.model).get_params(deep=False)
        mapped = [name for name in parameters if name not in known]
        if mapped:
            raise ValueError(
                f"{mapped[0]}={parameters[mapped[0]]!r} is part of the feature map, which a model "
                "keeps; make a new one with it and learn the rows again"
            )
        change.model.retune(**parameters)
    else:
        change.model = new_model(change.settings, given)
    change.settings = replace(change.settings, parameters=given)
    change.body["details"] = {"parameters": plain(parameters)}


def refresh_held(change: Change) -> None:
    """Recompute from the rows what was once computed from rows and then held fixed."""
    dropped = _drop_categories(change)
    if dropped:
        # A log holds no value of a row: how many, not which.
        change.body["details"] = {"categories_dropped": dropped}
        change.purges = True
        change.model = new_model(change.settings)
        fit_again(change)
        return
    if not is_fitted(change.model):
        change.idle = True
        return
    if not hasattr(change.model, "refresh"):
        raise ValueError(f"a model of task {change.settings.task!r} holds nothing to refresh")
    change.model.refresh()


def fit_again(change: Change) -> int:
    """Teach the change's estimator, which has learned nothing, all rows; how many."""
    held = list(records.read_all(change.connection))
    if held:
        rows = records.as_rows(held, change.settings.n_features)
        numbers = np.array([record.number for record in held], dtype=np.int64)
        task = TASKS[change.settings.task]
        require_affordable(change.settings.n_features, task)
        task.learn(change.model, numbers, rows.X, rows.labels, rows.weights)
    return len(held)


def _drop_categories(change: Change) -> int:
    """Forget categories that rows had fixed and no row has any more; how many those are."""
    settings = change.settings
    if settings.impute is not None:
        return 0  # categories go with their last row
    columns = settings.features if isinstance(settings.features, list) else []
    held = list(records.read_all(change.connection))
    X = records.decode_features([record.features for record in held], settings.n_features)
    kept, features, at = [], [], 0
    for column in columns:
        width = len(column.get("values", (0,)))
        stays = np.ones(width, dtype=bool)
        if column["kind"] == "category" and settings.categories.get(column["name"]) is None:
            stays = X[:, at : at + width].any(axis=0)
            values = [value for value, stay in zip(column["values"], stays, strict=True) if stay]
            column = {**column, "values": values}
        kept.append(stays)
        features.append(column)
        at += width
    stays = np.concatenate(kept) if kept else np.ones(0, dtype=bool)
    if stays.all():
        return 0
    if not held:  # the next rows say anew which columns there are
        change.settings = replace(settings, features=None, label_kind=None)
        return int(np.sum(~stays))
    change.settings = replace(settings, features=features)
    narrowed = [
        replace(record, features=row)
        for record, row in zip(held, records.encode_features(X[:, stays]), strict=True)
    ]
    records.replace(change.connection, narrowed)
    change.dataset.remove(record.leaf for record in held)
    change.dataset.add(record.leaf for record in narrowed)
    return int(np.sum(~stays))


def _corrected(found: Sequence[Record], new: Rows) -> list[Record]:
    labels = None if new.labels is None else new.labels.tolist()
    return [
        replace(record, features=features, label=label, weight=weight)
        for record, features, label, weight in zip(
            found,
            records.encode_features(new.X),
            records.encode_labels(labels, len(found)),
            np.asarray(new.weights, dtype=np.float64).tolist(),
            strict=True,
        )
    ]
