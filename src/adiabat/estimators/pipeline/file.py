# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline as a model file: the machine's own content, the rows as given, the scaler's sums.

The scaled rows are not written: they are computed again on reading, the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from adiabat.estimators.files.content import ROWS, Arrays, Manifest, content_of, row_arrays
from adiabat.preprocessing.scaler import StandardScaler

_OF_THE_MACHINE = "machine."


def content(pipeline: Any) -> tuple[Manifest, Arrays]:
    """Manifest and arrays of a fitted pipeline."""
    machine, own = content_of(pipeline.estimator_)
    scaler, arrays = pipeline.scaler_._to_file()
    manifest: Manifest = {
        "mode": pipeline.mode,
        "machine": machine,
        "scaler": scaler,
        "default_scaler": pipeline.scaler is None,
    }
    raw = pipeline._raw
    if sp.issparse(raw):
        manifest["shape"] = [int(side) for side in raw.shape]
    arrays.update({_OF_THE_MACHINE + name: own[name] for name in own if name not in ROWS})
    arrays.update(row_arrays(raw))
    return manifest, arrays


def machine_arrays(arrays: Arrays, scaler: StandardScaler, raw: Any) -> Arrays:
    """The arrays of the machine's own file, with the rows scaled."""
    own = {
        name.removeprefix(_OF_THE_MACHINE): array
        for name, array in arrays.items()
        if name.startswith(_OF_THE_MACHINE)
    }
    return own | row_arrays(scaler.transform(raw))
