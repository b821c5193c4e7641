# SPDX-License-Identifier: BSD-3-Clause
"""Model files back into estimators."""

from __future__ import annotations

import os
from typing import Any

from adiabat.archive import read_archive
from adiabat.errors import ModelFileError
from adiabat.estimators.files.content import Arrays, Manifest, name_features
from adiabat.estimators.files.reading import require_affordable
from adiabat.estimators.incremental_pipeline import IncrementalPipeline
from adiabat.estimators.kernel_lssvm import KernelLSSVC, KernelLSSVR
from adiabat.estimators.lssvc import LSSVC
from adiabat.estimators.lssvr import LSSVR
from adiabat.estimators.one_class_svm import OneClassSVM
from adiabat.estimators.pipeline.file import machine_arrays, raw_rows, scaler_from
from adiabat.estimators.svc import SVC
from adiabat.estimators.svdd import SVDD
from adiabat.estimators.svr import SVR

# Stands for the name of the file until it is known.
_FILE = "the model file"
# The file names an estimator; only these are ever made.
_ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (SVC, SVR, OneClassSVM, SVDD, LSSVC, LSSVR, KernelLSSVC, KernelLSSVR)
}


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Any:
    """Read a model that was written by `save`. No code in the file is run.

    Parameters
    ----------
    path : path-like
        The model file.
    max_bytes : int, optional
        Memory that the model may take; by default half of the computer's. A file that declares
        more is refused before any of it is allocated.

    Returns
    -------
    estimator
        It continues as the saved one would have.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, not a model file, or its model is not the optimum on
        the rows it holds: the certificate is made anew on reading, whatever the file says of it.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import os, tempfile
    >>> import adiabat
    >>> path = os.path.join(tempfile.mkdtemp(), "model.adiabat")
    >>> adiabat.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"]).save(path)
    >>> adiabat.load(path).predict([[0.9]]).tolist()
    ['yes']
    """
    return estimator_from(*read_archive(path), os.fspath(path), max_bytes)


def estimator_from(
    manifest: Manifest, arrays: Arrays, name: str, max_bytes: int | None = None
) -> Any:
    """The estimator of a file's content; ModelFileError, with the file's name, if it is unsound."""
    try:
        return _estimator(manifest, arrays, max_bytes)
    except ModelFileError as error:
        raise ModelFileError(str(error).replace(_FILE, repr(name), 1)) from error
    except Exception as error:
        # The content is a stranger's: whatever it brings about, it is the file that is at fault.
        what = f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(
            f"{name!r} is not a sound model file ({what}); restore it from a copy, or save the "
            "model again"
        ) from error


def _estimator(manifest: Manifest, arrays: Arrays, max_bytes: int | None) -> Any:
    name = manifest.get("estimator")
    if name == IncrementalPipeline.__name__:
        raw = raw_rows(manifest, arrays)
        scaler, given = scaler_from(manifest, arrays, raw, max_bytes)
        own = machine_arrays(arrays, scaler, raw)
        machine = _estimator(manifest["machine"], own, max_bytes)
        estimator: Any = IncrementalPipeline._from_parts(manifest, machine, scaler, given, raw)
    elif name in _ESTIMATORS:
        require_affordable(manifest, arrays, max_bytes)
        estimator = _ESTIMATORS[name]._from_file(manifest, arrays)
    else:
        raise ModelFileError(
            f"{_FILE} holds an estimator {name!r} that this version does not know; install a "
            "newer adiabat"
        )
    name_features(estimator, manifest)
    return estimator
