# SPDX-License-Identifier: BSD-3-Clause
"""A fitted estimator as one blob without its training rows.

The blob is a model file (`archive.py`) less the features, which stand in the table of records and
nowhere else: an update writes a few numbers a row and not the rows, and erasing a row is erasing it
in one place.
"""

from __future__ import annotations

from typing import Any, Final

from adiabat.archive import pack_archive, unpack_archive
from adiabat.errors import ModelFileError
from adiabat.estimators.files.content import ROWS, Arrays, Manifest, content_of, row_arrays
from adiabat.estimators.predictors.stored import StoredPredictor, predictor_from
from adiabat.store.settings import Settings
from adiabat.store.tasks import TASKS, is_fitted, new_model

_NAME: Final = "the model of the store"


def pack_model(model: Any) -> bytes:
    """The blob of an estimator; empty if it has learned nothing."""
    if not is_fitted(model):
        return b""
    manifest, arrays = content_of(model)
    return pack_archive(manifest, {name: arrays[name] for name in arrays if name not in ROWS})


def unpack_content(blob: bytes, settings: Settings, X: Any) -> tuple[Manifest, Arrays]:
    """The content of a model file, from a blob and rows; `ModelFileError` if it is not sound."""
    manifest, arrays = unpack_archive(blob, _NAME)
    if TASKS[settings.task].keeps_rows:
        arrays.update(row_arrays(X))
    return manifest, arrays


def unpack_model(blob: bytes, settings: Settings, X: Any) -> Any:
    """The estimator of a blob and its training rows, judged on the way in.

    Raises `ModelFileError` if the blob is not sound, or not the optimum on the rows.
    """
    if not blob:
        return new_model(settings)
    from adiabat.estimators.files.loading import estimator_from

    return estimator_from(*unpack_content(blob, settings, X), _NAME)


def unpack_predictor(blob: bytes, settings: Settings, X: Any) -> StoredPredictor | None:
    """The predictor of a blob and its training rows, judged as `unpack_model` does.

    None if it takes the estimator to make it.
    """
    content = unpack_content(blob, settings, X)
    try:
        return predictor_from(*content)
    except Exception as error:
        # The content is a stranger's: whatever it brings about, it is the file that is at fault.
        raise ModelFileError(f"{_NAME!r} is not a sound model file ({error})") from error
