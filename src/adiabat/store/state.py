# SPDX-License-Identifier: BSD-3-Clause
"""A fitted estimator as one blob without its training rows.

The blob is a model file (`archive.py`) less the features, which stand in the table of records and
nowhere else: an update writes a few numbers a row and not the rows, and erasing a row is erasing it
in one place.
"""

from __future__ import annotations

from typing import Any, Final

from adiabat.archive import pack_archive, unpack_archive
from adiabat.estimators.files.content import ROWS, content_of, row_arrays
from adiabat.estimators.files.loading import estimator_from
from adiabat.store.settings import Settings
from adiabat.store.tasks import TASKS, is_fitted, new_model

_NAME: Final = "the model of the store"


def pack_model(model: Any) -> bytes:
    """The blob of an estimator; empty if it has learned nothing."""
    if not is_fitted(model):
        return b""
    manifest, arrays = content_of(model)
    return pack_archive(manifest, {name: arrays[name] for name in arrays if name not in ROWS})


def unpack_model(blob: bytes, settings: Settings, X: Any) -> Any:
    """The estimator of a blob and its training rows, judged on the way in.

    Raises `ModelFileError` if the blob is not sound, or not the optimum on the rows.
    """
    task = TASKS[settings.task]
    if not blob:
        return new_model(settings)
    manifest, arrays = unpack_archive(blob, _NAME)
    if task.keeps_rows:
        arrays.update(row_arrays(X))
    return estimator_from(manifest, arrays, _NAME)
