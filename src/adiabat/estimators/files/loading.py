# SPDX-License-Identifier: BSD-3-Clause
"""Model files back into estimators."""

from __future__ import annotations

import os
from typing import Any

from adiabat.archive import HeldArchive, read_archive
from adiabat.errors import ModelFileError
from adiabat.estimators.files.reading import require_affordable
from adiabat.estimators.incremental_pipeline import IncrementalPipeline
from adiabat.estimators.kernel_lssvm import KernelLSSVC, KernelLSSVR
from adiabat.estimators.lssvc import LSSVC
from adiabat.estimators.lssvr import LSSVR
from adiabat.estimators.one_class_svm import OneClassSVM
from adiabat.estimators.svc import SVC
from adiabat.estimators.svdd import SVDD
from adiabat.estimators.svr import SVR

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
        Memory that the model may take; by default half of the machine's. A file that declares
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
    opened = _held(path)
    try:
        return _estimator_of(opened, max_bytes)
    except ModelFileError:
        raise
    except Exception as error:
        # The content is a stranger's: whatever it brings about, it is the file that is at fault.
        raise ModelFileError(
            f"{opened.name!r} is not a sound model file ({type(error).__name__}: {error}); restore "
            "it from a copy, or save the model again"
        ) from error


def _held(path: str | os.PathLike[str]) -> HeldArchive:
    """The content of a file, read once."""
    if isinstance(path, HeldArchive):
        return path
    return HeldArchive(os.fspath(path), *read_archive(path))


def _estimator_of(path: HeldArchive, max_bytes: int | None) -> Any:
    manifest = path.manifest
    name = manifest.get("estimator")
    if name == IncrementalPipeline.__name__:
        return IncrementalPipeline._from_file(
            path, lambda machine: _estimator_of(machine, max_bytes)
        )
    if name not in _ESTIMATORS:
        raise ModelFileError(
            f"{os.fspath(path)!r} holds an estimator {name!r} that this version does not know; "
            "install a newer adiabat"
        )
    require_affordable(manifest, path.arrays, max_bytes)
    return _ESTIMATORS[name]._from_file(path)
