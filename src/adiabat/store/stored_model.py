# SPDX-License-Identifier: BSD-3-Clause
"""The model of a store's last entry, out of its tables: checked against the log, and judged.

It is read as an estimator, to change it, or as the arrays that it decides with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sqlalchemy as sa

from adiabat.errors import ModelFileError, StoreDamagedError
from adiabat.store import log, records, tasks
from adiabat.store.digests import SetDigest, sha256
from adiabat.store.predictor import Predictor
from adiabat.store.settings import Settings
from adiabat.store.state import unpack_model, unpack_predictor
from adiabat.store.tasks import TASKS, is_fitted, machine


def load_model(
    folder: str,
    connection: sa.Connection,
    head: log.Entry,
    settings: Settings,
    state: Mapping[str, Any],
) -> Any:
    """The estimator that `state` holds."""
    X, numbers = _rows(folder, connection, head, settings, state)
    try:
        model = unpack_model(state["model"], settings, X)
    except (ModelFileError, ValueError, TypeError) as error:
        raise _unusable(folder, str(error).partition(";")[0]) from error
    expected = machine(new_model(folder, settings)).get_params(deep=False)
    if is_fitted(model):
        known, ids = machine(model).get_params(deep=False), getattr(model, "ids_", ())
        _require_matching(folder, settings, expected, known, model.n_features_in_, ids, numbers)
    return model


def load_predictor(
    folder: str,
    connection: sa.Connection,
    head: log.Entry,
    settings: Settings,
    state: Mapping[str, Any],
) -> Predictor | None:
    """What the model that `state` holds decides with; None if it takes the estimator to make it.

    It is checked against the log and judged on its rows as the estimator is.
    """
    if not state["model"] or not TASKS[settings.task].has_sets:
        return None
    X, numbers = _rows(folder, connection, head, settings, state)
    try:
        found = unpack_predictor(state["model"], settings, X)
    except (ModelFileError, ValueError, TypeError) as error:
        raise _unusable(folder, str(error).partition(";")[0]) from error
    if found is None:
        return None
    parameters = settings.parameters
    _require_matching(
        folder, settings, parameters, found.parameters, found.n_features, found.ids, numbers
    )
    places = found.predictor.decider.places
    return Predictor(head.seq, head.hash, settings, found.predictor, found.ids[places].copy())


def _rows(
    folder: str,
    connection: sa.Connection,
    head: log.Entry,
    settings: Settings,
    state: Mapping[str, Any],
) -> tuple[Any, list[int]]:
    """The training rows and their numbers, if the task keeps them; all checked against the log."""
    said = head.body
    if state["entry"] != head.seq or sha256(state["model"]) != said["model"]["after"]:
        raise StoreDamagedError(
            f"{folder!r} has a model other than its log vouches for; restore a copy"
        )
    if not TASKS[settings.task].keeps_rows:
        return None, []
    held = list(records.read_all(connection))
    digest = SetDigest()
    digest.add(record.leaf for record in held)
    if digest.hexdigest() != said["dataset"]["after"]:
        raise StoreDamagedError(
            f"{folder!r} has training rows other than its log vouches for; restore a copy"
        )
    X = records.decode_features([record.features for record in held], settings.n_features)
    return X, [record.number for record in held]


def _require_matching(
    folder: str,
    settings: Settings,
    expected: Mapping[str, Any],
    known: Mapping[str, Any],
    n_features: int,
    ids: Any,
    numbers: list[int],
) -> None:
    """Refuse a model that is not of the settings, or not of the rows."""
    if n_features != settings.n_features:
        raise _unusable(folder, "it has not as many features as the settings say")
    for name in set(settings.parameters) & set(expected):
        if name not in known or known[name] != expected[name]:
            raise _unusable(folder, f"it has another {name} than the settings")
    if numbers and not np.array_equal(ids, numbers):
        raise _unusable(folder, "it is of other rows than the table has")


def new_model(folder: str, settings: Settings) -> Any:
    """An estimator of these settings that has learned nothing."""
    try:
        return tasks.new_model(settings)
    except (ValueError, TypeError) as error:
        raise StoreDamagedError(
            f"{folder!r} has settings of which no model can be made ({error}); restore a copy"
        ) from error


def _unusable(folder: str, why: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{folder!r} holds a model that cannot be used ({why}); adiabat repair, or "
        "Store.repair(), fits it again from the rows"
    )
