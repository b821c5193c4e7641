# SPDX-License-Identifier: BSD-3-Clause
"""Model files back into estimators."""

from __future__ import annotations

import os
from typing import Any

from adiabat.archive import read_archive
from adiabat.errors import ModelFileError
from adiabat.estimators.kernel_lssvm import KernelLSSVC, KernelLSSVR
from adiabat.estimators.lssvc import LSSVC
from adiabat.estimators.lssvr import LSSVR
from adiabat.estimators.one_class_svm import OneClassSVM
from adiabat.estimators.pipeline import IncrementalPipeline
from adiabat.estimators.svc import SVC
from adiabat.estimators.svdd import SVDD
from adiabat.estimators.svr import SVR

# The file names an estimator; only these are ever made.
_ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (SVC, SVR, OneClassSVM, SVDD, LSSVC, LSSVR, KernelLSSVC, KernelLSSVR)
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that was written by `save`. No code in the file is run.

    Parameters
    ----------
    path : path-like
        The model file.

    Returns
    -------
    estimator
        It continues as the saved one would have.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, or not a model file.
    """
    manifest, _ = read_archive(path)
    name = manifest.get("estimator")
    if name == IncrementalPipeline.__name__:
        return IncrementalPipeline._from_file(path, load)
    if name not in _ESTIMATORS:
        raise ModelFileError(
            f"{os.fspath(path)!r} holds an estimator {name!r} that this version does not know; "
            "install a newer adiabat"
        )
    return _ESTIMATORS[name]._from_file(path)
