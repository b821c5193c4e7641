# SPDX-License-Identifier: BSD-3-Clause
"""The estimator of a store's last entry, out of its tables: checked against the log, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sqlalchemy as sa

from adiabat.errors import ModelFileError, StoreDamagedError
from adiabat.store import log, records, tasks
from adiabat.store.digests import SetDigest, sha256
from adiabat.store.settings import Settings
from adiabat.store.state import unpack_model
from adiabat.store.tasks import TASKS, is_fitted, machine


def load_model(
    folder: str,
    connection: sa.Connection,
    head: log.Entry,
    settings: Settings,
    state: Mapping[str, Any],
) -> Any:
    """The estimator that `state` holds."""
    said = head.body
    if state["entry"] != head.seq or sha256(state["model"]) != said["model"]["after"]:
        raise StoreDamagedError(
            f"{folder!r} has a model other than its log vouches for; restore a copy"
        )
    X, numbers = None, []
    if TASKS[settings.task].keeps_rows:
        held = list(records.read_all(connection))
        digest = SetDigest()
        digest.add(record.leaf for record in held)
        if digest.hexdigest() != said["dataset"]["after"]:
            raise StoreDamagedError(
                f"{folder!r} has training rows other than its log vouches for; restore a copy"
            )
        X = records.decode_features([record.features for record in held], settings.n_features)
        numbers = [record.number for record in held]
    try:
        model = unpack_model(state["model"], settings, X)
    except (ModelFileError, ValueError, TypeError) as error:
        raise _unusable(folder, str(error).partition(";")[0]) from error
    if is_fitted(model) and model.n_features_in_ != settings.n_features:
        raise _unusable(folder, "it has not as many features as the settings say")
    expected = machine(new_model(folder, settings)).get_params(deep=False)
    known = machine(model).get_params(deep=False)
    for name in set(settings.parameters) & set(expected):
        if known[name] != expected[name]:
            raise _unusable(folder, f"it has another {name} than the settings")
    if numbers and not np.array_equal(model.ids_, numbers):
        raise _unusable(folder, "it is of other rows than the table has")
    return model


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
