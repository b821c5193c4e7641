# SPDX-License-Identifier: BSD-3-Clause
"""A fitted estimator as one blob without its training rows.

The blob is a model file (`archive.py`) less the features, which stand in the table of records and
nowhere else: an update writes a few numbers a row and not the rows, and erasing a row is erasing it
in one place.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from adiabat.archive import HeldArchive, pack_archive, unpack_archive
from adiabat.estimators.loading import load
from adiabat.store.settings import Settings
from adiabat.store.tasks import TASKS, is_fitted, new_model

_NAME: Final = "the model of the store"
_FEATURES: Final = ("X", "X_data", "X_indices", "X_indptr")


def pack_model(model: Any) -> bytes:
    """The blob of an estimator; empty if it has learned nothing."""
    if not is_fitted(model):
        return b""
    held = HeldArchive(_NAME)
    model.save(held)
    arrays = {name: value for name, value in held.arrays.items() if name not in _FEATURES}
    return pack_archive(held.manifest, arrays)


def unpack_model(blob: bytes, settings: Settings, X: Any) -> Any:
    """The estimator of a blob and its training rows, judged on the way in.

    Raises `ModelFileError` if the blob is not sound, or not the optimum on the rows.
    """
    task = TASKS[settings.task]
    if not blob:
        return new_model(settings)
    manifest, arrays = unpack_archive(blob, _NAME)
    if task.keeps_rows:
        arrays.update(_feature_arrays(X))
    return load(HeldArchive(_NAME, manifest, arrays))


def _feature_arrays(X: Any) -> dict[str, Any]:
    if sp.issparse(X):
        return {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr}
    return {"X": np.ascontiguousarray(X)}
